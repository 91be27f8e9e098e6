# SPDX-License-Identifier: BSD-3-Clause
"""What a rule of an access list costs a frame, from lists of several lengths in one path. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.display.axes import grouped, number, path_of, short, traffic
from pytest_icbench.model.result import Result

_LIST = re.compile(r"\b(?P<kind>acl|set)(?P<rules>[1-9]\d*)\b", re.ASCII)
_KINDS = {"acl": "rule", "set": "element of a set"}


def sentences(results: Sequence[Result]) -> list[str]:
    """Returns a sentence for each path and traffic flat out that was measured with lists of several lengths."""
    measured = [result for result in results if result.metric == "frmol" and result.is_number and _rules(result)]
    texts = []
    for group in grouped(measured, lambda result: (_path(result), traffic(result))).values():
        points = {
            _rules(result): 1e9 / pps for result in group if (pps := number(result, result.frames.throughput_pps))
        }
        if len(points) > 1:
            match = _LIST.search(group[0].point.function or "")
            kind = _KINDS[match["kind"]] if match else ""
            lengths = f"{min(points):,} to {max(points):,}"
            texts.append(f"{_path(group[0])}: each {kind} costs {short(_slope(points))} ns a frame ({lengths}).")
    return texts


def _rules(result: Result) -> int:
    """The length of the access list of a result's only function; 0 without one."""
    point = result.point
    match = None if point.pairs > 1 or point.chain > 1 else _LIST.search(point.function or "")
    return int(match["rules"]) if match else 0


def _path(result: Result) -> str:
    """Returns the name of the path with N in place of the length."""
    function = _LIST.sub(lambda match: f"{match['kind']}N", result.point.function or "")
    return path_of(replace(result, axes={**result.axes, "function": function}))


def _slope(points: dict[int, float]) -> float:
    """Returns the slope of the line of least squares through the points."""
    mean_x, mean_y = (sum(values) / len(points) for values in (points, points.values()))
    over = sum((x - mean_x) ** 2 for x in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points.items()) / over
