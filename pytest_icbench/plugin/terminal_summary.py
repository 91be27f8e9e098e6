# SPDX-License-Identifier: BSD-3-Clause
"""The end of pytest's output: the table of results, and what went wrong outside the tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_icbench.model.result import Result
    from pytest_icbench.report.html.page import Page


def write_troubles(reporter: Any, leftovers: str | None, unwritten: Sequence[str]) -> None:
    """Writes what could not be undone on the host, and a sentence for each file that could not be written."""
    if leftovers is not None:
        reporter.write_sep("=", "icbench: the host is not as before", red=True)
        reporter.write_line(leftovers)
    if unwritten:
        reporter.write_sep("=", "icbench: not written", red=True)
    for sentence in unwritten:
        reporter.write_line(sentence)


def write_results(reporter: Any, results: Sequence[Result], page: Page, directory: Path) -> None:
    """Writes the table of results, the overall decisions about candidates, and where the reports are.

    Args:
        results: all results of the session, at least one.
        page: knows which results were taken from a run that was resumed.
        directory: the directory of the run.
    """
    from pytest_icbench.plugin.case_lines import write_coloured
    from pytest_icbench.report.power import power
    from pytest_icbench.report.terminal import table
    from pytest_icbench.report.versions import overall
    from pytest_icbench.wording import counted, wrapped

    reporter.write_sep("=", "icbench results")
    sentences = [*overall(results), *power(results)]
    decisions = (line for sentence in sentences for line in wrapped(sentence))
    for line in (*table(results), *decisions):
        write_coloured(reporter.config, line)
    if page.taken:
        origin = next(iter(page.taken.values()))
        reporter.write_line(
            f"{len(page.taken)} of {counted(len(results), 'result')}"
            f" {'was' if len(page.taken) == 1 else 'were'} taken from {origin}"
        )
    reporter.write_line(f"reports: {directory}")
