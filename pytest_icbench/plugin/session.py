# SPDX-License-Identifier: BSD-3-Clause
"""What one pytest session knows about its benchmarks. Made for every session, so it imports late and opens late."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported, UsageError, WorkloadError
from pytest_icbench.model.case_id import is_case
from pytest_icbench.plugin.anonymous import hidden
from pytest_icbench.plugin.collector import ResultCollector
from pytest_icbench.plugin.outcomes import Outcomes

if TYPE_CHECKING:
    from pytest_icbench.config.switch_config import SwitchConfig
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.model.result import Result
    from pytest_icbench.plugin.items import Benchmark
    from pytest_icbench.plugin.run import Run
    from pytest_icbench.plugin.xdist.workers import Workers
    from pytest_icbench.testbed.testbed import Testbed


#: How long a worker on another host waits for the end of the one before it.
WORKER_PATIENCE_S = 30.0


class State:
    """Attributes:
    options: what the user asked for.
    collected: a marked test was seen.
    run_name: of the run's directory; a worker of xdist has its controller's.
    heard: what the tests' reports brought.
    """

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.heard = ResultCollector(config, options)
        self.run: Run | None = None
        self.collected = False
        self._bench: Testbed | None = None
        self._switches: Mapping[str, type[Switch]] = {}
        self._configs: Mapping[str, SwitchConfig] = {}
        self._items: list[pytest.Item] = []
        self._header_shown = False
        self._refusal: str | None = None
        self._leftovers: str | None = None
        self._unsaved: list[str] = []
        self._saved: list[Path] = []
        self.tally = Outcomes()
        self._workers: Workers | None = None
        worker = getattr(config, "workerinput", None)
        self.is_worker = worker is not None
        self.sends = bool(worker["icbench_sends"]) if worker is not None else False
        self._run_name: str | None = None
        if worker is not None:
            # On another host, which may share its files with this one, a run of its own.
            own = f"-{worker['workerid']}" if self.sends else ""
            self._run_name = f"{worker['icbench_run']}{own}"
        self._dropped: list[Any] = []
        self._heard_a_case = False
        self._own_files = self._choose_files()
        #: Whose time a plan tells.
        self._hosts = 1
        if options.plan and _distributed(config):
            from pytest_icbench.plugin.xdist.workers import plan_here

            self._hosts = plan_here(config)
        elif _distributed(config) and not self.is_worker:
            from pytest_icbench.plugin.xdist.hooks import ControllerHooks

            config.pluginmanager.register(ControllerHooks(config, self), "icbench-xdist")
        config.pluginmanager.register(_Listener(self), "icbench-results")
        if getattr(config.option, "htmlpath", None):
            from pytest_icbench.plugin.html import HtmlHooks

            config.pluginmanager.register(HtmlHooks(lambda: self.heard.page, self.heard.hide), "icbench-html")

    @property
    def run_name(self) -> str:
        if self._run_name is None:
            from pytest_icbench.store.results import new_run_name

            self._run_name = new_run_name(self.options.reports)
        return self._run_name

    @property
    def directory(self) -> Path:
        return self.options.reports / self.run_name

    def _choose_files(self) -> tuple[str, ...]:
        """``icbench_run_files``: JUnit XML and HTML into the run's directory, unless the user put them elsewhere.

        Returns the options that were set.
        """
        option = self.config.option
        if not self.options.run_files or self.is_worker or option.collectonly or self.options.plan:
            return ()
        chosen = []
        self._had_reports = self.options.reports.exists()
        for name, file in (("xmlpath", "junit.xml"), ("htmlpath", "report.html")):
            if getattr(option, name, "") is None:
                setattr(option, name, str(self.directory / file))
                chosen.append(name)
        if "htmlpath" in chosen:
            option.self_contained_html = True  # one file; its assets would be written before we know whether to
        return tuple(chosen)

    # -- collection

    def arrange(self, items: list[pytest.Item]) -> None:
        """Checks, deselects and sorts collected items. Raises UsageError."""
        named = self.options.switch or self.options.port or self.options.switch_config or self.options.variant
        if not (self.collected or named):
            return
        from pytest_icbench.plugin.items import arrange, is_benchmark

        self._switches, self._configs = arrange(self.config, items, self.options)
        self._items = [item for item in items if is_benchmark(item)]
        if self._items and self.is_worker:
            from pytest_icbench.plugin.xdist.workers import compare_packages

            compare_packages(self.config.workerinput)  # type: ignore[attr-defined]

    def header(self, items: Sequence[pytest.Item] | None = None) -> list[str]:
        """Lines for pytest's header: nothing in a session that has to do with no benchmark.

        Args:
            items: those that will run, None before collection.
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
            cases = f"{len(self._items)} case{'' if len(self._items) == 1 else 's'}"
            try:
                lines.append(f"icbench: {cases}, placement {self._asked().policy}")
            except IcbenchError as error:
                lines.append(f"icbench: {str(error).splitlines()[0]}")
        return lines

    def _select(self, items: Sequence[pytest.Item]) -> None:
        """Another plugin may have left some out after us, or skips them (``--benchmark-skip``)."""
        selected = set(items)
        self._items = [item for item in self._items if item in selected and not item.get_closest_marker("skip")]

    def _asked(self) -> Testbed:
        if self._bench is None:
            from pytest_icbench.testbed.testbed import Testbed

            reasons = {benchmark.case: benchmark.unsupported for benchmark in self._benchmarks()}
            self._bench = Testbed(self._switches, self.options, list(reasons), self._configs, reasons)
        return self._bench

    def _benchmarks(self) -> list[Benchmark]:
        from pytest_icbench.plugin.items import benchmarks

        return benchmarks(self._items)

    # -- running

    def check_budget(self, items: Sequence[pytest.Item]) -> None:
        """In a worker, before its controller hands out tests. Raises UsageError if the time is too short for them."""
        self._select(items)
        if not self._items or self.options.budget is None:
            return
        from pytest_icbench.plugin.schedule.plan import hosts_of, make_budget

        with suppress(Unsupported, ProvisionError):  # told by the tests
            make_budget(self._asked(), self.options, self._benchmarks(), hosts_of(self.config))

    def open(self, session: pytest.Session) -> None:
        """Takes the host, if a benchmark is going to run. Raises UsageError, or ends pytest with exit code 3."""
        option = self.config.option
        self._select(session.items)
        hindered = session.testsfailed and not option.continue_on_collection_errors
        if not self._items or option.collectonly or hindered:
            self.leave_no_files()
            return
        if self.options.plan:
            self._plan()
            session.items.clear()
            return
        if self.is_worker:
            return  # at the first test: until then the controller can refuse
        try:
            self._take()
        except (UsageError, Unsupported, ProvisionError, WorkloadError) as error:
            self.leave_no_files()
            if isinstance(error, ProvisionError):
                pytest.exit(str(error), returncode=3)
            raise UsageError(str(error)) from None

    def _take_patiently(self) -> None:
        """A worker that comes after one that died on the same host waits until that one has cleaned up."""
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
        # The history of a worker that sends is its controller's.
        options = replace(self.options, history=None) if self.sends else self.options
        self.run = Run(self.config, options, self._asked(), self._items, self.directory)

    def _plan(self) -> None:
        from pytest_icbench.plugin.schedule.plan import plan

        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_sep("-", "icbench plan")
            for line in plan(self._asked(), self.options, self._items, self._hosts):
                reporter.write_line(line)

    def running(self, item: pytest.Item) -> tuple[Run, Benchmark]:
        """The run and what the item measures. Fails the test if the host could not be taken."""
        from pytest_icbench.plugin.items import BENCHMARK

        if self.run is None and self._refusal is None:
            try:
                self._take_patiently()
            except IcbenchError as error:
                self._refusal = str(error)
        if self.run is None:
            pytest.fail(str(self._refusal), pytrace=False)
        self.run.begin(item.nodeid)
        return self.run, item.stash[BENCHMARK]

    def after(self, item: pytest.Item, next_item: pytest.Item | None) -> None:
        """An item is over."""
        if self.run is None or not self._items:
            return
        from pytest_icbench.plugin.items import BENCHMARK, is_benchmark

        if is_benchmark(item) and not item.get_closest_marker("skip"):
            self.run.begin(item.nodeid)
            self.run.after(None if next_item is None else next_item.stash.get(BENCHMARK, None))

    def close(self) -> None:
        """Gives the host back. Idempotent. What could not be undone is told at the end of the session."""
        run, self.run = self.run, None
        if run is None:
            return
        try:
            run.close()
        except IcbenchError as error:
            self._leftovers = str(error)

    # -- reports

    @property
    def results(self) -> list[Result]:
        """Of all tests so far."""
        return self.heard.results

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """One phase of a test is over; with the last one its line is written."""
        if self.run is None:
            return
        from pytest_icbench.plugin.items import is_benchmark

        if not is_benchmark(item):
            return
        try:
            self.heard.note(self.run, report)
        except ProvisionError as error:
            self._leftovers = self._leftovers or str(error)

    def receive(self, report: pytest.TestReport) -> None:
        """A report has been made, here or by a worker."""
        benchmark = is_case(report.nodeid)
        self._heard_a_case = self._heard_a_case or benchmark
        self.tally.add(report)
        if benchmark and hasattr(report, "node"):
            self._merge_in(report)
        self.heard.receive(report, is_case=benchmark)

    def _merge_in(self, report: pytest.TestReport) -> None:
        """A report of a worker on another host: its results go into the run's files here."""
        try:
            if self.workers.take(report):
                self.heard.note(self.workers, report)
        except ProvisionError as error:
            self._leftovers = self._leftovers or str(error)

    def leave_no_files(self) -> None:
        """The files of ``icbench_run_files`` are not written: nothing is run. A controller of xdist cannot know yet."""
        if not _distributed(self.config):
            self._drop_files()

    def leave_unused_files(self) -> None:
        """All has been run, and the writers have not been asked to write yet: now a controller knows too."""
        if not self._heard_a_case and not self.is_worker:
            self._drop_files()

    def _drop_files(self) -> None:
        if not self._own_files:
            return
        from pytest_icbench.report.junit import drop_unused

        self._dropped += drop_unused(self.config, self._own_files)
        with suppress(OSError):  # pytest-html makes the directory when it is loaded
            self.directory.rmdir()
            if not self._had_reports:
                self.options.reports.rmdir()

    def unconfigure(self) -> None:
        """Before the writers' own plugins take them out: they insist on finding them."""
        self.close()
        for plugin in self._dropped:
            self.config.pluginmanager.register(plugin)
        self._dropped.clear()
        if "xmlpath" in self._own_files and not self.options.host_names:
            from pytest_icbench.report.junit import hide_host

            hide_host(self.directory / "junit.xml")

    def finish(self, session: pytest.Session) -> None:
        """Before the reports of the session are written."""
        self.close()
        self.heard.interrupted()
        if self.options.history is not None and self.results:
            from pytest_icbench.report.html.page import add_history

            add_history(self.heard.page, self.options.history)
        if not self.is_worker and self.results:
            from pytest_icbench.plugin.finish import write_all

            self._saved, self._unsaved = write_all(self.options, self.directory, self.results, self.tally)
        broken = self._leftovers is not None or bool(self._unsaved)
        if broken and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self.options.exit_codes and not self.is_worker and not broken:
            session.exitstatus = self.tally.exit_status(int(session.exitstatus))

    def summarize(self, reporter: Any) -> None:
        """The table at the end."""
        if self._leftovers is not None:
            reporter.write_sep("=", "icbench: the host is not as before", red=True)
            reporter.write_line(self._leftovers)
        if self._unsaved:
            reporter.write_sep("=", "icbench: not written", red=True)
        for sentence in self._unsaved:
            reporter.write_line(sentence)
        if not self.results:
            return
        from pytest_icbench.report.terminal import table

        reporter.write_sep("=", "icbench results")
        from pytest_icbench.report.versions import overall
        from pytest_icbench.wording import wrapped

        for line in (*table(self.results), *(line for each in overall(self.results) for line in wrapped(each))):
            reporter.write_line(line)
        if self.heard.page.taken:
            origin = next(iter(self.heard.page.taken.values()))
            reporter.write_line(f"{len(self.heard.page.taken)} of {len(self.results)} results were taken from {origin}")
        reporter.write_line(f"reports: {self.directory}")
        if self._saved:
            reporter.write_line(f"baseline {self.options.save}: {', '.join(map(str, self._saved))}")

    # -- xdist

    @property
    def workers(self) -> Workers:
        """Of the controller."""
        if self._workers is None:
            from pytest_icbench.plugin.xdist.workers import Workers

            argv = [hidden(str(each), self.options) for each in self.config.invocation_params.args]
            self._workers = Workers(self.directory, argv, self.options)
        return self._workers

    def worker_ended(self, node: Any) -> None:
        """Another one may take its place."""
        if self._workers is not None:
            self._workers.forget(node)


class _Listener:
    """A plugin of its own, since the hook has no config by which a plain function could find the state."""

    def __init__(self, state: State) -> None:
        self._state = state

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._state.receive(report)


def _distributed(config: pytest.Config) -> bool:
    return str(config.getoption("dist", "no")) != "no" or hasattr(config, "workerinput")
