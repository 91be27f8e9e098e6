# SPDX-License-Identifier: BSD-3-Clause
"""What tcpdump sees of the workload's frames on an interface: an independent count with times."""

from __future__ import annotations

import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bench_host as host

#: Ethernet, IPv4 and UDP headers of a frame.
_HEADERS = 42
#: Window number of control frames; see docs/reference/workload.md, "Frame".
_CONTROL = 0xFFFF
_NANOSECOND_MAGIC = 0xA1B23C4D
_FILE_HEADER, _RECORD_HEADER = 24, 16
_IPV4, _UDP = b"\x08\x00", 17
#: libpcap hands a block of its ring over when it is full, or after a second.
_FLUSH_S = 1.5


@dataclass(frozen=True)
class Capture:
    """The workload's frames in a capture file.

    Attributes:
        times_ns: of data frames, in the order in which the kernel took them.
        sequences: theirs.
        end_marks: control frames of a sender.
        others: frames that are not the workload's, as a kernel's answer to a datagram that nobody
            waits for; and a receiver's announcements.
    """

    times_ns: tuple[int, ...]
    sequences: tuple[int, ...]
    end_marks: int
    others: int

    @property
    def frames(self) -> int:
        """Everything in the file."""
        return len(self.sequences) + self.end_marks + self.others


def read(file: Path) -> Capture:
    """Reads what ``tcpdump --nano -s 64 -w`` wrote. Raises ValueError if it is something else."""
    data = file.read_bytes()
    if len(data) < _FILE_HEADER or struct.unpack_from("<I", data)[0] != _NANOSECOND_MAGIC:
        raise ValueError(f"{file.name} is no capture with nanoseconds of this machine")
    times, sequences, marks, others, at = [], [], 0, 0, _FILE_HEADER
    while at + _RECORD_HEADER <= len(data):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<IIII", data, at)
        at += _RECORD_HEADER
        ours = captured >= _HEADERS + 18 and data[at + 12 : at + 14] == _IPV4 and data[at + 23] == _UDP
        _, window, sequence = struct.unpack_from(">HH6s", data, at + _HEADERS) if ours else (0, 0, b"")
        at += captured
        if not ours:
            others += 1
        elif window == _CONTROL:
            mark = int.from_bytes(sequence) > 0
            marks, others = marks + mark, others + (not mark)
        else:
            times.append(seconds * 1_000_000_000 + nanoseconds)
            sequences.append(int.from_bytes(sequence))
    return Capture(tuple(times), tuple(sequences), marks, others)


class Watcher:
    """A running tcpdump."""

    def __init__(self, process: subprocess.Popen[str], file: Path) -> None:
        self._process, self._file = process, file
        self.dropped: int | None = None

    def result(self) -> Capture:
        """Ends it and reads its file. ``dropped`` has the frames then that the kernel could not keep for it."""
        time.sleep(_FLUSH_S)
        self._process.send_signal(signal.SIGINT)
        _, reported = self._process.communicate(timeout=20)
        found = re.search(r"^(\d+) packets? dropped by kernel", reported, flags=re.MULTILINE)
        self.dropped = int(found[1]) if found else None
        return read(self._file)


@contextmanager
def watching(namespace: str, interface: str, direction: str, file: Path, cpu: int | None = None) -> Iterator[Watcher]:
    """tcpdump at an interface of a network namespace while the block runs; ``direction``: ``in`` or ``out``."""
    binary = host.program("tcpdump", "tcpdump")
    command = ["ip", "netns", "exec", namespace, binary, "-i", interface, "-Q", direction, "--nano", "-s", "64", "-n"]
    # As root it would write as the user tcpdump, who may not write here.
    command += ["-Z", "root", "-B", "65536", "-w", str(file)]
    if cpu is not None:
        command = host.pinned(cpu, command)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        host.wait_for(file, process)
        yield Watcher(process, file)
    finally:
        host.end(process)
