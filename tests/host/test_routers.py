# SPDX-License-Identifier: BSD-3-Clause
"""Routers for real: frames to every part of their tables, proofs that pass, and proofs that plain bridging fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.router_proof import prove_router
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built
from tests.host.test_switches import assert_heard, one_way, there_and_back

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.slow

IPV4, IPV6 = Traffic(64, flows="2k"), Traffic(84, flows="2k", header="udp6")
ROUTERS = [
    Case("route", Frames(IPV4), api="raw-mmsg"),
    Case("route", Frames(IPV6), mode="ip6", api="raw-mmsg"),
    Case("ovs", Frames(IPV4), mode="ip4"),
    Case("ovs", Frames(IPV6), mode="ip6"),
    Case("vpp", Frames(IPV4), mode="ip4"),
    Case("vpp", Frames(IPV6), mode="ip6"),
    Case("vpp", Frames(IPV4), mode="ip4", port="memif"),
    Case("ovs", Frames(IPV4), mode="ip4", port="afpacket", api="raw-mmsg"),
]
BRIDGES = [("linux-bridge", "route", None), ("ovs", "ovs", "ip4"), ("vpp", "vpp", "ip4")]


def with_routes(case: Case, routes: int | None, *, both: bool = False) -> Case:
    return case.sending(traffic=replace(case.traffic, routes=routes, both=both))


@pytest.mark.parametrize("case", ROUTERS, ids=lambda case: case.id)
def test_a_router_of_many_routes_is_proven_and_measured(session: HostSession, case: Case) -> None:
    case = with_routes(case, 1500)
    with built(session, case) as rig:
        assert rig.prove() is None
        assert_heard(there_and_back(rig, case))
        assert_heard(one_way(rig, case, 5000))
        rig.check()
        assert rig.switch_facts.conditions["routes_installed_s"] < 10
        assert rig.prove() is None


@pytest.mark.parametrize("case", [ROUTERS[0], ROUTERS[3]], ids=lambda case: case.id)
def test_each_end_of_each_pair_has_its_share_of_the_routes(session: HostSession, case: Case) -> None:
    case = with_routes(replace(case, pairs=2), 10, both=True)
    with built(session, case) as rig:
        assert rig.prove() is None
        assert_heard(one_way(rig, case, 2000))


def test_the_kernel_takes_a_hundred_thousand_routes(session: HostSession) -> None:
    case = with_routes(ROUTERS[0], 100_000)
    with built(session, case) as rig:
        assert rig.prove() is None


@pytest.mark.parametrize(("bridge", "switch", "mode"), BRIDGES)
def test_plain_bridging_is_no_routing(session: HostSession, bridge: str, switch: str, mode: str | None) -> None:
    """Without the work every frame would arrive, and faster: the proof is what tells."""
    plain = Case(bridge, Frames(Traffic(64, flows="2k")), api="raw-mmsg" if bridge == "linux-bridge" else None)
    routed = with_routes(replace(plain, switch=switch, mode=mode), 1500)
    with built(session, plain) as rig:
        fault = prove_router(rig.host, routed, rig.host.switch.prepare_traffic)
    assert fault is not None
    assert "has to leave with TTL 63" in fault
    assert "TTL 64" in fault.partition("but arrived as")[2]
