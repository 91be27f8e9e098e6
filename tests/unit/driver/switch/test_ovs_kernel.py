# SPDX-License-Identifier: BSD-3-Clause
"""ovs-kernel: the sequence of its commands, and what is reported where the kernel or the daemon does not suffice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.ovs import kernel_datapath
from pytest_icbench.driver.switch.ovs.daemons import find_installation
from pytest_icbench.driver.switch.ovs.kernel_datapath import OvsKernel, probe_datapath
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.net.links import End
from tests.unit.driver.switch.ovs_host import Host, commands, host, session
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["host", "session"]  # fixtures


class Links:
    """Stands in for ``host.net.links``, and for ``offloads``."""

    End = End

    def __init__(self) -> None:
        self.made: list[tuple[str, str | None]] = []

    def create_pair(self, session: Any, a: Any, b: Any, *, mtu: int) -> None:
        self.made.append((b.name, b.netns))

    def exists(self, name: str, netns: str | None) -> bool:
        return (name, netns) in self.made

    def delete_netns(self, session: Any, path: str) -> None: ...

    def checked(self, settings: Any) -> dict[str, str]:
        return dict(settings)

    def apply(self, session: Any, places: Any, settings: Any) -> None: ...

    def read(self, name: str, netns: str) -> dict[str, bool]:
        return {}


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    made = Links()
    monkeypatch.setattr(kernel, "links", made)
    monkeypatch.setattr(ethtool, "apply_settings", made.apply)
    monkeypatch.setattr(ethtool, "read_offloads", made.read)
    monkeypatch.setattr(kernel, "remove_ends", lambda attachments: None)
    return made


def start(session: Any, segments: tuple[int | None, ...] = (None, None), **changes: Any) -> OvsKernel:
    switch = OvsKernel()
    attached = zip(attachments_of(session.dir, len(segments) // 2), segments, strict=True)
    attachments = [replace(attachment, segment=segment) for attachment, segment in attached]
    switch.start(session, spec_of(session.dir, port="veth", **changes), attachments)
    return switch


def test_the_bridge_is_the_kernel_s_and_has_the_links_as_ports(session: Any, links: Links) -> None:
    switch = start(session)
    prepare, add, check = commands(session, "ovs-vsctl")
    assert prepare[-2:] == ["--no-wait", "init"]
    text = " ".join(add)
    assert "add-br br0 -- set Bridge br0 datapath_type=system" in text
    for index in (0, 1):
        assert f"-- add-port br0 p{index} -- set Interface p{index} ofport_request={index + 1}" in text
    assert check[-2:] == ["list", "Interface"]
    # The datapath is in the daemon's namespace, where the ports have to be.
    _, daemon = session.spawner.started
    assert links.made == [("p0", daemon.netns), ("p1", daemon.netns)]
    assert switch.facts().config["ovs"] == "3.1.0"


def test_ports_that_see_each_other_have_a_bridge_of_their_own(session: Any, links: Links, host: Host) -> None:
    host.interfaces = [[f"p{index}", index + 1, ["set", []]] for index in range(4)]
    start(session, (0, 1, 1, 0))
    text = " ".join(commands(session, "ovs-vsctl")[1])
    assert [f"add-port br{segment} p{index}" in text for index, segment in enumerate((0, 1, 1, 0))] == [True] * 4
    assert text.count("datapath_type=system") == 2


def test_a_port_that_the_datapath_refuses_is_named(session: Any, links: Links, host: Host) -> None:
    host.interfaces[2] = ["p1", -1, "could not add network device p1 to ofproto (File exists)"]
    with pytest.raises(ProvisionError, match=r"could not make the port p1 \(could not add network device p1"):
        start(session)


def test_a_launch_waits_for_the_links_and_a_missing_port_is_named(session: Any, links: Links, host: Host) -> None:
    switch = start(session)
    host.states = ["LINK_DOWN", "LIVE"]
    switch.prepare_traffic()
    assert host.states == []
    switch.set_ageing(20)
    assert commands(session, "ovs-vsctl")[-1][-1] == "other-config:mac-aging-time=20"
    switch.check()
    links.made.pop()
    with pytest.raises(ProvisionError, match="the port p1 of ovs-kernel is gone"):
        switch.check()
    switch.stop()
    assert session.netns == []
    switch.stop()


def test_a_daemon_without_dpdk_suffices(session: Any, host: Host) -> None:
    host.version = "ovs-vswitchd (Open vSwitch) 3.1.0\n"
    assert find_installation(session, None, needs_dpdk=False).dpdk == ""
    with pytest.raises(Unsupported, match="was built without DPDK"):
        find_installation(session, None)


def test_a_kernel_without_the_datapath_is_reported_its_option(monkeypatch: pytest.MonkeyPatch, session: Any) -> None:
    monkeypatch.setattr(kernel_datapath, "_FAMILY", "icbench-none")
    with pytest.raises(Unsupported, match=r"modprobe openvswitch.*CONFIG_OPENVSWITCH.*test-paths"):
        probe_datapath()
    monkeypatch.setattr(kernel_datapath, "_FAMILY", "nlctrl")  # every kernel has it
    probe_datapath()
