# SPDX-License-Identifier: BSD-3-Clause
"""The first screen: its question, facts, counts, warnings, answer and dot plots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report import headline, overview, remarks
from pytest_icbench.report.answer import MOST_TRAFFICS, answer
from pytest_icbench.report.figure.dots import dot_charts
from pytest_icbench.report.html.body import summary
from pytest_icbench.report.html.page import Page
from pytest_icbench.report.reported_intervals import deciding
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import result, side_by_side

SKIPS = [
    ("t.py::test_a[vpp-64B-b32-1vs1-Rmax]", "vpp is not installed: build it (docs say how), or name it"),
    ("t.py::test_a[snabb-64B-b32-1vs1-Rmax]", "snabb is not installed: build it"),
    ("t.py::test_a[linux-bridge-udp-mmsg-64B-b32-1vs1-Rmax]", "needs a card: name its PF"),
]


def at(pps: float, **more: Any) -> dict[str, Any]:
    return {"throughput_pps": pps, "throughput_pps_low": pps * 0.98, "throughput_pps_high": pps * 1.02, **more}


def upgrade(ratio: float = 0.9, decision: str = "REGRESSED", **treatment: Any) -> list[Result]:
    """A base whose launches altogether say the contrary of those that decide, and its candidate."""
    case = Case("ovs", candidate="new")
    compared = side_by_side(case, decision, ratio)
    judged = {"verdict": decision, "decision": decision, "side_by_side": compared}
    old, new = ({"switch": {"version": version}} for version in ("3.1.0", "3.3.0"))
    return [
        result(case.base, verdict=None, treatment=old, **at(4.4e6)),
        result(case, treatment=new, **at(4.6e6), **judged),
    ]


def test_the_title_is_the_question() -> None:
    sizes = [result(Case(switch, Frames(Traffic(size)))) for switch in ("ovs", "vpp") for size in (64, 1500)]
    assert headline.question(sizes) == "Which switch? 2 paths, 64 and 1500 bytes"
    assert headline.question([result(Case("ovs"), baseline="main")]) == "Is anything slower than main?"
    assert headline.question(upgrade()) == "Did ovs 3.3.0 regress against 3.1.0?"
    assert headline.question([result(Case("ovs"))]) == "How fast is ovs? 64 bytes"
    many = [result(Case("ovs", Frames(Traffic(size)))) for size in (64, 128, 256, 512)]
    assert headline.question(many) == "How fast is ovs? 4 sizes from 64 to 512 bytes"
    same = [result(Case("ovs")), result(Case("ovs", candidate="new"))]
    assert headline.question(same) == "Did ovs:new regress against ovs?"
    assert headline.question([]) == "Nothing was measured"


def test_thousands_of_cases_are_counted_with_commas() -> None:
    assert headline.tiles([result(Case("ovs"), verdict=Verdict.PASS)] * 5000, [])[0].number == "5,000"


def test_many_equal_paths_are_listed() -> None:
    (ranking,) = overview.rankings([result(Case(name)) for name in ("ovs", "testpmd", "vpp")])
    assert ranking.winner == "ovs, testpmd and vpp"


def test_cases_that_take_turns_add_up() -> None:
    """All begin at the first turn, and none has the time of the others."""
    turns = [result(Case(switch), started_at=1e9, duration_s=50.0) for switch in ("ovs", "veth", "direct")]
    assert headline.facts(turns)[0].endswith("2:30 of measuring")
    pair = [replace(each, started_at=1e9, duration_s=50.0) for each in upgrade()]
    assert headline.facts(pair)[0].endswith("0:50 of measuring")


def test_the_facts_say_when_where_and_what() -> None:
    identity = {"cpu_model": "EPYC", "cpus": 2, "hypervisor": "unknown", "machine": "aa"}
    treatment = {"kernel": "6.1", "dpdk": "22.11", "pytest_icbench": "0.1.0"}
    results = [
        result(Case("ovs"), identity=identity, treatment={**treatment, "switch": {"version": "3.1.0"}}, started_at=1e9),
        result(Case("testpmd"), identity=identity, treatment={**treatment, "switch": {"version": "DPDK 22.11"}}),
        result(Case("veth"), identity=identity, treatment=treatment, started_at=1e9 + 60, duration_s=30.0),
    ]
    assert headline.facts(results, ["run1"]) == [
        "9 Sep 2001, 01:46 UTC, 1:30 of measuring",
        "EPYC, 2 CPUs, virtual machine",
        "Linux 6.1",
        "ovs 3.1.0",
        "DPDK 22.11",
        "dedicated placement",
        "icbench 0.1.0",
        "run run1",
    ]


def test_tiles_count_verdicts_and_say_what_was_not_measured_and_why() -> None:
    tiles = headline.tiles([result(Case("ovs"), verdict="PASS"), result(Case("vpp"), verdict="INVALID")], SKIPS)
    assert [(tile.number, str(tile.name)) for tile in tiles] == [
        ("1", "PASS"),
        ("0", "REGRESSED"),
        ("1", "INVALID"),
        ("3", "not measured"),
        ("no baseline", ""),
    ]
    assert tiles[3].detail == "vpp and snabb are not installed; linux-bridge needs a card"
    assert "--icbench-save" in tiles[4].detail
    tiles = headline.tiles([result(Case("ovs"), verdict="IMPROVED", baseline="main")], [])
    assert [str(tile.name) for tile in tiles if tile.number == "1"] == ["IMPROVED"]
    assert "no baseline" not in [tile.number for tile in tiles]
    # A base is not judged; that is no lack of a verdict.
    assert "not judged" not in [tile.name for tile in headline.tiles(upgrade(), [])]


def test_disturbed_drifted_and_shared_is_said_with_the_worst_case() -> None:
    assert headline.warnings([result(Case("ovs"))]) == []
    results = [
        result(Case("ovs"), disturbed_windows=12, windows=12, placement="cooperative"),
        result(Case("vpp"), disturbed_windows=1, windows=12, drift=0.73, conditions={"warnings": ["turbo is on"]}),
    ]
    host, shared, disturbed, drifted = headline.warnings(results)
    assert shared.startswith("The endpoints of ovs share CPUs; those of vpp have CPUs.")
    assert disturbed.startswith("Disturbed: 13 of 24 windows, in 2 cases; most in ovs-64B-b32-1vs1-Rmax: 12 of 12 w")
    assert drifted == "1 case drifted while measured: vpp-64B-b32-1vs1-Rmax +73 %."
    assert host == "turbo is on."


def test_endpoints_share_cpus_only_where_they_yield() -> None:
    """The session's placement says what a case may share: a case without a switch's worker has a CPU for each end."""
    alone, together = ({"cpus": {"endpoints": [0, cpu], "yield_every": every}} for cpu, every in ((1, 0), (0, 128)))
    results = [result(Case("veth"), placement="cooperative", treatment=alone)]
    assert headline.warnings(results) == []
    results.append(result(Case("ovs"), placement="cooperative", treatment=together))
    (said,) = headline.warnings(results)
    assert said.startswith("The endpoints of ovs share CPU 0; those of veth have CPUs 0, 1. ")
    assert headline.warnings(results[1:])[0].startswith("The endpoints of ovs share CPU 0. ")


def test_disturbed_cases_without_a_value_are_counted_and_say_why() -> None:
    broken = {"verdict": "INVALID", "reason": "no-forwarding", "evidence": "pair 1: none of 300 arrived\nlog"}
    results = [result(Case("ovs"), **broken, disturbed_repeated=3), result(Case("vpp"), **broken)]
    assert headline.warnings(results) == ["Disturbed: 1 of 2 cases without a value."]
    page = Page()
    for each in results:
        page.add("t", each)
    assert "no-forwarding, pair 1: none of 300 arrived<" in summary(page)


def test_a_fall_to_a_sixth_is_reported_by_its_ends() -> None:
    """A drift is relative to the level halfway, so it can be below -100 %."""
    (reported,) = headline.warnings([result(Case("ovs"), drift=-1.46)])
    assert reported == "1 case drifted while measured: ovs-64B-b32-1vs1-Rmax from 1.7 to 0.27 times its level."
    assert remarks.drift(result(Case("ovs"), drift=-1.46)).startswith("drifted from 1.7 to 0.27 times its level, ")
    assert remarks.drifted(-2.5) == "from 2.2 to 0 times its level"


def test_a_single_case_is_reported_in_the_singular() -> None:
    regressed = result(Case("ovs"), baseline="main", verdict="REGRESSED")
    leads = [sentence.lead for sentence in answer([regressed])]
    assert leads[0] == "1 of 1 case REGRESSED against main."


def test_undecided_is_an_answer() -> None:
    results = [
        result(Case("basicfwd"), lower_bound=True, bottleneck="endpoint", **at(16.1e6)),
        result(Case("ovs"), lower_bound=True, bottleneck="ring", **at(14.2e6)),
        result(Case("linux-bridge"), **at(0.246e6)),
    ]
    (sentence,) = answer(results)
    assert sentence.lead == "Fastest, 64 B:"
    assert sentence.text == (
        "undecided between basicfwd ≥ 15.8, ovs ≥ 13.9 Mpps; each can carry more; each at least 55 times linux-bridge."
        " Limit: the sender or receiver (basicfwd); the ring (ovs)."
    )
    alone = [
        each.with_figures(throughput_pps=Estimate(each.frames.throughput_pps.value))
        for each in results
        if each.frames.throughput_pps
    ]
    assert "ovs ≥ 14.2, linux-bridge 0.246 Mpps; basicfwd and ovs can carry more; too few launches to tell." in (
        answer(alone)[0].text
    )
    (sentence,) = answer([result(Case("ovs"), **at(9e6)), result(Case("vpp"), **at(6e6))])
    assert (
        sentence.text == "ovs with 9.00 Mpps (8.82 to 9.18), 50 % ahead of vpp (44.1 % to 56.1 %). Limit: the switch."
    )


def test_the_answer_counts_the_comparisons_that_it_does_not_name() -> None:
    sizes = (64, 128, 256, 1500)
    results = [
        result(Case(switch, Frames(Traffic(size))), **at(rate))
        for size in sizes
        for switch, rate in (("ovs", 9e6), ("vpp", 5e6))
    ]
    first, last, rest = answer(results)
    assert (first.lead, last.lead) == ("Fastest, 64 B:", "Fastest, 1500 B:")
    assert (rest.lead, rest.text) == ("All 4 comparisons of rates:", "4 for ovs.")


def test_the_counts_of_all_comparisons_add_up() -> None:
    winners = ("ovs", "ovs", "vpp", "snabb", "basicfwd", "testpmd")
    results = [
        result(Case(switch, Frames(Traffic(64 * place))), **at(9e6 if switch == winner else 5e6))
        for place, winner in enumerate(winners, 1)
        for switch in dict.fromkeys(winners)
    ]
    rest = answer(results)[-1]
    assert rest.text == "2 for ovs, 1 for vpp, 1 for snabb, 1 for basicfwd, 1 for others."


def test_a_gate_names_the_worst_and_what_improved() -> None:
    changes = (("ovs", "REGRESSED", 0.85), ("vpp", "REGRESSED", 0.7), ("snabb", "IMPROVED", 1.2), ("veth", "PASS", 1.0))
    results = [
        result(
            Case(switch, Frames(rate=Rate(1_000_000))),
            verdict=verdict,
            baseline="main",
            ratio_to_baseline=Estimate(ratio, ratio - 0.01, ratio + 0.01),
        )
        for switch, verdict, ratio in changes
    ]
    (sentence,) = answer(results)
    assert sentence.verdict is Verdict.REGRESSED
    assert sentence.lead == "2 of 4 cases REGRESSED against main."
    assert sentence.text.startswith("Worst: vpp-64B-b32-1vs1-R1M rate -30.0 % (-31.0 to -29.0); ovs-64B")
    assert "1 IMPROVED: snabb-64B-b32-1vs1-R1M rate +20.0 % (+19.0 to +21.0)." in sentence.text
    (sentence,) = answer([result(Case("ovs", Frames(rate=Rate(1_000_000))), verdict="INCONCLUSIVE", baseline="main")])
    assert sentence.lead == "1 of 1 case cannot be distinguished from main."


def test_a_gate_reports_the_change_that_decided_and_not_that_of_the_medians() -> None:
    def regressed(switch: str, name: str, kind: Literal["drop", "rise"], ratio: float) -> Result:
        ends: dict[str, Any] = {"ratio": ratio, "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01}
        found = Finding(name, kind, 0.03, "defaults", Verdict.REGRESSED, value=1.0, baseline="main", **ends)
        facts: dict[str, Any] = {"ratio_to_baseline": Estimate(1.02, 0.6, 1.4), "findings": (found,)}
        return result(Case(switch), verdict="REGRESSED", baseline="main", **facts)

    results = [regressed("ovs", "throughput_pps", "drop", 0.9), regressed("testpmd", "cycles_per_packet", "rise", 1.5)]
    sentence, *_ = answer(results)
    assert sentence.text.startswith(
        "Worst: testpmd-64B-b32-1vs1-Rmax cycles a frame +50.0 % (+49.0 to +51.0); "
        "ovs-64B-b32-1vs1-Rmax rate -10.0 % (-11.0 to -9.0)"
    )


def test_versions_have_the_numbers_of_the_deciding_pairs_everywhere() -> None:
    base, candidate = deciding(upgrade())
    assert base.frames.throughput_pps == Estimate(5e6, 4.4e6 * 0.98, 5e6)  # its interval was 4.31 to 4.49
    assert candidate.frames.throughput_pps is not None
    assert candidate.frames.throughput_pps.value == 4.5e6
    assert (candidate.frames.throughput_pps.low, candidate.frames.throughput_pps.high) == (5e6 * 0.89, 5e6 * 0.91)
    assert candidate.frames.throughput_gbps is not None
    assert abs(candidate.frames.throughput_gbps - 4.5e6 * 64 * 8 / 1e9) < 1e-9
    sentence = answer([base, candidate])[0]
    assert sentence.lead == "ovs:new against its base: REGRESSED."
    assert "Worst: ovs:new-64B-b32-1vs1-Rmax rate -10.0 % (-11.0 to -9.0)." in sentence.text
    assert deciding([result(Case("ovs"))]) == [result(Case("ovs"))]


def test_a_candidate_has_one_sentence_whatever_the_number_of_its_cases() -> None:
    base, candidate = upgrade()
    named = replace(candidate, baseline=base.case)
    assert answer([base, named]) == answer([base, candidate])
    assert [sentence.lead for sentence in answer([base, named])] == ["ovs:new against its base: REGRESSED."]
    # An earlier run is a baseline, of candidates too.
    assert len(answer([base, replace(candidate, baseline="main")])) == 2


def test_dot_plots_are_sorted_with_references_last_and_without_candidates() -> None:
    results = [
        result(Case("direct"), **at(43e6)),
        result(Case("ovs"), lower_bound=True, **at(14e6)),
        result(Case("basicfwd"), **at(16e6)),
        *upgrade()[1:],
        result(Case("ovs", Frames(rate=Rate(1000)), dimension="latency"), rtt_p99_ns=50e3),
    ]
    order = [each.switch for each in results]
    (rates,) = dot_charts(results, order, "throughput")
    assert [(row[1], row[5]) for row in rates.rows] == [
        ("basicfwd", "measured"),
        ("ovs", "at least"),
        ("direct", "reference link"),
    ]
    assert [row[6] for row in rates.rows][:2] == ["16.0 Mpps · 2.56 Gbit/s", "≥ 13.7 Mpps · 2.51 Gbit/s"]
    (delays,) = dot_charts(results, order, "latency")
    assert [row[6] for row in delays.rows] == ["20.0 / 50.0 µs"]


def test_the_first_screen_shows_few_traffics_the_shortest_and_the_longest_frames() -> None:
    results = [
        result(Case("ovs", Frames(Traffic(size), burst)), **at(9e6))
        for burst in (16, 32)
        for size in (128, 64, 1500, 512)
    ]
    charts = dot_charts(results, ["ovs"], "throughput")
    assert len(charts) == MOST_TRAFFICS
    assert [chart.title.split(" (")[0] for chart in charts] == [
        "Rate flat out, 64 B, bursts of 16",
        "Rate flat out, 1500 B, bursts of 16",
    ]


def test_what_is_undecided_is_named_with_its_worst_change() -> None:
    ratios = {"ovs": 1.0, "vpp": 0.09, "snabb": None}
    results = [
        result(
            Case(switch),
            verdict="INCONCLUSIVE",
            baseline="main",
            ratio_to_baseline=ratio and Estimate(ratio, ratio * 0.9, ratio * 1.1),
        )
        for switch, ratio in ratios.items()
    ]
    sentence = answer(results)[0]
    assert sentence.lead == "3 of 3 cases cannot be distinguished from main."
    assert sentence.text == "Undecided: 3, at worst vpp-64B-b32-1vs1-Rmax rate -91.0 % (-91.9 to -90.1)."


def test_a_red_job_is_red_and_says_what_failed() -> None:
    page = Page()
    page.add("t.py::test_own[ovs-64B-b32-1vs1-Rmax]", result(Case("ovs", Frames(rate=Rate(1_000_000)))))
    page.failed += [("t.py::test_own[ovs-64B-b32-1vs1-Rmax]", "assert 5e6 > 1e9"), ("t.py::test_b[x]", "it died")]
    shown = summary(page)
    tile, *_ = headline.tiles(page.results, [], page.failed)
    assert tile[:2] == ("2", "failed")
    assert "assert 5e6 &gt; 1e9" in shown
    assert "No case gave a number" not in shown
    regressed = result(Case("ovs"), verdict="REGRESSED", reason="slower")
    tiles = headline.tiles([regressed], [], [("t.py::test_own[ovs-64B-b32-1vs1-Rmax]", "slower")])
    assert "failed" not in [tile.name for tile in tiles], "it is counted as REGRESSED"


def test_undecided_says_how_many_seconds_decide() -> None:
    pps = {"ovs": 9e6, "vpp": 7.5e6}
    results = [result(Case(switch), ended_by="repeats", duration_s=10.0, **wide(rate)) for switch, rate in pps.items()]
    text = answer(results)[0].text
    assert "their intervals overlap; about " in text
    assert "--icbench-repeats" in text


def wide(pps: float) -> dict[str, Any]:
    return {"throughput_pps": pps, "throughput_pps_low": pps * 0.8, "throughput_pps_high": pps * 1.3}


@pytest.mark.parametrize(("weak", "verdict"), [(True, Verdict.INCONCLUSIVE), (False, Verdict.PASS)])
def test_what_a_gate_cannot_see_is_not_headed_by_a_reassurance(*, weak: bool, verdict: Verdict) -> None:
    found = Finding("throughput_pps", "drop", 0.03, "defaults", Verdict.PASS, baseline="main", finds=0.3, weak=weak)
    sentence = answer([result(Case("ovs"), verdict="PASS", baseline="main", findings=(found,))])[0]
    assert sentence.verdict is verdict
    assert ("Nothing is slower" in sentence.lead) is not weak
