# SPDX-License-Identifier: BSD-3-Clause
"""CPU lists, topology, governor and turbo, on recorded trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import Journal
from pytest_icbench.host.resource import frequency
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.root import Root, format_cpu_list, parse_cpu_list
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.unit.recorded import NAMES, expand

Tree = Callable[[str], Root]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return lambda name: expand(name, tmp_path / name)


class StubbornRoot(Root):
    """A tree in which one file cannot be written, as the firmware may have it."""

    def write(self, name: str, text: str) -> None:
        if name.endswith("no_turbo"):
            raise PermissionError(1, "Operation not permitted")
        Root.write(self, name, text)


def session_on(root: Root, tmp_path: Path) -> HostSession:
    """As much of a session as setting the frequency needs."""
    journal = Journal(tmp_path / "journal", UNDO_KINDS, base=root.base)
    return cast(HostSession, SimpleNamespace(root=root, journal=journal))


def files(root: Root) -> dict[str, str]:
    return {str(path): path.read_text().strip() for path in root.base.rglob("*") if path.is_file()}


@given(st.sets(st.integers(0, 300)))
def test_cpu_lists_round_trip(cpus: set[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        (None, ()),
        ("0", (0,)),
        ("0-3,8", (0, 1, 2, 3, 8)),
        ("0-6:2/4", (0, 1, 4, 5)),
        ("3-1", ()),
        ("1\n", (1,)),
    ],
)
def test_ranges_and_strides_of_cpus_are_parsed(text: str | None, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["(null)", "a", "1-", "-1", "1,,x"])
def test_a_malformed_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cpu_list(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_tree_has_a_topology(tree: Tree, name: str) -> None:
    topology = Topology.read(tree(name))
    assert topology.usable
    for core in topology.cores():
        assert {cpu.siblings for cpu in core} == {core[0].siblings}
    assert sum(len(core) for core in topology.cores()) == len(topology.usable)


def test_smt_siblings_are_one_core(tree: Tree) -> None:
    topology = Topology.read(tree("intel_pstate"))
    assert topology.smt
    assert [[cpu.id for cpu in core] for core in topology.cores()] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert topology[5].siblings == (1, 5)
    assert topology[5].core == 1


def test_two_numa_nodes_with_isolated_cores(tree: Tree) -> None:
    topology = Topology.read(tree("numa-smt"))
    assert topology.nodes == (0, 1)
    assert [[cpu.id for cpu in core] for core in topology.cores(1)] == [[4, 12], [5, 13], [6, 14], [7, 15]]
    assert [cpu.id for cpu in topology.cpus if cpu.isolated] == [2, 3, 10, 11]
    assert topology[4].socket == 1
    assert topology[12].node == 1


def test_offline_and_forbidden_cpus_are_not_usable(tree: Tree) -> None:
    topology = Topology.read(tree("amd-pstate"))
    assert [cpu.id for cpu in topology.cpus] == list(range(8))
    assert [cpu.id for cpu in topology.usable] == [0, 1, 2, 3, 4, 5]
    assert not topology[7].online
    assert not topology[6].allowed
    assert [cpu.id for cpu in topology.usable if cpu.nohz_full] == [4, 5]
    with pytest.raises(KeyError):
        topology[8]


def test_the_running_machine_has_its_affinity() -> None:
    import os

    assert {cpu.id for cpu in Topology.read().usable} == os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("name", "driver", "turbo"),
    [
        ("intel_pstate", "intel_pstate", True),
        ("acpi-cpufreq", "acpi-cpufreq", True),
        ("amd-pstate", "amd-pstate-epp", True),
        ("numa-smt", "intel_cpufreq", False),
        ("virtual", None, None),
    ],
)
def test_frequency_is_read(tree: Tree, name: str, driver: str | None, turbo: bool | None) -> None:
    found = frequency.read_frequency(tree(name), [0, 1])
    assert (found.driver, found.turbo) == (driver, turbo)


@pytest.mark.parametrize("name", NAMES)
def test_governor_and_turbo_are_set_and_put_back(tree: Tree, tmp_path: Path, name: str) -> None:
    root = tree(name)
    before = files(root)
    session = session_on(root, tmp_path)
    found = frequency.prepare_cpus(session, [0, 1, 2])
    has_frequency = name != "virtual"
    assert found.warnings == []
    assert set(found.governors.values()) == ({"performance"} if has_frequency else set())
    assert found.turbo is (False if has_frequency else None)
    assert root.read("/sys/devices/system/cpu/cpu5/cpufreq/scaling_governor") != "performance" or name == "numa-smt"
    assert session.journal.undo_all() == []
    assert files(root) == before
    assert session.journal.pending() == []


def test_a_second_call_records_nothing_new(tree: Tree, tmp_path: Path) -> None:
    session = session_on(tree("intel_pstate"), tmp_path)
    frequency.prepare_cpus(session, [0])
    pending = session.journal.pending()
    frequency.prepare_cpus(session, [0])
    assert session.journal.pending() == pending
    assert pending


def test_the_preference_beneath_the_governor_comes_back_after_it(tree: Tree, tmp_path: Path) -> None:
    session = session_on(tree("amd-pstate"), tmp_path)
    frequency.prepare_cpus(session, [1], turbo=False)
    undone = [entry.data["path"].rpartition("/")[2] for entry in session.journal.pending()[::-1]]
    assert undone == ["scaling_governor", "energy_performance_preference"]


@pytest.mark.parametrize(("governor", "turbo"), [(False, True), (True, False), (False, False)])
def test_either_can_be_left_alone(tree: Tree, tmp_path: Path, governor: bool, turbo: bool) -> None:
    found = frequency.prepare_cpus(session_on(tree("acpi-cpufreq"), tmp_path), [0], governor=governor, turbo=turbo)
    assert found.governors[0] == ("performance" if governor else "schedutil")
    assert found.turbo is not turbo


def test_what_the_kernel_refuses_is_a_warning(tree: Tree, tmp_path: Path) -> None:
    root = StubbornRoot(tree("intel_pstate").base)
    session = session_on(root, tmp_path)
    found = frequency.prepare_cpus(session, [0])
    assert found.turbo is True
    assert len(found.warnings) == 1
    assert "no_turbo cannot be set to 1 (Operation not permitted)" in found.warnings[0]
    assert not any("no_turbo" in entry.data["path"] for entry in session.journal.pending())


def test_a_missing_governor_is_a_warning(tree: Tree, tmp_path: Path) -> None:
    root = tree("acpi-cpufreq")
    root.write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", "ondemand powersave")
    found = frequency.prepare_cpus(session_on(root, tmp_path), [0])
    assert found.governors == {0: "schedutil"}
    assert "it offers ondemand powersave" in found.warnings[0]


def test_undo_writes_only_what_differs(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("intel_pstate")
    session = session_on(root, tmp_path)
    frequency.prepare_cpus(session, [0])
    root.write("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "balance_performance")
    written: list[str] = []
    real = Path.write_text

    def write_text(self: Path, *arguments: Any, **named: Any) -> int:
        written.append(self.name)
        return real(self, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", write_text)
    assert session.journal.undo_all() == []
    assert written == ["no_turbo", "scaling_governor"]


CPU = "sys/devices/system/cpu"


def sandbox(top: Path, **files: str) -> Root:
    """A tree with two online CPUs; ``files`` has what a sandbox shows otherwise."""
    shown = {"present": "0-1", "online": "0-1", "cpu0/topology/core_cpus_list": "0", "allowed": "0-1", **files}
    for name, text in shown.items():
        path = top / ("proc/self/status" if name == "allowed" else f"{CPU}/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Cpus_allowed_list:\t{text}\n" if name == "allowed" else f"{text}\n")
    return Root(top)


def test_a_sibling_that_is_not_present_is_left_out(tmp_path: Path) -> None:
    topology = Topology.read(sandbox(tmp_path, **{"cpu0/topology/core_cpus_list": "0,16"}))
    assert topology[0].siblings == (0,)
    assert topology.smt is False
    assert len(topology.cores()) == 2


@pytest.mark.parametrize("files", [{"allowed": "4-5"}, {"online": "4-5"}, {"present": "0-1", "online": "4-5"}])
def test_numbers_that_do_not_meet_are_one_sentence(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(ProvisionError, match=r"may use CPUs \S+, and \S+/cpu has \S+ online: lxcfs or a sandbox"):
        Topology.read(sandbox(tmp_path, **files))
