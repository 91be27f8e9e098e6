# SPDX-License-Identifier: BSD-3-Clause
"""The hop at which a launch lost frames on their way through a chain of functions. Pure, but for ``at_rest``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import ChainAccount, FunctionCounters
from pytest_icbench.model.launch import Launch

Counters = Sequence[FunctionCounters]

_WAYS = ("input", "output")
#: How long frames may still be under way in a chain after a launch, in seconds, and the time between two looks.
_REST_S, _LOOK_S = 3.0, 0.02


def at_rest(read: Callable[[], Counters]) -> Counters:
    """Returns counters that no longer change. If they are read while frames pass, those of two functions differ."""
    deadline = time.monotonic() + _REST_S
    last = read()
    while time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        counters = read()
        if [(item.taken, item.given) for item in counters] == [(item.taken, item.given) for item in last]:
            return counters
        last = counters
    return last


def accounts(
    before: Counters, after: Counters, ends: Mapping[int, tuple[int, int]], *, denies: bool = False
) -> tuple[tuple[ChainAccount, ...] | None, str | None]:
    """Returns the account of each pair, and a sentence if counters contradict each other.

    Args:
        before, after: the functions' counters before and after the launch.
        ends: by pair, the frames that were sent and those that were received, without control frames.
        denies: whether the functions have a share of the frames from side a to deny, and count nothing else as denied.

    The accounts are None if a function does not distinguish control frames from data.
    """
    old = {(item.pair, item.hop): item for item in before}
    accounts: list[ChainAccount] = []
    for pair, (sent, received) in ends.items():
        ports = [sent]  # what left each hop, after what it took in
        full: int | None = None
        acl_drops: list[int] = []
        for item in sorted((item for item in after if item.pair == pair), key=lambda item: item.hop):
            earlier = old.get((pair, item.hop))
            if earlier is None or (first := earlier.data) is None or (last := item.data) is None:
                return None, None
            ports += [last[0] - first[0], last[1] - first[1]]
            acl_drops.append((item.acl_drops or 0) - (earlier.acl_drops or 0) if denies else 0)
            if item.table_full is not None:
                full = (full or 0) + _data_without_room(earlier, item)
        ports.append(received)
        names = ["the sender", *(f"function {hop}'s {way}" for hop in range(1, len(ports) // 2) for way in _WAYS)]
        steps = pairwise(zip([*names, "the receiver"], ports, strict=True))
        for place, ((name, came), (next_name, left)) in enumerate(steps):
            dropped = acl_drops[place // 2] if place % 2 else 0
            if left > came - dropped:
                said = f", {dropped:,} of them denied" if dropped else ""
                return None, f"pair {pair}: {name} counted {came:,} frames{said}, and {next_name} {left:,}"
        given = [*ports[::2], received]
        taken = [*ports[1::2]]
        accounts.append(
            ChainAccount(
                pair,
                sent,
                received,
                tuple(a - b - dropped for (a, b), dropped in zip(pairwise(given), [*acl_drops, 0], strict=True)),
                tuple(a - b for a, b in zip(given, taken, strict=False)),
                full,
                sum(acl_drops) if denies else None,
            )
        )
        if full is not None and full > accounts[-1].lost:
            lost = accounts[-1].lost
            return None, f"pair {pair}: full tables cost {full:,} frames by their counters, and only {lost:,} were lost"
    return tuple(accounts), None


def of_launch(
    readings: Sequence[Counters], case: Case, couples: Sequence[tuple[ProcessOutput, ProcessOutput]]
) -> tuple[tuple[ChainAccount, ...] | None, str | None]:
    """Returns ``accounts`` of a launch.

    Args:
        readings: before and after it; none where nobody reads them.
        couples: the leader and the follower of each pair.

    The accounts are None also if functions deny frames of both sides, which they count together.
    """
    denies = any(sender.command.acl_drops or receiver.command.acl_drops for sender, receiver in couples)
    if not readings or (denies and case.directions > 1):
        return None, None
    ends: dict[int, tuple[int, int]] = {}
    for number, (sender, receiver) in zip(case.path.numbers, couples, strict=True):
        sent = sender.summary.sent if sender.summary else None
        received = receiver.summary.received if receiver.summary else None
        if sent is not None and received is not None:
            ends[number] = sent.sequences, received.received
    return accounts(readings[0], readings[-1], ends, denies=denies)


def full_tables_explain(before: Counters, after: Counters, lost: int) -> bool:
    """Whether full connection tables explain all lost frames, so that no further frame has to arrive."""
    full = sum(item.table_full or 0 for item in after) - sum(item.table_full or 0 for item in before)
    return full >= lost > 0


def _data_without_room(before: FunctionCounters, after: FunctionCounters) -> int:
    """Returns the data that a function's table had no room for: control frames that it did not give out are none."""
    taken, given, full = (
        (getattr(after, name) or 0) - (getattr(before, name) or 0)
        for name in ("control_taken", "control_given", "table_full")
    )
    return full - (taken - given)


def over_launches(launches: Sequence[Launch]) -> tuple[ChainAccount, ...] | None:
    """Returns the sum by pair; None without launches, or if a launch has no account."""
    total: dict[int, ChainAccount] = {}
    for launch in launches:
        if launch.chains is None:
            return None
        for account in launch.chains:
            known = total.get(account.pair)
            total[account.pair] = account if known is None else known.plus(account)
    return tuple(total.values()) or None
