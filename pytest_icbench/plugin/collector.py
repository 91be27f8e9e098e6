# SPDX-License-Identifier: BSD-3-Clause
"""Collects what the reports of tests carry: results for table and page, and the lines of ``tests.jsonl``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.gate.entry import make_entry
from pytest_icbench.gate.margins import MAIN
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.plugin.fixture import Icbench
from pytest_icbench.plugin.outcomes import first_line, skip_reason
from pytest_icbench.plugin.pytest_benchmark import CLOCK, FIXTURE
from pytest_icbench.plugin.pytest_reports import hide_names
from pytest_icbench.plugin.repeat import repeat_command
from pytest_icbench.plugin.run import Run
from pytest_icbench.report.figure.series import Windows
from pytest_icbench.report.html.page import Page
from pytest_icbench.report.junit import add_system_out
from pytest_icbench.store.run_directory import TestRecord
from pytest_icbench.store.transfer import pack

#: Groups in the table of pytest-benchmark.
_GROUPS = {
    "throughput": "throughput: seconds per packet",
    "application": "applications: seconds per operation",
    "startup": "start-up: median time to create a container",
    "latency": "latency: median round-trip time",
}
#: The fields of a result that go into its ``extra_info``.
_EXTRA = ("case", "dimension", "metric", "placement", "verdict", "bottleneck", "lower_bound", "ratio_to_reference")


class Writer(Protocol):
    """A writer of ``tests.jsonl``."""

    def note(self, record: TestRecord) -> None: ...


class ResultCollector:
    """Collects the results of a session from the reports of its tests.

    Attributes:
        results: the results of all tests so far.
        page: the content of the HTML report.
    """

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.results: list[Result] = []
        self.page = Page()
        self._sent = False
        self._unreported: dict[str, list[Result]] = {}
        self._phases: dict[str, list[pytest.TestReport]] = {}

    def attach(self, report: pytest.TestReport, icbench: Icbench, run: Run | None = None) -> None:
        """Puts a test's results into its report, which takes them from a worker to its controller.

        ``run``: the run of a worker on another host, whose files the report takes, too; None for any other.
        """
        if run is not None:
            files = pack(run.directory, run.places(report.nodeid), first=not self._sent)
            report.icbench_parcel, self._sent = files, True  # type: ignore[attr-defined]
        report.icbench = [result.to_dict() for result in icbench.results]  # type: ignore[attr-defined]
        report.icbench_windows = list(icbench.windows)  # type: ignore[attr-defined]
        report.icbench_taken = list(icbench.taken_from)  # type: ignore[attr-defined]
        if report.failed:
            # The command has to work as it is, so names of hosts are hidden in files only.
            report.sections.append(("icbench", f"repeat with: {self._repeat(report)}"))

    def note(self, writer: Writer, report: pytest.TestReport) -> None:
        """Takes the report of a phase of a test; the last one writes the test's line. Raises ProvisionError."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when != "teardown":
            return
        del self._phases[report.nodeid]
        outcome, reason = summarize_phases(phases)
        seconds = sum(phase.duration for phase in phases)
        repeat = self.hide(self._repeat(report))
        writer.note(TestRecord(report.nodeid, outcome, seconds, reason, repeat))

    def forget(self, nodeid: str) -> None:
        """Forgets the phases of a test whose line is not written yet."""
        self._phases.pop(nodeid, None)

    def hide(self, text: str) -> str:
        """Returns a text for a file, without the names of hosts."""
        return hide_names(text, self.options)

    def _repeat(self, report: pytest.TestReport) -> str:
        invocation, root, nodeid = self.config.invocation_params, self.config.rootpath, report.nodeid
        arguments = list(map(str, invocation.args))
        file, *_ = nodeid.partition("::")
        if not (root / file).is_file():  # of --pyargs: ids are relative to a directory of the installation
            nodeid = os.path.normpath(root / report.location[0]) + nodeid.removeprefix(file)
            # Given that path, pytest would look for its ini file elsewhere.
            ini = [] if self.config.inipath is None else ["-c", str(self.config.inipath)]
            arguments += [f"--rootdir={root}", *ini]
        return repeat_command(nodeid, arguments, str(root) if invocation.dir != root else None)

    def measured(self, nodeid: str, results: Sequence[Measurement]) -> None:
        """Keeps the results of a test until its report comes. If a signal comes first, ``interrupted`` takes them."""
        self._unreported[nodeid] = [Result.of(result, test=nodeid) for result in results]

    def interrupted(self) -> None:
        """Takes the results whose reports never came: they are in the files, too."""
        for nodeid, results in self._unreported.items():
            self.results += results
            for result in results:
                self.page.add(nodeid, result, None)
        self._unreported.clear()

    def receive(self, report: pytest.TestReport, *, is_case: bool) -> None:
        """Takes a report that was made here or by a worker. ``is_case`` says whether the test is a benchmark."""
        if is_case and report.skipped and isinstance(report.longrepr, tuple):
            self.page.skipped.append((report.nodeid, skip_reason(report.longrepr)))
        if is_case and report.failed:
            self.page.failed.append((report.nodeid, first_line(report)))
        lines: list[dict[str, Any]] = getattr(report, "icbench", [])
        if not lines:
            return
        results = [replace(Result.from_dict(line), test=report.nodeid) for line in lines]
        self.results += results
        self._unreported.pop(report.nodeid, None)
        self.page.repeats[report.nodeid] = self.hide(self._repeat(report))
        windows = getattr(report, "icbench_windows", [None] * len(results))
        taken = getattr(report, "icbench_taken", [None] * len(results))
        for result, fields, origin in zip(results, windows, taken, strict=True):
            if origin is not None:
                self.page.taken[len(self.page.results)] = origin
            self.page.add(report.nodeid, result, None if fields is None else Windows.from_dict(fields))
        add_system_out(self.config, report, results)


def summarize_phases(phases: Sequence[pytest.TestReport]) -> tuple[str, str | None]:
    """Returns a test's outcome over its phases, and why it failed or was skipped."""
    for phase in phases:
        if phase.failed:
            return "failed" if phase.when == "call" else "error", phase.longreprtext
        if phase.skipped:
            return "skipped", skip_reason(phase.longrepr) if isinstance(phase.longrepr, tuple) else phase.longreprtext
    return "passed", None


def replay(item: pytest.Item, results: Sequence[Measurement]) -> None:
    """Puts the test's last result into pytest-benchmark's table; nothing without a result that is a number."""
    clock = item.stash.get(CLOCK, None)
    fixture: Any = getattr(item, "funcargs", {}).get(FIXTURE)
    if clock is None or fixture is None or getattr(fixture, "_mode", None):
        return
    values: Sequence[float] = ()
    if results:
        measurement = results[-1]
        values = seconds(measurement)
    if not values:
        fixture._mode = "icbench: no value"  # otherwise it warns that the fixture was not used
        return
    clock.values = values
    line = measurement.flat()
    fixture.params = {"case": measurement.case, **measurement.axes}
    fixture.group = fixture.group or _GROUPS[measurement.dimension]
    fixture.extra_info.update({f"icbench.{name}": line[name] for name in _EXTRA})
    run: Callable[..., Any] = fixture.pedantic
    run(_nothing, setup=clock.next_round, rounds=len(values), iterations=1)


def _nothing() -> None:
    """Does nothing: the launches have been measured already."""


def seconds(measurement: Measurement) -> tuple[float, ...]:
    """Returns one value per launch, one in all for a search, whose launches are trials, and none without a figure."""
    entry = make_entry(measurement)
    figure = entry.figures.get(MAIN[measurement.dimension]) if entry is not None else None
    if figure is None:
        return ()
    values = figure.launches or (figure.value,)
    if min(values) <= 0:
        return ()
    in_ns = MAIN[measurement.dimension].endswith("_ns")
    return tuple(value / 1e9 if in_ns else 1 / value for value in values)
