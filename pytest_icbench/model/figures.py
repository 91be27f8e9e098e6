# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a measurement, one type a kind of measurement. Facts only, pure.

None stands for a value that does not exist: a switch that keeps no counters has no ``cycles_per_packet``, and too few
samples have no ``rtt_p99_9_ns``.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_type_hints

from pytest_icbench.model.application import of_application
from pytest_icbench.model.function_facts import ChainAccount
from pytest_icbench.model.launch import DirectionResult, Launch, PairResult
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect
from pytest_icbench.model.startup import Startups
from pytest_icbench.model.trace import LoadChange
from pytest_icbench.model.trials import BackToBack, LossEvent, SearchLog, SweepPoint
from pytest_icbench.stats.quantiles import Estimate, merge

F = TypeVar("F", bound="Figures")
#: The keys of an estimate in a flat record: ``x``, ``x_low`` and ``x_high``.
ENDS = ("", "_low", "_high")
#: Metrics of a path's capability, as opposed to its behaviour under a given load.
MAXIMA = ("frmol", "mfr", "ndr", "pdr")
#: The percentiles of times by name, for everything that has them. ``Latency`` has fields for each: ``rtt_p99_9_ns``.
PERCENTILES: Mapping[str, float] = types.MappingProxyType(
    {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
)


def time_field(stem: str, percentile: str) -> str:
    """Returns the field of a percentile of a time: ``p99.9`` of ``rtt`` is ``rtt_p99_9_ns``."""
    return f"{stem}_{percentile.replace('.', '_')}_ns"


def kept(estimate: Estimate | None, factor: float = 1.0) -> Estimate | None:
    """Returns an estimate in another unit as a measurement keeps it: without a coverage of its own."""
    if estimate is None:
        return None
    scaled = estimate.scaled(factor)
    return Estimate(scaled.value, scaled.low, scaled.high)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of any kind.

    Attributes:
        kind: name of the type in files.
    """

    #: The figure by which results of the kind are compared.
    MAIN: ClassVar[str]
    #: The dimension of the kind in ids and options.
    DIMENSION: ClassVar[str]
    #: Whether a lesser main figure is the better one.
    LESS_IS_BETTER: ClassVar[bool] = False
    #: The main figure in titles and in sentences; several of them.
    TITLE: ClassVar[str] = "rate ({metric})"
    NOUN: ClassVar[str] = "rate"
    PLURAL: ClassVar[str] = "rates"
    #: How sentences call the best of several.
    LEAD: ClassVar[str] = "Fastest"
    #: What the ends of a path are.
    ENDS: ClassVar[tuple[str, str]] = ("sender", "receiver")
    #: Whether reports say the metric after the main figure.
    SAYS_METRIC: ClassVar[bool] = True
    #: Whether a bottleneck limits the main figure.
    HAS_LIMIT: ClassVar[bool] = True
    #: Whether the interval of the main figure is between bounds, and not one over launches.
    BRACKETED: ClassVar[bool] = False

    kind: str = ""

    @property
    def main(self) -> Estimate | None:
        """The figure by which results of the kind are compared."""
        main: Estimate | None = getattr(self, self.MAIN)
        return main

    @property
    def main_unit(self) -> tuple[str, float]:
        """The unit in which reports show the main figure, and the factor to it."""
        return "Mpps", 1e-6

    @property
    def tail(self) -> Estimate | None:
        """The 99th percentile of the times that the main figure is about; None for a frame rate."""
        return None

    @classmethod
    def of_launch(cls, launch: Launch) -> float | None:
        """Returns the main figure of one launch; None where it has none."""
        return launch.throughput_pps

    @classmethod
    def value_of_launch(cls, launch: Launch, name: str) -> float | None:
        """Returns a compared figure of one launch by its name; None where it has none."""
        return cls.of_launch(launch) if name == cls.MAIN else None

    def is_capability(self, metric: str) -> bool:  # noqa: ARG002
        """Whether the main figure is a capability of the path, and not only what it did with a load that was given."""
        return True

    def without_floor(self) -> Self:
        """Returns the figures without those of the reference link."""
        return self

    def has_control(self, metric: str) -> bool:  # noqa: ARG002
        """Whether the reference link's main figure says how fast the host was. At a given load it does not."""
        return False

    def at_level(self, main: Estimate, gbps_per_pps: float, launches: Sequence[Launch]) -> Self:  # noqa: ARG002
        """Returns the figures of a state of the host: the main figure, and what its launches tell.

        Args:
            gbps_per_pps: the Gbit/s of one frame per second.
            launches: those of that state, as far as they are known.
        """
        return self


@dataclass(frozen=True, slots=True)
class FrameFigures(Figures):
    """The figures about frames of the workload: rates, accounts and effort.

    Attributes:
        throughput_pps: frames received per second, all pairs and directions, median over launches; of searches
            conditional throughput.
        throughput_per_pair_pps: the above over the number of pairs.
        fairness: greatest pair (of two directions the greatest one) over least; null when one received nothing.
        throughput_gbps: layer 2: frames with FCS.
        throughput_l1_gbps: layer 1: with preamble and inter-frame gap, 20 bytes a frame more.
        mean_frame_bytes: mean length of the frames received, with FCS; counted, for a mix.
        offered_pps: frames scheduled per second, median over launches.
        scheduled, sent, refused, received, lost, duplicated, reordered, late, foreign, corrupted: accounts.
        acl_drops: frames of flows that a function in the path denies: ``sent = received + lost + acl_drops``.
        frame_loss_ratio, trial_loss_ratio: lost / sent; 1 - (received + acl_drops) / scheduled; null for a divisor of
            0.
        cycles_per_packet: the switch's busy cycles per received frame, median over launches.
        sender_cycles_per_packet, receiver_cycles_per_packet: busy cycles of the endpoints' polling loops per frame
            sent, received; a client is a sender, a server a receiver. Null with blocking sockets.
        sender_busy_share, receiver_busy_share: part of their loops' cycles in which frames moved.
        sender_cpu_share, receiver_cpu_share: CPU time of an endpoint of that side over the measured time, in CPUs, mean
            over pairs and launches. It lacks the soft interrupts that ran in its context where the kernel counts
            those apart.
        vectors_per_call: frames a call of the switch's workers, median over launches, where reported (VPP).
        frames_by_core: frames that each of several workers of the switch took in over all launches, by CPU; null where
            there is one, or the switch does not tell.
        core_imbalance: greatest of these over their mean, median over launches: 1 is even; null likewise.
        hardware: hardware events per received frame, ``{"switch": {…}, "endpoints": {…}}`` with ``cycles kernel_cycles
            instructions llc_misses``, and ``{"packages": {"energy_uj": …}}``, the energy of all CPU packages; what the
            host does not report is not there (``icbench doctor`` says why).
        noisy_neighbour, followed: what a noisy neighbour changed, and when changes of a load arrived, or null.
        loss_events, loss_event_count: of a long run (``icbench.soak``): the first thousand loss events; their number.
        load, load_of_pps: share of a rate searched for first (``pdr:0.5%*0.1``), and that rate, over all pairs.
        per_pair, per_direction: lists: pairs; the directions over all pairs, empty where side a alone sends.
        chains: list by pair: where a chain lost frames; null without a chain, for round trips, and where control
            frames are not distinguished from data.
    """

    MAIN = "throughput_pps"
    DIMENSION = "throughput"

    throughput_pps: Estimate | None = None
    throughput_per_pair_pps: Estimate | None = None
    fairness: float | None = None
    throughput_gbps: Estimate | None = None
    throughput_l1_gbps: Estimate | None = None
    mean_frame_bytes: float | None = None
    offered_pps: float | None = None
    scheduled: int = 0
    sent: int = 0
    refused: int = 0
    received: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    late: int = 0
    foreign: int = 0
    corrupted: int = 0
    acl_drops: int = 0
    frame_loss_ratio: float | None = None
    trial_loss_ratio: float | None = None
    cycles_per_packet: Estimate | None = None
    sender_cycles_per_packet: Estimate | None = None
    receiver_cycles_per_packet: Estimate | None = None
    sender_busy_share: float | None = None
    receiver_busy_share: float | None = None
    sender_cpu_share: float | None = None
    receiver_cpu_share: float | None = None
    vectors_per_call: float | None = None
    frames_by_core: dict[str, int] | None = None
    core_imbalance: float | None = None
    hardware: dict[str, Any] = field(default_factory=dict)
    noisy_neighbour: NoisyNeighbourEffect | None = None
    followed: tuple[LoadChange, ...] | None = None
    loss_events: tuple[LossEvent, ...] | None = None
    loss_event_count: int | None = None
    load: float | None = None
    load_of_pps: float | None = None
    per_pair: tuple[PairResult, ...] = ()
    per_direction: tuple[DirectionResult, ...] = ()
    chains: tuple[ChainAccount, ...] | None = None

    @classmethod
    def value_of_launch(cls, launch: Launch, name: str) -> float | None:
        return launch.cycles_per_packet if name == "cycles_per_packet" else cls.of_launch(launch)

    def is_capability(self, metric: str) -> bool:
        return metric in MAXIMA

    def has_control(self, metric: str) -> bool:
        return metric == "frmol"

    def at_level(self, main: Estimate, gbps_per_pps: float, launches: Sequence[Launch]) -> Self:  # noqa: ARG002
        effort: dict[str, Any] = dict.fromkeys(
            (
                *("throughput_per_pair_pps", "throughput_l1_gbps", "offered_pps", "vectors_per_call", "core_imbalance"),
                *("cycles_per_packet", "sender_cycles_per_packet", "receiver_cycles_per_packet"),
                *("sender_busy_share", "receiver_busy_share"),
            )
        )
        return replace(self, throughput_pps=main, throughput_gbps=kept(main, gbps_per_pps), **effort)


@dataclass(frozen=True, slots=True)
class Throughput(FrameFigures):
    """The figures of rates: at the maximum, at a given load, of a sweep, of a long run, of trains.

    Attributes:
        back_to_back: back-to-back frames (``icbench.back_to_back``).
        sweep: points of a sweep.
    """

    kind: Literal["throughput"] = "throughput"
    back_to_back: BackToBack | None = None
    sweep: tuple[SweepPoint, ...] = ()

    def is_capability(self, metric: str) -> bool:
        return metric in MAXIMA and self.back_to_back is None


@dataclass(frozen=True, slots=True)
class Search(FrameFigures):
    """The figures of a rate that was searched for.

    Attributes:
        search_lower_pps, search_upper_pps: relevant bounds of a search, over all pairs; null where none was proven.
        search: a search with its trials; null if it did not begin.
    """

    BRACKETED = True

    kind: Literal["search"] = "search"
    search_lower_pps: float | None = None
    search_upper_pps: float | None = None
    search: SearchLog | None = None

    def at_level(self, main: Estimate, gbps_per_pps: float, launches: Sequence[Launch]) -> Self:
        level = FrameFigures.at_level(self, main, gbps_per_pps, launches)
        return replace(level, search_lower_pps=None, search_upper_pps=None)


@dataclass(frozen=True, slots=True)
class Latency(FrameFigures):
    """The figures of round trips.

    Attributes:
        rtt_mean_ns, rtt_p50_ns, rtt_p90_ns, rtt_p99_ns, rtt_p99_9_ns, rtt_p99_99_ns: round-trip time; a percentile with
            too few requests beyond it, or among those without an answer, is null; the mean is of the answers.
        rtt_max_ns: slowest answer; with ``rtt_lost`` the maximum is not known.
        rtt_samples, rtt_lost: answers, and due requests without one (``lost + refused + not_offered``).
        rtt_first_p50_ns, rtt_first_p99_ns, rtt_first_samples: the same of the first request of each burst.
        pdv_p50_ns, pdv_p90_ns, pdv_p99_ns, pdv_p99_9_ns, pdv_p99_99_ns, pdv_max_ns: packet delay variation.
        floor_p50_ns, floor_p90_ns, floor_p99_ns, floor_samples: round-trip time of the reference link, or null.
    """

    MAIN = "rtt_p50_ns"
    DIMENSION = "latency"
    LESS_IS_BETTER = True
    TITLE = "median RTT"
    NOUN = "median round trip"
    PLURAL = "delays"
    LEAD = "Least delay"
    ENDS = ("client", "server")
    SAYS_METRIC = False
    HAS_LIMIT = False

    kind: Literal["latency"] = "latency"
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

    @property
    def main_unit(self) -> tuple[str, float]:
        return "µs", 1e-3

    @property
    def tail(self) -> Estimate | None:
        return self.rtt_p99_ns

    @classmethod
    def of_launch(cls, launch: Launch) -> float | None:
        return None if launch.rtt is None else launch.rtt.percentile(0.5)

    @classmethod
    def value_of_launch(cls, launch: Launch, name: str) -> float | None:
        if launch.rtt is None:
            return None
        return launch.rtt.mean if name == "rtt_mean_ns" else launch.rtt.percentile(cls.percentiles("rtt")[name])

    @classmethod
    def percentiles(cls, stem: str) -> dict[str, float]:
        """Returns its percentiles of a time (``rtt``, ``rtt_first``, ``pdv``, ``floor``): their shares by field."""
        shares = {time_field(stem, name): share for name, share in PERCENTILES.items()}
        return {name: share for name, share in shares.items() if hasattr(cls, name)}

    def is_capability(self, metric: str) -> bool:  # noqa: ARG002
        return True

    def without_floor(self) -> Self:
        return replace(self, floor_p50_ns=None, floor_p90_ns=None, floor_p99_ns=None, floor_samples=0)

    def has_control(self, metric: str) -> bool:  # noqa: ARG002
        return True

    def at_level(self, main: Estimate, gbps_per_pps: float, launches: Sequence[Launch]) -> Self:  # noqa: ARG002
        samples = merge([launch.rtt for launch in launches if launch.rtt is not None])
        tail = None if samples is None else samples.percentile(0.99)
        times = [item.name for item in fields(self) if item.name.startswith(("rtt_", "pdv_")) and item.default is None]
        known = {"rtt_p50_ns": main, "rtt_p99_ns": None if tail is None else Estimate(float(tail))}
        changed: dict[str, Any] = dict.fromkeys((*times, "throughput_gbps")) | known
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class Application(Figures):
    """The figures of an application's own client.

    Attributes:
        operations_per_second, operations: answered requests, or megabits of a stream, over all pairs.
        goodput_gbps: payload of a stream; null for requests.
        fairness: greatest pair over least.
        response_mean_ns, response_p50_ns, response_p90_ns, response_p99_ns, response_p99_9_ns: response times:
            launches' median, slowest pair.
        rtt_lost: requests of an open loop that were due and have no answer.
        client_cpu_ns_per_operation, server_cpu_ns_per_operation, client_cycles_per_operation,
            server_cycles_per_operation, softirq_ns_per_operation: CPU time, and cycles, of an operation.
    """

    MAIN = "operations_per_second"
    DIMENSION = "application"
    ENDS = ("client", "server")

    kind: Literal["application"] = "application"
    operations_per_second: Estimate | None = None
    operations: float | None = None
    goodput_gbps: Estimate | None = None
    fairness: float | None = None
    response_mean_ns: Estimate | None = None
    response_p50_ns: Estimate | None = None
    response_p90_ns: Estimate | None = None
    response_p99_ns: Estimate | None = None
    response_p99_9_ns: Estimate | None = None
    rtt_lost: int = 0
    client_cpu_ns_per_operation: Estimate | None = None
    server_cpu_ns_per_operation: Estimate | None = None
    client_cycles_per_operation: Estimate | None = None
    server_cycles_per_operation: Estimate | None = None
    softirq_ns_per_operation: Estimate | None = None

    @property
    def main_unit(self) -> tuple[str, float]:
        return ("operations/s", 1.0) if self.goodput_gbps is None else ("Gbit/s", 1e-3)

    @property
    def tail(self) -> Estimate | None:
        return self.response_p99_ns

    @classmethod
    def of_launch(cls, launch: Launch) -> float | None:
        return None if launch.application is None else launch.application.operations_per_second

    @classmethod
    def value_of_launch(cls, launch: Launch, name: str) -> float | None:
        return None if launch.application is None else of_application(launch.application, name)

    def at_level(self, main: Estimate, gbps_per_pps: float, launches: Sequence[Launch]) -> Self:  # noqa: ARG002
        return replace(self, operations_per_second=main, response_p99_ns=None)


@dataclass(frozen=True, slots=True)
class Startup(Figures):
    """The figures of containers that are created one after the other.

    Attributes:
        startup_ns: median time to create a container.
        startup_growth: median of the last tenth over that of the first.
        startup_memory_bytes, startup_cpu_share: cost of an idle container.
        startup_first_p50_ns: median first round trip of the clients that called for the containers; null without any.
        startups: the containers in the order of their creation.
    """

    MAIN = "startup_ns"
    DIMENSION = "startup"
    LESS_IS_BETTER = True
    TITLE = "time to create a container"
    NOUN = "time"
    PLURAL = "times"

    kind: Literal["startup"] = "startup"
    startup_ns: Estimate | None = None
    startup_growth: float | None = None
    startup_memory_bytes: float | None = None
    startup_cpu_share: float | None = None
    startup_first_p50_ns: Estimate | None = None
    startups: Startups | None = None

    def is_capability(self, metric: str) -> bool:  # noqa: ARG002
        return False

    @property
    def main_unit(self) -> tuple[str, float]:
        return "ms", 1e-6


_NONE: dict[type[Figures], Figures] = {}


def none_of(kind: type[F]) -> F:
    """Returns the figures of a type without any value: those of a measurement of another kind."""
    if kind not in _NONE:
        _NONE[kind] = kind()
    return _NONE[kind]  # type: ignore[return-value]


#: The figures of a measurement; files tell the types apart by ``kind``.
AnyFigures = Throughput | Search | Latency | Application | Startup
#: All types of figures.
KINDS: tuple[type[Figures], ...] = get_args(AnyFigures)
#: The types by their name in files.
BY_KIND: Mapping[str, type[Figures]] = types.MappingProxyType({none_of(kind).kind: kind for kind in KINDS})
#: The figure by which results of each dimension are compared.
MAIN_FIGURES: Mapping[str, str] = types.MappingProxyType({kind.DIMENSION: kind.MAIN for kind in KINDS})


def types_of(kind: type) -> Mapping[str, Any]:
    """Returns the types of a record's fields by name."""
    hints = get_type_hints(kind)
    return types.MappingProxyType({item.name: hints[item.name] for item in fields(kind)})


#: Figures of all kinds by name, with their types.
FIGURES: Mapping[str, Any] = types.MappingProxyType(
    {name: hint for kind in KINDS for name, hint in types_of(kind).items() if name != "kind"}
)
