# SPDX-License-Identifier: BSD-3-Clause
"""What versions side by side mean for the gate: one decision a case. Pure."""

from __future__ import annotations

from statistics import NormalDist

from pytest_icbench.gate.against import BaselineComparison
from pytest_icbench.gate.limits import AT_LIMIT
from pytest_icbench.gate.margins import Allowed
from pytest_icbench.model import circumstances
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import Margin, launches_until_told
from pytest_icbench.stats.paired import fewest_pairs
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate


def against_base(now: Measurement, base: Measurement | None, allowed: Allowed) -> BaselineComparison | None:
    """The candidate's comparison as the gate judges it; None if it is no number.

    Without ``base`` nothing is said of what differs.
    """
    found = now.side_by_side
    if found is None:
        return None
    more, note = None, found.note
    if found.decision == Verdict.INCONCLUSIVE and (note is None or found.confirmed is False):
        more, why = _more_pairs(found, allowed.margin)
        note = note or why
    finding = Finding(
        name=found.figure,
        kind=allowed.kind,
        limit=found.tolerated + found.allowance,
        source=allowed.source,
        verdict=found.decision,
        value=found.ratio * found.base_value,
        baseline=f"{found.base} beside it",
        baseline_value=found.base_value,
        ratio=found.ratio,
        ratio_low=found.ratio_low,
        ratio_high=found.ratio_high,
        more_launches=more,
        more_s=None if more is None else more * now.duration_s / max(now.launches, 1),
        note=note,
    )
    changed = tuple(
        each
        for each in (circumstances.differences(now, base, ("treatment",)) if base is not None else ())
        if not each.fact.startswith(("treatment.cpus", f"treatment.{CANDIDATE_KEY}"))
    )
    return BaselineComparison(finding.baseline or "", (finding,), treatment=changed)


def _more_pairs(found: SideBySide, margin: Margin) -> tuple[int | None, str | None]:
    """About how many pairs more would tell, and why it does not where the interval does not say that."""
    if found.ratio_low is None or found.ratio_high is None:
        return max(fewest_pairs(CONFIDENCE) - found.pairs, 1), "too few pairs for an interval"
    worse = (found.ratio < margin.limit) == (margin.better == "higher")
    widened = 1.0
    if found.confirmed is False and worse:  # what has to be confirmed is held to the confidence of the session
        normal = NormalDist()
        widened = normal.inv_cdf(1 - found.error_rate / found.cases) / normal.inv_cdf((1 + CONFIDENCE) / 2)
    low, high = (found.ratio + widened * (end - found.ratio) for end in (found.ratio_low, found.ratio_high))
    more = launches_until_told(Estimate(found.ratio, low, high), margin.limit, found.pairs)
    return more, AT_LIMIT if more is None else None
