# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side: what is decided, and on which figure."""

from __future__ import annotations

from random import Random

import pytest

from pytest_icbench.measure.stopping import Allowances
from pytest_icbench.stats.verdict_rule import SESSION_ERROR, Allowance
from tests.unit.paired_rigs import HIGHER, Model, compare, decided

NEAR, FAR = (60.0, 60.0), (400.0, 400.0)
#: The mean of the readings is within the spread of distances that are near.
MOVED = (60.0, 210.0)


def test_the_same_passes_after_the_fewest_pairs_and_says_what_it_finds(rigs: tuple[Model, Model]) -> None:
    now, _ = compare(rigs)
    found = decided(now)
    assert (found.decision, found.reason, found.pairs, found.dropped) == ("PASS", None, 9, 0)
    assert now.ratio_to_base == pytest.approx(1, abs=0.005)
    assert found.finds == pytest.approx(0.033, abs=0.002)
    assert not found.weak


@pytest.mark.parametrize(("pps", "decision"), [(4.5e6, "REGRESSED"), (5.5e6, "IMPROVED")])
def test_a_change_is_decided_by_one_look(rigs: tuple[Model, Model], pps: float, decision: str) -> None:
    rigs[0].pps = pps
    now, base = compare(rigs)
    found = decided(now)
    assert (found.decision, found.pairs, found.allowance) == (decision, 9, 0.03)
    assert (now.launches, base.launches) == (9, 9)
    assert found.ratio == pytest.approx(pps / 5e6, rel=0.01)
    assert rigs[0].built == rigs[1].built == 10  # both anew for each pair, for the first one, too


@pytest.mark.parametrize("seed", range(12))
def test_rigs_that_differ_flag_nobody(rigs: tuple[Model, Model], seed: int) -> None:
    """One rig in two lies 6 % lower."""
    for number, rig in enumerate(rigs):
        random = Random(f"{seed} {number}")
        rig.draw = lambda random=random: random.choice((1.0, 0.94))  # type: ignore[misc]
    assert decided(compare(rigs)[0]).decision in ("PASS", "INCONCLUSIVE")


def test_pairs_that_lie_apart_ask_for_more(rigs: tuple[Model, Model]) -> None:
    rigs[0].noise = rigs[1].noise = 0.2
    found = decided(compare(rigs)[0])
    assert (found.decision, found.reason, found.weak) == ("INCONCLUSIVE", "spread", True)
    assert found.more_pairs is None or found.more_pairs > 10


def test_more_cases_take_more_pairs(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    found = decided(compare(rigs, cases=100, repeats=3)[0])
    assert (found.decision, found.pairs) == ("REGRESSED", 16)
    assert (found.cases, found.error_rate) == (100, SESSION_ERROR)


def test_a_loss_that_is_allowed_passes(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    found = decided(compare(rigs, allowance=Allowance("higher", 0.13))[0])
    assert (found.decision, found.allowance) == ("PASS", 0.13)


def test_pairs_in_two_states_are_dropped(rigs: tuple[Model, Model]) -> None:
    """The host changes its state within every third pair, and the candidate has the worse one each time."""
    rigs[0].distances, rigs[1].distances = (NEAR, NEAR, FAR), (NEAR,)
    found = decided(compare(rigs, max_duration_s=1000)[0])
    assert (found.decision, found.pairs, found.dropped) == ("PASS", 9, 4)


def test_a_pair_in_which_a_launch_changed_its_state_is_dropped(rigs: tuple[Model, Model]) -> None:
    rigs[0].distances, rigs[1].distances = (NEAR, NEAR, MOVED), (NEAR,)
    found = decided(compare(rigs, max_duration_s=1000)[0])
    assert (found.decision, found.pairs, found.dropped) == ("PASS", 9, 4)


def test_pairs_of_the_same_state_decide_whatever_it_is(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    rigs[0].distances = rigs[1].distances = (NEAR, FAR)
    found = decided(compare(rigs)[0])
    assert (found.decision, found.pairs, found.dropped) == ("REGRESSED", 9, 0)


def test_without_a_pair_in_one_state_nothing_is_decided(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].distances, rigs[1].distances = 3e6, (FAR,), (NEAR,)
    found = decided(compare(rigs)[0])
    assert (found.decision, found.reason, found.pairs) == ("INCONCLUSIVE", "state", 0)
    assert (found.ratio_low, found.more_pairs, found.finds) == (None, None, None)
    assert found.ratio == pytest.approx(0.6, rel=0.01)


def test_few_pairs_in_one_state_are_a_matter_of_the_state(rigs: tuple[Model, Model]) -> None:
    rigs[0].distances, rigs[1].distances = (NEAR, FAR, FAR, FAR), (NEAR,)
    found = decided(compare(rigs, repeats=7)[0])
    assert (found.decision, found.reason, found.pairs, found.dropped) == ("INCONCLUSIVE", "state", 4, 14)
    assert found.more_pairs == 3


def test_a_switch_with_idle_share_decides_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].idle = 5.5e6, True
    found = decided(compare(rigs)[0])
    assert (found.decision, found.reason, found.more_pairs) == ("INCONCLUSIVE", "bound", None)


@pytest.mark.parametrize("other", [None, 200.0])
def test_a_path_that_falls_with_idle_share_is_flagged(rigs: tuple[Model, Model], other: float | None) -> None:
    rigs[0].pps, rigs[0].idle, rigs[0].cycles, rigs[1].cycles = 4.5e6, True, 200, other
    found = decided(compare(rigs)[0])
    assert (found.decision, found.figure) == ("REGRESSED", "throughput_pps")


@pytest.mark.parametrize(
    ("cycles", "allowed", "decision"),
    [
        (200, 0.03, "PASS"),
        (230, 0.03, "REGRESSED"),
        (170, 0.03, "IMPROVED"),
        (230, 0.2, "PASS"),
        # A rate 21 % lower is a cost 27 % higher.
        (250, 0.21, "PASS"),
    ],
)
def test_the_switchs_cycles_decide_where_both_rates_are_at_least(
    rigs: tuple[Model, Model], cycles: float, allowed: float, decision: str
) -> None:
    for rig, spent in zip(rigs, (cycles, 200), strict=True):
        rig.idle, rig.cycles, rig.noise = True, spent, 0.002
    found = decided(compare(rigs, allowance=Allowance("higher", allowed))[0])
    assert (found.decision, found.figure) == (decision, "cycles_per_packet")
    assert found.ratio == pytest.approx(cycles / 200, rel=0.01)
    assert found.base_value == pytest.approx(200, rel=0.01)
    assert found.note == "the rate is only 'at least', so the switch's cycles a frame decide"


def test_cycles_of_one_side_decide_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].idle, rigs[0].cycles = True, 300
    found = decided(compare(rigs)[0])
    assert (found.decision, found.figure) == ("INCONCLUSIVE", "throughput_pps")


def test_two_figures_share_the_error_of_a_case(rigs: tuple[Model, Model]) -> None:
    rigs[0].cycles, rigs[1].cycles = 230, 200
    found = decided(compare(rigs, allowance=Allowances(HIGHER, HIGHER.of_cost, cycles_named=True), repeats=1)[0])
    assert (found.decision, found.figure, found.pairs) == ("REGRESSED", "cycles_per_packet", 10)
    assert str(found.note).startswith("the rate has not changed")


def test_a_base_with_idle_share_can_be_fallen_short_of(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[1].idle = 4.5e6, True
    assert decided(compare(rigs)[0]).decision == "REGRESSED"
