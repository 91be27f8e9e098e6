# SPDX-License-Identifier: BSD-3-Clause
"""What functions got of their CPU by allocation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.config.axes import parse_cpu_quotas, parse_cpu_shares
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.functions import by_cpu_allocation
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.rate import Rate
from tests.measurements import launch as plain_launch

CASE = Case("veth", function="cost1000", cpu_share="70:30", pairs=2)


def launch(*rates: float) -> Launch:
    (counts,) = plain_launch().pairs
    pairs = tuple(replace(counts, pair=pair, throughput_pps=rate) for pair, rate in enumerate(rates, start=1))
    return plain_launch(throughput_pps=sum(rates), pairs=pairs)


def test_the_error_is_against_the_share_of_the_figure_alone() -> None:
    works = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], CASE, [launch(70.0, 33.0)] * 6, [launch(100.0)] * 6)
    assert works is not None
    assert [work.cpu_share for work in works] == [70, 30]
    assert [work.goodput_error for work in works] == pytest.approx([0.0, 0.1])
    assert [(work.goodput_pps, work.alone_pps) for work in works] == [(70.0, 100.0), (33.0, 100.0)]
    assert works[1].goodput_error_low is not None


def test_without_a_figure_alone_there_is_no_error_and_without_cpu_allocations_nothing() -> None:
    works = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], CASE, [launch(70.0, 30.0)], [])
    assert works is not None
    assert [(work.goodput_pps, work.goodput_error) for work in works] == [(70.0, None), (30.0, None)]
    plain = replace(CASE, cpu_share=None)
    assert by_cpu_allocation([FunctionWork(1)], plain, [launch(1.0)], []) == (FunctionWork(1),)


def test_the_error_of_launches_in_rounds_is_over_rounds() -> None:
    launches = [replace(launch(70.0, 30.0 + number // 6), index=number, round=number // 6) for number in range(18)]
    works = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], CASE, launches, [launch(100.0)] * 18)
    assert works is not None
    low = works[1].goodput_error_low
    assert low is not None
    assert low < 0  # three rounds tell little, though no launch was below its share
    assert works[1].goodput_error == pytest.approx((31 * 32 / 30**2) ** (1 / 3) - 1)
    works = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], CASE, launches[:12], [launch(100.0)] * 12)
    assert works is not None
    assert works[1].goodput_error_low is None  # two rounds have no interval, as for every other figure


def test_an_error_is_never_below_nothing_at_all() -> None:
    launches = [launch(100.0, 0.0 if number < 2 else 15.0) for number in range(6)]
    works = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], CASE, launches, [launch(100.0)] * 6)
    assert works is not None
    assert works[1].goodput_error == pytest.approx(-0.5)
    assert works[1].goodput_error_low == -1.0


def test_a_search_has_no_figure_alone_at_its_loads() -> None:
    case = CASE.sending(rate=Rate(loss_ratio=0.005))
    works = by_cpu_allocation([FunctionWork(1), FunctionWork(2)], case, [launch(70.0, 33.0)] * 6, [launch(100.0)] * 6)
    assert works is not None
    assert [(work.alone_pps, work.goodput_error) for work in works] == [(None, None)] * 2
    reference = reference_case(case, None, family="kernel")
    assert reference is not None
    assert (reference.pairs, reference.function) == (2, None)


def test_a_share_is_an_axis_and_its_reference_is_one_function_alone() -> None:
    marker = {"switch": "veth", "functions": ["none", "wire"], "cpu_share": [50, 70], "pairs": 3}
    found = expand(parse_marker((), marker, "x"), Options(), builtin_switches(), "x")
    assert [case.id for case in found] == [
        "veth-64B-b32-3vs3-Rmax",
        "veth-via:wire-share50:50-64B-b32-2vs2-Rmax",
        "veth-via:wire-share70:30-64B-b32-2vs2-Rmax",
    ]
    assert [Case.from_dict(case.to_dict()) for case in found] == found
    assert len({case.rig_key for case in found}) == 3
    assert [(cpu_allocation.cpu_share, cpu_allocation.part) for cpu_allocation in found[2].cpu_allocations] == [
        (70, 0.7),
        (30, 0.3),
    ]
    assert reference_case(found[2], None, family="kernel") == Case("veth", function="wire", cpu_share="100")


@pytest.mark.parametrize("text", ["0:50", "70:40", "100", "0"])
def test_shares_that_one_cpu_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"'{text}' is not possible on one CPU: shares are at least 1"):
        parse_cpu_shares(text, "--icbench-cpu-share")


def test_other_words_and_caps_are_refused() -> None:
    with pytest.raises(UsageError, match="'70/30' is not a list of per cents"):
        parse_cpu_shares("70/30", "--icbench-cpu-share")
    with pytest.raises(UsageError, match="'50:101' is not possible on one CPU: a quota is 1 to 100"):
        parse_cpu_quotas("50:101", "--icbench-cpu-quota")
    assert parse_cpu_quotas("20:100 5", "") == ("20:100", "5")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        (
            {"cpu_share": "70:30", "cpu_quota": "50"},
            "CPU share 70:30 and CPU quota 50 are for different numbers of functions",
        ),
        ({"cpu_share": "70:30", "chain": 2}, "CPU shares and quotas are for functions side by side: leave out chain"),
    ],
)
def test_cpu_allocations_that_do_not_fit_are_refused(marker: dict[str, object], words: str) -> None:
    request = parse_marker((), {"switch": "veth", "functions": "wire", **marker}, "x")
    with pytest.raises(UsageError, match=words):
        expand(request, Options(), builtin_switches(), "x")
