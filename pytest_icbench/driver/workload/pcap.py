# SPDX-License-Identifier: BSD-3-Clause
"""Files of frames for the workload's ``replay`` and from its ``capture``: classic pcap with nanoseconds. Pure.

No library was found that follows a growing file record by record and that the core may import.
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
    """Returns a file of these Ethernet frames without FCS, all at time 0."""
    parts = [_HEADER.pack(_MAGIC, 2, 4, 0, 0, _SNAP_BYTES, _ETHERNET)]
    for frame in frames:
        parts += [_RECORD.pack(0, 0, len(frame), len(frame)), frame]
    return b"".join(parts)


class PcapFollower:
    """Parses a growing file part by part.

    ``feed`` returns the frames that are complete. The rest is kept for the next call.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the frames that ``data`` completes. Raises DamagedData for a foreign file or a truncated frame."""
        data = self._rest + data
        offset = 0
        frames = []
        if not self._begun and len(data) >= _HEADER.size:
            magic, _, _, _, _, _, link = _HEADER.unpack_from(data)
            if (magic, link) != (_MAGIC, _ETHERNET):
                raise DamagedData(f"a capture begins with {magic:#x} and link type {link}, not as a capture should")
            self._begun, offset = True, _HEADER.size
        while self._begun and len(data) - offset >= _RECORD.size:
            _, _, captured, length = _RECORD.unpack_from(data, offset)
            if captured != length:
                raise DamagedData(f"a frame of {length} bytes was captured in part: only {captured} are there")
            if len(data) - offset - _RECORD.size < captured:
                break
            frames.append(data[offset + _RECORD.size : offset + _RECORD.size + captured])
            offset += _RECORD.size + captured
        self._rest = data[offset:]
        return frames
