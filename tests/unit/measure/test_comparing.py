# SPDX-License-Identifier: BSD-3-Clause
"""How long two versions take turns."""

from __future__ import annotations

import itertools
import math

import pytest

from pytest_icbench.measure.stopping import Allowances, Series, fewest_comparing, why_stop_comparing
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.verdict_rule import SESSION_ERROR, Allowance, decide_pairs

HIGHER = Allowance("higher")
ANY = Allowance("higher", 1e-9)


def why(
    ratios: list[float], *, launched: int | None = None, left_s: float = 9.0, repeats: int | None = None
) -> str | None:
    series = [Series(tuple(ratios), HIGHER)]
    return why_stop_comparing(launched or len(ratios), series, Settings(repeats=repeats), 1, left_s)


@pytest.mark.parametrize(
    ("repeats", "cases", "pairs"), [(None, 1, 9), (None, 5, 11), (None, 100, 16), (3, 1, 9), (20, 5, 20)]
)
def test_a_session_with_more_cases_takes_more_pairs(repeats: int | None, cases: int, pairs: int) -> None:
    assert fewest_comparing(Settings(repeats=repeats), cases) == pairs


def test_pairs_end_when_they_are_enough_twice() -> None:
    narrow = [1.0, 1.001, 0.999] * 3
    assert why(narrow[:8]) is None
    assert why(narrow) == "precision"
    assert why([0.9, 1.1, 0.8, 1.3, 1.0, 1.2, 1.0, 0.9, 1.1]) is None
    assert why([0.9, 1.15, 1.0, 1.3] * 3) is None


def test_the_time_ends_them_once_they_are_enough_for_the_level() -> None:
    wide = [0.5, 2.0, 0.8, 1.2] * 3
    assert why(wide[:8], left_s=-1) is None
    assert why(wide[:9], left_s=-1) == "max-duration"
    assert why(wide[:9], left_s=1) is None


def test_a_fixed_number_is_that_of_pairs_in_one_state() -> None:
    assert why([1.0] * 8, launched=11, repeats=12) is None
    assert why([1.0] * 12, launched=15, repeats=12) == "repeats"
    assert why([1.0] * 3, launched=24, repeats=12) == "repeats"
    assert why([], launched=24, repeats=12) == "repeats"


def test_both_figures_have_to_be_narrow() -> None:
    wide, narrow = Series((0.8, 1.3, 1.0) * 4, HIGHER), Series((1.0, 1.001) * 6, HIGHER.of_cost)
    assert why_stop_comparing(12, [wide, narrow], Settings(), 1, 9.0) is None
    assert why_stop_comparing(12, [narrow, narrow], Settings(), 1, 9.0) == "precision"


@pytest.mark.parametrize("sizes", [[0.01] * 11, [0.003 * place for place in range(1, 12)], [0.001] * 8 + [0.1] * 3])
def test_series_that_end_by_their_sizes_flag_as_rarely_as_promised(sizes: list[float]) -> None:
    """Every exchange of labels ends at the same pair, and is flagged as rarely as the level says."""
    ends, flagged = set(), 0
    for signs in itertools.product((1, -1), repeat=len(sizes)):
        ratios = [math.exp(sign * size) for sign, size in zip(signs, sizes, strict=True)]
        pairs = next((end for end in range(9, 11) if why(ratios[:end])), 11)
        ends.add(pairs)
        flagged += decide_pairs(ratios[:pairs], ANY, 1).outcome == "worse"
    assert len(ends) == 1
    assert flagged / 2 ** len(sizes) <= SESSION_ERROR


def test_cycles_may_rise_by_as_much_as_a_rate_may_fall() -> None:
    allowed = Allowances.of(Allowance("higher", 0.2))
    assert allowed.cycles.better == "lower"
    assert allowed.cycles.share == pytest.approx(0.25)
    assert not allowed.cycles_named
