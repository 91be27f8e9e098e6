# SPDX-License-Identifier: BSD-3-Clause
"""The memory of a whole rig, summed before anything of it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.hugepages import HugePages
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import RigSpec
from pytest_icbench.testbed import host_rig, noisy_neighbour_load
from pytest_icbench.testbed.feasibility import Feasibility, Hosts
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.memory_budget import FreeMemory, MemoryDemand, check_memory
from tests.unit.recorded import expand
from tests.unit.testbed.test_cpu_placement import machine

SWITCHES = builtin_switches()
TOO_MANY = r"^130 containers need about 1040 MiB of memory, and the host has 640 MiB: run fewer pairs"


def memory(case: Case, *, there_already: bool = False, uplink: bool = False) -> MemoryDemand:
    nodes = len(case.path.endpoints)
    made = 0 if there_already else nodes
    return MemoryDemand.of(case, SWITCHES[case.switch], workers=1, nodes=nodes, made=made, uplink=uplink)


def host(base: Path, available_mib: int) -> Root:
    """One with two NUMA nodes, each of which has 48 free pages of 2 MiB and plenty of memory."""
    root = expand("acpi-cpufreq", base)
    root.write("/proc/meminfo", f"MemAvailable: {available_mib * 1024} kB\n")
    return root


def session_on(root: Root) -> HostSession:
    return cast(HostSession, SimpleNamespace(root=root, hugepage_size_kib=2048, hugepages=HugePages()))


def test_the_containers_of_all_pairs_are_summed(tmp_path: Path) -> None:
    session = session_on(host(tmp_path, 40 * 2 * 8))
    check_memory(session, 0, memory(Case("linux-bridge", pairs=40)))
    with pytest.raises(ProvisionError, match=TOO_MANY):
        check_memory(session, 0, memory(Case("linux-bridge", pairs=65)))
    check_memory(session, 0, memory(Case("linux-bridge", pairs=65), there_already=True))


def test_huge_pages_that_have_to_be_made_leave_less_for_containers(tmp_path: Path) -> None:
    wanted = MemoryDemand(nodes=10, switch_mib=96 + 40, endpoints_mib=())
    check_memory(session_on(host(tmp_path / "a", 120)), 1, wanted)
    with pytest.raises(
        ProvisionError,
        match=r"^10 containers need about 80 MiB of memory besides 40 MiB for huge pages, .* has 119 MiB",
    ):
        check_memory(session_on(host(tmp_path / "b", 119)), 1, wanted)


def test_functions_are_summed_with_the_containers_at_their_ends() -> None:
    wires = memory(Case("veth", function="wire", chain=50, pairs=2))
    assert wires.shortage(0, 1600 + 4 * 8) is None
    assert str(wires.shortage(0, 1600 + 4 * 8 - 1)).startswith(
        "4 containers and 100 functions of forwarder need about 1632 MiB of memory, and the host has 1631 MiB: "
    )
    subscribers = memory(Case("veth", function="subscribers1000"))
    assert subscribers.shortage(0, 1008 + 2 * 8) is None
    assert "fewer pairs or subscribers" in str(subscribers.shortage(0, 1008 + 2 * 8 - 1))


def test_what_a_noisy_neighbour_holds_is_summed_with_the_containers() -> None:
    beside = memory(Case("linux-bridge", noisy_neighbour="memtester:4"))
    assert beside.shortage(0, 4 * 256 + 16) is None
    assert str(beside.shortage(0, 4 * 256 + 15)) == (
        "2 containers and noisy neighbour memtester:4 need about 1040 MiB of memory, and the host has 1039 MiB: run"
        " fewer"
        " pairs or subscribers, take shorter chains or a noisy neighbour of fewer CPUs, or free memory"
    )
    assert memory(Case("linux-bridge", noisy_neighbour="cpu:4")).shortage(0, 16) is None


def test_huge_pages_are_those_of_the_switch_all_endpoints_and_all_functions() -> None:
    case = Case("direct", port="memif", function="wire", chain=5, pairs=2)
    assert memory(case).functions_mib == 10 * 160
    assert memory(case).claims_mib == (0, 64, 64, 64, 64, 1600)
    assert memory(Case("linux-bridge", pairs=9)).claims_mib == (0, 0)


def test_before_a_run_only_what_can_never_have_room_is_refused(tmp_path: Path) -> None:
    """Free pages may be on a node, or of a size, that the rig will not take."""
    room = FreeMemory.read(host(tmp_path, 300))
    assert room == FreeMemory(300, 2 * 48 * 2)
    assert room.shortage(MemoryDemand(10, 192 + 220, ())) is None
    assert room.shortage(MemoryDemand(10, 192 + 221, ())) is not None
    assert FreeMemory(None, 0).shortage(memory(Case("linux-bridge", pairs=65))) is None


def test_a_rig_without_room_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(host_rig, "make_node", lambda *_: made.append("node"))
    monkeypatch.setattr(host_rig, "make_switch", lambda *_: made.append("switch"))
    session = HostSession.probing(root=host(tmp_path / "root", 640))
    session.dir = tmp_path / "session"
    placement = Placement("cooperative", (), (0,) * 130, (0,), 0, 128)
    rig = HostRig(session, SWITCHES)
    with pytest.raises(ProvisionError, match=TOO_MANY):
        rig.prepare(RigSpec("r1", Case("linux-bridge", pairs=65), placement, "netns"))
    assert made == []
    assert not (session.dir / "r1").exists()


def feasible(cases: Sequence[Case], root: Root, monkeypatch: pytest.MonkeyPatch) -> Feasibility:
    """What a host with every switch and function can run."""
    monkeypatch.setattr(Feasibility, "_probe", lambda *_: None)
    monkeypatch.setattr(Feasibility, "_check_function", lambda *_: None)
    monkeypatch.setattr(noisy_neighbour_load, "_program", lambda _: "sh")
    hosts = Hosts(HostSession.probing(root=root))
    return Feasibility(SWITCHES, Options(placement="cooperative"), cases, hosts, unsupported=dict.fromkeys(cases))


def test_a_case_without_room_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case("linux-bridge", pairs=pairs) for pairs in (40, 65)]
    feasibility = feasible(cases, host(tmp_path, 640), monkeypatch)
    assert len(feasibility.placement(cases[0]).endpoints) == 80
    with pytest.raises(Unsupported, match=TOO_MANY):
        feasibility.placement(cases[1])


@pytest.mark.parametrize(
    ("case", "shortage"),
    [
        (
            Case("direct", port="memif", function="wire"),
            "2 containers and 50 functions of forwarder need about 816 MiB of memory besides 7936 MiB for huge pages",
        ),
        (Case("veth", function="wire"), "2 containers and 50 functions of forwarder need about 816 MiB of memory, and"),
        (Case("veth", function="acl10", api="raw"), "2 containers and 50 functions of linux need about 416 MiB"),
    ],
    ids=lambda value: value.id if isinstance(value, Case) else "",
)
def test_a_chain_that_is_too_long_is_refused_with_the_sum_and_shorter_ones_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case, shortage: str
) -> None:
    cases = [replace(case, chain=chain) for chain in (1, 2, 50)]
    few = 400 if case.function == "acl10" else 640
    feasibility = feasible(cases, host(tmp_path, few), monkeypatch)
    for shorter in cases[:-1]:
        assert feasibility.placement(shorter).policy == "cooperative"
    with pytest.raises(Unsupported) as refused:
        feasibility.placement(cases[-1])
    assert str(refused.value).startswith(shortage)
    assert str(refused.value).endswith(
        f" the host has {few} MiB: run fewer pairs or subscribers, take shorter chains, or free memory"
    )


def test_ways_of_the_cache_without_resctrl_skip_their_cases_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Case("linux-bridge", dimension="latency", noisy_neighbour="stream")
    cases = [replace(beside, isolation=isolation) for isolation in (None, "cat:11.1")]
    feasibility = feasible(cases, host(tmp_path, 640), monkeypatch)
    assert len(feasibility.placement(cases[0]).noisy_neighbour) == 1
    with pytest.raises(Unsupported) as refused:
        feasibility.placement(cases[1])
    assert str(refused.value) == (
        "ways of the L3 cache cannot be given here; missing: the CPU's flag cat_l3 (a hypervisor may hide it), the"
        " kernel's option CONFIG_X86_CPU_RESCTRL"
    )


def test_what_takes_a_cpu_of_its_own_is_named_where_there_are_too_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Topology, "read", lambda _: machine(cores=2))
    one = Case("linux-bridge", noisy_neighbour="stream")
    two, alone = replace(one, noisy_neighbour="stream:2"), replace(one, switch="ovs", switch_cores=2)
    shares = Case("ovs", function="wire", cpu_share="50:50", pairs=2)
    feasibility = feasible([one, two, alone, shares], host(tmp_path, 640), monkeypatch)
    assert len(feasibility.placement(one).noisy_neighbour) == 1
    for case, words in (
        (two, "noisy neighbour stream:2 needs 2 CPUs"),
        (alone, "cooperative placement needs 3 CPUs on one NUMA node (2 switch workers + 1"),
        (shares, "functions on one CPU count as one more switch worker: cooperative placement needs 3 CPUs"),
    ):
        with pytest.raises(Unsupported) as refused:
            feasibility.placement(case)
        assert str(refused.value).startswith(words)


def test_a_function_that_keeps_its_cpu_has_no_rate_where_it_shares_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ip_pipeline makes acl10 over ovs, the forwarder wire: it yields."""
    monkeypatch.setattr(Topology, "read", lambda _: machine(cores=2))
    keeps, yields = Case("ovs", function="acl10"), Case("ovs", function="wire")
    feasibility = feasible([keeps, yields], host(tmp_path, 8000), monkeypatch)
    assert len(feasibility.placement(yields).functions) == 1
    with pytest.raises(Unsupported, match=r"^function acl10 never gives its CPU away, .*take a host with 5 CPUs$"):
        feasibility.placement(keeps)


def test_a_noisy_neighbour_without_its_program_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("linux-bridge", noisy_neighbour="memtester")
    feasibility = feasible([case], host(tmp_path, 8000), monkeypatch)
    monkeypatch.setattr(noisy_neighbour_load, "_program", lambda _: "no-such-program")
    with pytest.raises(Unsupported, match="no-such-program is not installed: apt install memtester"):
        feasibility.placement(case)
