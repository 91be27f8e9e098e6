# SPDX-License-Identifier: BSD-3-Clause
"""Measures cases in turns (``--icbench-turns``): compared launches lie close in time, and those of a case far apart.

The host changes within seconds, so launches in a row tell too little. Tests that follow each other form a group, as
long as their cases take no longer than ``TURNS_S``. When the first of them asks for its measurement, all of their cases
are measured: a launch each, with one of its reference link, then the next launch each, until every case is over by its
own rules. The other tests take their measurements when they run.

Cases with launches of one kind take turns, on rigs that can exist at the same time. A test with its own fixtures, or
whose body takes the rig, is measured alone, since these may prepare the host. So is one whose body does not ask for
launches itself: whether it will is unknown. Each case has its own time, launches, errors and verdict.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from inspect import unwrap
from random import Random
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks

from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported
from pytest_icbench.kinds.runs import Measuring
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.estimate import launch_estimate_s
from pytest_icbench.measure.stopping import fewest_launches
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.items import BENCHMARK, MOST_SEED, ORDER_SEED, Benchmark, is_benchmark, shuffle_items
from pytest_icbench.plugin.plan import is_adaptive
from pytest_icbench.plugin.run import Run
from pytest_icbench.plugin.session import Session
from pytest_icbench.testbed.rig_pool import Setup, SetupRequest

#: The most seconds that a group of cases is estimated to take at least: results stream, and few are lost in a crash.
TURNS_S = 180.0
#: Fixtures that do not prepare the host.
_HARMLESS = {"benchmark", "case", "icbench", "pytestconfig", "record_property", "request", "tmp_path"}


@dataclass(slots=True)
class _Member:
    """A case of a group, and what it has so far."""

    item: pytest.Item
    benchmark: Benchmark
    place: int
    requests: SetupRequest
    budget_s: float | None = None
    #: Whether the budget leaves it less time than its settings.
    by_budget: bool = False
    measuring: Measuring | None = None
    #: Why there is no reference link.
    trouble: str | None = None
    measurement: Measurement | None = None
    error: Exception | None = None

    @property
    def case(self) -> Case:
        return self.benchmark.case

    @property
    def settings(self) -> Settings:
        return self.benchmark.settings

    @property
    def over(self) -> bool:
        return self.measurement is not None or self.error is not None


class Turns:
    """Measures groups of cases in turns, and gives each test the measurement of its case.

    ``items``: the benchmarks of the session, in their order.
    """

    def __init__(self, session: Session, run: Run, items: Sequence[pytest.Item]) -> None:
        self._session = session
        self._run = run
        seed = session.config.stash.get(ORDER_SEED, None)
        self._seed = Random().randint(0, MOST_SEED) if seed is None else seed
        self._waiting = {item.nodeid: item for item in items if self._may(item)}
        self._measured: dict[str, _Member] = {}
        #: By test, what closing the rigs of its case has raised.
        self._unclosed: dict[str, Exception] = {}
        self._turn = ""

    def _may(self, item: pytest.Item) -> bool:
        """Whether an item can be in a group, as far as that is known before the session's first test."""
        benchmark, options = item.stash[BENCHMARK], self._run.options
        case = benchmark.case
        alone = (case.noisy_neighbour, case.isolation, case.function, benchmark.unsupported, options.topology)
        if any(each is not None for each in alone) or case.remote or not benchmark.takes_part:
            return False
        if case.switch == "sriov":  # a virtual function of a card cannot be had twice
            return False
        return _plainly_measures(item) and set(getattr(item, "fixturenames", ())) <= _HARMLESS

    def take(self, case: Case, settings: Settings) -> Measurement | None:
        """Returns the measurement of the current test's case, once; None for one that is measured by itself.

        Raises what measuring it in its turns has raised.
        """
        nodeid = self._run.current
        member = self._measured.get(nodeid)
        item = self._waiting.get(nodeid) if member is None else member.item
        if item is None:
            return None
        if (item.stash[BENCHMARK].case, item.stash[BENCHMARK].settings) != (case, settings):
            self._leave_out(item.stash[BENCHMARK].where)
            return None
        if member is None and len(group := self._next_group(nodeid)) > 1:
            self._measure(group)
            member = self._measured.get(nodeid)
        if member is None:
            return None
        del self._measured[nodeid]
        if member.error is not None:
            raise member.error
        return member.measurement

    def _leave_out(self, where: str) -> None:
        """Leaves out the other cases of a test whose settings are not its marker's."""
        self._waiting = {nodeid: item for nodeid, item in self._waiting.items() if item.stash[BENCHMARK].where != where}

    def _next_group(self, first: str) -> list[_Member]:
        """Returns the test's group, which waits no longer: its own case, and those of the tests after it that fit."""
        run, group, seconds = self._run, list[_Member](), 0.0
        budget = None
        if run.budget is not None:
            run.budget.charge(time.monotonic() - run.opened)
            budget = run.budget.allotted()
        nodeids = list(self._waiting)
        for nodeid in nodeids[nodeids.index(first) :]:
            item = self._waiting[nodeid]
            member = None if nodeid != first and _is_skipped(item) else self._member(item)
            if member is not None:
                member.budget_s = None if budget is None else budget.get(member.place)
                seconds += run.forecast[member.place]
                if group and seconds > TURNS_S:
                    break
                group.append(member)
            del self._waiting[nodeid]
        return group

    def _member(self, item: pytest.Item) -> _Member | None:
        """Returns an item as a member of a group; None for one that is not measured, or that this host cannot run."""
        benchmark, run = item.stash[BENCHMARK], self._run
        if run.taken is not None and run.taken.has(item.nodeid, benchmark.case):
            return None
        with suppress(Unsupported, ProvisionError):  # its test says why
            requests = run.testbed.need(benchmark.case, benchmark.settings)
            return _Member(item, benchmark, run.order_of[item.nodeid], requests)
        return None

    def _measure(self, group: Sequence[_Member]) -> None:
        """Measures a group. Interruptions pass through; unfinished members then have no measurement."""
        self._measured |= {member.item.nodeid: member for member in group}
        try:
            self._run.free_endpoints()
            for number in itertools.count():
                left = [member for member in group if not member.over]
                if not left:
                    break
                # The first turn builds the rigs, in the session's order.
                order = shuffle_items(left, lambda member: member.case.rig_key, self._seed + number) if number else left
                self._turn = f"turn {number + 1} "
                for member in order:
                    self._take_turn(member)
                    if member.over:
                        self._close(member, [other.requests for other in group if not other.over])
        except BaseException:
            with suppress(IcbenchError):  # the first error is the cause
                self._run.pool.close()
            raise
        finally:
            self._run.progress.clear()

    def _take_turn(self, member: _Member) -> None:
        run, began, schedule = self._run, time.monotonic(), self._run.progress.schedule
        first = member.measuring is None
        schedule.begin_part(member.place)
        run.progress.update(member.case.id, f"{self._turn}build")
        try:
            rigs = run.pool.acquire(member.requests, keep_rigs=True)
            if member.measuring is None:
                member.measuring = self._begin(member, rigs, began)
            measurement = member.measuring.take_turn()
            run.pool.rest()
            member.measurement = None if measurement is None else self._ended(member, measurement)
        except pytest.exit.Exception:
            raise
        except Exception as error:  # it is its test's
            member.error = error
        if member.error is not None or (member.measurement and member.measurement.verdict == Verdict.INVALID):
            run.pool.drop(member.requests)
        schedule.finish_part(self._share(member, first=first), time.monotonic() - began)

    def _close(self, member: _Member, others: Sequence[SetupRequest]) -> None:
        """Closes the rigs of a member that is over, but those that others need.

        The last one's reference link stays for the next test, which closes it if it needs another one.
        """
        requests = member.requests if others else replace(member.requests, reference=None)
        try:
            self._run.pool.finish(requests, others)
        except IcbenchError as error:  # its test's, which keeps its measurement
            self._unclosed[member.item.nodeid] = error

    def _share(self, member: _Member, *, first: bool) -> float:
        """Returns a turn's share of its case's forecast; the first turn also builds the rigs."""
        launch_s = launch_estimate_s(member.settings, reference=member.requests.reference is not None)
        share = min(launch_s / (self._run.forecast[member.place] or launch_s), 1.0)
        if member.over:
            return 1.0
        return max(1 - (fewest_launches(member.settings) - 1) * share, share) if first else share

    def _begin(self, member: _Member, rigs: Setup[Any], began: float) -> Measuring:
        run, case, settings, requests = self._run, member.case, member.settings, member.requests
        member.trouble = rigs.trouble
        if rigs.reference is None:
            member.requests = replace(requests, reference=None)
        if member.budget_s is not None and is_adaptive(case, settings):
            settings = run.limited(settings, member.budget_s - (time.monotonic() - began))
            member.by_budget = settings != member.settings
        reference = None if requests.reference is None else requests.reference.case

        def show(progress: Progress) -> None:
            run.show(case.dimension, progress, self._turn)

        return run.testbed.measuring((rigs.rig, rigs.reference), case, reference, settings, show)

    def _ended(self, member: _Member, measurement: Measurement) -> Measurement:
        """Returns a measurement with what only the group knows."""
        if member.trouble is not None:
            measurement = replace(measurement, reference_evidence=member.trouble)
        if measurement.ended_by == "max-duration" and member.by_budget:
            measurement = replace(measurement, ended_by="budget")
        return measurement

    def forget(self, nodeid: str) -> None:
        """Forgets what an ended test did not take. Raises the error of closing its case's rigs."""
        self._waiting.pop(nodeid, None)
        self._measured.pop(nodeid, None)
        if (error := self._unclosed.pop(nodeid, None)) is not None:
            raise error

    def keep(self) -> None:
        """Writes what was measured for tests that did not run: the session was interrupted, or a failure ended it."""
        for nodeid, member in self._measured.items():
            with suppress(IcbenchError):
                measurement = member.measurement
                if measurement is None and member.measuring is not None and member.error is None:
                    measurement = member.measuring.interrupted()
                if measurement is not None:
                    self._run.record(nodeid, member.case, measurement)
                    self._session.collector.measured(nodeid, [measurement.without_windows()])


def _plainly_measures(item: pytest.Item) -> bool:
    """Whether the body of a test asks for launches, and has no hold of the rig by which it could prepare it."""
    if not isinstance(item, pytest.Function):
        return False
    code = getattr(unwrap(item.function), "__code__", None)
    names = set() if code is None else set(code.co_names)
    return bool(names & {"measure", "throughput", "latency"}) and not names & {"rig", "exchange"}


def _is_skipped(item: pytest.Item) -> bool:
    """Whether the marks of an item say that it will not run. One whose condition is unknown does not take part."""
    if any(not mark.kwargs.get("run", True) for mark in item.iter_markers("xfail")):
        return True
    try:
        return evaluate_skip_marks(item) is not None
    except pytest.fail.Exception:
        return True


@contextmanager
def take_turns(session: Session, items: Sequence[pytest.Item]) -> Iterator[None]:
    """Lets the cases of a session that has taken the host be measured in turns, within the block."""
    run = session.run
    if run is None:  # a worker of xdist, too: it does not know which tests it will be given
        yield
        return
    turns = Turns(session, run, [item for item in items if is_benchmark(item) and item.nodeid in run.order_of])
    run.measured_before, run.ended = turns.take, turns.forget
    try:
        yield
    finally:
        turns.keep()
