# SPDX-License-Identifier: BSD-3-Clause
"""Decides between two versions from launches in adjacent pairs, on several pairs of rigs. Pure.

A first look takes pairs of rigs until the interval of the ratio is narrow, by its width alone. It acquits by an
interval of 95 %, but suspects by one of ``SUSPICION``, since a suspicion is only the reason to look again: fresh
launches on fresh rigs decide alone. Their interval has the confidence ``confirming``. With it the probability that any
comparison of a session ends in REGRESSED, although no candidate is worse than allowed, is at most ``SESSION_ERROR``. It
depends neither on the number of comparisons nor on the first looks (Bonferroni; the fresh launches are independent of
them), nor on what a rig draws when it is built (``stats.rig_pairs``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.measure.stopping import TELLING
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.intervals import LOOKED_CONFIDENCE
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.paired import fewest_pairs
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate
from pytest_icbench.stats.rig_pairs import RigPair, over_rigs, ranked_over_rigs
from pytest_icbench.stats.student import FEWEST_UNITS

#: Greatest probability that a session accuses any version although none is worse than allowed.
SESSION_ERROR = 0.01
#: Confidence of the interval that makes a first look suspect a change.
SUSPICION = 0.8
#: The verdicts of a first look that fresh launches have to confirm.
SUSPICIONS = (Verdict.REGRESSED, Verdict.IMPROVED)
#: Pairs of launches on two rigs before both are built anew: each version is the first one once.
PAIRS_A_RIG = 2
#: The fewest pairs of rigs after which the width can end a first look: a narrow interval is seen twice.
FEWEST_LOOKED = FEWEST_UNITS + 1


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much worse a candidate may be.

    Attributes:
        main: the margin of the main figure: the rate, or the median round trip.
        cycles: the margin of the switch's cycles a frame.
        cycles_named: the user names a margin of cycles, so that they are judged beside the rate.
    """

    main: Margin
    cycles: Margin
    cycles_named: bool = False

    @classmethod
    def of(cls, main: Margin) -> Allowance:
        """Returns the allowance of a main figure alone; cycles may rise by as much as such a rate may fall."""
        return cls(main, main.of_cost)


@dataclass(frozen=True, slots=True)
class Look:
    """A ratio with its interval, and the verdict on it."""

    ratio: Estimate
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What fresh launches say about a suspicion: ``decision``, and whether they confirm it."""

    ratio: Estimate
    confidence: float
    decision: Verdict
    confirmed: bool
    note: str | None = None


def confirming(cases: int) -> float:
    """Returns the confidence of the two-sided interval that confirms one of ``cases`` suspicions."""
    return 1 - 2 * SESSION_ERROR / max(cases, 1)


def is_narrow(rig_pairs: Sequence[RigPair], margin: Margin, precision: float) -> bool:
    """Whether the interval of the ratio tells "the same" from the margin's limit, and is as narrow as asked for."""
    width = over_rigs(rig_pairs, LOOKED_CONFIDENCE).relative_half_width if rig_pairs else None
    return width is not None and width <= min(precision, TELLING * abs(1 - margin.limit))


def first_look(rig_pairs: Sequence[RigPair], margin: Margin, confidence: float = LOOKED_CONFIDENCE) -> Look:
    """Returns the ratio with its interval, and PASS, a suspicion, or INCONCLUSIVE. Raises ValueError for no rigs."""
    ratio = over_rigs(rig_pairs, confidence)
    verdict = Verdict.of_outcome(margin.change(ratio))
    if verdict == Verdict.INCONCLUSIVE:
        suspicion = Verdict.of_outcome(margin.change(over_rigs(rig_pairs, SUSPICION)))
        verdict = suspicion if suspicion in SUSPICIONS else verdict
    return Look(ratio, verdict)


def second_look(rig_pairs: Sequence[RigPair], margin: Margin, cases: int, suspicion: Verdict) -> SecondLook:
    """Returns what fresh launches on fresh rigs say about a suspicion.

    Args:
        cases: number of comparisons in the session.
    """
    confidence = confirming(cases)
    ratio = ranked_over_rigs(rig_pairs, confidence)
    if Verdict.of_outcome(margin.change(ratio)) == suspicion:
        return SecondLook(ratio, confidence, suspicion, confirmed=True)
    ratio = ranked_over_rigs(rig_pairs, CONFIDENCE)
    fresh = Verdict.of_outcome(margin.change(ratio))
    decision = Verdict.INCONCLUSIVE if fresh in SUSPICIONS else fresh
    unsure = f"the first look said {suspicion}, fresh launches do not say it surely enough"
    note = unsure if decision == Verdict.INCONCLUSIVE else None
    return SecondLook(ratio, CONFIDENCE, decision, confirmed=False, note=note)


def fixed_rigs(repeats: int) -> list[int]:
    """Returns the pairs of launches on each pair of rigs for a first look of a fixed number of pairs."""
    return _spread(repeats, min(repeats, max(FEWEST_UNITS, math.ceil(repeats / PAIRS_A_RIG))))


def confirming_rigs(screened: int, cases: int) -> list[int]:
    """Returns the pairs of launches on each pair of rigs of a second look: at least as many as the first look had.

    Args:
        screened: pairs of launches of the first look.
        cases: number of comparisons in the session.
    """
    rigs = max(fewest_pairs(confirming(cases)), math.ceil(screened / PAIRS_A_RIG))
    return [math.ceil(screened / rigs)] * rigs


def _spread(pairs: int, rigs: int) -> list[int]:
    return [pairs // rigs + (place < pairs % rigs) for place in range(rigs)]


def fewest_comparing(settings: Settings) -> list[int]:
    """Returns the pairs of launches on each pair of rigs of a first look: of a fixed number, else the fewest."""
    if settings.repeats is not None:
        return [1] * settings.repeats if settings.fresh else fixed_rigs(settings.repeats)
    a_rig = 1 if settings.fresh else PAIRS_A_RIG
    return [a_rig] * max(FEWEST_LOOKED, settings.min_launches // a_rig + 1)
