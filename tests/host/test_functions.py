# SPDX-License-Identifier: BSD-3-Clause
"""Network functions in the path, on the real host: frames through them, and what shows that they work."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.function.ip_pipeline import IpPipelineFunction
from pytest_icbench.driver.function.l3fwd import L3fwdFunction
from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.driver.function.testpmd_function import TestpmdFunction
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.flows import NEW
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.host.function_tools import SHORT, TWICE, WireWithoutProgram, in_place, suricata, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone


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
    case = Case("veth", Frames(rate=Rate(20_000)), function="cost1000", api="udp-mmsg")
    with through(session, case) as rig:
        found = measure(Side(rig, case), TWICE)
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    assert (work.taken or 0) >= found.frames.sent > 0
    assert (work.cycles_per_frame or 0) >= 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Case("direct", Frames(rate=Rate(20_000)), function="wire"),
        Case("linux-bridge", Frames(rate=Rate(10_000)), function="nat", api="raw-mmsg"),
    ],
    ids=lambda case: str(case.id),
)
def test_both_ends_send_through_a_function(session: HostSession, case: Case) -> None:
    case = case.sending(traffic=Traffic(both=True))
    with through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    ways = {way.direction: way for way in found.frames.per_direction}
    assert sorted(ways) == ["ab", "ba"]
    assert all(way.received == way.sent - way.lost > 0 for way in ways.values())
    (work,) = found.functions or ()
    assert (work.taken or 0) >= ways["ab"].received


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "case",
    [
        Case("linux-bridge", function="nat+acl10+deny30"),
        Case("ovs", function="nat"),
    ],
    ids=lambda case: case.switch,
)
def test_functions_side_by_side_each_do_their_work(session: HostSession, case: Case, number: int) -> None:
    """Rows D1 and D4 of the published experiments in short."""
    case = replace(case, pairs=number)
    with through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    assert [work.pair for work in found.functions or ()] == list(case.path.numbers)
    assert all(
        (work.taken or 0) >= pair.received > 0
        for work, pair in zip(found.functions or (), found.frames.per_pair, strict=True)
    )


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
        acl_drops = {"firewall": 20, "acl10": 10, "acl1000+deny30": 30, "set1000+deny30": 30, "nat+acl10+deny30": 3}
        assert abs((counter.acl_drops or 0) - acl_drops.get(function, 0)) <= 1
        assert preflight(rig, case, SHORT) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "acl_drops"),
    [
        (Case("ovs", port="afpacket", function="nat+acl10+deny30"), 3),
        (Case("ovs", port="afxdp", function="wire"), 0),
        (Case("ovs", port="tap", function="firewall"), 20),
        (Case("xdp", function="wire"), 0),
        (Case("tc-redirect", function="route"), 0),
        (Case("macvlan", function="nat"), 0),
    ],
    ids=lambda value: str(value.id) if isinstance(value, Case) else "",
)
def test_a_function_works_at_every_interface_of_the_kernel(session: HostSession, case: Case, acl_drops: int) -> None:
    case = replace(case, api="udp-mmsg").sending(rate=Rate(2000))
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert abs((counter.acl_drops or 0) - acl_drops) <= 1
        assert preflight(rig, case, SHORT) is None
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)


def test_each_frame_of_new_flows_is_a_session_and_a_full_table_accounts_for_each_lost_one(session: HostSession) -> None:
    size = Path("/proc/sys/net/netfilter/nf_conntrack_max")
    before = size.read_text(encoding="ascii")
    traffic = Traffic().with_labels(NEW, None)
    case = Case("veth", Frames(traffic=traffic, rate=Rate(50_000)), function="nat+firewall+table5k", api="raw-mmsg")
    with through(session, case) as rig:
        found = measure(Side(rig, case), TWICE)
    assert (found.verdict, found.evidence) == (None, None)
    (account,), (work,) = found.frames.chains or (), found.functions or ()
    assert account.table_full == account.lost == account.sent - account.received > 0
    assert (work.sessions or 0) <= 5000
    assert size.read_text(encoding="ascii") == before


@pytest.mark.slow
@pytest.mark.parametrize("function", ["firewall+table5k", "nat+table100k"])
def test_a_table_of_ovs_has_as_many_sessions_as_it_is_set_to(session: HostSession, function: str) -> None:
    case = Case("ovs", Frames(traffic=Traffic().with_labels(NEW, None), rate=Rate(20_000)), function=function)
    with through(session, case) as rig:
        found = measure(Side(rig, case), TWICE)
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    if function == "firewall+table5k":
        assert work.sessions == 5000
        assert (work.table_full or 0) >= found.frames.lost > 0
    else:
        assert work.table_full == 0
        assert (work.sessions or 0) > found.frames.sent / 2  # those of the last of two launches


@pytest.mark.slow
@pytest.mark.parametrize("function", ["firewall", "nat", "police20k"])
def test_a_function_of_ovs_does_its_work(session: HostSession, function: str) -> None:
    case = Case("ovs", function=function)
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert (counter.taken, counter.acl_drops) == (20, 0 if function == "police20k" else 20)
        assert preflight(rig, case, SHORT) is None


class WireForL3fwd(WireWithoutProgram, L3fwdFunction):
    """l3fwd's route."""

    name = "sham"


@pytest.mark.slow
def test_l3fwd_routes_between_virtio_user_ports(session: HostSession) -> None:
    case = Case("testpmd", function="route")
    with through(session, case) as rig:
        assert rig.prove() is None
    with in_place(WireForL3fwd), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search("frame 1 of 20 from a .* with TTL 63 .* but arrived as .* TTL 64", found.evidence or "")


@pytest.mark.slow
@pytest.mark.parametrize("function", ["io", "macswap", "tupleswap", "noisy100"])
def test_a_mode_of_testpmd_does_its_work(session: HostSession, function: str) -> None:
    case = Case("basicfwd", function=function)
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert (counter.taken, counter.given, counter.taken_back) == (20, 20, 20)
        assert preflight(rig, case, SHORT) is None


class WireForTestpmd(WireWithoutProgram, TestpmdFunction):
    """testpmd's modes."""

    name = "sham"


class WireForPipeline(WireWithoutProgram, IpPipelineFunction):
    """ip_pipeline's functions."""

    name = "sham"


@pytest.mark.slow
@pytest.mark.parametrize("function", ["pipeline+route", "nat", "acl1000+deny30", "nat+acl10+deny30", "police20k"])
def test_a_pipeline_of_tables_does_its_work(session: HostSession, function: str) -> None:
    case = Case("testpmd", function=function)
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        acl_drops = {"acl1000+deny30": 30 + 1, "nat+acl10+deny30": 3}.get(function, 0)  # and the last rule
        assert (counter.acl_drops, counter.given) == (acl_drops, (counter.taken or 0) - acl_drops)
        assert counter.taken_back == 20
        assert preflight(rig, case, SHORT) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "function", "words"),
    [
        (
            *(WireForTestpmd, "tupleswap"),
            "frame 1 of 20 from a .* has to pass with its addresses and ports swapped, but arrived as",
        ),
        (WireForPipeline, "pipeline+route", "frame 1 of 20 from a .* with TTL 63 .* but arrived as .* TTL 64"),
        (WireForPipeline, "nat", "frame 1 of 20 from a .* has to leave from 198.18.1.16 .* arrived as 198.18.1.1:1024"),
    ],
)
def test_a_wire_in_the_place_of_functions_over_vhost_user_is_found(
    session: HostSession, cls: type[Function], function: str, words: str
) -> None:
    case = Case("testpmd", function=function)
    with in_place(cls), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search(words, found.evidence or ""), found.evidence


@pytest.mark.slow
@pytest.mark.parametrize(("switch", "api"), [("linux-bridge", "udp-mmsg"), ("testpmd", "dpdk")])
def test_suricata_inspects_each_frame_and_reports_what_it_acl_drops(
    session: HostSession, switch: str, api: str
) -> None:
    """Skipped where there is no Suricata 7; ``PATH`` or ``ICBENCH_TEST_SURICATA`` names it."""
    session.binaries = suricata()
    case = Case(switch, Frames(rate=Rate(2000)), function="inspect200+deny30", api=api)
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert counter.acl_drops == 2 * 30 + 2 * 1  # of the first 100 rules, and the last one
        assert preflight(rig, case, SHORT) is None
        found = measure(Side(rig, case), SHORT)
        assert (found.verdict, found.evidence) == (None, None)
        (work,) = found.functions or ()
        assert (work.taken or 0) >= found.frames.sent > 0
        assert (work.memory_bytes or 0) > 10_000_000
        functions = rig.host._functions
        assert functions is not None
        assert functions.facts()[0].version.startswith("Suricata ")  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_gateway_translates_denies_polices_and_inspects(session: HostSession) -> None:
    """Skipped where there is no Suricata 7, or no way to lead frames to it."""
    session.binaries = suricata()
    case = Case("linux-bridge", Frames(rate=Rate(25_000)), function="nat+acl10+police20k+inspect50", api="raw-mmsg")
    try:
        with through(session, case) as rig:
            assert rig.prove() is None
            (counter,) = rig.functions()
            assert counter.acl_drops == 10 + 2 * (10 + 1)  # of the list, and by their payload those of both sides
            found = measure(Side(rig, case), SHORT)
    except Unsupported as reason:
        pytest.skip(str(reason))
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    assert (work.acl_drops or 0) > 0
