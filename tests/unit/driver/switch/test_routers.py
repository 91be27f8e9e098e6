# SPDX-License-Identifier: BSD-3-Clause
"""Switches that route: commands for VPP and Open vSwitch, the kernel's messages, and a table that takes too long."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from pytest_icbench.driver.switch.common import routing
from pytest_icbench.driver.switch.common.routing import Router
from pytest_icbench.driver.switch.kernel import route as kernel
from pytest_icbench.driver.switch.ovs import userspace_datapath as ovs
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.switch.vpp import vpp_switch as vpp
from pytest_icbench.driver.switch.vpp.program import Memory
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.routes import ROUTER_MODES, Share, network
from tests.unit.recording_host import attachments_of, spec_of


def make_router(directory: Path, version: int = 4, routes: int = 0) -> Router:
    table = [(1, Share(0, routes))] if routes else []
    return Router.of(version, spec_of(directory, routes=table), attachments_of(directory))


def session(progress: list[str]) -> Any:
    return SimpleNamespace(progress=progress.append)


def test_modes_that_route_have_these_names_and_memory_for_routes() -> None:
    """What forwards is read from a case's id: a mode of these names has to route."""
    routers = {name: driver for name, driver in builtin_switches().items() if driver.route_bytes}
    assert set(routers) == {"vpp", "ovs", "route"}
    for driver in routers.values():
        assert {ROUTER_MODES[mode] for mode in driver.modes if mode in ROUTER_MODES} <= set(driver.route_bytes)
    assert not any(
        set(driver.modes) & set(ROUTER_MODES) for name, driver in builtin_switches().items() if name not in routers
    )


def test_a_port_of_vpp_has_the_peers_mac_address_and_the_route_to_its_endpoint(tmp_path: Path) -> None:
    port = make_router(tmp_path).ports[0]
    assert vpp.port_commands(port, 4, "V0") == [
        "set interface mac address V0 02:00:00:00:01:02",
        "set interface ip address V0 198.19.1.1/32",
        "set ip neighbor static V0 198.18.1.1 02:00:00:00:01:01",
        "ip route add 198.18.1.1/32 via 198.18.1.1 V0",
    ]
    (line,) = vpp.route_commands(4, port, "V0", Share(3, 7))
    assert line == "ip route add count 7 10.0.0.48/28 via 198.18.1.1 V0"
    ipv6 = make_router(tmp_path, 6).ports[0]
    assert "enable ip6 interface V0" in vpp.port_commands(ipv6, 6, "V0")
    assert vpp.port_commands(ipv6, 6, "V0")[-1].split()[3] == "fd69:6362:656e:6368::c612:101/128"
    named = [word for line in vpp.route_commands(6, ipv6, "V0", Share(3, 1001)) for word in line.split() if "/" in word]
    assert named == [network(6, number) for number in range(3, 1004)]


def test_vpp_has_memory_for_its_routes() -> None:
    assert vpp.with_routes(Memory(), 4, 1, 2) == Memory()
    many = vpp.with_routes(Memory(), 4, 1_000_000, 2)
    assert many.heap_mib >= Memory().heap_mib + 1_000_000 * vpp.HEAP_BYTES[4] // 2**20
    assert many.statistics_mib > Memory().statistics_mib


@pytest.mark.parametrize("version", [4, 6])
def test_flows_of_open_vswitch_route_what_is_for_the_port(tmp_path: Path, version: int) -> None:
    router = make_router(tmp_path, version)
    flows = ovs.port_flows(router)
    entrances = [flow for flow in flows if "in_port" in flow]
    assert len(entrances) == 2
    assert all("dl_dst=02:00:00:00:01:0" in flow and "vlan_tci=0" in flow for flow in entrances)
    first, second = ovs.route_flows(version, router.ports[1], Share(5, 2))
    assert f"={network(version, 5)},actions=dec_ttl,mod_dl_src:02:00:00:00:01:01,mod_dl_dst:02:00:00:00:01:02" in first
    assert second.endswith("output:2")
    assert network(version, 6) in second


@pytest.mark.parametrize("version", [4, 6])
def test_the_kernel_gets_a_message_for_each_route(version: int) -> None:
    gateway = ipaddress.ip_address("198.18.1.2" if version == 4 else "fd69::2")
    calls = list(kernel._messages(ipaddress.ip_network(network(version, 7)), 2001, gateway, 12))
    assert [prefix for _, prefix in calls] == [network(version, 7 + at).partition("/")[0] for at in (0, 1000, 2000)]
    found, acknowledged = [], []
    for body, _ in calls:
        while body:
            message = rtmsg(body)
            message.decode()
            assert (message.get_attr("RTA_GATEWAY"), message.get_attr("RTA_OIF")) == (str(gateway), 12)
            found.append(f"{message.get_attr('RTA_DST')}/{message['dst_len']}")
            acknowledged.append(bool(message["header"]["flags"] & 4))
            body = body[message["header"]["length"] :]
    assert found == [network(version, 7 + at) for at in range(2001)]
    assert [at for at, asked in enumerate(acknowledged) if asked] == [999, 1999, 2000]


def test_a_table_is_installed_in_parts_with_progress(tmp_path: Path) -> None:
    parts: list[tuple[int, Share]] = []
    progress: list[str] = []
    router = make_router(tmp_path, routes=2 * routing.PART + 1)
    spent = router.install(session(progress), lambda port, part: parts.append((port.attachment.index, part)))
    assert [(index, part.first, part.count) for index, part in parts] == [
        (1, 0, routing.PART),
        (1, routing.PART, routing.PART),
        (1, 2 * routing.PART, 1),
    ]
    assert progress[-1] == "routes 40,001/40,001"
    assert spent.keys() == {"routes_installed_s"}
    assert make_router(tmp_path).install(session(progress), lambda port, part: None) == {}


def test_a_table_that_takes_too_long_ends_with_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "_LEAST_S", -1e9)
    with pytest.raises(ProvisionError, match=r"^20,000 of 40,000 routes were installed within .*--icbench-routes$"):
        make_router(tmp_path, routes=2 * routing.PART).install(session([]), lambda port, part: None)
