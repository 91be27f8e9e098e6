# SPDX-License-Identifier: BSD-3-Clause
"""Network functions in the path, on the real host: frames through them, and what shows that they work."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.l3fwd import L3fwdFunction
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.ovs import OvsFunction
from pytest_icbench.driver.function.protocol import Function, FunctionSpec
from pytest_icbench.driver.function.registry import component_for
from pytest_icbench.driver.function.suricata import SuricataFunction
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.measure.measure import measure
from pytest_icbench.model.case import Case
from pytest_icbench.model.flows import NEW
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.placement import plan
from pytest_icbench.testbed.rig import Rig
from tests.host.node_tools import clean, require, session
from tests.host.rig_tools import NodeOption, running

__all__ = ["clean", "session"]  # fixtures

SHORT = Settings(warmup_s=0.1, duration_s=0.4, window_s=0.05, drain_s=0.3, repeats=2, reference=False)


@contextmanager
def through(session: HostSession, case: Case) -> Iterator[Rig]:
    """A running rig with its functions. Skips where the host cannot have it."""
    require("lxc")
    cls = builtin_switches()[case.switch]
    assert case.function is not None
    try:
        cls().probe(session, None)
        component = component_for(case.function, case.switch, case.resolved_port(cls))
        component().probe(session, case.function)
        workers = cls().needs(case.path.wires_count, case.resolved_cores(cls)).pollers
        pollers = case.pairs * case.chain if component.polls else 0
        count = len(case.path.endpoints)
        placement = plan(Topology.read(session.root), workers=workers, endpoints=count + pollers, policy="auto")
    except Unsupported as reason:
        pytest.skip(str(reason))
    placement = replace(placement, endpoints=placement.endpoints[:count], functions=placement.endpoints[count:])
    with running(Rig(case, placement, session, NodeOption())) as rig:
        yield rig


@contextmanager
def in_place(cls: type[Function]) -> Iterator[None]:
    """A component that is asked before all others."""
    before = dict(registry._components)
    registry._components.clear()
    registry._components.update({cls.name: cls, **before})
    try:
        yield
    finally:
        registry.bring(())


@pytest.mark.parametrize(
    "case",
    [
        Case("veth", function="wire"),
        Case("linux-bridge", function="cost1000", pairs=2),
        pytest.param(Case("linux-bridge", function="swap", api="raw"), marks=pytest.mark.slow),
        Case("direct", function="swap"),
        pytest.param(Case("direct", port="memif", function="wire"), marks=pytest.mark.slow),
        Case("ovs", function="wire"),
        pytest.param(Case("testpmd", function="cost1000"), marks=pytest.mark.slow),
    ],
    ids=lambda case: str(case.id),
)
def test_a_function_does_its_work_between_the_ends(session: HostSession, case: Case) -> None:
    with through(session, case) as rig:
        assert rig.prove() is None
        counters = rig.functions()
        assert [counter.pair for counter in counters] == list(case.path.numbers)
        assert all((counter.taken or 0) >= 20 and counter.given for counter in counters)
        assert all((counter.memory_bytes or 0) > 100_000 for counter in counters)


@pytest.mark.slow
def test_a_figure_through_a_function_has_its_work(session: HostSession) -> None:
    case = Case("veth", function="cost1000", api="udp-mmsg", rate=Rate(20_000))
    with through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    assert (work.taken or 0) >= found.sent > 0
    assert (work.cycles_per_frame or 0) >= 1000


def test_a_function_that_does_not_swap_is_found_by_its_first_frame(session: HostSession) -> None:
    """The forwarder of ``swap``, with a wire in its place."""

    class Sham(ForwarderFunction):
        name = "sham"

        @classmethod
        def has(cls, function: str) -> bool:
            return function == "sham"

        @classmethod
        def mode(cls, function: str) -> str | None:
            return None

        @classmethod
        def proof(cls, function, ends):  # type: ignore[no-untyped-def]
            return ForwarderFunction.proof("swap", ends)

    case = Case("veth", function="sham", api="raw")
    with in_place(Sham), through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert "frame 1 of 20 from a to b (198.18.1.1:1024" in (found.evidence or "")
    assert "has to pass with its MAC addresses swapped, but arrived as" in (found.evidence or "")


LINUX = (
    "route",
    "nat",
    "firewall",
    "acl10",
    "acl1000+deny30",
    "set1000+deny30",
    "nat+acl10+deny30",
    "police20k",
    "shape5Mbit",
)


@pytest.mark.parametrize("function", LINUX)
def test_a_function_of_the_kernel_does_its_work(session: HostSession, function: str) -> None:
    case = Case("linux-bridge", function=function, api="udp-mmsg")
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        denied = {"firewall": 20, "acl10": 10, "acl1000+deny30": 30, "set1000+deny30": 30, "nat+acl10+deny30": 3}
        assert abs((counter.denied or 0) - denied.get(function, 0)) <= 1
        assert preflight(rig, case, SHORT) is None


def test_each_frame_of_new_flows_is_a_session_and_a_full_table_accounts_for_each_lost_one(session: HostSession) -> None:
    size = Path("/proc/sys/net/netfilter/nf_conntrack_max")
    before = size.read_text(encoding="ascii")
    traffic = Traffic().with_labels(NEW, None)
    case = Case("veth", function="nat+firewall+table5k", api="raw-mmsg", traffic=traffic, rate=Rate(50_000))
    with through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    (account,), (work,) = found.chains or (), found.functions or ()
    assert account.table_full == account.lost == account.sent - account.received > 0
    assert (work.sessions or 0) <= 5000
    assert size.read_text(encoding="ascii") == before


@pytest.mark.slow
@pytest.mark.parametrize("function", ["firewall+table5k", "nat+table100k"])
def test_a_table_of_ovs_has_as_many_sessions_as_it_is_set_to(session: HostSession, function: str) -> None:
    case = Case("ovs", function=function, traffic=Traffic().with_labels(NEW, None), rate=Rate(20_000))
    with through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    if function == "firewall+table5k":
        assert work.sessions == 5000
        assert (work.table_full or 0) >= found.lost > 0
    else:
        assert work.table_full == 0
        assert (work.sessions or 0) > found.sent / 2  # those of the last of two launches


@pytest.mark.slow
@pytest.mark.parametrize("function", ["firewall", "nat", "police20k"])
def test_a_function_of_ovs_does_its_work(session: HostSession, function: str) -> None:
    case = Case("ovs", function=function)
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert (counter.taken, counter.denied) == (20, 0 if function == "police20k" else 20)
        assert preflight(rig, case, SHORT) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("firewall", "frame 21 of 40 from b to a .* has to be denied: nobody asked, but arrived as 198.18.1.2:5000"),
        ("nat", "frame 1 of 20 from a to b .* has to leave from 198.18.1.16, but arrived as 198.18.1.1:1024"),
    ],
)
def test_flows_that_do_nothing_are_found(session: HostSession, function: str, words: str) -> None:
    class Nothing(OvsFunction):
        """The functions of ovs by name and proof, without their flows."""

        name = "sham"

        @staticmethod
        def _flows(spec: FunctionSpec) -> list[str]:
            return []

    case = Case("ovs", function=function)
    with in_place(Nothing), through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search(words, found.evidence or ""), found.evidence


class Wire(Function):
    """A wire in the place of a function, which has the other one's name and proof."""

    def __init__(self) -> None:
        self._wire = ForwarderFunction()

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        self._wire.start(session, replace(spec, function="wire", yield_every=1))

    def facts(self) -> FunctionFacts:
        return self._wire.facts()

    def check(self) -> None:
        self._wire.check()

    def forget(self) -> None:
        self._wire.forget()

    def counters(self) -> FunctionCounters:
        return self._wire.counters()

    def stop(self) -> None:
        self._wire.stop()


class WireForLinux(Wire, LinuxFunction):
    """The kernel's functions."""

    name = "sham"


class WireForSuricata(Wire, SuricataFunction):
    """Suricata's functions, without its program."""

    name = "sham"

    @classmethod
    def directories(cls, session: HostSession) -> tuple[Path, ...]:
        return ()

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        return self._wire.probe(session, "wire")


@pytest.mark.parametrize(
    ("cls", "function", "words"),
    [
        (WireForLinux, "route", "frame 1 of 20 from a .* from 198.18.1.1 with TTL 63 .* arrived as .* TTL 64"),
        (
            WireForLinux,
            "nat",
            "frame 1 of 20 from a to b .* has to leave from 198.18.1.16 .* arrived as 198.18.1.1:1024",
        ),
        (WireForLinux, "acl10", "frame 1 of 30 from a to b .* but arrived as"),
        (
            WireForSuricata,
            "inspect10+deny30",
            "frame 24 of 30 from a .* has to be denied: rule 4 is for it, but arrived as",
        ),
    ],
)
def test_a_wire_in_the_place_of_a_function_is_found(
    session: HostSession, cls: type[Function], function: str, words: str
) -> None:
    case = Case("veth", function=function, api="raw")
    with in_place(cls), through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search(words, found.evidence or ""), found.evidence


class WireForL3fwd(Wire, L3fwdFunction):
    """l3fwd's route."""

    name = "sham"

    @classmethod
    def directories(cls, session: HostSession) -> tuple[Path, ...]:
        return ()

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        return self._wire.probe(session, "wire")


@pytest.mark.slow
def test_l3fwd_routes_between_virtio_user_ports(session: HostSession) -> None:
    case = Case("testpmd", function="route")
    with through(session, case) as rig:
        assert rig.prove() is None
    with in_place(WireForL3fwd), through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search("frame 1 of 20 from a .* with TTL 63 .* but arrived as .* TTL 64", found.evidence or "")


@pytest.mark.slow
def test_suricata_inspects_each_frame_and_tells_what_it_denied(session: HostSession) -> None:
    """Skipped where there is no Suricata 7; ``PATH`` or ``ICBENCH_TEST_SURICATA`` names it."""
    session.binaries = suricata()
    case = Case("linux-bridge", function="inspect200+deny30", api="udp-mmsg", rate=Rate(2000))
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert counter.denied == 2 * 30 + 2 * 1  # of the first 100 rules, and the last one
        assert preflight(rig, case, SHORT) is None
        found = measure(rig, None, case, SHORT)
        assert (found.verdict, found.evidence) == (None, None)
        (work,) = found.functions or ()
        assert (work.taken or 0) >= found.sent > 0
        assert (work.memory_bytes or 0) > 10_000_000
        functions = rig.host._functions
        assert functions is not None
        assert functions.facts()[0].version.startswith("Suricata ")  # type: ignore[union-attr]


@pytest.mark.slow
def test_rules_that_suricata_refuses_are_told_in_its_words(session: HostSession) -> None:
    session.binaries = suricata()
    session.configs = {"function:suricata": {"rules": "drop nonsense"}}
    with (
        pytest.raises(
            ProvisionError, match=r"(?s)function inspect of pair 1.*error parsing signature \"drop nonsense\""
        ),
        through(session, Case("veth", function="inspect")),
    ):
        pass


def suricata() -> dict[str, Path]:
    """The program that a test of it takes, where it is not on PATH."""
    named = os.environ.get("ICBENCH_TEST_SURICATA")
    return {"suricata": Path(named)} if named else {}


def test_rules_that_nft_refuses_are_told_in_its_words(session: HostSession) -> None:
    session.configs = {"function:linux": {"nft": "table ip x { chain y { nonsense; } }"}}
    with (
        pytest.raises(ProvisionError, match=r"(?s)nft.*syntax error"),
        through(session, Case("veth", function="route")),
    ):
        pass


def test_a_function_that_dies_makes_one_sentence(session: HostSession) -> None:
    case = Case("veth", function="wire")
    with through(session, case) as rig:
        functions = rig.host._functions
        assert functions is not None
        functions._functions[1, 1].stop()
        with pytest.raises(ProvisionError, match="function wire of pair 1 was stopped"):
            rig.check()
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.reason) == ("INVALID", "died")
