# SPDX-License-Identifier: BSD-3-Clause
"""A case as a baseline keeps it: the figures that can be compared, and the facts around them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.gate.session_values import MOST_SESSIONS, Figure, SessionValues, relative
from pytest_icbench.model import circumstances
from pytest_icbench.model.application import of_application
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.old_version import OldVersion
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import Estimate, median
from pytest_icbench.stats.states import same_state

#: Metrics of rates that were searched for.
SEARCHED = ("ndr", "pdr")
#: Conditions that a baseline keeps: settings of the machine. The others are of the moment and always differ.
KEPT_CONDITIONS = ("frequency_driver", "governors", "turbo")


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """The facts of an entry's case beside figures and circumstances; a baseline's file has the same fields.

    Attributes:
        measured: time of the measurement in UTC (``2026-01-31T12:00:00Z``).
        rules: version of the rules of validity; see ``Measurement``.
        lower_bound: the rate is "at least".
        reference_pps: frames per second of the reference link at the maximum, median over launches; None without one.
        level: grows by one with each change that was accepted.
        distance_ns: distance between the CPUs that pass frames; None where it is not known.
    """

    case: str
    dimension: str
    metric: str
    switch: str
    placement: str
    rules: int
    measured: str
    lower_bound: bool
    launches: int
    reference_pps: float | None = field(default=None, kw_only=True)
    level: int = field(default=0, kw_only=True)
    distance_ns: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Entry(CaseFacts):
    """The figures and circumstances of one case on one host: its newest session, and the values of earlier ones.

    Attributes:
        figures: the comparable figures that the case has, by name.
        control: the main figure of the reference link that was launched beside it; None where that tells nothing.
        earlier: the values of earlier sessions by the time of their measurement, the oldest first.
        old: how what was measured is started again; None for an entry that does not say so.
        identity, treatment, settings: as in a result.
        conditions: as in a result, but only ``KEPT_CONDITIONS``.
    """

    figures: Mapping[str, Figure]
    identity: Mapping[str, Any] = field(default_factory=dict)
    treatment: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    control: Figure | None = None
    earlier: Mapping[str, SessionValues] = field(default_factory=dict)
    old: OldVersion | None = None

    @property
    def values(self) -> SessionValues:
        """The values of the newest session."""
        against = {name: relative(name, figure, self.control) for name, figure in self.figures.items()}
        return SessionValues(
            {name: figure.middle for name, figure in self.figures.items()},
            None if self.control is None else self.control.middle,
            {name: value for name, value in against.items() if value is not None},
            self.level,
            self.distance_ns,
        )

    @property
    def sessions(self) -> tuple[SessionValues, ...]:
        """The values of all sessions, the oldest first."""
        return (*self.earlier.values(), self.values)

    def in_state(self, distance_ns: float | None) -> tuple[SessionValues, ...]:
        """The values of the sessions whose CPUs were as far apart, the oldest first."""
        return tuple(session for session in self.sessions if same_state(session.distance_ns, distance_ns))

    def after(self, before: Entry, *, accepted: bool = False) -> Entry:
        """Returns this entry as the newest session beside those of another entry of the same case.

        Sessions under other circumstances are left out, and so are the oldest beyond ``MOST_SESSIONS``.

        Args:
            accepted: whether the values begin a new level, so that only they say what is right from now on.
        """
        if circumstances.differences(self, before):
            return self
        kept = {**self.earlier, **before.earlier, before.measured: before.values}
        kept.pop(self.measured, None)  # the same measurement, saved twice
        level = before.level + 1 if accepted and kept else before.level
        return replace(self, level=level, earlier=newest(kept, MOST_SESSIONS - 1))

    @property
    def about(self) -> tuple[str, str]:
        """The dimension and the id: the case, whatever the host and the placement."""
        return self.dimension, self.case

    @property
    def key(self) -> str:
        """The name within a file, so within a host. Placements are never compared, so each has its own entry."""
        return f"{self.dimension} {self.case} {self.placement}"


def comparable_kind(measurement: Measurement) -> bool:
    """Whether a measurement can stand in a baseline: a long run has one launch, and trains have no rate."""
    return (
        measurement.loss_events is None and measurement.back_to_back is None and measurement.verdict != Verdict.INVALID
    )


def entry_of(measurement: Measurement) -> Entry | None:
    """The entry of a measurement; None for one that cannot stand in a baseline."""
    figures = {name: figure for name in COMPARED if (figure := _figure(measurement, name)) is not None}
    if not figures or not comparable_kind(measurement):
        return None
    return Entry(
        case=measurement.case,
        dimension=measurement.dimension,
        metric=measurement.metric,
        switch=measurement.switch,
        placement=measurement.placement,
        rules=measurement.rules,
        measured=f"{datetime.fromtimestamp(measurement.started_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
        lower_bound=measurement.lower_bound,
        launches=measurement.launches,
        reference_pps=_reference_pps(measurement),
        distance_ns=measurement.distance_ns,
        figures=figures,
        identity=measurement.identity,
        treatment=measurement.treatment,
        conditions={name: measurement.conditions.get(name) for name in KEPT_CONDITIONS},
        settings=measurement.settings,
        control=_control(measurement),
        old=measurement.software,
    )


def newest(sessions: Mapping[str, SessionValues], most: int) -> dict[str, SessionValues]:
    """Returns the newest sessions in the order of their times."""
    return dict(sorted(sessions.items())[max(len(sessions) - most, 0) :])


def _control(measurement: Measurement) -> Figure | None:
    """Returns the main figure of the reference link; None at a given rate, which every link carries.

    That of a search is the load that the reference link sustained, by which its greatest load was calibrated.
    """
    if measurement.search is not None:
        calibrated = measurement.search.calibrated_on == "reference" and measurement.search.greatest_pps
        return Figure(calibrated, launches=(calibrated,)) if calibrated else None
    rate = measurement.dimension == "throughput"
    if measurement.metric != "frmol" if rate else measurement.dimension != "latency":
        return None
    name = "throughput_pps" if rate else "rtt_p50_ns"
    launches = [launch for launch in measurement.per_reference_launch if launch.invalid is None]
    values = [float(value) for launch in launches if (value := _of_launch(launch, name)) is not None]
    if not values or len(values) < len(launches):
        return None
    return Figure(median(values), launches=tuple(values))


def _reference_pps(measurement: Measurement) -> float | None:
    rates = [launch.throughput_pps for launch in measurement.per_reference_launch if launch.invalid is None]
    maximal = measurement.dimension == "throughput" and measurement.metric == "frmol"
    return median(rates) if maximal and rates else None


def _figure(measurement: Measurement, name: str) -> Figure | None:
    dimension, _ = COMPARED[name]
    estimate: Estimate | None = getattr(measurement, name) if dimension == measurement.dimension else None
    if estimate is None:
        return None
    return Figure(estimate.value, estimate.low, estimate.high, _by_launch(measurement, name))


def _by_launch(measurement: Measurement, name: str) -> tuple[float, ...]:
    """The figure of every launch; empty unless all of them have it.

    A search is one launch as a whole: its trials are no repetitions, and its bounds tell nothing of another search's.
    """
    if measurement.search is not None:
        searched = measurement.throughput_pps if name == "throughput_pps" else None
        return () if searched is None else (searched.value,)
    values = [_of_launch(launch, name) for launch in measurement.per_launch if launch.invalid is None]
    known = [float(value) for value in values if value is not None]
    return tuple(known) if len(known) == len(values) == measurement.launches else ()


_PERCENTILES = {"rtt_p50_ns": 0.5, "rtt_p90_ns": 0.9, "rtt_p99_ns": 0.99, "rtt_p99_9_ns": 0.999}


def _of_launch(launch: Launch, name: str) -> float | None:
    if launch.application is not None:
        return of_application(launch.application, name)
    if name == "throughput_pps":
        return launch.throughput_pps
    if name == "cycles_per_packet":
        return launch.cycles_per_packet
    if launch.rtt is None:
        return None
    return launch.rtt.mean if name == "rtt_mean_ns" else launch.rtt.percentile(_PERCENTILES[name])


@dataclass(frozen=True)
class Baseline:
    """The entries of one baseline on all hosts, or of a run that is compared like one.

    Attributes:
        is_run: whether they are of a run, which is one session and stays so.
    """

    name: str
    entries: tuple[Entry, ...] = ()
    is_run: bool = False
    _about: dict[tuple[str, str], list[Entry]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for entry in self.entries:
            self._about.setdefault(entry.about, []).append(entry)

    @property
    def noun(self) -> str:
        return "the first run" if self.is_run else "the baseline"

    @property
    def title(self) -> str:
        return self.name if self.is_run else f"baseline {self.name}"

    def about(self, entry: Entry) -> list[Entry]:
        """Returns the entries of the same case, whatever the host and the placement."""
        return self._about.get(entry.about, [])
