# SPDX-License-Identifier: BSD-3-Clause
"""The lines that the workload writes, read strictly. Pure; docs/workload.md is the contract."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.stats.quantiles import Histogram

SCHEMA = 1
Role = Literal["sender", "receiver", "client", "server"]


@dataclass(frozen=True, slots=True)
class Hello:
    """The port is set up; a serving socket exists."""

    app: str
    version: str
    pid: int
    io: str
    driver: str | None
    dpdk: str | None
    mac: str
    ring: int
    burst: int
    packet_size: int
    frame_bytes: int
    stream: int
    tsc_hz: int
    invariant_tsc: bool
    window_ns: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The link is up; the process waits for ``start``."""

    link_up: bool
    announced: bool
    monotonic_ns: int


@dataclass(frozen=True, slots=True)
class SentCounts:
    """What a sender or a client counted in one window."""

    start_ns: int
    duration_ns: int
    scheduled: int
    sent: int
    refused: int
    not_offered: int
    tx_full: int
    catch_up_max: int
    lateness_p99_ns: int
    lateness_max_ns: int
    yields: int
    bursts: int = 0


@dataclass(frozen=True, slots=True)
class ReceivedCounts:
    """What a receiver, a client or a server counted for one window."""

    provisional: bool
    received: int
    bytes: int
    duplicated: int
    reordered: int
    polls: int
    empty_polls: int
    first_ns: int | None
    last_ns: int | None


@dataclass(frozen=True, slots=True)
class WindowRtt:
    """Round-trip times of one window's frames; None where there are too few samples to tell."""

    count: int
    min_ns: int | None
    mean_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class WindowLine:
    """One window of one process; ``sent``, ``received`` and ``rtt`` as far as its role has them.

    ``busy_cycles`` and ``idle_cycles`` of its polling loop are None where nobody counts them (blocking sockets).
    ``rtt_from`` is the first window whose answers a client's histograms have.
    """

    role: Role
    stream: int
    window: int
    involuntary_switches: int
    sent: SentCounts | None
    received: ReceivedCounts | None
    busy_cycles: int | None = None
    idle_cycles: int | None = None
    rtt: WindowRtt | None = None
    rtt_from: int = 1


@dataclass(frozen=True, slots=True)
class SentTotals:
    """Of the whole launch, warm-up included. ``sequences`` frames were sent, numbered from 0."""

    scheduled: int
    sent: int
    refused: int
    not_offered: int
    tx_full: int
    sequences: int


@dataclass(frozen=True, slots=True)
class ReceivedTotals:
    """Of the whole launch, warm-up included. ``highest_sequence`` is None, or -1, when nothing arrived."""

    received: int
    bytes: int
    duplicated: int
    reordered: int
    polls: int
    empty_polls: int
    highest_sequence: int | None
    gaps: int
    late: int
    foreign: int
    corrupted: int


@dataclass(frozen=True, slots=True)
class Summary:
    """How a process ended, and its totals.

    Attributes:
        lateness, spacing_error: of a paced sender or client, in ns: how much later than due each burst left, and by how
            much the time between two bursts differed from what it should have been. Warm-up included.
        rtt_from: the first window whose answers a client's histograms have.
    """

    role: Role
    stream: int
    reason: str
    windows: int
    cpu_ns: int
    voluntary_switches: int
    involuntary_switches: int
    sent: SentTotals | None
    received: ReceivedTotals | None
    rtt: Histogram | None = None
    rtt_actual: Histogram | None = None
    lateness: Histogram | None = None
    spacing_error: Histogram | None = None
    rtt_first: Histogram | None = None
    rtt_from: int = 1


@dataclass(frozen=True, slots=True)
class _Head:
    role: Role
    stream: int
    involuntary_switches: int
    busy_cycles: int | None = None
    idle_cycles: int | None = None


@dataclass(frozen=True, slots=True)
class _SummaryHead:
    reason: str
    windows: int
    cpu_ns: int
    voluntary_switches: int


@dataclass(frozen=True, slots=True)
class _Histogram:
    count: int
    min: int | None
    mean: float | None
    max: int | None
    significant_digits: int
    counts: tuple[tuple[int, int], ...]


Line = Hello | Ready | WindowLine | Summary


def parse_line(raw: bytes | str, where: str = "workload") -> Line:
    """One line of a workload's stdout.

    Args:
        where: whose line it is; the error's first word.

    Raises:
        DamagedData: it is not what docs/workload.md says.
    """
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        shown = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        raise DamagedData(f"{where} wrote a line that is not JSON: {shown.strip()[:80]!r}") from None
    if not isinstance(data, dict):
        raise DamagedData(f"{where} wrote a line that is no JSON object: {str(data)[:80]!r}")
    if data.get("schema") != SCHEMA:
        raise DamagedData(
            f"{where} wrote schema {data.get('schema')!r}, but {SCHEMA} is read here; "
            "build workload and plugin from one version"
        )
    return _parse(data, where)


def _parse(data: dict[str, Any], where: str) -> Line:
    match data.get("type"):
        case "hello":
            return decode(Hello, data, f"{where}: hello")
        case "ready":
            return decode(Ready, data, f"{where}: ready")
        case "window":
            return _window(data, f"{where}: window")
        case "summary":
            return _summary(data, f"{where}: summary")
        case other:
            raise DamagedData(f"{where} wrote a line of unknown type {other!r}")


def _window(data: dict[str, Any], where: str) -> WindowLine:
    head = decode(_Head, data, where)
    number = data.get("window")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 65535:
        raise DamagedData(f"{where}: window: expected a number from 0 to 65534, found {number!r}")
    return WindowLine(
        role=head.role,
        stream=head.stream,
        window=number,
        involuntary_switches=head.involuntary_switches,
        sent=decode(SentCounts, data, where) if head.role in ("sender", "client") else None,
        received=decode(ReceivedCounts, data, where) if head.role != "sender" else None,
        busy_cycles=head.busy_cycles,
        idle_cycles=head.idle_cycles,
        rtt=decode(WindowRtt, data["rtt"], f"{where}: rtt") if head.role == "client" and "rtt" in data else None,
        rtt_from=_rtt_from(data, where),
    )


def _summary(data: dict[str, Any], where: str) -> Summary:
    head = decode(_Head, data, where)
    rest = decode(_SummaryHead, data, where)
    client = head.role == "client"
    unanswered = data.get("unanswered", 0)
    if not isinstance(unanswered, int) or unanswered < 0:
        raise DamagedData(f"{where}: unanswered: expected a count, found {unanswered!r}")
    return Summary(
        role=head.role,
        stream=head.stream,
        reason=rest.reason,
        windows=rest.windows,
        cpu_ns=rest.cpu_ns,
        voluntary_switches=rest.voluntary_switches,
        involuntary_switches=head.involuntary_switches,
        sent=decode(SentTotals, data, where) if head.role in ("sender", "client") else None,
        received=decode(ReceivedTotals, data, where) if head.role != "sender" else None,
        rtt=_histogram(data.get("rtt_ns"), unanswered, f"{where}: rtt_ns") if client else None,
        rtt_actual=_histogram(data.get("rtt_actual_ns"), unanswered, f"{where}: rtt_actual_ns") if client else None,
        lateness=_histogram(data["lateness_ns"], 0, f"{where}: lateness_ns") if "lateness_ns" in data else None,
        spacing_error=_histogram(data["spacing_error_ns"], 0, f"{where}: spacing_error_ns")
        if "spacing_error_ns" in data
        else None,
        rtt_first=_histogram(data["rtt_first_ns"], 0, f"{where}: rtt_first_ns")
        if client and "rtt_first_ns" in data
        else None,
        rtt_from=_rtt_from(data, where),
    )


def _rtt_from(data: dict[str, Any], where: str) -> int:
    found = data.get("rtt_from", 1)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise DamagedData(f"{where}: rtt_from: expected a window from 1, found {found!r}")
    return found


def _histogram(data: Any, lost: int, where: str) -> Histogram:
    found = decode(_Histogram, data, where)
    values = [value for value, _ in found.counts]
    if values != sorted(set(values)) or any(number < 0 for _, number in found.counts):
        raise DamagedData(f"{where}: counts are not in ascending order or below zero")
    if sum(number for _, number in found.counts) != found.count:
        raise DamagedData(f"{where}: the counts do not add up to {found.count}")
    empty = not found.count
    return Histogram(
        counts=found.counts,
        minimum=None if empty else found.min,
        maximum=None if empty else found.max,
        mean=None if empty else found.mean,
        significant_digits=found.significant_digits,
        lost=lost,
    )
