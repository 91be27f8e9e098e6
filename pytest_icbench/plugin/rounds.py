# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cases of a session in rounds, before the tests run (``--icbench-rounds``).

A round has a share of each case's launches, on rigs built anew and in another random order. A case's interval then
includes the random effects of rigs and of the host over the session, since rounds are its units
(``stats.intervals.estimate_over_rounds``). A test's body runs once, as ever, and is given the measurement of all
rounds.

Cases with launches of one kind take part. Searches, sweeps, loads that are a share of a search, long runs, trains and
versions side by side are measured by their tests. So is a case that a test measures with other settings than its
marker's, a case that the resumed run has, and a case that failed in a round, whose test then raises the error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

import pytest

from pytest_icbench.errors import IcbenchError
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.repetition import Part, parts
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.items import BENCHMARK, MOST_SEED, ORDER_SEED, Benchmark, is_benchmark, shuffle_items
from pytest_icbench.plugin.run import Run
from pytest_icbench.plugin.session import Session


@dataclass(slots=True)
class _Spread:
    """A case that is measured in rounds, and what it has so far."""

    nodeid: str
    benchmark: Benchmark
    gathered: LaunchLog
    parts: list[Part]
    measurement: Measurement | None = None
    failed: bool = False

    @property
    def case(self) -> Case:
        return self.benchmark.case

    @property
    def over(self) -> bool:
        """Whether no further round measures it."""
        return self.failed or (self.measurement is not None and self.measurement.verdict == Verdict.INVALID)


class Rounds:
    """Measures the rounds of a session, and gives each test the measurement of its case.

    ``items``: the benchmarks of the session.
    """

    def __init__(self, session: Session, run: Run, items: Sequence[pytest.Item]) -> None:
        self._session = session
        self._run = run
        seed = session.config.stash.get(ORDER_SEED, None)
        self._seed = Random().randint(0, MOST_SEED) if seed is None else seed
        self._number = 0
        self._spreads = self._planned(items)

    def _planned(self, items: Sequence[pytest.Item]) -> list[_Spread]:
        run, rounds = self._run, self._run.options.rounds
        allotted = None if run.budget is None else run.budget.allotments()
        spreads = []
        for place, item in enumerate(items):
            benchmark = item.stash[BENCHMARK]
            taken = run.taken is not None and run.taken.has(item.nodeid, benchmark.case)
            if not benchmark.takes_part or taken:
                continue
            settings, gathered = benchmark.settings, LaunchLog(started_at=time.time())
            seconds = settings.max_duration_s
            if allotted is not None and "max_duration_s" not in run.options.settings:
                seconds = allotted[place]
            elif allotted is not None:
                seconds = min(seconds, allotted[place])
            spreads.append(_Spread(item.nodeid, benchmark, gathered, list(parts(settings, rounds, gathered, seconds))))
        return spreads

    def run(self) -> None:
        """Measures all rounds. Raises ProvisionError if rigs cannot be closed; what else fails is left to the tests.

        What finished rounds have measured is kept if the session ends here.
        """
        rounds = self._run.options.rounds
        try:
            for number in range(rounds):
                self._number = number
                for spread in shuffle_items(self._spreads, lambda spread: spread.case.rig_key, self._seed + number):
                    if not spread.over:
                        schedule, began = self._run.progress.schedule, time.monotonic()
                        schedule.begin_part(self._run.order_of[spread.nodeid])
                        self._measure(spread, spread.parts[number])
                        schedule.finish_part(1 / rounds, time.monotonic() - began)
                self._run.pool.close()  # the next round draws its rigs anew
        except BaseException:
            self._keep()
            raise
        finally:
            self._run.progress.clear()

    def _measure(self, spread: _Spread, part: Part) -> None:
        run, case, settings = self._run, spread.case, spread.benchmark.settings
        try:
            requests = run.testbed.need(case, settings)
            run.progress.update(case.id, f"round {part.number + 1}/{run.options.rounds} build")
            rigs = run.pool.acquire(requests)
            spread.gathered.reference_evidence = spread.gathered.reference_evidence or rigs.trouble or requests.missing
            pair = (rigs.rig, rigs.reference)
            reference = None if requests.reference is None else requests.reference.case
            spread.measurement = run.testbed.measure(pair, case, reference, settings, self._show, part)
        except IcbenchError:
            spread.failed = True
            with suppress(IcbenchError):
                run.pool.close()
        else:
            if spread.over:
                run.pool.close()  # the state of its rigs is unknown

    def _show(self, progress: Progress) -> None:
        rounds = f"round {self._number + 1}/{self._run.options.rounds}"
        # Launches are numbered over all rounds.
        launch = f"{rounds} launch {progress.launch}" if progress.launch else f"{rounds} preflight"
        self._run.progress.update(progress.case, launch, mpps=progress.receive_mpps)

    def take(self, case: Case, settings: Settings) -> Measurement | None:
        """Returns the measurement of a case over all rounds, once; None for one that its test has to measure."""
        for spread in self._spreads:
            if spread.failed or (spread.case, spread.benchmark.settings) != (case, settings):
                continue
            self._spreads.remove(spread)
            return spread.measurement
        return None

    def _keep(self) -> None:
        """Writes what was measured before the session ended: its tests will not run."""
        for spread in self._spreads:
            if spread.measurement is not None:
                measurement = replace(spread.measurement, ended_by="interrupted")
                with suppress(IcbenchError):
                    self._run.record(spread.nodeid, spread.case, measurement)
                    self._session.collector.measured(spread.nodeid, [measurement.without_windows()])


def measure_rounds(session: Session, items: Sequence[pytest.Item]) -> None:
    """Measures the rounds of a session that has some, once it has taken the host."""
    if session.run is None:
        return
    planned = [item for item in items if is_benchmark(item) and not item.get_closest_marker("skip")]
    rounds = Rounds(session, session.run, planned)
    session.run.measured_before = rounds.take
    rounds.run()
