# SPDX-License-Identifier: BSD-3-Clause
"""A case as a baseline keeps it: its newest session in full, the values of earlier ones, and the facts around. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.model import circumstances
from pytest_icbench.model.application import of_application
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.old_version import OldVersion
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import median
from pytest_icbench.stats.states import same_state

#: The most sessions of a case that a baseline keeps; a further one pushes the oldest out.
MOST_SESSIONS = 20
#: Conditions that a baseline keeps: settings of the machine. The others are of the moment and always differ.
KEPT_CONDITIONS = ("frequency_driver", "governors", "turbo")
#: What is multiplied by the reference link's rate, and not divided by it: a cost of each frame.
COST = ("throughput", "lower")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, now or before, with its launches.

    Attributes:
        value, low, high: the figure and its interval, of a search its bounds; None where there are too few launches.
        launches: the figure of each launch; empty where they are not known.
    """

    value: float
    low: float | None = None
    high: float | None = None
    launches: tuple[float, ...] = ()

    @property
    def middle(self) -> float:
        """The median over the launches; the value where they are not known."""
        return median(self.launches) if self.launches else self.value


@dataclass(frozen=True, slots=True)
class SessionValues:
    """The values of one session of a case.

    Attributes:
        values: the compared figures by name, each the median over launches where those are known.
        control: the reference link's main figure, median over launches; None without one.
        against: the figures relative to the reference link, median over neighbouring launches; see ``relative``.
        level: grows by one with each change that was accepted.
        distance_ns: distance between the CPUs that pass frames; None where it is not known.
    """

    values: dict[str, float] = field(default_factory=dict)
    control: float | None = None
    against: dict[str, float] = field(default_factory=dict)
    level: int = 0
    distance_ns: float | None = None


def relative(name: str, figure: Figure, control: Figure | None) -> float | None:
    """Returns a figure relative to the reference link, the median over launches; None where either has no launches.

    A quotient of two rates or of two times; of cycles a frame their product with the reference link's rate, since a
    slower host makes cycles more and the rate less.
    """
    if control is None or not figure.launches or min(control.launches, default=0.0) <= 0:
        return None
    both = zip(figure.launches, control.launches, strict=False)
    cost = COMPARED[name] == COST
    return median([value * beside if cost else value / beside for value, beside in both])


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """The facts of an entry's case beside figures and circumstances; a baseline's file has the same fields.

    Attributes:
        measured: time of the measurement in UTC (``2026-01-31T12:00:00Z``).
        rules: version of the rules of validity; see ``Measurement``.
        lower_bound: the rate is "at least".
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

    @property
    def reference_pps(self) -> float | None:
        """The reference link's frames per second at the maximum; None without one."""
        return self.control.middle if self.control is not None and self.metric == "frmol" else None

    def in_state(self, distance_ns: float | None) -> tuple[SessionValues, ...]:
        """The values of the sessions whose CPUs were as far apart, the oldest first."""
        return tuple(session for session in self.sessions if same_state(session.distance_ns, distance_ns))

    def by_level(self, distance_ns: float | None, of: Callable[[SessionValues], float | None]) -> list[list[float]]:
        """Returns a positive value of each session in a state, level by level; none if the newest level has none.

        The newest level is the last. What was right before a change was accepted is not what is right now.
        """
        levels: dict[int, list[float]] = {}
        for session in self.in_state(distance_ns):
            if (value := of(session)) is not None and value > 0:
                levels.setdefault(session.level, []).append(value)
        return [levels[level] for level in sorted(levels)] if self.level in levels else []

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


def entry_of(measurement: Measurement) -> Entry | None:
    """Returns its entry; None for INVALID, for a long run, which has one launch, and for trains, which have no rate."""
    figures = {name: figure for name in COMPARED if (figure := _figure(measurement, name)) is not None}
    invalid = measurement.verdict == Verdict.INVALID
    if (
        invalid
        or not figures
        or measurement.frames.loss_events is not None
        or measurement.rates.back_to_back is not None
    ):
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
    if measurement.searched.search is not None:
        calibrated = (
            measurement.searched.search.calibrated_on == "reference" and measurement.searched.search.greatest_pps
        )
        return Figure(calibrated, launches=(calibrated,)) if calibrated else None
    figures = measurement.figures
    if not figures.has_control(measurement.metric):
        return None
    launches = [launch for launch in measurement.per_reference_launch if launch.invalid is None]
    values = [float(value) for launch in launches if (value := figures.of_launch(launch)) is not None]
    if not values or len(values) < len(launches):
        return None
    return Figure(median(values), launches=tuple(values))


def _figure(measurement: Measurement, name: str) -> Figure | None:
    dimension, _ = COMPARED[name]
    estimate = measurement.estimate(name) if dimension == measurement.dimension else None
    if estimate is None:
        return None
    return Figure(estimate.value, estimate.low, estimate.high, _by_launch(measurement, name))


def _by_launch(measurement: Measurement, name: str) -> tuple[float, ...]:
    """The figure of every launch; empty unless all of them have it.

    A search is one launch as a whole: its trials are no repetitions, and its bounds tell nothing of another search's.
    """
    if measurement.searched.search is not None:
        searched = measurement.frames.throughput_pps if name == "throughput_pps" else None
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

    def about(self, case: tuple[str, str]) -> list[Entry]:
        """Returns the entries of a case (``Entry.about``), whatever the host and the placement."""
        return self._about.get(case, [])
