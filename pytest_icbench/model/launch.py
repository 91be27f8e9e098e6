# SPDX-License-Identifier: BSD-3-Clause
"""The measurement of one launch: windows, counters of pairs, rates and round-trip times. Facts only, pure.

None stands for a value that does not exist, as in ``pytest_icbench.model.measurement``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_icbench.model.application import ApplicationLaunch
from pytest_icbench.model.function_facts import ChainAccount
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.path import Direction
from pytest_icbench.stats.quantiles import Histogram


@dataclass(frozen=True, slots=True)
class Window:
    """The counters of one pair in one interval, matched between the two ends by the number that the frames carry.

    A frame belongs to the window in which it was *scheduled*, whenever it arrives. A client counts as a sender, a
    server as a receiver.

    Attributes:
        pair, number: windows count from 1; 0 is warm-up and not listed.
        direction: where both ends send at once ``ab`` for frames of side a, ``ba`` for those of side b; else null.
        start_ns, duration_ns: CLOCK_MONOTONIC; the duration is nominal unless the launch was cut short.
        scheduled, sent, refused, not_offered, tx_full: the sender's; ``tx_full`` counts calls that its port refused.
        received, received_bytes, duplicated, reordered, polls, empty_polls: the receiver's, of the frames scheduled in
            this window.
        first_ns, last_ns: when the first and the last of them arrived, CLOCK_MONOTONIC, or null.
        lateness_p99_ns, lateness_max_ns: how late the sender was against its schedule.
        catch_up_max: largest burst with which it caught up, in frames.
        bursts, full_turns, sender_busy_cycles, sender_idle_cycles, receiver_busy_cycles, receiver_idle_cycles: as in a
            pair of a launch.
        sender_gap_s, sender_gaps, receiver_gap_s, receiver_gaps: gaps of the polling loops that began in this window,
            and can be longer; null with blocking sockets, and in older results.
        rtt_samples, rtt_min_ns, rtt_p50_ns, rtt_p99_ns, rtt_max_ns: round-trip times of this window's frames, to two
            digits; ``rtt_p50_ns`` is null below 20 requests, ``rtt_p99_ns`` below 1000, both where they lie among
            requests without an answer.
        sender_cpu_ns, receiver_cpu_ns: CPU time of all threads of either end, or null; an end that also receives counts
            as a sender.
        involuntary_switches: of both workloads.
        steal_ns: time the hypervisor took from the pair's CPUs.
        kept: false for a discarded window.
        disturbed: whether the host took time from an endpoint (over 2 % by steal, or by involuntary switches in a
            dedicated placement), or others disturbed the launch.
        acl_drops: of ``sent``, frames of flows that the function in the path denies, and that must not arrive.
    """

    pair: int
    number: int
    start_ns: int
    duration_ns: int
    scheduled: int
    sent: int
    refused: int
    received: int
    received_bytes: int
    duplicated: int
    reordered: int
    not_offered: int
    tx_full: int
    polls: int
    empty_polls: int
    catch_up_max: int
    lateness_p99_ns: int
    lateness_max_ns: int
    involuntary_switches: int
    first_ns: int | None = None
    last_ns: int | None = None
    steal_ns: int = 0
    kept: bool = True
    disturbed: bool = False
    bursts: int = 0
    full_turns: int = 0
    rtt_samples: int = 0
    rtt_min_ns: int | None = None
    rtt_p50_ns: int | None = None
    rtt_p99_ns: int | None = None
    rtt_max_ns: int | None = None
    sender_busy_cycles: int | None = None
    sender_idle_cycles: int | None = None
    receiver_busy_cycles: int | None = None
    receiver_idle_cycles: int | None = None
    sender_gap_s: float | None = None
    sender_gaps: int | None = None
    receiver_gap_s: float | None = None
    receiver_gaps: int | None = None
    direction: Direction | None = None
    acl_drops: int = 0
    sender_cpu_ns: int | None = None
    receiver_cpu_ns: int | None = None

    @property
    def account(self) -> tuple[int, Direction | None]:
        """The pair and the direction that it counts."""
        return self.pair, self.direction

    @property
    def lost(self) -> int:
        """The frames of this window that had not arrived when the drain was over."""
        return self.sent - self.handled

    @property
    def handled(self) -> int:
        """The frames that came, or were rightly denied on the way."""
        return self.received + self.acl_drops

    @property
    def throughput_pps(self) -> float:
        return self.received * 1e9 / self.duration_ns


@dataclass(frozen=True, slots=True)
class PairCounts:
    """The counters of one pair, in one direction, over the kept windows of one launch.

    Attributes:
        pair: 1, 2, ….
        direction: as in a window.
        scheduled, sent, refused, received, lost, acl_drops, duplicated, reordered: as in a result, over the measured
            windows.
        not_offered: frames held back by the cap on catching up, or too late to be sent.
        tx_full: calls that the sender's port refused.
        late, foreign, corrupted: over the whole launch, since such a frame belongs to no window.
        polls, empty_polls: of the receiver.
        bursts: hand-overs of which the sender's port took at least a frame.
        full_turns: turns of 128 frames in which the sender's port refused any.
        lossy_flows, worst_flows: flows that lost frames in the whole launch, and up to 16 that lost most, each as
            [flow, frames]; null and empty for a single flow.
        sent_by_queue, received_by_queue: frames of the whole launch, warm-up and copies too, by the sender's and the
            receiver's queue; empty for one queue.
        received_bytes: bytes of all frames received, copies too, with FCS; 0 in older results.
        sender_busy_cycles, sender_idle_cycles, receiver_busy_cycles, receiver_idle_cycles: TSC cycles of the polling
            loops, with frames and without; null with blocking sockets.
        sender_cpu_ns, receiver_cpu_ns: as in a window.
        throughput_pps, offered_pps: of this pair.
    """

    pair: int
    scheduled: int
    sent: int
    refused: int
    not_offered: int
    tx_full: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    late: int
    foreign: int
    corrupted: int
    polls: int
    empty_polls: int
    throughput_pps: float
    offered_pps: float
    bursts: int = 0
    full_turns: int = 0
    sender_busy_cycles: int | None = None
    sender_idle_cycles: int | None = None
    receiver_busy_cycles: int | None = None
    receiver_idle_cycles: int | None = None
    received_bytes: int = 0
    acl_drops: int = 0
    lossy_flows: int | None = None
    worst_flows: tuple[tuple[int, int], ...] = ()
    sent_by_queue: tuple[int, ...] = ()
    received_by_queue: tuple[int, ...] = ()
    direction: Direction | None = None
    sender_cpu_ns: int | None = None
    receiver_cpu_ns: int | None = None

    @property
    def account(self) -> tuple[int, Direction | None]:
        """The pair and the direction that it counts."""
        return self.pair, self.direction

    @property
    def unanswered(self) -> int:
        """The requests that were due and have no answer: lost on the way, refused, or never sent in time."""
        return self.lost + self.refused + self.not_offered

    @property
    def handled(self) -> int:
        """The frames that came, or were rightly denied on the way."""
        return self.received + self.acl_drops


@dataclass(frozen=True, slots=True)
class PairResult:
    """The figures of one pair, in one direction, over all launches.

    Attributes:
        pair: 1, 2, ….
        direction: as in a window.
        throughput_pps, offered_pps: median over launches.
        scheduled, sent, refused, received, lost, acl_drops: totals over launches.
    """

    pair: int
    throughput_pps: float
    offered_pps: float
    scheduled: int
    sent: int
    refused: int
    received: int
    lost: int
    direction: Direction | None = None
    acl_drops: int = 0


@dataclass(frozen=True, slots=True)
class DirectionResult:
    """The figures of one direction over all pairs and launches.

    Attributes:
        direction: ``ab`` for frames that sides a send, ``ba`` for those of sides b.
        throughput_pps, offered_pps: median over launches.
        scheduled, sent, refused, received, lost, acl_drops: totals over launches.
    """

    direction: Direction
    throughput_pps: float
    offered_pps: float
    scheduled: int
    sent: int
    refused: int
    received: int
    lost: int
    acl_drops: int = 0


@dataclass(frozen=True, slots=True)
class EndpointWork:
    """How evenly one process of a launch had its CPU.

    Attributes:
        index: 0 and 1 are sides a and b of pair 1, 2 and 3 those of pair 2, ….
        gap_s, gaps: time and number of the polling loop's gaps over the measured windows; null with blocking sockets.
    """

    index: int
    gap_s: float | None = None
    gaps: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """The switch's own counters at the port of one endpoint, over whole launches with warm-up and control frames.

    Attributes:
        index: of the endpoint at the port.
        rx_packets, rx_dropped: frames taken from the endpoint, and those lost on the way in; null where not reported.
        tx_packets, tx_dropped: frames given to the endpoint, and those that did not fit into its ring; null where not
            reported.
    """

    index: int
    rx_packets: int | None = None
    tx_packets: int | None = None
    rx_dropped: int | None = None
    tx_dropped: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of the workload processes of all pairs.

    Attributes:
        index: 0, 1, … in their order; the reference's are counted separately.
        started_at: when window 0 began, in seconds since the epoch.
        duration_s: length of the measured windows together, for one pair.
        overhead_s: what the launch took beyond warm-up, windows and drain.
        throughput_pps, offered_pps: total over pairs.
        rtt, rtt_actual, rtt_first: histograms from the intended and from the actual send time, and of the first frames
            of bursts, or null: ``counts`` (pairs of a bucket's highest value in ns and its number), ``minimum``,
            ``maximum``, ``mean``, ``significant_digits``, ``lost``.
        pdv: histogram of delay variation where there are several pairs, else null.
        busy_share: busy share of the switch's workers, 0 to 1, or null.
        cycles_per_packet, vectors_per_call, frames_by_core: of the switch, or null.
        wakeups_per_s: how often workers of the switch that sleep were woken; null for those that poll, or not known.
        hardware, switch_counters, chains, generator_bound: as in a result.
        tsc_hz: cycles per second.
        endpoints: list, how evenly each process had its CPU; empty in older results.
        steal_share: share of the endpoints' CPU time that the hypervisor took.
        invalid, evidence: reason of INVALID and its figures, or null.
        discarded_s: length of the windows before the rate was stationary.
        interference: what other processes took, or null: ``cpus`` that measured, ``seconds`` watched, ``taken`` (their
            time on these CPUs, in CPUs), ``stolen`` (by the hypervisor, in CPUs), ``waited`` and ``waited_by`` (the
            polling thread that waited longest for its CPU, as a share of the time), ``takers`` (``name`` and ``share``
            of the processes that took most), ``missing`` (what this host does not report), ``throttled`` (control
            groups that
            used up their CPU quotas: ``group``, ``cpus``, ``throttled`` of ``periods``).
        disturbed: what disturbed the launch, in words, or null.
        round: number of its rigs, from 0, where a case has several one after the other; else null.
        application: of an application, else null: ``seconds`` of the run, ``softirq_ns``, and ``runs``, one a pair:
            ``pair``, ``unit`` (``requests`` or ``megabits``), ``client`` (its own ``operations``, ``seconds``,
            ``errors``, ``payload_bytes``, ``retransmits``, ``mean_ns``, ``p50_ns``, ``p90_ns``, ``p99_ns``,
            ``p99_9_ns``, ``max_ns``, ``unanswered``, ``cpu_ns``), ``open_loop``, ``server_operations``,
            ``client_cpu_ns``, ``server_cpu_ns``, ``received_bytes`` and ``received_frames`` at the server's interface,
            and ``proofs`` in words. Rates of frames are then 0, without pairs and windows.
        repeated: ``case`` or ``reference``: whose launch this was, if it is in no value of its case: disturbed and
            repeated, or in another state of the host; else null.
        stationary: whether rate or median round trip became stationary; null if nothing waited for it, or too few
            windows have a median.
        distances_ns: list, times of a cache line between the CPUs that pass frames to each other, there and back, in
            ns: before the launch and after it, each the geometric mean over the pairs of CPUs; empty where not known.
        distance_ns: geometric mean of these, or null.
        work_ns: time of a fixed piece of independent instructions on these CPUs, in ns, as the geometric mean over CPUs
            and readings, or null: a busy sibling hyperthread makes it longer.
        pairs: list, the counters of each pair, one for each direction.
        windows: empty in ``results.jsonl``; lines of their own in the raw file.
    """

    index: int
    started_at: float
    duration_s: float
    overhead_s: float
    throughput_pps: float
    offered_pps: float
    steal_share: float
    generator_bound: bool
    pairs: tuple[PairCounts, ...]
    rtt: Histogram | None = None
    rtt_actual: Histogram | None = None
    rtt_first: Histogram | None = None
    pdv: Histogram | None = None
    busy_share: float | None = None
    cycles_per_packet: float | None = None
    hardware: dict[str, Any] = field(default_factory=dict)
    vectors_per_call: float | None = None
    frames_by_core: dict[str, int] | None = None
    wakeups_per_s: float | None = None
    tsc_hz: int | None = None
    endpoints: tuple[EndpointWork, ...] = ()
    invalid: str | None = None
    evidence: str | None = None
    windows: tuple[Window, ...] = ()
    discarded_s: float = 0.0
    stationary: bool | None = None
    switch_counters: tuple[SwitchPort, ...] | None = None
    chains: tuple[ChainAccount, ...] | None = None
    interference: Interference | None = None
    disturbed: str | None = None
    repeated: str | None = None
    round: int | None = None
    application: ApplicationLaunch | None = None
    distances_ns: tuple[float, ...] = ()
    distance_ns: float | None = None
    work_ns: float | None = None

    def total(self, counter: str) -> int:
        """Returns the sum of a counter of ``PairCounts`` over the pairs."""
        return sum(int(getattr(pair, counter)) for pair in self.pairs)

    def total_known(self, counter: str) -> int | None:
        """Returns the sum of a counter that a pair may lack; None if one does."""
        values = [getattr(pair, counter) for pair in self.pairs]
        return None if not values or None in values else sum(values)
