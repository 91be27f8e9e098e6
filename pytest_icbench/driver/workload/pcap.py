# SPDX-License-Identifier: BSD-3-Clause
"""Files of frames as the workload's ``replay`` reads and its ``capture`` writes them: classic pcap, nanoseconds. Pure.

(A library that follows a growing file record by record, and that the core may import, was not found.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from pytest_icbench.model.codec import DamagedData

_MAGIC = 0xA1B23C4D
_HEADER = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")
_ETHERNET = 1
_SNAP_BYTES = 65535


def pcap_bytes(frames: Iterable[bytes]) -> bytes:
    """The file that holds these frames (Ethernet, without FCS), all at time 0."""
    parts = [_HEADER.pack(_MAGIC, 2, 4, 0, 0, _SNAP_BYTES, _ETHERNET)]
    for frame in frames:
        parts += [_RECORD.pack(0, 0, len(frame), len(frame)), frame]
    return b"".join(parts)


class PcapFollower:
    """Takes in a growing file part by part.

    ``feed`` returns the frames that have become whole. What is there of the next one is kept for the next call.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Frames that ``data`` completes. Raises DamagedData if this is no file of ``capture``, or a frame was cut."""
        data = self._rest + data
        at = 0
        frames = []
        if not self._begun and len(data) >= _HEADER.size:
            magic, _, _, _, _, _, link = _HEADER.unpack_from(data)
            if (magic, link) != (_MAGIC, _ETHERNET):
                raise DamagedData(f"a capture begins with {magic:#x} and link type {link}, not as a capture should")
            self._begun, at = True, _HEADER.size
        while self._begun and len(data) - at >= _RECORD.size:
            _, _, kept, length = _RECORD.unpack_from(data, at)
            if kept != length:
                raise DamagedData(f"a frame of {length} bytes was captured in part: only {kept} are there")
            if len(data) - at - _RECORD.size < kept:
                break
            frames.append(data[at + _RECORD.size : at + _RECORD.size + kept])
            at += _RECORD.size + kept
        self._rest = data[at:]
        return frames
