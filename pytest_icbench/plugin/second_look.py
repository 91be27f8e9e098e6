# SPDX-License-Identifier: BSD-3-Clause
"""Measures suspects again at the session's end: apart in time, on rigs built anew, beside the control again.

A suspect is a case that the baseline shows to be worse (``gate.over_sessions``). The reports of its first look are held
back, so that pytest sees one outcome of each test: that of the second look, or of the first one if no time was left.
Workers of xdist measure a suspect again at once, since their controller hands out each test once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from pytest_icbench.plugin.items import BENCHMARK
from pytest_icbench.plugin.schedule.forecast import second_look_least_s
from pytest_icbench.plugin.session import Session
from pytest_icbench.plugin.usage import told
from pytest_icbench.wording import counted, percent, printable

if TYPE_CHECKING:
    from pytest_icbench.model.finding import Finding
    from pytest_icbench.plugin.fixture import Icbench


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A test whose first look found a suspect; ``properties`` are those that it had before."""

    item: pytest.Item
    finding: Finding
    reports: list[pytest.TestReport]
    properties: list[tuple[str, object]]


class SecondLooks:
    """Holds suspects back, and measures them again.

    Args:
        fixture: returns the fixture ``icbench`` of an item that has run; None for one that did not come so far.
    """

    def __init__(self, session: Session, fixture: Callable[[pytest.Item], Icbench | None]) -> None:
        self._session = session
        self._fixture = fixture
        self._suspects: list[_Suspect] = []
        self._second = False

    def protocol(self, item: pytest.Item, next_item: pytest.Item | None) -> bool | None:
        """Runs an item whose verdict may need a second look; None for any other, which pytest runs."""
        compares = self._session.options.compare is not None
        if not compares or self._session.options.plan or item.get_closest_marker("icbench") is None:
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        properties = list(item.user_properties)
        reports = runtestprotocol(item, log=False, nextitem=next_item)
        run = self._session.run
        finding = None if run is None else self.suspect(item)
        if finding is None:
            self._log(item, reports)
        else:
            suspect = _Suspect(item, finding, reports, properties)
            if self._session.is_worker:
                self._again(suspect, next_item)
            else:
                self._suspects.append(suspect)
                self._say(f"{_named(suspect)}: a suspect, measured again at the session's end")
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def holds(self, item: pytest.Item) -> bool:
        """Whether the line of a test is not written yet, because its first look found a suspect."""
        return not self._second and self._session.run is not None and self.suspect(item) is not None

    def suspect(self, item: pytest.Item) -> Finding | None:
        """Returns the finding that makes a test's first look suspect."""
        icbench = self._fixture(item)
        results = [] if icbench is None else icbench.results
        return next((finding for result in results for finding in result.findings if finding.suspect), None)

    def run(self, session: pytest.Session) -> None:
        """Measures the suspects again, the clearest first. Those for which no time is left keep their first look."""
        self._suspects.sort(key=lambda suspect: -_strength(suspect.finding))
        late = 0
        while self._suspects:
            suspect = self._suspects[0]
            seconds = self._seconds(len(self._suspects))
            if seconds is None or session.shouldfail or session.shouldstop:
                late += 1
                self._suspects.pop(0)
                self._keep(suspect)
                continue
            following = self._suspects[1].item if len(self._suspects) > 1 else None
            suspect.item.ihook.pytest_runtest_logstart(nodeid=suspect.item.nodeid, location=suspect.item.location)
            self._again(self._suspects.pop(0), following, seconds)
            suspect.item.ihook.pytest_runtest_logfinish(nodeid=suspect.item.nodeid, location=suspect.item.location)
        if late:
            self._say(f"{counted(late, 'suspect')} not measured again, for lack of time: give more --icbench-budget")

    def give_up(self) -> None:
        """Reports the first looks that are still held back, after an interruption."""
        while self._suspects:
            self._keep(self._suspects.pop(0))

    def _seconds(self, left: int) -> float | None:
        """Returns the time for the next suspect, infinite without a budget; None if too little is left."""
        run = self._session.run
        if run is None:
            return None
        if run.options.budget is None:
            return math.inf
        benchmark = self._suspects[0].item.stash[BENCHMARK]
        least_s = second_look_least_s(benchmark.settings, benchmark.case.rate)
        rest_s = run.options.budget - (time.monotonic() - run.opened)
        return max(rest_s / left, least_s) if rest_s >= least_s else None

    def _again(self, suspect: _Suspect, following: pytest.Item | None, seconds: float = math.inf) -> None:
        run, item = self._session.run, suspect.item
        assert run is not None  # a suspect was measured
        item.user_properties[:] = suspect.properties
        self._second = True
        run.begin_second_look(seconds)
        try:
            self._log(item, runtestprotocol(item, log=False, nextitem=following))
        finally:
            run.end_second_look()
            self._second = False

    def _keep(self, suspect: _Suspect) -> None:
        """Reports a first look after all."""
        run = self._session.run
        for report in suspect.reports:
            if run is not None:
                with told(self._session.tell_unwritten):
                    self._session.collector.note(run, report)
        self._log(suspect.item, suspect.reports)

    def _log(self, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)

    def _say(self, sentence: str) -> None:
        reporter: Any = self._session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._session.config.get_verbosity() >= 0:
            reporter.ensure_newline()
            reporter.write_line(printable(f"icbench: {sentence}"))


def _named(suspect: _Suspect) -> str:
    """Returns the case of a suspect and its change."""
    name = suspect.item.nodeid.rpartition("[")[2].removesuffix("]")
    ratio = suspect.finding.ratio or 1.0
    return f"{name}: {percent(ratio - 1)} {'lower' if ratio < 1 else 'higher'}"


def _strength(finding: Finding) -> float:
    """How far a figure is worse, as a share of the better one of both."""
    ratio = finding.ratio or 1.0
    return 1 - min(ratio, 1 / ratio)
