# SPDX-License-Identifier: BSD-3-Clause
"""veth and linux-bridge: which links they ask for, in which order, and the catalogue of switches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_icbench.config.switches import resolve_switches
from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.kernel import linux_bridge
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge
from pytest_icbench.driver.switch.kernel.veth import VethLink
from pytest_icbench.driver.switch.protocol import Busy
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.workload.workload_version import WorkloadVersion
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net.links import End, LinkState
from pytest_icbench.model.api_techniques import APIS
from pytest_icbench.model.case import GROUPS, REFERENCE_LINKS, Family
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.traffic import MAX_FRAME_BYTES
from tests.unit.recording_host import RecordingSession, attachments_of, spec_of


class RecordingLinks:
    """Stands in for ``host.links`` in every driver."""

    End = End

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        #: The links of the bridge's namespace; None: it is gone.
        self.there: dict[str, LinkState] | None = {name: LinkState(True, 1500) for name in ("lo", "br0", "p0", "p1")}

    def create_pair(self, session: Any, a: Any, b: Any, *, mtu: int) -> None:
        self.calls.append(("pair", a.name, a.netns, b.name, b.netns, mtu))

    def move(self, name: str, end: Any) -> None:
        self.calls.append(("move", name, end.name, end.netns))

    def set_mtu(self, name: str, mtu: int) -> None:
        self.calls.append(("mtu", name, mtu))

    def create_netns(self, session: Any, suffix: str) -> str:
        self.calls.append(("netns", suffix))
        return f"/run/netns/{suffix}"

    def create_bridge(self, session: Any, name: str, netns: str, *, mtu: int, grouped: bool) -> None:
        assert grouped
        self.calls.append(("bridge", name, netns, mtu))

    def enslave(self, name: str, bridge: str) -> None:
        self.calls.append(("enslave", name, bridge))

    def bypass_bridge_filters(self, netns: str) -> None:
        self.calls.append(("bypass", netns))

    def set_up(self, name: str, netns: str) -> None:
        self.calls.append(("up", name, netns))

    def remove_link(self, name: str, netns: str) -> None:
        self.calls.append(("remove", name, netns))
        if netns == "/proc/1000/ns/net":
            raise ProvisionError("its node is not running")

    def remove_grouped(self, netns: str) -> None:
        self.calls.append(("grouped", netns))
        if self.there is None:
            raise ProvisionError(f"network namespace {netns} cannot be entered")

    def delete_netns(self, session: Any, path: str) -> None:
        self.calls.append(("delete netns", path))

    def read_states(self, netns: str) -> dict[str, LinkState]:
        if self.there is None:
            raise ProvisionError(f"network namespace {netns} cannot be entered")
        return self.there

    def read_statistics(self, name: str, netns: str) -> dict[str, int]:
        self.calls.append(("statistics", name, netns))
        return {"rx_packets": 1, "tx_packets": 2, "rx_dropped": 3, "tx_dropped": 4}


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> RecordingLinks:
    found = RecordingLinks()

    @contextmanager
    def entered(netns: str) -> Iterator[None]:
        found.calls.append(("enter", netns))
        yield
        found.calls.append(("leave", netns))

    for module in ("common.kernel", "kernel.veth", "kernel.linux_bridge"):
        monkeypatch.setattr(f"pytest_icbench.driver.switch.{module}.links", found)
    monkeypatch.setattr(linux_bridge, "enter_netns", entered)
    return found


def netns(index: int) -> str:
    return f"/proc/{1000 + index}/ns/net"


def test_veth_joins_the_nodes_of_each_pair(links: RecordingLinks, tmp_path: Path) -> None:
    switch = VethLink()
    session: Any = RecordingSession(tmp_path)
    places = attachments_of(tmp_path, 2)
    endpoints = switch.start(session, spec_of(tmp_path, port="veth", mtu=9198), places)
    assert links.calls == [
        ("pair", "eth0", netns(0), "eth0", netns(1), 9198),
        ("pair", "eth0", netns(2), "eth0", netns(3), 9198),
    ]
    assert endpoints == [Veth(place.address, "eth0", "eth0", 9198) for place in places]
    links.calls.clear()
    switch.stop()
    switch.stop()
    assert links.calls == [("remove", "eth0", netns(index)) for index in range(4)]


def test_veth_counts_from_the_other_side(links: RecordingLinks, tmp_path: Path) -> None:
    switch = VethLink()
    session: Any = RecordingSession(tmp_path)
    switch.start(session, spec_of(tmp_path, port="veth"), attachments_of(tmp_path))
    first, second = switch.counters() or []
    assert (first.rx_packets, first.tx_packets, first.rx_dropped, first.tx_dropped) == (2, 1, 4, 3)
    assert second.index == 1


def test_the_bridge_lives_in_a_namespace_of_its_own(links: RecordingLinks, tmp_path: Path) -> None:
    switch = LinuxBridge()
    session: Any = RecordingSession(tmp_path)
    endpoints = switch.start(session, spec_of(tmp_path, port="veth"), attachments_of(tmp_path))
    own = "/run/netns/r1-br"
    assert links.calls == [
        ("netns", "r1-br"),
        ("bypass", "/run/netns/r1-br"),
        ("bridge", "br0", own, 1500),
        ("up", "br0", own),
        ("pair", "eth0", netns(0), "p0", own, 1500),
        *(("enter", own), ("enslave", "p0", "br0"), ("leave", own)),
        ("pair", "eth0", netns(1), "p1", own, 1500),
        *(("enter", own), ("enslave", "p1", "br0"), ("leave", own)),
    ]
    assert [endpoint.host_interface for endpoint in endpoints if isinstance(endpoint, Veth)] == ["p0", "p1"]
    switch.check()
    assert switch.fault() is None
    whole = links.there or {}
    links.there = whole | {"p0": LinkState(True, 68), "br0": LinkState(True, 68)}
    assert str(switch.fault()).startswith("the port p0 of linux-bridge has an MTU of 68"), (
        "the bridge follows its ports"
    )
    for name, kind in (("br0", "bridge"), ("p0", "port"), ("p1", "port")):
        links.there = {other: state for other, state in whole.items() if other != name}
        with pytest.raises(ProvisionError, match=f"^the {kind} {name} of linux-bridge is gone: it .*was removed$"):
            switch.check()
        links.there = whole | {name: LinkState(False, 1500)}
        assert switch.fault() == f"the {kind} {name} of linux-bridge was set down: set it up"
        links.there = whole | {name: LinkState(True, 68)}
        assert switch.fault() == f"the {kind} {name} of linux-bridge has an MTU of 68, not the 1500 of its start"
        switch.check()
    links.there = None
    with pytest.raises(ProvisionError, match="the network namespace of linux-bridge is gone: it was removed"):
        switch.check()
    assert str(switch.fault()).startswith("the network namespace of linux-bridge is gone")
    first, _ = switch.counters() or []
    assert (first.rx_packets, first.tx_packets) == (1, 2)
    links.calls.clear()
    switch.stop()
    switch.stop()
    assert [call[0] for call in links.calls] == ["grouped", "remove", "remove", "delete netns"]


def test_a_node_s_own_link_becomes_the_port_itself(
    links: RecordingLinks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine's tap is the bridge's port, beside a container's veth: no link more than a host of machines has."""

    @contextmanager
    def enter(netns: str) -> Iterator[None]:
        links.calls.append(("enter", netns))
        yield

    monkeypatch.setattr(kernel, "enter_netns", enter)
    first, second = attachments_of(tmp_path)
    machine = replace(first, node=replace(first.node, link="tap0"))
    session: Any = RecordingSession(tmp_path)
    LinuxBridge().start(session, spec_of(tmp_path, port="veth"), [machine, second])
    made = [
        call for call in links.calls if call[0] in ("enter", "mtu", "move", "pair") and call[1] != "/run/netns/r1-br"
    ]
    assert made == [
        ("enter", netns(0)),
        ("mtu", "tap0", 1500),
        ("move", "tap0", "p0", "/run/netns/r1-br"),
        ("pair", "eth0", netns(1), "p1", "/run/netns/r1-br", 1500),
    ]


def test_the_links_of_a_bridge_end_in_one_go(links: RecordingLinks, tmp_path: Path) -> None:
    switch = LinuxBridge()
    session: Any = RecordingSession(tmp_path)
    switch.start(session, spec_of(tmp_path, port="veth"), attachments_of(tmp_path))
    links.calls.clear()
    switch.stop()
    switch.stop()
    assert links.calls == [("grouped", "/run/netns/r1-br"), ("delete netns", "/run/netns/r1-br")]


PROC_STAT = """cpu  1 2 3 4 5 6 700 8 0 0
cpu0 1 2 3 4 5 6 100 8 0 0
cpu3 1 2 3 4 5 6 250 8 0 0
cpu4 1 2 3 4 5 6 350 8 0 0
intr 12 34"""


def test_the_kernels_work_is_the_soft_interrupts_of_the_endpoints(links: RecordingLinks, tmp_path: Path) -> None:
    session: Any = RecordingSession(tmp_path)
    for driver in (VethLink, LinuxBridge):
        switch = driver()
        assert switch.busy() is None
        session.read = lambda name: PROC_STAT if name == "/proc/stat" else None
        switch.start(session, spec_of(tmp_path, port="veth", endpoint_cpus=(3, 4)), attachments_of(tmp_path))
        tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        assert switch.busy() == Busy(busy_ns=600 * tick_ns)
        session.read = lambda name: None
        assert switch.busy() is None


def test_without_root_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(kernel, "unshare", lambda kind: pytest.fail("a namespace was made"))
    VethLink().probe(RecordingSession(Path("/tmp")), None)  # type: ignore[arg-type]


def test_a_kernel_without_bridges_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(kind: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(kernel, "save_netns", nullcontext)
    monkeypatch.setattr(kernel, "unshare", refuses)
    with pytest.raises(Unsupported, match=r"cannot make links of kind veth .*modprobe veth"):
        LinuxBridge().probe(RecordingSession(Path("/tmp")), None)  # type: ignore[arg-type]


def test_a_netdev_api_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_DRIVER_PLACES", ("usr/lib/nowhere/librte_net_{0}.so*",))
    kernel.probe_netdev_api("udp")
    with pytest.raises(Unsupported, match=r"DPDK's driver net_af_packet is not installed: install .*af-packet"):
        kernel.probe_netdev_api("af_packet")


@pytest.mark.parametrize("api", ["af_xdp", "xdp"])
def test_af_xdp_needs_its_socket(monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    monkeypatch.setattr(kernel, "_AF_XDP", 4095)
    with pytest.raises(Unsupported, match=f"api {api}: this kernel gives no AF_XDP socket"):
        kernel.probe_netdev_api(api)


def test_xdp_needs_a_workload_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_probe_xdp_socket", lambda api: None)
    monkeypatch.setattr(kernel, "workload_version", lambda: WorkloadVersion("1", None, xdp=True))
    kernel.probe_netdev_api("xdp")
    monkeypatch.setattr(kernel, "workload_version", lambda: WorkloadVersion("1", None))
    with pytest.raises(Unsupported, match="api xdp: the workload was built without AF_XDP: apt install libxdp-dev"):
        kernel.probe_netdev_api("xdp")


@pytest.mark.parametrize("name", builtin_switches())
def test_every_driver_reports_what_collection_needs(name: str) -> None:
    driver = builtin_switches()[name]
    assert driver.name == name
    assert driver.family in GROUPS
    assert driver.ports
    assert set(driver.default_apis) <= set(driver.apis) <= set(APIS)
    assert driver.max_frame_bytes <= MAX_FRAME_BYTES
    assert driver.max_pairs is None or driver.max_pairs >= 1
    needs = driver().needs(1, driver.default_cores)
    assert needs.pollers == driver.default_cores
    assert (needs.hugepages_mib > 0) == (needs.pollers > 0 and driver.family == "dpdk")


def test_groups_have_the_switches_of_their_family() -> None:
    switches = builtin_switches()
    expected = {
        "all": tuple(name for name, driver in switches.items() if not driver.by_name_only),
        "kernel": ("veth", "linux-bridge"),
        "dpdk": ("direct", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov"),
    }
    assert {group: tuple(resolve_switches([group], switches, "x")) for group in GROUPS} == expected


def test_every_family_has_its_reference_link() -> None:
    switches = builtin_switches()
    assert {family: switches[name].family for family, name in REFERENCE_LINKS.items()} == {
        family: family for family in get_args(Family)
    }


def test_the_catalogue_imports_no_host_libraries() -> None:
    code = (
        "import sys, pytest_icbench.driver.switch.registry; print([m for m in ('pyroute2', 'lxc') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
