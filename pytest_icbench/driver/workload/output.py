# SPDX-License-Identifier: BSD-3-Clause
"""Parses the lines that the workload writes, strictly. Pure; docs/reference/workload.md is the contract."""

from __future__ import annotations

from dataclasses import dataclass
from operator import lt
from typing import Annotated, Literal, TypeVar

import msgspec

from pytest_icbench.model.codec import DamagedData
from pytest_icbench.stats.quantiles import Histogram

T = TypeVar("T")

SCHEMA = 1
Role = Literal["sender", "receiver", "client", "server", "duplex"]
_SENDING = ("sender", "client", "duplex")

#: A counter or a time of the workload. The bound keeps any sum a float.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line: the port is set up, and a serving socket exists."""

    app: str
    version: str
    pid: Count
    io: str
    driver: str | None
    dpdk: str | None
    mac: str
    ring: Count
    burst: Count
    packet_size: Count
    frame_bytes: Count
    stream: Count
    tsc_hz: Count
    invariant_tsc: bool
    window_ns: Count


@dataclass(frozen=True, slots=True)
class Ready:
    """The line that says that the link is up. The process waits for ``start``."""

    link_up: bool
    announced: bool
    monotonic_ns: Count


@dataclass(frozen=True, slots=True)
class _Sent:
    scheduled: Count
    sent: Count
    refused: Count
    not_offered: Count
    tx_full: Count


@dataclass(frozen=True, slots=True)
class SentCounts(_Sent):
    """The counts of a sender, a client or a duplex end in one window."""

    start_ns: Count
    duration_ns: Count
    catch_up_max: Count
    lateness_p99_ns: Count
    lateness_max_ns: Count
    yields: Count
    bursts: Count = 0
    full_turns: Count = 0
    acl_drops: Count = 0


@dataclass(frozen=True, slots=True)
class _Received:
    received: Count
    bytes: Count
    duplicated: Count
    reordered: Count
    polls: Count
    empty_polls: Count


@dataclass(frozen=True, slots=True)
class ReceivedCounts(_Received):
    """The counts of a receiver, a client, a server or a duplex end (of its peer's frames) in one window."""

    provisional: bool
    first_ns: Count | None
    last_ns: Count | None


@dataclass(frozen=True, slots=True)
class WindowRtt:
    """The round-trip times of one window's frames. A figure is None if there are too few samples for it."""

    count: Count
    min_ns: Count | None
    mean_ns: Count | None
    p50_ns: Count | None
    p99_ns: Count | None
    max_ns: Count | None


class WindowLine(msgspec.Struct, frozen=True, rename={"sent": "_sent", "received": "_received"}):
    """A window of a process. ``sent``, ``received`` and ``rtt`` are None if its role does not have them.

    Attributes:
        sent, received: made of further keys of the line.
        busy_cycles, idle_cycles: of its polling loop; None if they are not counted (blocking sockets).
        gap_ns, gap_count: total excess and number of the loop's turns that took unusually long; None likewise.
        rtt_from: the first window whose answers are in a client's histograms.
        cpu_ns: CPU time of all its threads; None of an older workload.
    """

    role: Role
    stream: Count
    window: Annotated[int, msgspec.Meta(ge=0, lt=65535)]
    involuntary_switches: Count
    sent: SentCounts | None = None
    received: ReceivedCounts | None = None
    busy_cycles: Count | None = None
    idle_cycles: Count | None = None
    gap_ns: Count | None = None
    gap_count: Count | None = None
    rtt: WindowRtt | None = None
    rtt_from: Annotated[int, msgspec.Meta(ge=1, lt=65535)] = 1
    cpu_ns: Count | None = None


@dataclass(frozen=True, slots=True)
class SentTotals(_Sent):
    """The totals of a sender over a whole launch with its warm-up.

    ``sequences`` frames were sent, numbered from 0. ``acl_drops`` of them are of ACL-dropped flows.
    """

    sequences: Count
    sent_by_queue: tuple[Count, ...] = ()
    acl_drops: Count = 0


@dataclass(frozen=True, slots=True)
class ReceivedTotals(_Received):
    """The totals of a receiver over a whole launch with its warm-up.

    Attributes:
        highest_sequence: None or -1 if nothing arrived.
        joined: the ``corrupted`` frames that were several datagrams in one.
        lossy_flows: number of flows that lost frames; None for a single flow.
        worst_flows: the flows that lost most, each with its lost frames; empty for a single flow.
        peer_acl_drops: frames up to ``highest_sequence`` that are of ACL-dropped flows. No other counter includes them.
        acl_drops_passed: frames of ACL-dropped flows that arrived.
    """

    highest_sequence: Annotated[int, msgspec.Meta(ge=-1, le=2**48)] | None
    gaps: Count
    late: Count
    foreign: Count
    corrupted: Count
    joined: Count = 0
    lossy_flows: Count | None = None
    worst_flows: tuple[tuple[Count, Count], ...] = ()
    received_by_queue: tuple[Count, ...] = ()
    peer_acl_drops: Count = 0
    acl_drops_passed: Count = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a process, with its totals.

    Attributes:
        lateness: in ns, from the due time of a burst to its departure, for a paced sender or client. With the warm-up.
        spacing_error: in ns, the difference between actual and due time between two bursts, likewise.
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
class RequestCounts:
    """The counts of a run of ``ask``.

    Attributes:
        duration_ns: until the end of the schedule, or until the last answer if that came later.
        scheduled: requests that were due. ``not_offered`` of them were never sent.
        wrong: answers without the value, or with another one.
        late: datagrams that arrived when their request was no longer waited for.
        unanswered: requests that were due and have no answer.
    """

    reason: str
    duration_ns: Count
    scheduled: Count
    not_offered: Count
    sent: Count
    answered: Count
    wrong: Count
    late: Count
    unanswered: Count
    payload_bytes: Count
    cpu_ns: Count


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """The counts of a run of ``ask``, and its times in ns.

    Attributes:
        rtt: from the intended moment of a request to its answer.
        rtt_actual: from the moment at which it was sent.
        lateness: from the intended to the actual moment.
    """

    counts: RequestCounts
    rtt: Histogram
    rtt_actual: Histogram
    lateness: Histogram


class _Header(msgspec.Struct):
    schema: object = None
    type: object = None
    role: object = None


class _Histogram(msgspec.Struct):
    count: Count
    min: Count | None
    mean: Annotated[float, msgspec.Meta(ge=0)] | None
    max: Count | None
    significant_digits: Count
    counts: tuple[tuple[Count, Count], ...]


class _SummaryHead(msgspec.Struct):
    role: Role
    stream: Count
    reason: str
    windows: Count
    cpu_ns: Count
    voluntary_switches: Count
    involuntary_switches: Count
    unanswered: Count = 0
    rtt_ns: _Histogram | None = None
    rtt_actual_ns: _Histogram | None = None
    rtt_first_ns: _Histogram | None = None
    lateness_ns: _Histogram | None = None
    spacing_error_ns: _Histogram | None = None
    rtt_from: Annotated[int, msgspec.Meta(ge=1, lt=65535)] = 1


class _RequestTimes(msgspec.Struct):
    rtt_ns: _Histogram
    rtt_actual_ns: _Histogram
    lateness_ns: _Histogram


Line = Hello | Ready | WindowLine | Summary


def parse_line(raw: bytes | str, where: str = "workload") -> Line:
    """Parses one line of a workload's standard output. ``where``: the line's origin, the first word of an error.

    Raises DamagedData: the line does not follow docs/reference/workload.md.
    """
    match _header(raw, where).type:
        case "hello":
            return _decode(Hello, raw, f"{where}: hello")
        case "ready":
            return _decode(Ready, raw, f"{where}: ready")
        case "window":
            return _window(raw, f"{where}: window")
        case "summary":
            return _summary(raw, f"{where}: summary")
        case other:
            raise DamagedData(f"{where} wrote a line of unknown type {_shown(other)}")


def parse_request_summary(raw: bytes | str) -> RequestSummary:
    """Parses the summary of ``ask``. Raises DamagedData if the line is no such summary."""
    where = "ask"
    if _header(raw, where).role != "ask":
        raise DamagedData(f"{where}: this is not a summary of ask: {_shown(raw)}")
    counts, times = _decode(RequestCounts, raw, where), _decode(_RequestTimes, raw, where)
    return RequestSummary(
        counts,
        rtt=_histogram(times.rtt_ns, counts.unanswered, f"{where}: rtt_ns"),
        rtt_actual=_histogram(times.rtt_actual_ns, counts.unanswered, f"{where}: rtt_actual_ns"),
        lateness=_histogram(times.lateness_ns, 0, f"{where}: lateness_ns"),
    )


def _shown(found: object) -> str:
    text = found.decode(errors="replace") if isinstance(found, bytes) else found
    return repr(text.strip()[:80] if isinstance(text, str) else text)[:82]


def _header(raw: bytes | str, where: str) -> _Header:
    try:
        header = msgspec.json.decode(raw, type=_Header)
    except msgspec.ValidationError:
        raise DamagedData(f"{where} wrote a line that is not a JSON object: {_shown(raw)}") from None
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise DamagedData(f"{where} wrote a line that is not JSON: {_shown(raw)}") from None
    if header.schema != SCHEMA:
        raise DamagedData(
            f"{where} wrote schema {_shown(header.schema)}, but {SCHEMA} is read here; "
            "build workload and plugin from one version"
        )
    return header


def _decode(kind: type[T], raw: bytes | str, where: str) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:  # the former only of late releases
        wrong, _, place = str(error).replace("`", "").partition(" - at $")
        raise DamagedData(f"{where}{place and ': ' + place.lstrip('.')}: {wrong[:1].lower()}{wrong[1:]}") from None


def _window(raw: bytes | str, where: str) -> WindowLine:
    line = _decode(WindowLine, raw, where)
    return msgspec.structs.replace(
        line,
        sent=_decode(SentCounts, raw, where) if line.role in _SENDING else None,
        received=_decode(ReceivedCounts, raw, where) if line.role != "sender" else None,
    )


def _summary(raw: bytes | str, where: str) -> Summary:
    head = _decode(_SummaryHead, raw, where)
    if head.role == "client" and (head.rtt_ns is None or head.rtt_actual_ns is None):
        raise DamagedData(f"{where}: a client's rtt_ns or rtt_actual_ns is missing")

    def times(found: _Histogram | None, name: str, lost: int = 0) -> Histogram | None:
        return None if found is None else _histogram(found, lost, f"{where}: {name}")

    return Summary(
        role=head.role,
        stream=head.stream,
        reason=head.reason,
        windows=head.windows,
        cpu_ns=head.cpu_ns,
        voluntary_switches=head.voluntary_switches,
        involuntary_switches=head.involuntary_switches,
        sent=_decode(SentTotals, raw, where) if head.role in _SENDING else None,
        received=_decode(ReceivedTotals, raw, where) if head.role != "sender" else None,
        rtt=times(head.rtt_ns, "rtt_ns", head.unanswered),
        rtt_actual=times(head.rtt_actual_ns, "rtt_actual_ns", head.unanswered),
        lateness=times(head.lateness_ns, "lateness_ns"),
        spacing_error=times(head.spacing_error_ns, "spacing_error_ns"),
        rtt_first=times(head.rtt_first_ns, "rtt_first_ns"),
        rtt_from=head.rtt_from,
    )


def _histogram(found: _Histogram, lost: int, where: str) -> Histogram:
    """Returns a histogram of a summary, with the number of lost requests. Raises DamagedData."""
    values = [value for value, _ in found.counts]
    if not all(map(lt, values, values[1:])):
        raise DamagedData(f"{where}: the counts are not in ascending order")
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
