# SPDX-License-Identifier: BSD-3-Clause
"""What a rule costs a frame, from access lists of several lengths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.answer import answer, rule_costs
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import result


def through(function: str, ns: float, **axes: object) -> Result:
    """A result of a path that needs the given nanoseconds a frame."""
    case = replace(Case("veth", function=function, api="raw-mmsg"), **axes)  # type: ignore[arg-type]
    return result(case, throughput_pps=Estimate(1e9 / ns))


def test_the_slope_over_lists_of_several_lengths_is_reported() -> None:
    lists = [through(f"nat+acl{rules}+deny30", 5000 + 25 * rules) for rules in (10, 100, 1000)]
    sets = [through(f"set{elements}", 6000) for elements in (10, 1000)]
    reported = [
        "veth-via:nat+aclN+deny30-raw-mmsg: each rule costs 25 ns a frame (10 to 1,000).",
        "veth-via:setN-raw-mmsg: each element of a set costs 0 ns a frame (10 to 1,000).",
    ]
    assert rule_costs([*lists, through("nat", 5000), *sets]) == reported
    assert [sentence.text for sentence in answer(lists) if sentence.lead == "Rules:"] == reported[:1]


@pytest.mark.parametrize(
    "axes",
    [
        {"pairs": 2},
        {"chain": 2},
        {"load": Frames(rate=Rate(1000))},
        {"dimension": "latency", "load": Frames(rate=Rate(1000))},
    ],
)
def test_only_one_function_flat_out_shows_what_a_rule_costs(axes: dict[str, object]) -> None:
    assert rule_costs([through("acl10", 5000, **axes), through("acl1000", 9000, **axes)]) == []
    assert rule_costs([through("acl10", 5000), through("acl1000", 9000, **axes)]) == []
    assert rule_costs([through("acl10", 5000), through("acl10", 6000)]) == []
