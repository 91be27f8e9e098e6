# SPDX-License-Identifier: BSD-3-Clause
"""Results with mixes, flows, functions, applications and rounds: a reader sees what each of them is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.display.table import In
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application, Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.answer import answer
from pytest_icbench.report.columns import columns
from pytest_icbench.report.figure import published
from pytest_icbench.report.figure.registry import Content, section_charts
from pytest_icbench.report.headline import question
from pytest_icbench.report.html.data import facts_of
from pytest_icbench.report.terminal_table import table
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import launch, result

MIX = Traffic.of_mix("simple")


def app(switch: str, name: str, rate: float, **changed: Any) -> Result:
    figures: dict[str, Any] = {
        "metric": "closed-loop",
        "operations": 540_000.0,
        "operations_per_second": Estimate(rate, rate * 0.9, rate * 1.1),
        "response_p50_ns": Estimate(90e3),
        "response_p99_ns": Estimate(300e3),
        "client_cpu_ns_per_operation": Estimate(20e3),
        "server_cpu_ns_per_operation": Estimate(10e3),
    }
    return result(Case(switch, Application(name), dimension="application"), **{**figures, **changed})


def rate(case: Case, pps: float) -> Result:
    return result(case, throughput_pps=Estimate(pps, pps * 0.9, pps * 1.1))


APPS = [app("linux-bridge", "redis", 9000.0), app("ovs", "redis", 5000.0)]


@pytest.mark.parametrize(
    ("results", "title"),
    [
        (APPS, "Which switch? 2 paths, redis"),
        (APPS[:1], "How fast is linux-bridge? Redis"),
        (
            [rate(Case("ovs", Frames(MIX)), 1e6), rate(Case("vpp"), 1e6)],
            "Which switch? 2 paths, 64 bytes, mix simple",
        ),
        (
            [rate(Case("ovs", function=name), 1e6) for name in (None, "nat", "acl10")],
            "What is left of ovs with nat or acl10? 64 bytes",
        ),
        (
            [rate(Case("ovs", function=f"acl{rules}"), 1e6) for rules in range(1, 5)],
            "What is left of ovs with 4 functions? 64 bytes",
        ),
    ],
)
def test_the_title_names_what_was_sent_and_what_was_in_the_path(results: list[Result], title: str) -> None:
    assert question(results) == title


def test_applications_are_drawn_on_the_first_screen() -> None:
    ((section, (chart,)),) = [(row, charts) for row, charts in section_charts(Content.of(APPS)) if row.place == "first"]
    assert (section.name, chart.title.split(" (bar")[0]) == ("applications", "Rate (closed-loop), redis")
    assert [(row[1], row[6]) for row in chart.rows] == [
        ("linux-bridge", "9,000/s · p99 300 µs"),
        ("ovs", "5,000/s · p99 300 µs"),
    ]


def test_facts_of_an_application_are_its_own() -> None:
    facts = dict(facts_of(APPS[0]))
    assert facts["response times"] == "p50 90 µs, p99 300 µs"
    assert facts["CPU time"] == "client 20 µs, server 10 µs an operation"
    assert facts["operations"] == "540,000"
    assert "frames" not in facts
    assert "frames" in dict(facts_of(result()))


def test_few_launches_are_not_said_to_have_intervals() -> None:
    results = [app(switch, "redis", 9000.0, operations_per_second=Estimate(9000.0)) for switch in ("ovs", "vpp")]
    (sentence,) = answer(results)
    assert "too few launches to tell" in sentence.text
    assert "overlap" not in sentence.text


def test_the_first_sentence_is_on_functions_where_there_are_any() -> None:
    results = [rate(Case("ovs"), 4e6), rate(Case("ovs", function="nat"), 1e6), rate(Case("ovs", function="wire"), 3e6)]
    first = answer(results)[0]
    assert first.lead == "Rate with functions, 64 B:"
    assert first.text == (
        "ovs-via:nat 25 % (20.5 % to 30.6 %); ovs-via:wire 75 % (61.4 % to 91.7 %) of the path without the function."
    )


def test_functions_of_two_placements_are_two_sentences_each_with_its_own() -> None:
    shared = [replace(rate(Case("ovs", function=name), pps), placement="cooperative") for name, pps in NAT_AND_NONE]
    own = [replace(item, placement="dedicated") for item in shared]
    reported = [item.text for item in answer([*shared, *own]) if item.lead.startswith("Rate with functions")]
    assert [text.count("ovs-via:nat") for text in reported] == [1, 1]


NAT_AND_NONE: tuple[tuple[str | None, float], ...] = ((None, 4e6), ("nat", 1e6))


def test_flows_and_mixes_are_named_in_the_answer_and_drawn_apart() -> None:
    traffics = [Traffic(64, flows=flows) for flows in (None, "1k", "100k")]
    results = [
        rate(Case(switch, Frames(traffic)), pps) for traffic in traffics for switch, pps in (("ovs", 2e6), ("vpp", 1e6))
    ]
    leads = [sentence.lead for sentence in answer(results)]
    assert leads[:2] == [
        "Fastest, 64 B, bursts of 32, 1 pair, flat out:",
        "Fastest, 64 B, bursts of 32, 100k flows, 1 pair, flat out:",
    ]
    assert [sentence.lead for sentence in answer(results[-2:])] == ["Fastest, 64 B, 100k flows:"]


def test_publications_have_no_mixes_flows_functions_or_applications() -> None:
    plain = result(Case("vpp"))
    assert published.stated(plain)
    for changed in ({"flows": "100k"}, {"mix": "simple"}, {"header": "udp6"}, {"function": "nat"}, {"app": "redis"}):
        assert published.stated(replace(plain, axes={**plain.axes, **changed})) == []


def test_rounds_are_reported() -> None:
    launches = tuple(launch(index=number, round=number % 3) for number in range(6))
    found = result(ended_by="rounds", per_launch=launches)
    assert dict(facts_of(found))["launches"] == "6, in 3 rounds, ended by rounds"
    assert "interval: of launches that were spread over the session, in 3 rounds" in table([found])
    assert dict(facts_of(replace(found, ended_by="precision")))["launches"] == "6, ended by precision"


def test_a_change_without_values_ends_without_a_comma() -> None:
    found = result(baseline="main", ratio_to_baseline=Estimate(0.8, 0.79, 0.81))
    phrases = [column.say(found) for column in columns(In.PAGE)]
    assert "changed by -20.0 % (-21.0 to -19.0)" in phrases
