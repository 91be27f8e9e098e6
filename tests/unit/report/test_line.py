# SPDX-License-Identifier: BSD-3-Clause
"""The line of one finished case, and short names of cases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.display.case_names import label, rate_text, shared
from pytest_icbench.display.frame_rates import mpps
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.terminal_table import result_line
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import result, side_by_side

LATENCY = Case("ovs", Frames(burst=4, rate=Rate(1000)), dimension="latency")


def test_a_rate_has_interval_loss_limit_and_verdict() -> None:
    line = result_line(result(verdict="PASS"), "-b32-1vs1-Rmax", 14)
    assert line.split() == ["ovs-64B", "5.00", "Mpps", "4.90", "to", "5.10", "loss", "0.99", "%", "switch", "PASS"]
    assert line.startswith("ovs-64B             5.00 Mpps  ")
    assert "5.00 Mpps  ≥ 4.90 to 5.10" in result_line(result(lower_bound=True))
    assert "no loss" in result_line(result(frame_loss_ratio=0.0))


def test_a_round_trip_has_its_percentiles_in_microseconds_and_no_rate() -> None:
    line = result_line(result(LATENCY, verdict="PASS", rtt_p99_ns=60_200.0, throughput_pps=1000.0))
    assert "p50 20.0 µs  19.0 to 21.0" in line
    assert "p99 60.2 µs" in line
    assert "Mpps" not in line


def test_a_search_has_its_bounds() -> None:
    found = result(Case("ovs", Frames(rate=Rate(loss_ratio=0.0))), search_lower_pps=4.9e6, search_upper_pps=5.1e6)
    assert "5.00 Mpps  4.9 to 5.1" in result_line(found)


def test_a_change_says_what_it_is_against() -> None:
    ratio = Estimate(0.918, 0.9, 0.93)
    compared = result(verdict="REGRESSED", baseline="main", ratio_to_baseline=ratio)
    assert result_line(compared).endswith("REGRESSED  -8.2 % vs main")
    case = Case("ovs", candidate="new")
    beside = result(case, verdict="PASS", side_by_side=side_by_side(case, "PASS", 1.02))
    assert result_line(beside).endswith("PASS  +2.0 % vs base")


def test_a_case_that_is_no_number_has_its_reason_alone() -> None:
    found = result(verdict="INVALID", reason="stalled", throughput_pps=None)
    assert result_line(found).split() == ["ovs-64B-b32-1vs1-Rmax", "INVALID", "stalled"]


def test_nobody_asked_for_a_baseline() -> None:
    assert result_line(result(verdict="NO_BASELINE")).endswith("  -")
    assert result_line(result(verdict="NO_BASELINE", baseline="main")).endswith("  NO_BASELINE")


@pytest.mark.parametrize(
    ("pps", "text"),
    [(5e6, "5.00"), (250_000, "0.250"), (1000, "0.001"), (25, "0.000025"), (0.2, "0.000001"), (0, "0")],
)
def test_a_rate_that_is_not_0_never_looks_like_0(pps: float, text: str) -> None:
    assert mpps(pps) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(10**6, "1M"), (1_500_000, "1.5M"), (2500, "2.5k"), (1_234_567, "1234.567k"), (999, "999")]
)
def test_a_rate_is_written_with_the_greatest_suffix(rate: int, text: str) -> None:
    assert rate_text(rate) == text


def test_names_leave_out_what_all_share() -> None:
    ids = [Case("ovs").id, Case("veth", Frames(Traffic(1500))).id]
    assert shared(ids) == "-b32-1vs1-Rmax"
    assert [label(case, shared(ids)) for case in ids] == ["ovs-64B", "veth-1500B"]
    assert shared([*ids, LATENCY.id]) == ""
    assert shared(ids[:1]) == ""
    assert shared([*ids, replace(Case("ovs"), remote=True).id]) == ""


@given(st.lists(st.text("ab-", max_size=12), min_size=2, max_size=4))
def test_what_is_shown_of_an_id_is_its_beginning(ids: list[str]) -> None:
    """So that ``-k`` finds it."""
    assert all(case.startswith(label(case, shared(ids))) for case in ids)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_a_name_of_anything_is_printable(ids: list[str]) -> None:
    assert all(label(case, shared(ids)).isprintable() for case in ids)
