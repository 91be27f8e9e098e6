# SPDX-License-Identifier: BSD-3-Clause
"""Searches over simulated devices: what is found, what is proven when time runs out, and who is right how often."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.config.option_table import TABLE
from pytest_icbench.errors import UsageError
from pytest_icbench.kinds.search import mlrsearch
from pytest_icbench.kinds.search.mlrsearch import ASKED_AGAIN, OutOfTime, Tried, check_library, find_bounds
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import PRESETS, Goal, goal_of
from pytest_icbench.model.settings import Settings

SOURCE = Path(__file__).parents[3] / "benchmarks" / "search_simulation.py"
NDR, PDR = Rate(loss_ratio=0.0), Rate(loss_ratio=0.005)


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    if not SOURCE.exists():
        pytest.skip("the benchmarks are part of the source tree only")
    spec = importlib.util.spec_from_file_location("search_simulation", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["search_simulation"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Wall:
    """Forwards exactly so many frames per second and knows what it was asked."""

    def __init__(self, capacity_pps: float, most: int = 10_000) -> None:
        self.capacity_pps = capacity_pps
        self.most = most
        self.asked: list[tuple[float, float]] = []

    def __call__(self, duration_s: float, load_pps: float) -> Tried:
        if len(self.asked) >= self.most:
            raise OutOfTime
        self.asked.append((duration_s, load_pps))
        offered = round(duration_s * load_pps)
        return Tried(offered, min(offered, round(duration_s * self.capacity_pps)), duration_s)


goals = st.builds(
    goal_of,
    st.sampled_from([NDR, PDR, Rate(loss_ratio=0.0001)]),
    st.sampled_from(["csit", "tst009"]),
    width=st.none() | st.floats(0.001, 0.2),
    trial_s=st.none() | st.floats(0.05, 5),
)


@settings(max_examples=200, deadline=None)
@given(goals, st.floats(2e3, 9.9e6), st.floats(1e2, 1.9e3))
def test_bounds_hold_the_capacity_and_are_as_close_as_wanted(goal: Goal, capacity: float, least: float) -> None:
    device = Wall(capacity)
    found = find_bounds(goal, least, 1e7, device)
    assert found.reached
    assert found.lower_pps is not None
    assert found.upper_pps is not None
    assert found.width is not None
    assert found.width <= goal.width + 1e-9
    true_pps = capacity / (1 - goal.loss_ratio)
    # A trial's frames are whole ones.
    frame = 1 / (goal.initial_trial_s * capacity)
    assert found.lower_pps <= true_pps * (1 + 2 * frame)
    assert found.upper_pps >= true_pps * (1 - 2 * frame)
    assert found.conditional_pps is not None
    assert found.conditional_pps <= found.lower_pps
    assert all(least * 0.999 <= load <= 1e7 * 1.001 for _, load in device.asked)
    assert max(duration for duration, _ in device.asked) <= goal.final_trial_s


@settings(max_examples=100, deadline=None)
@given(goals, st.integers(0, 60), st.integers(0, 2**32))
def test_whatever_a_device_does_a_search_ends(goal: Goal, most: int, seed: int) -> None:
    """Loss without any sense: bounds may be missing, nothing is raised, and no lower bound is above the upper one."""
    source = random.Random(seed)
    asked = 0

    def run(duration_s: float, load_pps: float) -> Tried:
        nonlocal asked
        asked += 1
        if asked > 5 * most + 5:
            raise OutOfTime
        offered = round(duration_s * load_pps)
        return Tried(offered, offered - round(offered * source.choice([0.0, 0.0, 0.01, 1.0])), duration_s)

    found = find_bounds(goal, 1e3, 1e6, run)
    if found.lower_pps is not None and found.upper_pps is not None:
        assert found.lower_pps < found.upper_pps


def test_a_device_that_takes_everything_has_no_upper_bound() -> None:
    found = find_bounds(goal_of(NDR, "csit"), 1e4, 1e6, Wall(2e6))
    assert (found.lower_pps, found.upper_pps, found.reached) == (1e6, None, True)
    assert found.conditional_pps == 1e6


@pytest.mark.parametrize("preset", ["csit", "rfc2544", "tst009"])
def test_a_device_that_loses_a_handful_at_every_load_has_no_lower_bound(preset: str) -> None:
    def lossy(duration_s: float, load_pps: float) -> Tried:
        offered = round(duration_s * load_pps)
        return Tried(offered, offered - 3, duration_s)

    found = find_bounds(goal_of(NDR, preset), 1e4, 1e7, lossy)
    assert (found.lower_pps, found.conditional_pps, found.reached) == (None, None, True)
    assert found.upper_pps == pytest.approx(1e4)


def test_when_time_runs_out_what_was_proven_is_kept() -> None:
    goal = goal_of(PDR, "csit")
    whole = Wall(3e6)
    assert find_bounds(goal, 1e4, 1e7, whole).reached
    seen = set()
    proving = len(whole.asked) - ASKED_AGAIN // 2 - 1
    for most in range(len(whole.asked)):
        found = find_bounds(goal, 1e4, 1e7, Wall(3e6, most))
        assert found.reached is (most >= proving)  # without time to ask again the bounds stand
        for end, side in ((found.lower_pps, 1), (found.upper_pps, -1), (found.coarse[0], 1), (found.coarse[1], -1)):
            assert end is None or (3e6 / 0.995 - end) * side >= -10
        seen.add((found.lower_pps is not None, found.upper_pps is not None, None not in found.coarse))
    assert (False, False, False) in seen
    assert (False, False, True) in seen
    assert any(proven[0] or proven[1] for proven in seen)


class Moody(Wall):
    """Loses most of every frame for some trials, as often as it is told to."""

    def __init__(self, capacity_pps: float, *regimes: range) -> None:
        super().__init__(capacity_pps)
        self.regimes = regimes

    def __call__(self, duration_s: float, load_pps: float) -> Tried:
        moody = any(len(self.asked) in regime for regime in self.regimes)
        tried = super().__call__(duration_s, load_pps)
        # A trial of a second takes 1.8 s, as starting it counts.
        return Tried(tried.offered, tried.received // (4 if moody else 1), duration_s + 0.8)


@pytest.mark.parametrize(
    ("preset", "regime"), [("csit", range(12, 36)), ("csit", range(8, 24)), ("tst009", range(6, 14))]
)
def test_a_disturbance_that_outlasts_a_load_does_not_condemn_it(preset: str, regime: range) -> None:
    goal = goal_of(NDR, preset)
    assert (mlrsearch._search(goal, 1e4, 1e7, Moody(3e6, regime)).lower_pps or 0) < 0.99 * 3e6
    found = find_bounds(goal, 1e4, 1e7, Moody(3e6, regime))
    assert found.reached
    assert found.lower_pps == pytest.approx(3e6, rel=0.006)


def test_a_search_begins_anew_once() -> None:
    """Whatever a device does then, the second search's bounds stand."""
    first, second, end = 66, 84, 10_000
    device = Moody(3e6, range(12, 36), range(first + 4, end))
    found = find_bounds(goal_of(NDR, "csit"), 1e4, 1e7, device)
    assert found.reached
    assert found.lower_pps is None  # no load passes any more
    assert len(device.asked) < second + 20


def test_a_second_search_without_time_leaves_the_first_ones_bounds() -> None:
    whole = Moody(3e6, range(12, 36))
    mlrsearch._search(goal_of(NDR, "csit"), 1e4, 1e7, whole)
    searched, asked_again = len(whole.asked), 2
    device = Moody(3e6, range(12, 36))
    device.most = searched + asked_again + 1
    found = find_bounds(goal_of(NDR, "csit"), 1e4, 1e7, device)
    assert found.reached
    assert found.lower_pps == pytest.approx(2773797, rel=1e-4)


def test_a_goal_that_believes_every_trial_asks_for_none_again() -> None:
    asked_at_the_end = []
    for preset in ("rfc2544", "csit"):
        device = Wall(3e6)
        upper = find_bounds(goal_of(NDR, preset), 1e4, 1e7, device).upper_pps
        asked_at_the_end.append(sum(load == upper for _, load in device.asked[-2:]))
    assert asked_at_the_end[0] < 2
    assert asked_at_the_end[1] == 2


def test_loss_verification_tries_a_bad_load_again() -> None:
    """TST 009: one bad trial of two does not condemn a load; without verification it does."""
    missed: list[float] = []

    def once(duration_s: float, load_pps: float) -> Tried:
        offered = round(duration_s * load_pps)
        hiccup = duration_s >= 60 and load_pps < 3e6 and not missed
        if hiccup:
            missed.append(load_pps)
        return Tried(offered, min(offered, round(duration_s * 3e6)) - hiccup, duration_s)

    found = find_bounds(goal_of(NDR, "tst009"), 1e4, 1e7, once)
    assert missed
    assert found.lower_pps == pytest.approx(3e6, rel=0.006)
    missed.clear()
    found = find_bounds(goal_of(NDR, "rfc2544"), 1e4, 1e7, once)
    assert found.upper_pps == missed[0]


def test_presets() -> None:
    """The goals of RFC 9971's own examples, and of the library's defaults, which are CSIT's."""
    from MLRsearch import SearchGoal

    csit, library = goal_of(PDR, "csit"), SearchGoal()
    assert (
        csit.width,
        csit.exceed_ratio,
        csit.initial_trial_s,
        csit.final_trial_s,
        csit.duration_sum_s,
        csit.steps,
    ) == (
        library.relative_width,
        library.exceed_ratio,
        library.initial_trial_duration,
        library.final_trial_duration,
        library.duration_sum,
        library.preceding_targets,
    )
    rfc2544, tst009 = goal_of(NDR, "rfc2544"), goal_of(NDR, "tst009")
    assert (rfc2544.final_trial_s, rfc2544.duration_sum_s, rfc2544.exceed_ratio) == (60, 60, 0)
    assert (tst009.final_trial_s, tst009.duration_sum_s, tst009.exceed_ratio) == (60, 120, 0.5)
    icpe = goal_of(Rate(loss_ratio=0.0001), "icpe2018")
    assert (icpe.final_trial_s, icpe.duration_sum_s, icpe.exceed_ratio) == (60, 60, 0)


def test_every_preset_can_be_asked_for() -> None:
    (row,) = (row for row in TABLE if row.name == "search_preset")
    for name in PRESETS:
        assert row.parse(name, "x") == name
        assert name in row.help


def test_what_is_given_replaces_the_presets_and_keeps_the_number_of_trials() -> None:
    goal = Settings(search_width=0.02, search_trial_s=0.2).goal(NDR)
    assert (goal.width, goal.initial_trial_s, goal.final_trial_s) == (0.02, 0.2, 0.2)
    assert goal.duration_sum_s == pytest.approx(4.2)
    assert Settings(search_trial_s=2.0, search_sum_s=6.0).goal(NDR).duration_sum_s == 6.0


@pytest.mark.parametrize(
    ("rate", "wanted", "sentence"),
    [
        (PDR, {"search_preset": "rfc2544"}, "rfc2544 is about rate ndr, not pdr:0.5%"),
        (NDR, {"search_preset": "icpe2018"}, "icpe2018 is about rate pdr:0.01%, not ndr"),
        (NDR, {"search_sum_s": 0.5}, "for 0.5 s in trials of 1 s; raise the sum"),
    ],
)
def test_a_preset_that_does_not_fit_is_named(rate: Rate, wanted: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Settings(**wanted).goal(rate)


def test_a_missing_library_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MLRsearch", None)
    monkeypatch.setattr("pytest_icbench.kinds.search.mlrsearch.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'MLRsearch>=1\.2\.1'"):
        check_library()
    with pytest.raises(UsageError, match="MLRsearch"):
        find_bounds(goal_of(NDR, "csit"), 1e3, 1e6, Wall(1e5))


@pytest.mark.parametrize("rate", [NDR, PDR], ids=str)
def test_under_noise_a_search_is_right_more_often_than_a_plain_one(simulation: ModuleType, rate: Rate) -> None:
    noise = {"jitter": 0.0005, "stall_share": 0.2}
    goal = goal_of(rate, "csit")
    ours = simulation.score(find_bounds, goal, 150, **noise)
    plain = simulation.score(simulation.plain_binary_search, goal, 150, **noise)
    assert ours.right >= 0.93
    assert rate == PDR or plain.right < ours.right


def test_without_noise_a_plain_search_is_right_too(simulation: ModuleType) -> None:
    assert simulation.score(simulation.plain_binary_search, goal_of(NDR, "csit"), 50).right == 1.0
