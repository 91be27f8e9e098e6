# SPDX-License-Identifier: BSD-3-Clause
"""What the HTML report says and draws, out of results."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.case import Case, Rate
from pytest_icbench.history.changes import Level
from pytest_icbench.history.trends import Change, Point, Trend
from pytest_icbench.report import html, overview, published, vega
from pytest_icbench.report.figures import all_series, rate_figures
from pytest_icbench.report.figures_history import history_figures
from pytest_icbench.report.figures_latency import latency_figures
from pytest_icbench.report.repeat import repeat_command
from pytest_icbench.report.series import MOST_POINTS, Windows, curve_of, thinned, windows_of
from pytest_icbench.stats import Histogram
from tests.measurements import launch, measurement

HOSTILE = "<script>document.title='owned'</script>\"'&\x1b[31m\x00 中文 \u202e"


def result(case: Case, **changed: Any) -> dict[str, Any]:
    return measurement(case, **changed).to_dict()


def at(pps: float) -> dict[str, Any]:
    return {"throughput_pps": pps, "throughput_pps_low": pps * 0.98, "throughput_pps_high": pps * 1.02}


def data_of(page: html.Page) -> Any:
    found = re.search(r'id="ic-data">(.*?)</script>', html.body(page), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_load_figure_has_each_switch_as_a_line_with_intervals() -> None:
    results = [
        result(Case(switch, rate=Rate(load)), **at(min(load, most)))
        for switch, most in (("ovs", 3e6), ("vpp", 5e6))
        for load in (1_000_000, 2_000_000, 4_000_000)
    ]
    (figure,) = rate_figures(results, all_series(results))
    assert figure.kind == "load"
    assert [row[1:6] for row in figure.rows if row[1] == "ovs"][-1] == ("ovs", 4.0, 3.0, 2.94, 3.06)
    assert len(figure.rows) == 6


def test_size_figures_are_in_frames_and_in_bits_and_published_figures_are_marked() -> None:
    results = [result(Case("testpmd", packet_size=size), **at(9e6)) for size in (64, 1500)]
    frames, bits = rate_figures(results, all_series(results))
    assert "Mpps" in frames.title
    assert "Gbit/s" in bits.title
    (other,) = [row for row in frames.rows if row[7] != "measured"]
    assert other[3] == 12.8
    assert "other hardware" in other[1]
    assert "2019" in other[7]


def test_pairs_have_mean_and_total() -> None:
    results = [result(Case("ovs", pairs=pairs), **at(6e6)) for pairs in (1, 2)]
    assert {figure.id[-1] for figure in rate_figures(results, ["ovs"]) if figure.kind == "pairs"} == {"m", "t"}


def test_what_is_no_number_is_not_drawn() -> None:
    results = [result(Case("ovs"), verdict="INVALID", reason="died"), result(Case("vpp"), **at(5e6))]
    for figure in rate_figures(results, all_series(results)):
        assert {row[1] for row in figure.rows} >= {"vpp"}
        assert "ovs" not in {row[1] for row in figure.rows}


def test_figures_of_a_latency_case() -> None:
    counts = ((1000, 900), (2000, 90), (9000, 10))
    rtt = Histogram(counts, 990, 9000, 1200.0, 3)
    case = Case("ovs", dimension="latency", rate=Rate(1000))
    results = [result(case, per_launch=(launch(rtt=rtt),), rtt_mean_ns=1200.0, rtt_p99_ns=2000.0)]
    curve = curve_of(results[0])
    assert curve[0] == (1.0, 1000.0)
    assert dict(curve)[10.0] == 1000.0
    assert max(beyond for beyond, _ in curve) <= 100  # ten requests beyond it at least
    figures = latency_figures(results, ["ovs"], {0: curve})
    assert [figure.kind for figure in figures] == ["latency", "latency", "percentiles"]
    assert [row[3] for row in figures[-1].rows if row[2] == 10.0] == ["90 %"]


def test_lost_requests_are_slower_than_any_percentile_of_the_curve() -> None:
    rtt = Histogram(((1000, 500),), 990, 1000, 1000.0, 3, lost=500)
    found = curve_of(result(Case("ovs", dimension="latency"), per_launch=(launch(rtt=rtt),)))
    assert max(beyond for beyond, _ in found) <= 2


def test_windows_are_put_together_beyond_a_number() -> None:
    found = windows_of(measurement(per_launch=tuple(launch(index=number, windows=400) for number in range(6))))
    assert found is not None
    assert found.count <= MOST_POINTS
    assert thinned(found, 60).count <= 66
    assert Windows.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_ranking_says_who_leads_and_whether_intervals_tell() -> None:
    results = [result(Case("ovs"), **at(5e6)), result(Case("vpp"), **at(10e6)), result(Case("direct"), **at(20e6))]
    (found,) = overview.rankings(results)
    assert found.winner == "vpp"
    assert "2.0 times ovs" in found.lead
    results[1] = result(Case("vpp"), **at(5.01e6))
    assert "intervals overlap" in overview.rankings(results)[0].lead


def test_at_least_is_not_ranked() -> None:
    results = [result(Case("ovs"), **at(5e6)), result(Case("vpp"), lower_bound=True, **at(4e6))]
    (found,) = overview.rankings(results)
    assert found.winner == "ovs"
    assert "1 with “at least” not ranked" in found.lead
    results[1] = result(Case("vpp"), lower_bound=True, **at(10e6))
    (found,) = overview.rankings(results)
    assert found.winner == "not told"
    assert found.lead.startswith("vpp takes ≥ 10 Mpps")


def test_nobody_leads_before_itself() -> None:
    (found,) = overview.rankings([result(Case("ovs"), **at(5e6)), result(Case("ovs"), **at(4e6))])
    assert (found.winner, found.lead) == ("ovs", "")


def test_a_shorter_time_wins_by_its_share_of_the_longer() -> None:
    def times(switch: str, ns: float) -> dict[str, Any]:
        figures = {"rtt_p50_ns": ns, "rtt_p50_ns_low": ns, "rtt_p50_ns_high": ns}
        return result(Case(switch, dimension="latency", rate=Rate(1000)), **figures)

    (found,) = overview.rankings([times("ovs", 40_000.0), times("vpp", 10_000.0)])
    assert (found.winner, found.lead) == ("vpp", "75.0 % below ovs")


def test_published_figures_belong_to_the_same_experiment_only() -> None:
    assert [each.row for each in published.stated(result(Case("linux-bridge", burst=64, rate=Rate(1_000_000))))] == [
        "A1",
        "B1",
    ]
    assert published.stated(result(Case("testpmd", pairs=2))) == []
    assert published.stated(result(Case("testpmd", packet_size=128))) == []


def test_hostile_text_cannot_leave_its_place() -> None:
    page = html.Page()
    treatment = {"switch": {"version": HOSTILE}}
    page.add(f"test.py::test[{HOSTILE}]", result(Case("ovs"), reason=HOSTILE, verdict="INVALID", treatment=treatment))
    page.skipped.append((HOSTILE, HOSTILE))
    page.repeats[f"test.py::test[{HOSTILE}]"] = HOSTILE
    for markup in (html.summary(page), html.row_lines(page, [0]), html.body(page).replace(vega.script(), "")):
        assert "<script>document" not in markup
        assert "\x1b" not in markup
        assert "\x00" not in markup
    facts = dict(data_of(page)["cases"][0]["facts"])
    assert "<script>" in facts["switch version"]
    assert "中文" in facts["switch version"]


def test_every_figure_compiles() -> None:
    compiler = pytest.importorskip("vl_convert")
    results = [result(Case("ovs", rate=Rate(load)), **at(1e6)) for load in (1_000_000, 2_000_000)]
    results += [result(Case("testpmd"), **at(9e6)), result(Case("testpmd", pairs=2), **at(9e6))]
    rtt = Histogram(((1000, 900), (2000, 100)), 990, 2000, 1100.0, 3)
    results.append(result(Case("ovs", dimension="latency"), per_launch=(launch(rtt=rtt),), rtt_mean_ns=1100.0))
    page = html.Page()
    for each in results:
        page.add("t", each)
    drawn = html.figures(page)
    assert {figure.kind for figure in drawn} == {"load", "size", "pairs", "latency", "percentiles"}
    for figure in drawn:
        values = [dict(zip((column.name for column in figure.columns), row, strict=True)) for row in figure.rows]
        compiler.vegalite_to_vega({**figure.spec, "data": {"values": values}, "width": 400})


def trend(values: list[float]) -> Trend:
    points = tuple(
        Point(1000.0 + 86400 * day, value, value * 0.99, value * 1.01, "r", "3.1", "PASS")
        for day, value in enumerate(values)
    )
    half = len(values) // 2
    found = (Level(0, half - 1, values[0]), Level(half, len(values) - 1, values[-1]))
    change = Change(half, points[half].at, values[0], values[-1], values[-1] / values[0] - 1, False, "3.1", "3.2")
    case = Case("ovs").id
    return Trend(case, "throughput", "frmol", "throughput_pps", False, "h", "cpu", points, found, (change,))


def test_history_shows_levels_and_changes() -> None:
    (figure,) = history_figures([trend([5e6] * 6 + [4e6] * 6)])
    assert "-20.0% (worse), 5 to 4 Mpps, version 3.1 to 3.2" in figure.text
    assert [row[6] for row in figure.rows if row[6]] == ["-20.0% worse"]
    assert {row[5] for row in figure.rows} == {5.0, 4.0}
    compiler = pytest.importorskip("vl_convert")
    values = [dict(zip((column.name for column in figure.columns), row, strict=True)) for row in figure.rows]
    compiler.vegalite_to_vega({**figure.spec, "data": {"values": values}, "width": 400})


def test_a_single_result_has_no_history() -> None:
    assert history_figures([replace(trend([5e6] * 2), points=trend([5e6] * 2).points[:1])]) == []


def test_without_the_library_the_page_says_why_there_are_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "available", lambda: False)
    vega.script.cache_clear()
    page = html.Page()
    page.add("t", result(Case("ovs")))
    text = html.body(page)
    vega.script.cache_clear()
    assert "pip install &#x27;pytest-icbench[html]&#x27;" in text
    assert len(text) < 100_000


def test_repeating_takes_what_bears_on_the_case() -> None:
    argv = ["scenarios", "-k", "ovs and 64B", "-x", "--icbench-ring", "512", "--icbench-touch", "--icbench-budget=20m"]
    argv += ["-o", "icbench_node=netns", "--icbench-vpp=/opt/my vpp", "--html=r.html", "--icbench-resume", "latest"]
    command = repeat_command("test_x.py::test_a[ovs-64B]", argv, "/a b")
    assert command == (
        "cd '/a b' && pytest 'test_x.py::test_a[ovs-64B]' --icbench-ring 512 --icbench-touch -o icbench_node=netns"
        " '--icbench-vpp=/opt/my vpp'"
    )
