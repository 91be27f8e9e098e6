# SPDX-License-Identifier: BSD-3-Clause
"""How long two versions take turns, and what their pairs of launches decide. Pure.

A unit is one pair of launches on a pair of rigs built anew. Rigs take about as long as a launch, and differ at least as
much: more launches on the same rigs would tell little more (Kalibera and Jones, "Rigorous benchmarking in reasonable
time", International Symposium on Memory Management 2013, on where to repeat). ``stats.verdict_rule`` decides once, at
the end, whatever ended the series: the pairs' sizes alone, their number, or the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.measure.stopping import MOST_FOR_A_STATE
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.verdict_rule import Allowance, fewest, is_narrow

#: With two pairs more than equal signs need, one pair of the other sign (of the three smallest changes) does not hide a
#: change. Of seven pairs all have to agree; of nine, eight are enough.
SPARE_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Allowances:
    """How much worse a candidate may be.

    Attributes:
        main: of the main figure: the rate, or the median round trip.
        cycles: of the switch's cycles a frame.
        cycles_named: the user names an allowance of cycles, so that they are judged in addition to the rate.
    """

    main: Allowance
    cycles: Allowance
    cycles_named: bool = False

    @classmethod
    def of(cls, main: Allowance) -> Allowances:
        """Returns the allowances for a main figure's. Cycles may rise by the equivalent of the rate's allowed fall."""
        return cls(main, main.of_cost)


@dataclass(frozen=True, slots=True)
class Criteria:
    """What decides a comparison.

    Attributes:
        allowed: how much worse the candidate may be.
        cases: number of comparisons in the session, which share its rate of errors.
    """

    allowed: Allowances
    cases: int


@dataclass(frozen=True, slots=True)
class Series:
    """The pairs of one figure so far, in order of time.

    Attributes:
        ratios: candidate over base of the pairs in one state of the host.
        allowance: of the figure.
    """

    ratios: tuple[float, ...]
    allowance: Allowance

    def narrow(self, precision: float) -> bool:
        """Whether the pairs are enough, with the last one and without it. So a narrow spread has to be seen twice."""
        return all(is_narrow(self.ratios[:end], self.allowance, precision) for end in (None, -1))


def fewest_comparing(settings: Settings, cases: int) -> int:
    """Returns the fewest pairs: as many as asked for, and ``SPARE_PAIRS`` more than a session's level needs."""
    return max(settings.repeats or settings.min_launches, fewest(cases) + SPARE_PAIRS)


def why_stop_comparing(
    launched: int, series: Sequence[Series], settings: Settings, cases: int, left_s: float
) -> str | None:
    """Returns why no further pair is needed, or None if one is.

    Args:
        launched: pairs so far, in one state of the host or not.
        series: of each figure that may decide.
        cases: decisions of the session.
        left_s: time of the case that would be left after another pair.

    Returns:
        ``repeats``, ``precision`` or ``max-duration``.
    """
    wanted = fewest_comparing(settings, cases)
    kept = min((len(each.ratios) for each in series), default=0)
    if kept < wanted and launched < MOST_FOR_A_STATE * wanted:
        return None
    if settings.repeats is not None:
        return "repeats"
    if kept >= wanted and all(each.narrow(settings.precision) for each in series):
        return "precision"
    return "max-duration" if left_s < 0 else None
