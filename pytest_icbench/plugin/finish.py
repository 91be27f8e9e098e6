# SPDX-License-Identifier: BSD-3-Clause
"""Writes the run's summaries for a CI, and the baseline that was asked for, when all tests are over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.config.options import Options
from pytest_icbench.errors import IcbenchError
from pytest_icbench.gate.entry import entry_of
from pytest_icbench.gate.foresight import saved
from pytest_icbench.model.result import Result
from pytest_icbench.plugin.old_versions import upgraded_in_place
from pytest_icbench.plugin.outcomes import Outcomes
from pytest_icbench.report import markdown, openmetrics
from pytest_icbench.store.baselines import host_name, load, save
from pytest_icbench.wording import wrapped

SUMMARY = "summary.md"
METRICS = "openmetrics.txt"


def write_all(
    options: Options, directory: Path, results: Sequence[Result], outcomes: Outcomes
) -> tuple[list[str], list[str]]:
    """Writes summaries and baseline, also after an interruption.

    Args:
        directory: the directory of the run.
        results: the results of all workers.
        outcomes: how the tests ended.

    Returns:
        Lines on the baseline, its files and what it cannot judge yet, and a sentence for each file that could not be
        written.
    """
    troubles = _summaries(directory, results, outcomes)
    if options.save is None:
        return [], troubles
    entries = [entry for result in results if (entry := entry_of(result)) is not None]
    try:
        files = save(options.baselines, options.save, entries)
        keys = {(entry.key, host_name(entry.identity)) for entry in entries}
        stored = load(options.baselines, options.save).entries
        kept = [one for one in stored if (one.key, host_name(one.identity)) in keys]
        of = f"baseline {options.save}: "
        sentences = [*saved(kept), *upgraded_in_place((entry.switch, entry.old) for entry in kept)]
        unjudged = [line for sentence in sentences for line in wrapped(f"{of}{sentence}")]
        return [f"{of}{', '.join(map(str, files))}", *unjudged], troubles
    except IcbenchError as error:
        later = f"icbench accept {options.save} --all --run {directory}"
        return [], [*troubles, f"baseline {options.save}: {error}; afterwards: {later}"]


def _summaries(directory: Path, results: Sequence[Result], outcomes: Outcomes) -> list[str]:
    summary = markdown.summary(results, outcomes.skipped, outcomes.failed)
    metrics = openmetrics.text(results, len(outcomes.skipped))
    try:
        for name, text in ((SUMMARY, summary), (METRICS, metrics)):
            (directory / name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        return [f"the summaries cannot be written ({error}); make room, or name another --icbench-reports"]
    return []
