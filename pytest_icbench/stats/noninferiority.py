# SPDX-License-Identifier: BSD-3-Clause
"""Now against before: is a figure worse by more than is tolerated? Pure: numbers in, an answer out.

The interface, for a baseline, for two versions side by side and for simulations alike:

1. ``ratio_of(now, before)`` is now over before with its interval, from two ``Figure``s. Launches that ran next to each
   other have ``stats.paired`` instead.
2. ``Margin(better, tolerated, allowance)`` says what is allowed.
3. ``margin.change(ratio)`` is better, tolerable, worse or untold; the verdict on each is in ``model.verdict``.
4. ``launches_until_told(...)`` says how many launches an untold one still needs.

This is a test of non-inferiority (Piaggio and others, "Reporting of noninferiority and equivalence randomized trials",
JAMA 308, 2012): a wide interval can neither accuse nor acquit. *Worse* means that the whole interval is worse than the
margin, so it is wrong for half the interval's error at most (2.5 %), and by far less without any change; *tolerable*
means that the whole interval is better than the margin, so that an actual loss beyond it goes through as rarely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, unpaired_ratio

#: Which way a figure is better.
Better = Literal["higher", "lower"]
#: What a figure did against its baseline.
Change = Literal["better", "tolerable", "worse", "untold"]

#: What figures of one and the same thing differ by from session to session, unless ``thresholds.toml`` says otherwise;
#: ``icbench calibrate`` measures it.
DEFAULT_ALLOWANCE = 0.03
#: Beyond so many launches an answer is out of reach: the figure lies at the limit.
MOST_LAUNCHES = 100_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of one side.

    Attributes:
        value, low, high: the figure and its interval; None where there are too few launches for one.
        launches: the figure of each launch, empty where it is not known: the interval decides alone then.
    """

    value: float
    low: float | None = None
    high: float | None = None
    launches: tuple[float, ...] = ()


def ratio_of(now: Figure, before: Figure, confidence: float = CONFIDENCE) -> Estimate | None:
    """Now over before with its interval; None if before is not positive.

    Mann and Whitney's interval where both sides know their launches, since it is narrower; else the quotient of the
    intervals' ends, which covers at least what they cover.
    """
    if now.launches and before.launches and min(before.launches) > 0:
        return unpaired_ratio(now.launches, before.launches, confidence)
    if before.value <= 0:
        return None
    value = now.value / before.value
    if None in (now.low, now.high, before.low, before.high) or not before.low or not before.high:
        return Estimate(value)
    assert now.low is not None
    assert now.high is not None
    return Estimate(value, now.low / before.high, now.high / before.low, confidence)


@dataclass(frozen=True, slots=True)
class Margin:
    """What is allowed.

    Attributes:
        better: which way the figure is better.
        tolerated: a worsening that is accepted, as a share of before (``max_drop``, ``max_rise``).
        allowance: what noise between two sessions does, as a share; both ways.
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
        """The ratio beyond which a change is a gain and no noise."""
        return 1 + self.allowance if self.better == "higher" else 1 - self.allowance

    def change(self, found: Estimate | None) -> Change:
        """What a ratio of now to before says; without an interval it tells nothing."""
        if found is None or found.low is None or found.high is None:
            return "untold"
        worst, best = (found.low, found.high) if self.better == "higher" else (found.high, found.low)
        if self._beyond(worst, self.improvement):
            return "better"
        if not self._beyond(self.limit, worst):
            return "tolerable"
        return "worse" if self._beyond(self.limit, best) else "untold"

    def _beyond(self, ratio: float, other: float) -> bool:
        """Whether a ratio is better than another."""
        return ratio > other if self.better == "higher" else ratio < other


def launches_until_told(found: Estimate | None, limit: float, launches: int, fixed_share: float = 0.0) -> int | None:
    """How many launches more until an interval that contains its limit lies on one side of it, as an estimate.

    An interval's width goes with 1 / sqrt(launches); its point is taken to stay where it is.

    Args:
        found: the estimate; ``limit`` is in its unit.
        launches: on which its interval stands.
        fixed_share: part of the squared width that further launches do not narrow: that of a baseline.

    Returns:
        At least 1; None if no number of launches will do: the figure is at the limit, or the fixed part is too wide.
    """
    if found is None or found.low is None or found.high is None or launches < 1:
        return None
    distance = abs(found.value - limit)
    reach = found.value - found.low if found.value >= limit else found.high - found.value
    if distance == 0 or reach <= 0 or not math.isfinite(reach):
        return None
    left = (distance / reach) ** 2 - fixed_share
    if left <= 0:
        return None
    needed = launches * (1 - fixed_share) / left
    return max(math.ceil(needed) - launches, 1) if needed <= MOST_LAUNCHES else None


def fixed_share(now: Figure, before: Figure) -> float:
    """Part of the squared width of ``ratio_of`` that comes from before, from 0 to 1."""
    own, fixed = (_relative_width(figure) ** 2 for figure in (now, before))
    return fixed / (own + fixed) if own + fixed > 0 else 0.0


def _relative_width(figure: Figure) -> float:
    if figure.low is None or figure.high is None or figure.value <= 0:
        return 0.0
    return (figure.high - figure.low) / figure.value
