# SPDX-License-Identifier: BSD-3-Clause
"""Tells whether launches depend on those before them, and by how much that widens an interval. Pure.

An interval over launches that treats them as independent is too narrow if what disturbs one launch still disturbs the
next. The model is a first-order autoregression of the launches' normal scores (Blom, "Statistical Estimates and
Transformed Beta-Variables", 1958), so that neither outliers nor skew look like dependence. The correlation is not
estimated and then taken for true, since a short series tells little about it. It is averaged over by Bayes' rule:
``PRIOR`` says how likely each correlation was before the series was seen, and the exact likelihood (Box and Jenkins,
"Time Series Analysis", 7.1) how likely it is afterwards. Level and spread are integrated out, as Zellner does ("An
Introduction to Bayesian Inference in Econometrics", 7.2).

``benchmarks/validation`` shows by simulation what follows from the prior: the coverage for correlations from 0 to 0.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, Estimate

#: Correlations of neighbouring launches that are considered, and the probability of each before a series is seen. Those
#: of dependence shrink with the number of launches below ``FEWEST_TELLING``. Otherwise what is not known of few
#: launches would make their intervals more than twice as wide, whether they depend on each other or not.
PRIOR = ((0.0, 0.88), (0.5, 0.04), (0.8, 0.04), (0.97, 0.04))
#: The fewest launches that can tell dependence from chance: with fewer, independent and dependent ones look alike.
FEWEST_TELLING = 20
#: Launches depend on each other if that is more likely than not.
LIKELY = 0.5


@dataclass(frozen=True, slots=True)
class Dependence:
    """How launches depend on those before them.

    Attributes:
        correlation: of the normal scores of neighbouring launches, corrected for its bias; from -1 to 1.
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
    """Returns how the values depend on each other; None for fewer than six, and for equal ones.

    Args:
        values: in the order of time.
    """
    return _find_dependence(tuple(values))


@lru_cache(maxsize=64)  # a gate asks for the interval of a figure's launches, and for that of their ratio
def _find_dependence(values: tuple[float, ...]) -> Dependence | None:
    n = len(values)
    if n < FEWEST_LAUNCHES or min(values) == max(values):
        return None
    scores = normal_scores(values)
    models = [_Model.of(scores, correlation) for correlation, _ in PRIOR]
    greatest = max(model.log_likelihood for model in models)
    weights = [
        prior * math.exp(model.log_likelihood - greatest) for prior, model in zip(_priors(n), models, strict=True)
    ]
    total = math.fsum(weights)
    # Scores lie around 0: the mean square of the level over all models is that of the interval's half-width.
    square = math.fsum(w * (model.variance + model.level**2) for w, model in zip(weights, models, strict=True)) / total
    return Dependence(
        correlation=lag_one(scores),
        probability=1 - weights[0] / total,
        widening=max(math.sqrt(square / models[0].variance), 1.0),
    )


def _priors(n: int) -> list[float]:
    known = min(n / FEWEST_TELLING, 1.0)
    dependent = [weight * known for _, weight in PRIOR[1:]]
    return [1 - math.fsum(dependent), *dependent]


def widening(values: Sequence[float]) -> float:
    """Returns the factor by which dependence widens the interval over values in the order of time; at least 1."""
    dependence = find_dependence(values)
    return 1.0 if dependence is None else dependence.widening


def widened(estimate: Estimate, factor: float) -> Estimate:
    """Returns the estimate with both ends ``factor`` times as far away.

    The low end of a positive value moves on the scale of logarithms unless it is negative, so it never becomes that.
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
    n = len(values)
    order = sorted(range(n), key=lambda place: values[place])
    scores = [0.0] * n
    first = 0
    while first < n:
        last = first
        while last + 1 < n and values[order[last + 1]] == values[order[first]]:
            last += 1
        score = _score((first + last) / 2 + 1, n)
        for place in order[first : last + 1]:
            scores[place] = score
        first = last + 1
    return scores


@cache
def _score(rank: float, n: int) -> float:
    return NormalDist().inv_cdf((rank - 0.375) / (n + 0.25))


def lag_one(values: Sequence[float]) -> float:
    """Returns the correlation of neighbouring values, from -1 to 1, corrected for its bias in short series.

    The bias is that of an autoregression (Marriott and Pope, "Bias in the estimation of autocorrelations", Biometrika
    41, 1954). It takes four values that are not all equal.
    """
    n = len(values)
    mean = math.fsum(values) / n
    beyond = [value - mean for value in values]
    squares = math.fsum([value**2 for value in beyond])
    plain = math.fsum([before * after for before, after in pairwise(beyond)]) / squares
    return min(max((plain + 1 / n) / (1 - 3 / n), -1.0), 1.0)


class _Model(NamedTuple):
    """What scores say if neighbours have one correlation: a likelihood, and the level's mean and variance."""

    log_likelihood: float
    level: float
    variance: float

    @classmethod
    def of(cls, scores: Sequence[float], correlation: float) -> _Model:
        n, rest, first = len(scores), 1 - correlation, 1 - correlation * correlation
        steps = [after - correlation * before for before, after in pairwise(scores)]
        precision = first + (n - 1) * rest * rest
        level = (first * scores[0] + rest * math.fsum(steps)) / precision
        drawn = rest * level
        squares = first * (scores[0] - level) ** 2 + math.fsum([(step - drawn) ** 2 for step in steps])
        squares = max(squares, 1e-9)
        log_likelihood = (math.log(first) - math.log(precision) - (n - 1) * math.log(squares)) / 2
        return cls(log_likelihood, level, squares / (n - 1) / precision)
