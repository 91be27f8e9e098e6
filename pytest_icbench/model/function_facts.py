# SPDX-License-Identifier: BSD-3-Clause
"""What a network function in the path reports about itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_icbench.model.acl_drop import AclDrop


def function_key(component: str) -> str:
    """Returns the key of a component's configuration beside those of switches."""
    return f"function:{component}"


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """The facts of a function, which a result's treatment keeps.

    Attributes:
        component: the name of its driver.
        version: of the program or kernel that does the work.
        config: what it was told to do: rules, command lines.
    """

    component: str
    version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionCounters:
    """The counters of one function since its start; None for what it does not count.

    Attributes:
        pair: number of the pair whose frames it handles.
        taken: frames that came in from side a.
        given: frames that it gave out to side b.
        acl_drops: frames that it dropped on purpose, of both directions.
        busy_cycles, idle_cycles: TSC cycles of its polls with and without frames.
        memory_bytes: memory of its processes, of its control group where that is counted.
        hop: its place in the chain of its pair, from side a; 1 is the first.
        control_taken, control_given: the control frames among those; None where they are not distinguished.
        cpu_ns: CPU time of its processes.
        voluntary_switches, involuntary_switches: context switches of its processes; a yield is involuntary.
        sessions: entries of its table of connections now.
        table_full: frames, control frames among them, that it dropped because their session found no room in the table.
        evicted: sessions that had to make room for others.
        busy_polls: polls that brought frames.
        given_each: of ``given``, what the firewall of each subscriber gave out.
        overrun: frames that it took in and lost because it was too slow.
        taken_back: frames that came in from side b.
    """

    pair: int
    taken: int | None = None
    given: int | None = None
    acl_drops: int | None = None
    busy_cycles: int | None = None
    idle_cycles: int | None = None
    memory_bytes: int | None = None
    hop: int = 1
    control_taken: int | None = None
    control_given: int | None = None
    cpu_ns: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    sessions: int | None = None
    table_full: int | None = None
    evicted: int | None = None
    busy_polls: int | None = None
    given_each: tuple[int, ...] | None = None
    overrun: int | None = None
    taken_back: int | None = None

    @property
    def data(self) -> tuple[int, int] | None:
        """The frames taken and given without control frames; None where they are not distinguished."""
        counts = (self.taken, self.given, self.control_taken, self.control_given)
        if any(count is None for count in counts):
            return None
        taken, given, control_taken, control_given = (count or 0 for count in counts)
        return taken - control_taken, given - control_given


@dataclass(frozen=True, slots=True)
class FunctionTerms:
    """What the launches of a case have to show of its function.

    Attributes:
        function: its name.
        set_pps: frames per second that each function lets pass from side a to side b; None if it limits none.
        tolerance: share by which the rate may differ from that.
        least_cycles: busy cycles that a frame costs at least.
        acl_drop: the share of flows that it denies; None if it denies none.
        burst: frames that it lets pass at once after an idle time; None without such a bound.
    """

    function: str
    set_pps: float | None = None
    tolerance: float = 0.0
    least_cycles: int = 0
    acl_drop: AclDrop | None = None
    burst: int | None = None


def jain_index(amounts: Sequence[float]) -> float | None:
    """Returns Jain's fairness index (RFC 5166, 2.3): (sum x)^2 / (n sum x^2), from 1/n to 1; None if all are 0."""
    squares = sum(amount * amount for amount in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else None


@dataclass(frozen=True, slots=True)
class FunctionWork:
    """What one function did during the launches of a case: differences of its counters, and shares.

    Attributes:
        pair, hop: 1, 2, …; its place in the chain of its pair, from side a.
        taken, given, acl_drops: frames taken from side a, given to side b, and denied; null for what it does not count.
        busy_share: busy cycles over all cycles of its polls, or null.
        cycles_per_frame: busy cycles over the frames of both directions, or null.
        memory_bytes: memory of its processes, of its control group where that is counted, or null.
        cpu_ns, voluntary_switches, involuntary_switches: CPU time and context switches of its processes, or null.
        cpu_used_share: its part of the CPU time of all functions on its CPU; null unless they have that CPU for
            themselves.
        batch_size: frames taken from side a over polls that brought frames of either side, or null.
        cpu_share, cpu_quota: its part of a CPU by allocation in per cent, or null.
        goodput_pps, alone_pps: frames that arrived through it per second, and through one such function that has the
            CPU for itself, medians over launches; null unless functions share a CPU, the second without an allocation.
        goodput_error, goodput_error_low, goodput_error_high: goodput / (its part of the CPU x goodput alone) - 1,
            median over launches, with its interval.
        sessions: entries of its table of connections after the last launch, or null.
        table_full: frames that it dropped because their session found no room in the table, or null.
        evicted: sessions that had to make room for others, or null.
        given_each: of ``given``, frames of each active subscriber, or null.
        fairness_index: Jain's fairness index of these (RFC 5166, 2.3): 1 if all are equal, 1/n if one has them all, or
            null.
    """

    pair: int
    taken: int | None = None
    given: int | None = None
    acl_drops: int | None = None
    busy_share: float | None = None
    cycles_per_frame: float | None = None
    memory_bytes: int | None = None
    hop: int = 1
    cpu_ns: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    cpu_share: int | None = None
    cpu_quota: int | None = None
    goodput_pps: float | None = None
    alone_pps: float | None = None
    goodput_error: float | None = None
    goodput_error_low: float | None = None
    goodput_error_high: float | None = None
    sessions: int | None = None
    table_full: int | None = None
    evicted: int | None = None
    cpu_used_share: float | None = None
    batch_size: float | None = None
    given_each: tuple[int, ...] | None = None
    fairness_index: float | None = None

    @classmethod
    def between(cls, before: FunctionCounters, after: FunctionCounters, active: int = 1) -> FunctionWork:
        """Returns the work between two readings of one function's counters.

        ``active``: how many of its subscribers were sent frames: the first ones.
        """

        def difference(name: str) -> int | None:
            first, last = getattr(before, name), getattr(after, name)
            return None if first is None or last is None else last - first

        names = ("taken", "given", "busy_cycles", "idle_cycles", "busy_polls", "taken_back")
        taken, given, busy, idle, polls, back = map(difference, names)
        frames = (taken or 0) + (back or 0)
        cycles = None if busy is None or idle is None else busy + idle
        given_each = None
        if before.given_each is not None and after.given_each is not None:
            pairs = zip(before.given_each[:active], after.given_each[:active], strict=True)
            given_each = tuple(last - first for first, last in pairs)
        return cls(
            pair=after.pair,
            taken=taken,
            given=given,
            acl_drops=difference("acl_drops"),
            busy_share=busy / cycles if busy is not None and cycles else None,
            cycles_per_frame=busy / frames if busy is not None and frames else None,
            memory_bytes=after.memory_bytes,
            hop=after.hop,
            cpu_ns=difference("cpu_ns"),
            voluntary_switches=difference("voluntary_switches"),
            involuntary_switches=difference("involuntary_switches"),
            sessions=after.sessions,
            table_full=difference("table_full"),
            evicted=difference("evicted"),
            batch_size=taken / polls if taken is not None and polls else None,
            given_each=given_each,
            fairness_index=None if given_each is None else jain_index(given_each),
        )


@dataclass(frozen=True, slots=True)
class ChainAccount:
    """The frames of one pair from side a through its functions, over whole launches with their warm-up.

    ``sent = received + sum(lost_by_hop) + acl_drops``. A hop is a function, counted from side a; the last hop is the
    receiver.

    Attributes:
        pair: 1, 2, ….
        sent, received: by the sender, and by the receiver.
        lost_by_hop: frames that reached the hop before, or left the sender, and did not leave this hop.
        lost_before_hop: of these, the frames that this hop did not take in: lost on the link, or in its full queue.
        table_full: frames lost because a function's table of connections had no room for their session; null without
            such tables.
        acl_drops: frames of the flows that the functions deny, as they count them; null where none are sent.
    """

    pair: int
    sent: int
    received: int
    lost_by_hop: tuple[int, ...]
    lost_before_hop: tuple[int, ...]
    table_full: int | None = None
    acl_drops: int | None = None

    @property
    def lost(self) -> int:
        """All frames that were lost."""
        return sum(self.lost_by_hop)

    def plus(self, other: ChainAccount) -> ChainAccount:
        """Returns the account of both."""
        return ChainAccount(
            self.pair,
            self.sent + other.sent,
            self.received + other.received,
            tuple(map(sum, zip(self.lost_by_hop, other.lost_by_hop, strict=True))),
            tuple(map(sum, zip(self.lost_before_hop, other.lost_before_hop, strict=True))),
            None if self.table_full is None else self.table_full + (other.table_full or 0),
            None if self.acl_drops is None else self.acl_drops + (other.acl_drops or 0),
        )
