# SPDX-License-Identifier: BSD-3-Clause
"""The path under test of a case: stations, what was refused and lost at each arrow, and the limit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.display.case_names import path_of
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import SwitchPort
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.figure.path_chart import path_chart
from pytest_icbench.report.figure.registry import case_charts
from pytest_icbench.report.html.data import MOST_DRAWN, drawn_cases, facts_of
from tests.charts import values
from tests.measurements import launch, result
from tests.measurements import launch as made_launch

TREATMENT = {
    "dpdk": "22.11.11",
    "switch": {"version": "3.1.0"},
    "cpus": {"switch": [1], "endpoints": [0, 0], "yield_every": 128},
}


def whole(case: Case | None = None, **more: Any) -> Result:
    facts: dict[str, Any] = {
        "treatment": TREATMENT,
        "settings": {"ring": 256},
        "cycles_per_packet": 178.0,
        "sender_cycles_per_packet": 40.0,
        "receiver_cycles_per_packet": 44.0,
        "sender_busy_share": 0.23,
        "receiver_busy_share": 0.25,
        "per_launch": (made_launch(busy_share=0.942),),
        "switch_counters": (SwitchPort(0, 100, 0, 7, 0), SwitchPort(1, 0, 90, 0, 19_233)),
    }
    return result(case, **(facts | more))


def stations(found: Result) -> list[dict[str, Any]]:
    chart = path_chart(found)
    assert chart is not None
    return values(chart)


def test_acl_drop_frames_stand_beside_lost_ones() -> None:
    found = whole(lost=5, acl_drops=1234)
    assert any("received, lost 5 (0.00%), acl_drops 1,234" in row["title"] for row in stations(found))
    assert "lost 5, acl_drops 1,234, duplicated" in json.dumps(facts_of(found))
    assert "acl_drops" not in json.dumps([stations(whole()), facts_of(whole())])


def test_it_has_every_station_with_its_facts_and_every_arrow_with_its_frames() -> None:
    rows = stations(whole(refused=3))
    assert [row["kind"] for row in rows] == ["box", "arrow", "ring", "arrow", "box", "arrow", "ring", "arrow", "box"]
    assert [row["title"] for row in rows] == [
        "container a: sender",
        "5.05 Mpps sent, refused 3",
        "ring, 256 descriptors",
        "dropped at its input: 7",
        "ovs",
        "dropped at its output: 19,233",
        "ring, 256 descriptors",
        "5.00 Mpps received, lost 300,000 (0.99%)",
        "container b: receiver",
    ]
    sender, switch, receiver = (row for row in rows if row["kind"] == "box")
    assert sender["detail"].splitlines() == ["CPU 0 (shared)", "yields every 128 polls", "40 cycles a frame"]
    assert switch["detail"].splitlines() == ["1 worker, CPU 1", "version 3.1.0, DPDK 22.11.11", "178 cycles a frame"]
    assert (sender["busy"], switch["busy"], receiver["busy"]) == (0.23, 0.942, 0.25)


@pytest.mark.parametrize(
    ("facts", "marked"),
    [
        ({"bottleneck": "switch"}, [4]),
        ({"bottleneck": "ring", "lost": 0, "refused": 5000}, [2]),
        ({"bottleneck": "ring", "bottleneck_evidence": "0.4% were lost on the way to a receiver"}, [6]),
        ({"bottleneck": "endpoint", "bottleneck_evidence": "the receiver found frames in 99 % of its polls"}, [8]),
        ({"bottleneck": "endpoint", "bottleneck_evidence": "the sender was never refused"}, [0]),
        ({"bottleneck": "host"}, [0, 8]),
        ({"bottleneck": "link"}, [7]),
        ({"bottleneck": "unknown"}, []),
        ({"bottleneck": "switch", "verdict": "INVALID", "reason": "died"}, []),
    ],
)
def test_the_limit_is_marked(facts: dict[str, Any], marked: list[int]) -> None:
    assert [place for place, row in enumerate(stations(whole(**facts))) if row["limit"]] == marked


def test_a_full_ring_is_reported_even_if_every_frame_was_taken_in_the_end() -> None:
    full = launch()
    full = replace(full, pairs=(replace(full.pairs[0], tx_full=1234),))
    rows = stations(whole(per_launch=(full,)))
    assert rows[1]["title"] == "5.05 Mpps sent, refused 0, 1,234 times full"


def test_its_text_says_the_limit_and_whether_the_rate_is_a_floor() -> None:
    chart = path_chart(whole(bottleneck="ring", bottleneck_evidence="its ring was full", lower_bound=True))
    assert chart is not None
    assert chart.text.startswith("Limit: ring, its ring was full. So the path carries ≥ 4.90 Mpps.")


def test_a_reference_link_has_no_switch_and_a_kernel_s_path_no_workers() -> None:
    assert len(stations(whole(Case("direct")))) == 5
    cpus = {"cpus": {"switch": [], "endpoints": [0, 1]}}
    switch = stations(whole(Case("linux-bridge", api="udp"), treatment={**TREATMENT, **cpus}))[4]
    assert switch["detail"].startswith("in the kernel, on the sender's CPU")


def test_round_trips_have_a_client_and_a_server() -> None:
    rows = stations(whole(Case("ovs", Frames(rate=Rate(1000)), dimension="latency"), offered_pps=1000.0, rtt_lost=2))
    assert [rows[place]["title"] for place in (0, 1, -2, -1)] == [
        "container a: client",
        "1,000 requests/s, refused 0",
        "RTT p50 20 µs, 2 never answered",
        "container b: server",
    ]


def test_several_pairs_name_all_cpus() -> None:
    cpus = {"cpus": {"switch": [1, 2], "endpoints": [3, 4, 5, 6]}}
    rows = stations(whole(Case("ovs", pairs=2), treatment={**TREATMENT, **cpus}))
    assert (rows[0]["title"], rows[0]["detail"].splitlines()[0]) == ("containers a: 2 senders", "CPU 3, 5")
    assert rows[-1]["detail"].splitlines()[0] == "CPU 4, 6"
    assert rows[4]["detail"].splitlines()[0] == "2 workers, CPU 1, 2"


def test_on_a_page_of_thousands_the_notable_cases_have_it_first() -> None:
    plain, notable = result(Case("ovs"), verdict="PASS"), result(Case("ovs"), verdict="REGRESSED")
    assert drawn_cases([plain, notable]) == {0, 1}
    assert drawn_cases([plain] * MOST_DRAWN + [notable]) == {*range(MOST_DRAWN - 1), MOST_DRAWN}


def test_a_result_without_facts_has_stations_and_each_case_an_id() -> None:
    bare, full = path_chart(result(Case("ovs"))), path_chart(whole(Case("vpp")))
    assert bare is not None
    assert full is not None
    assert bare.rows
    assert bare.id != full.id
    assert [(chart.kind, chart.spec) for chart in case_charts(whole())] == [("path", {})]


def test_a_network_function_is_a_station_and_a_path_of_its_own() -> None:
    case = Case("linux-bridge", function="nat+acl10", pairs=2)
    works = (FunctionWork(1, 10, 9, 1, 0.25, 2000.0, 2**21), FunctionWork(2, 10, 10, 0, 0.75, 4000.0, 2**20))
    found = whole(case, functions=works, treatment={**TREATMENT, "function": {"component": "linux", "version": "6.1"}})
    (station,) = [row for row in stations(found) if row["title"] == "2 functions: nat+acl10"]
    assert station["detail"] == "linux, 6.1\ndenied 1, 2.0 MiB\n3,000 cycles a frame"
    assert station["busy"] == 0.5
    assert path_of(found).startswith("linux-bridge-via:nat+acl10")
    assert len(stations(whole(Case("direct", function="wire")))) == 7
