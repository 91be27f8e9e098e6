# SPDX-License-Identifier: BSD-3-Clause
"""ovs with ports to the kernel: their commands, where its threads run, and what it does without DPDK."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.driver.switch.common import kernel as common_ports
from pytest_icbench.driver.switch.ovs import userspace_datapath
from pytest_icbench.driver.switch.ovs.userspace_datapath import OpenVSwitch
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.net.links import End
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.load import Frames
from pytest_icbench.model.traffic import Traffic
from tests.unit.driver.switch.ovs_host import Host, commands, host, session, start

__all__ = ["host", "session"]  # fixtures


class Links:
    """Stands in for ``host.net.links``, and for ``ethtool``."""

    End = End

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.check_settings = ethtool.check_settings

    def create_pair(self, session: Any, a: Any, b: Any, *, mtu: int) -> None:
        self.calls.append(("pair", a.name, a.netns, b.name))

    def move(self, name: str, end: Any) -> None:
        self.calls.append(("move", name, end.netns, end.name))

    def apply_settings(self, session: Any, places: Any, settings: Any) -> None:
        if settings:
            self.calls.append(("off", places[0][1], sorted(settings)))
        self.on = [key for key, value in settings.items() if value == "true"]


@pytest.fixture
def links(host: Host, monkeypatch: pytest.MonkeyPatch) -> Links:
    made = Links()
    host.types += ["system", "afxdp", "afxdp-nonpmd", "tap"]
    monkeypatch.setattr(common_ports, "links", made)
    for place in (common_ports, userspace_datapath):
        monkeypatch.setattr(place, "ethtool", made)
    monkeypatch.setattr(common_ports, "enter_netns", lambda netns: nullcontext())
    return made


def node(index: int) -> str:
    return f"/proc/{1000 + index}/ns/net"


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ("afpacket", ["type=system"]),
        ("afxdp", ["type=afxdp", "options:xdp-mode=generic"]),
        ("afxdp-nonpmd", ["type=afxdp-nonpmd", "options:xdp-mode=generic"]),
        ("tap", ["type=tap"]),
    ],
)
def test_each_kind_has_its_type_and_its_links(session: Any, links: Links, port: str, words: list[str]) -> None:
    _, endpoints = start(session, port=port)
    added = commands(session, "ovs-vsctl")[2]
    assert [added.count(word) for word in words] == [2] * len(words)
    unfinished = ["checksum", "gso", "tso"]
    if port == "tap":
        assert links.calls == [("move", f"p{index}", node(index), "eth0") for index in (0, 1)]
    else:
        pairs = [[("pair", "eth0", node(i), f"p{i}"), ("off", node(i), unfinished)] for i in (0, 1)]
        assert links.calls == [*pairs[0], *pairs[1]]
    assert endpoints == [Veth(endpoint.address, "eth0", f"p{i}") for i, endpoint in enumerate(endpoints)]


@pytest.mark.parametrize("port", ["tap", "afpacket"])
def test_segments_and_checksums_are_left_to_the_switch_where_asked(session: Any, links: Links, port: str) -> None:
    switch, _ = start(session, port=port, config={"offloads": {"checksum": "true", "tso": "true"}})
    assert switch.facts().config["other_config"]["userspace-tso-enable"] == "true"
    assert links.on == ["checksum", "tso"]


def test_a_port_without_offloads_is_named_before_anything_starts(session: Any, links: Links) -> None:
    with pytest.raises(ProvisionError, match="ovs's port afxdp has none: take --icbench-port tap or afpacket"):
        start(session, port="afxdp", config={"offloads": {"tso": "true"}})
    assert session.spawner.started == []


def test_without_dpdk_there_is_none_of_its_configuration(session: Any, links: Links) -> None:
    switch, _ = start(session, port="afxdp")
    assert switch.facts().config["other_config"] == {"pmd-cpu-mask": "0x4"}


@pytest.mark.parametrize(("port", "cpus", "polls"), [("afxdp", [0, 1], True), ("tap", [2], False)])
def test_the_thread_that_forwards_runs_on_the_worker_s_cpu(
    session: Any, links: Links, port: str, cpus: list[int], polls: bool
) -> None:
    switch, _ = start(session, port=port)
    (daemon,) = [started for started in session.spawner.started if "vswitchd" in started.argv[0]]
    assert daemon.cpus == cpus
    assert (switch.busy() is None) != polls


def test_a_build_without_the_type_says_so(session: Any, host: Host) -> None:
    with pytest.raises(ProvisionError, match="this Open vSwitch has no afxdp ports"):
        start(session, port="afxdp")


def test_ports_to_the_kernel_are_chosen_by_name_and_take_the_kernel_s_techniques() -> None:
    assert OpenVSwitch.ports_by_name == ("afpacket", "afxdp", "afxdp-nonpmd", "tap")
    assert OpenVSwitch.port_apis("tap") == (*SOCKET_APIS, *NETDEV_APIS)
    assert OpenVSwitch.port_apis("vhost-user-packed") == ("dpdk",)


@pytest.mark.parametrize(("port", "asked"), [("tap", False), ("afpacket", True)])
def test_a_tap_s_link_is_in_its_node_and_not_waited_for(
    session: Any, links: Links, host: Host, port: str, asked: bool
) -> None:
    switch, _ = start(session, port=port)
    host.states = ["LINK_DOWN"]
    switch.prepare_traffic()
    assert (host.states == []) == asked


@pytest.mark.parametrize("port", ["afxdp", "afxdp-nonpmd", "tap"])
def test_frames_longer_than_a_port_carries_are_refused(port: str) -> None:
    case = Case("ovs", Frames(Traffic(1519)), port=port, api="udp")
    expected = f"1519 bytes are more than ovs's port {port} carries; take packet sizes up to 1518"
    assert unsupported_reason(case, OpenVSwitch, 256) == expected


@pytest.mark.parametrize(
    ("port", "words"),
    [("tap", "has not listed its port types within"), ("vhost-user", "has not initialized DPDK within")],
)
def test_a_daemon_that_never_gets_ready_is_reported_by_what_it_was_to_do(
    session: Any, host: Host, links: Links, monkeypatch: pytest.MonkeyPatch, port: str, words: str
) -> None:
    host.types.clear()
    monkeypatch.setattr("pytest_icbench.driver.switch.ovs.userspace_datapath.START_S", 0.05)
    with pytest.raises(ProvisionError, match=words):
        start(session, port=port)
