# SPDX-License-Identifier: BSD-3-Clause
"""The fixture ``icbench``: it measures the case of a test, and judges the measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from pytest_icbench.config import values
from pytest_icbench.config.options import merge_settings, parse_overrides
from pytest_icbench.config.rates import parse_loads
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import IcbenchError, Invalid, Unsupported, UsageError
from pytest_icbench.gate.baseline_comparison import compare_with_base
from pytest_icbench.gate.judge import Judgement, enforce, judge
from pytest_icbench.gate.limits import Limit
from pytest_icbench.gate.margins import Margins
from pytest_icbench.kinds.throughput.throughput_run import measure_trains
from pytest_icbench.measure.soak import SOAK_S, soak_settings, with_losses
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate, named_rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.items import Benchmark, adapt_settings, check_rate
from pytest_icbench.plugin.outcomes import skip
from pytest_icbench.plugin.run import Run, compute_allowances
from pytest_icbench.report.figure.series import windows_of
from pytest_icbench.report.junit import properties
from pytest_icbench.store.run_directory import path_part
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.exchange import Exchange

T = TypeVar("T")

#: A way to measure a case.
How = Callable[[Case, "Settings"], Measurement]


@dataclass(slots=True)
class _Record:
    case: Case
    measurement: Measurement
    #: The base of a comparison is not judged, and the test's properties are those of the candidate.
    is_base: bool = False
    #: A baseline's old version is shown by the comparison alone: it is no case of the session.
    is_old: bool = False
    judgement: Judgement | None = None
    taken_from: str | None = None


class MarkerCheck:
    """Warns if a test does not measure what its marker says: its figures are right, but its planned time is not.

    It also warns of queues that no flow can be in, and of routes that no flow takes.

    Args:
        soak_s: the user's length of a long run in seconds; None: the test says it.
    """

    def __init__(self, item: pytest.Item, benchmark: Benchmark, soak_s: float | None) -> None:
        self._item = item
        self._benchmark = benchmark
        self._soak_s = soak_s
        self._warnings: set[str] = set()

    def launches(self, method: str) -> None:
        """Checks a call of ``measure``, ``throughput`` or ``latency``."""
        self._of_frames(method)
        measure = self._benchmark.request.measure
        if measure is not None:
            self._warn(method, f"leave out measure='{measure}'")

    def other(self, method: str) -> None:
        """Checks a call of ``search``, ``sweep`` or ``back_to_back``."""
        self._of_frames(method)
        if self._benchmark.measures != method:
            self._warn(method, f"say measure='{method}'")

    def soak(self, duration: float | None) -> float:
        """Checks a call of ``soak``. Returns the seconds that the test asks for."""
        self._of_frames("soak")
        planned_s = self._benchmark.request.soak_duration or SOAK_S
        asked_s = planned_s if duration is None else duration
        as_long = asked_s == planned_s or self._soak_s is not None
        if self._benchmark.measures != "soak" or not as_long:
            self._warn("soak", "say measure='soak'" + ("" if as_long else f", soak_duration={asked_s:g}"))
        return asked_s

    def _of_frames(self, method: str) -> None:
        """Raises UsageError for a method that measures frames where the marker names an application or containers."""
        case = self._benchmark.case
        named = case.load.NAMED
        if named is not None and method != "measure":
            raise UsageError(
                f"{self._benchmark.where}: the marker names {named}, which icbench.{method}() cannot measure: call"
                " icbench.measure()"
            )
        if case.traffic.idle_queues:
            self._say(f"{self._benchmark.where}: {case.id}: {case.traffic.few_flows}")
        if (unused := case.unused_routes) is not None:
            self._say(f"{self._benchmark.where}: {case.id}: {unused}")

    def _warn(self, method: str, remedy: str) -> None:
        sentence = (
            f"{self._benchmark.where}: the marker does not announce icbench.{method}(), so the time of the test in"
            f" plan and budget is wrong; {remedy} in the marker"
        )
        self._say(sentence)

    def _say(self, sentence: str) -> None:
        if sentence not in self._warnings:
            self._warnings.add(sentence)
            self._item.warn(pytest.PytestWarning(sentence))


class Icbench:
    """Measures the case of a test, and judges the measurements.

    Attributes:
        case: the case of this test.
        results: the measurements of the test, once it has ended.
    """

    def __init__(self, item: pytest.Item, benchmark: Benchmark, run: Run) -> None:
        self.case = benchmark.case
        self._item = item
        self._benchmark = benchmark
        self._run = run
        self._records: list[_Record] = []
        self._compared = 0
        self._marker = MarkerCheck(item, benchmark, run.options.soak_duration)
        self.results: list[Measurement] = []
        #: The windows of each result in the form in which reports show them.
        self.windows: list[dict[str, Any] | None] = []
        #: The name of the run that measured each result, None for this one.
        self.taken_from: list[str | None] = []

    def measure(self, **overrides: Any) -> Measurement:
        """Measures what the marker names: its dimension, ``app`` or ``startup``; arguments as in ``throughput``."""
        __tracebackhide__ = True
        self._marker.launches("measure")
        return self._measure(self.case.dimension, overrides)

    def throughput(self, **overrides: Any) -> Measurement:
        """Measures how many frames pass per second.

        Args:
            overrides: settings of this call, named as the options are: ``precision max_duration duration window repeats
                skip keep warmup drain protocol``; what the user set on the command line or in the ini file wins.

        Returns:
            The measurement; its figures are plain numbers (``measurement.throughput_pps > 5e6``). It can be INVALID:
            ``gate`` then raises, and a test that ends without having judged it fails.

        Raises:
            WorkloadError, ProvisionError: the message has the tail of the log of the process that failed.
            UsageError: an override is unknown or bad.
        """
        __tracebackhide__ = True
        self._marker.launches("throughput")
        return self._measure("throughput", overrides)

    def latency(self, *, load: float | None = None, **overrides: Any) -> Measurement:
        """Measures round-trip times at the case's rate. Further arguments and errors as in ``throughput``.

        Args:
            load: a share of the case's rate, which is then ``ndr`` or ``pdr:X%``. The rate is searched for first, once
                per run (the search is a separate result), and this share of it is offered. The id then ends in
                ``pdr:0.5:x10`` for a tenth, as if the rate had been ``pdr:0.5%*0.1``.

        Raises:
            Invalid: the search found no rate.
        """
        __tracebackhide__ = True
        self._marker.launches("latency")
        return self._measure("latency", overrides, None if load is None else self.case.rate.part(load))

    def soak(self, duration: float | None = None, **overrides: Any) -> Measurement:
        """Measures one launch for hours, in the dimension of the marker: losses with their times (``loss_events``).

        While it runs, every window is appended to ``soak/TEST.jsonl`` in the run's directory and on the disk within
        seconds, so that a crash keeps what was measured before. A window is a second, or longer if there would be
        more than 10,000.

        Args:
            duration: seconds, by default the marker's ``soak_duration``, else 20; ``--icbench-soak-duration`` wins.
            overrides: as in ``throughput``; settings of several launches, warm-up and discarding have no effect.

        Raises:
            WorkloadError, ProvisionError, UsageError: as in ``throughput``.
        """
        __tracebackhide__ = True
        asked_s = self._marker.soak(duration)

        def how(case: Case, settings: Settings) -> Measurement:
            return self._soaked(case, settings, asked_s)

        return self._measure(self.case.dimension, overrides, how=how)

    def back_to_back(self, repetitions: int = 50, **overrides: Any) -> Measurement:
        """Measures the longest train of frames at the maximum rate that loses nothing (RFC 9004): ``back_to_back``.

        Args:
            repetitions: the number of tests, whose mean is reported; the RFC requires at least 50.
            overrides: as in ``throughput``; only ``warmup``, ``drain`` and the settings of the search for ``ndr``, by
                which the buffer time is corrected, have an effect.

        Returns:
            The measurement of the trains, without a throughput. Only the first pair of a case is measured.

        Raises:
            UsageError: the rate is not ``max``, both ends send, or as in ``throughput``.
            WorkloadError, ProvisionError: as in ``throughput``.
        """
        __tracebackhide__ = True
        self._marker.other("back_to_back")

        def how(case: Case, settings: Settings) -> Measurement:
            return self._trained(case, settings, repetitions)

        return self._measure("throughput", overrides, how=how)

    def search(self, rate: str, **overrides: Any) -> Measurement:
        """Searches for ``ndr``, or ``pdr:0.5%`` and the like, instead of the case's rate.

        Args:
            overrides: also ``search_preset search_width search_trial search_sum``; ``max_duration`` limits the search.

        Returns:
            The measurement with its relevant bounds (``search_lower_pps``, ``search_upper_pps``) and all trials
            (``search``). ``throughput_pps`` is the conditional throughput; with ``lower_bound`` it is "at least".

        Raises:
            UsageError: the rate is none of these, or as in ``throughput``.
            WorkloadError, ProvisionError: as in ``throughput``.
        """
        __tracebackhide__ = True
        searched = named_rate(rate)
        if searched is None or not searched.is_search:
            raise UsageError(f"{self._benchmark.where}: '{rate}' is nothing to search for; give ndr or pdr:0.5%")
        self._marker.other("search")
        return self._measure("throughput", overrides, searched)

    def sweep(self, loads: Any = None, **overrides: Any) -> Measurement:
        """Measures the maximum forwarding rate over several offered loads (``mfr``, RFC 2285).

        Each load has one launch. The figure is from further launches at the load with the highest receive rate.

        Args:
            loads: frames per second and pair, a list or a text in the syntax of ``--icbench-rate``
                (``1M..1M..20M``); by default ten loads up to what the reference link takes.

        Returns:
            The measurement; ``sweep`` has the point of each load.

        Raises:
            WorkloadError, ProvisionError, UsageError: as in ``throughput``.
        """
        __tracebackhide__ = True
        where = f"{self._benchmark.where}: sweep"
        parsed = () if loads is None else parse_loads(values.as_text(loads, where), where)
        self._marker.other("sweep")
        return self._measure("throughput", overrides, Rate(loads=parsed))

    @property
    def switch(self) -> type[Switch]:
        """The driver of the case's switch."""
        return self._run.testbed.catalogue[self.case.switch]

    def exchange(self) -> Exchange:
        """Returns an exchange that sends and receives frames of any kind at the case's endpoints; it measures nothing.

        Raises:
            WorkloadError, ProvisionError: the message has the tail of the log of the process that failed.
        """
        __tracebackhide__ = True
        return self._on_rig(self._run.exchange)

    def rig(self) -> Rig:
        """Returns the case's rig, with free endpoints, for a test that starts processes. Raises ProvisionError."""
        __tracebackhide__ = True
        return self._on_rig(self._run.rig)

    def _on_rig(self, get: Callable[[Case, Settings], T]) -> T:
        __tracebackhide__ = True
        try:
            return get(self.case, self._benchmark.settings)
        except Unsupported as error:
            return skip(str(error), strict=self._run.options.strict)  # type: ignore[no-any-return]
        except IcbenchError as error:
            raise error.with_traceback(None) from None

    def judge(self, measurement: Measurement) -> Judgement:
        """Returns the verdict against ``thresholds.toml`` and the baseline; it is False if it would fail a test."""
        limits, margins = self._judged_by(measurement)
        comparison = self._run.compare(measurement, margins)
        if measurement.side_by_side is not None:  # the base takes the place of a baseline
            of = None if self.case.candidate is not None else self._run.options.compare
            comparison = compare_with_base(measurement, self._base_of(measurement), margins, of)
        judgement = judge(measurement, limits, against=comparison, policy=self._run.policy)
        for record in self._records:
            if record.measurement is measurement:
                record.judgement = judgement
        return judgement

    def gate(self, measurement: Measurement) -> Judgement:
        """Returns the verdict if it does not fail the test: by default any but REGRESSED and INVALID.

        Raises:
            Regression: the whole interval misses a limit or is worse than the baseline; also for the other verdicts of
                ``--icbench-fail-on``, and with ``--icbench-strict`` for all but PASS and IMPROVED. The first line of
                the message has at most 100 characters.
            Invalid: the measurement is no number.
        """
        __tracebackhide__ = True
        return enforce(self.judge(measurement))

    def _measure(
        self, dimension: Dimension, overrides: dict[str, Any], rate: Rate | None = None, how: How | None = None
    ) -> Measurement:
        __tracebackhide__ = True
        where = self._benchmark.where
        case = replace(self.case, dimension=dimension).sending(rate=rate or self.case.rate)
        try:
            call = parse_overrides(overrides, where)
            settings = self._benchmark.settings
            if call:
                settings = merge_settings(self._run.options, self._benchmark.request.settings, call, where)
            settings = adapt_settings(case, settings, self._run.options, self._benchmark.limits)
            settings = self._run.on_this_test(settings, case.rate)
            check_rate(case, settings, where)
            taken = self._take(case)
            if taken is not None:
                return taken
            measurement = self._choose_how(case, how)(case, settings)
        except Unsupported as error:
            skip(str(error), strict=self._run.options.strict)
        except IcbenchError as error:
            # A traceback through the harness would bury the message.
            raise error.with_traceback(None) from None
        self._records.append(_Record(case, measurement))
        return measurement

    def _choose_how(self, case: Case, asked: How | None) -> How:
        """Returns how to measure: as the method asks, side by side with the base, or alone. Raises Unsupported."""
        if case.candidate is not None:
            if asked is not None:
                raise Unsupported("--icbench-candidate compares launches; leave it out for long runs and trains")
            return self._side_by_side
        if asked is not None:
            return asked
        if self._run.old is not None:
            return self._beside_base
        return self._loaded if case.rate.share else self._run.measure

    def _take(self, case: Case) -> Measurement | None:
        """Returns the case's measurement by the run that is resumed, to be judged anew; None without one."""
        resumed = self._run.taken_now
        measurement = None if resumed is None else resumed.take(self._item.nodeid, case)
        if measurement is not None and resumed is not None:
            measurement = (
                replace(measurement, verdict=None, reason=None)
                if measurement.verdict != Verdict.INVALID
                else measurement
            )
            self._records.append(_Record(case, measurement, taken_from=resumed.name))
        return measurement

    def _take_rest(self) -> None:
        """Takes measurements that others depend on, though the test did not ask for them."""
        resumed = self._run.taken
        if resumed is None or not any(record.taken_from for record in self._records):
            return
        for measurement in resumed.rest(self._item.nodeid):
            unjudged = replace(measurement, verdict=None, reason=None)
            case = Case.from_dict(measurement.axes)
            is_base = self.case.candidate is not None and case.candidate is None
            self._records.insert(0, _Record(case, unjudged, is_base, taken_from=resumed.name))
            if not is_base:
                self.judge(unjudged)

    def _soaked(self, case: Case, settings: Settings, asked_s: float) -> Measurement:
        duration_s = self._run.options.soak_duration or asked_s
        stream = self._run.directory / "soak" / f"{path_part(self._item.name)}.jsonl"
        return with_losses(self._run.measure(case, soak_settings(settings, duration_s, stream)))

    def _side_by_side(self, case: Case, settings: Settings) -> Measurement:
        """Measures a candidate side by side with its base, at a share of the base's rate if the case asks for one."""
        self._compared += 1
        if self._compared > (planned := self._benchmark.request.comparisons):
            raise UsageError(
                f"{self._benchmark.where}: --icbench-candidate: this is comparison {self._compared} of the test, and"
                f" its marker announces {planned}, which the session's error rate counts: give the marker"
                f" comparisons={self._compared}"
            )
        return self._beside_base(case, settings)

    def _beside_base(self, case: Case, settings: Settings) -> Measurement:
        """Measures a candidate side by side with its base, or a case with the old version of a baseline."""
        base_case = self._run.base_of(case)
        offered = self._offered(case.base, settings) if case.rate.share else None
        measured = case if offered is None else case.sending(rate=offered[0])
        allowed = compute_allowances(self._benchmark.thresholds.margins(*case.ids), case.dimension)
        old = None if case.candidate is not None else replace(measured, candidate=base_case.candidate)
        candidate, base = self._run.measure_versions(measured, settings, allowed, old)
        if offered is not None:
            share = {"load": case.rate.share, "load_of_pps": offered[1]}
            comparison = candidate.side_by_side and replace(candidate.side_by_side, base=base_case.id)
            candidate = replace(candidate, case=case.id, axes=case.to_dict(), side_by_side=comparison)
            base = replace(base, case=base_case.id, axes=base_case.to_dict())
            candidate, base = candidate.with_figures(**share), base.with_figures(**share)
        self._records.append(_Record(base_case, base, is_base=True, is_old=old is not None))
        return candidate

    def _judged_by(self, measurement: Measurement) -> tuple[tuple[Limit, ...], Margins]:
        """Returns the limits and margins of a measurement."""
        ids, thresholds = Case.from_dict(measurement.axes).ids, self._benchmark.thresholds
        return thresholds.for_case(*ids), thresholds.margins(*ids)

    def _base_of(self, candidate: Measurement) -> Measurement | None:
        """Returns the base of a comparison; None if it was taken from a run that is resumed."""
        bases = (record.measurement for record in self._records if record.is_base)
        comparison = candidate.side_by_side
        return next((base for base in bases if comparison is not None and base.case == comparison.base), None)

    def _loaded(self, case: Case, settings: Settings) -> Measurement:
        """Measures at a share of a rate that is searched for first, once per run. Raises Invalid if none was found."""
        rate, rate_pps = self._offered(case, settings)
        measured = self._run.measure(case.sending(rate=rate), settings)
        named = replace(measured, case=case.id, axes=case.to_dict())
        return named.with_figures(load=case.rate.share, load_of_pps=rate_pps)

    def _offered(self, case: Case, settings: Settings) -> tuple[Rate, float]:
        """Returns the load of each pair and the rate of all pairs that it is a share of. Raises Invalid."""
        whole = case.search
        search = self._searched(whole, settings)
        if search.verdict == Verdict.INVALID or not search.frames.throughput_pps:
            raise Invalid(search.reason or "no-forwarding", f"{whole.id}: {search.evidence or 'no rate was found'}")
        share = case.rate.share or 1.0
        pps = search.frames.throughput_pps.value
        return Rate.part_of_found(share, pps, whole.senders), pps

    def _searched(self, whole: Case, settings: Settings) -> Measurement:
        """Returns the measurement of a search, made once per run; it is a result of the first test that needs it."""
        search = self._run.found_rates.get(whole)
        if search is None:
            search = self._run.found_rates[whole] = self._run.measure(whole, settings)
            self._records.append(_Record(whole, search))
            self.judge(search)
        return search

    def _trained(self, case: Case, settings: Settings, repetitions: int) -> Measurement:
        if not case.rate.is_max or case.traffic.both or repetitions < 1:
            raise UsageError(
                "back-to-back frames go one way at the maximum rate, at least once: leave out rate, direction and"
                " repetitions"
            )
        ndr = self._searched(case.sending(rate=Rate(loss_ratio=0.0)), settings)
        found = None if ndr.verdict == Verdict.INVALID else ndr.frames.throughput_pps
        proven = found / case.senders if found else None
        return measure_trains(lambda plan: self._run.measure(case, plan), case, settings, repetitions, proven)

    def finish(self) -> None:
        """Writes the measurements. Called once, however the test has ended. Raises ProvisionError."""
        self._take_rest()
        records, self._records = self._records, []
        for record in (record for record in records if not record.is_old):
            measurement = record.measurement
            if record.judgement is not None:
                measurement = replace(measurement, **record.judgement.fields())
            judged_by = None if record.judgement is None else self._judged_by(measurement)
            self._run.record(self._item.nodeid, record.case, measurement, judged_by, record.taken_from)
            self.results.append(measurement.without_windows())
            windows = windows_of(measurement)
            self.windows.append(None if windows is None else windows.to_dict())
            self.taken_from.append(record.taken_from)
            if not record.is_base:
                self._item.user_properties.extend(properties(measurement))

    def unjudged(self) -> Invalid | None:
        """Returns the error of an INVALID measurement that the test has not judged; None without one."""
        for record in self._records:
            if record.measurement.verdict == Verdict.INVALID and record.judgement is None and not record.is_base:
                return Invalid(record.measurement.reason or "unknown", record.measurement.evidence or "no evidence")
        return None
