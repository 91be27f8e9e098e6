# SPDX-License-Identifier: BSD-3-Clause
"""Rates of frames as texts, for all kinds that send frames of the workload. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.display.case_names import millions, number, three
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.model.path import DIRECTION_NAMES
from pytest_icbench.stats.quantiles import Estimate


def mpps(pps: float) -> str:
    """Formats a rate in Mpps with three digits, below 10,000 frames/s with all decimals."""
    if not 0 < pps < 10_000:
        return three(pps / 1e6)
    return f"{max(round(pps), 1) / 1e6:.6f}".rstrip("0")


def rate(result: Result) -> str:
    """Returns the rate in Mpps, with ``≥`` if it is "at least" without an interval, which else has the sign."""
    pps = number(result, result.frames.throughput_pps)
    return "" if pps is None else ("≥ " if result.at_least and pps.low is None else "") + mpps(pps)


def rate_with_unit(result: Result) -> str:
    """Returns the rate with its unit; empty without one."""
    return rate(result) and f"{rate(result)} Mpps"


def mean_frame(result: Result) -> str:
    """Returns the mean length of a mix's frames in bytes; empty where all frames have one length."""
    mean_bytes = number(result, result.frames.mean_frame_bytes)
    return "" if mean_bytes is None or result.point.traffic.mix is None else f"{mean_bytes:.1f}"


def cpu_used(result: Result) -> str:
    """Returns the per cent of a CPU that sender and receiver used: ``12 and 9``; empty for endpoints that poll."""
    frames = result.frames
    shares = [number(result, share) for share in (frames.sender_cpu_share, frames.receiver_cpu_share)]
    if result.point.wait is None:
        return ""
    return " and ".join(f"{share * 100:.3g}" for share in shares if share is not None)


#: The legend of the column with it, for each kind that has frames.
CPU_LEGEND = (cpu_used, "CPU: what sender and receiver used of one; endpoints that poll use all that they get")


def rate_and_metric(result: Result) -> str:
    """Returns the rate with its unit and metric."""
    frames = f", frames of {mean_frame(result)} B on average" if mean_frame(result) else ""
    return f"{rate(result)} Mpps {result.metric}{frames}"


def rate_mark(result: Result, value: str) -> tuple[Any, ...]:
    """Returns the text next to a mark of the first screen."""
    gbps: float | None = number(result, result.frames.throughput_gbps)
    if result.at_least and isinstance(gbps, Estimate) and gbps.low is not None:
        gbps = gbps.low
    return (value + " Mpps" + ("" if gbps is None else f" · {three(gbps)} Gbit/s"),)


def each_way(result: Measurement) -> str:
    """Returns the rate and the loss of each direction; empty unless both ends send at once."""
    ways = result.frames.per_direction if result.is_number else ()
    return "; ".join(
        f"{DIRECTION_NAMES[way.direction]} {mpps(way.throughput_pps)} Mpps"
        + (f", {way.lost:,} of {way.sent:,} frames lost" if way.lost else ", nothing lost")
        for way in ways
    )


def rate_ways(result: Result, refused: str) -> tuple[str, str]:
    """Returns the texts at both arrows of the path under test: what was sent and refused, received and lost."""
    frames, pps = result.frames, number(result, result.frames.throughput_pps)
    lost = f"lost {millions(frames.lost)}"
    if frames.sent:
        lost += f" ({frames.lost / frames.sent:.2%})" if frames.lost else ""
    lost += f", acl_drops {millions(frames.acl_drops)}" if frames.acl_drops else ""
    if pps is None:
        return refused, lost
    sent = pps * frames.sent / frames.received if frames.received else pps
    if ways := each_way(result):
        return f"{mpps(sent)} Mpps sent both ways at once, {refused}", f"{mpps(pps)} Mpps received: {ways}"
    return f"{mpps(sent)} Mpps sent, {refused}", f"{mpps(pps)} Mpps received, {lost}"
