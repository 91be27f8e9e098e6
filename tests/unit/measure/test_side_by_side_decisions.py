# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side: what is decided, on which figure, and what is seen again before anything is accused."""

from __future__ import annotations

from random import Random

import pytest

from pytest_icbench.measure.comparing import SESSION_ERROR, confirming, confirming_rigs
from pytest_icbench.stats.noninferiority import Margin
from tests.unit.paired_rigs import Model, compare, decided


def test_the_same_passes_after_the_fewest_looks(rigs: tuple[Model, Model]) -> None:
    now, _ = compare(rigs)
    found = decided(now)
    assert (found.decision, found.confirmed, found.pairs, found.rigs) == ("PASS", None, 8, 4)
    assert now.ended_by == "precision"
    assert now.ratio_to_base == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize(("pps", "decision"), [(4.5e6, "REGRESSED"), (5.5e6, "IMPROVED")])
def test_a_finding_is_confirmed_by_fresh_pairs_on_rigs_built_anew(
    rigs: tuple[Model, Model], pps: float, decision: str
) -> None:
    rigs[0].pps = pps
    now, base = compare(rigs)
    found = decided(now)
    assert (found.decision, found.screen, found.confirmed) == (decision, decision, True)
    assert (found.screened, found.screened_rigs, found.pairs, found.rigs) == (8, 4, 14, 7)
    assert (now.launches, base.launches) == (22, 22)
    assert found.confidence == pytest.approx(0.98, abs=0.005)
    assert found.ratio == pytest.approx(pps / 5e6, rel=0.01)
    assert rigs[0].built == rigs[1].built == 11


@pytest.mark.parametrize("seed", range(12))
def test_rigs_that_differ_accuse_nobody(rigs: tuple[Model, Model], seed: int) -> None:
    """One rig in two lies 6 % lower; all launches on it agree, however many there are."""
    for number, rig in enumerate(rigs):
        random = Random(f"{seed} {number}")
        rig.draw = lambda random=random: random.choice((1.0, 0.94))  # type: ignore[misc]
        rig.effect = rig.draw()
    assert decided(compare(rigs)[0]).decision in ("PASS", "INCONCLUSIVE")


def test_what_fresh_rigs_do_not_show_again_is_no_regression(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps = 4.5e6, 5e6
    found = decided(compare(rigs)[0])
    assert (found.decision, found.screen, found.confirmed) == ("PASS", "REGRESSED", False)
    assert found.confidence == pytest.approx(0.95, abs=0.01)
    assert found.ratio == pytest.approx(1, abs=0.01)


def test_what_is_seen_again_but_not_surely_is_not_told(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps = 4.5e6, 4.85e6
    found = decided(compare(rigs)[0])
    assert (found.decision, found.confirmed) == ("INCONCLUSIVE", False)
    assert found.note == "the first look said REGRESSED, fresh launches do not say it surely enough"


def test_more_cases_take_more_pairs_to_confirm(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    found = decided(compare(rigs, cases=100)[0])
    assert found.decision == "REGRESSED"
    assert found.confidence == pytest.approx(1 - 2e-4)
    assert (found.rigs, found.pairs) == (14, 14)  # the range of fourteen is the first with that confidence
    assert (found.cases, found.error_rate) == (100, SESSION_ERROR)
    assert confirming_rigs(40, 1) == [2] * 20


def test_a_tolerated_drop_passes(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    found = decided(compare(rigs, margin=Margin("higher", tolerated=0.1))[0])
    assert (found.decision, found.tolerated, found.allowance) == ("PASS", 0.1, 0.03)


def test_a_switch_with_idle_share_decides_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].idle = 5.5e6, True
    comparison = decided(compare(rigs)[0])
    assert comparison.decision == "INCONCLUSIVE"
    assert "only 'at least'" in str(comparison.note)
    assert comparison.confirmed is None
    assert comparison.rigs == comparison.screened_rigs


@pytest.mark.parametrize("other", [None, 200.0])
def test_a_path_that_falls_with_idle_share_is_confirmed_and_accused(
    rigs: tuple[Model, Model], other: float | None
) -> None:
    rigs[0].pps, rigs[0].idle, rigs[0].cycles, rigs[1].cycles = 4.5e6, True, 200, other
    comparison = decided(compare(rigs)[0])
    assert (comparison.decision, comparison.figure, comparison.confirmed) == ("REGRESSED", "throughput_pps", True)


@pytest.mark.parametrize(
    ("cycles", "tolerated", "decision"),
    [
        (200, 0.0, "PASS"),
        (230, 0.0, "REGRESSED"),
        (170, 0.0, "IMPROVED"),
        (230, 0.2, "PASS"),
        # A rate a fifth lower is a cost a quarter higher.
        (250, 0.2, "PASS"),
    ],
)
def test_the_switchs_cycles_decide_where_both_rates_are_at_least(
    rigs: tuple[Model, Model], cycles: float, tolerated: float, decision: str
) -> None:
    for rig, spent in zip(rigs, (cycles, 200), strict=True):
        rig.idle, rig.cycles, rig.noise = True, spent, 0.002
    comparison = decided(compare(rigs, margin=Margin("higher", tolerated))[0])
    assert (comparison.decision, comparison.figure) == (decision, "cycles_per_packet")
    assert comparison.ratio == pytest.approx(cycles / 200, rel=0.01)
    assert comparison.base_value == pytest.approx(200, rel=0.01)
    assert comparison.note == "the rate is only 'at least', so the switch's cycles a frame decide"
    assert comparison.confirmed is (True if decision in ("REGRESSED", "IMPROVED") else None)


def test_cycles_of_one_side_decide_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].idle, rigs[0].cycles = True, 300
    comparison = decided(compare(rigs)[0])
    assert (comparison.decision, comparison.figure) == ("INCONCLUSIVE", "throughput_pps")


def test_a_path_that_does_not_fall_again_decides_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps, rigs[0].idle = 4.5e6, 5e6, True
    comparison = decided(compare(rigs)[0])
    assert (comparison.screen, comparison.confirmed) == ("REGRESSED", False)
    assert comparison.decision == "INCONCLUSIVE"
    assert "at least" in str(comparison.note)


def test_a_base_with_idle_share_can_be_fallen_short_of(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[1].idle = 4.5e6, True
    assert decided(compare(rigs)[0]).decision == "REGRESSED"


def test_the_session_is_wrong_at_most_once_in_a_hundred(rigs: tuple[Model, Model]) -> None:
    """A version exactly at the limit, in sessions of twenty cases: confirmation alone bounds the errors."""
    assert confirming(20) == pytest.approx(1 - 2 * SESSION_ERROR / 20)
    assert confirming(1) == pytest.approx(0.98)
