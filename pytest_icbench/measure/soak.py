# SPDX-License-Identifier: BSD-3-Clause
"""Measures long runs: one launch of the whole length, and its losses with their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pytest_icbench.measure.estimate import LAUNCH_OVERHEAD_S, RIG_OVERHEAD_S
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import LossEvent

#: Default length of a long run, in seconds.
SOAK_S = 20.0
#: The most loss events that a result lists; it counts all of them.
MOST_EVENTS = 1000
#: The most windows of a long run: their length grows with it, so that their number has a bound.
MOST_WINDOWS = 10_000
WINDOW_S = 1.0


def soak_settings(settings: Settings, duration_s: float, stream: Path | None = None) -> Settings:
    """Returns settings for one launch of this length: a fixed warm-up, and every window kept and streamed to a file."""
    window_s = max(min(WINDOW_S, duration_s / 10), duration_s / MOST_WINDOWS)
    return replace(
        settings,
        repeats=1,
        duration_s=duration_s,
        window_s=window_s,
        max_warmup_s=0.0,
        skip_s=0.0,
        keep_s=None,
        reference=False,
        stream=None if stream is None else str(stream),
    )


def loss_events(launch: Launch, warmup_s: float) -> Iterator[LossEvent]:
    """Yields the launch's loss events, pair by pair, in order of time."""
    if not launch.windows:
        return
    first_ns = min(window.start_ns for window in launch.windows)
    for account in sorted({window.account for window in launch.windows}):
        kept = (window for window in launch.windows if window.account == account and window.kept)
        of_pair = sorted(kept, key=lambda window: window.number)
        numbered = enumerate(window for window in of_pair if window.lost + window.refused > 0)
        # Consecutive numbers differ from their places by the same amount.
        for _, stretch in groupby(numbered, key=lambda item: item[1].number - item[0]):
            yield _event([window for _, window in stretch], launch.started_at + warmup_s, first_ns)


def _event(windows: Sequence[Window], begin_s: float, first_ns: int) -> LossEvent:
    start_ns = windows[0].start_ns
    return LossEvent(
        pair=windows[0].pair,
        direction=windows[0].direction,
        started_at=begin_s + (start_ns - first_ns) / 1e9,
        duration_s=(windows[-1].start_ns + windows[-1].duration_ns - start_ns) / 1e9,
        windows=len(windows),
        lost=sum(window.lost for window in windows),
        refused=sum(window.refused for window in windows),
    )


def with_losses(measurement: Measurement) -> Measurement:
    """Returns the measurement with its loss events; the first ``MOST_EVENTS`` are listed."""
    warmup_s = float(measurement.settings.get("warmup_s", 0.0))
    events = [event for launch in measurement.per_launch for event in loss_events(launch, warmup_s)]
    events.sort(key=lambda event: (event.started_at, event.pair, event.direction))
    return measurement.with_figures(loss_events=tuple(events[:MOST_EVENTS]), loss_event_count=len(events))


def soak_estimate_s(settings: Settings, duration_s: float, *, build: bool = True) -> float:
    """Returns the seconds of a long run: one launch without a reference."""
    return settings.warmup_s + duration_s + LAUNCH_OVERHEAD_S + (RIG_OVERHEAD_S if build else 0.0)
