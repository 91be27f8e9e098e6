# SPDX-License-Identifier: BSD-3-Clause
"""Before and after: changes against a base, a baseline and another run, in charts, tables and files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.cli.main import main
from pytest_icbench.display.table import In
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Baseline
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report import headline, overview
from pytest_icbench.report.answer import answer
from pytest_icbench.report.columns import columns
from pytest_icbench.report.figure.dots import dot_charts
from pytest_icbench.report.figure.forest import MOST, forest_figures, without_common
from pytest_icbench.report.figure.registry import Content
from pytest_icbench.report.html.compare import compare_page
from pytest_icbench.report.markdown import compare_markdown
from pytest_icbench.report.side_comparison import compare_sides
from pytest_icbench.report.value_changes import against_first, change_of, changed, comparisons
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.baselines import save
from pytest_icbench.store.thresholds import Thresholds
from tests.baselines import entry, measured, scaled, with_sessions
from tests.charts import compiled
from tests.measurements import measurement, result, side_by_side

STORED = Path(__file__).parents[1] / "store" / "stored_run"


def candidate(size: int, decision: str, ratio: float, **more: Any) -> list[Result]:
    """A base, and a candidate with another version."""
    case = Case("ovs", Frames(Traffic(size)), candidate="new")
    comparison = side_by_side(case, decision, ratio)
    treatment = {
        "switch": {"version": "3.3.0", "config": {"rxqs": 2}},
        "candidate": {"target": "ovs", "kind": "binary", "value": "ovs-vswitchd", "sha256": "0123456789abcdef"},
    }
    base = {"switch": {"version": "3.1.0", "config": {"rxqs": 2}}}
    facts = {"verdict": decision, "decision": decision, "side_by_side": comparison, "treatment": treatment, **more}
    return [result(case.base, treatment=base), result(case, **facts)]


def against_main(*launches: float, **more: Any) -> Result:
    """A result that the gate compared with the baseline main; the default margin."""
    now = measured(launches=[5e6 * factor for factor in launches], **more)
    comparison = Comparer(Baseline("main", (with_sessions(entry()),))).compare(now, Margins(), retest=True)
    assert comparison is not None
    verdict = comparison.findings[0].verdict
    judged: dict[str, Any] = {"verdict": verdict, "baseline": "main", "findings": comparison.findings}
    return Result.of(measured(launches=[5e6 * factor for factor in launches], **judged, **more))


SAME, SLOWER, FASTER = (1.0,) * 7 + (1.001,), (0.8,) * 7 + (0.801,), (1.2,) * 7 + (1.201,)


def test_a_candidate_has_the_numbers_of_the_pairs_that_decide_and_the_worst_case_is_first() -> None:
    results = [*candidate(64, "PASS", 0.99), *candidate(512, "IMPROVED", 1.1), *candidate(1500, "REGRESSED", 0.9)]
    (comparison,) = comparisons(results)
    assert [change.verdict for change in comparison.changes] == ["REGRESSED", "IMPROVED", "PASS"]
    worst = comparison.changes[0]
    assert (worst.text, worst.values) == ("-10.0 % (-11.0 to -9.0)", "5 to 4.5 Mpps")
    assert (worst.limit, worst.gain) == (0.97, 1.03)
    assert comparison.counts == "1 REGRESSED, 1 IMPROVED, 1 PASS"


def test_it_says_what_the_candidate_is() -> None:
    (comparison,) = comparisons(candidate(64, "PASS", 1.0))
    assert comparison.title == "ovs:new against its base"
    assert comparison.facts == (
        "ovs:new is the binary ovs-vswitchd (sha256 0123456789ab)",
        "switch version: 3.1.0 before, 3.3.0 now",
    )


def test_a_candidate_that_is_no_number_has_a_row_without_a_value() -> None:
    case = Case("ovs", candidate="new")
    (comparison,) = comparisons([result(case, verdict="INVALID", decision="INVALID", reason="died")])
    assert [(change.verdict, change.ratio, change.note) for change in comparison.changes] == [("INVALID", None, "died")]


@pytest.mark.parametrize(("launches", "verdict"), [(SAME, "PASS"), (SLOWER, "REGRESSED"), (FASTER, "IMPROVED")])
def test_a_baseline_s_change_is_in_every_table_for_every_verdict(launches: tuple[float, ...], verdict: str) -> None:
    found = against_main(*launches)
    change = change_of(found)
    assert change is not None
    assert change.verdict == verdict
    assert change.ratio is not None
    for where in (In.THROUGHPUT, In.MARKDOWN, In.PAGE):
        assert any(f"{(change.ratio - 1) * 100:+.1f} %" in column.text(found) for column in columns(where)), where


def test_the_forest_names_what_regressed_and_improved_with_the_allowance_and_compiles() -> None:
    results = [*candidate(64, "PASS", 0.99), *candidate(512, "IMPROVED", 1.1), *candidate(1500, "REGRESSED", 0.9)]
    (figure,) = forest_figures(comparisons(results))
    assert "REGRESSED: ovs:new-1500B-b32-1vs1-Rmax -10.0 % (-11.0 to -9.0), 5 to 4.5 Mpps." in figure.text
    assert "IMPROVED: ovs:new-512B-b32-1vs1-Rmax +10.0 %" in figure.text
    assert "switch version: 3.1.0 before, 3.3.0 now" in figure.text.lower()
    assert figure.title.endswith("all with b32 1vs1 Rmax")
    assert [row[1] for row in figure.rows] == ["ovs:new-1500B", "ovs:new-512B", "ovs:new-64B"]
    assert [row[7].split()[-1] for row in figure.rows] == ["REGRESSED", "IMPROVED", "PASS"]
    (band,) = [layer for layer in figure.spec["layer"] if layer["mark"].get("type") == "rect"]
    (ends,) = band["data"]["values"]
    assert (ends["ratio"], ends["end"]) == (0.97, 1.03)
    compiled(figure)


def test_rates_and_times_have_charts_of_their_own_because_worse_is_elsewhere() -> None:
    case = Case("ovs", Frames(rate=Rate(1000)), dimension="latency", candidate="new")
    slower = side_by_side(case, "REGRESSED", 1.2, figure="rtt_p50_ns", base_value=20e3)
    times = [result(case.base), result(case, side_by_side=slower, decision="REGRESSED")]
    rate, time = forest_figures(comparisons([*candidate(64, "PASS", 1.0), *times]))[::-1]
    assert "worse is to the left" in rate.text
    assert "worse is to the right" in time.text
    assert time.rows[0][8:10] == (20.0, 24.0)
    assert [column.title for column in time.columns if column.name == "now"] == ["now, µs"]


def test_a_far_change_has_a_logarithmic_axis_and_many_rows_are_cut() -> None:
    results = [item for size in range(64, 64 + MOST + 5) for item in candidate(size, "REGRESSED", 0.9)]
    (figure,) = forest_figures(comparisons([*results, *candidate(1500, "REGRESSED", 0.2)]))
    assert len(figure.rows) == MOST + 6
    assert f"The {MOST} worst of {MOST + 6} are drawn" in figure.text
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in figure.spec["layer"]]
    assert {"log"} == {scale["type"] for scale in scales if "type" in scale}
    compiled(figure)


CASES = st.builds(
    Case,
    st.sampled_from(["ovs", "linux-bridge", "b32"]),
    st.builds(Frames, st.builds(Traffic, st.integers(64, 9000)), st.integers(1, 64)),
    st.integers(1, 4),
)


@given(st.lists(CASES, min_size=1, max_size=6))
def test_labels_stay_as_different_as_their_cases(cases: list[Case]) -> None:
    ids = [case.id for case in cases]
    labels, common = without_common(ids)
    assert len(set(labels)) == len(set(ids))
    for id_, label in zip(ids, labels, strict=True):
        assert sorted([*label.split("-"), *common.split()]) == sorted(id_.split("-"))


def test_of_two_runs_the_second_is_judged_by_the_first_and_ranked_alone() -> None:
    before = [Result.of(measured(), "A"), Result.of(measured(Case("vpp")), "A")]
    version = {"switch": {"version": "3.2"}, "node": "lxc"}
    now = [Result.of(measured(launches=scaled(0.8), treatment=version), "B")]
    now += [Result.of(measured(Case(name)), "B") for name in ("veth", "snabb")]
    results = against_first([*before, *now], "A", "B")
    assert [bool(item.against) for item in results] == [False, False, True, False, False]
    (comparison,) = comparisons(results)
    assert comparison.title == "B against run A"
    assert "switch.version: 3.1 before, 3.2 now" in comparison.facts
    assert [(change.case, change.verdict) for change in comparison.changes] == [
        ("ovs-64B-b32-1vs1-Rmax", "INCONCLUSIVE")  # a run is one session
    ]
    (ranking,) = overview.rankings(results)
    assert [rank.split(":")[0] for rank in ranking.ranks] == ["snabb", "ovs"]
    assert "Fastest in B, 64 B:" in [sentence.lead for sentence in answer(results)]
    assert headline.question(results) == "What changed in B against run A?"
    (finding,) = results[2].against
    assert finding.reason == "few"
    reported = answer(results)[0]
    assert reported.lead == "B against run A: INCONCLUSIVE."
    assert reported.text == "1 INCONCLUSIVE of 1 value."
    tiles = {str(tile.name or tile.number): tile.number for tile in headline.tiles(results, [])}
    assert tiles["INCONCLUSIVE"] == "1"
    assert "no baseline" not in tiles
    assert sum(int(number) for number in tiles.values()) == len(now)
    # What it was before stands in the chart of changes.
    content = Content.of(results)
    (dots,) = dot_charts(content.results, content.order, "throughput")
    assert [row[1] for row in dots.rows] == ["snabb", "ovs", "veth"]


def test_the_report_of_two_runs_says_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        shutil.copytree(STORED, tmp_path / name)
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    out, _ = capsys.readouterr()
    assert "b against run a: " in out
    assert "linux-bridge (b)" in out
    assert "rate, Mpps\n" in out
    assert "the same versions and configuration on both sides" in out
    assert main(["report", str(tmp_path / "a")]) == 0
    assert "against run" not in capsys.readouterr().out


def sides(factor: float) -> tuple[Baseline, Baseline]:
    """Two runs: rates of two cases, one by the factor, and one that only the second run has."""
    big = Case("ovs", Frames(Traffic(1500)))
    time = Case("ovs", Frames(rate=Rate(1000)), dimension="latency")
    before = (entry(), entry(big), entry(time, rtt_p50_ns=15_120.0, rtt_p50_ns_low=15e3, rtt_p50_ns_high=15.2e3))
    now = (
        entry(launches=scaled(factor), treatment={"switch": {"version": "3.2"}, "node": "lxc"}),
        entry(big, launches=scaled(1.2)),
        entry(time, rtt_p50_ns=15_130.0, rtt_p50_ns_low=15e3, rtt_p50_ns_high=15.2e3),
        entry(Case("vpp")),
    )
    return Baseline("old", tuple(map(with_sessions, before))), Baseline("new", now)


def test_two_sides_are_compared_in_the_reader_s_units() -> None:
    found = compare_sides(*sides(0.8), Thresholds())
    assert found.regressed
    place = found.lines.index("median RTT, µs")
    assert found.lines[place + 1].split()[:2] == ["before", "now"]
    assert found.lines[place + 2].split()[:3] == ["ovs-64B-b32-1vs1-R1k", "15.12", "15.13"]
    assert [change.verdict for change in found.comparison.changes] == ["REGRESSED", "NO_BASELINE", "IMPROVED", "PASS"]
    assert any("ovs 3.2" in fact for fact in found.comparison.facts)


def test_the_page_of_a_comparison_has_charts_and_all_changes() -> None:
    page = compare_page(compare_sides(*sides(0.8), Thresholds()).comparison)
    assert "1 REGRESSED, 1 NO_BASELINE, 1 IMPROVED, 1 PASS" in page
    assert '<td role="cell" data-head="Change (interval)">-20.0 % (' in page
    assert "change of the rate" in page
    assert "change of the median RTT" in page
    assert '"aria":"REGRESSED: ovs-64B-b32-1vs1-Rmax -20.0 %' in page
    hostile = Baseline("</script><b>", (entry(),))
    assert "</script><b>" not in compare_page(compare_sides(hostile, hostile, Thresholds()).comparison)


def test_what_holds_for_all_changes_is_said_once_and_runs_by_their_directories() -> None:
    big = Case("ovs", Frames(Traffic(1500)))
    before = Baseline("runs/20260101T120000Z-1/results.jsonl", (entry(), entry(big)), is_run=True)
    now = Baseline("runs/20260102T120000Z-2", (entry(), entry(big)), is_run=True)
    found = compare_sides(before, now, Thresholds())
    note = "too few sessions"
    assert found.comparison.title == "20260102T120000Z-2 against 20260101T120000Z-1"
    assert sum(note in line for line in found.lines) == 1
    assert note in compare_page(found.comparison)
    heads, rows = found.comparison.table()
    assert (heads[-1], {len(row) for row in rows}) == ("Verdict", {5})
    titles = [figure.title for figure in forest_figures([replace(found.comparison, title="")])]
    assert titles == ["Change of the rate, all with b32 1vs1 Rmax"]
    alike = Baseline("elsewhere/20260102T120000Z-2", (entry(),), is_run=True)
    assert compare_sides(alike, now, Thresholds()).comparison.title.endswith(f"{now.name} against {alike.name}")


def test_the_table_of_a_comparison_in_markdown_is_worst_first() -> None:
    lines = compare_markdown(compare_sides(*sides(0.8), Thresholds()).comparison).replace("\\", "").splitlines()
    rows = [line for line in lines if line.startswith("| ") and "---" not in line][1:]
    assert [row.split(" | ")[4] for row in rows] == ["REGRESSED", "NO_BASELINE", "IMPROVED", "PASS"]
    assert rows[0].startswith("| ovs-64B-b32-1vs1-Rmax | rate | 5 to 4 Mpps | -20.0 % (")


def test_compare_writes_both_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(Path("baselines"), "main", [with_sessions(entry())])
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "results.jsonl").write_text(measured(launches=scaled(0.8)).to_json() + "\n")
    assert main(["compare", "main", "new", "--html", "out/c.html", "--markdown", "out/c.md"]) == 1
    assert "REGRESSED" in (tmp_path / "out" / "c.html").read_text()
    assert "**1 REGRESSED**" in (tmp_path / "out" / "c.md").read_text()
    assert main(["compare", "main", "new", "--html", "new"]) == 2
    assert "new cannot be written" in capsys.readouterr().err


def test_a_result_that_was_compared_with_nothing_has_no_change() -> None:
    assert change_of(Result.of(measurement())) is None
    assert comparisons([Result.of(measurement())]) == []


def test_a_caption_has_no_commas_for_values_that_are_not_known() -> None:
    found = result(Case("ovs"), verdict="REGRESSED", baseline="main", ratio_to_baseline=Estimate(0.8, 0.79, 0.81))
    (chart,) = forest_figures(comparisons([found]))
    assert chart.text.startswith("REGRESSED: ovs-64B-b32-1vs1-Rmax -20.0 % (-21.0 to -19.0).")


def test_a_file_of_the_users_is_reported_by_its_name_and_hash() -> None:
    file = {"file": "slow.toml", "sha256": "8986d0990db0ad12ad0c", "content": {"burst": 1}}
    assert changed("x", None, file) == "x: nothing before, slow.toml (sha256 8986d0990db0) now"
    assert changed("x", {"gro": True}, {"gro": False, "tso": True}) == "x: gro True before, gro False, tso True now"
