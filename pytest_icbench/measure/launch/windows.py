# SPDX-License-Identifier: BSD-3-Clause
"""Turns the lines of a sender and a receiver into matched windows and the counters of a pair. Pure."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_icbench.driver.workload.output import ReceivedCounts, WindowLine
from pytest_icbench.errors import ProvisionError
from pytest_icbench.measure.launch.commands import pair_of
from pytest_icbench.measure.launch.disturbance import STOLEN_LIMIT, StealTrack
from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import encode
from pytest_icbench.model.launch import EndpointWork, PairCounts, Window
from pytest_icbench.model.path import Direction, FramePath
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.quantiles import Histogram, merge

#: The counters of a window of which a pair has the sum; cycles are known of some paths only.
_COUNTED = (
    *("scheduled", "sent", "refused", "not_offered", "tx_full", "received", "lost", "duplicated", "reordered"),
    *("polls", "empty_polls", "bursts", "full_turns", "received_bytes", "acl_drops"),
)
_SIDES = ("sender", "receiver")
_WORK = tuple(f"{side}_{work}" for side, work in product(_SIDES, ("busy_cycles", "idle_cycles", "cpu_ns")))
_NOTHING = ReceivedCounts(
    provisional=False,
    received=0,
    bytes=0,
    duplicated=0,
    reordered=0,
    polls=0,
    empty_polls=0,
    first_ns=None,
    last_ns=None,
)
#: How often the file is synchronized with the disk, in seconds: the most that a crash can cost.
SYNC_S = 5.0


def kept_s(windows: Iterable[Window]) -> float:
    """Returns the seconds measured: of one account, since all are measured at the same time."""
    return (
        sum(window.duration_ns for window in windows if window.kept and window.account in ((1, None), (1, "ab"))) / 1e9
    )


def match_windows(leader: ProcessOutput, follower: ProcessOutput, settings: Settings) -> list[Window]:
    """Returns a Window for each measured window of the leader (sender or client).

    A client receives its own frames back, so its windows are matched with themselves. The server only adds its context
    switches. An end that also receives has one loop, whose cycles, gaps and switches count as its sending side's.
    """
    client = leader.command.application == "client"
    windows = []
    for number, line in sorted(leader.windows.items()):
        if number == 0 or line.sent is None or not line.sent.duration_ns:
            continue
        other = follower.windows.get(number)
        beside = None if follower.leads else other
        windows.append(_window(leader, line, line if client else other, beside, settings))
    return windows


def _window(
    leader: ProcessOutput, line: WindowLine, arrivals: WindowLine | None, other: WindowLine | None, settings: Settings
) -> Window:
    sent = line.sent
    assert sent is not None
    received = arrivals.received if arrivals and arrivals.received else _NOTHING
    return Window(
        pair=leader.pair,
        direction=leader.direction,
        number=line.window,
        start_ns=sent.start_ns,
        duration_ns=sent.duration_ns,
        scheduled=sent.scheduled,
        sent=sent.sent,
        refused=sent.refused,
        received=received.received,
        received_bytes=received.bytes,
        duplicated=received.duplicated,
        reordered=received.reordered,
        not_offered=sent.not_offered,
        tx_full=sent.tx_full,
        polls=received.polls,
        empty_polls=received.empty_polls,
        catch_up_max=sent.catch_up_max,
        lateness_p99_ns=sent.lateness_p99_ns,
        lateness_max_ns=sent.lateness_max_ns,
        involuntary_switches=line.involuntary_switches + (other.involuntary_switches if other else 0),
        first_ns=received.first_ns,
        last_ns=received.last_ns,
        kept=settings.keeps(line.window),
        bursts=sent.bursts,
        full_turns=sent.full_turns,
        acl_drops=sent.acl_drops,
        rtt_samples=line.rtt.count if line.rtt else 0,
        rtt_min_ns=line.rtt.min_ns if line.rtt else None,
        rtt_p50_ns=line.rtt.p50_ns if line.rtt else None,
        rtt_p99_ns=line.rtt.p99_ns if line.rtt else None,
        rtt_max_ns=line.rtt.max_ns if line.rtt else None,
        sender_busy_cycles=line.busy_cycles,
        sender_idle_cycles=line.idle_cycles,
        receiver_busy_cycles=other.busy_cycles if other else None,
        receiver_idle_cycles=other.idle_cycles if other else None,
        sender_gap_s=_seconds(line.gap_ns),
        sender_gaps=line.gap_count,
        receiver_gap_s=_seconds(other.gap_ns) if other else None,
        receiver_gaps=other.gap_count if other else None,
        sender_cpu_ns=line.cpu_ns,
        receiver_cpu_ns=other.cpu_ns if other else None,
    )


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def endpoint_work(output: ProcessOutput, windows: Sequence[Window]) -> EndpointWork:
    """Returns how evenly a process had its CPU over the kept ones of these windows of its pair."""
    side = "sender" if output.leads else "receiver"
    kept = [window for window in windows if window.kept]
    times = [getattr(window, f"{side}_gap_s") for window in kept]
    numbers = [getattr(window, f"{side}_gaps") for window in kept]
    known = bool(kept) and None not in times and None not in numbers
    return EndpointWork(index=output.index, gap_s=sum(times) if known else None, gaps=sum(numbers) if known else None)


def by_one_clock(windows: Iterable[Window], case: Case, away: Collection[int]) -> list[Window]:
    """Returns the windows without times of arrival if sender and receiver are on two hosts, which have two clocks.

    A client has its own frames back, so its times are its sender's. Lengths and counts need no common clock.
    """
    if case.round_trips:
        return list(windows)
    path = case.path
    split = {path.pair(index) for index in away if path.peer(index) not in away}
    return [replace(window, first_ns=None, last_ns=None) if window.pair in split else window for window in windows]


def mark_disturbed(
    windows: Iterable[Window], track: StealTrack, cpus: Sequence[int], *, dedicated: bool, throughout: bool = False
) -> list[Window]:
    """Returns the windows with the time stolen from the pair's two CPUs, marked where the host interfered.

    Stolen time counts from the share that disturbs a launch. Involuntary context switches count only in a
    ``dedicated`` placement: endpoints that share a CPU are switched by design. Every window of a launch that was
    disturbed ``throughout`` is marked.
    """
    marked = []
    path = FramePath.over(cpus)
    for window in windows:
        pair_cpus = {cpus[index] for index in path.ends(window.pair)}
        stolen = sum(track.between(cpu, window.start_ns, window.start_ns + window.duration_ns) for cpu in pair_cpus)
        much = stolen > STOLEN_LIMIT * len(pair_cpus) * window.duration_ns
        disturbed = throughout or much or (dedicated and window.involuntary_switches > 0)
        marked.append(replace(window, steal_ns=stolen, disturbed=disturbed))
    return marked


def count_pair(leader: ProcessOutput, follower: ProcessOutput, windows: Sequence[Window]) -> PairCounts:
    """Returns totals over the kept windows; ``late foreign corrupted`` are from the receiver's summary."""
    receiver = leader if leader.command.application == "client" else follower
    totals = receiver.summary.received if receiver.summary else None
    counts = count_windows(
        leader.pair,
        leader.direction,
        windows,
        late=totals.late if totals else 0,
        foreign=totals.foreign if totals else 0,
        corrupted=totals.corrupted if totals else 0,
    )
    if totals is None:
        return counts
    return replace(
        counts,
        lossy_flows=totals.lossy_flows,
        worst_flows=totals.worst_flows,
        sent_by_queue=leader.summary.sent.sent_by_queue if leader.summary and leader.summary.sent else (),
        received_by_queue=totals.received_by_queue,
    )


def count_windows(
    pair: int,
    direction: Direction | None,
    windows: Sequence[Window],
    *,
    late: int = 0,
    foreign: int = 0,
    corrupted: int = 0,
) -> PairCounts:
    """Returns totals over the kept windows; ``late foreign corrupted`` are the receiver's over the whole launch."""
    kept = [window for window in windows if window.kept]
    seconds = sum(window.duration_ns for window in kept) / 1e9

    def total(name: str) -> int:
        return sum(int(getattr(window, name)) for window in kept)

    def total_known(name: str) -> int | None:
        values = [getattr(window, name) for window in kept]
        return None if not values or None in values else sum(values)

    totals: dict[str, Any] = {**{name: total(name) for name in _COUNTED}, **{name: total_known(name) for name in _WORK}}
    return PairCounts(
        pair=pair,
        direction=direction,
        late=late,
        foreign=foreign,
        corrupted=corrupted,
        throughput_pps=totals["received"] / seconds if seconds else 0.0,
        offered_pps=totals["scheduled"] / seconds if seconds else 0.0,
        **totals,
    )


class RoundTrips(NamedTuple):
    """The histograms of a launch as in ``Launch``; None where no pair has samples."""

    rtt: Histogram | None
    rtt_actual: Histogram | None
    rtt_first: Histogram | None
    pdv: Histogram | None


def round_trips(
    couples: Sequence[tuple[ProcessOutput, ProcessOutput]], pairs: Sequence[PairCounts], burst: int
) -> RoundTrips:
    """Returns the round trips of all pairs.

    Args:
        couples: client and server of each pair.
        burst: requests of a burst.
    """
    trips = _samples(couples, pairs, burst, "rtt")
    actual = _samples(couples, pairs, burst, "rtt_actual")
    first = _samples(couples, pairs, burst, "rtt_first")
    return RoundTrips(merge(trips), merge(actual), merge(first), delay_variation(trips))


def _samples(
    couples: Sequence[tuple[ProcessOutput, ProcessOutput]],
    pairs: Sequence[PairCounts],
    burst: int,
    name: Literal["rtt", "rtt_actual", "rtt_first"],
) -> list[Histogram]:
    """Returns the pairs' samples. Requests without an answer are counted from the windows, without the warm-up.

    A request that was due and never left is as slow as a lost one: who waits for its answer waits as long. From the
    actual send time only those count that left.
    """
    histograms = []
    for (client, _), counts in zip(couples, pairs, strict=True):
        histogram: Histogram | None = getattr(client.summary, name) if client.summary else None
        if histogram is not None:
            unsent = counts.unanswered - counts.lost
            lost = {
                "rtt": counts.unanswered,
                "rtt_actual": counts.lost,
                "rtt_first": max(counts.bursts - histogram.count, 0) + math.ceil(unsent / burst),
            }
            histograms.append(replace(histogram, lost=lost[name]))
    return histograms


def delay_variation(by_pair: Sequence[Histogram]) -> Histogram | None:
    """Returns the delay variation of all pairs, each a stream by itself (RFC 5481); None for one pair."""
    return merge(histogram.less_minimum() for histogram in by_pair) if len(by_pair) > 1 else None


class WindowStream:
    """Writes each window as one JSON line as soon as both ends have written theirs.

    A line has ``pair number start_ns duration_ns scheduled sent refused received lost``, and a client's ``rtt``.
    ``received`` counts frames until those of the next window began to arrive: the final count can be greater. Raises
    ProvisionError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: dict[tuple[int, int], WindowLine] = {}
        self._written: dict[int, int] = {}
        self._synced = time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> ProvisionError:
        return ProvisionError(f"{self._path} cannot be written ({error.strerror}): make room or name other reports")

    def take(self, lines: Iterable[WindowLine]) -> None:
        """Takes new windows; skips those written already, and those of servers."""
        try:
            for line in lines:
                if line.role == "server" or line.window <= self._written.get(line.stream, 0):
                    continue
                other = None if line.role == "client" else self._pending.pop((line.stream, line.window), None)
                if line.role == "client":
                    self._write(line, line)
                elif other is None:
                    self._pending[line.stream, line.window] = line
                else:
                    self._write(*((line, other) if line.role == "sender" else (other, line)))
            if time.monotonic() - self._synced >= SYNC_S:
                self._sync()
        except OSError as error:
            raise self._error(error) from None

    def _write(self, leader: WindowLine, receiver: WindowLine) -> None:
        sent, received = leader.sent, receiver.received
        if sent is None or received is None:
            return
        self._written[leader.stream] = leader.window
        for key in [key for key in self._pending if key[0] == leader.stream and key[1] < leader.window]:
            del self._pending[key]
        data: dict[str, Any] = {
            "pair": pair_of(leader.stream),
            "number": leader.window,
            "start_ns": sent.start_ns,
            "duration_ns": sent.duration_ns,
            "scheduled": sent.scheduled,
            "sent": sent.sent,
            "refused": sent.refused,
            "received": received.received,
            "lost": sent.sent - received.received,
        }
        if leader.rtt is not None:
            data["rtt"] = encode(leader.rtt)
        self._file.write(json.dumps(data, separators=(",", ":")) + "\n")

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Closes the file. Idempotent."""
        if not self._file.closed:
            try:
                self._sync()
            except OSError as error:
                raise self._error(error) from None
            finally:
                self._file.close()
