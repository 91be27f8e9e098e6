# SPDX-License-Identifier: BSD-3-Clause
"""Paths are ranked in one state of the host, and the level in each state is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import StateLevel
from pytest_icbench.model.rate import Rate
from pytest_icbench.report import overview
from pytest_icbench.report.answer import answer
from pytest_icbench.report.headline import warnings
from pytest_icbench.report.host_states import in_one_state, in_state, ratio_of
from pytest_icbench.report.notes import notes
from pytest_icbench.report.terminal_table import table
from pytest_icbench.stats.quantiles import Estimate, Histogram
from tests.measurements import launch, result

NEAR, FAR = 60.0, 330.0


def level(distance_ns: float, value: float, launches: int = 6) -> StateLevel:
    return StateLevel(distance_ns, launches, Estimate(value, value * 0.98, value * 1.02))


def launched(distance_ns: float, *values: float) -> StateLevel:
    return StateLevel(distance_ns, len(values), Estimate(values[0]), values)


def at(distance_ns: float, pps: float, *levels: StateLevel) -> dict[str, Any]:
    ends = {"throughput_pps": pps, "throughput_pps_low": pps * 0.98, "throughput_pps_high": pps * 1.02}
    return {**ends, "distance_ns": distance_ns, "levels": levels}


def test_paths_are_ranked_in_the_state_that_most_of_them_met() -> None:
    """In different states ovs would be slower than testpmd; in one state it is faster."""
    results = [
        result(Case("testpmd"), **at(NEAR, 9e6, level(NEAR, 9e6), level(FAR, 5e6))),
        result(Case("ovs"), **at(FAR, 6e6)),
        result(Case("basicfwd"), **at(FAR, 5.5e6)),
    ]
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.missing) == ("ovs", ())
    assert ranking.question.endswith(", CPUs 330 ns apart")
    assert [rank.split(" (")[0] for rank in ranking.ranks] == ["ovs: 6 Mpps", "basicfwd: 5.5 Mpps", "testpmd: 5 Mpps"]
    assert "2.56 Gbit/s" in ranking.ranks[2]


def test_launches_of_all_states_tell_two_paths_from_each_other() -> None:
    """Neither has enough launches for an interval in one state; over both states ovs is 20 % slower."""
    near, far = [9.0e6, 9.1e6, 9.2e6], [5.0e6, 5.1e6, 5.2e6]
    results = [
        result(Case("testpmd"), **at(NEAR, 9.1e6, launched(NEAR, *near), launched(FAR, *far))),
        result(
            Case("ovs"),
            **at(
                FAR,
                4.1e6,
                launched(NEAR, *[0.8 * value for value in near]),
                launched(FAR, *[0.8 * value for value in far]),
            ),
        ),
    ]
    ratio = ratio_of(results[1], results[0])
    assert ratio is not None
    assert ratio == pytest.approx(0.8, rel=0.01)
    assert ratio.high is not None
    assert ratio.high < 1
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.rivals) == ("testpmd", ())
    assert ranking.lead.startswith("25 % ahead of ovs (")


def test_paths_that_differ_by_little_are_equal() -> None:
    values = [9.0e6, 9.1e6, 9.2e6, 9.3e6, 9.4e6, 9.5e6]
    results = [
        result(Case("testpmd"), **at(NEAR, 9.25e6, launched(NEAR, *values))),
        result(Case("basicfwd"), **at(NEAR, 9.3e6, launched(NEAR, *[value * 1.005 for value in values]))),
        result(Case("ovs"), **at(NEAR, 4.6e6, launched(NEAR, *[value / 2 for value in values]))),
    ]
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.tied) == ("basicfwd and testpmd", True)
    assert ranking.lead.startswith("equal within ")
    assert "2.0 times ovs (" in ranking.lead
    (sentence,) = answer(results)
    assert sentence.text.startswith("basicfwd 9.30, testpmd 9.25 Mpps, equal within ")
    results[0] = replace(results[0], levels=(launched(NEAR, 5e6, 7e6, 9e6, 11e6, 13e6, 15e6),))
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.tied) == ("undecided", False)


def test_paths_without_a_common_state_are_not_reported_by_launches() -> None:
    one, other = (result(Case("ovs"), **at(ns, 5e6, launched(ns, 5e6, 5e6))) for ns in (NEAR, FAR))
    assert ratio_of(one, other) is None


def test_a_path_that_never_met_the_state_is_not_ranked() -> None:
    results = [
        result(Case("testpmd"), **at(NEAR, 9e6)),
        result(Case("basicfwd"), **at(NEAR * 1.2, 11e6)),
        result(Case("ovs"), **at(FAR, 6e6)),
    ]
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.missing) == ("basicfwd", ("ovs",))
    (sentence,) = answer(results)
    assert sentence.text.endswith(": ovs.")


def test_tables_show_the_values_that_are_compared() -> None:
    """Each in its own state, ovs would stand above basicfwd, which is faster in the state that both met."""
    results = [
        result(Case("direct"), **at(NEAR, 15e6, level(NEAR, 15e6), level(FAR, 9.8e6))),
        result(
            Case("ovs"), **at(NEAR, 5.1e6, level(NEAR, 5.1e6), level(FAR, 3.9e6)), cycles_per_packet=Estimate(700.0)
        ),
        result(Case("basicfwd"), **at(FAR, 4.2e6, launched(NEAR, 7.1e6, 7.2e6), level(FAR, 4.2e6))),
    ]
    shown = {line.split()[0]: line.split()[1] for line in table(results) if line and line[0] != " "}
    assert [shown[path] for path in ("direct", "basicfwd", "ovs")] == ["9.80", "4.20", "3.90"]
    (sentence,) = answer(overview.in_common_states(results))
    assert sentence.text.startswith("basicfwd with 4.20 Mpps (4.12 to 4.28), 7.69 % ahead of ovs (3.47 % to 12.1 %)")
    mapped = overview.in_common_states(results)
    assert overview.in_common_states(mapped) == mapped
    assert mapped[1].rates.cycles_per_packet is None  # it was counted in the other state


def test_a_path_that_never_met_the_state_says_which_one_its_value_is_of() -> None:
    results = [
        result(Case("testpmd"), **at(NEAR, 9e6)),
        result(Case("basicfwd"), **at(NEAR * 1.2, 11e6)),
        result(Case("ovs"), **at(FAR, 6e6)),
    ]
    assert any(line.startswith("ovs (CPUs 330 ns apart)  6.00") for line in table(results))


def test_a_lead_is_what_the_intervals_shown_allow() -> None:
    """Launches of the near state would allow 26 times, and those shown, without an interval, 9.4 to 10.6 times."""
    values = [9.0e6, 9.1e6, 9.2e6, 9.3e6, 9.4e6, 9.5e6]
    near, far = [value / 30 for value in values], [value / 10 for value in values]
    known: dict[str, Any] = {"lower_bound": True, "bottleneck": "ring"}
    fast = result(Case("ovs"), **at(FAR, 9.25e6, launched(NEAR, *values), launched(FAR, *values)), **known)
    slow = result(Case("linux-bridge"), **at(FAR, 0.925e6, launched(NEAR, *near), launched(FAR, *far)))
    (ranking,) = overview.rankings([fast, slow])
    assert ranking.lead == "at least 9.6 times linux-bridge"  # 9.25 * 0.98 / (0.925 * 1.02)
    plain = slow.with_figures(throughput_pps=Estimate(0.925e6))
    (ranking,) = overview.rankings([fast, plain])
    assert ranking.lead == "at least 9.7 times linux-bridge, launch by launch"
    (ranking,) = overview.rankings([fast, replace(plain, disturbed_launches=plain.launches)])
    assert ranking.winner == "undecided", "a busy host changes between the paths"


def test_one_state_is_not_named() -> None:
    results = [result(Case("testpmd"), **at(NEAR, 9e6)), result(Case("ovs"), **at(NEAR * 1.3, 6e6)), result()]
    assert in_one_state(results) == (results, "", ())
    (ranking,) = overview.rankings(results)
    assert "apart" not in ranking.question


def test_the_level_in_each_state_is_a_note_and_a_warning() -> None:
    found = result(Case("ovs"), **at(NEAR, 9e6, level(NEAR, 9e6, 8), level(FAR, 5e6, 4)))
    reported = "9 Mpps with CPUs 60 ns apart (8 launches), 5 Mpps with CPUs 330 ns apart (4 launches)"
    sentence = f"2 states of the host: {reported}; the values are of CPUs 60 ns apart"
    assert any(sentence in note for note in notes([found]))
    assert any("met several states of the host" in warning for warning in warnings([found]))
    assert not any("several states" in warning for warning in warnings([result()]))


def test_round_trips_are_ranked_in_one_state_without_a_percentile_of_the_other() -> None:
    case = Case("ovs", Frames(rate=Rate(1000)), dimension="latency")
    far = result(
        case, rtt_p50_ns=Estimate(9e3), rtt_p99_ns=50e3, distance_ns=FAR, levels=(level(NEAR, 5e3), level(FAR, 9e3))
    )
    near = result(
        Case("testpmd", Frames(rate=Rate(1000)), dimension="latency"),
        distance_ns=NEAR,
        rtt_p50_ns=Estimate(6e3),
    )
    other = result(
        Case("basicfwd", Frames(rate=Rate(1000)), dimension="latency"),
        distance_ns=NEAR,
        rtt_p50_ns=Estimate(7e3),
    )
    (ranking,) = overview.rankings([far, near, other])
    assert ranking.ranks[0].startswith("ovs: 5 µs")
    assert "99th" not in ranking.ranks[0]


def test_a_round_trip_in_another_state_has_the_percentile_of_its_launches() -> None:
    """So that the path with no switch, which other percentiles are compared with, keeps one."""
    case = Case("direct", Frames(rate=Rate(1000)), dimension="latency")
    rtt = Histogram(tuple((10 * step, 1) for step in range(1, 1001)), 10, 10_000, 5_000.0, 3)
    others = tuple(replace(launch(), repeated=side, rtt=rtt, distances_ns=(FAR, FAR)) for side in ("case", "reference"))
    shown = in_state(
        result(case, distance_ns=NEAR, levels=(level(NEAR, 5e3), level(FAR, 9e3)), per_other_launch=others), [FAR]
    )
    assert shown is not None
    assert shown.round_trips.rtt_p99_ns == Estimate(9_900.0)
    assert shown.round_trips.rtt_p90_ns is None
    assert [launch.rtt for launch in shown.per_launch] == [rtt]  # charts draw them
    assert len(shown.per_other_launch) == 1 + len(result(case).per_launch)


def test_a_wait_for_a_state_is_reported() -> None:
    found = result(Case("ovs"), **at(NEAR, 9e6), awaited_s=12.0)
    assert any("waited 12 s for CPUs 60 ns apart" in note for note in notes([found]))
    assert not any("waited" in note for note in notes([result(Case("ovs"), **at(NEAR, 9e6), awaited_s=0.2)]))
