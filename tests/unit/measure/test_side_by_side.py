# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side: in which order they are launched, on which rigs, for how long, and what fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.kinds.runs import measure_versions
from pytest_icbench.measure.stopping import Allowances, Criteria
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.unit.paired_rigs import HIGHER, Model, by_rigs, compare, decided, launched, sides


def test_each_pair_has_rigs_of_its_own_and_what_comes_first_is_drawn(rigs: tuple[Model, Model]) -> None:
    now, base = compare(rigs, repeats=12)
    order = by_rigs(rigs[0].log)
    assert len(order) == 12
    for (first, second), built in order:
        assert built.split() == [second, first]  # the one that is launched first is built last
    assert {launches[0] for launches, _ in order} == {"new", "base"}
    firsts = "".join(launches[0][0] for launches, _ in order)
    assert "nn" in firsts or "bb" in firsts  # a coin, no alternation
    assert (now.case, base.case) == ("testpmd:new-64B-b32-1vs1-Rmax", "testpmd-64B-b32-1vs1-Rmax")
    assert (now.launches, base.launches) == (12, 12)
    assert [launch.round for launch in now.per_launch] == list(range(12))
    assert (decided(now).pairs, decided(now).decision) == (12, "PASS")
    assert (base.side_by_side, base.decision) == (None, None)


def test_fewer_pairs_than_the_level_needs_are_not_asked_for(rigs: tuple[Model, Model]) -> None:
    now, _ = compare(rigs, repeats=2)
    assert (now.ended_by, decided(now).pairs, decided(now).decision) == ("repeats", 9, "PASS")


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


def test_little_time_still_has_the_fewest_pairs(rigs: tuple[Model, Model]) -> None:
    rigs[0].noise = rigs[1].noise = 0.2
    now, _ = compare(rigs, max_duration_s=5)
    assert (now.ended_by, now.launches) == ("max-duration", 9)


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
    rigs[1].pause()
    new, base = sides(rigs)
    measure_versions(
        replace(new, executable=Path("theirs")), base, Settings(repeats=2), Criteria(Allowances.of(HIGHER), 1)
    )
    assert set(launched(rigs[0].log)) - {"close new", "close base", "build new", "build base"} == {
        "new by theirs",
        "base",
    }


@pytest.mark.parametrize("rate", [Rate(loss_ratio=0.0), Rate(loads=(1, 2))])
def test_a_rate_that_is_looked_for_has_no_neighbour(rigs: tuple[Model, Model], rate: Rate) -> None:
    with pytest.raises(UsageError, match=r"versions side by side need the same load, and rate .* has several"):
        compare(rigs, case=Case("testpmd", Frames(rate=rate), candidate="new"))


def test_pairs_without_figures_are_invalid(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 0.0
    now, _ = compare(rigs, repeats=2)
    assert (now.verdict, now.reason) == ("INVALID", "no-forwarding")
