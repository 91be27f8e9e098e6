# SPDX-License-Identifier: BSD-3-Clause
"""What is written when all tests are over: the run's summaries for a CI, and the baseline that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.config.options import Options
from pytest_icbench.errors import IcbenchError
from pytest_icbench.gate.entry import entry_of
from pytest_icbench.model.result import Result
from pytest_icbench.plugin.outcomes import Outcomes
from pytest_icbench.report import markdown, openmetrics
from pytest_icbench.store.baselines import save

SUMMARY = "summary.md"
METRICS = "openmetrics.txt"


def write_all(
    options: Options, directory: Path, results: Sequence[Result], tally: Outcomes
) -> tuple[list[Path], list[str]]:
    """Writes everything; also after an interruption, with what there is.

    Args:
        directory: of the run.
        results: of all workers.

    Returns:
        The baseline's files, and a sentence for each thing that could not be written.
    """
    troubles = _summaries(directory, results, tally)
    if options.save is None:
        return [], troubles
    entries = [entry for result in results if (entry := entry_of(result)) is not None]
    try:
        return save(options.baselines, options.save, entries), troubles
    except IcbenchError as error:
        later = f"icbench accept {options.save} --all --run {directory}"
        return [], [*troubles, f"baseline {options.save}: {error}; afterwards: {later}"]


def _summaries(directory: Path, results: Sequence[Result], tally: Outcomes) -> list[str]:
    summary = markdown.summary(results, tally.skipped, tally.failed)
    metrics = openmetrics.text(results, len(tally.skipped))
    try:
        for name, text in ((SUMMARY, summary), (METRICS, metrics)):
            (directory / name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        return [f"the summaries cannot be written ({error}); make room, or name another --icbench-reports"]
    return []
