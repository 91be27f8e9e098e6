# SPDX-License-Identifier: BSD-3-Clause
"""Computes the ratio of two versions' figures, launched in adjacent pairs on several pairs of rigs. Pure.

A rig draws something when it is built, for instance where its memory lies, and all launches on it share that. Pairs of
launches on the same two rigs know nothing of it, however many there are, so the unit is the pair of rigs. It counts by
the estimate of ``stats.paired`` over its pairs of launches.

Two intervals over these units:

* ``over_rigs`` is Student's, on logarithms, and needs three pairs of rigs.
* ``ranked_over_rigs`` is that of Wilcoxon's signed ranks. If nothing changed, both rigs of a pair are drawn alike, so
  that their quotient is as likely above 1 as below by the same amount, whatever a rig draws. The interval is therefore
  exact for bands, skew and heavy tails, too. It needs more rigs: see ``stats.paired.fewest_pairs``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.stats.paired import factor
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate
from pytest_icbench.stats.student import over_units

#: The figures of the pairs of launches on two rigs: the new version's, and those of the one before.
RigPair = tuple[Sequence[float], Sequence[float]]


def over_rigs(rig_pairs: Sequence[RigPair], confidence: float = CONFIDENCE) -> Estimate:
    """Returns now over before with Student's interval over the pairs of rigs; below three without one.

    Raises:
        ValueError: there is none, or a figure is not positive.
    """
    return over_units([factor(now, before).value for now, before in rig_pairs], confidence)


def ranked_over_rigs(rig_pairs: Sequence[RigPair], confidence: float = CONFIDENCE) -> Estimate:
    """Returns now over before with the interval of signed ranks over the pairs of rigs.

    Without an interval if there are fewer than ``stats.paired.fewest_pairs`` of the confidence.

    Raises:
        ValueError: there is none, or a figure is not positive.
    """
    ratios = [factor(now, before).value for now, before in rig_pairs]
    return factor(ratios, [1.0] * len(ratios), confidence)
