# SPDX-License-Identifier: BSD-3-Clause
"""The hooks of a session in which a benchmark runs. Imports all that measures and reports."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from pytest_icbench.host.signals import defer_signals
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.collecting import Collection
from pytest_icbench.plugin.collector import replay
from pytest_icbench.plugin.html import HtmlHooks
from pytest_icbench.plugin.outcomes import note_outcome, show_message_only
from pytest_icbench.plugin.retest import Retests
from pytest_icbench.plugin.rounds import measure_rounds
from pytest_icbench.plugin.session import FIXTURE, Session
from pytest_icbench.plugin.turns import take_turns
from pytest_icbench.plugin.usage import usage_errors


def start(collection: Collection) -> Session:
    """Starts the session of a collection that has benchmarks, and registers its hooks."""
    session = Session(collection)
    manager = collection.config.pluginmanager
    manager.register(SessionHooks(session), "icbench-session")
    if not session.is_worker:
        manager.register(session.lines, "icbench-lines")
    if collection.html_report is not None:
        page = HtmlHooks(lambda: session.collector.page, session.collector.hide, collection.html_report)
        manager.register(page, "icbench-html")
    return session


class SessionHooks:
    """The hooks of a session in which a benchmark runs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._retests: Retests | None = None
        if session.options.compare is not None:
            self._retests = Retests(session, lambda item: item.stash.get(FIXTURE, None))

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        return self._session.header(items)

    @pytest.hookimpl(wrapper=True)  # within that of the collection, which drops the files of a session without cases
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        with usage_errors():
            self._session.open(session)
        try:
            if self._session.options.rounds > 1:
                measure_rounds(self._session, session.items)
            with self._turns(session.items):
                ran = yield
                if self._retests is not None:
                    self._retests.run(session)
            return ran
        finally:
            self._session.end_child()
            if self._retests is not None:
                self._retests.give_up()
            self._session.close()

    def _turns(self, items: Sequence[pytest.Item]) -> AbstractContextManager[None]:
        options = self._session.options
        if self._session.run is None or options.rounds > 1 or not options.turns:
            return nullcontext()
        return take_turns(self._session, items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Runs a benchmark of a session that compares with a baseline: a possible regression is measured again.

        pytest-forked's children do not get here; a child that does goes on after the test that forked it.
        """
        self._session.end_child()
        return None if self._retests is None else self._retests.protocol(item, nextitem)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        icbench = item.stash.get(FIXTURE, None)
        if icbench is None:
            return (yield)
        unjudged = None
        try:
            yield
            unjudged = icbench.unjudged()
        finally:
            self._session.end_child()
            with defer_signals():  # a result that is in its file is in the tables, too
                icbench.finish()  # also after Ctrl-C, so that finished measurements are kept
                self._session.collector.measured(item.nodeid, icbench.results)
            if "benchmark" in getattr(item, "funcargs", {}):
                replay(item, icbench.results)
        if unjudged is not None:
            pytest.fail(f"{Verdict.INVALID} measurement that the test has not judged: {unjudged}", pytrace=False)
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        icbench = item.stash.get(FIXTURE, None)
        if icbench is not None and call.when == "call":
            run = self._session.run if self._session.sends else None
            self._session.collector.attach(report, icbench, run)
        if self._retests is not None and call.when == "teardown" and self._retests.holds(item):
            self._session.collector.forget(item.nodeid)
        else:
            self._session.note(item, report)
        if item.get_closest_marker("icbench") is not None:
            if report.failed:
                show_message_only(call, report, item.config.getoption("tbstyle", "auto"))
            note_outcome(item, call, report, icbench.results if icbench is not None else [])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._session.receive(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        try:
            return (yield)
        finally:
            self._session.after(item, nextitem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._session.finish(session)

    @pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_sessionfinish")
    def pytest_icbench_reports(self, session: pytest.Session) -> Generator[None, object, object]:
        """Turns an error of the writers of JUnit XML and HTML into a sentence, so that the session ends in order."""
        try:
            return (yield)
        except OSError as error:
            self._session.not_written(session, error)
            return None

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        self._session.summarize(terminalreporter, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        self._session.unconfigure()
