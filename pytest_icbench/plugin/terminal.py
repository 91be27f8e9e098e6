# SPDX-License-Identifier: BSD-3-Clause
"""What a session writes: a line for each finished benchmark, the table at its end, and the summaries for a CI."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.display.case_names import label, shared
from pytest_icbench.errors import IcbenchError
from pytest_icbench.gate.entry import make_entry
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import NOTABLE, Verdict
from pytest_icbench.plugin.old_versions import explain_upgrades
from pytest_icbench.plugin.outcomes import Outcomes, first_line, is_undecided
from pytest_icbench.report import headline, markdown, openmetrics
from pytest_icbench.report.answer import as_lines
from pytest_icbench.report.budget_table import budget_table
from pytest_icbench.report.columns import shown_verdict
from pytest_icbench.report.decisions import explain_saved
from pytest_icbench.report.html.page import Page
from pytest_icbench.report.terminal_table import result_line, table
from pytest_icbench.store.baselines import host_name, load, save
from pytest_icbench.wording import counted, cut, printable, wrapped

SUMMARY = "summary.md"
METRICS = "openmetrics.txt"
#: How a verdict looks on a terminal that shows colours, by its colour on the page.
_MARKUP: dict[str, dict[str, bool]] = {
    "good": {"green": True},
    "warn": {"yellow": True},
    "bad": {"red": True},
    "ink": {},
}
#: The word of a test that failed by something else than its verdict.
_FAILED = "failed"
_COLOURS = {**{str(verdict): verdict.colour for verdict in Verdict}, _FAILED: "bad"}
_WORDS = re.compile(rf"\b({'|'.join(_COLOURS)})\b")
#: Widest line about a case that failed without a result.
_WIDEST = 140


class CaseLines:
    """A plugin that writes the line of a benchmark when its test is over; nothing with ``-q``.

    With ``-v`` it has the values. Otherwise these stand once, in the tables at the end, and only a case that needs
    attention has a line in place of pytest's letter.

    Attributes:
        left_out: the end of ids that all cases of the session share.
        width: room for an id.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.left_out = ""
        self.width = 0

    def expect(self, cases: Sequence[str]) -> str:
        """Learns the ids of the session's cases, so that lines leave out what all share and stay aligned.

        Returns the end of a sentence on what is left out; empty if nothing is.
        """
        self.left_out = shared(cases)
        self.width = max((len(label(case, self.left_out)) for case in cases), default=0)
        return f", all with {self.left_out.removeprefix('-')}" if self.left_out else ""

    @property
    def _reporter(self) -> Any:
        """pytest's reporter, unless the user wants it quiet or there is none."""
        quiet = self._config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) < 0 or self._config.get_verbosity() < 0
        return None if quiet else self._config.pluginmanager.get_plugin("terminalreporter")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> Generator[None, tuple[str, str, Any], tuple[str, str, Any]]:
        """Takes the letter away from a test that gets a line; its word, which -v shows, stays.

        pytest's last line counts undecided tests apart: green means judged.
        """
        category, letter, word = yield
        if category == "passed" and is_undecided(report):
            category = "undecided"
        return (category, "" if self._lines(report) else letter, word)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for line in self._lines(report):
            write_own_line(self._config, f"  {line}")

    def _has_line(self, report: pytest.TestReport) -> bool:
        """Whether a report is that of a benchmark's call, or of a set-up that failed."""
        if not getattr(report, "icbench_case", None) or report.skipped or hasattr(report, "wasxfail"):
            return False
        return report.when == "call" or (report.when == "setup" and report.failed)

    def _lines(self, report: pytest.TestReport) -> list[str]:
        if not self._has_line(report) or self._reporter is None:
            return []
        name = label(report.nodeid.partition("[")[2].removesuffix("]") or report.nodeid, self.left_out)
        try:
            results = [Result.from_dict(line) for line in getattr(report, "icbench", [])]
        except (DamagedData, TypeError):  # a worker's report can hold anything; the session's end says what was wrong
            return [f"{name.ljust(self.width)}  its results cannot be read"]
        reported = any(result.verdict in (Verdict.REGRESSED, Verdict.INVALID) for result in results)
        failed = f"{_FAILED}{'' if results else f': {printable(first_line(report))}'}"
        outcome = [failed] if report.failed and not reported else []
        if self._config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0:
            lines = [result_line(result, self.left_out, self.width) for result in results] or [name.ljust(self.width)]
            return [*lines[:-1], cut("  ".join([lines[-1].removesuffix("-").rstrip(), *outcome]), _WIDEST)]
        verdicts = dict.fromkeys(verdict for result in results if (verdict := shown_verdict(result)) in NOTABLE)
        words = [*filter(None, verdicts), *outcome]
        return [cut("  ".join([name.ljust(self.width), *words]), _WIDEST)] if words else []


def is_live(reporter: Any) -> bool:
    """Whether pytest's output goes to a terminal on which a line can be written over."""
    return bool(reporter.isatty) and os.environ.get("TERM", "dumb") != "dumb"


def write_own_line(config: pytest.Config, text: str) -> None:
    """Writes a separate line, with its verdicts in colour.

    Without -v the file's name is not repeated after it, since pytest does not know of the line.
    """
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    writer = config.get_terminal_writer()
    (first, _), *others = _pieces(text)
    verbose = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
    if verbose:
        reporter.currentfspath = None  # two equal lines are two lines
        reporter.write_ensure_prefix(first)
    else:
        writer.write(f"\n{first}" if writer.width_of_current_line else first)
    for piece, markup in others:
        writer.write(piece, **markup)
    writer.write("" if verbose else "\n", flush=True)


def write_coloured_line(config: pytest.Config, line: str) -> None:
    """Writes a line of the session's end, with its verdicts in colour."""
    writer = config.get_terminal_writer()
    for piece, markup in _pieces(line):
        writer.write(piece, **markup)
    writer.line()


def _pieces(line: str) -> list[tuple[str, dict[str, bool]]]:
    """Returns the parts of a line with their markup; the first is plain, and may be empty."""
    return [(piece, _MARKUP[_COLOURS[piece]] if place % 2 else {}) for place, piece in enumerate(_WORDS.split(line))]


def write_troubles(reporter: Any, leftovers: str | None, unwritten: Sequence[str]) -> None:
    """Writes what could not be undone on the host, and a sentence for each file that could not be written."""
    if leftovers is not None:
        reporter.write_sep("=", "icbench: the host is not as before", red=True)
        reporter.write_line(leftovers)
    if unwritten:
        reporter.write_sep("=", "icbench: not written", red=True)
    for sentence in unwritten:
        reporter.write_line(sentence)


def write_results(
    reporter: Any, results: Sequence[Result], page: Page, directory: Path, *, budgets: bool = False
) -> None:
    """Writes the tables, the answer, the warnings, and where the page and the reports are.

    Args:
        results: all results of the session, at least one.
        page: knows which results were taken from a run that was resumed.
        directory: the directory of the run.
        budgets: whether to write the table of latency budgets, too.
    """
    reporter.write_sep("=", "icbench results")
    config = reporter.config
    width, verbose = config.get_terminal_writer().fullwidth - 1, config.get_verbosity() > 0
    sentences = [*as_lines(results), *headline.warnings(results)]
    if page.taken:
        origin, count = next(iter(page.taken.values())), len(page.taken)
        taken = f"{count} of {counted(len(results), 'result')} {'was' if count == 1 else 'were'} taken"
        sentences.append(f"{taken} from {origin}")
    for line in (
        *table(results, width, verbose=verbose),
        "",
        *(line for each in sentences for line in wrapped(each, width)),
        *(budget_table(results, width) if budgets else ()),
    ):
        write_coloured_line(config, line)
    html = getattr(config.option, "htmlpath", None)
    reporter.write_line(f"page: {html}" if html else f"reports: {directory}")


def write_summaries(
    options: Options, directory: Path, results: Sequence[Result], outcomes: Outcomes
) -> tuple[list[str], list[str]]:
    """Writes summaries and baseline, also after an interruption.

    Args:
        results: the results of all workers.
        outcomes: how the tests ended.

    Returns:
        Lines on the baseline, its files and what it cannot judge yet, and a sentence for each file that could not be
        written.
    """
    troubles = _write_files(directory, results, outcomes)
    if options.save is None:
        return [], troubles
    entries = [entry for result in results if (entry := make_entry(result)) is not None]
    try:
        files = save(options.baselines, options.save, entries)
        keys = {(entry.key, host_name(entry.identity)) for entry in entries}
        stored = load(options.baselines, options.save).entries
        kept = [one for one in stored if (one.key, host_name(one.identity)) in keys]
        of = f"baseline {options.save}: "
        sentences = [*explain_saved(kept), *explain_upgrades((entry.switch, entry.old) for entry in kept)]
        unjudged = [line for sentence in sentences for line in wrapped(f"{of}{sentence}")]
        return [f"{of}{', '.join(map(str, files))}", *unjudged], troubles
    except IcbenchError as error:
        later = f"icbench accept {options.save} --all --run {directory}"
        return [], [*troubles, f"baseline {options.save}: {error}; afterwards: {later}"]


def _write_files(directory: Path, results: Sequence[Result], outcomes: Outcomes) -> list[str]:
    summary = markdown.summary(results, outcomes.skipped, outcomes.failed)
    metrics = openmetrics.text(results, len(outcomes.skipped))
    try:
        for name, text in ((SUMMARY, summary), (METRICS, metrics)):
            (directory / name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        return [f"the summaries cannot be written ({error}); make room, or name another --icbench-reports"]
    return []
