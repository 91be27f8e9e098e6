# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of time."""

from __future__ import annotations

import pytest

from pytest_icbench.kinds.runs import estimate_s
from pytest_icbench.measure.estimate import LAUNCH_OVERHEAD_S, RIG_OVERHEAD_S, comparison_estimate_s
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings


def test_a_fixed_number_of_launches() -> None:
    settings = Settings(repeats=4, warmup_s=0.5, duration_s=2.0)
    launch = 2.5 + LAUNCH_OVERHEAD_S
    assert estimate_s(settings, reference=False) == pytest.approx(4 * launch + RIG_OVERHEAD_S)
    assert estimate_s(settings, reference=True) == pytest.approx(8 * launch + 2 * RIG_OVERHEAD_S)
    assert estimate_s(settings, reference=False, build=False) == pytest.approx(4 * launch)


def test_rigs_that_take_turns_are_built_anew() -> None:
    for launches, turns in ((4, 2), (8, 2), (9, 4)):
        settings = Settings(repeats=launches)
        beside = estimate_s(settings, reference=True, build=False)
        assert estimate_s(settings, reference=True, build=False, in_turn=True) == pytest.approx(
            beside + turns * RIG_OVERHEAD_S
        )
    ndr, sweep = Rate(loss_ratio=0.0), Rate(loads=())
    for rate, turns in ((ndr, 4), (sweep, 2), (Rate(loads=(1, 2)), 0)):
        alone = estimate_s(Settings(), reference=False, rate=rate)
        assert estimate_s(Settings(), reference=True, rate=rate, in_turn=True) == pytest.approx(
            alone + turns * RIG_OVERHEAD_S
        )
    assert estimate_s(Settings(), reference=False, in_turn=True) == estimate_s(Settings(), reference=False)


def test_the_time_for_a_case_bounds_it() -> None:
    launch = 0.25 + 1.0 + LAUNCH_OVERHEAD_S
    for limit_s in (10.0, 30.0):  # no launch begins that would end later
        settings = Settings(max_duration_s=limit_s)
        assert estimate_s(settings, reference=False, build=False) == pytest.approx(limit_s - launch)
    assert estimate_s(Settings(max_duration_s=1.0), reference=False, build=False) == pytest.approx(launch)


def test_a_case_takes_the_launches_after_which_its_stopping_rule_can_end_it() -> None:
    launch = 0.25 + 1.0 + LAUNCH_OVERHEAD_S
    quiet = estimate_s(Settings(), reference=False, build=False)
    assert quiet == pytest.approx(21 * launch)
    assert estimate_s(Settings(min_launches=30), reference=False, build=False) == pytest.approx(31 * launch)
    # Beside the reference link the default minute ends it.
    assert estimate_s(Settings(), reference=True, build=False) == pytest.approx(60 - 2 * launch)
    # A budget ends it with the fewest launches that have an interval.
    assert estimate_s(Settings(), reference=True, build=False, launches=7) == pytest.approx(14 * launch)


def test_a_launch_that_waits_for_a_stationary_rate_has_windows_to_judge() -> None:
    settings = Settings(repeats=1, warmup_s=0.1, max_warmup_s=2.0, duration_s=0.5)
    assert estimate_s(settings, reference=False, build=False) == pytest.approx(0.1 + 1.0 + LAUNCH_OVERHEAD_S)


def test_a_comparison_builds_its_rigs_anew() -> None:
    pair = 2 * (0.25 + 1.0 + LAUNCH_OVERHEAD_S)
    for repeats, cases, pairs in ((3, 1, 9), (12, 1, 12), (None, 1, 9), (None, 100, 16)):
        seconds = comparison_estimate_s(Settings(repeats=repeats), cases)
        assert seconds == pytest.approx(pairs * (pair + 2 * RIG_OVERHEAD_S))


def test_a_search_is_bounded_by_its_own_time() -> None:
    ndr = Rate(loss_ratio=0.0)
    csit = estimate_s(Settings(), reference=False, build=False, rate=ndr)
    assert 30 < csit < 60
    assert estimate_s(Settings(), reference=True, rate=ndr) == pytest.approx(csit + 2 * RIG_OVERHEAD_S)
    assert estimate_s(Settings(search_time_s=10.0), reference=False, build=False, rate=ndr) == pytest.approx(10.0)
    assert estimate_s(Settings(search_trial_s=0.2), reference=False, build=False, rate=ndr) < csit / 2
    assert 120 < estimate_s(Settings(search_preset="rfc2544"), reference=False, rate=ndr) < 200


def test_a_sweep_takes_a_launch_a_load_and_those_of_its_figure() -> None:
    whole = estimate_s(Settings(), reference=False, build=False)
    launch = 0.25 + 1.0 + LAUNCH_OVERHEAD_S
    named = estimate_s(Settings(), reference=False, build=False, rate=Rate(loads=(1, 2, 3)))
    assert named == pytest.approx(whole + 3 * launch)
    assert estimate_s(Settings(), reference=False, build=False, rate=Rate(loads=())) == pytest.approx(
        whole + 10 * launch
    )
