# SPDX-License-Identifier: BSD-3-Clause
"""When the harness does something in a launch: hardly ever while frames are sent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest

from pytest_icbench.measure.launch.disturbance import StealTrack
from pytest_icbench.measure.launch.launcher import Moments
from pytest_icbench.measure.launch.windows import mark_disturbed
from pytest_icbench.model.case import Case
from pytest_icbench.model.rig import Polled
from pytest_icbench.model.settings import Settings
from tests.unit.measure.test_soak import window as soak_window
from tests.unit.scripted_rig import MAX, RTT, ScriptedRig, one

SETTINGS = Settings(warmup_s=0.25, duration_s=1.0)
SETTLES = replace(SETTINGS, warmup_s=0.1, max_warmup_s=2.0)


@pytest.mark.parametrize(
    ("settings", "watched", "pings", "rests_until", "samples"),
    [
        (SETTINGS, False, False, 11.255, [10.22, 11.22]),
        (SETTINGS, False, True, 11.255, [10.22, 11.255]),
        (replace(SETTINGS, warmup_s=0.0), False, False, 11.005, [10.0, 10.97]),
        (SETTINGS, True, False, -math.inf, [10.22, 11.22]),
        (replace(SETTINGS, debug=True), False, False, -math.inf, [10.22, 11.22]),
        (SETTLES, False, False, 11.105, [10.07, 12.97]),
    ],
    ids=["rate", "round trips", "no warm-up", "watched", "debug", "settles"],
)
def test_the_harness_rests_until_the_launch_may_end(
    settings: Settings, watched: bool, pings: bool, rests_until: float, samples: list[float]
) -> None:
    found = Moments.of(10.0, settings, watched=watched, pings=pings)
    assert found.rests_until == pytest.approx(rests_until)
    assert found.samples == pytest.approx(samples)


@dataclass
class RestingRig(ScriptedRig):
    """A rig that notes how it is polled, and whose processes take their time.

    Attributes:
        waits: the timeouts of quiet polls, and of others once the first quiet one was made.
    """

    waits: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        if quiet or self.waits[True]:
            self.waits[quiet].append(timeout_s)
        return super().poll(launch_id, timeout_s, quiet)


@pytest.mark.parametrize("case", [MAX, RTT], ids=["rate", "round trips"])
def test_a_launch_is_polled_quietly(case: Case) -> None:
    rig = RestingRig()
    one(rig, case, replace(SETTINGS, duration_s=5.0))
    assert rig.waits[True]
    assert max(rig.waits[True]) <= 2.0


@pytest.mark.parametrize(("stolen_ms", "marked"), [(0, False), (10, False), (39, False), (41, True)])
def test_a_window_is_disturbed_from_the_share_that_disturbs_a_launch(stolen_ms: int, marked: bool) -> None:
    """Two CPUs in a second: one tick says nothing."""
    stolen = iter([{0: 0, 1: 0}, {0: stolen_ms * 10**6, 1: 0}])
    track = StealTrack([0, 1], lambda: next(stolen))
    track.sample(0)
    track.sample(10**9)
    window = replace(soak_window(1), start_ns=4 * 10**8, duration_ns=10**8)
    (found,) = mark_disturbed([window], track, [0, 1], dedicated=False)
    assert found.steal_ns == stolen_ms * 10**5
    assert found.disturbed is marked
