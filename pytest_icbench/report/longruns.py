# SPDX-License-Identifier: BSD-3-Clause
"""Texts about long runs and back-to-back trains for tables, pages and JUnit. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pytest_icbench.model.codec import encode
from pytest_icbench.model.long_run import LossEvent
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.path import DIRECTION_NAMES

#: Numbers of loss events listed where there is little room, and where there is more.
FEW_EVENTS, MANY_EVENTS = 5, 50


def losses(result: Measurement, most: int = MANY_EVENTS) -> str | None:
    """Returns the first ``most`` loss events of a long run with times (UTC); None for other results.

    Args:
        most: with 0 only the number of loss events is returned.
    """
    count = result.frames.loss_event_count
    if count is None or (not count and not result.is_number):
        return None
    if not count:
        return "no frame was lost or refused"
    counted = f"{count} loss event{'s' if count > 1 else ''}"
    if not most:
        return counted
    shown = [_event(event, result.point.pairs > 1) for event in (result.frames.loss_events or ())[:most]]
    rest = [f"and {count - len(shown)} more (results.jsonl)"] if count > len(shown) else []
    return f"{counted}: {'; '.join([*shown, *rest])}"


def _event(event: LossEvent, several: bool) -> str:
    began = datetime.fromtimestamp(event.started_at, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    pair = f"pair {event.pair}, " if several else ""
    way = f"{DIRECTION_NAMES[event.direction]}, " if event.direction else ""
    return f"{began} UTC, {event.duration_s:.3g} s, {pair}{way}{event.lost:,} lost, {event.refused:,} refused"


def train(result: Measurement) -> str | None:
    """Returns the frames of the longest train without loss; None for other results."""
    trains = result.rates.back_to_back
    return None if trains is None else f"{'≥' if trains.at_least else ''}{trains.frames:,.0f}"


def back_to_back(result: Measurement) -> str | None:
    """Returns the report of trains after RFC 9004: number, mean, spread, buffer times; None for other results."""
    trains = result.rates.back_to_back
    if trains is None:
        return None
    spread = f"{trains.frames_min:,} to {trains.frames_max:,}"
    if trains.frames_stddev is not None:
        spread += f", standard deviation {trains.frames_stddev:,.3g}"
    text = f"{train(result)} frames back to back without loss, mean of {trains.repetitions} ({spread})"
    text += f" at {trains.rate_pps / 1e6:.4g} Mpps: {trains.buffer_time_s * 1e6:.4g} µs of buffer"
    corrected = trains.corrected_buffer_time_s
    if corrected is None:
        return f"{text}, not corrected: no rate without loss was found"
    return f"{text}, {corrected * 1e6:.4g} µs corrected for what is forwarded meanwhile"


def flat(result: Measurement) -> dict[str, Any]:
    """Flattens both to names and values: ``back_to_back_frames`` …, and ``loss_events`` as a text."""
    trains: dict[str, Any] = {} if result.rates.back_to_back is None else encode(result.rates.back_to_back)
    flattened: dict[str, Any] = {f"back_to_back_{name}": value for name, value in trains.items()}
    return flattened | ({"loss_events": losses(result)} if result.frames.loss_events else {})
