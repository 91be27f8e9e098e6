# SPDX-License-Identifier: BSD-3-Clause
"""Containers that were created, in reports: the table, the line and the charts."""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.display.case_names import path_of
from pytest_icbench.display.table import In
from pytest_icbench.display.theme import series_scales
from pytest_icbench.kinds.startup.startup_charts import MOST_POINTS, startup_charts
from pytest_icbench.kinds.startup.startup_summary import Course, summarize_startup
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Startup
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import Idle, Retirement, Startups
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report import openmetrics
from pytest_icbench.report.answer import answer
from pytest_icbench.report.columns import columns
from pytest_icbench.report.figure import published
from pytest_icbench.report.figure.rate_charts import all_series
from pytest_icbench.report.headline import question
from pytest_icbench.report.overview import rankings
from pytest_icbench.report.terminal_table import WIDTH, table


def result(kind: str, count: int, each_ms: float, failure: str | None = None) -> Result:
    each = round(each_ms * 1e6)
    startups = Startups(
        kind,
        count,
        total_ns=(each,) * count,
        prepared_ns=(each // 4,) * count,
        process_ns=(each // 4,) * count,
        network_ns=(each // 2,) * count,
        answered_ns=(0,) * count,
        removed_ns=(2_000_000,) * count,
        idle=(Idle(count // 2, count * 150_000, 0.0), Idle(count, count * 300_000, 0.01)),
    )
    case = Case("veth", Startup(f"{kind}:{count}"), dimension="startup")
    around = Environment(placement="cooperative", endpoints=())
    return Result.of(summarize_startup(case, Settings(), startups, around, Course(0.0, 1.0, failure)))


def test_the_table_has_phases_growth_and_memory_in_its_width() -> None:
    lines = table([result("netns", 1000, 8.0), result("lxc", 300, 20.0)])
    text = "\n".join(lines)
    assert lines[0].startswith("start-up: time to create a container in ms, median; growth: last tenth over first")
    assert "growth 1.00" in " ".join(lines[:2])
    head, row = (line.split() for line in lines if "each" in line.split() or line.startswith("netns"))
    assert head == ["each", "prepare", "process", "network"]
    assert row == ["netns:1000", "8", "2", "2", "4"]
    assert "…" not in text, "names are whole"
    assert max(map(len, lines)) <= WIDTH


def test_the_line_of_a_case_says_how_long_each_takes() -> None:
    said = [column.say(result("netns", 100, 8.0)) for column in columns(In.LINE)]
    assert "8 ms each" in said
    assert "the last tenth 1.00 times the first" in said


def test_a_chart_has_a_line_for_each_kind_with_few_points() -> None:
    results = [result("netns", 1000, 8.0), result("lxc", 300, 20.0)]
    times, memory = startup_charts(results, all_series(results))
    assert {row[1] for row in times.rows} == {"netns", "lxc"} == set(map(path_of, results))
    netns = [row for row in times.rows if row[1] == "netns"]
    assert (len(netns), netns[0][2], netns[-1][2]) == (MOST_POINTS, 10, 1000)
    assert netns[0][3] == 8.0
    assert [row[2:4] for row in memory.rows if row[1] == "lxc"] == [(150, 45.0), (300, 90.0)]
    assert "lxc: 20 ms at 3, 20 at 300." in times.text


def test_the_chart_keeps_what_was_there_before_a_failure() -> None:
    failed = result("netns", 73, 8.0, failure="no further process is allowed")
    assert failed.verdict == Verdict.INVALID
    times, _ = startup_charts([failed], all_series([failed]))
    assert times.rows[-1][2] == 73
    assert "start-failed" in "\n".join(table([failed]))


def test_the_page_asks_for_containers_and_answers_for_each_kind() -> None:
    results = [result("netns", 1000, 8.0), result("lxc", 73, 20.0, failure="no memory")]
    assert question(results).endswith("? netns, lxc")
    assert [" ".join(sentence[:2]) for sentence in answer(results)] == [
        "netns: 8 ms to create each of 1,000, the last tenth 1.00 times the first, 0.30 MB each while idle.",
        "lxc: 20 ms to create each of 73.",
    ]


def test_each_kind_has_a_colour_of_its_own() -> None:
    kinds = ["fork", "lxc", "netns", "oci"]
    assert len(set(series_scales(kinds, kinds)["color"]["range"])) == 4


def test_first_round_trips_are_drawn_as_a_distribution() -> None:
    plain = result("netns", 100, 8.0)
    assert plain.containers.startups is not None
    startups = replace(plain.containers.startups, first_trip_ns=(*(number * 1_000_000 for number in range(1, 100)), 0))
    arriving = replace(plain, axes={**plain.axes, "startup": "netns:100:25ms"}).with_figures(startups=startups)
    assert path_of(arriving) == "netns every 25 ms"
    *_, trips = startup_charts([arriving], all_series([arriving]))
    assert trips.rows[49][2:] == (50.0, 50.0)
    assert trips.rows[-1][2:] == (99.0, 99.0), "one had no answer"
    assert trips.text == "netns every 25 ms: half within 50 ms."
    assert trips.spec["layer"][0]["encoding"]["y"]["scale"] == {"domain": [0, 100], "nice": False}
    title, head, row = table([arriving])[:3]
    assert title.endswith("; first, p90: first round trips of clients")
    assert "first   p90" in head
    assert row.split()[6:8] == ["50.5", "90.1"]


def test_every_row_has_its_name_beside_containers_that_clients_call_for() -> None:
    called = []
    for kind, trip_ms in (("netns", 897), ("lxc", 2820)):
        plain = result(kind, 200, 34.4)
        assert plain.containers.startups is not None
        startups = replace(plain.containers.startups, first_trip_ns=(trip_ms * 1_000_000,) * 200)
        called.append(
            replace(plain, axes={**plain.axes, "startup": f"{kind}:200:100ms"}).with_figures(startups=startups)
        )
    created = result("fork", 1000, 2.544), result("netns", 1000, 16.84)
    lines = table([called[0], *created, called[1]])
    names = [line.split()[0] for line in lines if line[:1].islower()]
    assert names == [
        "start-up,",
        "netns:200:100ms",
        "lxc:200:100ms",
        "start-up:",
        "fork:1000",
        "netns:1000",
    ]
    assert max(map(len, lines)) <= WIDTH


def test_containers_of_silent_clients_are_reported_with_the_time_of_their_removal() -> None:
    plain = result("netns", 100, 8.0)
    assert plain.containers.startups is not None
    retired = (Retirement(4_000_000, 2_010_000_000), Retirement(6_000_000, 2_050_000_000))
    (said,) = [
        sentence.text
        for sentence in answer([plain.with_figures(startups=replace(plain.containers.startups, retired=retired))])
        if "to create each" in sentence.text
    ]
    assert "2 removed while others came, 5 ms each, gone 2.03 s after the last frame of their client" in said


def test_a_case_without_a_value_says_no_round_trip_of_its_clients() -> None:
    failed = result("netns", 100, 8.0, failure="no memory")
    assert failed.containers.startups is not None
    arriving = failed.with_figures(
        startups=replace(failed.containers.startups, first_trip_ns=(1_000_000,) * 90 + (0,) * 10)
    )
    (said,) = [sentence.text for sentence in answer([arriving]) if "to create each" in sentence.text]
    assert "first round trip" not in said


def test_a_client_without_an_answer_is_slower_than_all_others() -> None:
    startups = Startups("netns", 4, first_trip_ns=(0, 3, 2, 1))
    assert startups.first_trip_quantile_ns(0.5) == 2.5
    assert startups.first_trip_quantile_ns(0.9) is None
    assert Startups("netns", 4).first_trip_quantile_ns(0.5) is None


def test_kinds_are_no_switches_and_are_not_ranked() -> None:
    assert rankings([result("netns", 100, 8.0), result("lxc", 100, 20.0)]) == []


def test_statements_stand_beside_two_kinds_and_not_beside_two_numbers_of_one() -> None:
    def rows(*kinds: tuple[str, int]) -> list[str]:
        return [row for row, _, _ in published.statements([result(kind, count, 8.0) for kind, count in kinds])]

    assert rows(("netns", 100), ("lxc", 100)) == ["E1", "E2"]
    assert rows(("netns", 100), ("netns", 1000)) == []


def test_metrics_have_the_time_in_seconds() -> None:
    text = openmetrics.text([replace(result("netns", 100, 8.0), verdict=None)])
    assert 'icbench_startup_seconds{case="veth-birth:netns:100-1vs1-Rmax"' in text
    assert "} 0.008" in text
