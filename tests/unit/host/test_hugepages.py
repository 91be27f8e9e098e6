# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages on recorded trees: what is missing is taken, and the difference given back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import Journal
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.unit.recorded import expand

_NODE = "/sys/devices/system/node/node{}/hugepages/hugepages-{}kB"


class KernelRoot(Root):
    """A tree whose kernel gives at most 100 pages a node, and no more than that."""

    def write(self, name: str, text: str) -> None:
        directory = name.rpartition("/")[0]
        old, free = self.read_int(f"{directory}/nr_hugepages"), self.read_int(f"{directory}/free_hugepages")
        assert old is not None
        assert free is not None
        new = min(100, int(text))
        Root.write(self, name, str(new))
        Root.write(self, f"{directory}/free_hugepages", str(free + new - old))


def session_on(root: Root, tmp_path: Path, size_kib: int = 2048) -> HostSession:
    parts = SimpleNamespace(
        root=root,
        journal=Journal(tmp_path / "journal", UNDO_KINDS, base=root.base),
        hugepage_size_kib=size_kib,
        hugepages=hugepages.HugePages(),
    )
    return cast(HostSession, parts)


def total(root: Root, node: int = 0, size_kib: int = 2048) -> int | None:
    return root.read_int(f"{_NODE.format(node, size_kib)}/nr_hugepages")


def test_free_pages_count(tmp_path: Path) -> None:
    root = KernelRoot(expand("acpi-cpufreq", tmp_path / "tree").base)  # 64 pages, 48 free, on each node
    session = session_on(root, tmp_path)
    hugepages.reserve(session, 1, 96)
    assert total(root, 1) == 64
    assert session.journal.pending() == []


def test_files_that_tell_nothing_are_named_and_no_pages_are_counted(tmp_path: Path) -> None:
    root = KernelRoot(expand("acpi-cpufreq", tmp_path / "tree").base)
    before = hugepages.free_mib(root)
    for name in ("nr_hugepages", "free_hugepages"):
        (root.base / f"{_NODE.format(0, 2048)}/{name}".lstrip("/")).write_text("")
    assert hugepages.free_mib(root) == before - 48 * 2
    with pytest.raises(ProvisionError, match=r"hugepages-2048kB does not show the number of huge pages"):
        hugepages.reserve(session_on(root, tmp_path), 0, 20)


def test_only_what_is_missing_is_taken_on_that_node(tmp_path: Path) -> None:
    root = KernelRoot(expand("acpi-cpufreq", tmp_path / "tree").base)
    session = session_on(root, tmp_path)
    hugepages.reserve(session, 1, 120)
    assert (total(root, 0), total(root, 1)) == (64, 76)  # 16 used by others, 60 wanted
    assert session.journal.undo_all() == []
    assert (total(root, 0), total(root, 1)) == (64, 64)


def test_claims_add_up_and_are_reused(tmp_path: Path) -> None:
    root = KernelRoot(expand("virtual", tmp_path / "tree").base)
    session = session_on(root, tmp_path)
    hugepages.reserve(session, 0, 20)
    hugepages.reserve(session, 0, 20)
    assert total(root) == 20
    hugepages.release(session, 0, 20)
    hugepages.reserve(session, 0, 10)
    assert total(root) == 20
    hugepages.reserve(session, 0, 11)
    assert total(root) == 21  # an odd MiB takes a whole page
    assert len(session.journal.pending()) == 1
    assert session.journal.undo_all() == []
    assert total(root) == 0


def test_refusal_says_how_many_were_got_and_gives_them_back(tmp_path: Path) -> None:
    root = KernelRoot(expand("acpi-cpufreq", tmp_path / "tree").base)
    session = session_on(root, tmp_path)
    hugepages.reserve(session, 0, 110)
    assert total(root) == 71
    with pytest.raises(ProvisionError) as caught:
        hugepages.reserve(session, 0, 400)
    sentence = str(caught.value)
    assert sentence.startswith("NUMA node 0 gave 29 of 200 more huge pages of 2M")
    assert "given back" in sentence
    assert "hugepagesz=2M hugepages=200" in sentence
    assert "\n" not in sentence
    assert total(root) == 71
    hugepages.reserve(session, 0, 10)  # what went before still stands
    assert total(root) == 76
    assert session.journal.undo_all() == []
    assert total(root) == 64


def test_a_size_the_node_lacks(tmp_path: Path) -> None:
    session = session_on(expand("virtual", tmp_path / "tree"), tmp_path, 1048576)
    with pytest.raises(ProvisionError, match=r"no huge pages of 1024 MiB \(it offers 2 MiB\).*--icbench-hugepage-size"):
        hugepages.reserve(session, 0, 1024)
    assert session.journal.pending() == []


def test_one_gib_pages_are_reserved_and_given_back(tmp_path: Path) -> None:
    root = KernelRoot(expand("amd-pstate", tmp_path / "tree").base)
    session = session_on(root, tmp_path, 1048576)
    hugepages.reserve(session, 0, 1500)
    assert total(root, 0, 1048576) == 2
    assert session.journal.undo_all() == []
    assert total(root, 0, 1048576) == 1


def test_more_than_the_memory_is_refused_without_asking(tmp_path: Path) -> None:
    root = KernelRoot(expand("acpi-cpufreq", tmp_path / "tree").base)
    node = "/sys/devices/system/node/node1/meminfo"
    Root.write(root, node, "Node 1 MemTotal: 900000 kB\nNode 1 MemFree: 40960 kB\nNode 1 Inactive(file): 20480 kB\n")
    session = session_on(root, tmp_path)
    hugepages.reserve(session, 1, 96 + 60)
    with pytest.raises(ProvisionError) as caught:
        hugepages.reserve(session, 1, 62)
    assert str(caught.value).startswith("31 more huge pages of 2M are wanted on NUMA node 1, which has only 60 MiB")
    assert total(root, 1) == 94


def test_the_sum_of_many_claims_is_refused_before_the_first(tmp_path: Path) -> None:
    """The memory has room for 40 pairs with 64 MiB an endpoint, not for 65."""
    root = KernelRoot(expand("acpi-cpufreq", tmp_path / "tree").base)  # 16 of 64 pages are in use
    Root.write(root, "/sys/devices/system/node/node1/meminfo", f"Node 1 MemFree: {80 * 64 * 1024} kB\n")
    session = session_on(root, tmp_path)
    hugepages.check_room(session, 1, [0, *[64] * 80])
    with pytest.raises(ProvisionError, match=r"^4112 more huge pages of 2M .* only 5120 MiB .*: run fewer pairs"):
        hugepages.check_room(session, 1, [0, *[64] * 130])
    assert (total(root, 1), session.journal.pending()) == (64, [])
    hugepages.check_room(session, 7, [])  # a node that nobody asks for need not be there


def test_a_lazy_kernel_counts_memory_elsewhere(tmp_path: Path) -> None:
    root = KernelRoot(expand("virtual", tmp_path / "tree").base)
    Root.write(root, "/sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 40960 kB\n")
    hugepages.reserve(session_on(root, tmp_path), 0, 60)
    assert total(root) == 30


def test_nothing_asked_nothing_read(tmp_path: Path) -> None:
    hugepages.reserve(session_on(Root(tmp_path), tmp_path), 7, 0)


@settings(deadline=None)
@given(st.lists(st.integers(1, 26), max_size=6), st.integers(1, 3))
def test_undo_is_exact_and_idempotent(sizes: list[int], times: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        root = KernelRoot(path)
        root.path(_NODE.format(0, 2048)).mkdir(parents=True)
        Root.write(root, f"{_NODE.format(0, 2048)}/nr_hugepages", "64")
        Root.write(root, f"{_NODE.format(0, 2048)}/free_hugepages", "48")
        session = session_on(root, path)
        for size in sizes:
            hugepages.reserve(session, 0, size)
        entries = session.journal.pending()
        for _ in range(times):
            for entry in entries:
                hugepages.give_back(**entry.data)
        assert total(root) == 64


def test_undo_of_a_reservation_that_never_came_about(tmp_path: Path) -> None:
    root = expand("acpi-cpufreq", tmp_path / "tree")
    hugepages.give_back(str(root.base), node=0, size_kib=2048, before=64, taken=100)
    hugepages.give_back(str(root.base), node=9, size_kib=2048, before=0, taken=100)
    assert total(root) == 64
