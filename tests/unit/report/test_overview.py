# SPDX-License-Identifier: BSD-3-Clause
"""Which path wins, by how much, and when that is undecided."""

from __future__ import annotations

from typing import Any

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.report import overview
from tests.measurements import result


def at(pps: float) -> dict[str, Any]:
    return {"throughput_pps": pps, "throughput_pps_low": pps * 0.98, "throughput_pps_high": pps * 1.02}


def test_ranking_says_who_leads_and_whether_intervals_tell() -> None:
    results = [result(Case("ovs"), **at(5e6)), result(Case("vpp"), **at(10e6)), result(Case("direct"), **at(20e6))]
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.lead) == ("vpp", "2.0 times ovs (1.9 to 2.1)")
    assert [rank.split(" (")[0] for rank in ranking.ranks] == ["vpp: 10 Mpps", "ovs: 5 Mpps"]
    results[1] = result(Case("vpp"), **at(5.01e6))
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.lead) == ("vpp and ovs", "equal within 4.29 %")
    assert [path.switch for path in ranking.rivals] == ["ovs"]


def test_a_winner_is_compared_with_every_path() -> None:
    """A floor below the best value, and one without an interval, may belong to faster paths than the best."""
    results = [
        result(Case("basicfwd"), **at(16.1e6)),
        result(Case("ovs"), lower_bound=True, **at(14.2e6)),
        result(Case("testpmd"), lower_bound=True, **at(7.5e6)),
        result(Case("snabb"), throughput_pps=15e6, throughput_pps_low=None, throughput_pps_high=None),
        result(Case("linux-bridge"), **at(0.25e6)),
    ]
    (ranking,) = overview.rankings(results)
    assert ranking.winner == "undecided"
    assert ranking.lead == (
        "snabb: too few launches to tell from basicfwd; ovs, testpmd: at least this, so may be faster"
    )
    assert [rank.split(" Mpps")[0] for rank in ranking.ranks] == [
        "basicfwd: 16.1",
        "snabb: 15",
        "ovs: 14.2",
        "testpmd: 7.5",
        "linux-bridge: 0.25",
    ]
    assert {path.switch for path in ranking.rivals} == {"snabb", "ovs", "testpmd"}


def test_at_least_wins_only_by_its_floor() -> None:
    results = [result(Case("ovs"), **at(5e6)), result(Case("vpp"), lower_bound=True, **at(4e6))]
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.lead) == ("undecided", "vpp: at least this, so may be faster")
    results[1] = result(Case("vpp"), lower_bound=True, **at(10e6))
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.lead) == ("vpp", "at least 1.9 times ovs")
    results[1] = result(Case("vpp"), lower_bound=True, **at(5.01e6))
    assert overview.rankings(results)[0].winner == "undecided"


def test_nobody_leads_before_itself() -> None:
    (ranking,) = overview.rankings([result(Case("ovs"), **at(4e6)), result(Case("ovs"), **at(5e6))])
    assert (ranking.winner, ranking.lead) == ("ovs", "")
    assert [rank.split(" (")[0] for rank in ranking.ranks] == ["ovs: 5 Mpps"]


def test_a_shorter_time_wins_by_its_share_of_the_longer() -> None:
    def times(switch: str, ns: float) -> Result:
        figures = {"rtt_p50_ns": ns, "rtt_p50_ns_low": ns, "rtt_p50_ns_high": ns}
        return result(Case(switch, Frames(rate=Rate(1000)), dimension="latency"), **figures)

    (ranking,) = overview.rankings([times("ovs", 40_000.0), times("vpp", 10_000.0)])
    assert (ranking.winner, ranking.lead) == ("vpp", "75 % below ovs (75 % to 75 %)")


def test_functions_are_ranked_with_their_like() -> None:
    """A policer and a NAT do not compete."""
    cases = [("ovs", "nat", 4e6), ("vpp", "nat", 8e6), ("ovs", "police100k", 1e5), ("ovs", None, 9e6)]
    results = [result(Case(switch, function=function), **at(pps)) for switch, function, pps in cases]
    found = overview.rankings(results)
    assert [len(ranking.paths) for ranking in found] == [2, 1, 1]
    assert [", through nat" in ranking.question for ranking in found] == [True, False, False]
    assert found[0].winner == "vpp-via:nat"


def test_routers_are_ranked_with_their_like() -> None:
    """A bridge that looks at two addresses is no rival of a router, which also changes frames."""
    cases = [
        Case("ovs"),
        Case("vpp"),
        Case("ovs", mode="ip4"),
        Case("vpp", mode="ip4"),
        Case("vpp", mode="ip6"),
        Case("route"),
    ]
    found = overview.rankings([result(case, **at(5e6)) for case in cases])
    assert [len(ranking.paths) for ranking in found] == [2, 3, 1]
    assert ["routed as IPv" in ranking.question for ranking in found] == [False, True, True]
    assert "routed as IPv6" in found[2].question


def test_a_lead_is_never_more_than_the_intervals_allow() -> None:
    wide = {"throughput_pps": 7.7e6, "throughput_pps_low": 4.4e6, "throughput_pps_high": 9.7e6}
    slow = {"throughput_pps": 0.27e6, "throughput_pps_low": 0.23e6, "throughput_pps_high": 0.31e6}
    (ranking,) = overview.rankings(
        [result(Case("ovs"), lower_bound=True, **wide), result(Case("linux-bridge"), **slow)]
    )
    assert ranking.lead == "at least 14 times linux-bridge"


def test_who_shares_cpus_never_loses_to_one_that_does_not_and_leads_by_at_least_its_lead() -> None:
    shared, alone = ({"cpus": {"yield_every": every}} for every in (128, 0))
    results = [result(Case("ovs"), treatment=shared, **at(5e6)), result(Case("veth0"), treatment=alone, **at(10e6))]
    (ranking,) = overview.rankings(results)
    assert ranking.winner == "undecided"
    assert "share CPUs" in ranking.lead
    results[1] = result(Case("veth0"), treatment=alone, **at(1e6))
    (ranking,) = overview.rankings(results)
    assert (ranking.winner, ranking.lead) == ("ovs", "at least 4.8 times veth0")
