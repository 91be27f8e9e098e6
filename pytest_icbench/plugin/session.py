# SPDX-License-Identifier: BSD-3-Clause
"""The session that runs benchmarks: it takes the host, gives it back, and writes what was found.

It is started when the first benchmark is going to run, and imports all that measures and reports.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import rights
from pytest_icbench.host.lock import SessionBusyError
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case, is_case
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import WEAK
from pytest_icbench.plugin.collecting import Collection
from pytest_icbench.plugin.collector import ResultCollector
from pytest_icbench.plugin.fixture import Icbench
from pytest_icbench.plugin.items import BENCHMARK, PUBLISHED, Benchmark, benchmarks, explain_unmatched, is_benchmark
from pytest_icbench.plugin.outcomes import Outcomes, skip
from pytest_icbench.plugin.plan import (
    count_hosts,
    estimates,
    is_adaptive,
    longest_s,
    make_budget,
    plan,
    reason_lines,
)
from pytest_icbench.plugin.pytest_reports import is_distributed, write_page
from pytest_icbench.plugin.repeat import resume_command
from pytest_icbench.plugin.run import Run, check_root, check_stored
from pytest_icbench.plugin.terminal import CaseLines, write_results, write_summaries, write_troubles
from pytest_icbench.plugin.third_party import find_unused_options
from pytest_icbench.plugin.usage import describe_error, report_errors
from pytest_icbench.report.decisions import is_weak
from pytest_icbench.report.html.page import add_history
from pytest_icbench.store.run_directory import explain_stale_latest
from pytest_icbench.testbed.testbed import Testbed
from pytest_icbench.wording import clock, counted

#: How long a worker on another host waits for its predecessor to end.
WORKER_PATIENCE_S = 30.0
#: The fixture ``icbench`` of an item that has used it.
FIXTURE = pytest.StashKey[Icbench]()
#: A session that takes longer, in seconds, says how it would be shorter.
LONG_S = 60.0
#: The budget that a longer session is offered, in seconds.
BUDGET_S = 300.0
#: Times that differ by less than this share are one.
_ALIKE = 0.2


class Session:
    """Takes the host for the benchmarks of a pytest session, gives it back, and writes their results.

    Attributes:
        collector: collects the results of the tests' reports.
        outcomes: counts how the tests ended.
        run: the run, once the host is taken.
        lines: writes a line for each finished benchmark.
        files: the files that pytest writes about the run.
        sends: whether this is a worker on another host, which sends its results.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.config = collection.config
        self.options = collection.options
        self.files = collection.files
        self.is_worker = collection.is_worker
        self.sends = collection.sends
        self.collector = ResultCollector(self.config, self.options)
        self.outcomes = Outcomes()
        self.lines = CaseLines(self.config)
        self.run: Run | None = None
        self._pid = os.getpid()
        self._items = list(collection.items)
        self._testbed: Testbed | None = None
        self._refusal: str | None = None
        self._leftovers: str | None = None
        self._unwritten: list[str] = []
        self._baseline_lines: list[str] = []

    @property
    def directory(self) -> Path:
        """The directory of the run."""
        return self._collection.directory

    # -- before the tests

    def header(self, items: Sequence[pytest.Item]) -> list[str]:
        """Returns the lines above the first test: versions, the number of cases, and options without effect."""
        self._select(items)
        if self.is_worker or not self._items:
            return []
        lines = self._collection.header_lines()
        cases = [benchmark.case for benchmark in self._benchmarks()]
        said = counted(len(cases), "case") + self.lines.expect([case.id for case in cases])
        with report_errors(lambda sentence: lines.append(f"icbench: {sentence.splitlines()[0]}")):
            lines.append(f"icbench: {said}, placement {self._get_testbed().policy}")
            if not self.options.plan:
                lines.append(f"icbench: {forecast_line(self._get_testbed(), self.options, self._benchmarks())}")
        lack = rights.explain_missing_rights(Root()) if os.geteuid() == 0 else None
        lines += [] if lack is None else [f"icbench: {lack}"]
        slips = explain_unmatched(self._items, self._collection.expanded, self.options)
        return lines + [f"icbench: {sentence}" for sentence in (*find_unused_options(self.options, cases), *slips)]

    def _select(self, items: Sequence[pytest.Item]) -> None:
        """Keeps the selected benchmarks: later plugins may leave some out or skip them (``--benchmark-skip``)."""
        selected = set(items)
        self._items = [item for item in self._items if item in selected and not item.get_closest_marker("skip")]

    def _get_testbed(self) -> Testbed:
        if self._testbed is None:
            self._testbed = self._make_testbed(self._benchmarks())
        return self._testbed

    def _make_testbed(self, planned: Sequence[Benchmark]) -> Testbed:
        """Returns the host as these benchmarks see it."""
        reasons = {benchmark.case: benchmark.unsupported for benchmark in planned}
        switches, configs = self._collection.switches, self._collection.configs
        return Testbed(switches, self.options, list(reasons), configs, reasons)

    def describe_left_out(self, left_out: Sequence[Benchmark]) -> str:
        """Returns a line on the long forms that a session leaves out."""
        if not self.config.option.collectonly:
            with suppress(Exception):  # a line must not end the session; the tests say what is wrong with the host
                return left_out_line(self._make_testbed(left_out), self.options, left_out)
        return left_out_line(None, self.options, left_out)

    def _benchmarks(self) -> list[Benchmark]:
        return benchmarks(self._items)

    def check_budget(self, items: Sequence[pytest.Item]) -> None:
        """Checks in a worker that the time suffices, before its controller hands out tests. Raises UsageError."""
        self._select(items)
        if not self._items or self.options.budget is None:
            return
        with suppress(Unsupported, ProvisionError):  # the tests report these
            make_budget(self._get_testbed(), self.options, self._benchmarks(), count_hosts(self.config))

    def open(self, session: pytest.Session) -> None:
        """Takes the host if a benchmark is going to run. Raises what ``_take`` raises; nothing has been made then."""
        option = self.config.option
        self._select(session.items)
        hindered = session.testsfailed and not option.continue_on_collection_errors
        if not self._items or option.collectonly or hindered:
            self.files.drop()
            return
        if self.options.plan:
            self._plan()
            session.items.clear()
            return
        if self.is_worker:
            return  # it takes the host at the first test: until then the controller can refuse
        try:
            self._take()
        except Exception:
            self.files.drop()
            raise

    def _take_patiently(self) -> None:
        """Takes the host; a worker waits for a predecessor that died on the same host until that has cleaned up."""
        deadline = time.monotonic() + (WORKER_PATIENCE_S if self.sends else 0.0)
        while True:
            try:
                self._take()
                return
            except SessionBusyError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(1.0)

    def _take(self) -> None:
        check_root()
        # The controller appends the results of a worker that sends to the history.
        options = replace(self.options, history=None) if self.sends else self.options
        testbed = self._get_testbed()
        self.run = Run(self.config, options, testbed, self._items, self.directory)
        for sentence in filter(None, (*testbed.warnings, explain_stale_latest(self.options.reports))):
            self.config.issue_config_time_warning(pytest.PytestWarning(sentence), 2)

    def _plan(self) -> None:
        check_stored(self.options)
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_sep("-", "icbench plan")
            by_case = self.config.get_verbosity() > 0
            for line in plan(self._get_testbed(), self.options, self._items, self._collection.hosts, by_case=by_case):
                reporter.write_line(line)

    def start_test(self, item: pytest.Item, case: Case) -> Icbench:
        """Returns the fixture ``icbench`` of a test. Fails or skips the test if its case cannot be measured."""
        run, benchmark = self._begin(item)
        try:
            run.prepare(case)
        except Unsupported as error:
            skip(str(error), strict=run.options.strict)
        except ProvisionError as error:  # the second host is out of reach, or a version probe was killed
            pytest.fail(str(error), pytrace=False)
        icbench = item.stash[FIXTURE] = Icbench(item, benchmark, run)
        return icbench

    def _begin(self, item: pytest.Item) -> tuple[Run, Benchmark]:
        """Returns the run and what the item measures. Fails the test if the host could not be taken."""
        if self.run is None and self._refusal is None:
            try:
                self._take_patiently()
            except Exception as error:
                self._refusal = describe_error(error)
        if self.run is None or os.getpid() != self._pid:
            pytest.fail(str(self._refusal or "a forked child cannot measure"), pytrace=False)
        self.run.begin(item.nodeid)
        return self.run, item.stash[BENCHMARK]

    def after(self, item: pytest.Item, next_item: pytest.Item | None) -> None:
        """Ends an item: closes the rigs that the next one cannot use."""
        if self.run is None or not self._items:
            return
        if is_benchmark(item) and not item.get_closest_marker("skip"):
            self.run.begin(item.nodeid)
            self.run.after(None if next_item is None else next_item.stash.get(BENCHMARK, None))

    def end_child(self) -> None:
        """Ends this process if a test forked it and it goes on as pytest: the reports and the host are its parent's."""
        if os.getpid() != self._pid:
            sentence = f"icbench: process {os.getpid()} was forked by a test of process {self._pid}, and ends with it\n"
            with suppress(OSError):
                os.write(2, sentence.encode())
            os._exit(1)

    def close(self) -> None:
        """Gives the host back. Idempotent. The end of the session names what could not be undone."""
        run, self.run = self.run, None
        if run is None:
            return
        with report_errors(self._keep_leftovers):
            run.close()

    def _keep_leftovers(self, sentence: str) -> None:
        self._leftovers = self._leftovers or sentence

    def keep_unwritten(self, sentence: str) -> None:
        """Keeps a sentence about a file that could not be written for the end of the session, once."""
        if sentence not in self._unwritten:
            self._unwritten.append(sentence)

    # -- reports

    @property
    def results(self) -> list[Result]:
        """The results of all tests so far."""
        return self.collector.results

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Takes the report of a phase of a test; the last one writes the test's line."""
        if self.run is None:
            return
        if not is_benchmark(item):
            return
        with report_errors(self.keep_unwritten):
            self.collector.note(self.run, report)

    def receive(self, report: pytest.TestReport) -> None:
        """Takes a report that was made here or by a worker."""
        benchmark = _names_case(report.nodeid)
        self.files.has_cases = self.files.has_cases or benchmark
        self.outcomes.add(report)
        if benchmark and hasattr(report, "node"):
            self._merge_in(report)
        with report_errors(self.keep_unwritten, f"{report.nodeid}: its results are left out: "):
            self.collector.receive(report, is_case=benchmark)

    def _merge_in(self, report: pytest.TestReport) -> None:
        """Puts the results of a worker on another host into the run's files here."""
        with report_errors(self.keep_unwritten, f"{report.nodeid}: "):
            controller = self._collection.controller
            if controller is not None and controller.workers().take(report):
                self.collector.note(controller.workers(), report)

    def unconfigure(self) -> None:
        """Ends the session before other plugins end theirs."""
        self.close()
        with report_errors(self.keep_unwritten):
            self.files.unconfigure()

    def finish(self, session: pytest.Session) -> None:
        """Writes the session's files and sets the exit status. Called before other plugins write their reports."""
        self.close()
        with report_errors(self.keep_unwritten):
            self.collector.interrupted()
        if self.options.history is not None and self.results:
            with report_errors(self.keep_unwritten, "the history is not in the report: "):
                add_history(self.collector.page, self.options.history)
        if not self.is_worker and self.results:
            self.collector.page.runs.append(self._collection.run_name)
            with report_errors(self.keep_unwritten):
                self._baseline_lines, troubles = write_summaries(
                    self.options, self.directory, self.results, self.outcomes
                )
                self._unwritten += troubles
        self.set_status(session)

    def not_written(self, session: pytest.Session, error: OSError) -> None:
        """Reports that the writer of a report failed. The next writer runs nevertheless."""
        with report_errors(self.keep_unwritten, "a report cannot be written: "):
            raise error
        with report_errors(self.keep_unwritten, "a report cannot be written: "):
            write_page(session, error)
        self.set_status(session)

    @property
    def _lacks_results(self) -> bool:
        """Whether the user requires a result, tests have run, and there is none."""
        return self.options.require and bool(self.outcomes.outcomes) and not self.results

    def set_status(self, session: pytest.Session) -> None:
        """Sets the exit status by how the tests ended, and by what could not be undone, written or measured."""
        broken = self._leftovers is not None or bool(self._unwritten) or self._lacks_results
        if broken and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif not self.is_worker and not broken:
            distinct, weak = self.options.has_exit_codes, WEAK in self.options.fail and is_weak(self.results)
            session.exitstatus = self.outcomes.exit_status(int(session.exitstatus), distinct=distinct, weak=weak)

    def summarize(self, reporter: Any, *, interrupted: bool) -> None:
        """Writes the end of pytest's output; for an interrupted run also the command that goes on with it."""
        write_troubles(reporter, self._leftovers, self._unwritten)
        if self._lacks_results:
            reporter.write_line("icbench: no case was measured, so --icbench-require fails the session", red=True)
        if self.outcomes.outcomes:
            write_skips(reporter, self.outcomes.skipped, measured=bool(self.results))
        if not self.results:
            return
        write_results(reporter, self.results, self.collector.page, self.directory, budgets=self.options.budgets)
        for line in self._baseline_lines:
            reporter.write_line(line)
        if interrupted and not is_distributed(self.config):  # results of several hosts cannot be taken over
            command = resume_command(self._collection.run_name, list(map(str, self.config.invocation_params.args)))
            reporter.write_line(f"go on with: {command}")


def _names_case(nodeid: str) -> bool:
    """Whether a node id is that of a benchmark."""
    return nodeid.endswith("]") and "vs" in nodeid and is_case(nodeid)


def forecast_line(testbed: Testbed, options: Options, planned: Sequence[Benchmark]) -> str:
    """Returns how many cases run on this host, how long that takes, and what makes it shorter."""
    least = estimates(testbed, planned, options.soak_duration, budgeted=options.budget is not None)
    number, least_s = sum(seconds > 0 for seconds in least), sum(least)
    if not number:
        return "no case can run here; the end says why"
    most_s = sum(longest_s(benchmark, seconds) for benchmark, seconds in zip(planned, least, strict=True))
    if options.budget is not None:
        least_s = most_s = max(least_s, options.budget)
    said = f"{number} of {counted(len(planned), 'case')} can run here: {_time(least_s, most_s)}"
    if most_s < LONG_S:
        return said
    ways = ["fewer by -k"]
    if any(is_adaptive(benchmark.case, benchmark.settings) for benchmark in planned):
        ways += ["--icbench-protocol quick"] + ["--icbench-budget 5m"] * (options.budget is None and most_s > BUDGET_S)
    return f"{said}; for less: {', '.join(ways)}"


def left_out_line(testbed: Testbed | None, options: Options, left_out: Sequence[Benchmark]) -> str:
    """Returns how many long forms a session leaves out, and how long they take.

    ``testbed``: of this host, for the time; None leaves it out.
    """
    said = f"{counted(len(left_out), f'{PUBLISHED} case')} left out"
    if testbed is not None:
        least = estimates(testbed, left_out, options.soak_duration)
        said += f"; {sum(seconds > 0 for seconds in least):,} of them take at least {clock(sum(least))} here"
    return f"{said}; they run with: -m {PUBLISHED}"


def write_skips(reporter: Any, skipped: Sequence[tuple[str, str]], *, measured: bool) -> None:
    """Writes the cases that were skipped, by reason, and before them that nothing was measured.

    Args:
        skipped: node ids of cases, with their reasons.
        measured: whether the session has a result.
    """
    if not measured:
        reporter.write_sep("=", "icbench: nothing was measured", yellow=True)
    elif skipped:
        reporter.write_sep("=", f"icbench: {counted(len(skipped), 'case')} skipped")
    for line in reason_lines(skipped):
        reporter.write_line(line)


def _time(least_s: float, most_s: float) -> str:
    """Returns a length of time, or its bounds where they are far apart."""
    if most_s <= least_s * (1 + _ALIKE):
        return f"about {clock(least_s)}"
    return f"{clock(least_s)} to {clock(most_s)}"
