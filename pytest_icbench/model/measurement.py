# SPDX-License-Identifier: BSD-3-Clause
"""The Measurement of a case over its launches, and its form in files (schema 1). Facts only, pure.

None stands for a value that does not exist: a switch that keeps no counters has no ``cycles_per_packet``, and too few
samples have no ``rtt_p99_9_ns``. An estimate ``x`` has its interval in ``x.low`` and ``x.high``, which files call
``x_low`` and ``x_high``; ``confidence`` is the confidence of the interval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from pytest_icbench.model.birth import Births
from pytest_icbench.model.case import AXES, Case
from pytest_icbench.model.codec import DamagedData, check_fields, check_schema, decode, encode, estimates, from_json
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.function_facts import ChainAccount, FunctionWork
from pytest_icbench.model.launch import DirectionResult, Launch, PairCounts, PairResult, SwitchPort, Window
from pytest_icbench.model.long_run import BackToBack, LossEvent
from pytest_icbench.model.neighbour import NeighbourEffect
from pytest_icbench.model.old_version import OldVersion
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.state_level import StateLevel
from pytest_icbench.model.trace import Followed
from pytest_icbench.model.trials import Search, SweepPoint
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.dependence import Dependence
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import plain_name, quantity

#: The figure by which results of each dimension are compared.
MAIN_FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "throughput": "throughput_pps",
        "latency": "rtt_p50_ns",
        "application": "operations_per_second",
        "birth": "birth_ns",
    }
)
#: The figure that tells about a switch where its rate does not.
CYCLES = "cycles_per_packet"

#: The measurement and its parts; those of a launch are defined in a file of their own.
__all__ = ["CYCLES", "MAIN_FIGURES", "SCHEMA", "Launch", "Measurement", "PairCounts", "PairResult", "Window"]

#: Version of the form in which results are written. Readers refuse later versions.
SCHEMA = 1


@dataclass(frozen=True, slots=True, repr=False)
class Measurement:
    """The statistics of several launches of one case. The names are those of a line in ``results.jsonl``.

    Attributes:
        case: the case's id.
        dimension: ``throughput``, ``latency``, ``application`` or ``birth``.
        metric: what a rate is.
        switch, port, variant: the last two null where natural; a candidate follows the variant (``xconnect:new``).
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
        throughput_pps: frames received per second, all pairs and directions, median over launches; of searches
            conditional throughput.
        throughput_per_pair_pps: the above over the number of pairs.
        fairness: greatest pair (of two directions the greatest one) over least; null when one received nothing.
        throughput_gbps: layer 2: frames with FCS.
        throughput_l1_gbps: layer 1: with preamble and inter-frame gap, 20 bytes a frame more.
        mean_frame_bytes: mean length of the frames received, with FCS; counted, for a mix.
        offered_pps: frames scheduled per second, median over launches.
        scheduled, sent, refused, received, lost, duplicated, reordered, late, foreign, corrupted: accounts.
        denied: frames of flows that a function in the path denies: ``sent = received + lost + denied``.
        frame_loss_ratio, trial_loss_ratio: lost / sent; 1 - (received + denied) / scheduled; null for a divisor of 0.
        generator_bound: the sender, by its own means, could not offer what was asked for.
        ratio_to_reference: throughput over the reference link's, or the reference's median RTT over the case's; of a
            search over the greatest load that the reference link sustains; with a network function over the same path
            without it. Null at fixed rates.
        reference_evidence: why there is no ratio: a fault of the reference link, or two hosts that cannot have one.
        rtt_mean_ns, rtt_p50_ns, rtt_p90_ns, rtt_p99_ns, rtt_p99_9_ns, rtt_p99_99_ns: round-trip time; a percentile with
            too few requests beyond it, or among those without an answer, is null; the mean is of the answers.
        rtt_max_ns: slowest answer; with ``rtt_lost`` the maximum is not known.
        rtt_samples, rtt_lost: answers, and due requests without one (``lost + refused + not_offered``).
        rtt_first_p50_ns, rtt_first_p99_ns, rtt_first_samples: the same of the first request of each burst.
        pdv_p50_ns, pdv_p90_ns, pdv_p99_ns, pdv_p99_9_ns, pdv_p99_99_ns, pdv_max_ns: packet delay variation.
        floor_p50_ns, floor_p90_ns, floor_p99_ns, floor_samples: round-trip time of the reference link, or null.
        cycles_per_packet: the switch's busy cycles per received frame, median over launches.
        operations_per_second, operations, goodput_gbps, response_mean_ns, response_p50_ns, response_p90_ns,
            response_p99_ns, response_p99_9_ns, client_cpu_ns_per_operation, server_cpu_ns_per_operation,
            client_cycles_per_operation, server_cycles_per_operation, softirq_ns_per_operation: of an application;
            response times: launches' median, slowest pair.
        neighbour, followed: what a neighbour changed, and when changes of a load arrived, or null.
        birth_ns, birth_growth, birth_memory_bytes, birth_cpu_share, birth_first_p50_ns, births: of created containers.
        sender_cycles_per_packet, receiver_cycles_per_packet: busy cycles of the endpoints' polling loops per frame
            sent, received; a client is a sender, a server a receiver. Null with blocking sockets.
        sender_busy_share, receiver_busy_share: part of their loops' cycles in which frames moved.
        hardware: hardware events per received frame, ``{"switch": {…}, "endpoints": {…}}`` with ``cycles instructions
            llc_misses``; empty where the kernel gives none (``icbench doctor`` says why).
        vectors_per_call: frames a call of the switch's workers, median over launches, where reported (VPP).
        frames_by_core: frames that each of several workers of the switch took in over all launches, by CPU; null where
            there is one, or the switch does not tell.
        core_imbalance: greatest of these over their mean, median over launches: 1 is even; null likewise.
        switch_counters: list by port: what the switch counted in all launches; null without counters.
        chains: list by pair: where a chain lost frames; null without a chain, for round trips, and where control
            frames are not told from data.
        functions: list by pair and hop: what each network function did in all launches; null for a path without any.
        loss_events, loss_event_count: of a long run (``icbench.soak``): the first thousand loss events; their number.
        back_to_back: back-to-back frames (``icbench.back_to_back``).
        load, load_of_pps: share of a rate searched for first (``pdr:0.5%*0.1``), and that rate, over all pairs.
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
        search_lower_pps, search_upper_pps: relevant bounds of a search, over all pairs; null where none was proven.
        search: a search with its trials, or null.
        sweep: points of a sweep.
        axes: every axis of the case by name; a rate is a number, null for ``max``, or a text (``ndr``).
        settings: how it was measured.
        identity, treatment, conditions: facts; on two hosts the other's are in ``remote`` of each.
            ``conditions.fitness`` has what was found when the run began: ``fit``, ``sentence``, ``waited_s``,
            ``missing`` (what the host does not tell, and is not claimed), ``other_link`` (``case``, ``pps``; shares no
            code with the path). ``conditions.clock_step_s``: the day's clock was set, forward or (below 0) back.
        software: how what was measured is started again: by part the path, ``sha256`` and package of its program, the
            user's configuration, the kernel; null in older results.
        per_pair, per_direction: lists: pairs; the directions over all pairs, empty where side a alone sends.
        per_launch, per_reference_launch: lists: launches of the case and of the reference link.
    """

    case: str
    dimension: str
    metric: str
    switch: str
    port: str | None
    variant: str | None
    placement: str
    verdict: str | None
    reason: str | None
    bottleneck: str
    throughput_pps: Estimate | None
    throughput_per_pair_pps: Estimate | None
    fairness: float | None
    throughput_gbps: Estimate | None
    throughput_l1_gbps: Estimate | None
    offered_pps: float | None
    scheduled: int
    sent: int
    refused: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    late: int
    foreign: int
    corrupted: int
    frame_loss_ratio: float | None
    trial_loss_ratio: float | None
    generator_bound: bool
    mean_frame_bytes: float | None = None
    denied: int = 0
    ratio_to_reference: Estimate | None = None
    rtt_mean_ns: Estimate | None = None
    rtt_p50_ns: Estimate | None = None
    rtt_p90_ns: Estimate | None = None
    rtt_p99_ns: Estimate | None = None
    rtt_p99_9_ns: Estimate | None = None
    rtt_p99_99_ns: Estimate | None = None
    rtt_max_ns: float | None = None
    rtt_samples: int = 0
    rtt_lost: int = 0
    rtt_first_p50_ns: Estimate | None = None
    rtt_first_p99_ns: Estimate | None = None
    rtt_first_samples: int = 0
    pdv_p50_ns: Estimate | None = None
    pdv_p90_ns: Estimate | None = None
    pdv_p99_ns: Estimate | None = None
    pdv_p99_9_ns: Estimate | None = None
    pdv_p99_99_ns: Estimate | None = None
    pdv_max_ns: float | None = None
    floor_p50_ns: float | None = None
    floor_p90_ns: float | None = None
    floor_p99_ns: float | None = None
    floor_samples: int = 0
    cycles_per_packet: Estimate | None = None
    sender_cycles_per_packet: Estimate | None = None
    receiver_cycles_per_packet: Estimate | None = None
    sender_busy_share: float | None = None
    receiver_busy_share: float | None = None
    vectors_per_call: float | None = None
    frames_by_core: dict[str, int] | None = None
    core_imbalance: float | None = None
    operations_per_second: Estimate | None = None
    operations: float | None = None
    goodput_gbps: Estimate | None = None
    response_mean_ns: Estimate | None = None
    response_p50_ns: Estimate | None = None
    response_p90_ns: Estimate | None = None
    response_p99_ns: Estimate | None = None
    response_p99_9_ns: Estimate | None = None
    client_cpu_ns_per_operation: Estimate | None = None
    server_cpu_ns_per_operation: Estimate | None = None
    client_cycles_per_operation: Estimate | None = None
    server_cycles_per_operation: Estimate | None = None
    softirq_ns_per_operation: Estimate | None = None
    birth_ns: Estimate | None = None
    birth_growth: float | None = None
    birth_memory_bytes: float | None = None
    birth_cpu_share: float | None = None
    birth_first_p50_ns: Estimate | None = None
    births: Births | None = None
    neighbour: NeighbourEffect | None = None
    followed: tuple[Followed, ...] | None = None
    loss_events: tuple[LossEvent, ...] | None = None
    loss_event_count: int | None = None
    back_to_back: BackToBack | None = None
    load: float | None = None
    load_of_pps: float | None = None
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
    search_lower_pps: float | None = None
    search_upper_pps: float | None = None
    search: Search | None = None
    sweep: tuple[SweepPoint, ...] = ()
    axes: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    treatment: dict[str, Any] = field(default_factory=dict)
    software: OldVersion | None = None
    conditions: dict[str, Any] = field(default_factory=dict)
    hardware: dict[str, Any] = field(default_factory=dict)
    per_pair: tuple[PairResult, ...] = ()
    per_direction: tuple[DirectionResult, ...] = ()
    switch_counters: tuple[SwitchPort, ...] | None = None
    functions: tuple[FunctionWork, ...] | None = None
    chains: tuple[ChainAccount, ...] | None = None
    per_launch: tuple[Launch, ...] = ()
    per_reference_launch: tuple[Launch, ...] = ()
    per_repeated_launch: tuple[Launch, ...] = ()
    per_other_launch: tuple[Launch, ...] = ()

    if not TYPE_CHECKING:  # typed code writes x.low

        def __getattr__(self, name: str) -> float | None:
            """Returns ``x_low`` or ``x_high`` of an estimate ``x``, as files name them."""
            stem, _, end = name.rpartition("_")
            if end not in ("low", "high") or stem not in ESTIMATES:
                raise AttributeError(f"a measurement has no {name!r}")
            return getattr(getattr(self, stem), end, None)

    def __repr__(self) -> str:
        """Returns case, main value and interval on one line, since a failed ``assert`` shows it."""
        name = MAIN_FIGURES.get(self.dimension, "throughput_pps")
        value = getattr(self, name)
        if not self.is_number or value is None:
            told = f"{self.verdict or 'no value'} {self.reason or ''}".rstrip()
            return f"<{type(self).__name__} {self.case}: {told}>"
        text = f"{plain_name(name)} {quantity(name, value)}"
        if value.low is not None and value.high is not None:
            text += f" ({quantity(name, value.low)} to {quantity(name, value.high)})"
        return f"<{type(self).__name__} {self.case}: {text}>"

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
        return None if not point.function or point.contracts or point.beside_alone else self.ratio_to_reference

    @property
    def back_to_back_frames(self) -> float | None:
        """Frames of the longest train without loss, mean over the repetitions; None for other measurements."""
        return None if self.back_to_back is None else self.back_to_back.frames

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
    plain = {"mix": None, "flows": None, "header": None, "direction": None, "queues": 1}  # likewise
    return Case.from_dict({**data, **plain})


_AXES = {**Case("").to_dict(), "function": None}


def _check_axes(measurement: Measurement) -> None:
    """Raises DamagedData for axes of which no case can be made; a rate that a later version knows is none of them."""
    axes = {**_AXES, "switch": measurement.switch, **measurement.axes}
    if not isinstance(axes["rate"], int | str | None):
        raise DamagedData("axes: the rate is neither a number nor a text")
    with suppress(ValueError):
        Case.from_dict(axes)


def _bare(launches: tuple[Launch, ...]) -> tuple[Launch, ...]:
    return tuple(replace(launch, windows=()) for launch in launches)


#: Names of a measurement's estimates.
ESTIMATES = estimates(Measurement)
