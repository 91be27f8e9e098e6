# SPDX-License-Identifier: BSD-3-Clause
"""What a network function leaves of its path's value is in every report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.model.case import AXES, Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.html.data import facts_of, page_data
from pytest_icbench.report.html.page import Page
from pytest_icbench.report.markdown import summary
from pytest_icbench.report.plain import plain_ratio, with_plain
from pytest_icbench.report.tabular import COLUMNS, flat
from pytest_icbench.report.terminal_table import result_line, table
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import result

PLAIN = Case("linux-bridge")
NAT = Case("linux-bridge", function="nat")
WORDS = "of the path without the function"


def rate(case: Case, pps: float, **changed: Any) -> Result:
    return result(case, throughput_pps=Estimate(pps, pps * 0.9, pps * 1.1), **changed)


def ratio_in(results: list[Result]) -> Estimate | None:
    return plain_ratio(next(item for item in with_plain(results) if item.point.function))


def test_a_measured_reference_decides() -> None:
    found = rate(NAT, 1e6, ratio_to_reference=Estimate(0.5, 0.45, 0.55))
    ratio = ratio_in([rate(PLAIN, 4e6), found])
    assert ratio is not None
    assert (float(ratio), ratio.low, ratio.high) == (0.5, 0.45, 0.55)


def test_without_a_reference_the_same_case_without_a_function_stands_for_it() -> None:
    ratio = ratio_in([rate(NAT, 1e6), rate(PLAIN, 4e6)])
    assert ratio is not None
    assert float(ratio) == 0.25
    assert ratio.low == pytest.approx(0.9e6 / 4.4e6)
    assert ratio.high == pytest.approx(1.1e6 / 3.6e6)


@pytest.mark.parametrize(
    "other",
    [
        rate(Case("linux-bridge", Frames(burst=4)), 4e6),
        rate(Case("ovs"), 4e6),
        rate(PLAIN, 4e6, placement="cooperative"),
        rate(PLAIN, 4e6, verdict="INVALID", reason="died"),
        result(Case("linux-bridge", dimension="latency")),
    ],
)
def test_another_path_or_none_is_no_reference(other: Result) -> None:
    assert ratio_in([rate(NAT, 1e6), other]) is None


def test_a_chain_is_held_against_the_path_without_any_of_its_functions() -> None:
    assert ratio_in([rate(replace(NAT, chain=3), 1e6), rate(PLAIN, 4e6)]) == 0.25


def test_a_given_load_has_no_ratio() -> None:
    plain = Case("ovs", Frames(rate=Rate(1_000_000)))
    assert ratio_in([rate(replace(plain, function="nat"), 1e6), rate(plain, 1e6)]) is None


def test_of_round_trips_the_ratio_is_the_other_way_about() -> None:
    cases = [
        result(
            Case("ovs", Frames(rate=Rate(1000)), dimension="latency", function=name),
            rtt_p50_ns=Estimate(value, value, value),
        )
        for name, value in ((None, 20e3), ("nat", 40e3))
    ]
    assert ratio_in(cases) == 0.5


def test_every_report_shows_it() -> None:
    results = [rate(PLAIN, 4e6), rate(NAT, 1e6)]
    lines = table(results)
    assert "of plain" in lines[1]
    assert "of plain: to the same path without its function (latency: p50 over p50)" in lines
    assert f"0.25 (0.205 to 0.306) {WORDS}" in summary(results, [], [])
    page = Page()
    for item in results:
        page.add("t", item)
    assert page_data(page).count(f"0.25 (0.205 to 0.306) {WORDS}") == 2  # in its line and among its facts
    row = flat("r", "t\x1b[31m", with_plain(results)[1])
    assert (row["run"], row["test"]) == ("r", "t?[31m")
    assert (row["function"], row["ratio_to_plain"], row["app"]) == ("nat", 0.25, None)
    assert set(row) == set(COLUMNS)
    assert set(COLUMNS) >= AXES, "cases that differ have rows that differ"


def test_the_reference_of_a_function_is_not_called_a_link() -> None:
    found = rate(NAT, 1e6, ratio_to_reference=Estimate(0.5, 0.45, 0.55))
    assert dict(facts_of(found))["reference"] == f"0.5 (0.45 to 0.55) {WORDS}"
    assert "  0.50 of plain" in result_line(found)
    assert "ratio: to the same applications" not in " ".join(table([found]))
    link = rate(PLAIN, 1e6, ratio_to_reference=Estimate(0.5, 0.45, 0.55))
    assert dict(facts_of(link))["reference"] == "0.5 of the reference link"
    assert "ratio: to the same applications" in " ".join(table([link]))
