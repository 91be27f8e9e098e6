# SPDX-License-Identifier: BSD-3-Clause
"""Files of frames, written whole and followed as they grow; against Scapy's reader and writer."""

from __future__ import annotations

import io
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import PcapWriter, RawPcapReader

from pytest_icbench.model.codec import DamagedData
from pytest_icbench.testbed.exchange import PcapFollower, pcap_bytes

frame_lists = st.lists(st.binary(min_size=14, max_size=200), max_size=6)


@given(frame_lists, st.lists(st.integers(0, 1500), max_size=8))
def test_a_file_cut_anywhere_gives_each_frame_once_it_is_whole(frames: list[bytes], cuts: list[int]) -> None:
    content = pcap_bytes(frames)
    follower = PcapFollower()
    edges = sorted({0, len(content), *(min(cut, len(content)) for cut in cuts)})
    found: list[bytes] = []
    for start, end in itertools.pairwise(edges):
        found += follower.feed(content[start:end])
        assert found == frames[: len(found)]
        whole = next(n for n in range(len(frames), -1, -1) if n == 0 or len(pcap_bytes(frames[:n])) <= end)
        assert len(found) == whole
    assert found == frames
    assert follower.feed(b"") == []


@given(frame_lists)
def test_scapy_reads_a_written_file(frames: list[bytes]) -> None:
    assert [data for data, _ in RawPcapReader(io.BytesIO(pcap_bytes(frames)))] == frames  # type: ignore[arg-type]


def test_a_file_of_scapy_is_read() -> None:
    file = io.BytesIO()
    writer = PcapWriter(file, nano=True, endianness="<", linktype=1)
    frames = [bytes([n]) * n for n in range(14, 80)]
    for frame in frames:
        writer.write(frame)
    assert PcapFollower().feed(file.getvalue()) == frames


def test_other_bytes_are_refused() -> None:
    with pytest.raises(DamagedData, match="begins with 0xa1b2c3d4"):
        PcapFollower().feed(struct.pack("<I", 0xA1B2C3D4) + bytes(20))
    cut = struct.pack("<IIII", 0, 0, 60, 1500) + bytes(60)
    with pytest.raises(DamagedData, match="1500 bytes was captured in part: only 60"):
        PcapFollower().feed(pcap_bytes([]) + cut)
