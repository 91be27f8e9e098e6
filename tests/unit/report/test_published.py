# SPDX-License-Identifier: BSD-3-Clause
"""Published statements next to results of the same experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.model.case import Case
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.figure import published
from tests.measurements import result

SHARES = Case("veth", function="cost100000", cpu_share="70:30", pairs=2, api="raw-mmsg")


def rows(*cases: Case, metric: str = "fixed") -> list[str]:
    return [row for row, _, _ in published.statements([replace(result(case), metric=metric) for case in cases])]


def test_a_statement_about_functions_stands_beside_one_switch() -> None:
    assert rows(SHARES) == ["E5"]
    assert rows(replace(SHARES, cpu_share="60:40")) == []


@pytest.mark.parametrize(
    ("marker", "row"),
    [
        ({"functions": "acl10", "chain": 50, "packet_size": 256, "dimension": "latency"}, "E7"),
        ({"functions": "wire:25xcost100000", "packet_size": 128, "dimension": "latency"}, "E8"),
        ({"functions": "wire:cost10000", "packet_size": 128}, "E8"),
        ({"functions": "wire:29xcost10000", "packet_size": 128}, "E8"),
        ({"functions": "cost10000", "cpu_share": ":".join(["4"] * 24), "packet_size": 256}, "E4"),
        ({"functions": "cost20000:cost100000", "cpu_share": 70}, "E5"),
        ({"functions": "wire+ring128", "function_count": 10, "packet_size": 128, "switch": "ovs"}, "E8"),
        ({"functions": "subscribers1000+firewall+acl10", "packet_size": 1518, "active": 1000}, "E13"),
        ({"functions": "nat+acl10", "function_count": 10, "packet_size": 1500, "direction": "both"}, "D5"),
        ({"noisy_neighbour": "memory", "isolation": "cat:3-3-3-3", "dimension": "latency"}, "E10"),
    ],
)
def test_each_experiment_of_functions_that_share_a_machine_has_its_statement(
    marker: dict[str, object], row: str
) -> None:
    request = parse_marker((), {"switch": "veth", **marker}, "x")
    assert rows(*expand(request, Options(), builtin_switches(), "x")) == [row]


def test_functions_side_by_side_have_the_statements_of_their_lengths() -> None:
    mixed, ten = Traffic.of_mix("simple"), Case("vpp", function="route", pairs=10)
    assert rows(ten, metric="frmol") == []
    assert rows(ten.sending(traffic=mixed), metric="pdr") == ["D1"]
    assert rows(replace(ten, switch_cores=2).sending(traffic=mixed), metric="pdr") == ["D1", "D3"]
    assert rows(replace(ten, function="nat").sending(traffic=mixed), metric="pdr") == ["D4"]
    assert rows(ten.sending(traffic=Traffic(128)), metric="pdr") == ["D2"]
    assert rows(ten.sending(traffic=Traffic(1518)), metric="pdr") == ["D1"]
    assert rows(replace(ten, pairs=1), metric="frmol") == ["E3"]


def test_an_order_of_switches_needs_two_of_them() -> None:
    one, other = Case("ovs"), Case("vpp")
    assert rows(one, metric="frmol") == rows(one, one.sending(burst=64), metric="frmol") == []
    assert rows(one, other, metric="frmol") == ["A3", "B3"]
