# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of time."""

from __future__ import annotations

import pytest

from pytest_icbench.measure import Settings
from pytest_icbench.schedule import LAUNCH_OVERHEAD_S, RIG_OVERHEAD_S, Schedule, clock, estimate_s


def test_a_fixed_number_of_launches() -> None:
    settings = Settings(repeats=4, warmup_s=0.5, duration_s=2.0)
    launch = 2.5 + LAUNCH_OVERHEAD_S
    assert estimate_s(settings, reference=False) == pytest.approx(4 * launch + RIG_OVERHEAD_S)
    assert estimate_s(settings, reference=True) == pytest.approx(8 * launch + 2 * RIG_OVERHEAD_S)
    assert estimate_s(settings, reference=False, build=False) == pytest.approx(4 * launch)


def test_the_time_for_a_case_bounds_it() -> None:
    assert estimate_s(Settings(max_duration_s=3.0), reference=False, build=False) == pytest.approx(3.0)


def test_the_schedule_learns_from_what_is_done() -> None:
    schedule = Schedule([10.0, 10.0, 10.0, 10.0])
    assert (schedule.current, schedule.total, schedule.left_s(None)) == (1, 4, 40.0)
    schedule.finish(20.0)
    assert (schedule.current, schedule.left_s(None)) == (2, 60.0)
    schedule.finish(None)  # skipped: says nothing
    assert (schedule.current, schedule.left_s(5.0)) == (3, 25.0)
    schedule.finish(20.0)
    schedule.finish(20.0)
    schedule.finish(20.0)
    assert (schedule.current, schedule.left_s(None)) == (4, 0.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (750, "12:30"), (3723, "1:02:03"), (-5, "0:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
