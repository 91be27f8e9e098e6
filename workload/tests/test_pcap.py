# SPDX-License-Identifier: BSD-3-Clause
"""Pcap files read and written by the workload's code, against Scapy's and against files of every kind of damage."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77  # meson's exit code for a test that cannot run here

try:
    from hypothesis import given, settings
    from hypothesis import strategies as st
    from scapy.layers.l2 import Ether
    from scapy.utils import PcapWriter, RawPcapReader
except ImportError as missing:
    print(f"{missing.name} is missing: pip install hypothesis scapy")
    sys.exit(SKIPPED)

NANOSECONDS, MICROSECONDS = 0xA1B23C4D, 0xA1B2C3D4
MAX_BYTES = 9216 - 4 + 8

Frame = tuple[int, bytes]
work = tempfile.TemporaryDirectory()
FILE, COPY = Path(work.name, "in.pcap"), Path(work.name, "out.pcap")
helper = subprocess.Popen([sys.argv[1], str(COPY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read(content: bytes) -> list[Frame] | str:
    """Frames that the workload finds in a file, or its sentence."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    FILE.write_bytes(content)
    helper.stdin.write(f"{FILE}\n")
    helper.stdin.flush()
    found: list[Frame] = []
    for line in iter(helper.stdout.readline, "\n"):
        assert line, f"the helper ended with {helper.wait()}"
        if line.startswith("error "):
            assert helper.stdout.readline() == "\n"
            return line.removeprefix("error ").strip()
        time, text = line.split()
        found.append((int(time), bytes.fromhex(text)))
    return found


def pcap(frames: list[Frame], order: str = "<", magic: int = NANOSECONDS, link: int = 1) -> bytes:
    """A whole file; times are cut to what it can tell."""
    unit = 1 if magic == NANOSECONDS else 1000
    content = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for time, frame in frames:
        seconds, rest = divmod(time, 10**9)
        content += struct.pack(f"{order}IIII", seconds, rest // unit, len(frame), len(frame)) + frame
    return content


frame_lists = st.lists(
    st.tuples(st.integers(0, 2**32 * 10**9 - 1), st.binary(min_size=14, max_size=100)), min_size=1, max_size=8
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(frame_lists, st.sampled_from("<>"), st.sampled_from([NANOSECONDS, MICROSECONDS]))
def check_every_form(frames: list[Frame], order: str, magic: int) -> None:
    unit = 1 if magic == NANOSECONDS else 1000
    expected = [(time // unit * unit, frame) for time, frame in frames]
    assert read(pcap(frames, order, magic)) == expected
    # What is written has every frame, of an odd one all but a byte, and says how long it was.
    written = [((meta.sec * 10**9 + meta.usec), data, meta.wirelen) for data, meta in RawPcapReader(str(COPY))]
    assert written == [(time, frame[: len(frame) // 2 * 2], len(frame)) for time, frame in expected]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(frame_lists, st.data())
def check_cut(frames: list[Frame], data: st.DataObject) -> None:
    """Cut anywhere but between two frames, it is refused."""
    whole = pcap(frames)
    ends = [len(pcap(frames[:n])) for n in range(1, len(frames))]
    length = data.draw(st.integers(0, len(whole) - 1).filter(lambda length: length not in ends))
    said = read(whole[:length])
    assert isinstance(said, str), f"{length} of {len(whole)} bytes were taken for a file"
    assert said.startswith(f"{FILE}: it ")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(frame_lists, st.binary(min_size=1, max_size=16), st.data())
def check_damage(frames: list[Frame], damage: bytes, data: st.DataObject) -> None:
    """Whatever stands in a file: frames of a possible length, or one sentence."""
    whole = bytearray(pcap(frames))
    at = data.draw(st.integers(0, len(whole)))
    whole[at : at + len(damage)] = damage
    found = read(bytes(whole))
    if isinstance(found, str):
        assert found.startswith(f"{FILE}: ")
    else:
        assert found
        assert all(14 <= len(frame) <= MAX_BYTES for _, frame in found)
        assert sum(len(frame) + 16 for _, frame in found) + 24 == len(whole)


def check_sentences() -> None:
    frame = (0, bytes(60))
    for content, part in (
        (b"", "has 0 bytes"),
        (b"x" * 24, "no pcap file"),
        (struct.pack("<I", 0x0A0D0D0A) + bytes(40), "editcap"),
        *((struct.pack(order + "I", 0xA1B2CD34) + bytes(40), "modified pcap") for order in "<>"),
        (gzip.compress(pcap([frame])), "gzip -dk"),
        (lzma.compress(pcap([frame])), "xz -dk"),
        (bz2.compress(pcap([frame])), "bzip2 -dk"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "zstd -dk"),
        (pcap([]) + struct.pack("<IIII", 0, 0, 64, 60) + bytes(64), "64 bytes in a record of a frame of 60"),
        (pcap([]), "holds no frame"),
        (pcap([frame], link=101), "link type is 101"),
        (pcap([frame])[:4] + struct.pack("<HH", 2, 3) + pcap([frame])[8:], "version 2.3"),
        (pcap([frame, (0, bytes(13))]), "frame 2 has 13 bytes"),
        (pcap([frame, (0, bytes(MAX_BYTES + 1))]), f"frame 2 has {MAX_BYTES + 1} bytes"),
        (pcap([]) + struct.pack("<IIII", 0, 10**9, 60, 60) + bytes(60), "nanoseconds"),
        (pcap([]) + struct.pack("<IIII", 0, 0, 60, 1500) + bytes(60), "in part, 60 of 1500"),
        (pcap([]) + struct.pack("<IIII", 0, 0, 2**32 - 1, 2**32 - 1) + bytes(60), "60 are left"),
    ):
        said = read(content)
        assert isinstance(said, str), part
        assert part in said, said
    assert read(pcap([(5, bytes(60) + b"fcs.")], link=1 | 0x04000000 | 2 << 28)) == [(5, bytes(60))]


def check_scapy() -> None:
    frames = [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / bytes(range(n)) for n in range(46, 200)]
    for nano in (False, True):
        for order in "<>":
            writer = PcapWriter(str(FILE), nano=nano, endianness=order)
            for i, frame in enumerate(frames):
                frame.time = i + 0.5
                writer.write(frame)
            writer.close()
            expected = [(i * 10**9 + 500000000, bytes(frame)) for i, frame in enumerate(frames)]
            assert read(FILE.read_bytes()) == expected


check_scapy()
check_sentences()
check_every_form()
check_cut()
check_damage()
assert helper.stdin is not None
helper.stdin.close()
assert helper.wait() == 0
