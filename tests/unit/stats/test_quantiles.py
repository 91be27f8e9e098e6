# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles, intervals and histograms against brute force, simulation and published tables."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.stats.quantiles import (
    Estimate,
    Histogram,
    merge,
    quantile,
    quotients,
    stratified_rank,
    stratified_ratio,
)

rates = st.floats(min_value=1.0, max_value=1e8)
samples = st.lists(rates, min_size=1, max_size=40)


@given(samples)
def test_median_is_the_standard_librarys(values: list[float]) -> None:
    assert quantile(values, 0.5) == pytest.approx(statistics.median(values))


@given(samples, st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1))
def test_quantiles_lie_within_the_values_and_do_not_cross(values: list[float], p: float, q: float) -> None:
    low, high = sorted((p, q))
    tolerance = 1e-9 * max(values)
    assert min(values) <= quantile(values, low) <= quantile(values, high) + tolerance
    assert quantile(values, high) <= max(values)


# Critical values of U at 5 %, two-sided, plus one (Mann and Whitney's table).
@pytest.mark.parametrize(("n", "m", "rank"), [(4, 4, 1), (5, 5, 3), (6, 6, 6), (8, 8, 14), (10, 10, 24), (6, 10, 12)])
def test_ranks_are_those_of_mann_and_whitneys_table(n: int, m: int, rank: int) -> None:
    found = stratified_rank(((n, m),))
    assert found is not None
    assert found[0] == rank


def test_coverage_of_a_ratio_is_exact() -> None:
    """All ways in which seven ranks fall to samples of three and four, counted."""
    ranks = range(7)
    counts: dict[int, int] = {}
    for own in itertools.combinations(ranks, 3):
        u = sum(a > b for a in own for b in ranks if b not in own)
        counts[u] = counts.get(u, 0) + 1
    found = stratified_rank(((3, 4),), confidence=0.9)
    assert found is not None
    rank, coverage = found
    assert coverage == pytest.approx(1 - 2 * sum(counts[u] for u in range(rank)) / math.comb(7, 3))


def test_coverage_over_strata_is_exact() -> None:
    """All ways in which the ranks of two strata fall to their samples, counted."""

    def counted(n: int, m: int) -> list[int]:
        ranks = range(n + m)
        return [sum(a > b for a in own for b in ranks if b not in own) for own in itertools.combinations(ranks, n)]

    sums = [one + other for one in counted(3, 2) for other in counted(2, 4)]
    found = stratified_rank(((3, 2), (2, 4)), confidence=0.9)
    assert found is not None
    rank, coverage = found
    assert coverage == pytest.approx(1 - 2 * sum(total < rank for total in sums) / len(sums))
    assert 1 - 2 * sum(total < rank + 1 for total in sums) / len(sums) < 0.9


def test_values_of_different_strata_are_not_compared() -> None:
    """Most values of one side are of the slow stratum, so its median is the lower one, and its ratio is above 1."""
    fast, slow = [10.0, 10.1, 10.2], [5.0, 5.1, 5.2]
    ratio = stratified_ratio([([1.1 * value for value in fast[:1]], fast), ([1.1 * value for value in slow], slow[:1])])
    assert ratio == pytest.approx(1.1, rel=0.03)


def test_many_strata_have_the_ranks_of_the_normal_distribution() -> None:
    exact, approximate = stratified_rank(((50, 50), (70, 70))), stratified_rank(((70, 70), (72, 73)))
    assert exact is not None
    assert approximate is not None
    assert exact[0] / (50 * 50 + 70 * 70) == pytest.approx(approximate[0] / (70 * 70 + 72 * 73), abs=0.02)


@given(st.lists(rates, min_size=6, max_size=20), st.floats(min_value=0.1, max_value=10))
def test_a_constant_factor_is_found_exactly_when_paired(values: list[float], factor: float) -> None:
    estimate = interpolated(quotients([value * factor for value in values], values))
    assert estimate.value == pytest.approx(factor)
    assert estimate.low == pytest.approx(factor)
    assert estimate.high == pytest.approx(factor)


@given(st.lists(rates, min_size=6, max_size=12), st.lists(rates, min_size=6, max_size=12))
def test_an_unpaired_ratio_is_the_inverse_of_its_inverse(above: list[float], below: list[float]) -> None:
    there, back = stratified_ratio([(above, below)]), stratified_ratio([(below, above)])
    assert there.low is not None
    assert back.high is not None
    assert there.low == pytest.approx(1 / back.high)
    assert there.low <= there.value <= (there.high or 0)


@pytest.mark.parametrize(
    "ratio",
    [
        lambda: quotients([1.0], [1.0, 2.0]),
        lambda: quotients([1.0], [0.0]),
        lambda: stratified_ratio([([], [1.0])]),
        lambda: stratified_ratio([([1.0], [-1.0])]),
        lambda: quantile([], 0.5),
        lambda: quantile([1.0], 1.5),
    ],
)
def test_what_has_no_answer_is_refused(ratio: object) -> None:
    with pytest.raises(ValueError, match=r"\w+ .*"):
        ratio()  # type: ignore[operator]


def test_the_relative_half_width_is_half_the_width_over_the_value() -> None:
    assert Estimate(100, 97, 103, 0.95).relative_half_width == pytest.approx(0.03)
    assert Estimate(0, 0, 0, 0.95).relative_half_width == 0
    assert Estimate(0, 0, 1, 0.95).relative_half_width == math.inf
    assert Estimate(1).relative_half_width is None
    assert Estimate(2, 1, 3, 0.95).scaled(2) == Estimate(4, 2, 6, 0.95)


def histogram(values: list[int], lost: int = 0) -> Histogram:
    counts = tuple((value, values.count(value)) for value in sorted(set(values)))
    mean = statistics.fmean(values) if values else None
    return Histogram(counts, min(values, default=None), max(values, default=None), mean, 3, lost)


times = st.lists(st.integers(min_value=1, max_value=10**9), max_size=60)


@given(st.lists(times, min_size=1, max_size=5))
def test_merging_is_counting_everything_together(launches: list[list[int]]) -> None:
    merged = merge([histogram(values) for values in launches])
    every = [value for values in launches for value in values]
    assert merged is not None
    assert (merged.counts, merged.minimum, merged.maximum) == (
        histogram(every).counts,
        min(every, default=None),
        max(every, default=None),
    )
    assert merged.mean == (pytest.approx(statistics.fmean(every)) if every else None)


@given(st.lists(st.integers(min_value=1, max_value=1000), min_size=20, max_size=300), st.sampled_from([0.5, 0.9, 0.95]))
def test_percentiles_are_order_statistics(values: list[int], q: float) -> None:
    found = histogram(values).percentile(q)
    if round(len(values) * (1 - q), 6) < 10:
        assert found is None
    else:
        assert found == sorted(values)[math.ceil(round(len(values) * q, 6)) - 1]


@pytest.mark.parametrize(
    ("samples", "q", "given"),
    [(20, 0.5, True), (19, 0.5, False), (1000, 0.99, True), (999, 0.99, False), (100_000, 0.9999, True)],
)
def test_a_percentile_wants_ten_samples_beyond_it(samples: int, q: float, given: bool) -> None:
    found = Histogram(((7, samples),), 7, 7, 7.0, 3).percentile(q)
    assert (found is not None) is given


def test_lost_frames_are_slower_than_every_sample() -> None:
    answered = list(range(1, 101))
    assert histogram(answered).percentile(0.5) == 50
    assert histogram(answered, lost=20).percentile(0.5) == 60
    assert histogram(answered, lost=100).percentile(0.5) == 100
    assert histogram(answered, lost=101).percentile(0.5) is None


def test_nothing_merges_to_nothing() -> None:
    assert merge([]) is None
    empty = merge([histogram([], lost=3), histogram([])])
    assert empty is not None
    assert (empty.count, empty.lost, empty.mean) == (0, 3, None)


@given(st.lists(st.integers(min_value=1, max_value=1000), min_size=20, max_size=300))
def test_variation_is_delay_less_the_least(values: list[int]) -> None:
    found, shifted = histogram(values), histogram([value - min(values) for value in values])
    less = found.less_minimum()
    assert (less.counts, less.minimum, less.maximum) == (shifted.counts, 0, shifted.maximum)
    assert less.mean == pytest.approx(shifted.mean)
    assert less.percentile(0.5) == shifted.percentile(0.5)


def test_nothing_varies_without_samples() -> None:
    assert histogram([], lost=30).less_minimum() == histogram([], lost=30)
    # The least sample lies within its bucket; the variation is never below zero.
    coarse = Histogram(((2047, 5), (4095, 15)), 2000, 4000, 3000.0, 1)
    assert coarse.less_minimum().counts == ((47, 5), (2000, 15))


def test_many_launches_take_the_normal_approximation_and_it_is_near() -> None:
    exact, approximate = stratified_rank(((100, 100),)), stratified_rank(((100, 101),))
    assert exact is not None
    assert approximate is not None
    assert abs(exact[0] - approximate[0]) < 100
    few = stratified_rank(((1, 20_000),))
    assert few is not None
    assert few[0] == 500


def test_an_estimate_is_a_number_with_its_interval() -> None:
    found = Estimate(5.0, 4.0, 6.0)
    assert (found > 4.5, found / 2, float(found), f"{found:.1f}", str(found)) == (True, 2.5, 5.0, "5.0", "5.0")
    assert found == 5.0
    assert found != Estimate(5.0)
    assert found == pickle.loads(pickle.dumps(found))
    assert json.dumps([found]) == "[5.0]"
    assert {found, 5.0} == {5.0}
    assert repr(found) == "5.0"  # as pytest shows it where an assertion fails
