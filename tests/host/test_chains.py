# SPDX-License-Identifier: BSD-3-Clause
"""Chains of network functions, on the real host: what passes, what is lost at which hop, and how long it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.protocol import FunctionSpec
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.host.function_tools import SHORT, TWICE, in_place, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

DELAY_NS = 20_000_000


@pytest.mark.parametrize(
    "case",
    [
        Case("veth", function="wire", chain=3, api="raw-mmsg"),
        pytest.param(
            Case("linux-bridge", function="cost1000+swap", chain=2, pairs=2, api="raw"), marks=pytest.mark.slow
        ),
        pytest.param(Case("linux-bridge", function="acl10+deny30", chain=3), marks=pytest.mark.slow),
        pytest.param(Case("veth", function="nat", chain=2), marks=pytest.mark.slow),
        pytest.param(Case("direct", port="memif", function="wire", chain=2), marks=pytest.mark.slow),
        pytest.param(Case("direct", function="swap", chain=3), marks=pytest.mark.slow),
        pytest.param(Case("ovs", function="wire", chain=2), marks=pytest.mark.slow),
    ],
    ids=lambda case: str(case.id),
)
def test_a_chain_does_its_work_and_its_accounts_agree(session: HostSession, case: Case) -> None:
    case = case.sending(rate=Rate(5_000))
    with through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    works = found.functions or ()
    assert [(work.pair, work.hop) for work in works] == [
        (pair, hop) for pair in case.path.numbers for hop in range(1, case.chain + 1)
    ]
    for account in found.frames.chains or ():
        assert account.sent == account.received + sum(account.lost_by_hop) > 1000
        assert len(account.lost_by_hop) == case.chain + 1
    assert [account.pair for account in found.frames.chains or ()] == list(case.path.numbers)


class DropsAtHopFour(ForwarderFunction):
    """Wires, of which the fourth drops each thousandth frame."""

    name = "leaky"

    @classmethod
    def has(cls, function: str) -> bool:
        return function == "leaky"

    @classmethod
    def mode(cls, function: str) -> str | None:
        return None if function == "leaky" else function

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        super().start(session, replace(spec, function="drop1000") if spec.hop == 4 else spec)


@pytest.mark.slow
def test_the_hop_that_drops_one_in_a_thousand_of_ten_is_named(session: HostSession) -> None:
    case = Case("veth", Frames(rate=Rate(8_000)), function="leaky", chain=10, api="raw-mmsg")
    with in_place(DropsAtHopFour), through(session, case) as rig:
        found = measure(Side(rig, case), TWICE)
    assert (found.verdict, found.evidence) == (None, None)
    (account,) = found.frames.chains or ()
    assert account.sent == account.received + sum(account.lost_by_hop)
    dropped = sum(launch.chains[0].sent // 1000 for launch in found.per_launch if launch.chains)
    assert dropped >= 4
    assert account.lost_by_hop[3] == dropped
    assert account.lost_before_hop[3] == 0
    assert [lost for hop, lost in enumerate(account.lost_by_hop, start=1) if hop != 4] == [0] * 10


@pytest.mark.slow
def test_the_round_trip_grows_with_the_delay_of_each_hop(session: HostSession) -> None:
    p50_ns, least_ns, disturbed = {}, {}, 0
    settings = Settings(warmup_s=0.1, duration_s=0.6, drain_s=0.5, repeats=1, reference=False)
    for chain in (1, 4):
        case = Case("veth", Frames(burst=1, rate=Rate(200)), function="delay20ms", chain=chain, dimension="latency")
        with through(session, case) as rig:
            found = measure(Side(rig, case), settings)
        assert (found.verdict, found.evidence) == (None, None)
        (launch,) = found.per_launch
        assert launch.rtt is not None
        p50_ns[chain], least_ns[chain] = launch.rtt.percentile(0.5) or 0, launch.rtt.minimum or 0
        disturbed += launch.disturbed is not None
    assert all(least >= chain * 2 * DELAY_NS for chain, least in least_ns.items())
    if disturbed:
        pytest.skip("other processes took the CPUs of the functions, whose polls then come late")
    assert (p50_ns[4] - p50_ns[1]) / 3 == pytest.approx(2 * DELAY_NS, rel=0.01)
