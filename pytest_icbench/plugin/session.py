# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of a pytest session. Made for every session, so it imports late and takes the host late."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.model.verdict import WEAK
from pytest_icbench.plugin.anonymous import hidden
from pytest_icbench.plugin.collector import ReportListener, ResultCollector, names_case
from pytest_icbench.plugin.outcomes import Outcomes
from pytest_icbench.plugin.run_files import RunFiles, is_distributed
from pytest_icbench.plugin.usage import sentence_of, told
from pytest_icbench.wording import counted

if TYPE_CHECKING:
    from pytest_icbench.config.switch_config import SwitchConfig
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.model.result import Result
    from pytest_icbench.plugin.case_lines import CaseLines
    from pytest_icbench.plugin.items import Benchmark
    from pytest_icbench.plugin.run import Run
    from pytest_icbench.plugin.xdist.workers import Workers
    from pytest_icbench.testbed.testbed import Testbed

#: How long a worker on another host waits for its predecessor to end.
WORKER_PATIENCE_S = 30.0


class Session:
    """Knows the benchmarks of a pytest session, takes the host for them and gives it back.

    Attributes:
        collected: whether a marked test was seen.
        collector: collects the results of the tests' reports.
        outcomes: counts how the tests ended.
        run: the run, once the host is taken.
        files: the files of ``icbench_run_files``.
        sends: whether this is a worker on another host, which sends its results.
    """

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.collector = ResultCollector(config, options)
        self.run: Run | None = None
        self.collected = False
        self._testbed: Testbed | None = None
        self._switches: Mapping[str, type[Switch]] = {}
        self._configs: Mapping[str, SwitchConfig] = {}
        self._items: list[pytest.Item] = []
        self._header_shown = False
        self._refusal: str | None = None
        self._leftovers: str | None = None
        self._unwritten: list[str] = []
        self._baseline_lines: list[str] = []
        self.outcomes = Outcomes()
        self._workers: Workers | None = None
        worker = getattr(config, "workerinput", None)
        self.is_worker = worker is not None
        self.sends = bool(worker["icbench_sends"]) if worker is not None else False
        self._run_name: str | None = None
        if worker is not None:
            # A worker on another host, which may share its files with this one, needs a directory of its own.
            suffix = f"-{worker['workerid']}" if self.sends else ""
            self._run_name = f"{worker['icbench_run']}{suffix}"
        self._lines: CaseLines | None = None
        self.files = RunFiles(config, options, lambda: self.directory, is_worker=self.is_worker)
        #: The number of hosts that a plan is made for.
        self._hosts = 1
        if options.plan and is_distributed(config):
            from pytest_icbench.plugin.xdist.workers import plan_here

            self._hosts = plan_here(config)
        elif is_distributed(config) and not (self.is_worker or config.option.collectonly):
            from pytest_icbench.plugin.xdist.hooks import ControllerHooks

            config.pluginmanager.register(ControllerHooks(config, self), "icbench-xdist")
            self._show_lines()  # the controller has no items, so it sees benchmarks late
        config.pluginmanager.register(ReportListener(self.receive), "icbench-results")
        if getattr(config.option, "htmlpath", None):
            from pytest_icbench.plugin.html import HtmlHooks

            config.pluginmanager.register(HtmlHooks(lambda: self.collector.page, self.collector.hide), "icbench-html")

    @property
    def run_name(self) -> str:
        """The name of the run's directory; a worker of xdist begins it with its controller's."""
        if self._run_name is None:
            from pytest_icbench.store.run_directory import new_run_name

            self._run_name = new_run_name(self.options.reports)
        return self._run_name

    @property
    def directory(self) -> Path:
        return self.options.reports / self.run_name

    # -- collection

    def arrange(self, items: list[pytest.Item]) -> None:
        """Checks, deselects and sorts collected items in place. Raises UsageError."""
        named = self.options.switch or self.options.port or self.options.switch_config or self.options.variant
        if not (self.collected or named):
            return
        from pytest_icbench.plugin.items import arrange, is_benchmark

        self._switches, self._configs = arrange(self.config, items, self.options)
        self._items = [item for item in items if is_benchmark(item)]
        if self._items and not self.is_worker:
            self._show_lines()
        elif self._items:
            from pytest_icbench.plugin.xdist.workers import compare_packages

            compare_packages(self.config.workerinput)  # type: ignore[attr-defined]

    def header(self, items: Sequence[pytest.Item] | None = None) -> list[str]:
        """Returns lines for pytest's header; none in a session without benchmarks.

        Args:
            items: the items that will run, None before collection.
        """
        if self.is_worker or self.config.option.collectonly:
            return []
        lines = []
        if items is not None:
            self._select(items)
        if not self._header_shown and (self._items or (self.options.given and items is None)):
            from pytest_icbench.plugin.header import header_line

            self._header_shown = True
            lines.append(header_line())
        if items is not None and self._items:
            from pytest_icbench.plugin.functions import options_without_effect

            cases = self._announce()
            with told(lambda sentence: lines.append(f"icbench: {sentence.splitlines()[0]}")):
                lines.append(f"icbench: {cases}, placement {self._get_testbed().policy}")
            cases_of_run = [benchmark.case for benchmark in self._benchmarks()]
            lines += [f"icbench: {sentence}" for sentence in options_without_effect(self.options, cases_of_run)]
        return lines

    def _show_lines(self) -> None:
        """Writes a line for each finished benchmark from now on."""
        from pytest_icbench.plugin.case_lines import CaseLines

        self._lines = CaseLines(self.config)
        self.config.pluginmanager.register(self._lines, "icbench-lines")

    def _announce(self) -> str:
        """Returns the number of cases and what all of them share, which their lines leave out."""
        ids = [benchmark.case.id for benchmark in self._benchmarks()]
        cases = counted(len(ids), "case")
        return cases if self._lines is None else cases + self._lines.expect(ids)

    def _select(self, items: Sequence[pytest.Item]) -> None:
        """Keeps the selected benchmarks: later plugins may leave some out or skip them (``--benchmark-skip``)."""
        selected = set(items)
        self._items = [item for item in self._items if item in selected and not item.get_closest_marker("skip")]

    def _get_testbed(self) -> Testbed:
        if self._testbed is None:
            from pytest_icbench.testbed.testbed import Testbed

            reasons = {benchmark.case: benchmark.unsupported for benchmark in self._benchmarks()}
            self._testbed = Testbed(self._switches, self.options, list(reasons), self._configs, reasons)
        return self._testbed

    def _benchmarks(self) -> list[Benchmark]:
        from pytest_icbench.plugin.items import benchmarks

        return benchmarks(self._items)

    # -- running

    def check_budget(self, items: Sequence[pytest.Item]) -> None:
        """Checks in a worker that the time suffices, before its controller hands out tests. Raises UsageError."""
        self._select(items)
        if not self._items or self.options.budget is None:
            return
        from pytest_icbench.plugin.schedule.plan import hosts_of, make_budget

        with suppress(Unsupported, ProvisionError):  # the tests report these
            make_budget(self._get_testbed(), self.options, self._benchmarks(), hosts_of(self.config))

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
        from pytest_icbench.host.lock import SessionBusyError

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
        from pytest_icbench.plugin.run import Run, check_root

        check_root()
        # The controller appends the results of a worker that sends to the history.
        options = replace(self.options, history=None) if self.sends else self.options
        testbed = self._get_testbed()
        self.run = Run(self.config, options, testbed, self._items, self.directory)
        for sentence in testbed.warnings:
            self.config.issue_config_time_warning(pytest.PytestWarning(sentence), 2)

    def _plan(self) -> None:
        from pytest_icbench.plugin.judging import check_stored
        from pytest_icbench.plugin.schedule.plan import plan

        check_stored(self.options)
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_sep("-", "icbench plan")
            by_case = self.config.get_verbosity() > 0
            for line in plan(self._get_testbed(), self.options, self._items, self._hosts, by_case=by_case):
                reporter.write_line(line)

    def running(self, item: pytest.Item) -> tuple[Run, Benchmark]:
        """Returns the run and what the item measures. Fails the test if the host could not be taken."""
        from pytest_icbench.plugin.items import BENCHMARK

        if self.run is None and self._refusal is None:
            try:
                self._take_patiently()
            except Exception as error:
                self._refusal = sentence_of(error)
        if self.run is None:
            pytest.fail(str(self._refusal), pytrace=False)
        self.run.begin(item.nodeid)
        return self.run, item.stash[BENCHMARK]

    def after(self, item: pytest.Item, next_item: pytest.Item | None) -> None:
        """Ends an item: closes the rigs that the next one cannot use."""
        if self.run is None or not self._items:
            return
        from pytest_icbench.plugin.items import BENCHMARK, is_benchmark

        if is_benchmark(item) and not item.get_closest_marker("skip"):
            self.run.begin(item.nodeid)
            self.run.after(None if next_item is None else next_item.stash.get(BENCHMARK, None))

    def close(self) -> None:
        """Gives the host back. Idempotent. The end of the session names what could not be undone."""
        run, self.run = self.run, None
        if run is None:
            return
        with told(self._tell_leftovers):
            run.close()

    def _tell_leftovers(self, sentence: str) -> None:
        self._leftovers = self._leftovers or sentence

    def tell_unwritten(self, sentence: str) -> None:
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
        from pytest_icbench.plugin.items import is_benchmark

        if not is_benchmark(item):
            return
        with told(self.tell_unwritten):
            self.collector.note(self.run, report)

    def receive(self, report: pytest.TestReport) -> None:
        """Takes a report that was made here or by a worker."""
        benchmark = names_case(report.nodeid)
        self.files.has_cases = self.files.has_cases or benchmark
        self.outcomes.add(report)
        if benchmark and hasattr(report, "node"):
            self._merge_in(report)
        with told(self.tell_unwritten, f"{report.nodeid}: its results are left out: "):
            self.collector.receive(report, is_case=benchmark)

    def _merge_in(self, report: pytest.TestReport) -> None:
        """Puts the results of a worker on another host into the run's files here."""
        with told(self.tell_unwritten, f"{report.nodeid}: "):
            if self.workers.take(report):
                self.collector.note(self.workers, report)

    def unconfigure(self) -> None:
        """Ends the session before other plugins end theirs."""
        self.close()
        with told(self.tell_unwritten):
            self.files.unconfigure()

    def finish(self, session: pytest.Session) -> None:
        """Writes the session's files and sets the exit status. Called before other plugins write their reports."""
        self.close()
        with told(self.tell_unwritten):
            self.collector.interrupted()
        if self.options.history is not None and self.results:
            from pytest_icbench.report.html.page import add_history

            with told(self.tell_unwritten, "the history is not in the report: "):
                add_history(self.collector.page, self.options.history)
        if not self.is_worker and self.results:
            from pytest_icbench.plugin.finish import write_all

            self.collector.page.runs.append(self.run_name)
            with told(self.tell_unwritten):
                self._baseline_lines, troubles = write_all(self.options, self.directory, self.results, self.outcomes)
                self._unwritten += troubles
        self.set_status(session)

    def not_written(self, session: pytest.Session, error: OSError) -> None:
        """Tells that a writer of a report failed, and lets the one after it write nevertheless."""
        from pytest_icbench.report.junit import write_page

        with told(self.tell_unwritten, "a report cannot be written: "):
            raise error
        with told(self.tell_unwritten, "a report cannot be written: "):
            write_page(session, error)
        self.set_status(session)

    def set_status(self, session: pytest.Session) -> None:
        """Sets the exit status by how the tests ended, and by what could not be undone or written."""
        broken = self._leftovers is not None or bool(self._unwritten)
        if broken and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif not self.is_worker and not broken:
            told, weak = self.options.tells_by_exit, WEAK in self.options.fail and self._is_weak()
            session.exitstatus = self.outcomes.exit_status(int(session.exitstatus), told=told, weak=weak)

    def _is_weak(self) -> bool:
        """Whether a comparison of the session could not have shown a loss of a tenth."""
        from pytest_icbench.report.power import is_weak

        return is_weak(self.results)

    def summarize(self, reporter: Any, *, interrupted: bool) -> None:
        """Writes the end of pytest's output; for an interrupted run also the command that goes on with it."""
        from pytest_icbench.plugin.terminal_summary import write_results, write_troubles

        write_troubles(reporter, self._leftovers, self._unwritten)
        if not self.results:
            return
        write_results(reporter, self.results, self.collector.page, self.directory)
        for line in self._baseline_lines:
            reporter.write_line(line)
        if interrupted and not is_distributed(self.config):  # results of several hosts cannot be taken over
            from pytest_icbench.plugin.repeat import resume_command

            command = resume_command(self.run_name, list(map(str, self.config.invocation_params.args)))
            reporter.write_line(f"go on with: {command}")

    # -- xdist

    @property
    def workers(self) -> Workers:
        """The workers of this controller."""
        if self._workers is None:
            from pytest_icbench.plugin.xdist.workers import Workers

            argv = [hidden(str(argument), self.options) for argument in self.config.invocation_params.args]
            self._workers = Workers(self.directory, argv, self.options)
        return self._workers

    def worker_ended(self, node: Any) -> None:
        """Forgets a worker that has ended: another one may take its place."""
        if self._workers is not None:
            self._workers.forget(node)
