# SPDX-License-Identifier: BSD-3-Clause
"""What a result does not claim is said: requests without an answer, and percentiles that want more of them."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_icbench.kinds.latency.latency_columns import unanswered
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.html.data import facts_of
from pytest_icbench.report.notes import notes
from pytest_icbench.report.terminal_table import table
from tests.measurements import launch as made_launch
from tests.measurements import measurement, result

LATENCY = Case("ovs", Frames(burst=4, rate=Rate(1000)), dimension="latency")
KNOWN: dict[str, Any] = {f"rtt_{name}_ns": 30_000.0 for name in ("p50", "p90", "p99")}


def latency(**changed: Any) -> Measurement:
    return measurement(LATENCY, **{"verdict": "PASS", **KNOWN, **changed})


def test_trains_of_datagrams_are_set_apart() -> None:
    apart = "udp-gso: the kernel moves up to 64 datagrams as one buffer, so compare it with no other API"
    said = [notes([result(Case("veth", api=api))]) for api in ("udp-gso", "udp-mmsg")]
    assert [any(line.startswith(apart) for line in lines) for lines in said] == [True, False]


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert unanswered(latency(rtt_samples=6000, rtt_lost=0)) == ""


def test_requests_without_an_answer_are_counted() -> None:
    said = unanswered(latency(rtt_samples=5990, rtt_lost=10))
    assert said.startswith("10 of 6,000 requests have no answer")


def test_percentiles_among_them_are_named() -> None:
    said = unanswered(latency(rtt_samples=5000, rtt_lost=1000, rtt_p90_ns=None, rtt_p99_ns=None))
    assert said.endswith("; p90, p99 would be among them")


def test_too_few_requests_are_a_reason_of_their_own() -> None:
    said = unanswered(latency(rtt_samples=320, rtt_lost=0, rtt_p99_ns=None))
    assert said == "p99 needs 1,000 requests, and there were 320"
    both = unanswered(latency(rtt_samples=300, rtt_lost=20, rtt_p99_ns=None))
    assert both.endswith("; p99 needs 1,000 requests, and there were 320")
    # The first of those that are wanting is enough.
    none = unanswered(latency(rtt_samples=5, rtt_lost=0, rtt_p50_ns=None, rtt_p90_ns=None, rtt_p99_ns=None))
    assert none == "p50 needs 20 requests, and there were 5"


def test_wake_ups_are_told_where_workers_sleep() -> None:
    woken = tuple(made_launch(wakeups_per_s=rate, busy_share=0.25) for rate in (40_000.0, 41_000.0, 90_000.0))
    said = notes([result(Case("vpp", rx_mode="interrupt"), per_launch=woken)])
    assert any("woken 41,000 times a second and ran 25 % of the time" in line for line in said)
    polled = result(Case("vpp"), per_launch=(made_launch(busy_share=0.25),))
    assert not any("woken" in line for line in notes([polled]))


def test_what_a_host_does_not_tell_is_on_the_page() -> None:
    missing = ["the kernel counts no run delay", "the kernel gives no hardware events"]
    lacking = result(LATENCY, conditions={"fitness": {"fit": True, "missing": missing}})
    assert dict(facts_of(lacking))["not known"] == "; ".join(missing)
    whole = result(LATENCY, conditions={"fitness": {"fit": True, "missing": []}})
    assert "not known" not in dict(facts_of(whole))


def test_where_a_case_ran_is_on_the_page() -> None:
    cpus = {"switch": [8], "endpoints": [10, 9], "where": "one L3 (8-15)"}
    placed = dict(facts_of(result(LATENCY, placement="dedicated", treatment={"cpus": cpus})))["placement"]
    assert placed.endswith("switch on CPU 8, endpoints on CPU 10 9, one L3 (8-15)")


@pytest.mark.parametrize(("step_s", "course"), [(-3600.0, "back by 60 min"), (2.0, "forward by 2 s")])
def test_a_clock_that_was_set_is_reported_on_terminal_and_page(step_s: float, course: str) -> None:
    stepped = result(LATENCY, verdict="PASS", conditions={"clock_step_s": step_s})
    assert dict(facts_of(stepped))["clock"].startswith(f"the host's clock was set {course} meanwhile: ")
    assert any(f"the host's clock was set {course}" in line for line in table([stepped]))


def test_the_table_says_it() -> None:
    lines = table([result(LATENCY, verdict="PASS", rtt_samples=300, rtt_lost=0)])
    assert "ovs-64B-b4-1vs1-R1k: p99 needs 1,000 requests, and there were 300" in lines
