# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of two versions side by side, as a result keeps it. Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.verdict_rule import Reason


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The comparison of a candidate with its base, in pairs of launches on pairs of rigs built anew.

    Attributes:
        base: id of the case measured beside it.
        figure: what is compared: ``throughput_pps``, ``cycles_per_packet`` or ``rtt_p50_ns``.
        decision: as in the result.
        reason: why it is INCONCLUSIVE: ``few``, ``spread``, ``state`` or ``bound``; else null.
        ratio, ratio_low, ratio_high: candidate over base; its interval of 95 %.
        finds: loss that such a comparison finds nine times of ten, as a share; null with too few pairs.
        weak: a loss of 10 % is found in less than half of such comparisons.
        base_value: the base's figure, median over these launches.
        allowance: share by which the candidate may be worse.
        pairs: pairs of launches that decide.
        dropped: pairs whose launches met the host in two states; they decide nothing.
        more_pairs: about how many more would decide; null where that is not the reason or 1,000 would not do.
        cases: comparisons of the session.
        error_rate: greatest probability that any of them is REGRESSED though nothing changed; the same for IMPROVED.
        note: why it is this figure that decides; else null.
    """

    base: str
    figure: str
    decision: Verdict
    reason: Reason | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    finds: float | None
    weak: bool
    base_value: float
    allowance: float
    pairs: int
    dropped: int
    more_pairs: int | None
    cases: int
    error_rate: float
    note: str | None = None
