# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether a figure is worse than before by more than is tolerated. Pure: numbers in, an answer out.

The interface is the same for a baseline, for two versions side by side and for simulations:

1. ``ratio_of(now, before)`` is now over before with its interval, from two ``Figure``s. Launches that ran in adjacent
   pairs use ``stats.paired`` instead.
2. ``Margin(better, tolerated, allowance)`` is how much worse the figure may be.
3. ``margin.change(ratio)`` is better, tolerable, worse or untold; ``model.verdict`` has the verdict on each.
4. ``launches_until_told(...)`` is how many more launches an untold change needs.

This is a test of non-inferiority (Piaggio and others, "Reporting of noninferiority and equivalence randomized trials",
JAMA 308, 2012): a wide interval can neither accuse nor acquit. *Worse* means that the whole interval is worse than the
margin. It is wrong with at most half the interval's error (2.5 %), and far more rarely if nothing changed. *Tolerable*
means that the whole interval is better than the margin, so that an actual loss beyond it passes just as rarely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_icbench.stats.dependence import widened, widening
from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.stats.quantiles import CONFIDENCE, FEWEST_LAUNCHES, Estimate, unpaired_ratio

#: The direction in which a figure is better.
Better = Literal["higher", "lower"]
#: How a figure changed against its baseline.
Change = Literal["better", "same", "worse", "open"]

#: The share by which figures of the same software differ from session to session, unless ``thresholds.toml`` says
#: otherwise; ``icbench calibrate`` measures it.
DEFAULT_ALLOWANCE = 0.03
#: An answer that takes more further launches than this, half an hour of them, is out of reach.
MOST_LAUNCHES = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, now or before, with its launches.

    Attributes:
        value, low, high: the figure and its interval, of a search its bounds; None where there are too few launches.
        launches: the figure of each launch; empty where they are not known, and the interval alone decides.
        best: the ninth decile of the launches that nobody disturbed, from the worst; None of fewer than eight.
    """

    value: float
    low: float | None = None
    high: float | None = None
    launches: tuple[float, ...] = ()
    best: float | None = None


def ratio_of(now: Figure, before: Figure, confidence: float = CONFIDENCE) -> Estimate | None:
    """Returns now over before with its interval; None if before is not positive.

    The interval is Mann and Whitney's where the launches of both figures are known, because it is narrower; launches
    that depend on each other widen it. Fewer than six launches of a side give none. Otherwise it is the quotient of the
    intervals' ends, which covers at least what they cover.
    """
    if now.launches and before.launches and min(before.launches) > 0:
        ratio = unpaired_ratio(now.launches, before.launches, confidence)
        if min(len(now.launches), len(before.launches)) < FEWEST_LAUNCHES:
            return Estimate(ratio.value)
        return widened(ratio, joint_widening(now.launches, before.launches))
    if before.value <= 0:
        return None
    value = now.value / before.value
    if None in (now.low, now.high, before.low, before.high) or not before.low or not before.high:
        return Estimate(value)
    assert now.low is not None
    assert now.high is not None
    return Estimate(value, now.low / before.high, now.high / before.low, confidence)


def joint_widening(now: Sequence[float], before: Sequence[float]) -> float:
    """Returns the factor, at least 1, by which dependence widens the interval of the ratio of two sides' medians.

    Each side's factor counts by the share that the side has in the squared width.

    Args:
        now, before: at least six positive launches of a side, in the order of time.
    """
    widths = [interpolated(side, CONFIDENCE).relative_half_width or 0.0 for side in (now, before)]
    total = math.fsum(width * width for width in widths)
    if not 0 < total < math.inf:
        return 1.0
    wide = math.fsum((width * widening(side)) ** 2 for width, side in zip(widths, (now, before), strict=True))
    return math.sqrt(wide / total)


@dataclass(frozen=True, slots=True)
class Margin:
    """The share by which a figure may be worse than before.

    Attributes:
        better: the direction in which the figure is better.
        tolerated: the loss that is accepted, as a share of before (``max_drop``, ``max_rise``).
        allowance: the noise between two sessions, as a share, in both directions.
    """

    better: Better
    tolerated: float = 0.0
    allowance: float = DEFAULT_ALLOWANCE

    @property
    def limit(self) -> float:
        """The worst ratio of now to before that is still allowed."""
        share = self.tolerated + self.allowance
        return 1 - share if self.better == "higher" else 1 + share

    @property
    def improvement(self) -> float:
        """The ratio beyond which a change is a gain and not noise."""
        return 1 + self.allowance if self.better == "higher" else 1 - self.allowance

    @property
    def of_cost(self) -> Margin:
        """The margin of a cost a unit that allows as much as this one of a rate, which is one over the cost."""
        return Margin("lower", 1 / (1 - self.tolerated) - 1, self.allowance)

    def change(self, ratio: Estimate | None) -> Change:
        """Returns the change that a ratio of now to before shows; "open" without an interval."""
        if ratio is None or ratio.low is None or ratio.high is None:
            return "open"
        worst, best = (ratio.low, ratio.high) if self.better == "higher" else (ratio.high, ratio.low)
        if self._beyond(worst, self.improvement):
            return "better"
        if not self._beyond(self.limit, worst):
            return "same"
        return "worse" if self._beyond(self.limit, best) else "open"

    def _beyond(self, ratio: float, other: float) -> bool:
        """Whether a ratio is better than another one."""
        return ratio > other if self.better == "higher" else ratio < other


def launches_until_told(estimate: Estimate | None, limit: float, launches: int) -> int | None:
    """Estimates how many more launches it takes until an interval that contains its limit lies on one side of it.

    The width of an interval is taken to shrink with 1 / sqrt(launches), and its point to stay where it is.

    Args:
        estimate: the figure with its interval.
        limit: in the unit of the estimate.
        launches: the number of launches behind the interval.

    Returns:
        At least 1; None for more than ``MOST_LAUNCHES``, as where the figure is at the limit.
    """
    if estimate is None or estimate.low is None or estimate.high is None or launches < 1:
        return None
    distance = abs(estimate.value - limit)
    reach = estimate.value - estimate.low if estimate.value >= limit else estimate.high - estimate.value
    if distance == 0 or reach <= 0 or not math.isfinite(reach):
        return None
    narrowing = (distance / reach) ** 2
    needed = launches / narrowing if narrowing > 0 else math.inf
    return max(math.ceil(needed) - launches, 1) if needed - launches <= MOST_LAUNCHES else None
