# SPDX-License-Identifier: BSD-3-Clause
"""Parses the lines that the workload writes, strictly. Pure; docs/reference/workload.md is the contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pytest_icbench.model.codec import DamagedData, decode, from_json
from pytest_icbench.stats.quantiles import Histogram

SCHEMA = 1
Role = Literal["sender", "receiver", "client", "server", "duplex"]
_SENDING = ("sender", "client", "duplex")


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line: the port is set up, and a serving socket exists."""

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
    """The line that says that the link is up. The process waits for ``start``."""

    link_up: bool
    announced: bool
    monotonic_ns: int


@dataclass(frozen=True, slots=True)
class _Sent:
    scheduled: int
    sent: int
    refused: int
    not_offered: int
    tx_full: int


@dataclass(frozen=True, slots=True)
class SentCounts(_Sent):
    """The counts of a sender, a client or a duplex end in one window."""

    start_ns: int
    duration_ns: int
    catch_up_max: int
    lateness_p99_ns: int
    lateness_max_ns: int
    yields: int
    bursts: int = 0
    full_turns: int = 0
    denied: int = 0


@dataclass(frozen=True, slots=True)
class _Received:
    received: int
    bytes: int
    duplicated: int
    reordered: int
    polls: int
    empty_polls: int


@dataclass(frozen=True, slots=True)
class ReceivedCounts(_Received):
    """The counts of a receiver, a client, a server or a duplex end (of its peer's frames) for one window."""

    provisional: bool
    first_ns: int | None
    last_ns: int | None


@dataclass(frozen=True, slots=True)
class WindowRtt:
    """The round-trip times of one window's frames. A figure is None if there are too few samples for it."""

    count: int
    min_ns: int | None
    mean_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class WindowLine:
    """A window of a process. ``sent``, ``received`` and ``rtt`` are None if its role does not have them.

    Attributes:
        busy_cycles, idle_cycles: of its polling loop; None if they are not counted (blocking sockets).
        gap_ns, gap_count: how much longer than usual turns of that loop took, and how many they were; None likewise.
        rtt_from: the first window whose answers are in a client's histograms.
    """

    role: Role
    stream: int
    window: int
    involuntary_switches: int
    sent: SentCounts | None
    received: ReceivedCounts | None
    busy_cycles: int | None = None
    idle_cycles: int | None = None
    gap_ns: int | None = None
    gap_count: int | None = None
    rtt: WindowRtt | None = None
    rtt_from: int = 1


@dataclass(frozen=True, slots=True)
class SentTotals(_Sent):
    """The totals of a sender over a whole launch with its warm-up.

    ``sequences`` frames were sent, numbered from 0; ``denied`` of them are of denied flows.
    """

    sequences: int
    sent_by_queue: tuple[int, ...] = ()
    denied: int = 0


@dataclass(frozen=True, slots=True)
class ReceivedTotals(_Received):
    """The totals of a receiver over a whole launch with its warm-up.

    ``highest_sequence`` is None, or -1, if nothing arrived. ``lossy_flows`` lost frames; ``worst_flows`` are those that
    lost most, each with how many; None and empty for a single flow. ``joined`` of the ``corrupted`` were several
    datagrams that arrived as one. ``peer_denied`` frames up to ``highest_sequence`` are of denied flows, and in no
    other counter; ``denied_passed`` of them came all the same.
    """

    highest_sequence: int | None
    gaps: int
    late: int
    foreign: int
    corrupted: int
    joined: int = 0
    lossy_flows: int | None = None
    worst_flows: tuple[tuple[int, int], ...] = ()
    received_by_queue: tuple[int, ...] = ()
    peer_denied: int = 0
    denied_passed: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a process, with its totals.

    Attributes:
        reason: why it ended.
        lateness: how much later than due each burst of a paced sender or client left, in ns. With the warm-up.
        spacing_error: the difference between the actual and the due time between two bursts, likewise.
        rtt_from: the first window whose answers are in a client's histograms.
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
    gap_ns: int | None = None
    gap_count: int | None = None


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
    """Parses one line of a workload's standard output.

    Args:
        where: the line's origin, the first word of an error.

    Raises:
        DamagedData: the line does not follow docs/reference/workload.md.
    """
    try:
        data = from_json(raw, where)
    except DamagedData:
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
        sent=decode(SentCounts, data, where) if head.role in _SENDING else None,
        received=decode(ReceivedCounts, data, where) if head.role != "sender" else None,
        busy_cycles=head.busy_cycles,
        idle_cycles=head.idle_cycles,
        gap_ns=head.gap_ns,
        gap_count=head.gap_count,
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
        sent=decode(SentTotals, data, where) if head.role in _SENDING else None,
        received=decode(ReceivedTotals, data, where) if head.role != "sender" else None,
        rtt=histogram(data.get("rtt_ns"), unanswered, f"{where}: rtt_ns") if client else None,
        rtt_actual=histogram(data.get("rtt_actual_ns"), unanswered, f"{where}: rtt_actual_ns") if client else None,
        lateness=histogram(data["lateness_ns"], 0, f"{where}: lateness_ns") if "lateness_ns" in data else None,
        spacing_error=histogram(data["spacing_error_ns"], 0, f"{where}: spacing_error_ns")
        if "spacing_error_ns" in data
        else None,
        rtt_first=histogram(data["rtt_first_ns"], 0, f"{where}: rtt_first_ns")
        if client and "rtt_first_ns" in data
        else None,
        rtt_from=_rtt_from(data, where),
    )


def _rtt_from(data: dict[str, Any], where: str) -> int:
    number = data.get("rtt_from", 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DamagedData(f"{where}: rtt_from: expected a window from 1, found {number!r}")
    return number


def histogram(data: Any, lost: int, where: str) -> Histogram:
    """Returns a histogram of a summary, with so many lost requests. Raises DamagedData."""
    decoded = decode(_Histogram, data, where)
    values = [value for value, _ in decoded.counts]
    if values != sorted(set(values)) or any(number < 0 for _, number in decoded.counts):
        raise DamagedData(f"{where}: counts are not in ascending order or below zero")
    if sum(number for _, number in decoded.counts) != decoded.count:
        raise DamagedData(f"{where}: the counts do not add up to {decoded.count}")
    empty = not decoded.count
    return Histogram(
        counts=decoded.counts,
        minimum=None if empty else decoded.min,
        maximum=None if empty else decoded.max,
        mean=None if empty else decoded.mean,
        significant_digits=decoded.significant_digits,
        lost=lost,
    )
