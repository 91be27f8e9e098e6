# SPDX-License-Identifier: BSD-3-Clause
"""Finds what limited a rate: endpoint, switch, ring, host, link, or unknown. Pure.

A bottleneck needs an indicator; without one it is ``unknown``. The indicators, in the order of their weight:

* the speed of the cable between two hosts (``link``),
* the hypervisor's share of the endpoints' CPUs (``host``),
* the switch's own busy share, if it is known (``switch`` from 95 %; below, it had time left),
* the sender's port: where it refused frames in most turns, the ring behind it was full,
* the receiver's polls, by number and by cycles. A receiver that never finds its ring empty, or has no time left, cannot
  take more (``endpoint``). One that often finds it empty, while frames are lost on the way to it, was overrun in bursts
  (``ring``),
* the sender's cycles, if there is no other indicator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.stats.quantiles import median

#: Busy share of the workers' cycles from which on the switch is the limit.
BUSY_SHARE = 0.95
#: Stolen share of the endpoints' time above which the machine is the limit.
STEAL_SHARE = 0.05
#: Share of the speed of the link between two hosts, with preambles and gaps, from which on the cable is the limit.
LINE_RATE_SHARE = 0.99
#: Share of the frames offered up to which a loss does not count, neither behind the sender's port nor at it.
NEGLIGIBLE_LOSS = 0.001
#: Frames of a turn, as the workload counts them (``SENDER_TURN``).
TURN_FRAMES = 128
#: Share of a sender's turns from which on its port was full. In bursts of 1, 32 and 256 a forwarder that costs 1,000
#: cycles a frame has 0.50 to 0.93, 0.94 to 0.99 and 0.99; one that costs nothing 0.05 to 0.07, 0.03 to 0.13 and 0.31 to
#: 0.68 (4 launches each). Refused calls tell nothing: 17 to 24, 90 and 81 %, and 11 to 20, 17 to 33 and 80 to 93 %.
FULL_SHARE = 0.5
#: Share of empty polls below which a receiver is always busy.
ALWAYS_BUSY_EMPTY_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The limit of a rate, with its evidence, and whether the rate is only a lower bound of the switch's."""

    limit: str
    evidence: str
    lower_bound: bool = False


@dataclass(frozen=True, slots=True)
class LoadIndicators:
    """The indicators over the launches of a case: shares from 0 to 1, None where they are not counted.

    ``refusing_share`` is of the sender's turns, ``dropped_share`` of the frames that a paced sender never got rid of.
    """

    steal_share: float
    busy_share: float | None
    refusing_share: float
    loss_share: float
    empty_share: float | None
    sender_busy_share: float | None = None
    receiver_busy_share: float | None = None
    #: The share of the launch with most steal; ``steal_share`` is that of all launches' time.
    most_steal_share: float = 0.0
    #: Share of what the link between two hosts can carry that arrived; None on one host.
    line_share: float | None = None
    dropped_share: float = 0.0

    @property
    def refusing(self) -> bool:
        """Whether the ring behind the sender's port was full."""
        return self.refusing_share >= FULL_SHARE or self.dropped_share > NEGLIGIBLE_LOSS

    @classmethod
    def of(cls, launches: Sequence[Launch], line_pps: float | None = None) -> LoadIndicators:
        """Returns the indicators of launches.

        ``line_pps``: frames of the case's size per second that the link between two hosts carries; None on one host.
        """
        scheduled = sum(launch.total("scheduled") for launch in launches)
        sent = sum(launch.total("sent") for launch in launches)
        polls = sum(launch.total("polls") for launch in launches)
        busy = [launch.busy_share for launch in launches if launch.busy_share is not None]
        return cls(
            steal_share=_over_time(launches),
            most_steal_share=max((launch.steal_share for launch in launches), default=0.0),
            busy_share=sum(busy) / len(busy) if busy else None,
            refusing_share=_refusing_share(launches),
            dropped_share=sum(launch.total("refused") for launch in launches) / scheduled if scheduled else 0.0,
            loss_share=sum(launch.total("lost") for launch in launches) / sent if sent else 0.0,
            empty_share=sum(launch.total("empty_polls") for launch in launches) / polls if polls else None,
            line_share=median([launch.throughput_pps for launch in launches]) / line_pps
            if line_pps and launches
            else None,
            **{f"{role}_busy_share": role_busy_share(launches, role) for role in ("sender", "receiver")},
        )


def with_full_table(measurement: Measurement) -> Measurement:
    """Returns a measurement without another limit if a function's full table took most of its lost frames."""
    if (full := sum(work.table_full or 0 for work in measurement.functions or ())) == 0:
        return measurement
    lost = measurement.frames.lost or 0
    if full < lost / 2:
        return measurement
    evidence = f"{full:,} frames found no room in a function's connection table"
    return replace(measurement, bottleneck="unknown", bottleneck_evidence=evidence, lower_bound=False)


def _refusing_share(launches: Sequence[Launch]) -> float:
    """Returns the share of the turns in which the senders' ports refused frames.

    A turn is 128 frames, whatever the burst: calls are refused the more often the fewer of them fill the ring, and the
    quicker a sender is that polls a full one.
    """
    turns = sum(launch.total("scheduled") for launch in launches) / TURN_FRAMES
    # Older results have calls alone.
    full = sum(launch.total("full_turns") or launch.total("tx_full") for launch in launches)
    return full / max(turns, full) if full else 0.0


def _over_time(launches: Sequence[Launch]) -> float:
    """Returns the stolen share of all launches' measured time."""
    seconds = sum(launch.duration_s for launch in launches)
    return sum(launch.steal_share * launch.duration_s for launch in launches) / seconds if seconds else 0.0


def role_busy_share(launches: Sequence[Launch], role: str) -> float | None:
    """Returns the busy share of all ``sender`` or ``receiver`` loops; None unless every launch counted cycles."""
    busy = [launch.total_known(f"{role}_busy_cycles") for launch in launches]
    idle = [launch.total_known(f"{role}_idle_cycles") for launch in launches]
    known = [cycles for cycles in (*busy, *idle) if cycles is not None]
    if len(known) < 2 * len(launches) or not sum(known):
        return None
    return sum(cycles for cycles in busy if cycles is not None) / sum(known)


def find_bottleneck(
    indicators: LoadIndicators, *, maximum: bool, switched: bool, kernel: bool, shared: bool
) -> Bottleneck:
    """Returns the limit of a rate.

    Args:
        maximum: whether senders offered all they could, because the rate asked for that or for more.
        switched: whether there is a switch between the endpoints, and not a reference link.
        kernel: whether frames cross the kernel, whose work runs in the sender's own context.
        shared: whether endpoints share CPUs.
    """
    idle = indicators.busy_share is not None and indicators.busy_share < BUSY_SHARE
    refusing, losing = indicators.refusing, indicators.loss_share > NEGLIGIBLE_LOSS
    if not maximum and not refusing and not losing:
        return Bottleneck("unknown", "everything offered arrived, so nothing was at its limit", idle)
    if indicators.line_share is not None and indicators.line_share >= LINE_RATE_SHARE:
        return Bottleneck("link", f"{_percent(indicators.line_share)} of what the cable carries arrived", True)
    if indicators.steal_share > STEAL_SHARE:
        most = f", {_percent(indicators.most_steal_share)} in one launch" if indicators.most_steal_share else ""
        return Bottleneck("host", f"{_percent(indicators.steal_share)} of the endpoints' time was stolen{most}", True)
    if indicators.busy_share is not None and not idle:
        return Bottleneck("switch", f"its workers were busy {_percent(indicators.busy_share)} of the time")
    bottleneck = _by_ends(indicators, refusing, losing, switched, kernel, shared)
    if idle and indicators.busy_share is not None:
        evidence = (
            f"{bottleneck.evidence}; the switch's workers were busy only {_percent(indicators.busy_share)} of the time"
        )
        return Bottleneck(bottleneck.limit, evidence, True)
    return bottleneck


def _by_ends(
    indicators: LoadIndicators, refusing: bool, losing: bool, switched: bool, kernel: bool, shared: bool
) -> Bottleneck:
    """Returns the limit by the sender's refusals and the receiver's polls; the switch is unknown, or had time left.

    A switch between endpoints that could do no more may be faster than its rate. The kernel's work is the exception: it
    runs in the sender's own context, so the sender's limit is the path's.
    """
    empty, lost = indicators.empty_share, _percent(indicators.loss_share)
    by_polls = empty is not None and empty < ALWAYS_BUSY_EMPTY_SHARE
    by_cycles = indicators.receiver_busy_share is not None and indicators.receiver_busy_share >= BUSY_SHARE
    worker_idle = indicators.busy_share is not None
    if by_polls and (losing or refusing):
        evidence = f"the receiver found frames in {_percent(1 - (empty or 0.0))} of its polls"
        return Bottleneck("endpoint", evidence, switched)
    if by_cycles and (losing or refusing):
        spent = _percent(indicators.receiver_busy_share or 0.0)
        return Bottleneck("endpoint", f"the receiver spent {spent} of its cycles on frames", switched)
    # Where frames are both refused and lost, the greater part decides.
    losing = losing and not (refusing and indicators.loss_share < indicators.refusing_share)
    if losing and empty is not None and not kernel:
        return Bottleneck("ring", f"{lost} were lost on the way to a receiver with {_percent(empty)} empty polls")
    if losing:
        return Bottleneck("unknown", f"{lost} were lost, and nobody tells where")
    if refusing and not switched:
        return Bottleneck("endpoint" if not shared else "ring", "the sender found its ring to the receiver full")
    if refusing and worker_idle:
        return Bottleneck("ring", "the sender found its ring full while the switch had time left")
    if refusing:
        return Bottleneck("switch", "the sender found the switch's input ring full, and the receiver waited")
    return _by_sender(indicators, switched, kernel)


def _by_sender(indicators: LoadIndicators, switched: bool, kernel: bool) -> Bottleneck:
    """Returns the sender as the limit: nothing kept it from sending more."""
    share, busy = indicators.refusing_share, indicators.sender_busy_share
    found = f"the sender was refused in {_percent(share)} of its turns" if share else "the sender was never refused"
    spent = "" if busy is None else f" and spent {_percent(busy)} of its cycles on frames"
    if kernel:
        return Bottleneck("endpoint", f"{found}{spent}; the kernel's path runs in its own context")
    return Bottleneck("endpoint", f"{found}{spent}", switched)


def _percent(share: float) -> str:
    return f"{share:.1%}"
