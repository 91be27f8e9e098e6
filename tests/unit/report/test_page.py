# SPDX-License-Identifier: BSD-3-Clause
"""What the HTML report says and draws, out of results."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.display.chart import Figure
from pytest_icbench.kinds.latency.latency_charts import curve_of
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.trials import BackToBack, LossEvent, SearchLog
from pytest_icbench.plugin.repeat import repeat_command
from pytest_icbench.report import overview
from pytest_icbench.report.figure import published, registry
from pytest_icbench.report.figure.history_charts import history_figures
from pytest_icbench.report.figure.registry import SECTIONS, Content, case_charts, section_charts
from pytest_icbench.report.figure.series import MOST_POINTS, Windows, thinned, windows_of
from pytest_icbench.report.html import page as html
from pytest_icbench.report.html import parts
from pytest_icbench.report.html.body import body, summary
from pytest_icbench.report.trends import Change, Point, Trend
from pytest_icbench.stats.change_points import Level
from pytest_icbench.stats.quantiles import Estimate, Histogram
from tests.measurements import launch, measurement, result, side_by_side

HOSTILE = "<script>document.title='owned'</script>\"'&\x1b[31m\x00 中文 \u202e"


def at(pps: float) -> dict[str, Any]:
    return {"throughput_pps": pps, "throughput_pps_low": pps * 0.98, "throughput_pps_high": pps * 1.02}


def data_of(page: html.Page) -> Any:
    found = re.search(r'id="ic-data">(.*?)</script>', body(page), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def charts_of(results: list[Result], *places: str) -> list[Figure]:
    """The charts below the first screen, or in other places."""
    drawn = section_charts(Content.of(results))
    return [chart for section, charts in drawn if section.place in (places or ("charts",)) for chart in charts]


def complete(figure: Figure) -> dict[str, Any]:
    """The specification as the page fills it in, without its own scale."""
    values = [dict(zip((column.name for column in figure.columns), row, strict=True)) for row in figure.rows]
    spec = json.loads(json.dumps(figure.spec).replace('"@scale"', '"name"').replace("@kind", ""))
    return {**spec, "data": {"values": values}, "width": 400, "height": figure.height}


def test_load_figure_has_each_switch_as_a_line_with_intervals() -> None:
    results = [
        result(Case(switch, Frames(rate=Rate(load))), **at(min(load, most)))
        for switch, most in (("ovs", 3e6), ("vpp", 5e6))
        for load in (1_000_000, 2_000_000, 4_000_000)
    ]
    (figure,) = charts_of(results)
    assert figure.kind == "load"
    assert [row[1:6] for row in figure.rows if row[1] == "ovs"][-1] == ("ovs", 4.0, 3.0, 2.94, 3.06)
    assert len(figure.rows) == 6


def test_size_figures_are_in_frames_and_in_bits_and_published_figures_are_marked() -> None:
    results = [result(Case("testpmd", Frames(Traffic(size))), **at(9e6)) for size in (64, 512, 1500)]
    assert charts_of(results[:2]) == [], "the first screen has both sizes"
    frames, bits = charts_of(results)
    assert "Mpps" in frames.title
    assert "Gbit/s" in bits.title
    (other,) = [row for row in frames.rows if row[7] != "measured"]
    assert other[3] == 12.8
    assert "other hardware" in other[1]
    assert "2019" in other[7]


def test_pairs_have_mean_and_total() -> None:
    results = [result(Case("ovs", pairs=pairs), **at(6e6)) for pairs in (1, 2)]
    assert {figure.id[-1] for figure in charts_of(results) if figure.kind == "pairs"} == {"m", "t"}


def test_what_is_no_number_is_not_drawn() -> None:
    results = [result(Case("ovs"), verdict="INVALID", reason="died"), result(Case("vpp"), **at(5e6))]
    for figure in charts_of(results):
        assert {row[1] for row in figure.rows} >= {"vpp"}
        assert "ovs" not in {row[1] for row in figure.rows}


def test_figures_of_a_latency_case() -> None:
    counts = ((1000, 900), (2000, 90), (9000, 10))
    rtt = Histogram(counts, 990, 9000, 1200.0, 3)
    case = Case("ovs", Frames(rate=Rate(1000)), dimension="latency")
    results = [result(case, per_launch=(launch(rtt=rtt),), rtt_mean_ns=1200.0, rtt_p99_ns=30_000.0)]
    curve = curve_of(results[0])
    assert curve[0] == (1.0, 1000.0)
    assert dict(curve)[10.0] == 1000.0
    assert max(beyond for beyond, _ in curve) <= 100  # ten requests beyond it at least
    figures = charts_of(results)
    assert [figure.kind for figure in figures] == ["latency", "percentiles", "percentiles"]
    measured = ("ovs-64B-b32-1vs1-R1k", "ovs", 64, 20.0, 19.0, 21.0, False, "measured")
    assert figures[0].rows == ((*measured, "ovs", 0, "20 µs", 30.0),)
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


def test_the_page_ranks_every_path_and_keeps_at_least_beside_published_values() -> None:
    page = html.Page()
    page.add("t", result(Case("testpmd"), lower_bound=True, **at(11.49e6)))
    page.add("t", result(Case("ovs"), **at(1e6)))
    shown = summary(page)
    assert "<b>Fastest, 64 B:</b> testpmd with 11.5 Mpps (≥ 11.3 to 11.7), at least 11 times ovs." in shown
    assert '<td role="cell" data-head="Measured here">≥ 11.26 Mpps</td>' in body(page)


def beside(size: int = 64, decision: str = "REGRESSED") -> list[Result]:
    """A base and its candidate, slower by a tenth."""
    case = Case("ovs", Frames(Traffic(size)), candidate="new")
    found = side_by_side(case, decision, 0.9)
    judged = {"verdict": decision, "decision": decision, "side_by_side": found, "ratio_to_base": 0.9}
    return [result(case.base, **at(5e6)), result(case, **at(4.5e6), **judged)]


def test_a_candidate_is_drawn_apart_from_its_base_and_not_ranked() -> None:
    results = [*beside(64), *beside(512)]
    assert Content.of(results).order == ["ovs", "ovs:new"]
    for figure in (chart for chart in charts_of(results) if chart.kind == "size"):
        assert [(row[1], row[2]) for row in figure.rows] == [
            (name, size) for name in ("ovs", "ovs:new") for size in (64, 512)
        ]
    (ranking, _) = overview.rankings(results)
    assert (ranking.winner, ranking.lead) == ("ovs", "")
    assert [rank.split(":")[0] for rank in ranking.ranks] == ["ovs"]


def test_the_summary_has_the_decision_for_each_version_and_its_error_rate() -> None:
    page = html.Page()
    for each in [*beside(64), *beside(512, "PASS")]:
        page.add("t", each)
    reported = summary(page)
    decided = "ovs:new against its base: REGRESSED.</b> 1 REGRESSED; 1 PASS of 2 comparisons."
    assert f"<b class=ic-REGRESSED>{decided}" in reported
    assert "False alarms of the whole session (2 comparisons): at most 1 %" in reported
    assert "ovs:new-64B-b32-1vs1-Rmax rate -10.0 % (-11.0 to -9.0)" in reported
    plain = html.Page()
    plain.add("t", result(Case("ovs")))
    assert "side by side" not in summary(plain)


def test_a_row_with_two_versions_says_which_is_which() -> None:
    page = html.Page()
    test = "t.py::test_a[ovs:new-64B-b32-1vs1-Rmax]"
    for each in beside():
        page.add(test, each)
    page.add("other", beside()[0])
    assert html.lines_place(page.places_of(test)) == "<ul class=ic-lines data-places=0,1></ul>"
    base, candidate, other = data_of(page)["cases"]
    assert (base["case"], base["verdict"]) == ("ovs-64B-b32-1vs1-Rmax", "")
    assert (candidate["case"], candidate["verdict"]) == ("ovs:new-64B-b32-1vs1-Rmax", "REGRESSED")
    assert "anchor" not in base
    assert other["anchor"] == "case-throughput-ovs-64B-b32-1vs1-Rmax--2"


def test_published_figures_belong_to_the_same_experiment_only() -> None:
    assert [
        each.row for each in published.stated(result(Case("linux-bridge", Frames(burst=64, rate=Rate(1_000_000)))))
    ] == [
        "A1",
        "B1",
    ]
    assert published.stated(result(Case("testpmd", pairs=2))) == []
    assert published.stated(result(Case("testpmd", Frames(Traffic(128))))) == []
    assert published.stated(result(Case("testpmd", candidate="new"))) == []


def test_statements_about_two_hosts_stand_beside_cases_on_two_hosts_only() -> None:
    def rows(*, remote: bool) -> list[str]:
        cases = [Case(switch, Frames(Traffic(64)), remote=remote) for switch in ("ovs", "vpp")]
        return [row for row, _, _ in published.statements([result(case) for case in cases])]

    assert rows(remote=False) == ["A3", "B3"]
    assert rows(remote=True) == ["A5", "A7"]


def test_every_experiment_that_a_scenario_reproduces_has_its_published_result() -> None:
    texts = [path.read_text() for path in (Path(__file__).parents[3] / "scenarios").glob("test_*.py")]
    reproduced = {row for text in texts for line in re.findall(r"Reproduces: (.+)", text) for row in line.split(", ")}
    known = json.loads(Path(published.__file__).with_name("published.json").read_text())
    stated = {entry["row"] for entry in (*known["figures"], *known["statements"])}
    assert reproduced - stated == {"A10", "C5", "E9"}  # future work, and a text without figures


def test_hostile_text_cannot_leave_its_place() -> None:
    page = html.Page()
    treatment = {"switch": {"version": HOSTILE}}
    page.add(f"test.py::test[{HOSTILE}]", result(Case("ovs"), reason=HOSTILE, verdict="INVALID", treatment=treatment))
    page.skipped.append((HOSTILE, HOSTILE))
    page.repeats[f"test.py::test[{HOSTILE}]"] = HOSTILE
    for markup in (summary(page), body(page).replace(parts.chart_script(), "")):
        assert "<script>document" not in markup
        assert "&lt;script&gt;document" in markup or "\\u003cscript\\u003edocument" in markup
        assert "\x1b" not in markup
        assert "\x00" not in markup
    facts = dict(data_of(page)["cases"][0]["facts"])
    assert "<script>" in facts["switch version"]
    assert "中文" in facts["switch version"]


def facts_of(found: Result) -> dict[str, str]:
    page = html.Page()
    page.add("t", found)
    return dict(data_of(page)["cases"][0]["facts"])


def test_latency_has_its_floor_first_frames_and_variation_among_its_facts() -> None:
    figures = {"rtt_first_p50_ns": 15e3, "rtt_first_samples": 1500, "floor_p50_ns": 9e3, "floor_p99_ns": 12e3}
    case = Case("ovs", Frames(burst=4, rate=Rate(1000)), dimension="latency")
    facts = facts_of(result(case, pdv_p50_ns=1e3, pdv_p99_9_ns=8e3, floor_samples=4000, **figures))
    assert facts["round trips"] == "p50 20 µs, 6,000 answers"
    assert facts["first of a burst"] == "p50 15 µs, 1,500 answers"
    assert facts["delay variation"] == "p50 1 µs, p99.9 8 µs, round-trip time less the least (RFC 5481)"
    assert facts["floor"] == "p50 9 µs, p99 12 µs, 4,000 answers, of the reference link, with no switch between"
    assert not {"first of a burst", "delay variation", "floor", "drift", "search"} & set(facts_of(result(case)))


def test_drift_and_a_search_are_among_the_facts() -> None:
    facts = facts_of(result(Case("ovs"), drift=-0.031))
    assert facts["drift"].startswith("drifted by -3.1%")
    search = SearchLog("csit", 0.0, 0.5, 0.005, 1.0, 1.0, 21.0, 1e4, 1e7, "case", False, "ended after 9 s")
    found = result(
        Case("ovs", Frames(rate=Rate(loss_ratio=0.0))),
        search=search,
        search_lower_pps=5.033e6,
        search_upper_pps=5.05e6,
    )
    facts = facts_of(found)
    assert facts["value"].startswith("5 Mpps (bounds 5.033 to 5.05)")
    assert facts["relevant bounds"].startswith("lower 5.033 Mpps, upper 5.05 Mpps")
    assert facts["search"] == "ended after 9 s"
    assert "upper 5.05 Mpps" in facts_of(found.with_figures(throughput_pps=Estimate(5e6)))["relevant bounds"]


def test_losses_and_trains_are_in_the_row_and_among_the_facts() -> None:
    event = LossEvent(pair=1, started_at=1.7e9, duration_s=2.0, windows=2, lost=3, refused=1)
    page = html.Page()
    page.add("soak", result(Case("ovs"), loss_events=(event,), loss_event_count=1))
    trains = BackToBack(1500.4, 1400, 1600, 51.2, 50, False, 12.5e6, 2e6, 120e-6, 100e-6)
    page.add("trains", result(Case("ovs"), back_to_back=trains, throughput_pps=None))
    assert "1 loss event" in data_of(page)["cases"][0]["line"]
    assert "1,500 frames back to back" in data_of(page)["cases"][1]["line"]
    soak, train = (dict(case["facts"]) for case in data_of(page)["cases"])
    assert soak["losses"] == "1 loss event: 2023-11-14 22:13:20.000 UTC, 2 s, 3 lost, 1 refused"
    assert train["back to back"].startswith("1,500 frames back to back without loss")


def test_every_figure_compiles() -> None:
    compiler = pytest.importorskip("vl_convert")
    results = [result(Case("ovs", Frames(rate=Rate(load))), **at(1e6)) for load in (1_000_000, 2_000_000)]
    results += [result(Case("testpmd"), **at(9e6)), result(Case("testpmd", pairs=2), **at(9e6))]
    rtt = Histogram(((1000, 900), (2000, 100)), 990, 2000, 1100.0, 3)
    results.append(result(Case("ovs", dimension="latency"), per_launch=(launch(rtt=rtt),), rtt_mean_ns=1100.0))
    page = html.Page()
    for each in results:
        page.add("t", each)
    drawn = charts_of(page.results, "charts", "first")
    assert {figure.kind for figure in drawn} == {
        *("rates", "delays", "load", "size", "pairs", "latency", "percentiles")
    }
    for figure in drawn:
        compiler.vegalite_to_vega(complete(figure))


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
    compiler.vegalite_to_vega(complete(figure))


def test_a_small_step_is_seen_and_the_year_is_on_the_axis() -> None:
    (figure,) = history_figures([trend([5e6] * 6 + [4.85e6] * 6)])
    encoding = figure.spec["layer"][0]["encoding"]
    low, high = encoding["y"]["scale"]["domain"]
    assert low < 4.85 * 0.99
    assert high > 5 * 1.01
    assert high - low < 0.6  # the step of 3 % takes a quarter of the height
    assert encoding["x"]["axis"]["format"] == "%Y-%m-%d"
    (short,) = history_figures([trend([5e6] * 3)])
    assert short.spec["layer"][0]["encoding"]["x"]["axis"]["format"] == "%Y-%m-%d %H:%M"


def test_hosts_with_one_processor_have_titles_of_their_own() -> None:
    one, other = trend([5e6] * 3), replace(trend([6e6] * 3), host="i")
    assert [figure.title for figure in history_figures([one])] == ["ovs-64B-b32-1vs1-Rmax: throughput on cpu"]
    assert [figure.title.partition(" on ")[2] for figure in history_figures([one, other])] == [
        "cpu (host h)",
        "cpu (host i)",
    ]


def test_the_summary_names_the_cases_that_are_not_as_they_should_be() -> None:
    page = html.Page()
    bad: dict[str, Any] = {"verdict": "REGRESSED", "reason": "too slow", "waiver": "until 2999"}
    for each in (result(Case("ovs"), verdict="PASS"), result(Case("vpp"), **bad), result(Case("snabb"))):
        page.add("t", each)
    table = re.findall(r'<td role="cell" data-head="(.*?)">(.*?)</td>', summary(page))[:4]
    assert table[:3] == [
        ("Verdict", "REGRESSED, waived"),
        ("Case", '<a href="#case-throughput-vpp-64B-b32-1vs1-Rmax">vpp-64B-b32-1vs1-Rmax, throughput</a>'),
        ("Why", "too slow"),
    ]
    assert len(table) == 3


def test_a_single_result_has_no_history() -> None:
    assert history_figures([replace(trend([5e6] * 2), points=trend([5e6] * 2).points[:1])]) == []


def test_without_the_library_the_page_says_why_there_are_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "charts_available", lambda: False)
    parts.chart_script.cache_clear()
    page = html.Page()
    page.add("t", result(Case("ovs")))
    text = body(page)
    parts.chart_script.cache_clear()
    assert "pip install &#x27;pytest-icbench[html]&#x27;" in text
    assert len(text) < 100_000


def test_repeating_takes_what_bears_on_the_case() -> None:
    argv = [
        "scenarios",
        "-k",
        "ovs and 64B",
        "-x",
        "--icbench-ring",
        "512",
        "--icbench-check-payload",
        "--icbench-budget=20m",
    ]
    # Neither a baseline nor a history is changed by repeating.
    argv += ["--icbench-save", "main", "--icbench-history=h.jsonl", "-o", "icbench_save=main", "-oicbench_history=h"]
    argv += ["--override-ini=icbench_history=h", "--icbench-compare=main"]
    argv += ["-o", "icbench_node=netns", "--icbench-vpp=/opt/my vpp", "--html=r.html", "--icbench-resume", "latest"]
    command = repeat_command("test_x.py::test_a[ovs-64B]", argv, "/a b")
    assert command == (
        "cd '/a b' && pytest 'test_x.py::test_a[ovs-64B]' --icbench-ring 512 --icbench-check-payload"
        " --icbench-compare=main"
        " -o icbench_node=netns '--icbench-vpp=/opt/my vpp'"
    )


def test_a_chart_is_one_row_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)

    def chart(one: Result) -> Figure | None:
        spec: dict[str, Any] = {"mark": "point"}
        return None if one.switch == "vpp" else Figure(f"path-{one.case}", "path", "Path", "", spec, (), ())

    monkeypatch.setattr(registry, "CASE_CHARTS", (chart,))
    page = html.Page()
    for switch in ("ovs", "vpp", "testpmd"):
        page.add("t", result(Case(switch), **at(5e6)))
    assert case_charts(page.results[1]) == []
    data = data_of(page)
    first, none, third = (case.get("charts", []) for case in data["cases"])
    assert none == []
    assert first[0]["id"] == "path-ovs-64B-b32-1vs1-Rmax"
    assert data["specs"][first[0]["spec"]] == {"mark": "point"}
    assert first[0]["spec"] == third[0]["spec"]  # kept once
    assert [section["name"] for section in data["sections"]] == ["rates", "size"]
    assert all(chart["kind"] == section["name"] for section in data["sections"] for chart in section["charts"])
