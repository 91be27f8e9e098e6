# SPDX-License-Identifier: BSD-3-Clause
"""Checks whether a launch's figures are numbers at all. Each check returns evidence in one sentence, or None. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_icbench.driver.workload.output import ReceivedTotals, SentTotals
from pytest_icbench.measure.launch.processes import ProcessOutput, both_ways
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Window
from pytest_icbench.model.path import DIRECTION_NAMES, Direction, FramePath

#: Version of the rules for a launch's validity and the counting of its windows. Results by other rules are not
#: comparable. A change that moves figures has to raise it: here, in the workload's accounts, or in the bottleneck's
#: load indicators.
RULES = 3

#: Foreign frames at a receiver, as a share of its own frames, above which the switch floods.
FLOODED_SHARE = 0.001
#: Up to this many foreign frames are no flood, however few frames of its own a receiver has.
FLOODED_LEAST = 100
#: Arrivals may seem this much earlier than the window of their frames: two readings of the clock differ by so much.
CLOCK_TOLERANCE_NS = 1_000_000
#: The first window may begin this much later than asked for.
START_TOLERANCE_NS = 50_000_000
#: A path that delivered frames, and then none for this share of the kept windows (and at least three), has stalled.
STALLED_SHARE = 0.5
STALLED_LEAST = 3
#: A path has also stalled if nothing came for this long until the launch's end (and for three windows), although this
#: many frames were to be expected from its earlier rate. A path that loses almost everything is silent by chance.
STALLED_S = 0.3
STALLED_FRAMES = 10
#: A sender that offers less than this share of what is due is itself too slow.
OFFERED_SHARE = 0.99
#: A client makes up for what it owes. It is too slow if half of its windows left later than this part of the measured
#: time, and not less than a time slice or two of a shared CPU.
LATE_SHARE, LATE_LEAST_S = 0.01, 0.02


def lost_by_sequence(sent: SentTotals, received: ReceivedTotals) -> int:
    """Returns the lost frames of a whole launch by the receiver's sequence numbers: gaps and the missing tail.

    Frames of ACL-dropped flows are in no gap; those in the tail are not lost.
    """
    highest = -1 if received.highest_sequence is None else received.highest_sequence
    return received.gaps + (sent.sequences - 1 - highest) - (sent.acl_drops - received.peer_acl_drops)


def _named(windows: Sequence[Window]) -> dict[tuple[int, Direction | None], str]:
    """Returns each account of the windows, and its name: ``pair 1``, of both directions ``pair 1, b to a``."""
    known = dict.fromkeys(window.account for window in windows)
    return {(pair, way): f"pair {pair}, {DIRECTION_NAMES[way]}" if way else f"pair {pair}" for pair, way in known}


def accounts(leader: ProcessOutput, follower: ProcessOutput) -> str | None:
    """Checks that ``scheduled = sent + refused`` and ``sent = received + lost + acl_drops`` over the whole launch."""
    receiver = leader if leader.command.application == "client" else follower
    if leader.summary is None or leader.summary.sent is None:
        return f"{leader.name} gave no totals"
    if receiver.summary is None or receiver.summary.received is None:
        return f"{receiver.name} gave no totals"
    sent, received = leader.summary.sent, receiver.summary.received
    if sent.scheduled != sent.sent + sent.refused:
        return f"{leader.name} scheduled {sent.scheduled} frames, but sent {sent.sent} and was refused {sent.refused}"
    if sent.sequences != sent.sent:
        return f"{leader.name} sent {sent.sent} frames with {sent.sequences} sequence numbers"
    lost = lost_by_sequence(sent, received)
    if lost < 0 or received.received + lost + sent.acl_drops != sent.sent:
        return (
            f"{leader.name} sent {sent.sent} frames, but {receiver.name} received {received.received} "
            f"and missed {lost} ({received.gaps} gaps)" + (f", {sent.acl_drops} denied" if sent.acl_drops else "")
        )
    return None


def window_accounts(windows: Sequence[Window]) -> str | None:
    """Checks that no window has more frames received than sent, or sent and refused than scheduled."""
    names = _named(windows)
    for window in windows:
        where = f"window {window.number} of {names[window.account]}"
        if window.received > window.sent - window.acl_drops:
            acl_drops = f", {window.acl_drops} of them to be denied" if window.acl_drops else ""
            return f"{where} received {window.received} frames of {window.sent} sent{acl_drops}"
        if window.sent + window.refused != window.scheduled:
            return f"{where} scheduled {window.scheduled}, sent {window.sent} and was refused {window.refused} frames"
    return None


def clock(windows: Sequence[Window], asked_ns: int, warmup_s: float) -> str | None:
    """Checks that windows begin when they should, and that no frame arrives before its window begins."""
    names = _named(windows)
    for window in windows:
        late = window.start_ns - asked_ns - round(warmup_s * 1e9)
        if window.number == 1 and abs(late) > START_TOLERANCE_NS:
            return f"window 1 of {names[window.account]} began {late / 1e6:.1f} ms after the start that was asked for"
        if window.first_ns and window.first_ns < window.start_ns - CLOCK_TOLERANCE_NS:
            early = (window.start_ns - window.first_ns) / 1e6
            where = f"window {window.number} of {names[window.account]}"
            return f"a frame of {where} arrived {early:.2f} ms before its window"
    return None


def _waiting(window: Window) -> bool:
    """Whether the sender had frames to send. At maximum load it schedules none while its port is full."""
    return window.scheduled > 0 or window.tx_full > 0


def held_off(couples: Sequence[tuple[ProcessOutput, ProcessOutput]], windows: Sequence[Window]) -> str | None:
    """Checks that each sender had a turn: at maximum load there is always a frame to send, at a rate one a period."""
    for leader, _ in couples:
        command = leader.command
        of_pair = [window for window in windows if window.account == (leader.pair, command.direction)]
        if command.trace or not of_pair or any(map(_waiting, of_pair)):
            continue
        seconds = sum(window.duration_ns for window in of_pair) / 1e9
        due = command.rate_pps * seconds
        if not command.rate_pps:
            return f"{leader.name} offered no frame in {seconds:g} s, though it should send all it can: it had no CPU"
        if due > command.burst:
            return f"{leader.name} offered none of the {due:,.0f} frames due in {seconds:g} s: it had no CPU"
    return None


def no_forwarding(windows: Sequence[Window]) -> str | None:
    """Checks that every pair received, each way, at least one of the frames that it sent or tried to send."""
    for account in _named(windows):
        of_pair, (pair, way) = [window for window in windows if window.account == account], account
        if not any(window.received for window in of_pair):
            sent, full = sum(window.sent for window in of_pair), sum(window.tx_full for window in of_pair)
            if not any(map(_waiting, of_pair)):
                seconds = sum(window.duration_ns for window in of_pair) / 1e9
                return f"pair {pair}: no frame was due in {seconds:g} s; measure longer, or at a greater rate"
            calls = f", and its port refused {full} calls" if full else ""
            return f"pair {pair}: of {sent} frames sent from {DIRECTION_NAMES[way or 'ab']} none arrived{calls}"
    return None


def corrupted(outputs: Sequence[ProcessOutput]) -> str | None:
    """Checks that no process received a damaged frame, or several datagrams as one."""
    for output in outputs:
        totals = output.summary.received if output.summary else None
        if totals and totals.joined:
            return (
                f"{output.name} received {totals.joined} datagrams longer than any that was sent, beside"
                f" {totals.received} good ones: the path joins several (GRO) and does not part them again; turn off its"
                f" udp-gro (ethtool -K LINK rx-udp-gro-forwarding off)"
            )
        if totals and totals.corrupted:
            return f"{output.name} received {totals.corrupted} damaged frames beside {totals.received} good ones"
    return None


def flooded(outputs: Sequence[ProcessOutput]) -> str | None:
    """Checks that no process received many frames of other pairs."""
    for output in outputs:
        totals = output.summary.received if output.summary else None
        if totals and totals.foreign > max(FLOODED_LEAST, FLOODED_SHARE * totals.received):
            return f"{output.name} received {totals.foreign} frames of others beside {totals.received} of its own"
    return None


def stalled(windows: Sequence[Window]) -> str | None:
    """Checks that no pair stops receiving frames, in either direction, although frames are waiting.

    It may stop until its end, or for half of its kept windows. The end may lie behind the kept windows: a path that is
    dead by then died while it was measured.
    """
    for account, name in _named(windows).items():
        of_pair = [window for window in windows if window.account == account]
        waited = [window for window in of_pair if _waiting(window)]
        last = max((window.number for window in of_pair if window.kept), default=0)
        measured = [window for window in waited if window.number <= last]
        half = STALLED_SHARE * sum(window.kept for window in of_pair)
        for seen in (waited, measured):
            silent = _silent_at_end(seen)
            long = silent >= half if seen is measured else _too_long(seen, silent)
            if long and STALLED_LEAST <= silent < len(seen):
                return f"{name}: nothing arrived in the last {silent} of {len(seen)} windows"
    return None


def _silent_at_end(windows: Sequence[Window]) -> int:
    return next((place for place, window in enumerate(reversed(windows)) if window.received), len(windows))


def _too_long(windows: Sequence[Window], silent: int) -> bool:
    """Whether the last ``silent`` windows are longer than a silence by chance: frames were to be expected in them."""
    before, after = windows[: len(windows) - silent], windows[len(windows) - silent :]
    seconds = sum(window.duration_ns for window in after) / 1e9
    return seconds >= STALLED_S and sum(w.received for w in before) * silent >= STALLED_FRAMES * len(before)


def generator_bound(case: Case, windows: Sequence[Window]) -> bool:
    """Whether the senders themselves were too slow for a fixed rate, in either direction.

    A burst that is due just after the kept windows does not count as missed. If the port of a client was full in most
    windows, the path kept the client from sending. The round trips then include that wait. A client that sent less than
    half of its due requests was too slow, whatever its port did.
    """
    rate_pps = case.rate.pps
    if len(ways := dict.fromkeys(window.direction for window in windows)) > 1:
        return any(generator_bound(case, [window for window in windows if window.direction == way]) for way in ways)
    kept = [window for window in windows if window.kept]
    if rate_pps is None or not kept:
        return False
    pairs = len({window.pair for window in kept})
    due = sum(rate_pps * window.duration_ns / 1e9 for window in kept) - case.burst * pairs
    scheduled = sum(window.scheduled for window in kept)
    short = scheduled < OFFERED_SHARE * due
    if not case.round_trips:
        return short
    if 2 * sum(window.tx_full > 0 for window in kept) > len(kept) and 2 * scheduled > due:
        return False
    measured_s = sum(window.duration_ns for window in kept) / 1e9 / pairs
    late_ns = median(window.lateness_p99_ns for window in kept)
    return short or late_ns > max(LATE_SHARE * measured_s, LATE_LEAST_S) * 1e9


def judge_launch(
    outputs: Sequence[ProcessOutput],
    windows: Sequence[Window],
    awaited: Sequence[Window],
    *,
    asked_ns: int,
    warmup_s: float,
) -> tuple[str, str] | None:
    """Returns the first reason for which the launch is INVALID, with its evidence; None for a valid launch.

    Args:
        awaited: those whose frames should arrive.
        asked_ns: the requested start, CLOCK_MONOTONIC.
    """
    couples = both_ways(FramePath.over(outputs).by_pair(outputs))
    checks = [("accounts", accounts(*couple)) for couple in couples]
    checks += [
        ("accounts", window_accounts(windows)),
        ("clock", clock(windows, asked_ns, warmup_s)),
        ("clock", held_off(couples, windows)),
        # Damaged, or joined to others, each frame counts as none.
        ("corrupted", corrupted(outputs)),
        ("no-forwarding", no_forwarding(windows)),
        ("flooded", flooded(outputs)),
        ("stalled", stalled(awaited)),
    ]
    return next(((reason, evidence) for reason, evidence in checks if evidence is not None), None)
