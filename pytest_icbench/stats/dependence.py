# SPDX-License-Identifier: BSD-3-Clause
"""Estimates how launches depend on those before them and by how much that widens an interval; finds a drift. Pure.

An interval for independent launches is too narrow if a disturbance lasts from one launch to the next. With 20 to 40
launches whose neighbours correlate by 0.6, it holds the truth in 73 % of sessions. If the correlation is estimated and
taken for exact, it does so in 88 to 91 %. Turns and states remove most of the dependence: neighbours of 60 launches in
turn correlated by -0.1 to 0.3. But a case can run alone, or while a compiler runs.

The model is a first-order autoregression of the launches' normal scores (Blom, "Statistical Estimates and Transformed
Beta-Variables", 1958), so that neither outliers nor skew look like dependence. The result is averaged over several
correlations by Bayes' rule: ``PRIOR`` has the prior probability of each, and the exact likelihood (Box and Jenkins,
"Time Series Analysis", 7.1) gives the posterior one. Level and spread are integrated out, as by Zellner
("An Introduction to Bayesian Inference in Econometrics", 7.2). ``benchmarks/validation`` shows the coverage.

A drift is a line. Its slope is the median of the slopes between all two values (Theil 1950; Sen, "Estimates of the
regression coefficient based on Kendall's tau", Journal of the American Statistical Association 63, 1968), and it counts
if Kendall's test is significant (Mann, "Nonparametric tests against trend", Econometrica 13, 1945). Both are robust to
outliers. The series has to drift without its first value too, since a first launch is often slow.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from statistics import NormalDist

from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, Estimate, median

#: Correlations of neighbouring launches with their prior probabilities. Those of dependence shrink in proportion with
#: fewer than ``FEWEST_DECIDING`` launches. Otherwise the uncertainty of few launches would more than double the width
#: of their intervals, dependent or not.
PRIOR = ((0.0, 0.88), (0.5, 0.04), (0.8, 0.04), (0.97, 0.04))
#: The fewest launches that show dependence: with fewer, dependence and chance look the same.
FEWEST_DECIDING = 20
#: Launches depend on each other if that is more likely than not.
LIKELY = 0.5
#: Greatest share of false alarms among series without drift.
FALSE_ALARMS = 0.05
#: A line describes the series badly if its residuals are correlated: if von Neumann's ratio ("Distribution of the
#: ratio of the mean square successive difference to the variance", Annals of Mathematical Statistics 12, 1941) is this
#: many standard deviations below its mean.
WANDERING = 0.5


@dataclass(frozen=True, slots=True)
class Dependence:
    """The dependence of launches on those before them.

    Attributes:
        correlation: of the normal scores of neighbouring launches, averaged over ``PRIOR`` by posterior probability.
        probability: of any dependence at all, from 0 to 1.
        widening: the factor, at least 1, by which the interval of independent launches is widened.
    """

    correlation: float
    probability: float
    widening: float

    @property
    def likely(self) -> bool:
        """Whether dependence is more likely than independence."""
        return self.probability > LIKELY


def find_dependence(values: Sequence[float]) -> Dependence | None:
    """Returns the dependence of values in the order of time; None for fewer than six values, or equal ones."""
    return _find_dependence(tuple(values))


@lru_cache(maxsize=64)  # a look asks for the interval and for the dependence, of all launches and of all but the last
def _find_dependence(values: tuple[float, ...]) -> Dependence | None:
    n = len(values)
    if n < FEWEST_LAUNCHES or min(values) == max(values):
        return None
    scores = normal_scores(values)
    models = [_model(scores, correlation) for correlation, _ in PRIOR]
    greatest = max(log_likelihood for log_likelihood, _, _ in models)
    known = min(n / FEWEST_DECIDING, 1.0)
    priors = [1 - known * (1 - PRIOR[0][1]), *(known * prior for _, prior in PRIOR[1:])]
    weights = [prior * math.exp(model[0] - greatest) for prior, model in zip(priors, models, strict=True)]
    shares = [weight / math.fsum(weights) for weight in weights]
    # Scores lie around 0: the mean square of the level over all models is that of the interval's half-width.
    square = math.fsum(p * (variance + level**2) for p, (_, level, variance) in zip(shares, models, strict=True))
    return Dependence(
        correlation=math.fsum(p * correlation for p, (correlation, _) in zip(shares, PRIOR, strict=True)),
        probability=1 - shares[0],
        widening=max(math.sqrt(square / models[0][2]), 1.0),
    )


def widening(values: Sequence[float]) -> float:
    """Returns the factor by which dependence widens the interval over values in the order of time; at least 1."""
    dependence = find_dependence(values)
    return 1.0 if dependence is None else dependence.widening


def widened(estimate: Estimate, factor: float) -> Estimate:
    """Returns the estimate with both half-widths multiplied by a factor.

    The low end of a positive value is computed on the scale of logarithms, so that it stays positive.
    """
    if estimate.low is None or estimate.high is None or factor == 1:
        return estimate
    value = estimate.value
    on_logarithms = value > 0 and estimate.low >= 0
    low = value * (estimate.low / value) ** factor if on_logarithms else value - factor * (value - estimate.low)
    return Estimate(value, low, value + factor * (estimate.high - value), estimate.coverage)


def normal_scores(values: Sequence[float]) -> list[float]:
    """Returns the value that a sample of the standard normal distribution has at each rank; ties share their mean rank.

    The scores have mean 0 but for ties.
    """
    ordered, n = sorted(values), len(values)
    ranks = [(bisect_left(ordered, value) + 1 + bisect_right(ordered, value)) / 2 for value in values]
    return [NormalDist().inv_cdf((rank - 0.375) / (n + 0.25)) for rank in ranks]


def _model(scores: Sequence[float], correlation: float) -> tuple[float, float, float]:
    """Returns the log-likelihood, and the level's mean and variance, for a correlation of neighbours."""
    n, rest, first = len(scores), 1 - correlation, 1 - correlation * correlation
    steps = [after - correlation * before for before, after in pairwise(scores)]
    precision = first + (n - 1) * rest * rest
    level = (first * scores[0] + rest * math.fsum(steps)) / precision
    squares = first * (scores[0] - level) ** 2 + math.fsum((step - rest * level) ** 2 for step in steps)
    squares = max(squares, 1e-9)
    log_likelihood = (math.log(first) - math.log(precision) - (n - 1) * math.log(squares)) / 2
    return log_likelihood, level, squares / (n - 1) / precision


def drift(values: Sequence[float]) -> float | None:
    """Returns the change from the first value to the last over the level, if the values drift along a line.

    None if not, or below six values. A level that wanders is no drift.
    """
    n = len(values)
    level = median(values) if values else 0.0
    if n < FEWEST_LAUNCHES or not level or not (_climbs(values) and _climbs(values[1:])):
        return None
    slope = median([(values[last] - values[first]) / (last - first) for first, last in combinations(range(n), 2)])
    residuals = [value - slope * index for index, value in enumerate(values)]
    mean = math.fsum(residuals) / n
    squares = math.fsum((residual - mean) ** 2 for residual in residuals)
    if squares > 1e-18 * math.fsum(value * value for value in values):  # else zero but for rounding
        successive = math.fsum((after - before) ** 2 for before, after in pairwise(residuals))
        if successive / squares < 2 - WANDERING * 2 * math.sqrt((n - 2) / (n * n - 1)):
            return None
    return slope * (n - 1) / abs(level)


def _climbs(values: Sequence[float]) -> bool:
    """Whether the values rise or fall significantly along the series (two-sided, ``FALSE_ALARMS``)."""
    score = sum((after > before) - (after < before) for before, after in combinations(values, 2))
    return abs(score) >= critical_score(len(values))


def critical_score(n: int) -> int:
    """Returns the critical value of Kendall's score: rises less falls among all pairs of n values.

    It is the normal approximation with a continuity correction of one, as scores differ by two. From five values on it
    is never below the exact one.
    """
    spread = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return math.ceil(NormalDist().inv_cdf(1 - FALSE_ALARMS / 2) * spread + 1)
