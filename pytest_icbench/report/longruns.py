# SPDX-License-Identifier: BSD-3-Clause
"""Long runs and back-to-back trains in words: what tables, pages and JUnit say of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Result = Mapping[str, Any]

#: Loss events named where there is little room, and where there is more.
FEW_EVENTS, MANY_EVENTS = 5, 50


def losses(result: Result, most: int = MANY_EVENTS) -> str | None:
    """The first ``most`` loss events of a long run with their times (UTC), or their number; None for other results."""
    count = result.get("loss_event_count")
    if count is None or (not count and result.get("verdict") == "INVALID"):
        return None
    if not count:
        return "no frame was lost or refused"
    counted = f"{count} loss event{'s' if count > 1 else ''}"
    if not most:
        return counted
    several = int((result.get("axes") or {}).get("pairs") or 1) > 1
    shown = [_event(event, several) for event in (result.get("loss_events") or ())[:most]]
    rest = [f"and {count - len(shown)} more (results.jsonl)"] if count > len(shown) else []
    return f"{counted}: {'; '.join([*shown, *rest])}"


def _event(event: Mapping[str, Any], several: bool) -> str:
    began = datetime.fromtimestamp(event["started_at"], UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    pair = f"pair {event['pair']}, " if several else ""
    return f"{began} UTC, {event['duration_s']:.3g} s, {pair}{event['lost']:,} lost, {event['refused']:,} refused"


def train(result: Result) -> str | None:
    """Frames of the longest train without loss; None for other results."""
    found = result.get("back_to_back")
    return None if not found else f"{'≥' if found['at_least'] else ''}{found['frames']:,.0f}"


def back_to_back(result: Result) -> str | None:
    """What RFC 9004 wants to be reported of trains: number, mean and spread, buffer times; None for other results."""
    found = result.get("back_to_back")
    if not found:
        return None
    spread = f"{found['frames_min']:,} to {found['frames_max']:,}"
    if found["frames_stddev"] is not None:
        spread += f", standard deviation {found['frames_stddev']:,.3g}"
    text = f"{train(result)} frames back to back without loss, mean of {found['repetitions']} ({spread})"
    text += f" at {found['rate_pps'] / 1e6:.4g} Mpps: {found['buffer_time_s'] * 1e6:.4g} µs of buffer"
    corrected = found["corrected_buffer_time_s"]
    if corrected is None:
        return f"{text}, not corrected: no rate without loss was found"
    return f"{text}, {corrected * 1e6:.4g} µs corrected for what is forwarded meanwhile"


def flat(result: Result) -> dict[str, Any]:
    """Both as flat names and values: ``back_to_back_frames`` …, ``loss_events`` as a text."""
    found: dict[str, Any] = {f"back_to_back_{name}": each for name, each in (result.get("back_to_back") or {}).items()}
    return found | ({"loss_events": losses(result)} if result.get("loss_events") else {})
