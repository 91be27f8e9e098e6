# SPDX-License-Identifier: BSD-3-Clause
"""The limit of the link between two hosts, as a layer of charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.axes import gbps_per_pps, short
from pytest_icbench.model.result import Result


def link_pps(result: Result) -> float | None:
    """Returns the frames of a case that the link between its hosts carries in a second; None if it is not known."""
    mbps = result.treatment.get("uplink_mbps")
    if not result.point.remote or not isinstance(mbps, int | float) or mbps <= 0:
        return None
    return result.point.traffic.line_pps(mbps)


def link_gbps(result: Result) -> float | None:
    """Returns what that is in Gbit/s on layer 2."""
    pps = link_pps(result)
    return None if pps is None else pps * gbps_per_pps(result)


def limit_across(value: float, field: str, unit: str) -> list[dict[str, Any]]:
    """Returns layers with a line across at the limit, and its name."""
    y = {"field": field, "type": "quantitative"}
    data = {"values": [{field: value, "text": f"the link's limit, {short(value)} {unit}"}]}
    return [
        {"data": data, "mark": {"type": "rule", "color": theme.INK, "strokeDash": [6, 3]}, "encoding": {"y": y}},
        {
            "data": data,
            "mark": {"type": "text", "align": "left", "dx": 6, "dy": -8, "color": theme.INK},
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "text"}},
        },
    ]


def limit_by_size(results: Iterable[Result], fields: tuple[str, str], *, bits: bool) -> list[dict[str, Any]]:
    """Returns a layer with the limit over packet sizes; none where it is not known.

    Args:
        fields: the names of the size and of the rate in the chart's data.
        bits: whether the rate is in Gbit/s, and not in Mpps.
    """
    limits: dict[float, float] = {}
    for result in results:
        pps = link_pps(result)
        if pps is not None:
            gbps = pps * result.point.traffic.gbps_per_pps
            limits[result.point.traffic.mean_bytes] = gbps if bits else pps / 1e6
    if not limits:
        return []
    size, rate = fields
    points = [{size: bytes_, rate: limit} for bytes_, limit in sorted(limits.items())]
    at = {"x": {"field": size, "type": "quantitative"}, "y": {"field": rate, "type": "quantitative"}}
    name = {"type": "text", "text": "the link's limit", "align": "right", "dy": -8, "color": theme.INK}
    return [
        {
            "data": {"values": points},
            "mark": {"type": "line", "color": theme.INK, "strokeDash": [6, 3], "strokeWidth": 1.2, "clip": True},
            "encoding": at,
        },
        {"data": {"values": points[-1:]}, "mark": name, "encoding": at},
    ]
