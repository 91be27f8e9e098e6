# SPDX-License-Identifier: BSD-3-Clause
"""The ports of vpp: to programs by memory, to the kernel by name, and which worker polls which queue."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.vpp import interfaces
from pytest_icbench.driver.switch.vpp import vpp_switch as module
from pytest_icbench.driver.switch.vpp.vpp_switch import Vpp
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.net.links import End
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Address, Memif
from tests.unit.driver.switch.vpp_host import Client, client, session, start
from tests.unit.recording_host import spec_of

__all__ = ["client", "session"]  # fixtures


class Links:
    """Stands in for ``host.net.links``, and for ``ethtool``."""

    End = End

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.settings: list[dict[str, str]] = []

    def check_settings(self, settings: Any) -> dict[str, str]:
        return ethtool.check_settings(settings)

    def create_netns(self, session: Any, suffix: str) -> str:
        return f"/run/netns/{suffix}"

    def delete_netns(self, session: Any, path: str) -> None:
        self.calls.append(("delete", path))

    def create_pair(self, session: Any, a: Any, b: Any, *, mtu: int) -> None:
        self.calls.append(("pair", a.netns, b.name, b.netns))

    def move(self, name: str, end: Any) -> None:
        self.calls.append(("move", name, end.netns, end.name))

    def remove_link(self, name: str, netns: str) -> None:
        self.calls.append(("remove", name, netns))

    def apply_settings(self, session: Any, places: Any, settings: Any) -> None:
        self.calls += [("off", netns, sorted(settings)) for _, netns in places]
        self.settings += [dict(settings)] * len(places)


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    made = Links()
    for place in (module, kernel):
        monkeypatch.setattr(place, "links", made)
    for place in (kernel, interfaces):
        monkeypatch.setattr(place, "ethtool", made)
    monkeypatch.setattr(kernel, "enter_netns", lambda netns: nullcontext())
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


@pytest.mark.parametrize(("mode", "mtu"), [(None, 1500), ("xconnect", 9198)])
def test_taps_are_made_by_vpp_and_moved_into_their_nodes(
    session: Any, client: Client, links: Links, mode: str | None, mtu: int
) -> None:
    switch, endpoints = start(session, port="tap", mode=mode, mtu=mtu)
    nodes, unfinished = [f"/proc/{1000 + index}/ns/net" for index in (0, 1)], ["checksum", "gso", "tso"]
    moved = [("move", f"p{index}", node, "eth0") for index, node in enumerate(nodes)]
    assert links.calls == [*moved, *(("off", node, unfinished) for node in nodes)]
    made = client.sent("tap_create_v3")
    assert [each["host_if_name"] for each in made] == ["p0", "p1"]
    assert {(each["host_mtu_size"], each["num_rx_queues"], each["tap_flags"]) for each in made} == {(mtu, 1, 0)}
    assert [(endpoint.host_interface, endpoint.mtu) for endpoint in endpoints] == [("p0", mtu), ("p1", mtu)]
    text = (session.dir / "vpp" / "startup.conf").read_text()
    assert "plugin default { disable } plugin tap_plugin.so { enable } }" in text
    assert "page-size default }" in text
    # They come into the nodes before a frame can come from them.
    assert client.calls.index(("tap_create_v3", made[1])) < next(
        place for place, (message, _) in enumerate(client.calls) if message == "sw_interface_set_flags"
    )
    links.calls.clear()
    switch.stop()
    switch.stop()
    assert links.calls == [*(("remove", "eth0", node) for node in nodes), ("delete", "/run/netns/r1-vpp")]


#: A process with the name of a thread of vhost-net, which says so, and ends with its input.
COPIES = """
import os, sys
open("/proc/self/comm", "w").write(f"vhost-{os.getpid()}")
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_threads_that_copy_are_on_the_service_cpus(session: Any, links: Links) -> None:
    here = os.sched_getaffinity(0)
    cpu = min(here)
    argv = [sys.executable, "-c", COPIES]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        worker = cpu + 1
        spec = spec_of(session.dir, service_cpus=(cpu, worker), worker_cpus=(worker,))
        interfaces.move_taps(session, process.pid, spec, "/run/netns/r1-vpp", [])
        assert os.sched_getaffinity(process.pid) == {cpu}
        process.communicate()
    assert os.sched_getaffinity(0) == here


def test_a_kernel_without_vhost_net_is_reported_before_anything_starts(
    session: Any, links: Links, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tun").touch()
    devices = [("tun", "tun", "CONFIG_TUN"), ("vhost-net", "vhost_net", "CONFIG_VHOST_NET")]
    monkeypatch.setattr(interfaces, "_DEVICES", [(str(tmp_path / name), *rest) for name, *rest in devices])
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for port in Vpp.ports:
        if port != "tap":
            Vpp().probe_port(session, port)
    sentence = (
        f"port tap of vpp takes {tmp_path}/vhost-net, which cannot be opened (No such file or directory): load its"
        " module (modprobe vhost_net) or use a kernel that has it (CONFIG_VHOST_NET), as the guest of `make"
        " test-paths` does"
    )
    with pytest.raises(Unsupported) as caught:
        Vpp().probe_port(session, "tap")
    assert str(caught.value) == sentence
    (tmp_path / "vhost-net").touch()
    Vpp().probe_port(session, "tap")
    (tmp_path / "vhost-net").unlink()
    monkeypatch.setattr("os.geteuid", lambda: 1000)  # a plan, for a run with root
    Vpp().probe_port(session, "tap")
    assert session.spawner.started == []


@pytest.mark.parametrize(
    ("port", "message", "plugin"),
    [
        ("afxdp", "af_xdp_create_v3", "af_xdp_plugin"),
        ("tap", "tap_create_v3", "tap_plugin"),
        ("memif", "memif_socket_filename_add_del_v2", "memif_plugin"),
        ("vhost-user-packed", "create_vhost_user_if_v2", "vhost_plugin"),
    ],
)
def test_a_vpp_without_the_plugin_of_a_port_says_so(
    session: Any, client: Client, links: Links, port: str, message: str, plugin: str
) -> None:
    client.lacks = message
    with pytest.raises(ProvisionError, match=rf"no plugin {plugin}\.so, which port {port} takes: take a VPP with"):
        start(session, port=port)


def test_ports_to_the_kernel_are_chosen_by_name_and_take_the_kernel_s_techniques() -> None:
    assert Vpp.ports_by_name == ("afpacket", "afxdp", "tap")
    for port in Vpp.ports_by_name:
        assert Vpp.port_apis(port) == (*SOCKET_APIS, *NETDEV_APIS)
    assert Vpp.port_apis("memif") == ("dpdk",)


def test_packed_rings_are_enabled_for_their_port_kind(session: Any, client: Client) -> None:
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


def test_a_memif_of_which_vpp_is_the_client_copies_nothing_and_its_endpoints_serve(
    session: Any, client: Client
) -> None:
    switch, endpoints = start(session, port="memif-client", ring=512)
    made = client.sent("memif_create_v2")
    assert [(each["role"], each["ring_size"], each["no_zero_copy"]) for each in made[:2]] == [(1, 512, False)] * 2
    assert endpoints[0] == Memif(Address.of(1, "a"), str(session.dir / "s" / "p0"), role="server")
    client.connects_after = 2 + 4  # both went up, and then one more down and up, twice
    switch.meet_endpoints()
    flags = [(each["sw_if_index"], each["flags"]) for each in client.sent("sw_interface_set_flags")]
    assert flags == [(1, 1), (2, 1), (3, 0), (3, 1), (3, 0), (3, 1)]  # no port loses what it has learned
    switch.meet_endpoints()
    switch.prepare_traffic()
    assert len(client.sent("sw_interface_set_flags")) == 6


@pytest.mark.parametrize("port", ["memif", "vhost-user"])
def test_a_vpp_that_serves_waits_for_its_endpoints(session: Any, client: Client, port: str) -> None:
    switch, _ = start(session, port=port)
    client.connects_after = 99
    switch.meet_endpoints()
    assert len(client.sent("sw_interface_set_flags")) == 2


def test_rings_buffers_and_copies_of_memifs_are_the_users(session: Any, client: Client) -> None:
    own = {"ring": "2048", "buffer": "4096", "zero-copy": "false"}
    start(session, port="memif-client", config={"memif": own})
    made = client.sent("memif_create_v2")[:2]
    assert {(each["ring_size"], each["buffer_size"], each["no_zero_copy"]) for each in made} == {(2048, 4096, True)}


@pytest.mark.parametrize(
    ("port", "config", "culprit"),
    [
        ("memif", {"memif": {"ring": "512"}}, "memif: at port memif the endpoint is the client"),
        ("memif-client", {"memif": {"ring": "1000"}}, "memif: ring = 1000 is no number from 64 to 16384, a power of"),
        ("memif-client", {"memif": {"buffer": "4k", "zero-copy": "false"}}, "memif: buffer = 4k is no number"),
        ("memif-client", {"memif": {"buffer": "4096"}}, "set zero-copy = false"),
        ("memif-client", {"memif": {"rings": "512"}}, "memif: there is no 'rings'"),
        ("memif-client", {"memif": {"zero-copy": "maybe"}}, "zero-copy = maybe is neither true nor false"),
        ("vhost-user", {"offloads": {"gso": "true"}}, "offloads: vpp's port vhost-user has none"),
        ("tap", {"offloads": {"tos": "true"}}, "offloads: there is no 'tos'"),
        ("memif", {"commands": ["set interface rx-mode memif1/0 interrupt"]}, "take --icbench-rx-mode"),
    ],
)
def test_a_configuration_that_does_not_fit_the_port_is_refused_before_anything_starts(
    session: Any, client: Client, port: str, config: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(ProvisionError) as caught:
        start(session, port=port, config=config)
    assert culprit in str(caught.value)
    assert session.spawner.started == []


def test_offloads_of_taps_and_af_packet_are_left_to_the_port(session: Any, client: Client, links: Links) -> None:
    asked = {"offloads": {"checksum": "true", "tso": "true", "gso": "true"}}
    start(session, port="tap", config=asked)
    assert {each["tap_flags"] for each in client.sent("tap_create_v3")} == {1 | 2}
    assert links.settings == [{"checksum": "true", "tso": "true", "gso": "true"}] * 2
    start(session, port="afpacket", config=asked)
    assert {each["flags"] for each in client.sent("af_packet_create_v3")} == {1 | 2}
    assert links.settings[2:] == links.settings[:2]


@pytest.mark.parametrize(("asked", "number"), [(None, 1), ("interrupt", 2), ("adaptive", 3)])
def test_queues_are_in_the_rx_mode_that_was_asked_for(
    session: Any, client: Client, asked: str | None, number: int
) -> None:
    client.rx_modes = {1: 3, 2: 1}
    switch, _ = start(session, port="memif", rx_mode=asked)
    switch.prepare_traffic()
    assert client.rx_modes == {1: number, 2: number}
    client.commands.clear()
    # Of workers that poll only idle rounds tell the load, and this one had none.
    busy = switch.busy()
    assert (None if busy is None else busy.wakeups) == (None if asked is None else 0)
    # What VPP's command line is asked wakes workers for half a second.
    assert (client.commands == []) == (asked is not None)


def test_an_rx_mode_that_vpp_does_not_keep_is_no_measurement(session: Any, client: Client) -> None:
    switch, _ = start(session, port="memif", rx_mode="adaptive")
    client.keeps_rx_mode = True
    with pytest.raises(ProvisionError, match=r"^vpp did not take rx mode adaptive for the port of endpoint 0"):
        switch.prepare_traffic()


def test_queues_are_placed_when_endpoints_are_connected(session: Any, client: Client) -> None:
    switch, _ = start(session, pairs=2, worker_cpus=(2, 5))
    assert switch.assignment() is None
    client.workers = {1: 0, 2: 0, 3: 0, 4: 1}  # as they came
    switch.prepare_traffic()
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
    switch.prepare_traffic()
    moved = [(each["sw_if_index"], each["queue_id"], each["worker_id"]) for each in _moved(client)]
    assert moved == [(1, 1, 1), (2, 1, 1)]
    client.queues = 1
    monkeypatch.setattr(module, "_CONNECT_S", 0.0)
    with pytest.raises(ProvisionError, match=r"^vpp has no queue for the port of endpoint 0: it is not connected"):
        switch.prepare_traffic()


def _moved(client: Client) -> list[dict[str, Any]]:
    return client.sent("sw_interface_set_rx_placement")


def test_cores_without_queues_are_refused() -> None:
    assert Vpp().needs(2, 4).pollers == 4
    with pytest.raises(Unsupported, match="at most 2 switch cores"):
        Vpp().needs(1, 3)
