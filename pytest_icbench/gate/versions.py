# SPDX-License-Identifier: BSD-3-Clause
"""The gate's comparison of versions side by side: one decision a case. Pure."""

from __future__ import annotations

from statistics import NormalDist

from pytest_icbench.gate.against import BaselineComparison
from pytest_icbench.gate.margins import CYCLES, Margins
from pytest_icbench.model import circumstances
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.comparison import AT_LEAST, SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import Margin, launches_until_told
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate
from pytest_icbench.stats.student import FEWEST_UNITS


def against_base(now: Measurement, base: Measurement | None, margins: Margins) -> BaselineComparison | None:
    """Returns the candidate's comparison as the gate judges it; None if it is no number.

    Args:
        now: the candidate's measurement.
        base: the base's measurement; without it the comparison lists no differences.
        margins: those of the base, which takes the place of a baseline.
    """
    comparison = now.side_by_side
    if comparison is None:
        return None
    by_cycles = comparison.figure == CYCLES
    allowed = margins.of_cycles() if by_cycles else margins.of(now.dimension)[0]
    more, note = None, comparison.note
    unsure = note is None or by_cycles or (comparison.confirmed is False and note != AT_LEAST)
    if comparison.decision == Verdict.INCONCLUSIVE and unsure:
        more, why = _more_pairs(
            comparison, Margin(allowed.allowance.better, comparison.tolerated, comparison.allowance)
        )
        note = note or why
    finding = Finding(
        name=comparison.figure,
        kind=allowed.kind,
        limit=comparison.tolerated + comparison.allowance,
        source=allowed.source,
        verdict=comparison.decision,
        value=comparison.ratio * comparison.base_value,
        baseline=f"{comparison.base} beside it",
        baseline_value=comparison.base_value,
        ratio=comparison.ratio,
        ratio_low=comparison.ratio_low,
        ratio_high=comparison.ratio_high,
        unit="pair",
        units=comparison.pairs,
        more=more,
        more_s=None if more is None else more * now.duration_s / max(now.launches, 1),
        reason="spread" if comparison.decision == Verdict.INCONCLUSIVE else None,
        note=note,
    )
    changed = tuple(
        difference
        for difference in (circumstances.differences(now, base, ("treatment",)) if base is not None else ())
        if not difference.fact.startswith(("treatment.cpus", f"treatment.{CANDIDATE_KEY}"))
    )
    return BaselineComparison(finding.baseline or "", (finding,), finding, treatment=changed)


def _more_pairs(comparison: SideBySide, margin: Margin) -> tuple[int | None, str | None]:
    """Returns about how many more pairs a clear answer takes, and a note where the interval does not explain it."""
    if comparison.ratio_low is None or comparison.ratio_high is None:
        return max(FEWEST_UNITS - comparison.rigs, 1), "too few rigs for an interval"
    worse = (comparison.ratio < margin.limit) == (margin.better == "higher")
    widened = 1.0
    if comparison.confirmed is False and worse:  # a confirmation is held to the confidence of the session
        normal = NormalDist()
        widened = normal.inv_cdf(1 - comparison.error_rate / comparison.cases) / normal.inv_cdf((1 + CONFIDENCE) / 2)
    low, high = (
        comparison.ratio + widened * (end - comparison.ratio) for end in (comparison.ratio_low, comparison.ratio_high)
    )
    more = launches_until_told(Estimate(comparison.ratio, low, high), margin.limit, comparison.pairs)
    return more, None
