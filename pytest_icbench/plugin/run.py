# SPDX-License-Identifier: BSD-3-Clause
"""A run of benchmarks: the host it holds, its rigs, its reports."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported, UsageError, WorkloadError
from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.judge import Policy
from pytest_icbench.gate.limits import Limit
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import encode
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.items import Benchmark, benchmarks
from pytest_icbench.plugin.progress import ProgressLine
from pytest_icbench.plugin.run_info import gather
from pytest_icbench.plugin.schedule.forecast import estimates
from pytest_icbench.plugin.schedule.plan import hosts_of, is_adaptive, make_budget
from pytest_icbench.plugin.schedule.schedule import Schedule
from pytest_icbench.store import waivers
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.history import append, entry_of
from pytest_icbench.store.raw import raw_directory, write_raw
from pytest_icbench.store.results import FILE_NAME, append_line, create_run
from pytest_icbench.store.resume import Taken, find_run
from pytest_icbench.store.run import BASELINES, ResultPlace, TestRecord, append_test, write_info
from pytest_icbench.testbed.rig_pool import RigPool, RigRequests, Rigs

if TYPE_CHECKING:
    from pytest_icbench.measure.progress import Progress
    from pytest_icbench.model.settings import Settings
    from pytest_icbench.stats.noninferiority import Margin
    from pytest_icbench.testbed.exchange import Exchange
    from pytest_icbench.testbed.rig import Rig
    from pytest_icbench.testbed.testbed import Testbed


#: Time that a measurement gets though the budget is used up: some launches.
LEAST_LEFT_S = 2.0


class Run:
    """Opened by its constructor, which takes the host; ``close`` gives it back.

    Args:
        bench: asked before, held from now on.
        directory: of the run's reports; made now.

    Attributes:
        policy: which verdicts fail a test.
        comparer: with the baseline; None if none is wanted.

    Raises what ``Testbed.hold`` raises, UsageError if the time is too short for the cases or if there is no such
    baseline or it is damaged, and ProvisionError if the reports cannot be written.
    """

    def __init__(
        self, config: pytest.Config, options: Options, bench: Testbed, items: Sequence[pytest.Item], directory: Path
    ) -> None:
        from pytest_icbench.host.signals import SignalGuard

        self._opened = time.monotonic()
        self.options = options
        self.bench = bench
        self.policy, self.comparer = judging_by(options)
        self.pool: RigPool[Any] = RigPool(bench.make_rig)
        self.progress = ProgressLine(config, Schedule(estimates(bench, benchmarks(items), options.soak_duration)))
        #: Rates that were looked for, since loads of others are parts of them.
        self.found_rates: dict[Case, Measurement] = {}
        #: Comparisons of versions, by which the session's error rate is kept; a test makes no more than it has here.
        self.compared = sum(each.request.comparisons for each in benchmarks(items) if each.case.candidate is not None)
        self._began: float | None = None
        self._width: tuple[float | None, int] = (None, 0)
        self.budget = make_budget(bench, options, benchmarks(items), hosts_of(config))
        self._places = {item.nodeid: place for place, item in enumerate(items)}
        self._exchange: tuple[Rig, Exchange] | None = None
        self._lines = 0
        self._tests: dict[str, list[ResultPlace]] = {}
        info = gather(config, options, items, directory.name, bench.facts, bench.programs)
        #: What an interrupted run had measured.
        self.taken: Taken | None = None
        if options.resume is not None:
            self.taken = Taken(find_run(options.resume, options.reports))
            self.taken.check(info, options.thresholds)
            info = replace(info, resumed=self.taken.name)
            self.found_rates |= self.taken.rates()
        with ExitStack() as undo:
            guard = SignalGuard()
            undo.enter_context(guard)
            bench.hold()
            undo.callback(bench.close)
            self.directory = create_run(directory.parent, directory.name)
            write_info(self.directory, info)
            if self.comparer is not None:
                keep_baseline(self.directory, options)
            undo.callback(self.pool.close)
            undo.callback(self.progress.clear)
            self._undo = undo.pop_all()

    def begin(self, nodeid: str) -> None:
        """A test is the current one: several hosts share them, so they come in any order."""
        if self.budget is not None:
            self.budget.begin(self._places[nodeid])

    def prepare(self, case: Case) -> None:
        """Asks whether this host can run the case. Raises Unsupported with the reason and its remedy."""
        self.progress.next_case()
        self.bench.placement(case)

    def measure(self, case: Case, settings: Settings) -> Measurement:
        """Measures a case. Its rigs stay for the next one, unless anything went wrong.

        Raises Unsupported, ProvisionError, WorkloadError.
        """

        def measured(got: Rigs[Any], need: RigRequests, given: Settings) -> Measurement:
            reference = need.reference.case if need.reference is not None else None
            found = self.bench.measure((got.rig, got.reference), case, reference, given, self._show)
            return replace(found, reference_evidence=got.trouble) if got.trouble is not None else found

        return self._on_rigs(case, settings, measured)[0]

    def measure_versions(self, case: Case, settings: Settings, margin: Margin) -> tuple[Measurement, Measurement]:
        """Measures a candidate beside its base: both results. Raises as ``measure`` does."""

        def measured(got: Rigs[Any], _need: RigRequests, given: Settings) -> tuple[Measurement, Measurement]:
            if got.reference is None:
                raise ProvisionError(f"the base, {got.trouble}")
            rigs = got.rig, got.reference
            return self.bench.measure_versions(rigs, case, given, margin, self.compared, self._show)

        now, base = self._on_rigs(case, settings, measured)
        return now, base

    def _on_rigs(
        self,
        case: Case,
        settings: Settings,
        measured: Callable[[Rigs[Any], RigRequests, Settings], Measurement | tuple[Measurement, ...]],
    ) -> tuple[Measurement, ...]:
        """What is measured on the case's rigs, within the budget. The first result is the case's."""
        began = time.monotonic()
        try:
            self._free_endpoints()
            self.progress.update(case.id, "build")
            need = self.bench.need(case, settings)
            got = self.pool.acquire(need)
            given = self._within_budget(case, settings, began)
            found = measured(got, need, given)
        except Unsupported:
            raise
        except BaseException:
            with suppress(IcbenchError):  # the first error tells more
                self.pool.close()
            raise
        finally:
            self._began = began if self._began is None else self._began
            self.progress.clear()
        results = found if isinstance(found, tuple) else (found,)
        if results[0].verdict == Verdict.INVALID:
            self.pool.close()
        self._width = results[0].precision, results[0].launches
        if results[0].ended_by == "max-duration" and given != settings:
            results = tuple(replace(each, ended_by="budget") for each in results)
        return results

    def _within_budget(self, case: Case, settings: Settings, began: float) -> Settings:
        """The same settings, with what the budget leaves for this case. ``began``: when this measurement did."""
        if self.budget is None:
            return settings
        began = self._began or began
        self.budget.charge(began - self._opened)  # what passed before is everybody's, what its rigs took its own
        spent_s, allotted = time.monotonic() - began, self.budget.allotments()
        if not allotted or not (case.rate.is_search or is_adaptive(case, settings)):
            return settings
        if case.rate.is_search:
            most_s = max(self.budget.most_s() - spent_s, LEAST_LEFT_S)
            return replace(settings, search_time_s=most_s) if most_s < settings.search_limit_s else settings
        left_s = max(allotted[0] - spent_s, LEAST_LEFT_S)
        if "max_duration_s" in self.options.settings:
            left_s = min(left_s, settings.max_duration_s)
        return replace(settings, max_duration_s=left_s)

    def exchange(self, case: Case, settings: Settings) -> Exchange:
        """Frames of any kind at the endpoints of the case's rig. It stays until the endpoints are used otherwise.

        Raises Unsupported, ProvisionError, WorkloadError.
        """
        from pytest_icbench.testbed.exchange import Exchange

        self._began = time.monotonic() if self._began is None else self._began
        if self._exchange is not None and self._exchange[1].broken:
            self._discard()
        try:
            rig = self.pool.acquire(self.bench.need(case, settings)).rig
            if self._exchange is None or self._exchange[0] is not rig:
                self._exchange = (rig, Exchange(rig, case, ring=self.options.ring))
            return self._exchange[1]
        except (ProvisionError, WorkloadError):
            self._discard()
            raise

    def rig(self, case: Case, settings: Settings) -> Rig:
        """The case's rig, running, its endpoints free. Raises Unsupported, ProvisionError."""
        self._began = time.monotonic() if self._began is None else self._began
        self._free_endpoints()
        rig: Rig = self.pool.acquire(self.bench.need(case, settings)).rig
        return rig

    def _free_endpoints(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange[1].end()

    def _discard(self) -> None:
        """Closes every rig: its state is not known. What goes wrong meanwhile is less than what went wrong before."""
        self._exchange = None  # it ends with its rig
        with suppress(IcbenchError):
            self.pool.close()

    def _show(self, progress: Progress) -> None:
        counted = progress.phase if progress.launch == 0 else f"{progress.phase} {progress.launch}/{progress.launches}"
        phase = progress.detail or counted
        self.progress.update(progress.case, phase, mpps=progress.receive_mpps, left_s=progress.left_s)

    def record(
        self,
        nodeid: str,
        case: Case,
        measurement: Measurement,
        judged_by: tuple[Sequence[Limit], Margins] | None = None,
        taken_from: str | None = None,
    ) -> None:
        """Writes a judged measurement: a line in ``results.jsonl`` and its windows. Raises ProvisionError.

        Args:
            judged_by: limits and margins; None if nobody judged it.
            taken_from: the run that measured it, if not this one.
        """
        cls = self.bench.catalogue[case.switch]
        where = raw_directory(measurement, case.resolved_api(cls), case.resolved_cores(cls))
        test = nodeid.partition("[")[0].rpartition("::")[2]
        raw = write_raw(self.directory, where, test, measurement)
        append_line(self.directory / FILE_NAME, measurement.to_json())
        self._lines += 1
        limits = None if judged_by is None else tuple(encode(limit) for limit in judged_by[0])
        margins = {} if judged_by is None else encode(judged_by[1].values)
        place = ResultPlace(self._lines, str(raw.relative_to(self.directory)), limits, margins, taken_from)
        self._tests.setdefault(nodeid, []).append(place)
        if self.options.history is not None and taken_from is None:
            entry = entry_of(measurement, self.directory.name, self.options.incomparable)
            append(self.options.history, [entry] if entry is not None else [])

    def places(self, nodeid: str) -> list[ResultPlace]:
        """Of a test's results until now."""
        return self._tests.get(nodeid, [])

    def note(self, record: TestRecord) -> None:
        """A test is over: its line in ``tests.jsonl``. Raises ProvisionError."""
        places = tuple(self._tests.pop(record.nodeid, ()))
        append_test(self.directory, replace(record, results=places))

    def after(self, following: Benchmark | None) -> None:
        """A test is over: closes the rigs that the next one cannot use. Raises ProvisionError for what remains."""
        self.progress.schedule.finish(None if self._began is None else time.monotonic() - self._began)
        self._began = None
        need = None
        with suppress(Unsupported, ProvisionError):
            need = None if following is None else self.bench.need(following.case, following.settings)
        try:
            self.pool.release(need)
        finally:
            if self.budget is not None:  # closing rigs takes its time too
                self.budget.finish(time.monotonic() - self._opened, *self._width)
            self._width = None, 0

    def close(self) -> None:
        """Closes rigs and session, in this order. Idempotent. Raises ProvisionError with what could not be undone."""
        self._undo.close()


def keep_baseline(run: Path, options: Options) -> None:
    """A copy of the baseline beside the results, so that verdicts can be made anew. Raises ProvisionError."""
    name = str(options.compare)
    try:
        shutil.copytree(options.baselines / name, run / BASELINES / name)
    except (OSError, shutil.Error) as error:
        raise ProvisionError(f"the baseline {name} cannot be copied into the reports: {error}; make room") from None


def judging_by(options: Options) -> tuple[Policy, Comparer | None]:
    """What decides about verdicts. Raises UsageError if the baseline or the waivers cannot be read."""
    if options.save is not None and (options.baselines / options.save).is_dir():
        load_baseline(options.baselines, options.save)  # rather refused now than after hours
    policy = Policy(options.fail, options.strict, waivers.load(options.baselines), datetime.now(UTC).date())
    if options.compare is None:
        return policy, None
    return policy, Comparer(load_baseline(options.baselines, options.compare), options.incomparable)


def check_root() -> None:
    """Raises UsageError for a user who cannot change the host."""
    if os.geteuid() != 0:
        raise UsageError(
            "benchmarks make containers, links and huge pages and need root: run pytest with sudo"
            " (--collect-only and --icbench-plan need no root)"
        )
