# SPDX-License-Identifier: BSD-3-Clause
"""What two versions side by side gave, as a result keeps it: facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A candidate against its base, launched in adjacent pairs.

    Attributes:
        base: id of the base's case. figure: name of the figure compared.
        decision: what comes of it. note: why it does not tell, where the figures do not say it.
        ratio, ratio_low, ratio_high: candidate over base, on the launches that decide.
        confidence: of that interval.
        base_value: the base's figure on these launches.
        tolerated, allowance: shares by which the candidate may be worse: on purpose, and by noise.
        pairs: of launches that decide.
        screened: pairs of the first look; launches from this index on are those by which a finding was confirmed.
        screen: what the first look found. screen_ratio, screen_low, screen_high: its ratio, at 95 %.
        confirmed: whether fresh launches on fresh rigs said the same; None where nothing had to be confirmed.
        cases: comparisons of the session. error_rate: greatest probability that any of them is called REGRESSED though
            none is worse than allowed; the same for IMPROVED.
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
