# SPDX-License-Identifier: BSD-3-Clause
"""A chart has one value for each series and place: series are distinguished by what their names leave out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.display.case_names import disambiguated, path_of
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.figure.registry import Content, section_charts
from tests.charts import values
from tests.measurements import launch, result

#: Charts whose series are lines or strips: at one place each has one value.
PLACES = {"size": ("size",), "launches": ("launch",)}


def rate(size: int = 64, axes: dict[str, Any] | None = None, **more: Any) -> Result:
    ends = {f"throughput_pps{end}": 5e6 for end in ("", "_low", "_high")}
    launches = tuple(launch(index, throughput_pps=pps) for index, pps in enumerate((4e6, 5e6, 6e6)))
    measured = result(Case("ovs", Frames(Traffic(size))), **ends, per_launch=launches, **more)
    return replace(measured, axes={**measured.axes, **(axes or {})})


def names(results: list[Result]) -> list[str]:
    return [path_of(item) for item in disambiguated(results)]


def test_results_that_names_tell_apart_are_as_they_were() -> None:
    results = [rate(64), rate(1500)]
    assert disambiguated(results) == results


def test_an_axis_that_names_leave_out_is_named_throughout() -> None:
    results = [rate(64, {"tenants": 1}), rate(64, {"tenants": 1000}), rate(1500, {"tenants": 1000}), rate(1500)]
    assert names(results) == ["ovs (tenants 1)", "ovs (tenants 1000)", "ovs (tenants 1000)", "ovs"]
    marked = [rate(axes={"reverse": True}), rate(axes={"reverse": False})]
    assert names(marked) == ["ovs (reverse)", "ovs"]
    assert names([replace(item, run="A") for item in marked]) == ["ovs (A, reverse)", "ovs (A)"]


def test_a_case_that_was_placed_or_measured_otherwise_is_another_series() -> None:
    assert names([rate(placement="dedicated"), rate(placement="cooperative")]) == [
        "ovs (dedicated)",
        "ovs (cooperative)",
    ]
    assert names([rate(), rate(1500), rate(), rate(1500), rate()]) == [
        "ovs",
        "ovs",
        "ovs (no. 2)",
        "ovs (no. 2)",
        "ovs (no. 3)",
    ]


@pytest.mark.parametrize("axes", [{}, {"tenants": 1000}])
def test_no_series_goes_back_and_forth(axes: dict[str, Any]) -> None:
    """Two tests over the same sizes; the second has another axis or none."""
    results = [rate(size, other) for other in ({}, axes) for size in (64, 512, 1500)]
    drawn = {section.name: charts for section, charts in section_charts(Content.of(results))}
    assert {"size", "launches"} <= drawn.keys()
    for name, place in PLACES.items():
        for chart in drawn[name]:
            points = [tuple(row[column] for column in ("series", *place)) for row in values(chart)]
            assert len(set(points)) == len(points), chart.title
            assert len({point[0] for point in points}) == 2
