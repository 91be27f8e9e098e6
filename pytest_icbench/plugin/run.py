# SPDX-License-Identifier: BSD-3-Clause
"""A run of benchmarks: it holds the host, and has rigs and reports, and the rules of its verdicts."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported, UsageError, WorkloadError
from pytest_icbench.gate.baseline_comparison import BaselineComparison, Comparer
from pytest_icbench.gate.judge import Policy
from pytest_icbench.gate.limits import Limit
from pytest_icbench.gate.margins import Margins
from pytest_icbench.host.journal import check_process
from pytest_icbench.host.signals import SignalGuard
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.stopping import Allowances
from pytest_icbench.model.candidate import Candidate
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.codec import encode
from pytest_icbench.model.measurement import CYCLES, Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.fitness_check import HostCheck, check_history
from pytest_icbench.plugin.items import Benchmark, benchmarks, count_judged_cases
from pytest_icbench.plugin.plan import (
    count_comparisons,
    count_hosts,
    estimates,
    explain_missing_retests,
    is_adaptive,
    make_budget,
    retest_settings,
)
from pytest_icbench.plugin.progress import ProgressLine, Schedule
from pytest_icbench.plugin.run_info import gather_info
from pytest_icbench.store import waiver_file
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.history_file import append, make_entry
from pytest_icbench.store.raw import raw_directory, write_hlog, write_raw
from pytest_icbench.store.resume import ResumedRun, find_run
from pytest_icbench.store.run_directory import (
    BASELINES,
    FILE_NAME,
    ResultPlace,
    TestRecord,
    append_line,
    append_test,
    count_lines,
    create_run,
    drop_run,
)
from pytest_icbench.store.run_json import RUN_FILE, RunInfo, write_info
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.exchange import Exchange
from pytest_icbench.testbed.rig_pool import RigPool, Setup, SetupRequest
from pytest_icbench.testbed.testbed import Testbed


def keep_baseline(run: Path, options: Options) -> None:
    """Copies the baseline to the results, so that verdicts can be made anew. Raises ProvisionError."""
    name = str(options.compare)
    try:
        shutil.copytree(options.baselines / name, run / BASELINES / name, ignore=_foreign)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(run / BASELINES, ignore_errors=True)
        (run / RUN_FILE).unlink(missing_ok=True)
        raise ProvisionError(f"the baseline {name} cannot be copied into the reports: {error}; make room") from None


def _foreign(directory: str, names: list[str]) -> list[str]:
    """Returns what is no part of a baseline in one of its directories; it may have no end, as a device."""
    paths = {name: Path(directory, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_dir() or (path.suffix == ".json" and path.is_file()))]


def load_gate(options: Options, cases: int = 1) -> tuple[Policy, Comparer | None]:
    """Returns the policy and the comparer. Raises UsageError if the baseline or the waivers cannot be read.

    ``cases``: the number of cases of the session, which share its error rate.
    """
    if options.save is not None and (options.baselines / options.save).is_dir():
        load_baseline(options.baselines, options.save)  # an error here saves hours
    policy = Policy(options.fail, options.strict, waiver_file.load(options.baselines), datetime.now(UTC).date())
    if options.compare is None:
        return policy, None
    return policy, Comparer(load_baseline(options.baselines, options.compare), options.must_match, cases)


def check_stored(options: Options) -> None:
    """Raises UsageError if a baseline, the waivers or the run to go on with cannot be read."""
    load_gate(options)
    if options.resume is not None:
        find_run(options.resume, options.reports)


def compute_allowances(margins: Margins, dimension: str) -> Allowances:
    """Returns how much worse a candidate may be than its base, which takes the place of a baseline."""
    allowed = margins.of(dimension)
    named = any(figure.name == CYCLES for figure in allowed)
    return Allowances(allowed[0].allowance, margins.for_cycles().allowance, cycles_named=named)


#: The time of a measurement when the budget is used up: enough for some launches.
LEAST_LEFT_S = 2.0


class Run:
    """A run of benchmarks. The constructor takes the host, and ``close`` gives it back.

    Args:
        testbed: the testbed, which has been asked about the cases and is held from now on.
        items: the tests that will run.
        directory: the directory of the run's reports, which the constructor makes.

    Attributes:
        policy: which verdicts fail a test.
        comparer: compares with the baseline; None if none is given.
        opened: the moment, by the monotonic clock, from which the budget counts.

    Raises:
        UsageError: the time is too short for the cases, or the baseline is missing or damaged.
        Unsupported, ProvisionError, WorkloadError: the host cannot be taken, or the reports cannot be written.
    """

    def __init__(
        self, config: pytest.Config, options: Options, testbed: Testbed, items: Sequence[pytest.Item], directory: Path
    ) -> None:
        planned = benchmarks(items)
        self.opened, self._pid = time.monotonic(), os.getpid()
        self.options = options
        self.testbed = testbed
        self.policy, self.comparer = load_gate(options, count_judged_cases(planned))
        self.pool: RigPool[Any] = RigPool(testbed.make_rig)
        #: The seconds that each case takes at least, by its place.
        budgeted = options.budget is not None
        self.forecast = estimates(testbed, planned, options.soak_duration, budgeted=budgeted)
        self.progress = ProgressLine(config, Schedule(self.forecast))
        #: Results of searches by case, since the loads of other cases are parts of their rates.
        self.found_rates: dict[Case, Measurement] = {}
        #: The number of comparisons with a base, which keep the session's error rate together.
        self.compared = count_comparisons(planned)
        self._began: float | None = None
        self._width: tuple[float | None, int] = (None, 0)
        self.budget = make_budget(testbed, options, planned, count_hosts(config))
        missing = None if self.budget is None else explain_missing_retests(options, self.budget, planned)
        hindrances = [*check_history(options), *filter(None, [missing])]
        #: The places of tests among the benchmarks of the session.
        self.order_of = {item.nodeid: place for place, item in enumerate(items)}
        self._exchange: tuple[Rig, Exchange] | None = None
        self._lines = 0
        self._tests: dict[str, list[ResultPlace]] = {}
        #: Gives what was measured in rounds or turns, once; None for a case that was not. Raises what that raised.
        self.measured_before: Callable[[Case, Settings], Measurement | None] = lambda _case, _settings: None
        #: Called when a test has ended. Raises what closing the rigs of its case has raised.
        self.ended: Callable[[str], None] = lambda _nodeid: None
        #: The node id of the test that runs, or of the last one that ran.
        self.current = ""
        #: The time of a retest; None on the first test.
        self._retest_s: float | None = None
        #: The version of the baseline that a retest is compared with; None if it cannot be started.
        self.old: Candidate | None = None
        #: The measurements of the run that is resumed.
        self.taken: ResumedRun | None = None
        info = self._resume(gather_info(config, options, items, directory.name, testbed))
        with ExitStack() as undo:
            undo.enter_context(SignalGuard())
            testbed.hold()
            undo.callback(testbed.close)
            check = HostCheck(config, options, testbed)
            info = replace(info, fitness=check.run(planned, self.comparer, hindrances))
            self.directory = self._create_directory(directory, info)
            undo.callback(self.pool.close)
            undo.callback(self.progress.clear)
            self._undo = undo.pop_all()

    def _resume(self, info: RunInfo) -> RunInfo:
        """Takes the measurements of the run that is resumed. Returns the facts of this one. Raises UsageError."""
        if self.options.resume is None:
            return info
        self.taken = ResumedRun(find_run(self.options.resume, self.options.reports))
        self.taken.check(info, self.options.thresholds)
        self.found_rates |= self.taken.rates()
        return replace(info, resumed=self.taken.name)

    def _create_directory(self, directory: Path, info: RunInfo) -> Path:
        """Makes the directory of the run, with its facts and its baseline. Raises ProvisionError."""
        made = create_run(directory.parent, directory.name)
        try:
            write_info(made, info)
            self._lines = count_lines(made / FILE_NAME)
            if self.comparer is not None:
                keep_baseline(made, self.options)
        except ProvisionError:
            drop_run(made)
            raise
        return made

    @property
    def taken_now(self) -> ResumedRun | None:
        """The measurements of the run that is resumed; None on a retest, which measures anew."""
        return self.taken if self._retest_s is None else None

    def compare(self, measurement: Measurement, margins: Margins) -> BaselineComparison | None:
        """Compares a measurement with the baseline; None without one, and for what no baseline holds."""
        if self.comparer is None:
            return None
        return self.comparer.compare(measurement, margins, retest=self._retest_s is not None)

    def begin_retest(self, seconds: float, old: Candidate | None) -> None:
        """Closes all rigs and sets the time of the next test's retest. Raises ProvisionError for what remains.

        ``old``: the version of the baseline to compare with; None: the test is measured again.
        """
        began = time.monotonic()
        self.free_endpoints()
        self.pool.close()
        self.old = old
        self._retest_s = seconds - (time.monotonic() - began)

    def end_retest(self) -> None:
        """Ends what ``begin_retest`` began."""
        self._retest_s = self.old = None

    def on_this_test(self, settings: Settings, rate: Rate) -> Settings:
        """Returns the settings; on a retest each launch has its own rigs, and time for the fewest launches.

        ``rate``: of the case. A search has its own rigs as a whole.
        """
        if self._retest_s is None:
            return settings
        if self.old is not None:  # each pair has its own rigs anyway
            return replace(settings, max_duration_s=min(settings.max_duration_s, self._retest_s))
        return retest_settings(settings, self._retest_s, rate)

    def begin(self, nodeid: str) -> None:
        """Makes a test the current one. Tests come in any order, since several hosts share them."""
        self.current = nodeid
        if self.budget is not None:
            self.budget.begin(self.order_of[nodeid])

    def prepare(self, case: Case) -> None:
        """Checks that this host can run the case, before anything is made for it.

        Raises Unsupported with the reason and its remedy.
        """
        self.progress.next_case()
        self.testbed.placement(case)

    def measure(self, case: Case, settings: Settings) -> Measurement:
        """Measures a case. Its rigs stay for the next one unless an error occurs.

        Raises Unsupported, ProvisionError, WorkloadError: the case cannot be measured.
        """
        measurement = self.measured_before(case, settings) if self._retest_s is None else None
        if measurement is not None:
            self._width = measurement.precision, measurement.launches
            return measurement

        show = partial(self.show, case.dimension)

        def measured(rigs: Setup[Any], requests: SetupRequest, budgeted: Settings) -> Measurement:
            reference = requests.reference.case if requests.reference is not None else None
            measurement = self.testbed.measure((rigs.rig, rigs.reference), case, reference, budgeted, show)
            return replace(measurement, reference_evidence=rigs.trouble) if rigs.trouble is not None else measurement

        return self._on_rigs(case, settings, measured)[0]

    def base_of(self, case: Case) -> Case:
        """Returns the case that one is compared with: a candidate's base, or the old version of a retest."""
        return case.base if self.old is None else self.testbed.add_old(case, self.old)

    def measure_versions(
        self, case: Case, settings: Settings, allowed: Allowances, base: Case | None = None
    ) -> tuple[Measurement, Measurement]:
        """Measures a candidate side by side with its base. Returns both results. Raises what ``measure`` raises.

        ``base``: the old version of a retest; None: the base of the candidate.
        """
        # All cases that the baseline judged share the error rate, as any of them might have been measured again.
        compared = self.compared if base is None or self.comparer is None else self.comparer.cases

        def measured(rigs: Setup[Any], _requests: SetupRequest, budgeted: Settings) -> tuple[Measurement, Measurement]:
            if rigs.reference is None:
                raise ProvisionError(f"the base, {rigs.trouble}")
            pair = rigs.rig, rigs.reference
            show = partial(self.show, case.dimension)
            return self.testbed.measure_versions(pair, (case, base or case.base), budgeted, allowed, compared, show)

        now, then = self._on_rigs(case, settings, measured, base)
        return now, then

    def _on_rigs(
        self,
        case: Case,
        settings: Settings,
        measure: Callable[[Setup[Any], SetupRequest, Settings], Measurement | tuple[Measurement, ...]],
        base: Case | None = None,
    ) -> tuple[Measurement, ...]:
        """Measures on the case's rigs, within the budget. Returns the results; the first is that of the case.

        ``measure``: is called with the rigs, the requests for them and the settings that the budget allows.
        """
        check_process(self._pid)
        began = time.monotonic()
        try:
            self.free_endpoints()
            self.progress.update(case.id, "build")
            self.testbed.show_progress(lambda text: self.progress.update(case.id, f"build: {text}"))
            requests = self.testbed.need(case, settings) if base is None else self.testbed.need(case, settings, base)
            rigs = self.pool.acquire(requests)
            budgeted = self._within_budget(case, settings, began)
            measured = measure(rigs, requests, budgeted)
        except Unsupported:
            raise
        except BaseException:
            with suppress(IcbenchError):  # the first error is the cause
                self.pool.close()
            raise
        finally:
            self._began = began if self._began is None else self._began
            self.progress.clear()
        results = measured if isinstance(measured, tuple) else (measured,)
        if results[0].verdict == Verdict.INVALID:
            self.pool.close()
        self._width = results[0].precision, results[0].launches
        if results[0].ended_by == "max-duration" and budgeted != settings:
            results = tuple(replace(result, ended_by="budget") for result in results)
        return results

    def _within_budget(self, case: Case, settings: Settings, began: float) -> Settings:
        """Returns the settings with the time that the budget leaves. ``began`` is when this measurement began."""
        if self.budget is None:
            return settings
        began = self._began or began
        self.budget.charge(began - self.opened)  # time before this case is shared by all, time for its rigs is its own
        spent_s, allotted = time.monotonic() - began, self.budget.allotments()
        if not allotted or not (case.rate.is_search or is_adaptive(case, settings)):
            return settings
        if case.rate.is_search:
            most_s = max(self.budget.most_s() - spent_s, LEAST_LEFT_S)
            return replace(settings, search_time_s=most_s) if most_s < settings.search_limit_s else settings
        return self.limited(settings, allotted[0] - spent_s)

    def limited(self, settings: Settings, left_s: float) -> Settings:
        """Returns the settings with the seconds that a budget leaves to an adaptive case."""
        left_s = max(left_s, LEAST_LEFT_S)
        if "max_duration_s" in self.options.settings:
            left_s = min(left_s, settings.max_duration_s)
        return replace(settings, max_duration_s=left_s)

    def exchange(self, case: Case, settings: Settings) -> Exchange:
        """Returns an exchange of frames of any kind at the endpoints of the case's rig.

        It stays until the endpoints are used otherwise. Raises Unsupported, ProvisionError, WorkloadError: the rig or
        its processes cannot be had.
        """
        check_process(self._pid)
        self._began = time.monotonic() if self._began is None else self._began
        if self._exchange is not None and self._exchange[1].broken:
            self._discard()
        try:
            rig = self.pool.acquire(self.testbed.need(case, settings)).rig
            if self._exchange is None or self._exchange[0] is not rig:
                self._exchange = (rig, Exchange(rig, case, ring=self.options.ring))
            return self._exchange[1]
        except (ProvisionError, WorkloadError):
            self._discard()
            raise

    def rig(self, case: Case, settings: Settings) -> Rig:
        """Returns the case's rig, running, with free endpoints. Raises Unsupported, ProvisionError."""
        check_process(self._pid)
        self._began = time.monotonic() if self._began is None else self._began
        self.free_endpoints()
        rig: Rig = self.pool.acquire(self.testbed.need(case, settings)).rig
        return rig

    def free_endpoints(self) -> None:
        """Ends the exchange of frames, if there is one."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange[1].end()

    def _discard(self) -> None:
        """Closes every rig, since its state is unknown. Errors are dropped: the first one tells more."""
        self._exchange = None  # it ends with its rig
        with suppress(IcbenchError):
            self.pool.close()

    def show(self, dimension: Dimension, progress: Progress, turn: str = "") -> None:
        """Shows the progress of a case; in its ``turn``, what is left is what the schedule says."""
        part = "launch" if progress.phase == "case" else progress.phase
        counted = part if progress.launch == 0 else f"{part} {progress.launch}/{progress.launches}"
        # The rate of a case of latency is what was asked for.
        mpps = None if dimension == "latency" else progress.receive_mpps
        left_s = None if turn else progress.left_s
        self.progress.update(progress.case, f"{turn}{progress.detail or counted}", mpps=mpps, left_s=left_s)

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
            judged_by: limits and margins; None if the test did not judge it.
            taken_from: the run that measured it; None for this one.
        """
        cls = self.testbed.catalogue[case.switch]
        where = raw_directory(measurement, case.resolved_api(cls), case.resolved_cores(cls))
        test = nodeid.partition("[")[0].rpartition("::")[2]
        raw = write_raw(self.directory, where, test, measurement)
        append_line(self.directory / FILE_NAME, measurement.to_json())
        self._lines += 1
        limits = None if judged_by is None else tuple(encode(limit) for limit in judged_by[0])
        margins = {} if judged_by is None else encode(judged_by[1].values)
        place = ResultPlace(self._lines, str(raw.relative_to(self.directory)), limits, margins, taken_from)
        self._tests.setdefault(nodeid, []).append(place)
        write_hlog(raw, measurement)  # last: what cannot be written now costs no result
        if self.options.history is not None and taken_from is None:
            entry = make_entry(measurement, self.directory.name, self.options.must_match)
            append(self.options.history, [entry] if entry is not None else [])

    def places(self, nodeid: str) -> list[ResultPlace]:
        """Returns where the results of a test are so far."""
        return self._tests.get(nodeid, [])

    def note(self, record: TestRecord) -> None:
        """Writes the line of a test that is over into ``tests.jsonl``. Raises ProvisionError."""
        places = tuple(self._tests.pop(record.nodeid, ()))
        append_test(self.directory, replace(record, results=places))

    def after(self, following: Benchmark | None) -> None:
        """Ends a test: closes the rigs that the next one cannot use. Raises ProvisionError for what remains."""
        self.progress.schedule.finish(None if self._began is None else time.monotonic() - self._began)
        self._began = None
        requests = None
        with suppress(Unsupported, ProvisionError):
            requests = None if following is None else self.testbed.need(following.case, following.settings)
        try:
            try:
                self.ended(self.current)
            finally:
                self.pool.release(requests)
        finally:
            if self.budget is not None:  # closing rigs takes time, too
                self.budget.finish(time.monotonic() - self.opened, *self._width)
            self._width = None, 0

    def close(self) -> None:
        """Closes rigs and session, in this order. Idempotent. Raises ProvisionError with what could not be undone."""
        self._undo.close()


def check_root() -> None:
    """Raises UsageError for a user who cannot change the host."""
    if os.geteuid() != 0:
        raise UsageError(
            "benchmarks make containers, links and huge pages and need root: run pytest with sudo"
            " (--collect-only and --icbench-plan need no root)"
        )
