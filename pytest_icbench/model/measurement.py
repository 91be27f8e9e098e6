# SPDX-License-Identifier: BSD-3-Clause
"""The Measurement of a case over its launches, and its form in files (schema 2). Facts only, pure.

What all kinds of measurement have stands in the record itself, and what one kind has in its ``figures``.
None stands for a value that does not exist. An estimate is an object in files: ``{"value", "low", "high"}``, whose ends
are null without an interval; ``confidence`` is the confidence of the interval.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from pytest_icbench.model.candidate import OldVersion
from pytest_icbench.model.case import AXES, Case
from pytest_icbench.model.codec import UNWRITTEN, DamagedData, check_fields, check_schema, decode, encode, from_json
from pytest_icbench.model.figures import (
    ENDS,
    FIGURES,
    AnyFigures,
    Application,
    F,
    FrameFigures,
    Latency,
    Search,
    Startup,
    Throughput,
    none_of,
    types_of,
)
from pytest_icbench.model.finding import Finding, SideBySide
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch, PairCounts, PairResult, SwitchPort, Window
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.dependence import Dependence
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import plain_name, quantity

T = TypeVar("T")
#: The figure that tells about a switch where its rate does not.
CYCLES = "cycles_per_packet"

#: The measurement and its parts; those of a launch are defined in a file of their own.
__all__ = ["CYCLES", "SCHEMA", "Launch", "Measurement", "PairCounts", "PairResult", "Window"]

#: Version of the form in which results are written. Readers refuse later versions.
SCHEMA = 2


@dataclass(frozen=True, slots=True)
class StateLevel:
    """The launches of a case in one state of the host.

    Attributes:
        distance_ns: geometric mean over the launches of the distance between the CPUs that pass frames, in ns.
        launches: their number.
        value: the main value, median over these launches, in its unit; null if no launch has one.
        values: the main value of each launch that has one.
    """

    distance_ns: float
    launches: int
    value: Estimate | None
    values: tuple[float, ...] = ()


class Figure(Generic[T]):
    """A member of measurements that is a figure of a kind, with its type."""

    def __init__(self, read: Callable[[Measurement], T]) -> None:
        self._read = read

    def __get__(self, measurement: Measurement | None, _owner: type[Measurement]) -> T:
        # Of the class it is the member itself.
        return self._read(measurement) if measurement is not None else self  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, repr=False)
class Measurement:
    """The statistics of several launches of one case. The names are those of a line in ``results.jsonl``.

    All figures are read by their kind: ``measurement.frames.throughput_pps`` is None where the measurement is of
    another kind. Those that tests read most have their names here, too: ``measurement.throughput_pps``.

    Attributes:
        case: the case's id.
        dimension: ``throughput``, ``latency``, ``application`` or ``startup``.
        metric: what a rate is.
        switch, port, mode: the last two null where natural; a candidate follows the mode (``xconnect:new``).
        placement: ``dedicated`` or ``cooperative``.
        verdict, reason: from the gate, or INVALID from the measurement itself.
        evidence: values that show why a measurement is INVALID.
        findings: what the gate found, the deciding one first.
        baseline, ratio_to_baseline: name of the baseline, main value over its; null without a (comparable) one.
        treatment_changes: facts of ``treatment`` that differ from the baseline's, each as [before, now].
        waiver: until when, and why, a failing verdict does not fail the test; else null.
        rules: version of the rules of validity (``measure.validity.RULES``); values by other rules are not compared.
        bottleneck, bottleneck_evidence: what limited the rate, and how that is known in a sentence.
        lower_bound: the rate is "at least".
        generator_bound: the sender, by its own means, could not offer what was asked for.
        ratio_to_reference: throughput over the reference link's, or the reference's median RTT over the case's; of a
            search over the greatest load that the reference link sustains; with a network function over the same path
            without it. Null at fixed rates.
        reference_evidence: why there is no ratio: a fault of the reference link, or two hosts that cannot have one.
        switch_counters: list by port: what the switch counted in all launches; null without counters.
        functions: list by pair and hop: what each network function did in all launches; null for a path without any.
        figures: the figures of its kind.
        launches, windows: how many are behind the values.
        ended_by: why it ended: ``precision``, ``max-duration``, ``budget``, ``repeats``, ``rounds``, ``interrupted``
            (only some rounds were finished); of a search ``goal``, ``max-duration``, ``budget`` or ``generator-bound``.
        precision: half the width of the main value's interval over it; null where none is claimed.
        confidence: coverage of the intervals, stopping rule included; null without any.
        distance_ns: geometric mean over the launches of the distance between the CPUs that pass frames, or null.
        levels: list: where the host was in several states, the main value in each: ``distance_ns``, ``launches``,
            ``value``. All other values are of the launches in one of them: that of most launches.
        changed_launches: launches in which the state changed.
        awaited_s: how long the case waited for a state, in seconds.
        per_other_launch: list: launches, of case and reference, in other states or in none; in no value but ``levels``.
        dependence: how launches depend on those before them by the main value: ``correlation`` of neighbours (0 to 1),
            ``probability`` of any dependence, ``widening`` of the interval (1 or more); null below six launches and
            in rounds.
        drift: change of the main value from first to last launch over its level, if it drifted along a line; else null.
        discarded_s, unsettled_launches: traffic before launches were stationary; launches that were not so in time.
        disturbed_windows: measured windows in which the host took time from an endpoint, and all of a disturbed launch.
        disturbed_launches: disturbed launches behind the values; null where not known, as in older results.
        disturbance: what took most, in words: processes by their names alone; null if nothing did.
        disturbed_repeated, per_repeated_launch: number of launches repeated because they were disturbed, and these
            launches, of case and reference, which are in no value.
        repeated, faults: number of launches repeated because the tool was at fault, and the faults.
        started_at, duration_s: seconds since the epoch, and what the case took.
        decision: of versions side by side: ``PASS IMPROVED REGRESSED INCONCLUSIVE``; null if INVALID.
        ratio_to_base: candidate over base, on the launches that decide.
        side_by_side: how it was reached, or null.
        axes: every axis of the case by name; a rate is a number, null for ``max``, or a text (``ndr``).
        settings: how it was measured.
        identity, treatment, conditions: facts; on two hosts the other's are in ``remote`` of each.
            ``conditions.fitness`` has what was found when the run began: ``fit``, ``sentence``, ``waited_s``,
            ``missing`` (what the host does not tell, and is not claimed), ``other_link`` (``case``, ``pps``; shares no
            code with the path). ``conditions.clock_step_s``: the day's clock was set, forward or (below 0) back.
        software: how to start the measured software again: by part the path, ``sha256`` and package of its program, the
            user's configuration, the kernel; null in older results.
        per_launch, per_reference_launch: lists: launches of the case and of the reference link.
    """

    case: str
    dimension: str
    metric: str
    switch: str
    port: str | None
    mode: str | None
    placement: str
    verdict: str | None
    reason: str | None
    bottleneck: str
    generator_bound: bool
    figures: AnyFigures
    ratio_to_reference: Estimate | None = None
    launches: int = 0
    windows: int = 0
    ended_by: str = "repeats"
    precision: float | None = None
    confidence: float | None = None
    distance_ns: float | None = None
    levels: tuple[StateLevel, ...] = ()
    changed_launches: int = 0
    awaited_s: float = 0.0
    dependence: Dependence | None = None
    drift: float | None = None
    lower_bound: bool = False
    bottleneck_evidence: str = ""
    evidence: str | None = None
    reference_evidence: str | None = None
    disturbed_windows: int = 0
    disturbed_launches: int | None = None
    disturbance: str | None = None
    disturbed_repeated: int = 0
    discarded_s: float = 0.0
    unsettled_launches: int = 0
    repeated: int = 0
    faults: tuple[str, ...] = ()
    started_at: float = 0.0
    duration_s: float = 0.0
    findings: tuple[Finding, ...] = ()
    baseline: str | None = None
    ratio_to_baseline: Estimate | None = None
    treatment_changes: dict[str, Any] = field(default_factory=dict)
    waiver: str | None = None
    rules: int = 1
    side_by_side: SideBySide | None = None
    decision: str | None = None
    ratio_to_base: Estimate | None = None
    axes: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    treatment: dict[str, Any] = field(default_factory=dict)
    software: OldVersion | None = None
    conditions: dict[str, Any] = field(default_factory=dict)
    switch_counters: tuple[SwitchPort, ...] | None = None
    functions: tuple[FunctionWork, ...] | None = None
    per_launch: tuple[Launch, ...] = ()
    per_reference_launch: tuple[Launch, ...] = ()
    per_repeated_launch: tuple[Launch, ...] = ()
    per_other_launch: tuple[Launch, ...] = ()

    # Figures by their names alone. One that the kind does not have is None or 0.
    throughput_pps = Figure(lambda own: own.frames.throughput_pps)
    throughput_gbps = Figure(lambda own: own.frames.throughput_gbps)
    offered_pps = Figure(lambda own: own.frames.offered_pps)
    sent = Figure(lambda own: own.frames.sent)
    received = Figure(lambda own: own.frames.received)
    lost = Figure(lambda own: own.frames.lost)
    frame_loss_ratio = Figure(lambda own: own.frames.frame_loss_ratio)
    cycles_per_packet = Figure(lambda own: own.frames.cycles_per_packet)
    chains = Figure(lambda own: own.frames.chains)
    followed = Figure(lambda own: own.frames.followed)
    noisy_neighbour = Figure(lambda own: own.frames.noisy_neighbour)
    loss_events = Figure(lambda own: own.frames.loss_events)
    loss_event_count = Figure(lambda own: own.frames.loss_event_count)
    back_to_back = Figure(lambda own: own.rates.back_to_back)
    sweep = Figure(lambda own: own.rates.sweep)
    search = Figure(lambda own: own.searched.search)
    search_lower_pps = Figure(lambda own: own.searched.search_lower_pps)
    search_upper_pps = Figure(lambda own: own.searched.search_upper_pps)
    rtt_p50_ns = Figure(lambda own: own.round_trips.rtt_p50_ns)
    rtt_p99_ns = Figure(lambda own: own.round_trips.rtt_p99_ns)
    operations_per_second = Figure(lambda own: own.application.operations_per_second)
    response_p99_ns = Figure(lambda own: own.application.response_p99_ns)
    startup_ns = Figure(lambda own: own.containers.startup_ns)
    startup_growth = Figure(lambda own: own.containers.startup_growth)

    def __repr__(self) -> str:
        """Returns case, main value and interval on one line, since a failed ``assert`` shows it."""
        name, value = self.figures.MAIN, self.figures.main
        if not self.is_number or value is None:
            reported = f"{self.verdict or 'no value'} {self.reason or ''}".rstrip()
            return f"<{type(self).__name__} {self.case}: {reported}>"
        text = f"{plain_name(name)} {quantity(name, value)}"
        if value.low is not None and value.high is not None:
            text += f" ({quantity(name, value.low)} to {quantity(name, value.high)})"
        return f"<{type(self).__name__} {self.case}: {text}>"

    @property
    def frames(self) -> FrameFigures:
        """The figures about frames of the workload; of applications and start-up all are None, or 0."""
        return self._of(FrameFigures)

    @property
    def rates(self) -> Throughput:
        """The figures of a rate that is not searched for; of other kinds all are None, or 0."""
        return self._of(Throughput)

    @property
    def searched(self) -> Search:
        """The figures of a search; of other kinds all are None, or 0."""
        return self._of(Search)

    @property
    def round_trips(self) -> Latency:
        """The figures of round trips; of other kinds all are None, or 0."""
        return self._of(Latency)

    @property
    def application(self) -> Application:
        """The figures of an application; of other kinds all are None, or 0."""
        return self._of(Application)

    @property
    def containers(self) -> Startup:
        """The figures of created containers; of other kinds all are None, or 0."""
        return self._of(Startup)

    def _of(self, kind: type[F]) -> F:
        return self.figures if isinstance(self.figures, kind) else none_of(kind)

    def value(self, name: str) -> Any:
        """Returns a value of its own, or a figure, by its name; None for a figure that its kind does not have."""
        return getattr(self if hasattr(type(self), name) else self.figures, name, None)

    def estimate(self, name: str) -> Estimate | None:
        """Returns an estimate by its name; None for one that its kind does not have."""
        value = self.value(name)
        return value if isinstance(value, Estimate) else None

    def with_figures(self, **changed: Any) -> Self:
        """Returns the measurement with other figures of its kind. Raises TypeError for a name that it does not have."""
        return replace(self, figures=replace(self.figures, **changed))

    @property
    def is_number(self) -> bool:
        """Whether the figures count: those of an INVALID measurement do not."""
        return self.verdict != Verdict.INVALID

    @property
    def point(self) -> Case:
        """The case itself; axes that an earlier version did not write have their defaults."""
        return _point(self.switch, tuple([axis for axis in self.axes.items() if axis[0] in AXES]))

    @property
    def ratio_to_plain(self) -> Estimate | None:
        """The figure over that of the same path without its network function; None for a path without any."""
        point = self.point
        return None if not point.function or point.cpu_allocations or point.beside_alone else self.ratio_to_reference

    @property
    def back_to_back_frames(self) -> float | None:
        """Frames of the longest train without loss, mean over the repetitions; None for other measurements."""
        return None if self.rates.back_to_back is None else self.rates.back_to_back.frames

    def without_windows(self) -> Self:
        """Returns the measurement without windows, as a line of ``results.jsonl`` has it."""
        return replace(
            self,
            per_launch=_bare(self.per_launch),
            per_reference_launch=_bare(self.per_reference_launch),
            per_repeated_launch=_bare(self.per_repeated_launch),
            per_other_launch=_bare(self.per_other_launch),
        )

    def to_dict(self, *, windows: bool = False) -> dict[str, Any]:
        """Returns plain JSON data. ``windows`` includes every launch's windows, which belong in the raw files."""
        return {"schema": SCHEMA, **encode(self if windows else self.without_windows())}

    def to_json(self, *, windows: bool = False) -> str:
        """Returns one line of ``results.jsonl``, without its newline."""
        return json.dumps(self.to_dict(windows=windows), allow_nan=False, separators=(",", ":"))

    def flat(self) -> dict[str, Any]:
        """Returns plain JSON data without nested figures: all kinds have the same keys.

        A figure that its kind does not have is null. An estimate ``x`` has three keys: ``x``, ``x_low`` and ``x_high``.
        """
        data = encode(self.without_windows())
        plain: dict[str, Any] = {}
        for name in FLAT_FIELDS:
            value = data[name] if name in _OWN else data["figures"].get(name, _ABSENT.get(name))
            if name in ESTIMATES:
                parts = (None, None, None) if value is None else (value["value"], value["low"], value["high"])
                plain |= {f"{name}{end}": part for end, part in zip(ENDS, parts, strict=True)}
            else:
                plain[name] = value
        return {"schema": SCHEMA, **plain}

    @classmethod
    def from_dict(cls, data: Any, where: str = "result") -> Self:
        """Returns the measurement of ``to_dict``. Raises DamagedData with one sentence that begins with ``where``."""
        if not isinstance(data, dict):
            raise DamagedData(f"{where}: expected an object, found {type(data).__name__}")
        check_schema(data, SCHEMA, where, "this is no result of pytest-icbench")
        measurement = decode(cls, data, where)
        check_fields(Settings, measurement.settings, f"{where}: settings")
        try:
            _check_axes(measurement)
        except DamagedData as error:
            raise DamagedData(f"{where}: {error}") from None
        return measurement

    @classmethod
    def from_json(cls, line: str, where: str = "result") -> Self:
        """Returns the measurement of ``to_json``. Raises DamagedData with one sentence that begins with ``where``."""
        return cls.from_dict(from_json(line, where), where)


@lru_cache(maxsize=10_000)
def _point(switch: str, axes: tuple[tuple[str, Any], ...]) -> Case:
    """Returns the case of a result; cached, because reports ask many times for each result."""
    data = {**_AXES, "switch": switch, **dict(axes)}
    with suppress(ValueError):
        return Case.from_dict(data)
    data["rate"] = None  # one that a later version knows
    with suppress(ValueError):
        return Case.from_dict(data)
    plain = {"mix": None, "flows": None, "header": None, "direction": None, "queues": 1, "routes": None}  # likewise
    return Case.from_dict({**data, **plain})


_AXES = {**Case("").to_dict(), "function": None}


def _check_axes(measurement: Measurement) -> None:
    """Raises DamagedData for axes that make no case; a rate that only a later version knows is accepted."""
    axes = {**_AXES, "switch": measurement.switch, **measurement.axes}
    if not isinstance(axes["rate"], int | str | None):
        raise DamagedData("axes: the rate is neither a number nor a text")
    with suppress(ValueError):
        Case.from_dict(axes)


def _bare(launches: tuple[Launch, ...]) -> tuple[Launch, ...]:
    return tuple(replace(launch, windows=()) for launch in launches)


#: Names of the fields of a measurement itself, without those of its kind.
_OWN = frozenset(item.name for item in fields(Measurement)) - {"figures"}
#: The types of a measurement's fields and of the figures of all kinds by name, in the order of flat records.
FLAT_FIELDS: Mapping[str, Any] = MappingProxyType(
    {
        name: hint
        for own, hint in types_of(Measurement).items()
        for name, hint in (FIGURES.items() if own == "figures" else ((own, hint),))
    }
)
#: Figures that are never null: 0, false or empty where the kind does not have them.
_ABSENT: Mapping[str, Any] = MappingProxyType(
    {
        name: value
        for kind in (FrameFigures, Throughput, Search, Latency, Application, Startup)
        for name, value in encode(none_of(kind)).items()
        if value is not None
    }
)
#: Names of a measurement's estimates.
ESTIMATES = frozenset(name for name, hint in FLAT_FIELDS.items() if hint == Estimate | None)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Measurement):
    """A measurement in a report, with its run and its host there; files have neither.

    Attributes:
        run: name of its run in a report of several.
        host: the machine that measured it, if there are several, as the report numbers them: ``host 1``.
        against: the findings against the run before in a report of two runs.
        plain: the main value over that of the same path without its network function, from a case of the same report.
        test: the id of its test.
        apart: in what it differs from others of its path and traffic in a report, in words.
    """

    run: str | None = field(default=None, metadata=UNWRITTEN)
    host: str | None = field(default=None, metadata=UNWRITTEN)
    against: tuple[Finding, ...] = field(default=(), metadata=UNWRITTEN)
    plain: Estimate | None = field(default=None, metadata=UNWRITTEN)
    test: str | None = field(default=None, metadata=UNWRITTEN)
    apart: str | None = field(default=None, metadata=UNWRITTEN)

    @property
    def at_least(self) -> bool:
        """Whether the path may carry more than was measured, since something else was the limit.

        This is what ``≥`` means in every report. It stands before the lower end of the interval: the path carries at
        least that. ``limit by`` names what was the limit: never the switch or the path itself. A round trip has no
        ``≥``.
        """
        return self.lower_bound and not self.figures.LESS_IS_BETTER

    @classmethod
    def of(cls, measurement: Measurement, run: str | None = None, test: str | None = None) -> Result:
        """Returns a measurement as a result of a run and a test."""
        return cls(**{item.name: getattr(measurement, item.name) for item in fields(Measurement)}, run=run, test=test)
