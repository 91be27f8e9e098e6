# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of two versions side by side, as a result keeps it. Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.verdict import Verdict

#: The note on rates that decide nothing, which more pairs would not change.
AT_LEAST = "the switch was not the limit, so the rate is only 'at least': more endpoints' cores would tell"


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The comparison of a candidate with its base, launched in adjacent pairs on several pairs of rigs.

    Attributes:
        base: id of the base's case.
        figure: name of the figure compared.
        decision: the verdict on the candidate.
        note: why the comparison is inconclusive, where the figures do not show it.
        ratio, ratio_low, ratio_high: candidate over base, on the launches that decide.
        confidence: the confidence of that interval.
        base_value: the base's figure on these launches.
        tolerated, allowance: shares by which the candidate may be worse: on purpose, and by noise.
        pairs: number of pairs of launches that decide.
        screened: number of pairs of the first look; launches from this index on confirmed its verdict, or did not.
        rigs: number of pairs of rigs on which these pairs of launches ran; ``screened_rigs`` those of the first look.
        screen: verdict of the first look; REGRESSED and IMPROVED are suspicions there.
        screen_ratio, screen_low, screen_high: ratio of the first look, at 95 %.
        confirmed: whether fresh launches on fresh rigs gave the same verdict; None where nothing had to be confirmed.
        cases: number of comparisons in the session.
        error_rate: greatest probability that any comparison ends in REGRESSED although no candidate is worse than
            allowed; the same for IMPROVED.
    """

    base: str
    figure: str
    decision: Verdict
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    confidence: float
    base_value: float
    tolerated: float
    allowance: float
    pairs: int
    screened: int
    screen: Verdict
    screen_ratio: float
    screen_low: float | None
    screen_high: float | None
    confirmed: bool | None
    cases: int
    error_rate: float
    note: str | None = None
    rigs: int = 1
    screened_rigs: int = 1
