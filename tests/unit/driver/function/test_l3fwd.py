# SPDX-License-Identifier: BSD-3-Clause
"""l3fwd's routes, where it is chosen, and what users read where it cannot be had."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.l3fwd import L3fwdFunction, routes
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.process_function import check_ports, eal_of_both
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.endpoint import Address, Pci, VhostUser

ENDS = Ends.make(3, Address.of(3, "a"), Address.of(3, "b"))


def test_each_port_leads_to_its_side() -> None:
    found = [line.split() for line in routes(ENDS).splitlines()]
    networks = [(ipaddress.ip_network(network.removeprefix("R")), int(port)) for network, port in found]

    def port_to(text: str) -> list[int]:
        return [port for network, port in networks if ipaddress.ip_address(text) in network]

    assert port_to(ENDS.leader.ip) == port_to("100.64.3.1") == [0]
    assert port_to(ENDS.follower.ip) == [1]
    assert port_to(Address.of(1, "a").ip) == []


def test_a_route_is_the_kernels_over_its_links_and_l3fwds_over_ports_in_user_space() -> None:
    assert registry.component_for("route", "linux-bridge", "veth") is LinuxFunction
    assert registry.component_for("route", "ovs", "vhost-user") is L3fwdFunction
    assert not L3fwdFunction.has("route+acl10")
    assert L3fwdFunction.visible_addresses("route", ENDS) == LinuxFunction.visible_addresses("route", ENDS)


def test_where_it_is_missing_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    session: Any = SimpleNamespace(binaries={})
    with pytest.raises(Unsupported, match=r"l3fwd is not installed: run `make`.*--icbench-binary l3fwd=PATH"):
        L3fwdFunction().probe(session, "route")


def test_over_functions_of_a_card_eal_is_given_both() -> None:
    any_: Any = object()
    inner, outer = Pci(ENDS.inner, "0000:01:10.2"), Pci(ENDS.outer, "0000:01:10.3")
    spec = FunctionSpec("route", 3, ENDS, inner, outer, any_, None, any_, (0, 1, 2, 3), 1, 0, 1500, Path())
    check_ports(spec, "l3fwd")
    assert eal_of_both(spec, 256)[-4:] == ["-a", "0000:01:10.2", "-a", "0000:01:10.3"]
    assert registry.component_for("route", "sriov", "vfio") is L3fwdFunction


def test_ports_without_addresses_of_their_own_and_large_frames_are_refused(tmp_path: Path) -> None:
    inner, outer = VhostUser(ENDS.inner, "/run/a"), VhostUser(ENDS.outer, "/run/b")
    any_: Any = object()
    spec = FunctionSpec("route", 3, ENDS, inner, outer, any_, None, any_, (0, 1, 2, 3), 1, 0, 1500, tmp_path)
    with pytest.raises(Unsupported, match="l3fwd needs virtio-user ports"):
        L3fwdFunction().start(any_, replace(spec, outer=VhostUser(ENDS.outer, "/run/b", "back-end")))
    with pytest.raises(Unsupported, match="l3fwd takes frames up to 1518 bytes"):
        L3fwdFunction().start(any_, replace(spec, mtu=9000))
