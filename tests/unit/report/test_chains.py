# SPDX-License-Identifier: BSD-3-Clause
"""What reports say of functions that share a machine: hops that lost frames, who shares which CPU, who got it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import ChainAccount, FunctionWork
from pytest_icbench.report.html.data import facts_of
from pytest_icbench.report.remarks import crowding, lost_by_hop, side_by_side
from tests.measurements import result

CHAIN = Case("veth", function="wire", chain=10)


def account(*lost: int, pair: int = 1, **more: Any) -> ChainAccount:
    return ChainAccount(pair, 10_000, 10_000 - sum(lost), lost, (0,) * len(lost), **more)


def test_the_hop_that_lost_frames_is_named_and_those_that_lost_most_come_first() -> None:
    at_four = result(CHAIN, chains=(account(0, 0, 0, 10, *[0] * 7),))
    assert lost_by_hop(at_four) == "10 frames lost by hop (warm-up included): function 4 of 10 10"
    assert dict(facts_of(at_four))["lost by hop"] == lost_by_hop(at_four)
    many = result(CHAIN, chains=(account(1, 2, 3, 0, 5, *[0] * 5, 4), account(0, 2, *[0] * 9, pair=2)))
    assert lost_by_hop(many) == (
        "17 frames lost by hop (warm-up included): function 5 of 10 5, function 2 of 10 4, the receiver 4, 2 others 4"
    )
    assert lost_by_hop(result(CHAIN, chains=(account(*[0] * 11),))) == lost_by_hop(result(CHAIN)) == ""


def test_frames_that_a_full_table_cost_are_said_beside_the_hop() -> None:
    full = result(replace(CHAIN, chain=1, function="nat"), chains=(account(7, 0, table_full=5),))
    assert lost_by_hop(full).endswith("function 1 of 1 7; 5 of them because a connection table was full")


SHARED = "10 functions and 2 endpoints share 2 CPUs"
FLAT_OUT = "; flat out, each spends its time on frames that a later one drops: search for a rate (pdr:0.5%)"


@pytest.mark.parametrize(
    ("metric", "function_cpus", "words"),
    [
        ("pdr", [0, 1] * 5, SHARED),
        ("frmol", [0, 1] * 5, SHARED + FLAT_OUT),
        ("frmol", [], "10 functions in a row work on their sender's CPU"),
        ("frmol", [*range(2, 12)], ""),
    ],
)
def test_a_chain_says_who_shares_its_cpus_and_flat_out_what_that_means(
    metric: str, function_cpus: list[int], words: str
) -> None:
    treatment = {"cpus": {"endpoints": [0, 1]}, "function": {"cpus": function_cpus}}
    assert crowding(result(CHAIN, metric=metric, treatment=treatment)) == words


@pytest.mark.parametrize(
    ("functions", "endpoints", "workers", "words"),
    [
        ([1, 2], [3, 4, 5, 6], [0], "2 functions, 4 endpoints, 1 worker have 7 CPUs, which leave 1 of 8 over"),
        ([1, 1], [0, 1, 0, 1], [0], "oversubscribed: 2 functions, 4 endpoints, 1 worker share 2 CPUs"),
        ([], [0, 1, 0, 1], [], "oversubscribed: 4 endpoints share 2 CPUs"),
        ([], [], [], ""),
    ],
)
def test_functions_side_by_side_say_whether_they_are_oversubscribed(
    functions: list[int], endpoints: list[int], workers: list[int], words: str
) -> None:
    treatment = {"cpus": {"endpoints": endpoints, "switch": workers}, "function": {"cpus": functions}}
    case = Case("ovs", function="route", pairs=2)
    assert crowding(replace(result(case, treatment=treatment), identity={"cpus": 8})) == words
    assert crowding(result(replace(case, pairs=1), treatment=treatment)) == ""
    assert crowding(result(Case("ovs", pairs=2), treatment={"cpus": {"endpoints": [0, 0]}})) == ""


def test_functions_with_parts_of_a_cpu_say_their_error_and_that_their_yields_are_weaker() -> None:
    works = [
        FunctionWork(
            pair,
            cpu_share=share,
            cpu_used_share=share / 100,
            goodput_pps=share * 100.0,
            alone_pps=10_000.0,
            goodput_error=error,
            goodput_error_low=error - 0.02,
            goodput_error_high=error + 0.03,
            batch_size=29.2,
        )
        for pair, share, error in ((1, 70, 0.0), (2, 30, -0.035))
    ]
    said = side_by_side(result(Case("veth", function="cost9", cpu_share="70:30", pairs=2), functions=tuple(works)))
    assert said == (
        "on one CPU: cost9 1 (share 70 %) 7,000 frames/s of 10,000 alone, error +0.0% (-2.0% to +3.0%), 70% of the CPU"
        " time, 29.2 frames at a time; cost9 2 (share 30 %) 3,000 frames/s of 10,000 alone, error -3.5% (-5.5% to"
        " -0.5%), 30% of the CPU time, 29.2 frames at a time. Each has a separate CPU group, in which its yields are"
        " weaker"
    )


def test_many_functions_with_equal_parts_are_said_as_one() -> None:
    works = tuple(
        FunctionWork(
            pair, cpu_share=2, cpu_used_share=1 / 36, goodput_pps=600.0, alone_pps=22_000.0, goodput_error=pair / 1000
        )
        for pair in range(1, 37)
    )
    case = Case("veth", function="cost100000", cpu_share=":".join(["2"] * 36), pairs=36)
    assert side_by_side(result(case, functions=works)) == (
        "on one CPU: 36 x cost100000 (share 2 %) 21,600 frames/s, 22,000 alone, errors +0.1% to +3.6%, 100% of the CPU"
        " time. Each has a separate CPU group, in which its yields are weaker"
    )
