# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side: in which order they are launched, on which rigs, for how long, and what fails."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.measure.comparing import Allowance, fixed_rigs
from pytest_icbench.measure.summary.summarize import Surroundings
from pytest_icbench.measure.versions import measure_versions
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.unit.paired_rigs import CASE, HIGHER, Model, by_rigs, compare, decided, launched


def test_pairs_take_turns_on_rigs_that_are_built_anew_and_what_comes_first_is_drawn(rigs: tuple[Model, Model]) -> None:
    now, base = compare(rigs, repeats=12)
    order = by_rigs(rigs[0].log)
    assert len(order) == 6
    for launches, built in order:
        first, second = launches[:2]
        assert launches == [first, second, second, first]
        assert built in ("", f"{second} {first}")  # the one that is launched first is built last
    assert {launches[0] for launches, _ in order} == {"new", "base"}
    assert (now.case, base.case) == ("testpmd:new-64B-b32-1vs1-Rmax", "testpmd-64B-b32-1vs1-Rmax")
    assert (now.launches, base.launches) == (12, 12)
    assert [launch.round for launch in now.per_launch] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert (decided(now).rigs, decided(now).screened_rigs, decided(now).decision) == (6, 6, "PASS")
    assert (base.side_by_side, base.decision) == (None, None)


@pytest.mark.parametrize(
    ("repeats", "spread"), [(1, [1]), (2, [1, 1]), (3, [1, 1, 1]), (4, [2, 1, 1]), (6, [2, 2, 2]), (7, [2, 2, 2, 1])]
)
def test_a_fixed_number_of_pairs_is_spread_over_three_rigs_at_least(repeats: int, spread: list[int]) -> None:
    assert fixed_rigs(repeats) == spread


def test_two_rigs_give_no_interval(rigs: tuple[Model, Model]) -> None:
    found = decided(compare(rigs, repeats=2)[0])
    assert (found.decision, found.ratio_low, found.rigs) == ("INCONCLUSIVE", None, 2)


def test_a_rig_of_its_own_for_each_launch_is_built_once(rigs: tuple[Model, Model]) -> None:
    compare(rigs, repeats=4, fresh=True)
    assert [sorted(launches) for launches, _ in by_rigs(rigs[0].log)] == [["base", "new"]] * 4
    assert rigs[0].built == rigs[1].built == 4


def test_a_base_that_cannot_be_built_anew_is_named(rigs: tuple[Model, Model]) -> None:
    rigs[1].unbuildable = True
    with pytest.raises(ProvisionError, match="the base, testpmd-64B-b32-1vs1-Rmax: no memory"):
        compare(rigs)


def test_noise_takes_more_pairs_until_the_time_is_up(rigs: tuple[Model, Model]) -> None:
    rigs[0].noise = rigs[1].noise = 0.2
    now, _ = compare(rigs, max_duration_s=60)
    assert now.ended_by == "max-duration"
    assert now.launches == 20
    assert decided(now).decision == "INCONCLUSIVE"


@pytest.mark.parametrize(("limit_s", "sizes"), [(8, [1]), (9, [1, 1, 1]), (20, [2, 2, 2]), (24, [2, 2, 2, 2])])
def test_little_time_is_spent_on_three_rigs_rather_than_on_pairs(
    rigs: tuple[Model, Model], limit_s: float, sizes: list[int]
) -> None:
    """A pair takes 3 s; rigs take no time here, but are reckoned with until the first ones were built."""
    rigs[0].noise = rigs[1].noise = 0.2
    now, _ = compare(rigs, max_duration_s=limit_s)
    rounds = [launch.round for launch in now.per_launch]
    assert [rounds.count(number) for number in range(decided(now).screened_rigs)] == sizes


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_that_is_no_number_makes_both_invalid(rigs: tuple[Model, Model], side: int) -> None:
    rigs[side].invalid_after = 3
    now, base = compare(rigs)
    assert (now.verdict, base.verdict, now.reason) == ("INVALID", "INVALID", "stalled")
    assert ("the base, testpmd-64B" in (now.evidence or "")) == bool(side)
    assert now.side_by_side is None


def test_a_base_that_dies_is_named(rigs: tuple[Model, Model]) -> None:
    rigs[1].broken = True
    now, _ = compare(rigs)
    assert (now.verdict, now.reason) == ("INVALID", "died")
    assert now.evidence == "the base, testpmd-64B-b32-1vs1-Rmax: the switch died"


def test_each_side_has_its_own_workload(rigs: tuple[Model, Model]) -> None:
    around = Surroundings("dedicated", ())
    rigs[1].pause()
    measure_versions(
        rigs,  # type: ignore[arg-type]
        CASE,
        Settings(repeats=2),
        Allowance.of(HIGHER),
        1,
        (around, around),
        executables=("theirs", None),  # type: ignore[arg-type]
    )
    assert set(launched(rigs[0].log)) - {"close new", "close base", "build new", "build base"} == {
        "new by theirs",
        "base",
    }


@pytest.mark.parametrize("rate", [Rate(loss_ratio=0.0), Rate(loads=(1, 2))])
def test_a_rate_that_is_looked_for_has_no_neighbour(rigs: tuple[Model, Model], rate: Rate) -> None:
    with pytest.raises(UsageError, match="is looked for, not launched, so versions cannot take turns"):
        compare(rigs, case=Case("testpmd", candidate="new", rate=rate))


def test_pairs_without_figures_are_invalid(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 0.0
    now, _ = compare(rigs, repeats=2)
    assert (now.verdict, now.reason) == ("INVALID", "no-forwarding")
