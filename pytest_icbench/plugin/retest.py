# SPDX-License-Identifier: BSD-3-Clause
"""Measures possible regressions again at the session's end, on rigs built anew.

A possible regression is a case that lies outside of the baseline's sessions once (``gate.baseline_comparison``). Where
the old version can be started here, the current one is compared with it (method 1), and that verdict stands. Elsewhere
the case is measured again. The reports of the first time are held back, so that pytest sees one outcome of each test:
that of the retest, or of the first time if no time was left. Workers of xdist measure again at once, since their
controller hands out each test once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from pytest_icbench.gate.entry import make_entry
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin.fixture import Icbench
from pytest_icbench.plugin.items import BENCHMARK
from pytest_icbench.plugin.old_versions import find_old_version
from pytest_icbench.plugin.plan import retest_least_s
from pytest_icbench.plugin.session import Session
from pytest_icbench.plugin.usage import report_errors
from pytest_icbench.wording import counted, percent, printable


@dataclass(frozen=True, slots=True)
class _Possible:
    """A test that found a possible regression; ``properties`` are those that it had before."""

    item: pytest.Item
    result: Measurement
    finding: Finding
    reports: list[pytest.TestReport]
    properties: list[tuple[str, object]]


class Retests:
    """Holds possible regressions back, and measures them again.

    ``fixture``: returns the fixture ``icbench`` of an item that has run; None for one that did not come so far.
    """

    def __init__(self, session: Session, fixture: Callable[[pytest.Item], Icbench | None]) -> None:
        self._session = session
        self._fixture = fixture
        self._held: list[_Possible] = []
        self._retesting = False

    def protocol(self, item: pytest.Item, next_item: pytest.Item | None) -> bool | None:
        """Runs an item whose verdict may need a retest; None for any other, which pytest runs."""
        compares = self._session.options.compare is not None
        if not compares or self._session.options.plan or item.get_closest_marker("icbench") is None:
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        properties = list(item.user_properties)
        reports = runtestprotocol(item, log=False, nextitem=next_item)
        found = None if self._session.run is None else self._possible(item)
        if found is None:
            self._log(item, reports)
        else:
            possible = _Possible(item, *found, reports, properties)
            if self._session.is_worker:
                self._again(possible, next_item)
            else:
                self._held.append(possible)
                self._say(f"{_named(possible)}: a possible regression, measured again at the session's end")
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def holds(self, item: pytest.Item) -> bool:
        """Whether the line of a test is not written yet, because it is measured again."""
        return not self._retesting and self._session.run is not None and self._possible(item) is not None

    def _possible(self, item: pytest.Item) -> tuple[Measurement, Finding] | None:
        """Returns the result with a possible regression of a test, and its finding."""
        icbench = self._fixture(item)
        results = [] if icbench is None else icbench.results
        return next(((result, finding) for result in results for finding in result.findings if finding.retest), None)

    def run(self, session: pytest.Session) -> None:
        """Measures possible regressions again, greatest loss first. Those without time left keep their first result."""
        self._held.sort(key=lambda possible: -_loss(possible.finding))
        late = 0
        while self._held:
            possible = self._held[0]
            seconds = self._seconds(len(self._held))
            if seconds is None or session.shouldfail or session.shouldstop:
                late += 1
                self._held.pop(0)
                self._keep(possible)
                continue
            following = self._held[1].item if len(self._held) > 1 else None
            possible.item.ihook.pytest_runtest_logstart(nodeid=possible.item.nodeid, location=possible.item.location)
            self._again(self._held.pop(0), following, seconds)
            possible.item.ihook.pytest_runtest_logfinish(nodeid=possible.item.nodeid, location=possible.item.location)
        if late:
            cases = counted(late, "possible regression")
            self._say(f"{cases} not measured again, for lack of time: raise --icbench-budget")

    def give_up(self) -> None:
        """Reports the results that are still held back, after an interruption."""
        while self._held:
            self._keep(self._held.pop(0))

    def _seconds(self, left: int) -> float | None:
        """Returns the time for the next retest, infinite without a budget; None if too little is left."""
        run = self._session.run
        if run is None:
            return None
        if run.options.budget is None:
            return math.inf
        benchmark = self._held[0].item.stash[BENCHMARK]
        least_s = retest_least_s(benchmark.settings, benchmark.case.rate)
        rest_s = run.options.budget - (time.monotonic() - run.opened)
        return max(rest_s / left, least_s) if rest_s >= least_s else None

    def _again(self, possible: _Possible, following: pytest.Item | None, seconds: float = math.inf) -> None:
        run, item = self._session.run, possible.item
        assert run is not None  # it was measured
        now = make_entry(possible.result)
        before = None if now is None or run.comparer is None else run.comparer.nearest(now)
        old = None
        if now is not None and before is not None:
            found = find_old_version(before.entry.old, now.old, now.switch)
            old = found.candidate
            self._say(f"{_named(possible)}: {found.sentence}")
        item.user_properties[:] = possible.properties
        self._retesting = True
        run.begin_retest(seconds, old)
        try:
            self._log(item, runtestprotocol(item, log=False, nextitem=following))
        finally:
            run.end_retest()
            self._retesting = False

    def _keep(self, possible: _Possible) -> None:
        """Reports a first result after all."""
        run = self._session.run
        for report in possible.reports:
            if run is not None:
                with report_errors(self._session.keep_unwritten):
                    self._session.collector.note(run, report)
        self._log(possible.item, possible.reports)

    def _log(self, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)

    def _say(self, sentence: str) -> None:
        reporter: Any = self._session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._session.config.get_verbosity() >= 0:
            reporter.ensure_newline()
            reporter.write_line(printable(f"icbench: {sentence}"))


def _named(possible: _Possible) -> str:
    """Returns the case of a possible regression and its change."""
    name = possible.item.nodeid.rpartition("[")[2].removesuffix("]")
    ratio = possible.finding.ratio or 1.0
    return f"{name}: {percent(ratio - 1)} {'lower' if ratio < 1 else 'higher'}"


def _loss(finding: Finding) -> float:
    """How far a figure is worse, as a share of the better one of both."""
    ratio = finding.ratio or 1.0
    return 1 - min(ratio, 1 / ratio)
