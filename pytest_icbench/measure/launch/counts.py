# SPDX-License-Identifier: BSD-3-Clause
"""Windows of one pair to its counters. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.model.launch import PairCounts, Window


def count_windows(
    pair: int, windows: Sequence[Window], *, late: int = 0, foreign: int = 0, corrupted: int = 0
) -> PairCounts:
    """Totals over the kept windows. ``late foreign corrupted`` are the receiver's over the whole launch."""
    kept = [window for window in windows if window.kept]
    seconds = sum(window.duration_ns for window in kept) / 1e9

    def total(name: str) -> int:
        return sum(int(getattr(window, name)) for window in kept)

    def total_known(name: str) -> int | None:
        values = [getattr(window, name) for window in kept]
        return None if not values or None in values else sum(values)

    return PairCounts(
        pair=pair,
        scheduled=total("scheduled"),
        sent=total("sent"),
        refused=total("refused"),
        not_offered=total("not_offered"),
        tx_full=total("tx_full"),
        received=total("received"),
        lost=total("lost"),
        duplicated=total("duplicated"),
        reordered=total("reordered"),
        late=late,
        foreign=foreign,
        corrupted=corrupted,
        polls=total("polls"),
        empty_polls=total("empty_polls"),
        throughput_pps=total("received") / seconds if seconds else 0.0,
        offered_pps=total("scheduled") / seconds if seconds else 0.0,
        bursts=total("bursts"),
        sender_busy_cycles=total_known("sender_busy_cycles"),
        sender_idle_cycles=total_known("sender_idle_cycles"),
        receiver_busy_cycles=total_known("receiver_busy_cycles"),
        receiver_idle_cycles=total_known("receiver_idle_cycles"),
    )
