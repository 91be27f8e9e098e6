# SPDX-License-Identifier: BSD-3-Clause
"""The functions of a rig before anything of them is started."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_icbench.driver.function.registry import component_for
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.function_nodes import FunctionNodes


def nodes(case: Case, port: str) -> FunctionNodes:
    component = component_for(case.functions[0], case.switch, port)
    placement = Placement("cooperative", (), (0, 1), (0,), 0, 128, functions=(0, 1) * (case.pairs * case.chain))
    session: Any = SimpleNamespace()
    addresses = [Address.of(case.path.pair(index), case.path.side(index)) for index in case.path.endpoints]
    return FunctionNodes(session, case, component, placement, addresses, [])


def test_both_ends_see_each_other_behind_a_whole_chain() -> None:
    (chain,) = nodes(Case("veth", function="route", chain=3), "veth").chains
    peers = nodes(Case("veth", function="route", chain=3), "veth").peers
    assert [peer.mac for peer in peers] == [chain.inner.mac, chain.outer.mac]
    assert (chain.hops, chain.inner.ip, chain.outer.ip) == (3, "198.19.1.1", "198.19.1.6")
