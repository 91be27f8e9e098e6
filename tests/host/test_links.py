# SPDX-License-Identifier: BSD-3-Clause
"""Kernel links of this machine: frames arrive, nothing else is on them, and they go with the session."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import ethtool, links
from pytest_icbench.host.net.links import End
from pytest_icbench.host.process import run
from pytest_icbench.model.endpoint import Address
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.own_host, pytest.mark.skipif(os.geteuid() != 0, reason="links and namespaces need root")]

A, B = Address.of(1, "a"), Address.of(1, "b")


def udp(netns: str, address: Address) -> socket.socket:
    with enter_netns(netns):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address.ip, 9))
    sock.settimeout(2)
    return sock


def exchange(side_a: str, side_b: str, count: int = 10, size: int = 18) -> None:
    """``count`` datagrams to B, each answered."""
    with udp(side_a, A) as a, udp(side_b, B) as b:
        for number in range(count):
            payload = number.to_bytes(4, "big") * (size // 4 + 1)
            a.sendto(payload[:size], (B.ip, 9))
            received, sender = b.recvfrom(65536)
            assert received == payload[:size]
            assert sender == (A.ip, 9)
            b.sendto(received, sender)
            assert a.recv(65536) == received


@pytest.fixture
def ends(session: HostSession) -> tuple[str, str]:
    """Two namespaces."""
    return links.create_netns(session, "a"), links.create_netns(session, "b")


def shown(netns: str, *what: str) -> str:
    return run(["ip", *what], timeout_s=5, netns=netns).stdout


def test_a_pair_carries_frames_and_counts_them(session: HostSession, ends: tuple[str, str]) -> None:
    links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B))
    exchange(*ends, count=25)
    for netns in ends:
        counted = links.read_statistics("eth0", netns)
        assert (counted["rx_packets"], counted["tx_packets"]) == (25, 25)
        assert counted["rx_dropped"] == counted["tx_dropped"] == 0


def test_the_first_frame_arrives(session: HostSession, ends: tuple[str, str]) -> None:
    """A link that is called up takes frames: the kernel attaches queues in the background, and drops until then."""
    for number in range(40):
        name = f"eth{number}"
        links.create_pair(session, End(name, ends[0], A), End(name, ends[1], B))
        exchange(*ends, count=1)
        with enter_netns(ends[0]):
            links.remove_link(name)


def test_a_link_without_its_other_end_up(session: HostSession, ends: tuple[str, str]) -> None:
    links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B), up=False)
    links.set_up("eth0", ends[0])
    with pytest.raises(ProvisionError, match=r"eth0 has no carrier after 0.1 s \(state (LOWERLAYER)?DOWN\)"):
        links.await_up("eth0", ends[0], timeout_s=0.1)


def test_nothing_else_is_on_it(session: HostSession, ends: tuple[str, str]) -> None:
    """No ARP, router solicitation, duplicate address detection, multicast report: for a second after it is up."""
    links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B))
    time.sleep(1.2)
    for netns in ends:
        counted = links.read_statistics("eth0", netns)
        assert (counted["rx_packets"], counted["tx_packets"]) == (0, 0)
        assert "inet6" not in shown(netns, "address", "show")
        assert "NOARP" in shown(netns, "link", "show", "eth0")


def test_configuration(session: HostSession, ends: tuple[str, str]) -> None:
    links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B), mtu=9000, txqueuelen=5000)
    shown_a = shown(ends[0], "address", "show", "eth0")
    assert A.mac in shown_a
    assert f"inet {A.ip}/16" in shown_a
    assert "mtu 9000" in shown_a
    assert "qlen 5000" in shown_a
    assert f"{B.ip} dev eth0 lladdr {B.mac} PERMANENT" in shown(ends[0], "neighbour", "show")
    assert f"{A.ip} dev eth0 lladdr {A.mac} PERMANENT" in shown(ends[1], "neighbour", "show")
    exchange(*ends, size=8900)


def test_moved_links_are_configured_alike(session: HostSession, ends: tuple[str, str]) -> None:
    names = session.name_link("a0"), session.name_link("b0")
    links.create_pair(session, End(names[0]), End(names[1]), up=False)
    links.move(names[0], End("eth0", ends[0], A))
    links.move(names[1], End("eth0", ends[1], B))
    assert not links.exists(names[0])
    links.await_up("eth0", ends[0])
    links.await_up("eth0", ends[1])
    exchange(*ends, count=5)
    assert links.read_statistics("eth0", ends[0])["tx_packets"] == 5
    assert "inet6" not in shown(ends[0], "address", "show", "eth0")


def test_a_bridge_forwards_between_two_pairs(session: HostSession, ends: tuple[str, str]) -> None:
    bridge = session.name_link("br")
    links.create_bridge(session, bridge)
    for netns, address, suffix in zip(ends, (A, B), ("p0", "p1"), strict=True):
        port = session.name_link(suffix)
        links.create_pair(session, End("eth0", netns, address), End(port))
        links.enslave(port, bridge)
    links.set_up(bridge)
    exchange(*ends, count=12)
    for suffix in ("p0", "p1"):
        counted = links.read_statistics(session.name_link(suffix))
        assert (counted["rx_packets"], counted["tx_packets"]) == (12, 12)


def test_offloads(session: HostSession, ends: tuple[str, str]) -> None:
    links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B))

    def features() -> str:
        return run(["ethtool", "-k", "eth0"], timeout_s=5, netns=ends[0]).stdout

    with enter_netns(ends[0]):
        ethtool.set_feature("eth0", "rx-gro", True)
        assert "generic-receive-offload: on" in features()
        ethtool.set_feature("eth0", "rx-gro", False)
        ethtool.set_feature("eth0", "tx-checksum-ip-generic", False)
        text = features()
        assert "generic-receive-offload: off" in text
        assert "tx-checksum-ip-generic: off" in text
        for name in ("no-such-thing", "rx-vlan-filter"):
            with pytest.raises(ProvisionError, match=f"eth0 cannot switch {name} off"):
                ethtool.set_feature("eth0", name, False)
        with pytest.raises(ProvisionError, match="nonic9 cannot switch rx-lro on"):
            ethtool.set_feature("nonic9", ethtool.LRO, True)
    exchange(*ends, count=3)


def test_queues(ends: tuple[str, str]) -> None:
    words = "link add q0 numtxqueues 4 numrxqueues 4 type veth peer name q1 numtxqueues 4 numrxqueues 4"
    run(["ip", *words.split()], timeout_s=5, netns=ends[0])
    with enter_netns(ends[0]):
        assert ethtool.read_channels("lo") is None
        ethtool.set_channels("q0", [2, 3, 0, 0])
        assert ethtool.read_channels("q0") == [2, 3, 0, 0]
        ethtool.set_channels("q0", ethtool.limit_to_single([2, 3, 0, 0]))
        assert ethtool.read_channels("q0") == [1, 1, 0, 0]
        with pytest.raises(ProvisionError, match=r"^q0 refuses \[9, 1, 0, 0\] queues"):
            ethtool.set_channels("q0", [9, 1, 0, 0])
        assert ethtool.read_channels("q0") == [1, 1, 0, 0]
        assert ethtool.read_lro("q0") is None
        assert str(ethtool.driver_version("q0")).startswith("veth ")


def test_settings_of_a_link_that_is_there(session: HostSession, ends: tuple[str, str]) -> None:
    links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B), up=False)
    assert "state DOWN" in shown(ends[0], "link", "show", "eth0")
    links.set_mtu("eth0", 2000, ends[0])
    links.set_up("eth0", ends[0], arp=True)
    text = shown(ends[0], "link", "show", "eth0")
    assert "mtu 2000" in text


def test_removed_links_and_namespaces_leave_nothing_to_undo(session: HostSession) -> None:
    pending = session.journal.pending()
    path = links.create_netns(session, "a")
    name = session.name_link("p0")
    links.create_pair(session, End("eth0", path, A), End(name))
    for _ in range(2):
        links.remove_link(name)
        session.forget("link", name)
        links.delete_netns(session, path)
    assert session.journal.pending() == pending
    assert not Path(path).exists()
    assert not links.exists(name)


def test_links_that_were_made_for_it_end_in_one_go(session: HostSession, ends: tuple[str, str]) -> None:
    a, b = ends
    links.remove_grouped(b)
    links.create_bridge(session, "br0", b, grouped=True)
    for name in ("one", "two"):
        links.create_pair(session, End(name, a, A), End(name, b, grouped=True))
        with enter_netns(b):
            links.enslave(name, "br0")
    links.create_pair(session, End("kept", a, A), End("kept", b, B))
    links.remove_grouped(b)
    for netns in ends:
        assert sorted(links.read_states(netns)) == ["kept", "lo"]


def test_a_taken_name_is_one_sentence(session: HostSession) -> None:
    names = session.name_link("a"), session.name_link("b")
    links.create_pair(session, End(names[0]), End(names[1]))
    pending = session.journal.pending()
    with pytest.raises(ProvisionError) as caught:
        links.create_pair(session, End(names[0]), End(session.name_link("c")))
    assert str(caught.value).startswith(f"the kernel refused to create the links {names[0]} and")
    assert "File exists" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert session.journal.undo_all() == []
    assert pending
    assert not links.exists(names[0])


def test_missing_links_and_namespaces_are_one_sentence(session: HostSession) -> None:
    with pytest.raises(ProvisionError, match="there is no link nolink: it was removed, or its namespace ended"):
        links.read_statistics("nolink")
    with pytest.raises(ProvisionError, match="network namespace /run/netns/none cannot be entered"):
        links.set_up("eth0", "/run/netns/none")


def test_the_thread_is_back_in_its_namespace_even_after_an_error(ends: tuple[str, str]) -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    with pytest.raises(ProvisionError, match="nolink"), enter_netns(ends[0]):
        links.read_statistics("nolink")
    with enter_netns(ends[0]):
        assert Path("/proc/thread-self/ns/net").readlink() != before
    assert Path("/proc/thread-self/ns/net").readlink() == before


def test_everything_goes_with_the_session(clean: None) -> None:
    before = snapshot.take()
    with HostSession(UNDO_KINDS) as session:
        path = links.create_netns(session, "a")
        links.create_pair(session, End("eth0", path, A), End(session.name_link("p0")))
        links.create_bridge(session, session.name_link("br"))
        said = snapshot.difference(before, snapshot.take())
        for expected in (f"link {session.name_link('p0')} is new", f"link {session.name_link('br')} is new"):
            assert any(line.startswith(expected) for line in said)
        assert any(line.startswith(f"mount {path} is new") for line in said)
    assert snapshot.left_since(before) == []


def test_names_that_this_namespace_has_too_can_be_given(session: HostSession, ends: tuple[str, str]) -> None:
    """As on every host whose own interface is eth0: older kernels look for the name where the request comes from."""
    here = links.create_netns(session, "here")
    run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other"], timeout_s=5, netns=here)
    with enter_netns(here):
        links.create_pair(session, End("eth0", ends[0], A), End("eth0", ends[1], B))
    exchange(*ends)


def test_a_bridge_in_a_namespace_is_no_entry_of_the_host(session: HostSession) -> None:
    """Recovery would delete the host's own bridge of that name."""
    netns = links.create_netns(session, "br")
    links.create_bridge(session, "br0", netns)
    assert links.exists("br0", netns)
    assert "link" not in [entry.kind for entry in session.journal.pending()]
