# SPDX-License-Identifier: BSD-3-Clause
"""Every report shows the interval that includes what the baseline's sessions differ by; the record keeps its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report import markdown, openmetrics
from pytest_icbench.report.html.data import facts_of
from pytest_icbench.report.html.page import Page
from pytest_icbench.report.reported_intervals import sessions_of, with_sessions
from pytest_icbench.report.terminal_table import result_line, table
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import result

OF_MAIN = "the 20 sessions of main"


def compared(sessions: int | None = 20, **changed: Any) -> Result:
    """A rate of 5 Mpps, 4.9 to 5.1 by its launches, whose change over sessions is 10 % either way."""
    ratio: dict[str, Any] = {"ratio": 2.0, "ratio_low": 1.8, "ratio_high": 2.2}
    facts: dict[str, Any] = {"baseline": "main", "unit": "session", "units": sessions, **ratio, **changed}
    found = Finding("throughput_pps", "drop", 0.03, "defaults", Verdict.PASS, value=5e6, **facts)
    return replace(result(verdict="PASS"), findings=(found,), baseline="main")


def test_every_report_shows_the_wider_interval() -> None:
    wide = compared()
    page = Page()
    page.add("test", wide)
    assert "4.50 to 5.50" in result_line(wide)
    assert "4.50 to 5.50" in "\n".join(table([wide]))
    assert "4.50 to 5.50" in markdown.summary([wide], [], [])
    assert "icbench_throughput_low_pps" in openmetrics.text([wide])
    assert any(
        line.startswith("icbench_throughput_low_pps{") and float(line.rpartition(" ")[2]) == pytest.approx(4.5e6)
        for line in openmetrics.text([wide]).splitlines()
    )
    (shown,) = page.results
    assert (shown.frames.throughput_pps.low, shown.frames.throughput_pps.high) == (  # type: ignore[union-attr]
        pytest.approx(4.5e6),
        pytest.approx(5.5e6),
    )


def test_the_wider_interval_says_whose_sessions_it_includes() -> None:
    (wide,) = with_sessions([compared()])
    assert sessions_of(wide) == OF_MAIN
    assert f"interval: includes the spread of {OF_MAIN}" in "\n".join(table([wide]))
    assert ("interval", f"includes the spread of {OF_MAIN}") in facts_of(wide)


def test_a_rate_that_decides_nothing_beside_its_switchs_cycles_is_as_wide_as_its_own_change() -> None:
    rate = compared()
    (cycles,) = (replace(finding, name="cycles_per_packet") for finding in rate.findings)
    silent = replace(rate, findings=(cycles,), ratio_to_baseline=Estimate(1.0, 0.6, 1.5))
    (wide,) = with_sessions([silent])
    assert (wide.frames.throughput_pps.low, wide.frames.throughput_pps.high) == pytest.approx((3e6, 7.5e6))  # type: ignore[union-attr]


def test_the_value_in_other_units_is_as_wide_and_the_others_keep_their_interval() -> None:
    plain, (wide,) = compared(), with_sessions([compared()])
    assert wide.frames.throughput_gbps is not None
    assert wide.frames.throughput_gbps.low == pytest.approx(0.9 * wide.frames.throughput_gbps)
    assert wide.frames.throughput_per_pair_pps == plain.frames.throughput_per_pair_pps
    assert with_sessions([wide]) == [wide]  # the page widens what the command did


@pytest.mark.parametrize("few", [compared(None), compared(2), compared(ratio=None), result()])
def test_without_enough_sessions_an_interval_stays_as_it_is(few: Result) -> None:
    assert with_sessions([few]) == [few]
    assert not sessions_of(few)
    assert "4.90 to 5.10" in result_line(few)
    assert "includes the spread" not in "\n".join(table([few]))


def test_a_value_that_no_launch_reports_apart_keeps_none() -> None:
    alone = compared().with_figures(throughput_pps=Estimate(5e6))
    assert with_sessions([alone])[0].frames.throughput_pps == Estimate(5e6)
