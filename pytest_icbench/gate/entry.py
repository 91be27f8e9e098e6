# SPDX-License-Identifier: BSD-3-Clause
"""A case in a baseline: its newest session in full, one value of each earlier session, and the facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.model import comparability
from pytest_icbench.model.candidate import OldVersion
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.intervals import estimate_spread
from pytest_icbench.stats.quantiles import median
from pytest_icbench.stats.states import same_state
from pytest_icbench.stats.verdict_rule import FEWEST_SESSIONS, MOST_SESSIONS

#: Conditions that a baseline keeps: settings of the machine. All others change from moment to moment.
KEPT_CONDITIONS = ("frequency_driver", "governors", "turbo")
#: A cost of each frame: it is multiplied by the reference link's rate instead of divided by it.
COST = ("throughput", "lower")
#: A value of each session, level by level, the newest level last.
Levels = list[list[float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its value in each launch.

    Attributes:
        value, low, high: the figure and its interval, of a search its bounds; None with too few launches.
        launches: the value of each launch; empty if unknown.
    """

    value: float
    low: float | None = None
    high: float | None = None
    launches: tuple[float, ...] = ()

    @property
    def middle(self) -> float:
        """The median over the launches; ``value`` if they are unknown."""
        return median(self.launches) if self.launches else self.value


@dataclass(frozen=True, slots=True)
class SessionValues:
    """The values of one session of a case.

    Attributes:
        values: the compared figures by name, each the median over launches where those are known.
        control: the reference link's main figure, median over launches; None without one.
        against: the figures relative to the reference link, median over adjacent launches; see ``relative``.
        level: number of changes that were accepted before.
        distance_ns: distance between the CPUs that pass frames; None if unknown.
    """

    values: dict[str, float] = field(default_factory=dict)
    control: float | None = None
    against: dict[str, float] = field(default_factory=dict)
    level: int = 0
    distance_ns: float | None = None


def relative(name: str, figure: Figure, control: Figure | None) -> float | None:
    """Returns a figure relative to the reference link, the median over launches; None if either has no launches.

    Rates and times are divided by the link's. Cycles a frame are multiplied by the link's rate, since a slower host
    raises the cycles and lowers the rate.
    """
    if control is None or not figure.launches or min(control.launches, default=0.0) <= 0:
        return None
    both = zip(figure.launches, control.launches, strict=False)
    cost = COMPARED[name] == COST
    return median([value * link if cost else value / link for value, link in both])


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """The plain facts of an entry. A baseline's file has the same fields.

    Attributes:
        measured: time of the measurement in UTC (``2026-01-31T12:00:00Z``).
        rules: version of the rules of validity; see ``Measurement``.
        lower_bound: the rate is a lower bound ("at least").
        level: number of changes that were accepted before.
        distance_ns: distance between the CPUs that pass frames; None if unknown.
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
    """One case on one host: the figures and facts of its newest session, and the values of earlier ones.

    Attributes:
        figures: the comparable figures that the case has, by name.
        control: the main figure of the reference link that was launched in turn; None without a useful one.
        earlier: the values of earlier sessions by the time of their measurement, the oldest first.
        old: how to start the measured version again; None if unknown.
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
        """Returns the values of the sessions in the state of a distance, the oldest first."""
        return tuple(session for session in self.sessions if same_state(session.distance_ns, distance_ns))

    def collect_levels(self, name: str, distance_ns: float | None) -> list[Levels]:
        """Returns a figure of the sessions in one state of the host, then its ratios to the reference link.

        Values before an accepted change show the spread, but no longer the mean. Either list is left out if too few
        sessions have the value, or not the newest one.

        Args:
            name: of the figure; values that are not positive are left out.
            distance_ns: the distance that stands for the state.
        """
        sides: list[Levels] = []
        for values_of in (attrgetter("values"), attrgetter("against")):
            levels: dict[int, list[float]] = {}
            for session in self.in_state(distance_ns):
                if (value := values_of(session).get(name)) is not None and value > 0:
                    levels.setdefault(session.level, []).append(value)
            ordered = [levels[level] for level in sorted(levels)]
            few = sum(map(len, ordered)) < FEWEST_SESSIONS or estimate_spread(ordered) is None
            if few or self.level not in levels:
                break
            sides.append(ordered)
        return sides

    def after(self, before: Entry, *, accepted: bool = False) -> Entry:
        """Returns this entry with the sessions of another entry of the same case as earlier ones.

        Sessions that are not comparable are left out. Of more than ``MOST_SESSIONS`` the newest are kept.

        Args:
            accepted: whether the values begin a new level, so that they alone are the new normal.
        """
        if comparability.differences(self, before):
            return self
        kept = {**self.earlier, **before.earlier, before.measured: before.values}
        kept.pop(self.measured, None)  # the same measurement, saved twice
        level = before.level + 1 if accepted and kept else before.level
        return replace(self, level=level, earlier=newest(kept, MOST_SESSIONS - 1))

    @property
    def about(self) -> tuple[str, str]:
        """The dimension and the id, which are the same on all hosts and placements."""
        return self.dimension, self.case

    @property
    def key(self) -> str:
        """The name within a host's file. Placements are never compared, so each has its own entry."""
        return f"{self.dimension} {self.case} {self.placement}"


def make_entry(measurement: Measurement) -> Entry | None:
    """Returns the entry of a measurement; None for INVALID, long runs (one launch), and trains of frames (no rate)."""
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
        measured=format_utc(datetime.fromtimestamp(measurement.started_at, UTC)),
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


def format_utc(moment: datetime) -> str:
    """Returns a time in UTC as entries have it: ``2026-01-31T12:00:00Z``."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def newest(sessions: Mapping[str, SessionValues], most: int) -> dict[str, SessionValues]:
    """Returns at most ``most`` sessions, the newest ones, in the order of their times."""
    return dict(sorted(sessions.items())[max(len(sessions) - most, 0) :])


def _control(measurement: Measurement) -> Figure | None:
    """Returns the main figure of the reference link; None at a fixed rate, which every link carries.

    For a search it is the load that the link sustained during calibration.
    """
    figures, search = measurement.figures, measurement.searched.search
    if search:
        calibrated = search.calibrated_on == "reference" and search.greatest_pps
        return Figure(calibrated, launches=(calibrated,)) if calibrated else None
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
    """Returns the figure of every launch; empty unless all of them have it.

    A search counts as one launch: its trials are no repetitions.
    """
    figures = measurement.figures
    if figures.BRACKETED:
        return (figures.main.value,) if name == figures.MAIN and figures.main is not None else ()
    values = [figures.value_of_launch(launch, name) for launch in measurement.per_launch if launch.invalid is None]
    known = [float(value) for value in values if value is not None]
    return tuple(known) if len(known) == len(values) == measurement.launches else ()


@dataclass(frozen=True)
class Baseline:
    """The entries of one baseline on all hosts, or of a run that is used as a baseline.

    Attributes:
        is_run: whether they are of a run, which is a single session.
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
        """Its noun in messages."""
        return "the first run" if self.is_run else "the baseline"

    @property
    def title(self) -> str:
        """Its name as messages show it."""
        return self.name if self.is_run else f"baseline {self.name}"

    def about(self, case: tuple[str, str]) -> list[Entry]:
        """Returns the entries of a case (``Entry.about``), whatever the host and the placement."""
        return self._about.get(case, [])
