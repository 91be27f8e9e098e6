# SPDX-License-Identifier: BSD-3-Clause
"""The table at the end of a run, the plan, and times as they are shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.display.table import In
from pytest_icbench.model.api_techniques import APIS
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import FIGURES, types_of
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.trials import BackToBack, LossEvent
from pytest_icbench.plugin.plan import Planned, plan_lines
from pytest_icbench.report import terminal_table
from pytest_icbench.report.columns import columns
from pytest_icbench.report.decisions import overall
from pytest_icbench.report.junit import properties
from pytest_icbench.report.terminal_table import table
from pytest_icbench.stats.dependence import Dependence
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.run_directory import path_part
from pytest_icbench.wording import printable
from tests.measurements import figures, launch, result, side_by_side

LATENCY = Case("ovs", Frames(burst=4, rate=Rate(1000)), dimension="latency")


def line(case: Case | None = None, **changed: Any) -> Result:
    return result(case, **{"verdict": "PASS", **changed})


def line_of(case: Case, changed: dict[str, Any]) -> Result:
    """A line with those of the figures that its kind has."""
    absent = FIGURES.keys() - set(types_of(type(figures(case))))
    return line(case, **{name: value for name, value in changed.items() if name not in absent})


def test_a_table_for_each_size_has_rates_and_round_trips_side_by_side_the_best_first() -> None:
    slow = {"throughput_pps": 4e6, "frame_loss_ratio": 0.0}
    results = [
        line(Case("ovs", Frames(Traffic(1500)))),
        line(Case("testpmd"), **slow),
        line(lower_bound=True, bottleneck="endpoint"),
        line(LATENCY),
    ]
    assert table(results) == [
        "64 B: rate with bursts of 32, flat out; median round trip with bursts of 4, at 1k/s (lost 0.99%);",
        "  all within limits (PASS)",
        "         Mpps            95 %   lost  limit by  round trip µs          95 %",
        "ovs      5.00  ≥ 4.90 to 5.10  0.99%  endpoint           20.0  19.0 to 21.0",
        "testpmd  4.00    4.90 to 5.10         switch",
        "",
        "1500 B: rate with bursts of 32, flat out",
        "     Mpps          95 %   lost  limit by  verdict",
        "ovs  5.00  4.90 to 5.10  0.99%  switch    PASS",
        "",
        '≥: the path carries at least this: "limit by" names what was the limit instead',
    ]
    assert [text for text in table(results, 60) if text.startswith("ovs")] == [
        "ovs      5.00  ≥ 4.90 to 5.10  0.99%  endpoint",
        "ovs           20.0  19.0 to 21.0",
        "ovs  5.00  4.90 to 5.10  0.99%  switch    PASS",
    ]


def test_loads_of_one_kind_are_rows_and_sizes_of_few_paths_too() -> None:
    loads = table([line(Case("ovs", Frames(rate=Rate(load)))) for load in (1_000_000, 2_000_000)])
    assert [text.split()[0] for text in loads[2:]] == ["ovs-R1M", "ovs-R2M"]
    nodes = table([line(Case("ovs", Frames(rate=Rate(load)), node="vm")) for load in (1_000_000, 2_000_000)])
    assert [text.split()[0] for text in nodes[2:]] == ["ovs-vm-R1M", "ovs-vm-R2M"]
    sizes = table([line(Case("ovs", Frames(Traffic(size)))) for size in (1500, 64, 512)])
    assert sizes[0].startswith("ovs: rate with bursts of 32, flat out")
    assert [text.split()[0] for text in sizes[2:]] == ["64B", "512B", "1500B"]


def test_rows_say_which_test_and_which_run_they_are_of() -> None:
    tests = [replace(line(), test=f"t.py::test_a[ovs-64B-b32-1vs1-Rmax-{own}]") for own in ("fast", "safe")]
    assert {"ovs (test_a[fast])", "ovs (test_a[safe])"} <= {text.partition("  ")[0] for text in table(tests)}
    runs = table([replace(line(), run=run) for run in ("A", "B")])
    assert {"ovs (A)", "ovs (B)"} <= {text.partition("  ")[0] for text in runs}


def test_what_a_path_shares_with_no_other_stands_in_its_row() -> None:
    shared, alone = ({"cpus": {"yield_every": every, "endpoints": [0, 0]}} for every in (128, 0))
    lines = table([line(treatment=shared), line(Case("direct"), treatment=alone), line(Case("vpp"), treatment=alone)])
    ends = {text.split()[0]: text for text in lines if text.startswith(("ovs", "direct", "vpp"))}
    assert ends["ovs"].endswith("shared CPU")
    assert ends["direct"].endswith("no switch")
    assert ends["vpp"].endswith("5.10")
    alike = table([line(treatment=shared), line(Case("vpp"), treatment=shared)])
    assert "shared CPU" in alike[0]
    assert not any(text.endswith("shared CPU") for text in alike[1:])


def test_rows_say_whose_ends_use_sockets_where_others_use_dpdk() -> None:
    ports = {"ovs": "vhost-user", "veth": "veth", "vpp": "memif"}
    results = [line(Case(switch), treatment={"endpoints": [port]}) for switch, port in ports.items()]
    lines = table(results)
    for switch, kind in {"ovs": "DPDK", "veth": "sockets, no switch", "vpp": "DPDK"}.items():
        assert next(line for line in lines if line.startswith(switch)).endswith(kind)
    assert any(line.startswith("DPDK, sockets: ") for line in lines)
    assert not any("DPDK" in line for line in table(results[::2]))


def test_many_rows_are_cut_and_the_rest_is_counted() -> None:
    many = [line(Case(f"s{number}")) for number in range(300)]
    lines = table(many)
    assert len(lines) < terminal_table.MOST_ROWS + 10
    assert any("260 more rows" in text for text in lines)
    assert len(table(many, verbose=True)) > 300


def test_a_name_that_leaves_no_room_has_a_line_of_its_own() -> None:
    case = Case("linux-bridge", function="nat+acl10+deny30")
    assert table([line(case)])[2].startswith("linux-bridge-via:nat+acl10+deny30  5.00")
    assert table([line(case)], 50)[1:] == [
        "linux-bridge-via:nat+acl10+deny30",
        "  Mpps 5.00, 95 % 4.90 to 5.10, lost 0.99%, limit",
        "    by switch, verdict PASS",
    ]


def test_the_time_without_a_switch_stands_beside_the_99th_percentile() -> None:
    found = line(LATENCY, rtt_p99_ns=30e3, rtt_first_p50_ns=15_000.0, floor_p50_ns=9_000.0, floor_p99_ns=12_000.0)
    head, row = table([found])[1:3]
    assert "p99 µs  p99 without switch µs" in head
    assert row.split()[5:7] == ["30.0", "12.0"]
    assert "first in burst" not in head
    assert "p50 of first in burst µs 15.0" in " ".join(" ".join(table([found], verbose=True)).split())
    bare = line(Case("direct", Frames(burst=4, rate=Rate(1000)), dimension="latency"), rtt_p99_ns=28e3)
    assert any(text.startswith("p99: ") for text in table([line(LATENCY, rtt_p99_ns=30e3), bare]))


def test_nothing_measured_nothing_shown() -> None:
    assert table([]) == []


def test_an_invalid_measurement_shows_its_reason_and_no_figures() -> None:
    lines = table([line(verdict="INVALID", reason="stalled", evidence="no frame\x1b[31m for 2 s")])
    assert lines[2].split() == ["ovs", "INVALID", "stalled"]
    assert "ovs-64B-b32-1vs1-Rmax: no frame?[31m for 2 s" in lines


def test_a_lower_bound_is_marked() -> None:
    lines = table([line(lower_bound=True)])
    assert "5.00  ≥ 4.90 to 5.10" in lines[2]
    assert any(text.startswith("≥: ") for text in lines)


def test_what_a_limit_says_is_reported_below_the_table() -> None:
    lines = table([line(verdict="INCONCLUSIVE", reason="throughput_pps 5M too near 5M, ovs-64B-b32-1vs1-Rmax")])
    assert "INCONCLUSIVE: throughput_pps 5M too near 5M, ovs-64B-b32-1vs1-Rmax" in lines
    lines = table([line(reference_evidence="reference link direct: died\n  log")], verbose=True)
    assert "ovs-64B-b32-1vs1-Rmax: no ratio, reference link direct: died" in lines


def test_repeated_launches_are_reported() -> None:
    assert any("2 launches repeated" in text for text in table([line(repeated=2)], verbose=True))


cases = st.builds(
    Case,
    switch=st.sampled_from(["ovs", "linux-bridge", "a-switch-with-a-very-long-name-from-somewhere-else-indeed"]),
    pairs=st.integers(1, 254),
    load=st.builds(
        Frames,
        traffic=st.builds(Traffic, st.integers(64, 9216)),
        burst=st.integers(1, 1024),
        rate=st.builds(Rate, st.none() | st.integers(1, 10**9)),
    ),
    dimension=st.sampled_from(["throughput", "latency"]),
    port=st.none() | st.just("vhost-user-packed"),
    api=st.none() | st.sampled_from(APIS),
    blocking=st.booleans(),
    check_payload=st.booleans(),
    remote=st.booleans(),
    node=st.none() | st.just("vm"),
)
rates = st.none() | st.floats(0, 2e8)
changes = st.fixed_dictionaries(
    {
        "throughput_pps": rates,
        "throughput_pps_low": rates,
        "throughput_pps_high": rates,
        "ratio_to_reference": st.none() | st.floats(0, 100),
        "rtt_p99_ns": st.none() | st.floats(0, 1e10),
        "verdict": st.sampled_from([None, "PASS", "NO_BASELINE", "INCONCLUSIVE", "INVALID"]),
        "reason": st.none() | st.sampled_from(["no-forwarding", "accounts"]),
        "evidence": st.none() | st.text(max_size=300),
        "bottleneck": st.sampled_from(["unknown", "endpoint", "switch"]),
        "lower_bound": st.booleans(),
    }
)


@given(st.lists(st.tuples(cases, changes), max_size=6), st.sampled_from([80, 100, 160]), st.booleans())
def test_no_line_is_wider_than_the_page_or_has_control_characters(
    rows: list[tuple[Case, dict[str, Any]]], width: int, verbose: bool
) -> None:
    for text in table([line_of(case, changed) for case, changed in rows], width, verbose=verbose):
        assert len(text) <= width
        assert text == "" or text.isprintable()


@given(st.lists(cases, min_size=1, max_size=8), st.sampled_from([80, 100, 160]))
def test_rows_never_look_alike(found: list[Case], width: int) -> None:
    """Equal values, so that only names distinguish rows. A row with a line for its name alone goes on in the next."""
    for part in "\n".join(table([line_of(case, {}) for case in found], width)).split("\n\n"):
        # Each grid begins with a line of heads; a title and a line of values below a name are indented or have a colon.
        lines = [*part.splitlines(), ""]
        rows = [
            text + below * below.startswith(" ")
            for text, below in pairwise(lines)
            if not text.startswith(" ") and ": " not in text
        ]
        assert len(rows) == len(set(rows)) or any(len(text) == width for text in rows), rows


@given(st.text())
def test_a_path_component_is_safe_and_names_differ(text: str) -> None:
    part = path_part(text)
    assert 1 <= len(part) <= 200
    assert part not in (".", "..")
    assert "/" not in part
    assert part.isascii()
    assert part.isprintable()


@given(st.text(max_size=20), st.text(max_size=20))
def test_different_texts_are_different_components(one: str, other: str) -> None:
    if one and other and "%" not in one + other:
        assert (path_part(one) == path_part(other)) == (one == other)


def test_terminal_escapes_are_made_harmless() -> None:
    assert printable("a\x1b]0;x\x07b\n") == "a?]0;x?b?"


def test_properties_have_the_names_of_the_line() -> None:
    one = line(generator_bound=True)
    found = dict(properties(one))
    assert found["icbench.case"] == "ovs-64B-b32-1vs1-Rmax"
    assert found["icbench.throughput_pps"] == 5e6
    assert found["icbench.generator_bound"] == "true"
    assert {name.removeprefix("icbench.") for name in found} <= set(one.flat())
    assert "icbench.axes" not in found
    assert "icbench.rtt_p50_ns" not in found


def test_a_plan() -> None:
    planned = [Planned("t.py::a[ovs]", 8.4, None), Planned("t.py::a[x]", 0.0, "x is not installed\nmore")]
    assert plan_lines(planned, "cooperative", by_case=True) == [
        "    0:08  t.py::a[ovs]",
        "    skip  t.py::a[x]: x is not installed",
        "1 of 2 cases, at least 0:08 (h:mm:ss or m:ss), placement cooperative; 1 would be skipped",
    ]


def test_a_plan_says_where_its_cases_would_be() -> None:
    planned = [Planned(f"t.py::a[{name}]", 1.0, None, where="one L3 (0-3)") for name in ("ovs", "veth")]
    planned.append(Planned("t.py::a[vpp]", 1.0, None, where="2 L3s of node 0: none has room for 5 cores"))
    assert plan_lines(planned, "dedicated")[-2:] == [
        "2 cases on one L3 (0-3)",
        "1 case on 2 L3s of node 0: none has room for 5 cores",
    ]


def test_a_plan_by_test_and_switch_has_each_reason_once() -> None:
    sizes = ("64B", "128B")
    planned = [Planned(f"t.py::a[ovs-c2-{size}-b32-1vs1-Rmax]", 40.0, None) for size in sizes]
    planned += [Planned(f"t.py::b[ovs-{size}-b1-1vs1-Rmax]", 1.0, None, 2.0) for size in sizes]
    planned += [Planned(f"t.py::{test}[vpp-64B-b1-1vs1-Rmax]", 0.0, "vpp is not installed\nmore") for test in "ab"]
    planned += [Planned("t.py::a[snabb-64B-b1-1vs1-Rmax]", 0.0, "snabb is not installed")]
    assert plan_lines(planned, "dedicated")[:-1] == [
        "t.py::a",
        "    1:20    2 cases  ovs-c2",
        "t.py::b",
        "    0:02 of    0:04    2 cases  ovs",
        "skipped",
        "            2 cases  vpp: vpp is not installed",
        "             1 case  snabb: snabb is not installed",
    ]


def test_a_plan_reports_who_would_fail_from_who_would_be_skipped() -> None:
    planned = [Planned("t.py::a[vpp]", 0.0, "vpp is not installed"), Planned("t.py::a[ovs]", 0.0, "killed", None, True)]
    *lines, last = plan_lines(planned, "auto")
    assert lines == [
        "skipped",
        "             1 case  vpp: vpp is not installed",
        "failing",
        "             1 case  ovs: killed",
    ]
    assert last.endswith("; 1 would be skipped, 1 would fail")
    assert plan_lines(planned, "auto", by_case=True)[1] == "    fail  t.py::a[ovs]: killed"


def test_a_plan_for_several_hosts() -> None:
    cases = [Planned(f"a[ovs-{size}B-b32-1vs1-Rmax]", 60.0, None) for size in (64, 128)]
    cases += [Planned("t.py::a[vpp-64B-b32-1vs1-Rmax]", 30.0, None, 45.0), Planned("t.py::a[x]", 9.0, "none")]
    assert plan_lines(cases, "dedicated", 80.0, hosts=2)[-3:] == [
        "3 of 4 cases, at least 2:30 (h:mm:ss or m:ss), placement dedicated; 1 would be skipped",
        "over 2 hosts like this one at least 1:15; the longest rig, of 2 cases, takes 2:00: a[ovs-64B-b32-1vs1-Rmax]",
        "budget 1:20 of each of 2 hosts: 0:10 beyond the least, shared out anew whenever a case begins",
    ]
    assert "at least 1:00;" in plan_lines(cases, "dedicated", hosts=10)[-1]  # a case is on one host


def test_notes_of_a_kind_are_one_note() -> None:
    drifting = [line(Case("ovs", Frames(Traffic(size))), drift=0.25) for size in range(64, 84)]
    reported = " ".join(" ".join(table([*drifting, line(Case("veth"), drift=-0.031)], verbose=True)).split())
    assert reported.count("drifted while measured") == 1
    assert "drifted while measured, 21 cases: ovs-64B +25 %;" in reported
    assert reported.endswith("and 13 more")
    reason = "placement is dedicated here and cooperative there"
    apart = [line(Case(switch), verdict="INCOMPARABLE", reason=f"{Case(switch).id}: {reason}") for switch in ("a", "b")]
    reported = " ".join(" ".join(table(apart)).split())
    assert reported.endswith(f"INCOMPARABLE: {reason}, 2 cases: a-64B, b-64B")


def test_launches_that_depend_on_each_other_are_said() -> None:
    lines = " ".join(text.strip() for text in table([line(dependence=Dependence(0.62, 0.93, 2.14))], verbose=True))
    assert "launches depend on those before them (correlation 0.62), so the interval is 2.1 times as wide" in lines
    assert not any("depend" in text for text in table([line(dependence=Dependence(0.1, 0.04, 1.05))], verbose=True))


def test_drift_is_said() -> None:
    assert any(
        "drifted by -3.1% from the first launch to the last" in text
        for text in table([line(drift=-0.031)], verbose=True)
    )
    assert not any("drifted" in text for text in table([line(LATENCY, drift=0.004)], verbose=True))


NDR = Case("ovs", Frames(rate=Rate(loss_ratio=0.0)))


def test_a_search_shows_its_relevant_bounds_and_no_interval() -> None:
    """RFC 9971: the relevant lower bound must be displayed; conditional throughput is another figure."""
    found = line(NDR, throughput_pps_low=5e6, search_lower_pps=5.033e6, search_upper_pps=5.05e6)
    head, row, *_ = table([found])[1:]
    assert head.split()[:3] == ["Mpps", "ndr", "bounds"]
    assert row.split()[1:5] == ["5.00", "5.033", "to", "5.05"]
    assert any(text.startswith("bounds: relevant lower and upper bound") for text in table([found]))
    # The upper one is the generator's.
    found = replace(found, lower_bound=True).with_figures(throughput_pps=Estimate(5e6, 5e6))
    assert table([found])[2].split()[1:5] == ["5.00", "≥", "5.033", "0.99%"]


def test_delay_variation_is_shown_with_v() -> None:
    found = line(LATENCY, pdv_p50_ns=1_100.0, pdv_p90_ns=2_200.0, pdv_max_ns=99_000.0)
    assert not any("delay variation" in text for text in table([found]))
    lines = " ".join(" ".join(table([found], 200, verbose=True)).split())
    assert "delay variation p50 µs p90 µs max µs" in lines
    assert "1.10 2.20 99.0" in lines


def soaked(*events: LossEvent, **changed: Any) -> Result:
    return line(
        Case("ovs", Frames(rate=Rate(1000)), pairs=2),
        loss_events=events,
        loss_event_count=len(events),
        **changed,
    )


EVENT = LossEvent(pair=2, started_at=1.7e9, duration_s=2.0, windows=2, lost=1234, refused=1)
EVENT_TEXT = "2023-11-14 22:13:20.000 UTC, 2 s, pair 2, 1,234 lost, 1 refused"
TRAINS = BackToBack(1500.4, 1400, 1600, 51.2, 50, False, 12.5e6, 2e6, 120e-6, 100e-6)


def test_a_long_run_says_when_frames_were_lost() -> None:
    lines = table([soaked(EVENT)])
    assert EVENT_TEXT in " ".join(text.strip() for text in lines)
    assert any("no frame was lost or refused" in text for text in table([soaked()]))
    assert not any("no frame" in text for text in table([soaked(verdict="INVALID"), line()]))
    many = " ".join(text.strip() for text in table([soaked(*[EVENT] * 9)]))
    assert "9 loss events: 2023" in many
    assert many.count("1,234 lost") == 5
    assert "and 4 more (results.jsonl)" in many


def test_trains_are_shown_with_what_rfc_9004_reports() -> None:
    nothing = dict.fromkeys(("throughput_pps", "throughput_pps_low", "throughput_pps_high", "throughput_gbps"))
    found = line(back_to_back=TRAINS, **nothing)
    lines = table([found])
    assert lines[1].split()[:2] == ["Mpps", "train"]
    assert lines[2].split()[1] == "1,500"
    reported = " ".join(text.strip() for text in lines)
    assert "1,500 frames back to back without loss, mean of 50 (1,400 to 1,600, standard deviation 51.2)" in reported
    assert "at 12.5 Mpps: 120 µs of buffer, 100 µs corrected" in reported
    open_ended = replace(TRAINS, at_least=True, corrected_buffer_time_s=None)
    reported = " ".join(text.strip() for text in table([line(back_to_back=open_ended, **nothing)]))
    assert "≥ 1,500" in reported
    assert "not corrected: no rate without loss was found" in reported


def test_properties_have_losses_and_trains() -> None:
    found = dict(properties(soaked(EVENT)))
    assert found["icbench.loss_event_count"] == 1
    assert EVENT_TEXT in found["icbench.loss_events"]
    found = dict(properties(line(back_to_back=TRAINS)))
    assert found["icbench.back_to_back_frames"] == 1500.4
    assert found["icbench.back_to_back_at_least"] == "false"
    assert not [name for name in dict(properties(line())) if "back_to_back" in name or "loss_event" in name]


def test_what_was_not_offered_and_what_did_not_settle_is_said() -> None:
    launches = tuple(
        launch(index, offered_pps=offered, generator_bound=offered < 1e6)
        for index, offered in enumerate((1e6, 350_000.0, 1e6, 900_000.0, 1e6, 1e6))
    )
    bound = line(
        Case("ovs", Frames(rate=Rate(10**6))),
        generator_bound=True,
        offered_pps=1e6,
        per_launch=launches,
        unsettled_launches=2,
    )
    late = replace(bound, per_launch=tuple(replace(each, offered_pps=1e6) for each in launches))
    assert "short of 1M frames/s in 2 of 6 launches (sent requests late)" in " ".join(" ".join(table([late])).split())
    lines = table([bound], verbose=True)
    shortfall = "the sender fell short of 1M frames/s in 2 of 6 launches (least 350k frames/s)"
    assert shortfall in " ".join(" ".join(lines).split())
    assert any("the rate of 2 of 6 launches did not become stationary" in text for text in lines)
    reported = " ".join(table([line(LATENCY, unsettled_launches=2)], verbose=True))
    assert "the median round trip of 2 of 6 launches did not become stationary" in reported


def test_what_was_not_offered_of_a_part_of_a_rate_that_was_looked_for() -> None:
    launches = (launch(offered_pps=350_000.0, generator_bound=True),)
    found = line(LATENCY, generator_bound=True, offered_pps=350_000.0, per_launch=launches)
    found = replace(found, axes={**found.axes, "rate": "pdr:0.5%*0.5"})
    reported = " ".join(" ".join(table([found])).split())
    assert "the sender fell short of pdr:0.5%*0.5 in 1 of 1 launch (least 350k frames/s)" in reported
    without = table([replace(found, per_launch=())])
    assert any(text.endswith("the sender fell short of pdr:0.5%*0.5") for text in without)


def test_the_change_of_a_candidate_is_that_of_the_pairs_that_decide() -> None:
    """The medians of all launches can differ by another share, and are said to be of all launches."""
    case = Case("ovs", candidate="new")
    slower = line(case, verdict="REGRESSED", decision="REGRESSED", side_by_side=side_by_side(case, "REGRESSED", 0.868))
    head, base, candidate, *notes = table(
        [line(case.base), replace(slower, figures=line(case, throughput_pps=4e6).figures)]
    )[1:]
    assert "change" in head
    assert "%" not in base
    assert "-13.2 %" in candidate
    assert any(text.startswith("change: against its base, over pairs of launches") for text in notes)
    assert "-13.2 %" in columns_of_page(slower)
    (_, sentence, _) = overall([line(case.base), slower])
    assert sentence.endswith("throughput_pps -13.2 % (-14.2 % to -12.2 %, 9 pairs): 4.34 against 5 Mpps")
    dearer = side_by_side(case, "REGRESSED", 1.36, figure="cycles_per_packet", base_value=61_830.0)
    (_, sentence, _) = overall([line(case.base), replace(slower, side_by_side=dearer)])
    assert sentence.endswith(": 84,089 against 61,830 cycles")


def columns_of_page(found: Result) -> str:
    return " ".join(column.say(found) for column in columns(In.PAGE))
