# SPDX-License-Identifier: BSD-3-Clause
"""``icbench report``: stored runs as a table, a page, CSV or Parquet, recomputed from their windows.

A page is written by a pytest session that runs no test and reports every test as recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.baseline_comparison import Comparer, compare_with_base
from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.limits import Limit
from pytest_icbench.gate.margins import Margins
from pytest_icbench.kinds.runs import differences, recomputed
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.model.verdict import DEFAULT_FAILING, Verdict
from pytest_icbench.plugin.html import HtmlHooks
from pytest_icbench.report.answer import as_lines
from pytest_icbench.report.budget_table import budget_table
from pytest_icbench.report.figure.series import Windows, windows_of
from pytest_icbench.report.headline import warnings
from pytest_icbench.report.html.page import Page, add_history
from pytest_icbench.report.plain import with_plain
from pytest_icbench.report.tabular import flat, write_csv, write_parquet
from pytest_icbench.report.terminal_table import WIDTH, table
from pytest_icbench.report.value_changes import against_first, comparison_lines, comparisons
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.run_directory import BASELINES, TestRecord
from pytest_icbench.store.stored_run import StoredResult, StoredRun, read_run, read_with_windows
from pytest_icbench.wording import clock, counted, printable, wrapped

#: The most differences that are named; only the number of further ones is given.
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A recomputed result.

    Attributes:
        differing: names of the fields whose recorded values differ from the recomputed ones.
        unsupported_reason: why it was not recomputed; None if it was.
    """

    run: StoredRun
    stored: StoredResult
    measurement: Measurement
    windows: Windows | None
    differing: tuple[str, ...] = ()
    unsupported_reason: str | None = None


def recompute(run: StoredRun) -> Iterator[Recomputation]:
    """Yields every result of a run. One that cannot be recomputed is taken as recorded."""
    comparer, lost = _load_comparer(run)
    again: set[tuple[str, str]] = set()
    for stored in run.results:
        try:
            whole = read_with_windows(stored)
        except (DamagedData, UsageError) as error:
            yield Recomputation(run, stored, stored.measurement, None, unsupported_reason=str(error))
            continue
        has_lost = lost is not None and run.info is not None and stored.measurement.baseline == run.info.baseline
        try:
            if has_lost:
                raise DamagedData(str(lost))
            measurement = _rejudge(recomputed(whole), run, stored, comparer, again)
        except DamagedData as error:
            yield Recomputation(run, stored, stored.measurement, windows_of(whole), unsupported_reason=str(error))
            continue
        differing = tuple(differences(stored.measurement, measurement, stored.names))
        # Its launches have no windows, like those of a stored line.
        yield Recomputation(run, stored, measurement, windows_of(whole), differing)


def _load_comparer(run: StoredRun) -> tuple[Comparer | None, str | None]:
    """Returns the comparer with the run's baseline, or why it cannot be read; None and None without a baseline."""
    info = run.info
    if info is None or info.baseline is None:
        return None, None
    try:
        baseline = load_baseline(run.directory / BASELINES, info.baseline)
    except UsageError as error:
        return None, str(error)
    return Comparer(baseline, info.must_match, info.judged), None


def _rejudge(
    measurement: Measurement,
    run: StoredRun,
    stored: StoredResult,
    comparer: Comparer | None,
    again: set[tuple[str, str]],
) -> Measurement:
    """Returns a measurement with a verdict by the limits and margins that are stored for it.

    INVALID stays. Waivers depend on the day, so the recorded one is kept. ``again``: tests and cases whose earlier
    result required a retest; this case is added if it requires one.
    """
    recorded, place = stored.measurement, stored.place
    if place is None or place.limits is None:  # it was not judged
        return replace(measurement, waiver=recorded.waiver)
    key = stored.test, recorded.case
    retest = key in again
    if any(finding.retest for finding in recorded.findings):
        again.add(key)
    if measurement.verdict == Verdict.INVALID:
        return replace(measurement, waiver=recorded.waiver)
    margins = Margins({key: (float(value), str(source)) for key, (value, source) in place.margins.items()})
    base = _base_of(run, stored)
    if measurement.side_by_side is not None:  # the base stands in for the baseline
        of = comparer.baseline.name if retest and comparer is not None else None
        against = compare_with_base(measurement, base, margins, of)
    else:
        against = None if comparer is None else comparer.compare(measurement, margins, retest=retest)
    judgement = judge(measurement, [decode(Limit, limit, "limits") for limit in place.limits], against=against)
    judged = replace(measurement, **judgement.fields())
    if base is None and recorded.side_by_side is not None:  # no result of the old version is stored
        judged = replace(judged, treatment_changes=recorded.treatment_changes)
    return replace(judged, waiver=recorded.waiver)


def _base_of(run: StoredRun, stored: StoredResult) -> Measurement | None:
    """Returns the base that the same test measured side by side with a result; None without one."""
    side_by_side = stored.measurement.side_by_side
    same_test = (result.measurement for result in run.results if result.test == stored.test)
    return next((item for item in same_test if side_by_side is not None and item.case == side_by_side.base), None)


def report(arguments: argparse.Namespace) -> int:
    """Prints and writes the report. The exit code is 1 if a recorded value differs from the recomputed one.

    Raises UsageError and DamagedData.
    """
    runs = [read_run(Path(run)) for run in arguments.runs]
    if not any(run.results or run.tests for run in runs):
        raise UsageError(f"{arguments.runs[0]} has no result yet: nothing was written")
    whole = [item for run in runs for item in recompute(run)]
    recomputations = _leave_out_retested(whole)
    several = len(runs) > 1
    results = [
        Result.of(item.measurement, item.run.name if several else None, item.stored.test) for item in recomputations
    ]
    if len({run.name for run in runs}) == 2 == len(runs):
        results = against_first(results, runs[0].name, runs[1].name)
    if not arguments.quiet:
        width = get_terminal_size((WIDTH, 0)).columns
        said = (line for sentence in _sentences(results, width) for line in wrapped(sentence, width))
        budgets = budget_table(results, width) if arguments.budgets else ()
        print(*table(results, width, verbose=arguments.verbose), "", *said, *budgets, sep="\n")
    rows = [
        flat(item.run.name, item.stored.test, result)
        for item, result in zip(recomputations, with_plain(results), strict=True)
    ]
    if arguments.csv:
        write_csv(Path(arguments.csv), rows)
    if arguments.parquet:
        write_parquet(Path(arguments.parquet), rows)
    if arguments.html:
        page = _page(runs, recomputations, results, several=several)
        if arguments.history:
            add_history(page, Path(arguments.history))
        write_html(Path(arguments.html), page, _tests(runs, recomputations))
    return _print_differences(whole)


def _leave_out_retested(recomputations: Sequence[Recomputation]) -> list[Recomputation]:
    """Leaves out results that were retested: the retest is the result."""
    last = {(item.run.directory, item.stored.test, item.stored.measurement.case): item for item in recomputations}
    standing = set(map(id, last.values()))
    return [
        item
        for item in recomputations
        if id(item) in standing or not any(finding.retest for finding in item.stored.measurement.findings)
    ]


def _sentences(results: Sequence[Result], width: int) -> list[str]:
    """Returns the answer, the warnings, and the changes of the second of two runs against the first."""
    second = comparisons([result for result in results if result.against])
    return [
        *as_lines(results),
        *warnings(results),
        *(line for comparison in second for line in comparison_lines(comparison, width)),
    ]


def _id(run: StoredRun, test: str, *, several: bool) -> str:
    """Returns a test's name, with its run if there are several."""
    return f"{run.name}/{test}" if several else test


def _page(
    runs: Sequence[StoredRun], recomputations: Sequence[Recomputation], results: Sequence[Result], *, several: bool
) -> Page:
    """Returns the page of the results, skipped tests and sources."""
    page = Page()
    for item, result in zip(recomputations, results, strict=True):
        place = item.stored.place
        if place is not None and place.taken_from is not None:
            page.taken[len(page.results)] = place.taken_from
        page.add(_id(item.run, item.stored.test, several=several), result, item.windows)
    for run in runs:
        for test in run.tests:
            name = _id(run, test.nodeid, several=several)
            if test.outcome == "skipped":
                page.skipped.append((name, test.reason or ""))
            elif test.outcome in ("failed", "error"):
                page.failed.append((name, _assertion(test.reason or "")))
            if test.repeat:
                page.repeats[name] = test.repeat
        page.runs.append(run.name)
        page.sources.append(_source(run))
    return page


def _assertion(longrepr: str) -> str:
    """Returns the line of a failed test's report that says why: pytest marks it by an ``E``."""
    lines = longrepr.strip().splitlines() or [""]
    return next((line[1:].strip() for line in lines if line.startswith("E  ")), lines[0])


def _source(run: StoredRun) -> str:
    """Returns the name of a run with its date, length and command line, as far as they are known."""
    began = run.info.started_at if run.info else min((line.measurement.started_at for line in run.results), default=0.0)
    text = run.name
    if began:
        text += f", run on {datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC"
    if run.tests:
        text += f", tests took {clock(sum(test.duration_s for test in run.tests))}"
    return text if run.info is None else f"{text}: pytest {' '.join(run.info.argv)}"


def _tests(runs: Sequence[StoredRun], recomputations: Sequence[Recomputation]) -> list[TestRecord]:
    """Returns the tests of all runs. A run without records of tests has one for each result."""
    several = len(runs) > 1
    tests = []
    for run in runs:
        records = list(run.tests) or [
            TestRecord(
                item.stored.test,
                "failed" if item.measurement.verdict in DEFAULT_FAILING else "passed",
                item.measurement.duration_s,
                item.measurement.reason,
            )
            for item in recomputations
            if item.run is run
        ]
        tests += [replace(record, nodeid=_id(run, record.nodeid, several=several)) for record in records]
    return tests


def _print_differences(recomputations: Sequence[Recomputation]) -> int:
    """Prints the number of results equal to the recorded ones, and names those that differ. Returns the exit code."""
    differing = [item for item in recomputations if item.differing]
    missing = [item for item in recomputations if item.unsupported_reason is not None]
    total = len(recomputations)
    same = total - len(differing) - len(missing)
    of = counted(total, "result")
    print(f"{same} of {of} recomputed from raw data, identical to what was recorded")
    for item in differing[:MOST_NAMED]:
        names = ", ".join(item.differing[:8]) + (" …" if len(item.differing) > 8 else "")
        print(printable(f"{item.run.name}: {item.stored.test}: recorded otherwise: {names}"), file=sys.stderr)
    for item in missing[:MOST_NAMED]:
        print(
            printable(f"{item.run.name}: {item.stored.test}: as recorded, {item.unsupported_reason}"), file=sys.stderr
        )
    more = max(len(differing) - MOST_NAMED, 0) + max(len(missing) - MOST_NAMED, 0)
    if more:
        print(f"and {more} more", file=sys.stderr)
    return 1 if differing else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``icbench report``."""
    parser.add_argument("runs", metavar="DIR", nargs="+", help="a run: a directory below reports/, or reports/latest")
    parser.add_argument("--html", metavar="FILE", help="write a page with charts (extra html)")
    parser.add_argument(
        "--history", metavar="FILE", help="add the history of its cases to the page (--icbench-history)"
    )
    parser.add_argument("--csv", metavar="FILE", help="write one row per result")
    parser.add_argument("--parquet", metavar="FILE", help="the same as Parquet (extra parquet)")
    parser.add_argument(
        "--budgets",
        action="store_true",
        help="print which functional splits of a radio access network fit on which path",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no table")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all columns, rows and notes")
    parser.set_defaults(command=report)


def write_html(path: Path, page: Page, tests: Sequence[TestRecord]) -> None:
    """Writes the page that pytest-html makes of the tests.

    Raises UsageError if pytest-html is missing or the page cannot be written.
    """
    if importlib.util.find_spec("pytest_html") is None:
        raise UsageError("an HTML report needs pytest-html: pip install 'pytest-icbench[html]'")
    output = io.StringIO()
    arguments = [
        *("--html", str(path), "--self-contained-html", "--capture=no", "-q", "-p", "no:cacheprovider"),
        *("-c", "/dev/null", "--rootdir", str(path.parent)),
        *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin"),
    ]
    plugins: list[Any] = [_Replay(tests), HtmlHooks(lambda: page)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _no_autoload(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            pytest.main(arguments, plugins=plugins)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another place") from None
    if not path.is_file():
        raise UsageError(f"{path} was not written: {output.getvalue().strip()[-500:]}")
    _set_duration(path, sum(test.duration_s for test in tests))


def _set_duration(path: Path, duration_s: float) -> None:
    """Replaces the time of the replay by that of the tests."""
    took = rf"\g<1>{clock(duration_s)} when they ran.\g<2>".encode()
    path.write_bytes(re.sub(rb'(<p class="run-count">\d+ tests? took )[^<]*(</p>)', took, path.read_bytes(), count=1))


@contextlib.contextmanager
def _no_autoload() -> Any:
    """Keeps the other plugins of the environment out of the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            patch.delenv(name, raising=False)
        yield


class _Replay:
    """A plugin that reports tests instead of running them."""

    def __init__(self, tests: Sequence[TestRecord]) -> None:
        self._tests = tests

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collects nothing, but counts the tests."""
        session.items = []
        session.testscollected = len(self._tests)
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Reports the tests."""
        for test in self._tests:
            for report in _reports(test):
                session.config.hook.pytest_runtest_logreport(report=report)
        return True


def _reports(test: TestRecord) -> list[pytest.TestReport]:
    """Returns the reports of a test's phases, as recorded."""
    phase = "call" if test.outcome in ("passed", "failed") or test.results else "setup"
    outcome: Any = "failed" if test.outcome == "error" else test.outcome
    longrepr: Any = test.reason if outcome == "failed" else None
    if outcome == "skipped":
        longrepr = (test.nodeid.partition("::")[0], 0, f"Skipped: {test.reason}")
    main = _report(test, phase, outcome, longrepr, test.duration_s)
    if test.repeat and outcome == "failed":
        main.sections.append(("icbench", f"repeat with: {test.repeat}"))
    before = [_report(test, "setup", "passed", None, 0.0)] if phase == "call" else []
    return [*before, main, _report(test, "teardown", "passed", None, 0.0)]


def _report(test: TestRecord, when: Any, outcome: Any, longrepr: Any, duration_s: float) -> pytest.TestReport:
    """Returns the report of one phase; the arguments are as in ``pytest.TestReport``."""
    location = (test.nodeid.partition("::")[0], 0, test.nodeid)
    return pytest.TestReport(
        test.nodeid, location, {}, outcome, longrepr, when, sections=[], duration=duration_s, start=0.0, stop=duration_s
    )
