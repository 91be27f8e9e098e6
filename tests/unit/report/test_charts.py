# SPDX-License-Identifier: BSD-3-Clause
"""Further charts: delay against load, heat maps, launches, losses, one size, distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.display.chart import Figure
from pytest_icbench.kinds.latency.latency_charts import cdf_figures
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.trace import LoadChange
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.trials import LossEvent
from pytest_icbench.report.figure.registry import Content, section_charts
from pytest_icbench.report.figure.scaling import BENCHMARK, IDEAL
from pytest_icbench.report.figure.scaling import MOST as HIGHEST
from pytest_icbench.stats.quantiles import Estimate, Histogram
from tests.charts import compiled, values
from tests.measurements import launch, result


def charts(results: list[Result], kind: str) -> list[Figure]:
    """The charts of one section; each of them compiles."""
    found = [
        chart for section, all_of in section_charts(Content.of(results)) if section.name == kind for chart in all_of
    ]
    for chart in found:
        compiled(chart)
    return found


def at(pps: float) -> dict[str, Any]:
    return {"throughput_pps": pps, "throughput_pps_low": pps * 0.98, "throughput_pps_high": pps * 1.02}


def timed(switch: str, rate: int | str, p50: float, **more: Any) -> Result:
    facts = {"rtt_p50_ns": p50, "rtt_p50_ns_low": p50 * 0.9, "rtt_p50_ns_high": p50 * 1.1, "rtt_p99_ns": p50 * 4}
    return result(Case(switch, Frames(rate=Rate.from_json(rate)), dimension="latency"), **(facts | more))


def test_delay_against_load_is_one_chart_with_the_edge_that_the_path_carries() -> None:
    results = [timed("ovs", load, 10_000.0 * (1 + load / 1e6)) for load in (100_000, 200_000, 400_000)]
    results.append(result(Case("ovs"), **at(4.4e6)))
    (chart,) = charts(results, "delay")
    assert [(row["offered"], row["p50"], row["p99"], row["carries"]) for row in values(chart)] == [
        (0.1, 11.0, 44.0, 4.4),
        (0.2, 12.0, 48.0, 4.4),
        (0.4, 14.0, 56.0, 4.4),
    ]
    assert "it carries 4.4 Mpps" in chart.text
    assert charts(results, "latency") == []  # and no chart of one size for each load


def test_loads_that_are_a_part_of_a_searched_rate_have_it_as_edge() -> None:
    loads = [timed("ovs", f"pdr:0.5%*{share}", 20e3, load=share, load_of_pps=5e6) for share in (0.1, 0.9)]
    (chart,) = charts(loads, "delay")
    assert [(row["offered"], row["carries"]) for row in values(chart)] == [(0.5, 5.0), (4.5, 5.0)]


def test_one_load_is_no_curve() -> None:
    assert charts([timed("ovs", 1000, 20e3), timed("vpp", 1000, 20e3)], "delay") == []


def test_points_against_the_offered_rate_stay_where_they_are_beside_the_line_of_equal_rates() -> None:
    sweep = [
        result(Case(switch, Frames(rate=Rate.from_json(rate))), **at(rate), offered_pps=float(rate))
        for switch in ("ovs", "vpp")
        for rate in (1_000_000, 2_000_000, 3_000_000)
    ]
    (chart,) = charts(sweep, "load")
    assert "xOffset" not in str(chart.spec)
    by_size = [
        result(Case(switch, Frames(Traffic(size))), **at(1e6)) for switch in ("ovs", "vpp") for size in (64, 512, 1500)
    ]
    assert ["xOffset" in str(chart.spec) for chart in charts(by_size, "size")] == [True, True]


def test_sizes_and_bursts_are_a_heat_map_of_each_path() -> None:
    grid = [(size, burst) for size in (64, 1500) for burst in (4, 32, 256)]
    results = [result(Case("ovs", Frames(Traffic(size), burst)), **at(burst * 1e5)) for size, burst in grid]
    (chart,) = charts(results, "heat")
    assert [(row["size"], row["burst"]) for row in values(chart)] == sorted(grid)
    assert "Best: 25.6 Mpps" in chart.text
    assert charts(results[:2], "heat") == []


def test_a_case_that_was_measured_twice_has_a_map_for_each_time() -> None:
    grid = [(size, burst) for size in (64, 1500) for burst in (4, 32, 256)]
    results = [result(Case("ovs", Frames(Traffic(size), burst)), **at(5e6)) for size, burst in (*grid, *grid)]
    first, second = charts(results, "heat")
    assert len(first.rows) == len(second.rows) == len(grid)
    assert {row["series"] for row in values(second)} == {"ovs (no. 2)"}


def test_launches_are_strips_around_the_median_with_interval() -> None:
    launches = tuple(launch(index, throughput_pps=pps) for index, pps in enumerate((4e6, 5e6, 5.5e6)))
    broken = launch(3, throughput_pps=9e6, invalid="died")
    found = result(Case("ovs"), per_launch=(*launches, broken), **at(5e6))
    (chart,) = charts([found], "launches")
    assert [(row["launch"], row["ratio"], row["value"]) for row in values(chart)] == [
        (0, 0.8, 4.0),
        (1, 1.0, 5.0),
        (2, 1.1, 5.5),
    ]
    assert {(row["low"], row["high"], row["shown"]) for row in values(chart)} == {(0.98, 1.02, "5 Mpps")}


def test_a_value_at_least_is_its_lower_end_where_no_interval_stands_beside_it() -> None:
    found = result(Case("ovs"), per_launch=tuple(map(launch, range(3))), lower_bound=True, **at(5e6))
    assert {row["shown"] for chart in charts([found], "launches") for row in values(chart)} == {"5 Mpps"}
    assert [row["text"] for chart in charts([found], "size") for row in values(chart)] == ["≥ 4.9 Mpps"]


def test_one_size_with_many_switches_is_sorted_dots_with_published_values_beside() -> None:
    results = [result(Case(switch), **at(pps)) for switch, pps in (("ovs", 7e6), ("testpmd", 9e6), ("veth", 0.3e6))]
    (chart,) = charts(results, "size")
    rows = values(chart)
    assert [(row["path"], row["place"]) for row in rows if row["source"] == "measured"] == [
        ("testpmd", 0),
        ("ovs", 1),
        ("veth", 2),
    ]
    (published,) = [row for row in rows if row["source"] != "measured"]
    assert (published["path"], published["place"], published["rate"]) == ("testpmd", 0, 12.8)


def test_socket_techniques_at_one_rate_are_dots_beside_both_tables() -> None:
    apis = ("udp", "udp-mmsg", "raw", "raw-mmsg")
    results = [result(Case("linux-bridge", Frames(burst=64, rate=Rate(1_000_000)), api=api), **at(4e5)) for api in apis]
    (chart,) = charts(results, "load")
    assert sum(row["source"].startswith("published, A1") for row in values(chart)) == 4
    assert sum(row["source"].startswith("published, B1") for row in values(chart)) == 4


def test_losses_of_a_long_run_stand_where_they_happened() -> None:
    events = (LossEvent(1, 1_010.0, 0.5, 5, 300, 0), LossEvent(1, 1_030.0, 0.1, 1, 0, 7))
    soak = {"started_at": 1_000.0, "duration_s": 60.0}
    lossy = result(Case("ovs", Frames(rate=Rate(100_000))), loss_events=events, loss_event_count=2, **soak)
    clean = result(Case("vpp", Frames(rate=Rate(100_000))), loss_events=(), loss_event_count=0, lost=0, **soak)
    (chart,) = charts([lossy, clean], "losses")
    assert [(row["series"], row["start"], row["end"], row["kind"]) for row in values(chart)] == [
        ("ovs", 10.0, 10.5, "lost"),
        ("ovs", 30.0, 30.1, "refused"),
        ("vpp", 0.0, 0.0, "none"),
    ]
    assert "vpp: no frame lost or refused in 60 s." in chart.text
    assert "ovs: 2 loss events" in chart.text
    assert charts([result(Case("ovs"))], "losses") == []


def test_worker_cores_are_an_axis_and_the_ideal_line_ends_before_it_flattens_the_rest() -> None:
    results = [
        result(Case("ovs", pairs=4, switch_cores=cores), **at(pps)) for cores, pps in ((1, 2e6), (2, 3e6), (4, 3e6))
    ]
    (chart,) = charts(results, "cores")
    assert [row[1:4] for row in chart.rows] == [("ovs", 1, 2.0), ("ovs", 2, 3.0), ("ovs", 4, 3.0)]
    assert "ovs: 4 cores carry 37.5 % of the ideal." in chart.text
    ideal = chart.spec["layer"][0]["data"]["values"]
    assert [point["rate"] for point in ideal] == pytest.approx([2.0, 4.0, 3.0 * HIGHEST])


def test_functions_side_by_side_have_the_line_of_the_best_path() -> None:
    rates = {("ovs", 1): 4e6, ("ovs", 2): 5e6, ("linux-bridge", 1): 1e6, ("linux-bridge", 2): 1.5e6}
    results = [result(Case(name, function="nat", pairs=n), **at(pps)) for (name, n), pps in rates.items()]
    (total,) = [chart for chart in charts(results, "pairs") if chart.title.startswith("Total (T)")]
    assert total.text.endswith(BENCHMARK)
    assert "linux-bridge-via:nat: 2 functions carry 18.75 % of the line." in total.aria
    line = total.spec["layer"][0]["data"]["values"]
    assert [(point["series"], point["rate"]) for point in line] == [
        ("ovs-via:nat", 4.0),
        ("ovs-via:nat", pytest.approx(5.0 * HIGHEST)),
    ]
    without_one = [each for each in results if each.point.pairs > 1 or each.switch == "ovs"]
    plain = [result(Case("ovs", pairs=n), **at(pps)) for n, pps in ((1, 4e6), (2, 5e6))]
    for others in ([*results, *plain], [*without_one[1:]]):
        texts = [chart.text for chart in charts(others, "pairs") if chart.title.startswith("Total (T)")]
        assert all(text.endswith(IDEAL) for text in texts)


def test_the_mean_of_pairs_is_drawn_against_packet_size() -> None:
    results = [result(Case("ovs", Frames(Traffic(size)), pairs=2), throughput_per_pair_pps=2e6) for size in (64, 1500)]
    titles = [chart.title for chart in charts(results, "pairs")]
    assert titles == ["Mean of the pairs (M) against packet size: bursts of 32, 2 pairs, flat out"]


@pytest.mark.parametrize(("mbps", "limit"), [(10_000, 9.868), (None, None)])
def test_two_hosts_have_gigabits_against_pairs_with_the_link_s_limit_if_it_is_known(
    mbps: int | None, limit: float | None
) -> None:
    treatment = {"uplink_mbps": mbps}
    results = [result(Case("ovs", Frames(Traffic(1500)), pairs=n, remote=True), treatment=treatment) for n in (1, 2)]
    (chart,) = [chart for chart in charts(results, "pairs") if "Gbit/s" in chart.title]
    lines = [layer["data"]["values"][0]["rate"] for layer in chart.spec["layer"] if "data" in layer]
    assert lines == ([] if limit is None else pytest.approx([limit, limit], abs=1e-3))


def test_a_load_that_changes_has_each_change_and_when_it_arrived() -> None:
    changes = (
        LoadChange(1, 2, 10_000, 30_000, 29_990.0, 29_000.4, 0.31),
        LoadChange(1, 5, 30_000, 5_000, 5_000.0, 5_000.0, None),
        LoadChange(2, 3, 8_000, 4_000, 4_000.0, 4_000.0, 0.1),
    )
    case = Case("ovs", Frames(rate=Rate.from_json("trace:steps:30k")), pairs=2)
    changing = result(case, followed=changes, settings={"duration_s": 8.0})
    (chart,) = charts([changing, result(Case("ovs"))], "followed")
    drawn = [(row["series"], row["begin"], row["end"], row["load"], row["arrived"]) for row in values(chart)]
    assert drawn == [
        ("pair 1", 0, 2, 10_000, None),
        ("pair 1", 2, 5, 30_000, 2.31),
        ("pair 1", 5, 8.0, 5_000, None),
        ("pair 2", 0, 3, 8_000, None),
        ("pair 2", 3, 8.0, 4_000, 3.1),
    ]
    assert [row["received"] for row in values(chart)] == [None, 29_000, 5_000, None, 4_000]
    assert [row["offered"] for row in values(chart)] == [None, 29_990, 5_000, None, 4_000]
    drawn_fields = [layer["encoding"]["y"]["field"] for layer in chart.spec["layer"]]
    assert drawn_fields == ["load", "offered", "received", "received"]
    assert "2 of 3 changes" in chart.text


def test_a_function_that_is_frozen_again_passes_nothing_from_then_on() -> None:
    case = Case("veth", Frames(rate=Rate.from_json("trace:freeze:1k")), function="wire", pairs=2)
    thawed = result(case, followed=(LoadChange(2, 3, 0, 1000, 1000.0, 999.0, 0.2),), settings={"duration_s": 21.0})
    (chart,) = charts([thawed], "followed")
    drawn = [(row["series"], row["begin"], row["end"], row["load"], row["received"]) for row in values(chart)]
    assert drawn == [("pair 2", 0, 3, 0, None), ("pair 2", 3, 18, 1000, 999), ("pair 2", 18, 21, 0, None)]


def test_noisy_neighbours_have_a_row_for_each_value_with_its_interval() -> None:
    effect = NoisyNeighbourEffect(9, 0.9917, mean_ratio=Estimate(1.2, 1.1, 1.4), p99_ratio=Estimate(2.0, 0.9, 4.0))
    beside = result(
        Case("ovs", Frames(rate=Rate.from_json(1000)), dimension="latency", noisy_neighbour="stream"),
        noisy_neighbour=effect,
    )
    (chart,) = charts([beside, timed("ovs", 1000, 20e3)], "noisy_neighbours")
    drawn = [(row["row"], row["ratio"], row["low"], row["high"], row["shown"]) for row in values(chart)]
    assert drawn == [
        ("ovs-beside:stream, mean", 1.2, 1.1, 1.4, "1.2 times"),
        ("ovs-beside:stream, p99", 2.0, 0.9, 4.0, "no change shown"),
    ]


def test_the_distribution_ends_below_all_requests_where_some_are_lost() -> None:
    rtt = Histogram(((1000, 500), (2000, 300)), 990, 2000, 1100.0, 3, lost=200)
    found = timed("ovs", 1000, 1000.0, per_launch=(launch(rtt=rtt),))
    (chart,) = cdf_figures([found], ["ovs"])
    compiled(chart)
    assert max(row["share"] for row in values(chart)) == 80
    assert [row["rtt"] for row in values(chart) if row["share"] == 50] == [1.0]


def chained(length: int, rate: str | int, **more: Any) -> Case:
    return Case("veth", Frames(rate=Rate.from_json(rate)), function="acl10", chain=length, **more)


def test_rates_stand_against_the_length_of_a_chain_and_those_flat_out_beside_them_are_marked() -> None:
    rates = {(1, "pdr:0.5%"): 4e5, (10, "pdr:0.5%"): 5e4, (1, "max"): 4.2e5, (10, "max"): 1e3}
    results = [result(chained(*at_), **at(pps)) for at_, pps in rates.items()]
    (chart,) = charts([*results, result(Case("veth"), **at(9e5))], "chains")
    compiled(chart)
    assert [row[1:4] for row in chart.rows] == [
        ("veth-via:acl10, flat out", 1, 0.42),
        ("veth-via:acl10, flat out", 10, 0.001),
        ("veth-via:acl10, pdr:0.5%", 1, 0.4),
        ("veth-via:acl10, pdr:0.5%", 10, 0.05),
    ]
    assert "a later one drops" in chart.text
    assert "a later one drops" not in charts(results[:2], "chains")[0].text
    assert charts(results[::2], "chains") == []  # one length alone is no axis


def test_round_trips_stand_against_the_length_of_a_chain_with_their_99th_percentiles() -> None:
    times = {1: 40e3, 2: 70e3, 50: 1900e3}
    results = [
        result(
            chained(length, 1000, dimension="latency").sending(burst=1),
            rtt_p50_ns=Estimate(p50, p50 * 0.9, p50 * 1.1),
            rtt_p99_ns=Estimate(p50 * 4),
        )
        for length, p50 in times.items()
    ]
    (chart,) = charts([*results, timed("veth", 1000, 20e3)], "chain-delays")
    compiled(chart)
    drawn = [(row["series"], row["chain"], row["rtt"], row["p99"]) for row in values(chart)]
    path = "veth-via:acl10"
    assert drawn == [(path, 1, 40, 160), (path, 2, 70, 280), (path, 50, 1900, 7600)]


def test_errors_of_goodput_stand_against_shares_and_caps_and_not_against_both_at_once() -> None:
    def works(kind: str, *errors: float | None) -> tuple[FunctionWork, ...]:
        parts: list[dict[str, Any]] = [{kind: part} for part in (70, 30)]
        return tuple(
            FunctionWork(
                pair,
                **parts[pair - 1],
                goodput_error=error,
                goodput_error_low=None if error is None else error - 0.01,
                goodput_error_high=None if error is None else error + 0.01,
            )
            for pair, error in enumerate(errors, start=1)
        )

    case = Case("veth", Frames(rate=Rate(1000)), function="cost1000", pairs=2)
    results = [
        result(replace(case, cpu_share="70:30"), functions=works("cpu_share", -0.05, 0.02)),
        result(replace(case, function="cost9:cost7", cpu_share="70:30"), functions=works("cpu_share", 0.03, None)),
        result(replace(case, cpu_quota="70:30"), functions=works("cpu_quota", 0.5, 0.1)),
        result(replace(case, cpu_quota="70:30", cpu_share="70:30"), functions=works("cpu_share", 9.0, 9.0)),
    ]
    shares, caps = charts(results, "shares")
    for chart in (shares, caps):
        compiled(chart)
    assert [(row["series"], row["cpu_share"], row["error"], row["low"]) for row in values(shares)] == [
        ("veth-via:cost1000", 30, 2, 1),
        ("veth-via:cost1000", 70, -5, -6),
        ("veth-via:cost9:cost7: cost9", 70, 3, 2),
    ]
    assert shares.text.startswith("Greatest error: -5 % at 70 %, veth-via:cost1000.")
    assert [(row["cpu_quota"], row["error"]) for row in values(caps)] == [(30, 10), (70, 50)]


def test_the_rate_of_functions_with_equal_parts_stands_against_their_number() -> None:
    case = Case("veth", function="cost9")

    def equal(number: int, pps: float, rate: int) -> Result:
        share = ":".join([str(100 // number)] * number)
        return result(replace(case, pairs=number, cpu_share=share).sending(rate=Rate(rate)), **at(pps))

    results = [equal(6, 0.0215e6, 6000), equal(12, 0.0211e6, 3000), equal(36, 0.0192e6, 1000)]
    uneven = result(replace(case, pairs=2, cpu_share="70:30").sending(rate=Rate(18_000)), **at(2e4))
    (chart,) = charts([*results, equal(12, 0.02e6, 6000), uneven], "shares")
    assert "at 36k together" in chart.title
    assert [row[1:4] for row in chart.rows] == [
        ("veth-via:cost9, equal shares", 6, 0.0215),
        ("veth-via:cost9, equal shares", 12, 0.0211),
        ("veth-via:cost9, equal shares", 36, 0.0192),
    ]
    assert charts([results[0], uneven], "shares") == []
