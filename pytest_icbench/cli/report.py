# SPDX-License-Identifier: BSD-3-Clause
"""``icbench report``: stored runs as a table, a page, CSV or Parquet, computed anew from what was measured."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.rejudge import rejudged
from pytest_icbench.measure.recompute import differences, recomputed
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import DEFAULT_FAILING
from pytest_icbench.report.figure.series import Windows, windows_of
from pytest_icbench.report.html.page import Page, add_history
from pytest_icbench.report.tabular import flat, write_csv, write_parquet
from pytest_icbench.report.terminal import table
from pytest_icbench.report.versions import overall
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.read import StoredResult, StoredRun, read_run, with_windows
from pytest_icbench.store.run import BASELINES, TestRecord
from pytest_icbench.wording import printable, wrapped

#: Differences that are named; the rest is counted.
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Anew:
    """A result computed anew.

    ``differing``: names whose recorded values are others. ``unsupported_reason``: the reason if it was not computed.
    """

    run: StoredRun
    stored: StoredResult
    measurement: Measurement
    windows: Windows | None
    differing: tuple[str, ...] = ()
    unsupported_reason: str | None = None


def anew(run: StoredRun) -> Iterator[Anew]:
    """Every result of a run. What cannot be computed anew is taken as it was recorded."""
    info, comparer, lost = run.info, None, None
    if info is not None and info.baseline is not None:
        try:
            comparer = Comparer(load_baseline(run.directory / BASELINES, info.baseline), info.incomparable)
        except UsageError as error:
            lost = str(error)
    for stored in run.results:
        recorded = stored.measurement
        try:
            whole = with_windows(stored)
        except (DamagedData, UsageError) as error:
            yield Anew(run, stored, recorded, None, unsupported_reason=str(error))
            continue
        if lost is not None and info is not None and recorded.baseline == info.baseline:
            yield Anew(run, stored, recorded, windows_of(whole), unsupported_reason=lost)
            continue
        try:
            found, place = recomputed(whole), stored.place
            if place is not None and place.limits is not None:  # else nobody judged it
                found = rejudged(found, place.limits, place.margins, comparer, _base_of(run, stored))
            found = replace(found, waiver=recorded.waiver)
        except DamagedData as error:
            yield Anew(run, stored, recorded, windows_of(whole), unsupported_reason=str(error))
            continue
        # Launches without their windows, as lines have them.
        yield Anew(run, stored, found, windows_of(whole), tuple(differences(recorded, found, stored.names)))


def _base_of(run: StoredRun, stored: StoredResult) -> Measurement | None:
    """What was measured side by side with it, by the same test."""
    found = stored.measurement.side_by_side
    named = (each.measurement for each in run.results if each.test == stored.test)
    return next((each for each in named if found is not None and each.case == found.base), None)


def report(arguments: argparse.Namespace) -> int:
    """Exit code 0; 1 if something recorded is not what its windows say. Raises UsageError and DamagedData."""
    runs = [read_run(Path(each)) for each in arguments.runs]
    if not any(run.results or run.tests for run in runs):
        raise UsageError(f"{arguments.runs[0]} holds no result yet: nothing was written")
    found = [each for run in runs for each in anew(run)]
    several = len(runs) > 1
    results = [Result.of(each.measurement, each.run.name if several else None) for each in found]
    if not arguments.quiet:
        for line in (*table(results), *(line for each in overall(results) for line in wrapped(each))):
            print(line)
    rows = [flat(each.run.name, each.stored.test, result) for each, result in zip(found, results, strict=True)]
    if arguments.csv:
        write_csv(Path(arguments.csv), rows)
    if arguments.parquet:
        write_parquet(Path(arguments.parquet), rows)
    if arguments.html:
        from pytest_icbench.cli.html import write_html

        page = _page(runs, found, results, several=several)
        if arguments.history:
            add_history(page, Path(arguments.history))
        title = "icbench report: " + ", ".join(run.name for run in runs)
        write_html(Path(arguments.html), page, _tests(runs, found), title)
    return _tell(found)


def _id(run: StoredRun, test: str, *, several: bool) -> str:
    return f"{run.name}/{test}" if several else test


def _page(runs: Sequence[StoredRun], found: Sequence[Anew], results: Sequence[Result], *, several: bool) -> Page:
    page = Page()
    for each, result in zip(found, results, strict=True):
        place = each.stored.place
        if place is not None and place.taken_from is not None:
            page.taken[len(page.results)] = place.taken_from
        page.add(_id(each.run, each.stored.test, several=several), result, each.windows)
    for run in runs:
        for test in run.tests:
            name = _id(run, test.nodeid, several=several)
            if test.outcome == "skipped":
                page.skipped.append((name, test.reason or ""))
            if test.repeat:
                page.repeats[name] = test.repeat
        made = "" if run.info is None else f": pytest {' '.join(run.info.argv)}"
        page.sources.append(f"{run.name}{made}")
    return page


def _tests(runs: Sequence[StoredRun], found: Sequence[Anew]) -> list[TestRecord]:
    """Of every run, its tests; of one that is older than these, what its results tell."""
    several = len(runs) > 1
    tests = []
    for run in runs:
        records = list(run.tests) or [
            TestRecord(
                each.stored.test,
                "failed" if each.measurement.verdict in DEFAULT_FAILING else "passed",
                each.measurement.duration_s,
                each.measurement.reason,
            )
            for each in found
            if each.run is run
        ]
        tests += [replace(record, nodeid=_id(run, record.nodeid, several=several)) for record in records]
    return tests


def _tell(found: Sequence[Anew]) -> int:
    differing = [each for each in found if each.differing]
    missing = [each for each in found if each.unsupported_reason is not None]
    same = len(found) - len(differing) - len(missing)
    print(
        f"{same} of {len(found)} results computed anew from their windows and histograms, to the last digit as recorded"
    )
    for each in differing[:MOST_NAMED]:
        names = ", ".join(each.differing[:8]) + (" …" if len(each.differing) > 8 else "")
        print(printable(f"{each.run.name}: {each.stored.test}: recorded otherwise: {names}"), file=sys.stderr)
    for each in missing[:MOST_NAMED]:
        print(
            printable(f"{each.run.name}: {each.stored.test}: as recorded, {each.unsupported_reason}"), file=sys.stderr
        )
    more = max(len(differing) - MOST_NAMED, 0) + max(len(missing) - MOST_NAMED, 0)
    if more:
        print(f"and {more} more", file=sys.stderr)
    return 1 if differing else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``icbench report``."""
    parser.add_argument("runs", metavar="DIR", nargs="+", help="a run: a directory below reports/, or reports/latest")
    parser.add_argument("--html", metavar="FILE", help="write a page with figures (extra html)")
    parser.add_argument("--history", metavar="FILE", help="with the history of its cases (--icbench-history)")
    parser.add_argument("--csv", metavar="FILE", help="write one row a result")
    parser.add_argument("--parquet", metavar="FILE", help="the same as Parquet (extra parquet)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no table")
    parser.set_defaults(command=report)
