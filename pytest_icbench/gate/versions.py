# SPDX-License-Identifier: BSD-3-Clause
"""The gate's comparison of versions side by side: one decision a case. Pure."""

from __future__ import annotations

from pytest_icbench.gate.against import BaselineComparison
from pytest_icbench.gate.margins import CYCLES, Margins
from pytest_icbench.model import circumstances
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement

_STATE = "no pair met the host's CPUs in one state"
_SOME_STATE = "{dropped} of {pairs} pairs met the host's CPUs in two states"


def against_base(
    now: Measurement, base: Measurement | None, margins: Margins, baseline: str | None = None
) -> BaselineComparison | None:
    """Returns the candidate's comparison as the gate judges it; None if it is no number.

    Args:
        now: the candidate's measurement.
        base: the base's measurement; without it the comparison lists no differences.
        margins: those of the base, which takes the place of a baseline.
        baseline: the name of the baseline whose version is the base, on a retest.
    """
    comparison = now.side_by_side
    if comparison is None:
        return None
    allowed = margins.of_cycles() if comparison.figure == CYCLES else margins.of(now.dimension)[0]
    more = comparison.more_pairs
    finding = Finding(
        name=comparison.figure,
        kind=allowed.kind,
        limit=comparison.allowance,
        source=allowed.source,
        verdict=comparison.decision,
        value=comparison.ratio * comparison.base_value,
        baseline=baseline or comparison.base,
        baseline_value=comparison.base_value,
        ratio=comparison.ratio,
        ratio_low=comparison.ratio_low,
        ratio_high=comparison.ratio_high,
        unit="pair",
        units=comparison.pairs,
        finds=comparison.finds,
        weak=comparison.weak,
        reason=comparison.reason,
        note=_state(comparison) if comparison.reason == "state" else comparison.note if not comparison.reason else None,
        more=more,
        more_s=None if more is None else more * now.duration_s / (comparison.pairs + comparison.dropped),
    )
    changed = tuple(
        difference
        for difference in (circumstances.differences(now, base, ("treatment",)) if base is not None else ())
        if not difference.fact.startswith(("treatment.cpus", f"treatment.{CANDIDATE_KEY}"))
    )
    return BaselineComparison(finding.baseline or "", (finding,), finding, treatment=changed)


def _state(comparison: SideBySide) -> str:
    if not comparison.pairs:
        return _STATE
    return _SOME_STATE.format(dropped=comparison.dropped, pairs=comparison.pairs + comparison.dropped)
