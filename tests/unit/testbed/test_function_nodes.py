# SPDX-License-Identifier: BSD-3-Clause
"""The functions of a rig before anything of them is started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function.registry import component_for
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed import function_nodes
from pytest_icbench.testbed.function_nodes import FunctionNodes


def nodes(case: Case, port: str) -> FunctionNodes:
    component = component_for(case.functions[0], case.switch, port)
    placement = Placement("cooperative", (), (0, 1), (0,), 0, 128, functions=(0, 1) * (case.pairs * case.chain))
    session: Any = SimpleNamespace(name=str)
    addresses = [Address.of(case.path.pair(index), case.path.side(index)) for index in case.path.endpoints]
    return FunctionNodes(session, case, component, placement, addresses, [])


def test_both_ends_see_each_other_behind_a_whole_chain() -> None:
    (chain,) = nodes(Case("veth", function="route", chain=3), "veth").chains
    peers = nodes(Case("veth", function="route", chain=3), "veth").peers
    assert [peer.mac for peer in peers] == [chain.inner.mac, chain.outer.mac]
    assert (chain.hops, chain.inner.ip, chain.outer.ip) == (3, "198.19.1.1", "198.19.1.6")


def test_a_node_binds_what_its_function_reads_outside_usr(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    specs: list[NodeSpec] = []

    def node(_kind: str, _session: Any, spec: NodeSpec) -> Any:
        specs.append(spec)
        return SimpleNamespace(start=dict, stop=None)

    functions = nodes(Case("veth", function="route", chain=2), "veth")
    monkeypatch.setattr(function_nodes, "make_node", node)
    read = [tmp_path, Path("/usr/lib/dpdk")]
    monkeypatch.setattr(functions.component, "directories", lambda _session: read, raising=False)
    own: Any = SimpleNamespace(common=Path("/run/s"), of_function=lambda pair, hop: [Path(f"/run/f{pair}x{hop}")])
    functions.start_nodes("lxc", "r", own, [], hugepages=False)
    assert [spec.directories for spec in specs] == [[Path("/run/s"), tmp_path]] * 2
    assert [spec.sockets for spec in specs] == [[Path("/run/f1x1")], [Path("/run/f1x2")]]
