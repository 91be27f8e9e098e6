# SPDX-License-Identifier: BSD-3-Clause
"""What a page says of a host of two CPUs: what it shows of each kind of cases, and what not."""

from __future__ import annotations

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames, Startup
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.answer import answer, few_cpus_show
from tests.measurements import result

CHAIN = Case("veth", function="acl10", chain=10)
SHARES = Case("veth", function="cost1000", pairs=2, cpu_share="70:30")


@pytest.mark.parametrize(
    ("case", "start"),
    [
        (CHAIN, "chains: two CPUs show what a hop adds"),
        (SHARES, "parts of a CPU: two CPUs show how functions split one CPU; not what they do"),
        (Case("veth", function="wire:cost10000", pairs=2), "different functions on one CPU: two CPUs show who"),
        (Case("veth", function="cost1000+noyield", pairs=5), "functions side by side: two CPUs show what each"),
        (
            Case("veth", Frames(rate=Rate.from_json("trace:steps:20k"))),
            "loads that change: two CPUs show how soon",
        ),
        (
            Case("veth", Frames(rate=Rate.from_json("trace:freeze:2k")), function="wire", pairs=4),
            "loads that change: two CPUs show how soon",
        ),
        (Case("veth", noisy_neighbour="stream"), "noisy neighbours: two CPUs show what"),
        (
            Case("veth", Startup("netns:10"), dimension="startup"),
            "creation of containers: two CPUs show the time",
        ),
        (Case("veth", function="subscribers10+firewall", pairs=1), "subscribers: two CPUs show how evenly"),
    ],
    ids=lambda value: value.id if isinstance(value, Case) else "",
)
def test_each_kind_has_one_sentence(case: Case, start: str) -> None:
    (said,) = few_cpus_show([result(case, identity={"cpus": 2}), result(case, identity={"cpus": 2})])
    assert said.startswith(start)
    assert "; not " in said


@pytest.mark.parametrize("cpus", [3, 64, None, 0, "2"])
def test_nothing_is_said_of_other_hosts(cpus: object) -> None:
    assert few_cpus_show([result(CHAIN, identity={"cpus": cpus})]) == []


def test_nothing_is_said_of_a_path_of_its_own() -> None:
    assert few_cpus_show([result(Case("veth", function="acl10"), identity={"cpus": 2})]) == []


def test_the_page_s_answer_ends_with_them() -> None:
    *_, first, second = answer([result(CHAIN, identity={"cpus": 2}), result(SHARES, identity={"cpus": 2})])
    assert (first.lead, second.lead) == ("What this host shows:",) * 2
    assert first.text.startswith("chains: two CPUs show")
