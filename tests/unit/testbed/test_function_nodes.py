# SPDX-License-Identifier: BSD-3-Clause
"""The functions of a rig before anything of them is started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.function_nodes import FunctionNodes


def nodes(case: Case, port: str, root: Path, available_mib: int) -> FunctionNodes:
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/meminfo").write_text(f"MemAvailable: {available_mib * 1024} kB\n")
    placement = Placement("cooperative", (), (0, 1), (0,), 0, 128, functions=(0, 1) * (case.pairs * case.chain))
    session: Any = SimpleNamespace(root=Root(root))
    addresses = [Address.of(case.path.pair(index), case.path.side(index)) for index in case.path.endpoints]
    return FunctionNodes(session, case, port, placement, addresses, [])


def test_a_chain_that_wants_more_memory_than_there_is_is_refused(tmp_path: Path) -> None:
    case = Case("veth", function="wire", chain=50, pairs=2)
    with pytest.raises(ProvisionError, match="100 functions of forwarder want about 1600 MiB"):
        nodes(case, "veth", tmp_path, 1599)
    assert len(nodes(case, "veth", tmp_path, 1600).chains) == 2


def test_more_subscribers_than_memory_has_room_for_are_refused(tmp_path: Path) -> None:
    case = Case("veth", function="subscribers1000")
    with pytest.raises(ProvisionError, match=r"want about 1008 MiB of memory, .* fewer pairs or subscribers"):
        nodes(case, "veth", tmp_path, 1007)


def test_huge_pages_are_those_of_all_functions_of_all_chains(tmp_path: Path) -> None:
    case = Case("direct", port="memif", function="wire", chain=5, pairs=2)
    assert nodes(case, "memif", tmp_path, 10_000).hugepages_mib == 10 * 160


def test_both_ends_see_each_other_behind_a_whole_chain(tmp_path: Path) -> None:
    (chain,) = nodes(Case("veth", function="route", chain=3), "veth", tmp_path, 1000).chains
    peers = nodes(Case("veth", function="route", chain=3), "veth", tmp_path, 1000).peers
    assert [peer.mac for peer in peers] == [chain.inner.mac, chain.outer.mac]
    assert (chain.hops, chain.inner.ip, chain.outer.ip) == (3, "198.19.1.1", "198.19.1.6")
