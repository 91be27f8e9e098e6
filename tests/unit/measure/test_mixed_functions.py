# SPDX-License-Identifier: BSD-3-Clause
"""Different functions side by side on one CPU: as cases, as commands, and what each got."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.config.axes import parse_functions
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.functions import by_cpu_allocation, too_cheap
from pytest_icbench.measure.launch.commands import commands
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionCounters, FunctionTerms, FunctionWork
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.remarks import side_by_side
from tests.measurements import result
from tests.unit.measure.test_cpu_allocations import launch
from tests.unit.scripted_rig import EXECUTABLE, FAST, ScriptedRig

MIXED = Case("veth", function="wire:2xcost1000", pairs=3)


def cases(**marker: object) -> list[Case]:
    return expand(parse_marker((), {"switch": "veth", **marker}, "x"), Options(), builtin_switches(), "x")


def test_different_functions_are_a_pair_each_on_one_cpu() -> None:
    (case,) = cases(functions="wire:2xcost1000", pairs=7)
    assert case.id == "veth-via:wire:2xcost1000-64B-b32-3vs3-Rmax"
    assert (case.functions, case.one_cpu) == (("wire", "cost1000", "cost1000"), True)
    assert Case.from_dict(case.to_dict()) == case
    (alike,) = cases(functions="wire", pairs=2)
    assert (alike.functions, alike.one_cpu) == (("wire", "wire"), False)
    assert Case("veth").functions == ()


def test_each_has_its_share() -> None:
    (case,) = cases(functions="wire:cost1000", cpu_share="70:30")
    assert (case.pairs, [cpu_allocation.cpu_share for cpu_allocation in case.cpu_allocations]) == (2, [70, 30])
    assert reference_case(case, None, family="kernel") == Case("veth", function="wire", cpu_share="100")


@pytest.mark.parametrize("text", ["wire:", "wire:none", "wire:0xcost1", "2xwire", "wire:1000xwire", "wire:2x"])
def test_what_is_no_row_of_functions_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a function: write parts joined by .*side by side joined by :"):
        parse_functions(text, "--icbench-function")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ({"functions": "wire:swap", "chain": 2}, "'wire:swap' is for functions side by side: leave out chain"),
        ({"functions": "wire:2xswap", "cpu_share": 70}, "share 70:30 is for 2 functions, and 'wire:2xswap' are 3"),
        ({"functions": "wire:254xswap"}, "'wire:254xswap' are 255 functions: take 2 to 254 side by side"),
    ],
)
def test_rows_that_do_not_fit_are_refused(marker: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        cases(**marker)


def test_beside_pings_the_other_pairs_send_at_the_same_rate() -> None:
    case = replace(MIXED, function="wire:cost1000", pairs=2, dimension="latency", api="udp").sending(rate=Rate(1000))
    made = commands(ScriptedRig(), case, FAST)
    assert [command.application for command in made.values()] == ["client", "server", "send", "recv"]
    assert [made[index].rate_pps for index in (0, 2)] == [1000, 1000]
    measured = run_launch(ScriptedRig(), case, FAST, executable=EXECUTABLE)
    assert ([pair.pair for pair in measured.pairs], measured.invalid) == ([1], None)
    assert (case.senders, replace(case, dimension="throughput").senders) == (1, 2)
    alone = reference_case(case, None, family="kernel")
    assert alone == replace(case, function="wire", pairs=1)
    assert reference_case(replace(case, dimension="throughput").sending(rate=Rate()), None, family="kernel") == replace(
        case, dimension="throughput", function=None
    ).sending(rate=Rate())


def test_who_got_the_cpu_is_said_of_each_function() -> None:
    works = [FunctionWork(pair, cpu_ns=cpu_ns) for pair, cpu_ns in ((1, 100), (2, 300), (3, 600))]
    found = by_cpu_allocation(works, MIXED, [launch(70.0, 20.0, 10.0)], [launch(50.0)])
    assert found is not None
    assert [work.cpu_used_share for work in found] == [0.1, 0.3, 0.6]
    assert [work.goodput_pps for work in found] == [70.0, 20.0, 10.0]
    assert [work.goodput_error for work in found] == [None] * 3  # nobody promised them anything
    pings = by_cpu_allocation(works, replace(MIXED, dimension="latency"), [launch(70.0)], [])
    assert pings is not None
    assert [(work.cpu_used_share, work.goodput_pps) for work in pings] == [(0.1, None), (0.3, None), (0.6, None)]


def test_the_figure_alone_is_for_functions_of_its_kind() -> None:
    case = replace(MIXED, function="wire:cost1000", cpu_share="50:50", pairs=2)
    found = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], case, [launch(40.0, 20.0)], [launch(100.0)])
    assert found is not None
    assert [work.goodput_error for work in found] == [pytest.approx(-0.2), None]


def test_each_function_has_its_own_least_cost_and_batches_are_frames_a_poll() -> None:
    terms = [FunctionTerms("wire"), FunctionTerms("cost1000", least_cycles=1000)]
    counters: Any = {"taken": 0, "busy_cycles": 0, "idle_cycles": 0, "busy_polls": 0}
    works = [
        FunctionWork.between(
            FunctionCounters(pair, **counters),
            FunctionCounters(pair, taken=100, busy_cycles=90_000, idle_cycles=0, busy_polls=25),
        )
        for pair in (1, 2)
    ]
    assert [work.batch_size for work in works] == [4.0, 4.0]
    assert "function cost1000 of pair 2: a frame cost it 900 cycles" in (too_cheap(terms, works) or "")


def test_reports_say_who_got_the_cpu_and_how_long_a_ping_took() -> None:
    works = (
        FunctionWork(1, cpu_used_share=0.1, goodput_pps=2e6),
        FunctionWork(2, cpu_used_share=0.5),
        FunctionWork(3, cpu_used_share=0.4),
    )
    said = side_by_side(result(MIXED, functions=works))
    assert said == "on one CPU: wire 2,000,000 frames/s, 10% of the CPU time; 2 x cost1000, 90% of the CPU time"
    pings = result(
        replace(MIXED, dimension="latency"),
        functions=works,
        rtt_p50_ns=40_000.0,
        floor_p50_ns=3000.0,
        floor_p99_ns=9000.0,
    )
    assert "Round trips through wire: p50 " in side_by_side(pings)
    assert side_by_side(pings).endswith("alone p50 3 µs, p99 9 µs")
