# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether a figure got worse: the two methods of the gate, and all their constants. Pure.

Method 1, ``decide_pairs``: is the candidate slower than the base, both launched here? The unit is a pair of rebuilt
rigs, which counts by its ratio of candidate to base. The test is Wilcoxon's signed-rank test of no change. Estimate and
interval are Hodges and Lehmann's and Tukey's, from the same ranks (``stats.intervals``). A coin for each pair decides
which of the two is built last and launched first. Without a change, the two labels of a pair could be exchanged, so
all patterns of signs are equally likely. The test is therefore exact whatever the host does: drift, states, heavy tails
and dependent pairs change the sizes of the ratios, but never the signs. Rules that drop pairs or end the series may use
the sizes alone (``is_narrow``).

Method 2, ``decide_session``: is today slower than the sessions before? One value a session, and Student's interval of
the prediction of one more (``stats.sessions``).

*Worse* needs a significant change and an estimated loss of at least the allowance. The significance level is divided by
the number of a session's cases (Bonferroni). So a session without a change has any *worse* with a probability of at
most ``SESSION_ERROR``, and any *better* likewise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

from pytest_icbench.stats.intervals import (
    Spread,
    change_half_width,
    estimate_change_of_level,
    estimate_ratio,
    estimate_spread,
    fewest_pairs,
)
from pytest_icbench.stats.quantiles import CONFIDENCE, MOST, Estimate, quantile
from pytest_icbench.verdict_reasons import Reason

#: Greatest probability that a session without a change has any REGRESSED; the same for IMPROVED. With one session a
#: night it is one false alarm in three months.
SESSION_ERROR = 0.01
#: The loss that is allowed unless ``thresholds.toml`` says otherwise: layouts of compilers and linkers cause less
#: (Mytkowicz and others, "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009).
DEFAULT_ALLOWANCE = 0.03
#: Pairs end when the interval's half-width is this part of the allowance: an unchanged candidate then passes if the
#: estimate errs by less than 1.96 (1 - 0.45) / 0.45 = 2.4 standard errors. Where pairs vary by 4 % and time is for 54,
#: 0.91 of unchanged candidates pass (0.80 with 0.6), after 28 pairs instead of 17; where they vary by 1.5 %, all do.
NARROW = 0.45
#: Power at which the loss that a decision "finds" is computed, as clinical trials are planned (Julious, "Sample sizes
#: for clinical trials", 2010). A session is weak if its power for a loss of ``WEAK_LOSS`` is below ``WEAK_POWER``.
POWER, WEAK_LOSS, WEAK_POWER = 0.9, 0.1, 0.5
#: The fewest sessions that have a spread: two have a single difference.
FEWEST_SESSIONS = 3
#: Sessions that are advised: Student's quantile for a session of five cases is 16 with three of them, and 6 with five.
ENOUGH_SESSIONS = 5
#: The most sessions of a case that a baseline keeps: one more replaces the oldest. The standard error of their spread
#: is then 16 % of it, 1 / sqrt(2 · 19).
MOST_SESSIONS = 20
#: The most degrees of freedom of Student's interval over sessions. It keeps ``SESSION_ERROR`` even if the sessions'
#: levels have the tails of Student's three degrees, last until the retest, and differ from the control's. By simulation
#: of 5, 10 and 20 sessions (``benchmarks/validation``): 0.3, 0.8 and 0.6 %; without it up to 1.5 %.
MOST_FREEDOM = 7
#: A loss has to be found twice, by the session and by its retest, so each has the square root of the power.
LOOKS = 2
#: More pairs than this, about an hour of them, are not advised.
MOST_MORE = 1000

#: The direction in which a figure is better.
Better = Literal["higher", "lower"]
#: The result of a decision; "same": a loss of the allowance is excluded.
Outcome = Literal["worse", "same", "better", "open"]

_NORMAL = NormalDist()
#: The half-width of a normal interval in standard errors.
_HALF_WIDTH = _NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
#: Interquartile range of the absolute values of a standard normal variable.
_MIDDLE_OF_SIZES = _NORMAL.inv_cdf(0.875) - _NORMAL.inv_cdf(0.625)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much worse a figure may be.

    Attributes:
        better: the direction in which the figure is better.
        share: the loss that is allowed, as a share of the figure before; of a rate below 1.
    """

    better: Better
    share: float = DEFAULT_ALLOWANCE

    @property
    def limit(self) -> float:
        """The ratio to the figure before at which the loss is the allowance."""
        return 1 - self.share if self.better == "higher" else 1 + self.share

    @property
    def of_cost(self) -> Allowance:
        """The equivalent allowance of a cost per unit, which is the reciprocal of a rate."""
        return Allowance("lower", 1 / (1 - self.share) - 1)

    def loss(self, ratio: float) -> float:
        """Returns the share by which a ratio of now to before is worse; negative where it is better."""
        return 1 - ratio if self.better == "higher" else ratio - 1

    def worsening(self, ratio: float) -> float:
        """Returns the loss on the scale of logarithms, on which a loss and its reversal have the same size."""
        return -math.log(ratio) if self.better == "higher" else math.log(ratio)

    def ratio(self, worsening: float) -> float:
        """Returns the ratio of now to before for a worsening."""
        return math.exp(-worsening if self.better == "higher" else worsening)


class Power(NamedTuple):
    """The losses that a comparison finds.

    Attributes:
        finds: the loss that is found with 90 % power, as a share; None if it is unknown.
        weak: whether a loss of 10 % (of twice the allowance, if greater) is missed more often than not.
    """

    finds: float | None = None
    weak: bool = True


UNKNOWN_POWER = Power()


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a figure.

    Attributes:
        ratio: now over before, with its interval of 95 %.
        reason: why it is open, else None.
        more: about how many more pairs would decide an open one; None if no number would.
        power: unknown without an interval.
    """

    outcome: Outcome
    ratio: Estimate
    reason: Reason | None = None
    more: int | None = None
    power: Power = UNKNOWN_POWER


def confidence(cases: int) -> float:
    """Returns the confidence of the two-sided interval that has to exclude "no change", in a session of ``cases``."""
    return 1 - 2 * SESSION_ERROR / max(cases, 1)


def fewest(cases: int) -> int:
    """Returns the fewest pairs that can show a change: equal signs of all pairs are then rarer than the level."""
    return fewest_pairs(confidence(cases))


def decide_pairs(ratios: Sequence[float], allowance: Allowance, cases: int) -> Decision:
    """Decides by method 1.

    Args:
        ratios: candidate over base of each pair of rigs.
        cases: comparisons of the session.

    Raises:
        ValueError: there is no ratio, or one is not positive.
    """
    ratio, level = estimate_ratio(ratios), estimate_ratio(ratios, confidence(cases))
    if level.low is None or level.high is None or ratio.low is None or ratio.high is None:
        return Decision("open", ratio, reason="few", more=fewest(cases) - len(ratios))
    outcome = _classify(level, allowance)
    far = max(allowance.worsening(end) for end in (ratio.low, ratio.high))
    if outcome == "open" and far < allowance.worsening(allowance.limit):
        outcome = "same"
    reach = math.log(level.high / level.low) / 2
    error = math.log(ratio.high / ratio.low) / 2 / _HALF_WIDTH
    power = find_power(reach, error, allowance)
    if outcome != "open":
        return Decision(outcome, ratio, power=power)
    return Decision("open", ratio, "spread", _more(ratio, reach, error, allowance, len(ratios)), power)


def is_narrow(ratios: Sequence[float], allowance: Allowance, precision: float = math.inf) -> bool:
    """Whether there are enough pairs: the interval will separate "no change" from a loss of the allowance.

    The spread is estimated from the interquartile range of the ratios' sizes. Sizes carry no sign, so ending by them
    leaves all patterns of signs equally likely (as with blinded sample size reestimation: Friede and Kieser, Statistics
    in Medicine 25, 2006). If there is a change, they overstate the spread by up to 1.6. That takes more pairs, but
    biases no verdict.

    Args:
        precision: the half-width that is wanted, as a share.
    """
    if not ratios:
        return False
    sizes = [abs(math.log(ratio)) for ratio in ratios]
    spread = (quantile(sizes, 0.75) - quantile(sizes, 0.25)) / _MIDDLE_OF_SIZES
    reach = _HALF_WIDTH * spread / math.sqrt(len(sizes))
    return reach <= min(precision, NARROW * abs(math.log(allowance.limit)))


def decide_session(now: float, levels: Sequence[Sequence[float]], allowance: Allowance, cases: int) -> Decision:
    """Decides by method 2.

    Args:
        now: the value of the new session.
        levels: the value of each earlier session, level by level, the newest level last.
        cases: cases of the session.

    Raises:
        ValueError: a value is not positive, or there is none before.
    """
    spread = estimate_spread(levels)
    ratio = estimate_change_of_level(now, levels)
    if spread is None or sum(map(len, levels)) < FEWEST_SESSIONS:
        return Decision("open", ratio, reason="few")
    power = session_power(spread, len(levels[-1]), allowance, cases)
    wide = math.exp(min(_session_reach(spread, len(levels[-1]), cases), MOST))
    outcome = _classify(Estimate(ratio.value, ratio.value / wide, ratio.value * wide), allowance)
    if outcome == "open" and not power.weak:
        outcome = "same"
    return Decision(outcome, ratio, "spread" if outcome == "open" else None, power=power)


def _session_reach(spread: Spread, sessions: int, cases: int) -> float:
    """Returns the half-width of the prediction interval, on the scale of logarithms."""
    known = Spread(spread.deviation, min(spread.freedom, MOST_FREEDOM))
    return change_half_width(known, sessions, confidence(cases))


def session_power(spread: Spread, sessions: int, allowance: Allowance, cases: int) -> Power:
    """Returns the power of a new session and its retest, both of which have to find a loss.

    Args:
        sessions: their number at the newest level.
    """
    error = spread.deviation * math.sqrt(1 + 1 / sessions)
    return find_power(_session_reach(spread, sessions, cases), error, allowance, LOOKS)


def find_power(reach: float, error: float, allowance: Allowance, looks: int = 1) -> Power:
    """Returns the power of a decision.

    Args:
        reach: half-width of the interval that has to exclude "no change", on the scale of logarithms.
        error: the standard error of the estimate, on the same scale.
        looks: how often the loss has to be found.
    """

    def finds(power: float) -> float:
        worsening = max(reach, allowance.worsening(allowance.limit)) + _NORMAL.inv_cdf(power ** (1 / looks)) * error
        return allowance.loss(allowance.ratio(min(worsening, MOST)))

    return Power(finds(POWER), finds(WEAK_POWER) > max(WEAK_LOSS, 2 * allowance.share))


def _classify(level: Estimate, allowance: Allowance) -> Outcome:
    """Returns worse or better if the interval excludes "no change" and the change is at least the allowance; or
    open.
    """
    assert level.low is not None
    assert level.high is not None
    if not level.low <= 1 <= level.high:
        if allowance.loss(level.value) >= allowance.share:
            return "worse"
        if -allowance.loss(level.value) >= allowance.share:
            return "better"
    return "open"


def _more(ratio: Estimate, reach: float, error: float, allowance: Allowance, pairs: int) -> int | None:
    """Returns how many more pairs decide if the estimate stays and intervals shrink with 1 / sqrt(pairs)."""
    change, limit = allowance.worsening(ratio.value), allowance.worsening(allowance.limit)
    if abs(change) >= limit:  # has to become significant
        wanted, now = abs(change), reach
    else:
        wanted, now = limit - change, _HALF_WIDTH * error
    more = math.ceil(pairs * (now / wanted) ** 2) - pairs if wanted > 0 else MOST_MORE + 1
    return max(more, 1) if more <= MOST_MORE else None
