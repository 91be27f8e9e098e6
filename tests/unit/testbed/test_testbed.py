# SPDX-License-Identifier: BSD-3-Clause
"""What the bench asks a host, on this host's CPUs and with switches that are facts only."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.config.topology import Topology, loads
from pytest_icbench.driver.switch.protocol import Needs, SwitchFacts
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.workload.workload_version import WorkloadVersion
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.resource import cpu
from pytest_icbench.model.candidate import Candidate
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.uplink import parse
from pytest_icbench.testbed import cpu_placement, feasibility, probe
from pytest_icbench.testbed import testbed as testbed_module
from pytest_icbench.testbed.cpu_placement import join_placements
from pytest_icbench.testbed.rig_pool import SetupRequest
from pytest_icbench.testbed.testbed import Testbed
from tests.unit.recording_host import program
from tests.unit.testbed.test_cpu_placement import machine


class Kernel:
    name: ClassVar[str] = "bridge"
    family: ClassVar[str] = "kernel"
    ports: ClassVar[tuple[str, ...]] = ("veth",)
    apis: ClassVar[tuple[str, ...]] = ("udp", "af_packet")
    default_apis: ClassVar[tuple[str, ...]] = ("udp",)
    default_cores: ClassVar[int] = 0
    scalable: ClassVar[bool] = False
    max_frame_bytes: ClassVar[int] = 9216
    port_frame_bytes: ClassVar[dict[str, int]] = {}
    ports_without_hugepages: ClassVar[tuple[str, ...]] = ()
    max_pairs: ClassVar[int | None] = None
    asked: ClassVar[list[str]] = []

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        return cls.apis

    def probe(self, session: Any, binary: Any) -> SwitchFacts:
        self.asked.append(self.name)
        return SwitchFacts("6.1")

    def probe_api(self, session: Any, api: str) -> None:
        if api == "af_packet":
            raise Unsupported("this DPDK has no af_packet: install librte-net-af-packet23")

    def probe_port(self, session: Any, port: str) -> None:
        if port == "tap":
            raise Unsupported("this kernel has no vhost-net: use one that has it")

    def probe_pairs(self, session: Any, pairs: int) -> None:
        if pairs > 200:
            raise Unsupported("so many pairs are too many: lower --icbench-pairs")

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs(pollers=cores)


class Veth(Kernel):
    name = "veth"


class Poll(Kernel):
    name = "poll"
    family = "dpdk"
    ports = ("vhost-user", "memif", "tap")
    apis = ("dpdk",)
    default_apis = ("dpdk",)
    default_cores = 1
    scalable = True

    def probe(self, session: Any, binary: Any) -> SwitchFacts:
        return SwitchFacts("1.0", {"dpdk": "22.11"}, program=str(binary or "/usr/bin/poll"))


class Direct(Poll):
    name = "direct"
    default_cores = 0


class Greedy(Poll):
    name = "greedy"
    default_cores = 10_000


CATALOGUE = cast(Any, {cls.name: cls for cls in (Veth, Kernel, Direct, Poll, Greedy)})


@pytest.fixture(autouse=True)
def _workload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "workload_version", lambda: WorkloadVersion("1", "22.11"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(Kernel, "asked", [])


def bench(*cases: Case, **options: Any) -> Testbed:
    return Testbed(CATALOGUE, Options(**options), cases, {})


def test_a_case_is_placed_and_its_switch_asked_once() -> None:
    found = bench()
    for size in (64, 128):
        assert len(found.placement(Case("bridge", Frames(Traffic(size)))).endpoints) == 2
    assert Kernel.asked == ["bridge"]


def test_a_function_that_a_switch_cannot_have_costs_its_own_case_alone() -> None:
    plain, through = Case("bridge"), Case("bridge", function="wire")
    found = bench(through, plain)
    assert len(found.placement(plain).endpoints) == 2
    with pytest.raises(Unsupported, match="bridge cannot keep the ports of a network function apart"):
        found.placement(through)


def test_a_function_without_addresses_is_refused_where_a_card_sends_frames_by_them() -> None:
    class Card(Kernel):
        segments, unknown_unicast, hops = True, "none", None

        @classmethod
        def is_kernel_port(cls, port: str) -> bool:
            return True

    through = Case("bridge", function="wire")
    found = Testbed({**CATALOGUE, "bridge": cast(Any, Card)}, Options(), [through], {})
    with pytest.raises(Unsupported, match="bridge carries frames to the addresses of its ports alone, and function wi"):
        found.placement(through)


def test_whoever_asks_for_a_case_gets_the_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plan = cpu_placement.plan

    def counted(topology: Any, *, workers: int, endpoints: int, policy: Any) -> Placement:
        asked.append(endpoints)
        return plan(topology, workers=workers, endpoints=endpoints, policy=policy)

    monkeypatch.setattr(feasibility, "plan", counted)
    case, greedy = Case("bridge"), Case("greedy")
    found = bench(case, greedy, placement="cooperative")
    placement = found.placement(case)
    assert found.need(case, Settings()).rig.placement is placement
    assert set(placement.local) <= found._feasibility.measuring_cpus()
    for _ in range(2):
        with pytest.raises(Unsupported, match="use fewer switch cores"):
            found.placement(greedy)
    assert len(asked) == 2  # one for each


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("bridge", api="af_packet"), "this DPDK has no af_packet: install"),
        (Case("poll", port="tap"), "this kernel has no vhost-net: use one"),
        (Case("greedy"), "use fewer switch cores, or a larger machine"),
        (Case("bridge", pairs=201), "so many pairs are too many"),
        (Case("bridge", Frames(Traffic(9217))), "9217 bytes are more than bridge carries"),
    ],
)
def test_what_this_host_cannot_run_has_a_reason(case: Case, reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        bench(placement="cooperative").placement(case)
    assert reason in str(caught.value)


def test_a_kind_of_nodes_that_this_host_lacks_costs_its_own_cases_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe_node(kind: str, _session: Any) -> None:
        if kind == "vm":
            raise Unsupported("machines need QEMU: apt install qemu-system-x86")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("pytest_icbench.host.rights.explain_missing_capabilities", lambda _root: None)
    monkeypatch.setattr("pytest_icbench.testbed.treatment.node_treatment", lambda _kind: {})
    monkeypatch.setattr(probe, "probe_node", probe_node)
    monkeypatch.setattr(Poll, "machine_ports", ("vhost-user",), raising=False)
    netns, mixed, vm = (Case("poll", node=kind) for kind in ("netns", "oci+vm", "vm"))
    compared = replace(vm, candidate="n")
    options = {"node": "podman", "candidate": (Candidate("workload", "n", "node", "netns"),)}
    found = bench(Case("poll"), netns, vm, placement="cooperative", **options)
    for case, kind in ((Case("poll"), "podman"), (netns, "netns"), (mixed, "oci+vm")):
        rig = found.make_rig(found.need(case, Settings()).rig)
        assert (rig._node, found._treatment(rig)["node"]) == (kind, kind)
    for case in (vm, compared):  # the comparison for its base
        with pytest.raises(Unsupported, match="machines need QEMU: apt install"):
            found.placement(case)
    with pytest.raises(Unsupported, match=r"no port of kind veth of bridge leads into a virtual machine \(node vm\)"):
        found.placement(Case("bridge", node="vm"))


def test_without_dpdk_only_sockets_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "workload_version", lambda: WorkloadVersion("1", None))
    found = bench()
    found.placement(Case("bridge"))
    with pytest.raises(
        Unsupported, match="poll needs DPDK, but the workload was built without it: apt install libdpdk-dev"
    ):
        found.placement(Case("poll"))


def test_what_runs_is_known_also_where_nobody_named_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = program(tmp_path, "icbench-workload")
    monkeypatch.setenv("ICBENCH_WORKLOAD", str(workload))
    new = Candidate("poll", "new", "binary", str(program(tmp_path, "new")))
    found = bench(Case("poll", candidate="new"), Case("bridge"), placement="cooperative", candidate=(new,))
    for case in (Case("poll", candidate="new"), Case("bridge")):
        found.placement(case)
    assert found.programs == {
        "workload": (workload, None),
        "poll": (Path("/usr/bin/poll"), "1.0, 22.11"),
        "poll:new": (tmp_path / "new", "1.0, 22.11"),
        "bridge": (None, "6.1"),
    }


def test_the_placement_is_what_all_cases_that_can_run_can_have() -> None:
    few = Case("bridge")
    many = Case("bridge", pairs=100)
    skipped = Case("bridge", api="af_packet", pairs=100)
    assert bench(few, many).policy == "cooperative"
    assert bench(few, skipped).policy == bench(few).policy
    assert bench(skipped).policy == "auto"
    assert bench(few, placement="dedicated").policy == "dedicated"


@pytest.mark.parametrize("baseline", [{"save": "main"}, {"compare": "main"}])
def test_beside_a_baseline_a_cases_placement_is_its_own(
    baseline: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what else is selected would decide whether the case can be compared."""
    monkeypatch.setattr(cpu.Topology, "read", lambda _root: machine(cores=4))
    few, many = Case("bridge"), Case("bridge", pairs=2)
    assert bench(few, many).placement(few).policy == "cooperative"
    for cases in ((few, many), (few,)):
        assert bench(*cases, **baseline).placement(few).policy == "dedicated"
    assert bench(few, many, **baseline).placement(many).policy == "cooperative"
    assert bench(few, many, **baseline).policy == "auto"
    assert bench(few, **baseline).policy == "dedicated"
    assert bench(few, placement="cooperative", **baseline).placement(few).policy == "cooperative"


@pytest.mark.parametrize(
    ("case", "reference"),
    [
        (Case("bridge"), Case("veth")),
        (Case("poll", switch_cores=2), Case("direct")),
        (
            Case("poll", Frames(Traffic(128)), port="memif"),
            Case("direct", Frames(Traffic(128)), port="memif"),
        ),
        (Case("poll", port="vfio"), Case("direct")),
        (Case("veth"), None),
        (Case("direct"), None),
        (Case("bridge", Frames(rate=Rate(1000))), None),
        (
            Case("bridge", Frames(rate=Rate(1000)), dimension="latency"),
            Case("veth", Frames(rate=Rate(1000)), dimension="latency"),
        ),
    ],
)
def test_a_case_has_the_reference_link_of_its_family(
    case: Case, reference: Case | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu.Topology, "read", lambda _root: machine(cores=4))
    assert bench().reference(case) == reference


@pytest.mark.parametrize(
    ("case", "cores", "has_one"),
    [
        (Case("poll"), 2, False),
        (Case("poll"), 3, True),  # an end on each of two CPUs
        (Case("bridge"), 2, True),  # its frames do not change CPUs either
        (Case("poll", Frames(rate=Rate(1000)), dimension="latency"), 2, True),  # the floor of the round trip
        (Case("poll", Frames(rate=Rate(loss_ratio=0.0))), 2, True),  # its greatest load
    ],
)
def test_a_reference_on_one_cpu_decides_nothing_of_a_path_over_two(
    case: Case, cores: int, has_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu.Topology, "read", lambda _root: machine(cores=cores))
    found = bench(placement="cooperative")
    assert (found.reference(case) is not None) == has_one
    need = found.need(case, Settings())
    assert (need.reference is not None) == has_one
    assert need.missing == (None if has_one else testbed_module.ONE_CPU_REFERENCE)


def test_a_reference_has_the_endpoints_of_its_case_and_no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu.Topology, "read", lambda _root: machine(cores=3))
    need = bench(placement="cooperative").need(Case("poll"), Settings())
    assert need.reference is not None
    assert need.rig.placement.switch != ()
    assert need.reference.placement.switch == ()
    assert need.reference.placement.endpoints == need.rig.placement.endpoints
    assert bench(placement="cooperative").need(Case("poll"), Settings(reference=False)).reference is None


HERE = Placement("dedicated", (5,), (1,), (0,), 0, 0)


def remote_need(monkeypatch: pytest.MonkeyPatch, case: Case, uplink: str = "eth1", **options: Any) -> SetupRequest:
    """What a case over two hosts needs, whose endpoints have their CPUs already. Nobody is connected to."""
    found = Testbed(builtin_switches(), Options(remote="lab2", uplink={"": parse(uplink, "")}, **options), (), {})
    placed = join_placements(HERE, replace(HERE, switch=(6,), endpoints=(2,)), (1,))
    monkeypatch.setattr(found, "placement", lambda case: placed)
    return found.need(replace(case, remote=True), Settings())


def test_the_reference_between_two_hosts_is_the_two_nics(monkeypatch: pytest.MonkeyPatch) -> None:
    need = remote_need(monkeypatch, Case("ovs", port="memif"))
    assert need.missing is None
    assert need.reference is not None
    assert (need.reference.case.switch, need.reference.case.remote) == ("direct", True)
    placed = need.reference.placement
    assert placed.there is not None
    assert (placed.switch, placed.there.switch, placed.endpoints) == ((), (), (1, 2))
    socket = remote_need(monkeypatch, Case("linux-bridge")).reference
    assert socket is not None
    assert socket.case.switch == "veth"


@pytest.mark.parametrize(
    ("case", "uplink", "said"),
    [
        (Case("ovs", pairs=2), "eth1", "no reference link: direct takes at most 1 pair over its uplink, not 2"),
        (Case("sriov"), "eth1", "no reference link: sriov's ports use the card"),
        (Case("linux-bridge"), "eth1+af_xdp", "no reference link: veth cannot have the uplink eth1+af_xdp: it takes"),
        (Case("ovs", Frames(rate=Rate(1000))), "eth1", None),
        (Case("direct"), "eth1", None),
    ],
)
def test_why_two_hosts_have_no_reference_is_said(
    monkeypatch: pytest.MonkeyPatch, case: Case, uplink: str, said: str | None
) -> None:
    need = remote_need(monkeypatch, case, uplink)
    assert need.reference is None
    assert (need.missing or "").startswith(said or "")
    assert (need.missing is None) == (said is None)


def test_rigs_are_shared_by_cases_that_differ_in_traffic_only() -> None:
    found = bench(placement="cooperative")
    one, same = (found.need(Case("poll", Frames(Traffic(size))), Settings()) for size in (64, 128))
    other = found.need(Case("poll", pairs=2), Settings())
    assert (one.rig.key, one.reference and one.reference.key) == (same.rig.key, same.reference and same.reference.key)
    assert one.rig.key != other.rig.key


def seating(cpus: str = "", application: str = '"send"', other: str = '"recv"') -> Topology:
    tables = [f'name = "a"\npeer = "b"\napplication = {application}', f'name = "b"\npeer = "a"\napplication = {other}']
    return loads("".join(f"[[container]]\n{table}\n{cpus}\n" for table in tables), "lab.toml")


def test_a_topology_gives_endpoints_their_cpus_and_names() -> None:
    cpu = max(os.sched_getaffinity(0))
    found = bench(Case("bridge"), topology=seating(f"cpus = {cpu}"))
    placement = found.placement(Case("bridge"))
    assert (placement.endpoints, placement.policy) == ((cpu, cpu), "cooperative")
    assert found.policy == "cooperative"
    rig = found.make_rig(found.need(Case("bridge"), Settings()).rig)
    assert [endpoint_spec.name for endpoint_spec in rig.endpoint_specs] == ["a", "b"]


def test_cpus_that_are_left_out_are_chosen() -> None:
    case = Case("bridge")
    assert bench(case, topology=seating()).placement(case) == bench(case).placement(case)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("bridge", pairs=2), "the topology has 1 pair, not 2: lower --icbench-pairs"),
        (Case("bridge", dimension="latency"), "the topology lets a run send only, and latency takes client"),
    ],
)
def test_a_case_that_the_topology_does_not_serve_is_skipped(case: Case, reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        bench(topology=seating()).placement(case)
    assert reason in str(caught.value)


def test_a_cpu_that_is_not_there() -> None:
    with pytest.raises(Unsupported, match="the topology gives an endpoint CPU 8000, which is not online"):
        bench(Case("bridge"), topology=seating("cpus = 8000")).placement(Case("bridge"))


def test_open_files_are_allowed_for_every_wire_of_the_longest_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        pass

    def ask(wires: int) -> None:
        raise Asked(wires)

    monkeypatch.setattr(testbed_module, "allow_files", ask)
    cases = [Case("veth", pairs=4), Case("veth", pairs=2, function="forward", chain=5)]
    with pytest.raises(Asked, match=r"^12$"):
        Testbed({"veth": Kernel}, Options(), cases, {}).hold()  # type: ignore[dict-item]
