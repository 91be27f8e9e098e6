# SPDX-License-Identifier: BSD-3-Clause
"""Measured launches have a share of flows that the function in the path denies, and account for each frame."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.flows import NEW
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.host.function_tools import SHORT, suricata, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone


TEN = Traffic().with_labels("10", None)
BOTH = replace(Traffic(), both=True)


def account_for(session: HostSession, case: Case) -> None:
    """Measures a case of 30 % of ACL-dropped flows and looks at its accounts."""
    with through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    assert found.frames.sent == found.frames.received + found.frames.lost + found.frames.acl_drops
    sent = (
        found.frames.sent
        if case.directions == 1
        else sum(way.sent for way in found.frames.per_direction if way.direction == "ba")
    )
    assert abs(found.frames.acl_drops - 0.3 * sent) <= 0.01 * sent
    assert found.frames.lost <= 0.01 * sent
    (work,) = found.functions or ()
    assert (work.acl_drops or 0) >= found.frames.acl_drops - found.frames.lost > 0
    for account in found.frames.chains or ():
        assert account.sent == account.received + account.lost + (account.acl_drops or 0)
        assert (account.acl_drops or 0) > 0
    assert (found.frames.chains is not None) is (case.function in ("acl10+deny30", "set100+deny30"))


@pytest.mark.parametrize(
    "case",
    [
        Case("linux-bridge", Frames(traffic=TEN, rate=Rate(20_000)), function="acl10+deny30", api="raw-mmsg"),
        Case("veth", Frames(traffic=BOTH, rate=Rate(10_000)), function="firewall+deny30", api="raw-mmsg"),
        pytest.param(
            Case(
                "veth",
                Frames(traffic=Traffic().with_labels(NEW, None), rate=Rate(10_000)),
                function="set100+deny30",
                api="raw",
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Case("ovs", Frames(traffic=BOTH, rate=Rate(20_000)), function="firewall+deny30"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda case: str(case.id),
)
def test_a_launch_accounts_for_each_acl_drop_frame(session: HostSession, case: Case) -> None:
    account_for(session, case)


@pytest.mark.slow
@pytest.mark.parametrize(("switch", "api"), [("veth", "raw-mmsg"), ("testpmd", "dpdk")])
def test_a_launch_through_suricata_accounts_for_each_acl_drop_frame(
    session: HostSession, switch: str, api: str
) -> None:
    session.binaries = suricata()
    traffic = replace(TEN, packet_size=100)
    account_for(session, Case(switch, Frames(traffic=traffic, rate=Rate(2000)), function="inspect10+deny30", api=api))


@pytest.mark.slow
def test_a_launch_through_vpp_accounts_for_each_acl_drop_frame(session: HostSession) -> None:
    account_for(
        session, Case("veth", Frames(traffic=TEN, rate=Rate(5000)), function="vpp+acl10+deny30", api="raw-mmsg")
    )


@pytest.mark.slow
def test_a_launch_through_ip_pipeline_accounts_for_each_acl_drop_frame(session: HostSession) -> None:
    account_for(session, Case("testpmd", Frames(traffic=TEN, rate=Rate(20_000)), function="nat+acl10+deny30"))
