# SPDX-License-Identifier: BSD-3-Clause
"""The ports of vpp: to programs by memory, to the kernel by name, and which worker polls which queue."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_icbench.driver.switch.common import kernel, kernel_ports
from pytest_icbench.driver.switch.vpp import switch as module
from pytest_icbench.driver.switch.vpp.switch import Vpp
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net.links import End
from pytest_icbench.model.case import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Address, Memif
from tests.unit.driver.switch.vpp_host import Client, client, session, start

__all__ = ["client", "session"]  # fixtures


class Links:
    """Stands in for ``host.net.links``, and for ``offloads``."""

    End = End

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def create_netns(self, session: Any, suffix: str) -> str:
        return f"/run/netns/{suffix}"

    def delete_netns(self, session: Any, path: str) -> None:
        self.calls.append(("delete", path))

    def create_pair(self, session: Any, a: Any, b: Any, *, mtu: int) -> None:
        self.calls.append(("pair", a.netns, b.name, b.netns))

    def remove_link(self, name: str, netns: str) -> None:
        self.calls.append(("remove", name, netns))

    def apply(self, session: Any, places: Any, settings: Any) -> None:
        self.calls.append(("off", places[0][1], sorted(settings)))


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    made = Links()
    for place in (module, kernel_ports, kernel):
        monkeypatch.setattr(place, "links", made)
    monkeypatch.setattr(kernel_ports, "offloads", made)
    return made


@pytest.mark.parametrize(
    ("port", "message", "plugin"),
    [
        ("afpacket", "af_packet_create_v3", "af_packet_plugin.so"),
        ("afxdp", "af_xdp_create_v3", "af_xdp_plugin.so"),
    ],
)
def test_ports_to_containers_of_the_kernel(
    session: Any, client: Client, links: Links, port: str, message: str, plugin: str
) -> None:
    switch, endpoints = start(session, port=port)
    netns, nodes = "/run/netns/r1-vpp", [f"/proc/{1000 + index}/ns/net" for index in (0, 1)]
    unfinished = ["checksum", "gso", "tso"]
    made = [[("pair", node, f"p{index}", netns), ("off", node, unfinished)] for index, node in enumerate(nodes)]
    assert links.calls == [*made[0], *made[1]]
    assert [each.get("host_if_name", each.get("host_if")) for each in client.sent(message)] == ["p0", "p1"]
    assert [endpoint.host_interface for endpoint in endpoints] == ["p0", "p1"]
    (started,) = session.spawner.started
    assert started.netns == netns
    text = (session.dir / "vpp" / "startup.conf").read_text()
    assert f"plugin default {{ disable }} plugin {plugin} {{ enable }} }}" in text
    assert "page-size default }" in text
    links.calls.clear()
    switch.stop()
    switch.stop()
    assert links.calls == [*(("remove", "eth0", node) for node in nodes), ("delete", netns)]


def test_a_vpp_without_the_plugin_of_a_port_says_so(session: Any, client: Client, links: Links) -> None:
    client.lacks = "af_xdp_create_v3"
    with pytest.raises(ProvisionError, match=r"no plugin af_xdp_plugin\.so, which port afxdp takes: build it with"):
        start(session, port="afxdp")


def test_ports_to_the_kernel_are_chosen_by_name_and_take_the_kernel_s_techniques() -> None:
    assert Vpp.ports_by_name == ("afpacket", "afxdp")
    assert Vpp.port_apis("afpacket") == (*SOCKET_APIS, *NETDEV_APIS)
    assert Vpp.port_apis("memif") == ("dpdk",)


def test_packed_rings_and_memif(session: Any, client: Client) -> None:
    _, endpoints = start(session, port="vhost-user-packed")
    assert all(port["enable_packed"] for port in client.sent("create_vhost_user_if_v2"))
    assert [endpoint.packed for endpoint in endpoints] == [True, True]


def test_memif_ports_have_a_socket_each(session: Any, client: Client) -> None:
    _, endpoints = start(session, port="memif")
    path = str(session.dir / "s" / "p1")
    names = [(each["socket_id"], each["socket_filename"]) for each in client.sent("memif_socket_filename_add_del_v2")]
    assert names[1] == (2, path)
    assert [(each["socket_id"], each["role"]) for each in client.sent("memif_create_v2")] == [(1, 0), (2, 0)]
    assert endpoints[1] == Memif(Address.of(1, "b"), path, role="client")


def test_queues_are_placed_when_endpoints_are_connected(session: Any, client: Client) -> None:
    switch, _ = start(session, pairs=2, worker_cpus=(2, 5))
    assert switch.assignment() is None
    client.workers = {1: 0, 2: 0, 3: 0, 4: 1}  # as they came
    switch.connected()
    moved = {each["sw_if_index"]: each["worker_id"] for each in client.sent("sw_interface_set_rx_placement")}
    assert moved == {3: 1}  # the second sender's port
    assert switch.assignment() == {0: 2, 1: 2, 2: 5, 3: 5}
    assert {each["mode"] for each in client.sent("sw_interface_set_rx_mode")} == {1}


def test_queues_of_a_port_are_placed_on_several_workers(
    session: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, _ = start(session, port="memif", worker_cpus=(2, 5), queues=2)
    assert [(each["rx_queues"], each["tx_queues"]) for each in client.sent("memif_create_v2")] == [(2, 2)] * 2
    client.queues = 2
    switch.connected()
    moved = [(each["sw_if_index"], each["queue_id"], each["worker_id"]) for each in _moved(client)]
    assert moved == [(1, 1, 1), (2, 1, 1)]
    client.queues = 1
    monkeypatch.setattr(module, "_CONNECT_S", 0.0)
    with pytest.raises(ProvisionError, match=r"^vpp has no queue for the port of endpoint 0: it is not connected"):
        switch.connected()


def _moved(client: Client) -> list[dict[str, Any]]:
    return client.sent("sw_interface_set_rx_placement")


def test_cores_without_queues_are_refused() -> None:
    assert Vpp().needs(2, 4).pollers == 4
    with pytest.raises(Unsupported, match="at most 2 switch cores"):
        Vpp().needs(1, 3)
