# SPDX-License-Identifier: BSD-3-Clause
"""The ratio of figures that were measured in adjacent pairs."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.stats.intervals import MOST_EXACT, estimate_ratio, fewest_pairs, signed_rank
from pytest_icbench.stats.quantiles import quotients

POSITIVE = st.floats(1e-3, 1e9)


@pytest.mark.parametrize(
    ("n", "confidence", "rank", "coverage"),
    # P(T <= t) of Wilcoxon's table: n = 6: 1/64; n = 8: P(T <= 3) = 5/256; n = 10: P(T <= 8) = 25/1024.
    [(6, 0.95, 1, 1 - 2 / 64), (8, 0.95, 4, 1 - 10 / 256), (10, 0.95, 9, 1 - 50 / 1024), (5, 0.9, 1, 1 - 2 / 32)],
)
def test_ranks_are_those_of_the_tables(n: int, confidence: float, rank: int, coverage: float) -> None:
    found = signed_rank(n, confidence)
    assert found is not None
    assert found[0] == rank
    assert found[1] == pytest.approx(coverage)


def test_too_few_pairs_have_no_interval() -> None:
    assert signed_rank(5) is None
    found = estimate_ratio([0.5] * 5)
    assert (found.value, found.low, found.high) == (0.5, None, None)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.966, 0.98, 0.999, 1 - 2e-6])
def test_the_fewest_pairs_are_just_enough(confidence: float) -> None:
    fewest = fewest_pairs(confidence)
    assert signed_rank(fewest, confidence) is not None
    assert signed_rank(fewest - 1, confidence) is None


def test_the_approximation_continues_the_exact_ranks() -> None:
    exact, beyond = signed_rank(MOST_EXACT), signed_rank(MOST_EXACT + 1)
    assert exact is not None
    assert beyond is not None
    assert beyond[0] == pytest.approx(exact[0] * ((MOST_EXACT + 1) / MOST_EXACT) ** 2, rel=0.02)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=6, max_size=12))
def test_the_other_way_round_is_the_inverse(pairs: list[tuple[float, float]]) -> None:
    now, before = zip(*pairs, strict=True)
    one, other = estimate_ratio(quotients(now, before)), estimate_ratio(quotients(before, now))
    assert one.value == pytest.approx(1 / other.value, rel=1e-9)
    assert one.low is not None
    assert other.high is not None
    assert one.low == pytest.approx(1 / other.high, rel=1e-9)
    assert one.low <= one.value <= (one.high or 0)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=6, max_size=9), st.floats(0.1, 10), st.floats(0.1, 10))
def test_what_moves_both_of_a_pair_moves_nothing(pairs: list[tuple[float, float]], drift: float, scale: float) -> None:
    now, before = zip(*pairs, strict=True)
    moved = [drift ** (place / 5) for place in range(len(pairs))]
    plain = estimate_ratio(quotients(now, before))
    both = [scale * a * m for a, m in zip(now, moved, strict=True)], [b * m for b, m in zip(before, moved, strict=True)]
    found = estimate_ratio(quotients(*both))
    assert found.value == pytest.approx(scale * plain.value, rel=1e-6)
    assert found.high == pytest.approx(scale * (plain.high or 0), rel=1e-6)


def test_the_interval_covers_exactly_as_often_as_it_says() -> None:
    """All signs of seven quotients whose sizes differ: each is as likely as the next."""
    sizes = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64]
    held = 0
    for signs in itertools.product((1, -1), repeat=len(sizes)):
        found = estimate_ratio([math.exp(s * size) for s, size in zip(signs, sizes, strict=True)])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 <= found.high
    rank = signed_rank(len(sizes))
    assert rank is not None
    assert held / 2 ** len(sizes) == pytest.approx(rank[1])


def test_many_pairs_tolerate_outliers() -> None:
    random = Random(4)
    now = [0.95 * random.gauss(1, 0.005) for _ in range(20)]
    now[3] = now[11] = 0.6
    found = estimate_ratio(quotients(now, [random.gauss(1, 0.005) for _ in range(20)]))
    assert found.high is not None
    assert 0.93 < found.value < 0.96
    assert found.high < 0.97


@pytest.mark.parametrize(("now", "before"), [([], []), ([1.0, 2.0], [1.0]), ([1.0], [0.0]), ([0.0], [1.0])])
def test_what_is_no_pairs_is_refused(now: list[float], before: list[float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        estimate_ratio(quotients(now, before))
