# SPDX-License-Identifier: BSD-3-Clause
"""The measurement of one launch: windows, counters of pairs, rates and round-trip times. Facts only, pure.

None stands for a value that does not exist, as in ``pytest_icbench.model.measurement``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_icbench.model.application import ApplicationLaunch
from pytest_icbench.model.interference import Interference
from pytest_icbench.stats.quantiles import Histogram


@dataclass(frozen=True, slots=True)
class Window:
    """The counters of one pair in one interval, matched between the two ends by the number that the frames carry.

    A frame belongs to the window in which it was *scheduled*, whenever it arrives. ``start_ns``, and the arrivals
    ``first_ns`` and ``last_ns``, are CLOCK_MONOTONIC. The receiver found ``empty_polls`` of its ``polls`` empty. The
    sender's port refused ``tx_full`` calls, and took at least one frame of each of ``bursts`` hand-overs. Cycles are
    those of the polling loops (TSC); a client counts as a sender, and a server as a receiver. ``gaps`` turns of such a
    loop took longer than usual, by ``gap_s`` together: somebody else had the CPU, or the machine below was away. A gap
    belongs to the window in which it began, and can be longer than that. None stands for a loop that does not count.
    ``kept`` is false for a window that the protocol discards. ``disturbed`` is true if the host took time from an
    endpoint: by steal, by involuntary context switches in a dedicated placement, or all through a disturbed launch.
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

    @property
    def lost(self) -> int:
        """The frames of this window that had not arrived when the drain was over."""
        return self.sent - self.received

    @property
    def throughput_pps(self) -> float:
        return self.received * 1e9 / self.duration_ns


@dataclass(frozen=True, slots=True)
class PairCounts:
    """The counters of one pair over the kept windows of one launch.

    ``late``, ``foreign`` and ``corrupted`` are the receiver's over the whole launch, because such a frame belongs to no
    window. ``received_bytes`` are those of all copies, with FCS; 0 where they were not recorded. Cycles are None where
    they are not counted. ``lossy_flows`` lost frames in the whole launch, and ``worst_flows`` are those that lost most,
    each with how many; None and empty for a single flow.
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
    sender_busy_cycles: int | None = None
    sender_idle_cycles: int | None = None
    receiver_busy_cycles: int | None = None
    receiver_idle_cycles: int | None = None
    received_bytes: int = 0
    lossy_flows: int | None = None
    worst_flows: tuple[tuple[int, int], ...] = ()

    @property
    def unanswered(self) -> int:
        """The requests that were due and have no answer: lost on the way, refused, or never sent in time."""
        return self.lost + self.refused + self.not_offered


@dataclass(frozen=True, slots=True)
class EndpointWork:
    """How evenly one process of a launch had its CPU. None stands for what it did not count or do.

    Attributes:
        index: the endpoint.
        gap_s, gaps: turns of its polling loop that took longer than usual, as in ``Window``, over the kept windows.
        canary_before_ns, canary_after_ns: CPU time of a fixed piece of work before the first and after the last window.
            It grows with a slower clock, a busy sibling and caches that others fill, not with a peer on the same CPU.
    """

    index: int
    gap_s: float | None = None
    gaps: int | None = None
    canary_before_ns: int | None = None
    canary_after_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """The switch's own counters at the port of one endpoint, over whole launches with warm-up and control frames.

    ``rx`` came from the endpoint, ``tx`` was given to it, ``dropped`` was lost on the way. None where the switch does
    not count.
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
        index: 0, 1, … in the order in which they ran; launches of the reference count by themselves.
        started_at: seconds since the epoch at which window 0 began.
        duration_s: total length of the kept windows of one pair.
        overhead_s: time that the launch took beyond warm-up, windows and drain.
        throughput_pps: frames received per second, total over pairs.
        offered_pps: frames scheduled per second, total over pairs.
        rtt: round-trip times from the intended send time, all pairs merged; None unless latency was measured.
        rtt_actual: the same from the actual send time.
        rtt_first: the samples of ``rtt`` that were the first of their burst.
        pdv: the samples of ``rtt`` less the least one of their pair; None for a single pair, where it follows from
            ``rtt``.
        busy_share: busy share of the switch's worker cycles, 0 to 1; None where the switch does not report it.
        cycles_per_packet: busy cycles of the switch per frame received.
        tsc_hz: cycles per second.
        endpoints: how evenly each process had its CPU; empty where that was not recorded.
        hardware: hardware events per frame received, by ``switch`` and ``endpoints``; empty where none are counted.
        vectors_per_call: mean number of frames that the switch's workers handled at once; None where it is not counted.
        switch_counters: by port; None for a switch that keeps none.
        steal_share: share of the launch's time that the hypervisor took from the endpoints' CPUs.
        generator_bound: whether the sender itself could not offer the requested rate.
        pairs: the counters of each pair.
        invalid: reason of INVALID, None for a valid launch; ``evidence`` has the figures.
        windows: every measured window of every pair, kept or not; empty when read back without them.
        discarded_s: length of the windows before the measured part, if the launch waited for a stationary rate.
        stationary: whether the rate (or median round trip) became stationary; None if the launch did not wait for it,
            or if it cannot be decided.
        interference: what others took from the CPUs that measured; None where that is not known.
        disturbed: what disturbed the launch, in words; None if nothing did, or if it is not known.
        round: number of its rig among those of its case, from 0, where several were built; None for one rig.
        application: what an application's clients and servers counted; None for frames of the workload. The rates of
            frames are then 0, and there are no pairs and windows.
        repeated: whose launch this was, ``case`` or ``reference``, if it was repeated because it was disturbed.
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
    tsc_hz: int | None = None
    endpoints: tuple[EndpointWork, ...] = ()
    invalid: str | None = None
    evidence: str | None = None
    windows: tuple[Window, ...] = ()
    discarded_s: float = 0.0
    stationary: bool | None = None
    switch_counters: tuple[SwitchPort, ...] | None = None
    interference: Interference | None = None
    disturbed: str | None = None
    repeated: str | None = None
    round: int | None = None
    application: ApplicationLaunch | None = None

    def total(self, counter: str) -> int:
        """Returns the sum of a counter of ``PairCounts`` over the pairs."""
        return sum(int(getattr(pair, counter)) for pair in self.pairs)

    def total_known(self, counter: str) -> int | None:
        """Returns the sum of a counter that a pair may lack; None if one does."""
        values = [getattr(pair, counter) for pair in self.pairs]
        return None if not values or None in values else sum(values)
