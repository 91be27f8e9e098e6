# SPDX-License-Identifier: BSD-3-Clause
"""Two runs as before and after: the results of the second get their findings against the first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Baseline, make_entry
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.result import Result


def against_first(results: Sequence[Result], before: str, now: str) -> list[Result]:
    """Returns the results; those of the second run have ``against``, and the facts that differ.

    A result without an entry in the first run, measured under other conditions, or that no baseline can hold is
    unchanged. The margin is the default one.

    Args:
        before, now: the names of the two runs; they differ.
    """
    entries = [entry for result in results if result.run == before and (entry := make_entry(result)) is not None]
    comparer = Comparer(Baseline(f"run {before}", tuple(entries), is_run=True))
    return [_against(result, comparer) if result.run == now else result for result in results]


def _against(result: Result, comparer: Comparer) -> Result:
    if result.point.candidate is not None:  # it was decided beside its base
        return result
    comparison = comparer.compare(result, Margins(), retest=True)
    if comparison is None or not comparison.findings:
        return result
    changes = {
        difference.fact.removeprefix("treatment."): [difference.there, difference.here]
        for difference in comparison.treatment
    }
    return replace(result, against=comparison.findings, treatment_changes=changes)
