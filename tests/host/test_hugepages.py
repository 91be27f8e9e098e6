# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages of this machine's kernel: taken, shared, refused, given back."""

from __future__ import annotations

import mmap
import os
import re

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="changing huge pages needs root")

_ROOT = Root()
_MAP_HUGETLB = 0x40000


def total(size_kib: int = 2048) -> int:
    return hugepages.counts(_ROOT, 0, size_kib)[0]


@pytest.fixture(autouse=True)
def offered() -> None:
    if 2048 not in hugepages.sizes_kib(_ROOT):
        pytest.skip("this kernel has no huge pages of 2 MiB")


def test_taken_and_usable_and_given_back(clean: None) -> None:
    before = total()
    with HostSession(UNDO_KINDS) as session:
        hugepages.reserve(session, 0, 64)
        assert hugepages.counts(_ROOT, 0, 2048)[1] >= 32
        with mmap.mmap(-1, 64 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_HUGETLB) as memory:
            memory[:: 2 << 20] = b"x" * 32
            # Pages in use count for the session: a second rig gets its own.
            hugepages.reserve(session, 0, 32)
            assert hugepages.counts(_ROOT, 0, 2048)[1] >= 16
        hugepages.release(session, 0, 64)
        hugepages.release(session, 0, 32)
        again = total()
        hugepages.reserve(session, 0, 96)
        assert total() == again
    assert total() == before


def test_pages_of_others_are_left_alone(session: HostSession) -> None:
    """What an administrator has reserved is used and not given away."""
    before, idle = hugepages.counts(_ROOT, 0, 2048)
    _ROOT.write("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", str(before + 16))
    try:
        hugepages.reserve(session, 0, 2 * (idle + 20))
        assert total() == before + 20
        assert session.journal.undo_all() == []
        assert total() == before + 16
    finally:
        _ROOT.write("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", str(before))


def test_more_than_there_is(session: HostSession) -> None:
    before = total()
    with pytest.raises(ProvisionError, match="are wanted on NUMA node 0, which has only"):
        hugepages.reserve(session, 0, 1 << 30)
    assert total() == before


def test_a_page_of_one_gib(clean: None) -> None:
    """Fragmented memory may not have one: then a sentence, and nothing taken."""
    if 1048576 not in hugepages.sizes_kib(_ROOT):
        pytest.skip("this kernel has no huge pages of 1 GiB")
    before = total(1048576)
    with HostSession(UNDO_KINDS, SessionOptions(1048576)) as session:
        refusal = ""
        try:
            hugepages.reserve(session, 0, 100)
        except ProvisionError as error:
            refusal = str(error)
        if refusal:
            assert re.search(r"NUMA node 0 gave 0 of 1 more huge pages of 1G .* hugepagesz=1G hugepages=1$", refusal)
            assert total(1048576) == before
        else:
            assert hugepages.counts(_ROOT, 0, 1048576)[1] >= 1
    assert total(1048576) == before


def test_an_unknown_node(session: HostSession) -> None:
    with pytest.raises(ProvisionError, match="NUMA node 99 has no huge pages of 2 MiB"):
        hugepages.reserve(session, 99, 2)
