# SPDX-License-Identifier: BSD-3-Clause
"""Measured launches have a share of flows that the function in the path denies, and account for each frame."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.host.session import HostSession
from pytest_icbench.measure.measure import measure
from pytest_icbench.model.case import Case
from pytest_icbench.model.flows import NEW
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.host.function_tools import SHORT, suricata, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone


TEN = Traffic().with_labels("10", None)
BOTH = replace(Traffic(), both=True)


def account_for(session: HostSession, case: Case) -> None:
    """Measures a case of 30 % of denied flows and looks at its accounts."""
    with through(session, case) as rig:
        found = measure(rig, None, case, SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    assert found.sent == found.received + found.lost + found.denied
    sent = found.sent if case.directions == 1 else sum(way.sent for way in found.per_direction if way.direction == "ba")
    assert abs(found.denied - 0.3 * sent) <= 0.01 * sent
    assert found.lost <= 0.01 * sent
    (work,) = found.functions or ()
    assert (work.denied or 0) >= found.denied - found.lost > 0
    for account in found.chains or ():
        assert account.sent == account.received + account.lost + (account.denied or 0)
        assert (account.denied or 0) > 0
    assert (found.chains is not None) is (case.function in ("acl10+deny30", "set100+deny30"))


@pytest.mark.parametrize(
    "case",
    [
        Case("linux-bridge", function="acl10+deny30", api="raw-mmsg", rate=Rate(20_000), traffic=TEN),
        Case("veth", function="firewall+deny30", api="raw-mmsg", rate=Rate(10_000), traffic=BOTH),
        pytest.param(
            Case(
                "veth",
                function="set100+deny30",
                api="raw",
                rate=Rate(10_000),
                traffic=Traffic().with_labels(NEW, None),
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(Case("ovs", function="firewall+deny30", rate=Rate(20_000), traffic=BOTH), marks=pytest.mark.slow),
    ],
    ids=lambda case: str(case.id),
)
def test_a_launch_accounts_for_each_denied_frame(session: HostSession, case: Case) -> None:
    account_for(session, case)


@pytest.mark.slow
@pytest.mark.parametrize(("switch", "api"), [("veth", "raw-mmsg"), ("testpmd", "dpdk")])
def test_a_launch_through_suricata_accounts_for_each_denied_frame(session: HostSession, switch: str, api: str) -> None:
    session.binaries = suricata()
    traffic = replace(TEN, packet_size=100)
    account_for(session, Case(switch, function="inspect10+deny30", api=api, rate=Rate(2000), traffic=traffic))


@pytest.mark.slow
def test_a_launch_through_vpp_accounts_for_each_denied_frame(session: HostSession) -> None:
    account_for(session, Case("veth", function="vpp+acl10+deny30", api="raw-mmsg", rate=Rate(5000), traffic=TEN))


@pytest.mark.slow
def test_a_launch_through_ip_pipeline_accounts_for_each_denied_frame(session: HostSession) -> None:
    account_for(session, Case("testpmd", function="nat+acl10+deny30", rate=Rate(20_000), traffic=TEN))
