# SPDX-License-Identifier: BSD-3-Clause
"""Both ends send at once, over every kind of port: two accounts a pair, each exact to the frame."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.display.frame_rates import each_way
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.launch.validity import OFFERED_SHARE
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import DirectionResult, PairResult
from pytest_icbench.model.load import Frames
from pytest_icbench.model.path import DIRECTION_NAMES, Direction
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built
from tests.host.test_measure import ONCE, ids, once

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.slow

BOTH = Traffic(both=True)
CASES = [
    (Case("linux-bridge", api="raw-mmsg", pairs=2, check_payload=True), Rate()),
    (Case("linux-bridge", api="raw-mmsg", pairs=2, check_payload=True), Rate(20_000)),
    (Case("veth", api="af_packet"), Rate()),
    (Case("direct"), Rate()),
    (Case("direct", port="memif"), Rate()),
    (Case("testpmd"), Rate()),
    (Case("ovs"), Rate(20_000)),
]


@pytest.mark.parametrize("case", [case.sending(traffic=BOTH, rate=rate) for case, rate in CASES], ids=ids)
def test_each_direction_is_accounted_for(session: HostSession, case: Case) -> None:
    with built(session, case) as rig:
        found = once(rig, case)
    assert (found.verdict, found.evidence, found.launches) == (None, None, 1)
    assert (found.frames.duplicated, found.frames.corrupted) == (0, 0)
    assert [way.direction for way in found.frames.per_direction] == ["ab", "ba"]
    accounts: list[DirectionResult | PairResult] = [*found.frames.per_direction, *found.frames.per_pair]
    for account in accounts:
        assert account.sent == account.received + account.lost
        assert account.scheduled == account.sent + account.refused
        assert account.received > 0
    assert sum(way.sent for way in found.frames.per_direction) == found.frames.sent
    assert len(found.frames.per_pair) == 2 * case.pairs
    if case.rate.pps is not None:
        asked, burst = 6000 * case.pairs, case.burst * case.pairs
        for way in found.frames.per_direction:
            assert way.scheduled <= asked + burst
            assert found.generator_bound or way.scheduled >= OFFERED_SHARE * (asked - burst)


@pytest.mark.parametrize("way", ["ab", "ba"])
def test_a_forwarder_that_drops_in_one_direction_is_named_by_it(session: HostSession, way: Direction) -> None:
    """Each seventh frame of one direction is dropped, to the frame; of the other none."""
    case = Case("forward-raw", Frames(BOTH, 4, Rate(5000)), mode=f"drop7+{way}")
    with built(session, case) as rig:
        found = once(rig, case)
        launch = run_launch(rig, case, replace(ONCE, warmup_s=0.0))
    assert found.verdict is None
    for figures in (found.frames.per_direction, launch.pairs):
        struck, spared = (next(one for one in figures if (one.direction == way) == hit) for hit in (True, False))
        assert spared.lost == 0
        assert struck.lost > 0
    assert struck.lost == struck.sent // 7
    reported = {part[:6]: part for part in each_way(found).split("; ")}
    assert reported[DIRECTION_NAMES[way]].endswith("frames lost")
    assert reported[DIRECTION_NAMES["ba" if way == "ab" else "ab"]].endswith("nothing lost")
