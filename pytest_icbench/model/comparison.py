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
        base: id of the case measured beside it.
        figure: what is compared: ``throughput_pps``, ``cycles_per_packet`` or ``rtt_p50_ns``.
        decision, note: as in the result, as in a finding.
        ratio, ratio_low, ratio_high, confidence: candidate over base, on the launches that decide; of that interval.
        base_value: the base's figure, median over these launches.
        tolerated, allowance: share by which the candidate may be worse: on purpose, and by noise.
        pairs: pairs of launches behind the decision.
        rigs: pairs of rigs on which they ran, of which the interval is made.
        screened, screened_rigs: pairs of the first look, and of its rigs; launches from index ``screened`` on are
            fresh.
        screen: what the first look found; REGRESSED and IMPROVED are suspicions there.
        screen_ratio, screen_low, screen_high: ratio of the first look and its interval of 95 %.
        confirmed: whether fresh launches on fresh rigs agreed; null if nothing had to be confirmed.
        cases: comparisons of the session.
        error_rate: greatest probability that any of them is REGRESSED though none is worse than allowed; the same for
            IMPROVED.
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
