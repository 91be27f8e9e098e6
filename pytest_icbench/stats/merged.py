# SPDX-License-Identifier: BSD-3-Clause
"""Computes the interval of a figure of all launches taken together, such as a percentile of their round trips. Pure.

The median over launches is another quantity: a percentile of all round trips lies where the slowest launches are. What
a launch contributes is told by leaving it out (the grouped jackknife: Tukey, "Bias and confidence in not-quite large
samples", Annals of Mathematical Statistics 29, 1958; Shao and Tu, "The Jackknife and Bootstrap", 2.3), on the scale of
logarithms, since such figures are positive and skewed. The interval is Student's over the contributions. A sample
seldom holds the slowest launches that there can be, so the high arm is ``UPWARD`` times as long, a factor chosen by the
simulations of ``benchmarks/validation``. Neither end lies beyond all samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_icbench.stats.dependence import widening
from pytest_icbench.stats.quantiles import CONFIDENCE, FEWEST_LAUNCHES, Estimate
from pytest_icbench.stats.student import student_quantile

#: Length of the arm towards greater values over that of the other arm.
UPWARD = 1.3


def over_merged(
    whole: float,
    without: Sequence[float],
    samples: tuple[float, float] = (0.0, math.inf),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Returns the figure of all launches with its interval; without one below six launches, and if some are 0.

    Args:
        whole: the figure of all launches together.
        without: the figure of all launches but one, for each launch in the order of time.
        samples: the least and the greatest sample of all launches.
    """
    n = len(without)
    if n >= FEWEST_LAUNCHES and min(without) == max(without) == whole:
        return Estimate(whole, whole, whole, confidence)
    if n < FEWEST_LAUNCHES or min(whole, *without) <= 0:
        return Estimate(whole)
    logs = [math.log(value) for value in without]
    centre = math.log(whole)
    # About the whole and not about the mean: a percentile of counts moves to one side only.
    error = math.sqrt((n - 1) / n * math.fsum((value - centre) ** 2 for value in logs))
    arm = student_quantile(n - 1, (1 + confidence) / 2) * error * widening([-value for value in logs])
    least, greatest = samples
    low = max(math.exp(centre - arm), min(least, whole))
    return Estimate(whole, low, min(math.exp(min(centre + UPWARD * arm, 700.0)), max(greatest, whole)), confidence)
