# SPDX-License-Identifier: BSD-3-Clause
"""The summary of containers that were created one after the other."""

from __future__ import annotations

import pytest

from pytest_icbench.gate.limits import LIMITABLE
from pytest_icbench.kinds.startup.startup_summary import Course, growth, summarize_startup
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Startup
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import Idle, Startups
from pytest_icbench.model.verdict import Verdict


def measured(times: tuple[int, ...], *, asked: int, failure: str | None = None) -> Measurement:
    idle = (Idle(len(times), len(times) * 300_000, len(times) * 0.001),) if times else ()
    startups = Startups("netns", asked, times, process_ns=times, idle=idle)
    around = Environment(placement="cooperative", endpoints=())
    case = Case("veth", Startup(f"netns:{asked}"), dimension="startup")
    return summarize_startup(case, Settings(), startups, around, Course(1.0, 2.0, failure))


def test_figures_are_of_one_container() -> None:
    result = measured((7_000_000,) * 20, asked=20)
    assert result.startup_ns == pytest.approx(7e6)
    assert result.startup_growth == 1.0
    assert result.containers.startup_memory_bytes == pytest.approx(300_000)
    assert result.containers.startup_cpu_share == pytest.approx(0.001)
    assert result.verdict is None


def test_growth_is_the_last_tenth_over_the_first() -> None:
    assert growth([10] * 90 + [15] * 10) == 1.5
    assert growth([1000] + [10] * 99) == 1.0, "one that is slow does not make the first tenth slow"
    assert growth([10] * 19) is None


def test_what_was_there_before_a_failure_is_kept() -> None:
    result = measured((5,) * 730, asked=1000, failure="no further process is allowed")
    assert (result.verdict, result.reason) == (Verdict.INVALID, "start-failed")
    assert result.evidence == "container 731 of 1,000 did not come up: no further process is allowed"
    assert result.containers.startups is not None
    assert len(result.containers.startups.total_ns) == 730


def test_none_at_all_is_a_result_too() -> None:
    result = measured((), asked=5, failure="no memory")
    assert result.startup_ns is None
    assert result.evidence == "container 1 of 5 did not come up: no memory"


def test_a_line_of_the_results_has_everything() -> None:
    result = measured((5, 6, 7), asked=3)
    assert Measurement.from_json(result.to_json()) == result


def test_limits_can_name_the_figures() -> None:
    names = ("startup_ns", "startup_growth", "startup_memory_bytes", "startup_cpu_share")
    assert {LIMITABLE[name] for name in names} == {("startup",)}
