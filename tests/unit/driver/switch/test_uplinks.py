# SPDX-License-Identifier: BSD-3-Clause
"""Uplinks of switches in user space: the words and messages by which they get a NIC, and the order of giving back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pytest_icbench.driver.switch import registry
from pytest_icbench.driver.switch.dpdk import direct
from pytest_icbench.driver.switch.kernel import linux_bridge, veth
from pytest_icbench.driver.switch.ovs import userspace_datapath as ovs
from pytest_icbench.driver.switch.ovs.userspace_datapath import _uplink_port
from pytest_icbench.driver.switch.vpp import interfaces as vpp_uplink
from pytest_icbench.driver.workload.eal import eal_arguments
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net import ethtool
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.endpoint import Address, Endpoint, Nic
from pytest_icbench.model.uplink import Uplink
from tests.unit.driver.switch.vpp_host import Client, client, session, start
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["client", "session"]  # fixtures

KERNEL, XDP, VFIO = Uplink("eth1"), Uplink("eth1", "af_xdp"), Uplink("0000:04:00.0", "vfio")


def words(uplink: Uplink, mtu: int = 1500) -> str:
    return " ".join(_uplink_port(uplink, mtu, 3))


def test_ovs_has_a_nic_by_the_driver_that_is_asked_for() -> None:
    packet, xdp, own = words(KERNEL), words(XDP), words(VFIO)
    for said in (packet, xdp, own):
        assert "add-port br0 uplink0 -- set Interface uplink0 type=dpdk" in said
        assert 'mtu_request=1500 ofport_request=1000 other_config:pmd-rxq-affinity="0:3"' in said
    assert 'options:dpdk-devargs="net_af_packet0,iface=uplink0,qpairs=1,' in packet
    assert "framesz=2048" in packet
    assert "framesz=16384" in words(KERNEL, 9000)
    assert 'options:dpdk-devargs="net_af_xdp0,iface=uplink0,start_queue=0,queue_count=1"' in xdp
    assert 'options:dpdk-devargs="0000:04:00.0"' in own


def test_ovs_may_use_no_pci_function_but_its_uplink(session: Any, tmp_path: Path) -> None:
    attachments = attachments_of(tmp_path)
    for uplink, said in ((None, "--no-pci "), (KERNEL, "--no-pci "), (VFIO, "-a 0000:04:00.0 ")):
        config = ovs._other_config(session, spec_of(tmp_path, uplink=uplink), attachments, 100)
        assert config["dpdk-extra"].startswith(said)


class FakeNic:
    """Stands in for ``NicUplink``."""

    log: list[tuple[Any, ...]]

    def __init__(self, session: Any, uplink: Uplink, netns: str | None, *, mtu: int, new_name: str = "uplink0") -> None:
        self.log.append(("nic", str(uplink), netns, mtu))

    def take(self, *, promiscuous: bool = False, up: bool = True) -> None:
        self.log.append(("take", promiscuous))

    def await_carrier(self) -> None:
        self.log.append(("carrier",))

    def give_back(self) -> None:
        self.log.append(("give back",))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(FakeNic, "log", found, raising=False)
    for module in (vpp_uplink, linux_bridge):
        monkeypatch.setattr(module, "NicUplink", FakeNic)
    from pytest_icbench.host.net import links

    monkeypatch.setattr(links, "create_netns", lambda session, suffix: f"/run/netns/{suffix}")
    monkeypatch.setattr(links, "delete_netns", lambda session, path: found.append(("delete", path)))
    monkeypatch.setattr(Client, "knows", lambda self, message: message != "af_xdp_create_v3")
    return found


def test_vpp_bridges_its_ports_and_the_nic(session: Any, client: Client, log: list[tuple[Any, ...]]) -> None:
    switch, _ = start(session, uplink=KERNEL)
    assert log == [("nic", "eth1", "/run/netns/r1-vpp", 1500), ("take", True), ("carrier",)]
    (started,) = session.spawner.started
    assert started.netns == "/run/netns/r1-vpp"
    assert "plugin af_packet_plugin.so { enable }" in (session.dir / "vpp/startup.conf").read_text()
    (made,) = client.sent("af_packet_create_v3")
    assert made["host_if_name"] == "uplink0"
    assert len(client.sent("sw_interface_set_l2_bridge")) == 3
    assert len(client.sent("sw_interface_set_flags")) == 3
    switch.stop()
    assert session.spawner.processes[0].stopped
    assert log[-2:] == [("give back",), ("delete", "/run/netns/r1-vpp")]


def test_vpp_without_the_plugin_says_so(session: Any, log: list[tuple[Any, ...]]) -> None:
    with pytest.raises(ProvisionError, match=r"this vpp has no plugin af_xdp_plugin\.so, which the uplink takes"):
        start(session, uplink=XDP)


def test_a_wire_with_an_uplink_refuses_a_second_port(session: Any, log: list[tuple[Any, ...]]) -> None:
    with pytest.raises(ProvisionError, match="vpp:xconnect joins one port with an uplink: take one pair"):
        start(session, uplink=KERNEL, mode="xconnect")


def test_a_nic_that_is_the_endpoint_is_one(tmp_path: Path) -> None:
    for driver in (direct.DirectLink(), veth.VethLink()):
        with pytest.raises(ProvisionError, match=r"over a NIC joins one pair, not 2: lower --icbench-pairs"):
            driver.start(None, spec_of(tmp_path, uplink=KERNEL), attachments_of(tmp_path))  # type: ignore[arg-type]


def test_dpdk_over_a_nic_of_the_kernel() -> None:
    endpoint = Nic(Address.of(1, "a"), "eth0", "af_packet")
    assert decode(cast("Any", Endpoint), encode(endpoint), "endpoint") == endpoint
    words = eal_arguments(endpoint, "dpdk", cpu=1, ring=256, jumbo=False)
    assert words[-4:-1] == ["--no-pci", "--iova-mode", "va"]
    assert words[-1].startswith("--vdev=net_af_packet0,iface=eth0,")


def test_who_can_have_an_uplink() -> None:
    found = {name: cls.uplinks for name, cls in registry.builtin_switches().items() if cls.uplinks}
    assert found == {
        "linux-bridge": ("kernel",),
        "veth": ("kernel",),
        "direct": ("kernel", "af_xdp", "vfio"),
        "ovs": ("kernel", "af_xdp", "vfio"),
        "vpp": ("kernel", "af_xdp"),
        "sriov": ("kernel",),
    }


def test_a_missing_nic_has_no_queues_and_refuses_any() -> None:
    assert ethtool.read_channels("nonic9") is None
    assert ethtool.read_lro("nonic9") is None
    with pytest.raises(ProvisionError, match=r"nonic9 refuses \[0, 0, 0, 1\] queues"):
        ethtool.set_channels("nonic9", [0, 0, 0, 1])
