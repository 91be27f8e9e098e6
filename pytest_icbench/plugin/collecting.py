# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of a session while pytest collects. Imported when options are given or a marked test is collected.

The module imports what collecting needs. What measures and reports is imported when a benchmark is going to run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_icbench.config.option_table import TABLE
from pytest_icbench.config.options import Options, check_directories, from_config
from pytest_icbench.config.switches import SwitchConfig
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.plugin.items import (
    LEFT_OUT,
    Benchmark,
    arrange,
    benchmarks,
    check_rounds,
    is_benchmark,
    parametrize,
)
from pytest_icbench.plugin.pytest_benchmark import adopt, is_asked_for
from pytest_icbench.plugin.pytest_reports import PytestReports, is_distributed
from pytest_icbench.plugin.usage import REFUSAL, refuse_forks, usage_errors
from pytest_icbench.store.run_directory import new_run_name
from pytest_icbench.version import package_version

if TYPE_CHECKING:  # measuring and pytest-xdist are not needed to collect
    from pytest_icbench.plugin.fixture import Icbench
    from pytest_icbench.plugin.xdist_workers import ControllerHooks

_COLLECTION = pytest.StashKey["Collection"]()


class RunningSession(Protocol):
    """The part of a session that is needed before its own hooks are called."""

    def check_budget(self, items: Sequence[pytest.Item]) -> None:
        """Raises UsageError if the time does not suffice for the cases."""

    def describe_left_out(self, left_out: Sequence[Benchmark]) -> str:
        """Returns a line on the long forms that a session leaves out."""

    def start_test(self, item: pytest.Item, case: Case) -> Icbench:
        """Returns the fixture ``icbench`` of a test."""

    def receive(self, report: pytest.TestReport) -> None:
        """Takes the report of a phase of a test."""


def begin(config: pytest.Config, start: Callable[[Collection], RunningSession], *, early: bool) -> Collection:
    """Returns the collection of a session. The first call reads the options; it raises ``pytest.UsageError``.

    ``early``: whether other plugins are going to read their options.
    """
    if _COLLECTION not in config.stash:
        with usage_errors():
            _check_root(config)
            collection = config.stash[_COLLECTION] = Collection(config, from_config(config), start)
            if not early:
                collection.files.start_writers()
    return config.stash[_COLLECTION]


def _check_root(config: pytest.Config) -> None:
    """Raises UsageError if pytest took the path of an option of ours for that of tests, and so found another root.

    It looks for its ini file before it knows the options of plugins.
    """
    here, paths = config.invocation_params.dir, {row.option for row in TABLE if row.path}
    if config.inipath is not None and here.is_relative_to(config.rootpath):
        return
    for option, word in pairwise(map(str, config.invocation_params.args)):
        path = here / word
        if option in paths and path.exists() and not path.is_relative_to(here):
            raise UsageError(f"{option} {word}: pytest takes a separate word for a path of tests: {option}={word}")


class Collection:
    """Finds the benchmarks of a session, and starts the session that runs them.

    Attributes:
        collected: whether a marked test was seen.
        expanded: the ids of all cases by their tests' files, before any is deselected.
        items: the benchmarks, once they are collected.
        switches: all switches by name.
        configs: the user's configurations of switches and candidates.
        files: the files that pytest writes about the run.
        is_worker: whether this is a worker of xdist; ``sends``: one on another host, which sends its results.
        hosts: the number of hosts that a plan is made for.
        html_report: pytest-html's report and the name of its file, if it writes one.
        controller: the hooks of xdist's controller, if this is one.
    """

    def __init__(self, config: pytest.Config, options: Options, start: Callable[[Collection], RunningSession]) -> None:
        self._start = start
        self.config = config
        self.options = options
        self.collected = False
        self.expanded: dict[Path, set[str]] = {}
        self.items: list[pytest.Item] = []
        self.switches: Mapping[str, type[Switch]] = {}
        self.configs: Mapping[str, SwitchConfig] = {}
        worker = getattr(config, "workerinput", None)
        self.is_worker = worker is not None
        self.sends = bool(worker["icbench_sends"]) if worker is not None else False
        self._run_name: str | None = None
        if worker is not None:
            # A worker on another host needs a separate directory: both hosts may share their files.
            suffix = f"-{worker['workerid']}" if self.sends else ""
            self._run_name = f"{worker['icbench_run']}{suffix}"
        self.files = PytestReports(config, options, lambda: self.directory, is_worker=self.is_worker)
        self.hosts = 1
        self.html_report: tuple[Any, str] | None = None
        self.controller: ControllerHooks | None = None
        self._session: RunningSession | None = None
        self._header_shown = False
        config.pluginmanager.register(CollectionHooks(self), "icbench-collection")
        if is_distributed(config) and not self.is_worker:
            self._distribute()

    def _distribute(self) -> None:
        """Registers the hooks of xdist's controller, or makes a plan on this host. Raises UsageError."""
        from pytest_icbench.plugin.xdist_workers import ControllerHooks, plan_here  # needs pytest-xdist

        if self.options.plan:
            self.hosts = plan_here(self.config)
        elif not self.config.option.collectonly:
            self.controller = ControllerHooks(self.config, self)
            self.config.pluginmanager.register(self.controller, "icbench-xdist")

    @property
    def run_name(self) -> str:
        """The name of the run's directory; that of a worker begins with its controller's."""
        if self._run_name is None:
            self._run_name = new_run_name(self.options.reports)
        return self._run_name

    @property
    def directory(self) -> Path:
        return self.options.reports / self.run_name

    @property
    def session(self) -> RunningSession:
        """The session that runs the benchmarks; the first use starts it."""
        if self._session is None:
            self._session = self._start(self)
        return self._session

    def start(self) -> None:
        """Starts the session that runs the benchmarks, if it has not been started."""
        _ = self.session

    @property
    def is_running(self) -> bool:
        """Whether the session has been started."""
        return self._session is not None

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Gives a marked test its cases. Raises CollectError for a mistake in the marker."""
        self.collected = True
        ids = self.expanded.setdefault(metafunc.definition.path, set())
        ids.update(id_ for case in parametrize(metafunc, self.options) for id_ in case.ids)

    def adopt(self, item: pytest.Item) -> None:
        """Gives a marked item to pytest-benchmark, if its table is asked for."""
        if is_asked_for(self.config, self.options.benchmark):
            adopt(item)

    def arrange(self, items: list[pytest.Item]) -> None:
        """Checks, deselects and sorts collected items in place. Raises UsageError."""
        named = self.options.switch or self.options.port or self.options.switch_config or self.options.candidate
        if not (self.collected or named):
            return
        check_directories(self.options)
        self.switches, self.configs = arrange(self.config, items, self.options)
        self.items = [item for item in items if is_benchmark(item)]
        if self.items:
            refuse_forks(self.config, self.items)
        if self.options.rounds > 1:
            check_rounds(self.options, benchmarks(items), distributed=self.is_worker)
        if self.items and self.is_worker:
            self._check_worker()

    def _check_worker(self) -> None:
        """Raises UsageError in a worker that shares its host with another, or whose controller has another package."""
        workerinput: Mapping[str, Any] = self.config.workerinput  # type: ignore[attr-defined]
        if workerinput.get("icbench_shares"):
            raise UsageError(
                "benchmarks cannot share a host: leave -n out (-n0), or give each worker its own host (--tx ssh=...)"
            )
        installed, expected = package_version(), workerinput.get("icbench_package", "an older one")
        if installed != expected:
            raise UsageError(
                f"its host has pytest-icbench {installed}, the controller's host has {expected}: install the same"
            )

    def header_lines(self) -> list[str]:
        """Returns the versions of the package, the workload and DPDK at the first call, then nothing."""
        if self._header_shown:
            return []
        self._header_shown = True
        line = f"icbench: {package_version()}"
        try:
            version = workload_version()
        except Exception as error:  # a header must not end the run: the cases say the same when they are set up
            return [f"{line}, no workload ({str(error).splitlines()[0]})"]
        dpdk = f"DPDK {version.dpdk}" if version.dpdk else "DPDK absent: socket applications only"
        return [f"{line}, workload {version.workload}, {dpdk}"]


class CollectionHooks:
    """The hooks of a session that can have benchmarks."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Shows the versions to a user who gave options, even if no benchmark is collected."""
        is_silent = self._collection.is_worker or config.option.collectonly or not self._collection.options.given
        return [] if is_silent else self._collection.header_lines()

    def pytest_report_collectionfinish(self, config: pytest.Config) -> list[str]:
        """Shows how many long forms are left out, or that no case is left."""
        left_out, options = config.stash.get(LEFT_OUT, []), self._collection.options
        if self._collection.is_worker or config.get_verbosity() < 0:
            return []
        if not left_out:
            is_empty = self._collection.collected and bool(options.switch) and not self._collection.items
            named = " ".join(options.switch)
            return [f"icbench: no case of {named}: --icbench-switch selects among the switches of tests"] * is_empty
        return [f"icbench: {self._collection.session.describe_left_out(left_out)}"]

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_html_report_title(self, report: Any) -> None:
        """Keeps pytest-html's report, whose title is its file's name unless a user sets one later."""
        self._collection.html_report = report, report.title

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Makes a worker of xdist that refuses to begin say why; its controller would only see that it ended."""
        try:
            return (yield)
        except pytest.UsageError as error:
            if hasattr(session.config, "workeroutput"):
                session.config.workeroutput[REFUSAL] = str(error)
            raise

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        with usage_errors():
            try:
                self._collection.arrange(items)
            except UsageError:
                self._collection.files.drop()
                raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Starts the session if a benchmark is going to run.

        A worker of xdist checks the budget here, at the last moment at which it can refuse.
        """
        if self._collection.items and not session.config.option.collectonly:
            running = self._collection.session
            if self._collection.is_worker:
                with usage_errors():
                    running.check_budget(session.items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            self._collection.files.drop_unused()

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        if not self._collection.is_running:  # otherwise the session does it, once it has ended itself
            self._collection.files.unconfigure()
