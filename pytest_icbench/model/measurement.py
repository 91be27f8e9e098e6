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
from pytest_icbench.model.codec import (
    DamagedData,
    check_fields,
    check_schema,
    decode,
    encode,
    estimates,
    from_json,
)
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch, PairCounts, SwitchPort, Window
from pytest_icbench.model.long_run import BackToBack, LossEvent
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import Search, SweepPoint
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.bands import Bands
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

#: The measurement and its parts; those of a launch are defined in a file of their own.
__all__ = ["MAIN_FIGURES", "SCHEMA", "Launch", "Measurement", "PairCounts", "PairResult", "Window"]

#: Version of the form in which results are written. Readers refuse later versions.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class PairResult:
    """The figures of one pair over all launches.

    Attributes:
        pair: 1, 2, ….
        throughput_pps, offered_pps: median over launches.
        scheduled, sent, refused, received, lost: totals over launches.
    """

    pair: int
    throughput_pps: float
    offered_pps: float
    scheduled: int
    sent: int
    refused: int
    received: int
    lost: int


@dataclass(frozen=True, slots=True, repr=False)
class Measurement:
    """The statistics of several launches of one case. The names are those of a line in ``results.jsonl``.

    Attributes:
        case: the case's id. ``axes`` is the case itself, as ``Case.to_dict`` writes it.
        metric: meaning of the rate: ``closed-loop`` (an application's own client, which asks when it has its answer),
            ``frmol`` (forwarding rate at maximum offered load, RFC 2285), ``mfr`` (maximum
            over offered loads, RFC 2285), ``fixed``, or ``ndr`` and ``pdr`` from a search.
        verdict: set by the gate, and INVALID by the measurement itself with its ``reason`` and ``evidence``.
        findings: the findings of the gate, the one that decided first.
        waiver: why, and until when, the verdict fails no test.
        baseline: name of the baseline compared with. ratio_to_baseline: main figure over the baseline's figure.
        treatment_changes: facts of ``treatment`` that differ from the baseline's, each as [before, now].
        rules: version of the rules by which launches are valid and counted (``measure.validity.RULES``).
        bottleneck: ``endpoint switch ring host link`` or ``unknown``. ``bottleneck_evidence`` says why.
        lower_bound: whether the switch had idle share, or an endpoint was the limit: the rate is then "at least".
        throughput_pps: frames received per second, total over pairs, median over launches; of a search the
            conditional throughput, and its interval is the bracket from there to the relevant upper bound.
        throughput_per_pair_pps: mean over the pairs of the above (M of T = M·N).
        fairness: greatest rate of a pair over the least; 1.0 for one pair, None if a pair received nothing.
        throughput_gbps: layer 2, frames with FCS; ``throughput_l1_gbps`` includes preamble and gap (20 bytes), too.
        mean_frame_bytes: mean length of the frames received, with FCS: a mix may lose long frames more often.
        offered_pps: scheduled per second, median over launches.
        scheduled … corrupted: totals over the kept windows of all launches and pairs.
        frame_loss_ratio: lost / sent. trial_loss_ratio: 1 - received / scheduled. None when the divisor is 0.
        ratio_to_reference: throughput over throughput for ``frmol``, reference p50 over p50 for latency.
        reference_evidence: why the ratio is missing although a reference link was measured, or would be on one host.
        rtt_…: round-trip times of all launches' histograms merged; lost frames count as slower than any percentile.
        rtt_lost: requests that were due and have no answer: lost, refused, or never sent in time.
        rtt_first_…: round-trip times of the requests that were the first of their burst.
        pdv_…: packet delay variation (RFC 5481): round-trip time less the least of its pair in its launch.
        floor_…: round-trip times of the reference link: those of the tool and the machine without any switch.
        cycles_per_packet: busy cycles of the switch per frame, median over launches.
        sender_…, receiver_…: cycles of the endpoints' polling loops (a client is a sender, a server a receiver): the
            busy cycles per frame, and their share.
        hardware: hardware events per frame received, by ``switch`` and ``endpoints``; empty where none are counted.
        vectors_per_call: frames that the switch's workers handled at once, median over launches.
        functions: what each network function did during the launches, by pair; None for a path without any.
        switch_counters: by port, over all launches; None for a switch that keeps none.
        operations_per_second: answered requests of an application, or megabits of payload of a stream, total over
            pairs, median over launches. ``operations`` is their total over all launches.
        goodput_gbps: payload of a stream in Gbit/s; None for requests.
        response_…: response times as the application's own client has them, closed loop: the median over launches of
            each launch's figure, the slowest pair's.
        client_…, server_…: CPU time, and cycles of the TSC in that time, of an application's processes for one
            operation. It has the soft interrupts that ran in their time, unless the kernel counts these apart.
        softirq_ns_per_operation: time of soft interrupts on the endpoints' CPUs for one operation, by the kernel's
            ticks; beside the processes' time or part of it, as the kernel counts.
        birth_ns: time to create a container, median over those of the case; ``births`` has each.
        birth_growth: median time of the last tenth over that of the first; None below 20 containers.
        birth_memory_bytes, birth_cpu_share: memory, and CPU time over time, of one idle container, with all of them
            there (``model.birth.Idle``).
        loss_events: the first thousand of ``loss_event_count`` in a long run (``icbench.soak``); None for others.
        back_to_back: longest train without loss (RFC 9004); None for others.
        load: the load as a share of a rate that was searched for first.
        load_of_pps: that rate, total over pairs.
        launches, windows: number of launches and windows behind the figures.
        ended_by: ``precision`` (the interval was narrow enough), ``max-duration``, ``budget``, ``repeats``,
            ``rounds``, or ``interrupted`` with only some of them; of a
            search ``goal``, ``max-duration`` or ``generator-bound``.
        precision: half the width of the interval of the main figure over that figure; None where there is no interval,
            and where launches depend on each other, since further ones could lie anywhere.
        confidence: coverage of the intervals, stopping rule included; None where there is none.
        bands: the two bands into which the launches fall by the main figure, in its unit; None for one band.
        dependence: how launches depend on those before them by the main figure, and by how much that widens its
            interval; None below six launches, and where it is not known.
        drift: change of the main figure from the first to the last launch, over the figure, if it drifted along a line.
        disturbed_launches: launches of the figures during which others took time from the CPUs that measured; None
            where that is not known. ``disturbance`` is what took most, in words.
        disturbed_repeated: number of launches that were repeated because they were disturbed, by nothing that was
            measured; ``per_repeated_launch`` has them.
        discarded_s: length of the traffic of all launches before their rate (or median round trip) was stationary.
        unsettled_launches: launches whose rate (or median round trip) did not become stationary in time.
        disturbed_windows: kept windows in which the host took time from an endpoint.
        repeated: number of launches repeated because of a fault of the harness; ``faults`` lists them.
        search_lower_pps, search_upper_pps: relevant bounds of a search, total over pairs; None where none was proven.
        search, sweep: how ``ndr`` and ``pdr``, and ``mfr``, were found.
        placement: the policy; ``treatment`` has the CPU of every thread.
        identity, treatment, conditions: facts of the host, of the software tested, and of the moment.
        settings: how the case was measured.
        decision: the verdict on versions side by side; None for other measurements.
        ratio_to_base: candidate over base.
        side_by_side: how the decision was reached.
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
    operations_per_second: Estimate | None = None
    operations: float | None = None
    goodput_gbps: Estimate | None = None
    response_mean_ns: Estimate | None = None
    response_p50_ns: Estimate | None = None
    response_p90_ns: Estimate | None = None
    response_p99_ns: Estimate | None = None
    client_cpu_ns_per_operation: Estimate | None = None
    server_cpu_ns_per_operation: Estimate | None = None
    client_cycles_per_operation: Estimate | None = None
    server_cycles_per_operation: Estimate | None = None
    softirq_ns_per_operation: Estimate | None = None
    birth_ns: Estimate | None = None
    birth_growth: float | None = None
    birth_memory_bytes: float | None = None
    birth_cpu_share: float | None = None
    births: Births | None = None
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
    bands: Bands | None = None
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
    conditions: dict[str, Any] = field(default_factory=dict)
    hardware: dict[str, Any] = field(default_factory=dict)
    per_pair: tuple[PairResult, ...] = ()
    switch_counters: tuple[SwitchPort, ...] | None = None
    functions: tuple[FunctionWork, ...] | None = None
    per_launch: tuple[Launch, ...] = ()
    per_reference_launch: tuple[Launch, ...] = ()
    per_repeated_launch: tuple[Launch, ...] = ()

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
            return (
                f"<{type(self).__name__} {self.case}: {self.verdict or 'no value'} {self.reason or ''}".rstrip() + ">"
            )
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
        return _point(self.switch, tuple(axis for axis in self.axes.items() if axis[0] in AXES))

    @property
    def ratio_to_plain(self) -> Estimate | None:
        """The figure over that of the same path without its network function; None for a path without any."""
        return None if self.point.function is None else self.ratio_to_reference

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
    return Case.from_dict({**data, "mix": None, "flows": None})  # likewise


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
