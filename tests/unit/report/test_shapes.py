# SPDX-License-Identifier: BSD-3-Clause
"""Every published chart comes out of made-up results of its shape."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.report_shapes import charts_of, page
from pytest_icbench.display.theme import series_scales
from tests.charts import compiled
from tests.shapes import PATHS, SHAPES, SIZES

ROOT = Path(__file__).parents[3]
BY_ROW = {shape.row: shape for shape in SHAPES}
#: A part of the titles of the charts that each experiment has.
TITLES = {
    "A1": ["Received: 64 B, bursts of 64"],
    "A2": ["Received against offered: 64 B, bursts of 32", "Received against offered: 512 B, bursts of 32"],
    "A3": ["in Mpps: bursts of 32", "in Gbit/s: bursts of 32"],
    "A4": ["in Mpps: bursts of 256", "in Gbit/s: bursts of 256"],
    "A5": ["in Gbit/s: bursts of 32, 1 pair, flat out, two hosts"],
    "A6": ["(M) against packet size: bursts of 32, 2 pairs", "(M) against packet size: bursts of 32, 4 pairs",
           "(M) against pairs: 64 B", "(T) against pairs: 1500 B"],
    "A7": ["(T) in Gbit/s against pairs: 64 B", "(T) in Gbit/s against pairs: 1500 B"],
    "A8": [f"bursts of {burst}, 1 pair, at 1k/s" for burst in (4, 32, 128)],
    "A9": [f"bursts of {burst}, 1 pair, at 1k/s, two hosts" for burst in (4, 32, 128)],
    "A10": ["Rate against worker cores: 64 B", "Rate against worker cores: 1500 B"],
    "B2": [f"Received against offered: {size} B, bursts of {burst}" for size in (64, 512) for burst in (16, 32, 64)]
          + [f"Received against offered: {path} by burst, {size} B"
             for path in ("sriov", "testpmd", "vpp", "ovs", "snabb") for size in (64, 512)],
    "B3": ["in Mpps: bursts of 32"],
    "C4": ["Received against offered: 64 B, bursts of 32"],
    "E5": ["Error of the goodput against the share: 64 B, bursts of 32, 2 pairs, at 40k/s"],
    "E7": ["Rate against the length of a chain: 256 B, bursts of 32, 1 pair",
           "Median and 99th percentile of the round-trip time: 256 B, single frames, 1 pair, at 1k/s"],
}  # fmt: skip


def test_every_row_is_there() -> None:
    assert list(BY_ROW) == list(TITLES)


@pytest.mark.parametrize("row", TITLES)
def test_its_charts_are_drawn(row: str) -> None:
    charts = charts_of(BY_ROW[row])
    for title in TITLES[row]:
        assert any(title in chart.title for chart in charts), title
    for chart in charts:
        assert chart.rows
        # Of a chart of the first screen the title says what marks mean, and the sentences above it the finding.
        assert chart.text or chart.kind in ("rates", "delays")
        assert chart.to_dict()["aria"]
        compiled(chart)


def test_the_shapes_are_those_of_the_publications() -> None:
    (frames, _) = [chart for chart in charts_of(BY_ROW["A3"]) if chart.kind == "size"]
    at_64 = {row[1]: row[3] for row in frames.rows if row[2] == 64 and row[7] == "measured"}
    assert sorted(at_64, key=lambda name: -at_64[name]) == ["sriov", "basicfwd", "vpp", "ovs", "snabb"] == list(PATHS)
    assert {row[2] for row in frames.rows} == set(SIZES)
    (limit,) = [
        layer["data"]["values"][0]["rate"]
        for chart in charts_of(BY_ROW["A7"])
        if "(T) in Gbit/s against pairs: 1500 B" in chart.title
        for layer in chart.spec["layer"]
        if layer.get("mark", {}).get("type") == "rule" and "data" in layer
    ]
    assert limit == pytest.approx(9.868, abs=1e-3)


def test_bursts_lie_on_top_of_each_other_so_that_no_difference_is_seen() -> None:
    charts = {chart.title: chart for chart in charts_of(BY_ROW["B2"])}
    (chart,) = [chart for title, chart in charts.items() if "ovs by burst, 64 B" in title]
    received = {row[1]: [each[3] for each in chart.rows if each[1] == row[1]] for row in chart.rows}
    assert set(received) == {"b16", "b32", "b64"}
    by_burst = [
        row
        for title, each in charts.items()
        if title.startswith("Received against offered: 64 B, bursts of 16")
        for row in each.rows
    ]
    assert received["b16"] == [row[3] for row in by_burst if row[1] == "ovs" and row[7] == "measured"]
    scales = series_scales(list(received), list(received))
    assert len(set(scales["color"]["range"])) == len(set(scales["shape"]["range"])) == 3
    assert not any("by burst" in chart.title for chart in charts_of(BY_ROW["A2"]))  # which has one


def test_one_page_has_them_all(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / "shapes.html"
    command = [sys.executable, str(ROOT / "benchmarks" / "report_shapes.py"), str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "charts of 15 experiments" in done.stdout
    text = path.read_text(encoding="utf-8")
    assert text == page()
    for row in TITLES:
        assert f'<li><a href="#{row}">' in text
        assert f'<section id="{row}"' in text
