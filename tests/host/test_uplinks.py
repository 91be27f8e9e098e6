# SPDX-License-Identifier: BSD-3-Clause
"""Switches with a NIC as their uplink, over a veth pair as the cable: frames pass, and the NIC is as it was."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import RUN_DIR, HostSession, SessionOptions
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.net import links, nic
from pytest_icbench.host.process import run
from pytest_icbench.host.recover import recover
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.uplink import Via
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.cable import ENDS, Halves, cable
from tests.host.node_tools import require, tidy_snapshot

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="links and namespaces need root")]

NIC = ENDS[0]
BRIEF = Settings(max_duration_s=1.0, warmup_s=0.1, duration_s=0.3, window_s=0.1, drain_s=0.3, repeats=1)


def state(name: str = NIC) -> str:
    """All that ip(8) tells of a NIC, without counters, numbers and what depends on the other end."""
    text = ""
    for words in (
        ["-d", "address", "show", "dev", name],
        ["route", "show", "dev", name],
        ["-6", "route", "show", "dev", name],
    ):
        text += run(["ip", *words], timeout_s=5).stdout
    for setting in ("disable_ipv6", "accept_ra"):
        text += Path(f"/proc/sys/net/ipv6/conf/{name}/{setting}").read_text()
    # The link-local address comes when duplicate address detection is over; it is the kernel's own.
    text = re.sub(r"\n    inet6 fe80.*\n.*", "", text)
    text = re.sub(r"fe80::/64.*\n|multicast ff00::/8.*\n", "", text)
    text = re.sub(r"^\d+: ", "", text)
    return re.sub(r"(tentative|linkdown|LOWER_UP|state \w+|qdisc \w+|dad_\w+|<.*>) ?", "", text)


@pytest.fixture
def joined() -> Iterator[None]:
    """The cable, one end with everything that a host's NIC may have; the same before and after."""
    before = tidy_snapshot()
    with cable():
        for words in (
            f"link set {NIC} mtu 1400 txqueuelen 77 promisc on allmulticast on",
            f"address add 203.0.113.5/24 dev {NIC}",
            f"address add 203.0.113.6/24 dev {NIC} label {NIC}:x",
            f"address add 2001:db8::5/64 dev {NIC} nodad",
            f"route add 192.0.2.0/24 via 203.0.113.1 dev {NIC} metric 7",
        ):
            run(["ip", *words.split()], timeout_s=5)
        links.await_up(NIC)
        was, flags = state(), flags_of()
        yield
        deadline = time.monotonic() + 5  # the kernel finishes routes and addresses in the background
        while state() != was and time.monotonic() < deadline:
            time.sleep(0.05)
        assert state().splitlines() == was.splitlines()
        assert flags_of() == flags
    assert snapshot.left_since(before) == []


def flags_of() -> int:
    """IFF_UP, IFF_NOARP, IFF_PROMISC, IFF_ALLMULTI as they were set."""
    return int(Path(f"/sys/class/net/{NIC}/flags").read_text(), 16) & 0x381


def test_a_nic_goes_and_comes_back_as_it_was(joined: None) -> None:
    with HostSession(UNDO_KINDS) as session:
        netns = links.create_netns(session, "sw")
        changes = Changes(session)
        nic.take(changes, NIC, nic.Stay(netns, "uplink0", 1500))
        assert not links.exists(NIC)
        inside = run(["ip", "address", "show", "uplink0"], timeout_s=5, netns=netns).stdout
        assert "mtu 1500" in inside
        assert "NOARP" in inside
        assert "inet" not in inside
        nic.await_carrier("uplink0", netns, nic=NIC)
        changes.undo("the uplink")
        changes.undo("the uplink")
        assert links.exists(NIC)


def test_a_session_that_ends_with_an_error_gives_it_back(joined: None) -> None:
    def fail() -> None:
        with HostSession(UNDO_KINDS) as session:
            nic.take(Changes(session), NIC, nic.Stay(links.create_netns(session, "sw"), "uplink0", 1500))
            assert not links.exists(NIC)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


KILLED = f"""
import os, signal
from pytest_icbench.host.net import links, nic
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
session = HostSession(UNDO_KINDS)
netns = links.create_netns(session, "sw")
nic.take(Changes(session), {NIC!r}, nic.Stay(netns, "uplink0", 9000, promiscuous=True))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_session_gives_it_back_when_it_is_recovered(joined: None) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED], timeout=60).returncode == -signal.SIGKILL
    assert not links.exists(NIC)
    assert recover(RUN_DIR, UNDO_KINDS).failures == []
    assert links.exists(NIC)


ASKING = f"""
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.net import nic
try:
    nic.check({NIC!r})
except Unsupported as error:
    print(error)
"""


def test_nics_that_the_host_needs_are_refused(joined: None, monkeypatch: pytest.MonkeyPatch) -> None:
    nic.check(NIC)
    with pytest.raises(Unsupported, match=rf"there is no network interface nonic9: this host has .*{NIC}"):
        nic.check("nonic9")
    with pytest.raises(Unsupported, match="lo is the loopback: name a NIC that is for measurements alone"):
        nic.check("lo")
    monkeypatch.setenv("SSH_CONNECTION", "203.0.113.9 40000 203.0.113.5 22")
    with pytest.raises(Unsupported, match=r"icbupa has the address of this very ssh connection: name a NIC"):
        nic.check(NIC)
    monkeypatch.delenv("SSH_CONNECTION")
    with pytest.raises(Unsupported, match=r"icbupa has the address of this very ssh connection"):
        nic.check(NIC, client="2001:db8::5")
    nic.check(NIC, client="203.0.113.1")
    shell = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ASKING!r}], env={{}}, check=True)"
    said = subprocess.run(
        [sys.executable, "-c", shell],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "SSH_CONNECTION": "203.0.113.9 40000 203.0.113.5 22"},
    )
    assert (
        "icbupa has the address of this very ssh connection" in said.stdout
    )  # though the environment went, as by sudo
    run(["ip", "link", "add", "link", NIC, "name", "icbupv", "type", "macvlan"], timeout_s=5)
    try:
        with pytest.raises(Unsupported, match=r"icbupa carries icbupv: name a NIC"):
            nic.check(NIC)
    finally:
        run(["ip", "link", "delete", "icbupv"], timeout_s=5)
    run(["ip", "link", "add", "icbupbr", "type", "bridge"], timeout_s=5)
    try:
        run(["ip", "link", "set", ENDS[1], "master", "icbupbr"], timeout_s=5)
        with pytest.raises(Unsupported, match="icbupb is a port of icbupbr"):
            nic.check(ENDS[1])
    finally:
        run(["ip", "link", "delete", "icbupbr"], timeout_s=5)


@pytest.mark.parametrize(
    "route",
    [
        "route add default via 203.0.113.1",
        "route add default nexthop via 203.0.113.1 dev d0 nexthop via 203.0.113.2 dev d0",
        "-6 route add default via fe80::1 dev d0 proto ra",
    ],
    ids=["one", "several ways", "by router advertisement"],
)
def test_the_nic_of_a_default_route_is_refused(route: str) -> None:
    from pytest_icbench.host.namespaces import enter_netns

    with HostSession(UNDO_KINDS) as session:
        netns = links.create_netns(session, "other")
        run(["ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1"], timeout_s=5, netns=netns)
        ipv6 = "/proc/sys/net/ipv6/conf/d0/disable_ipv6"
        run(["sh", "-c", f"[ ! -e {ipv6} ] || echo 0 >{ipv6}"], timeout_s=5, netns=netns)
        for words in (
            *("link set d1 up", "link set d0 up", "address add 203.0.113.77/24 dev d0"),
            "address add fe80::2/64 dev d0 nodad",
        ):
            run(["ip", *words.split()], timeout_s=5, netns=netns)
        with enter_netns(netns):
            nic.check("d0")
        run(["ip", *route.split()], timeout_s=5, netns=netns)
        with enter_netns(netns), pytest.raises(Unsupported, match="d0 has the host's default route"):
            nic.check("d0")


def test_a_cable_without_its_other_end(joined: None) -> None:
    run(["ip", "link", "set", ENDS[1], "down"], timeout_s=5)
    with HostSession(UNDO_KINDS) as session:
        netns = links.create_netns(session, "sw")
        nic.take(Changes(session), NIC, nic.Stay(netns, "uplink0", 1500))
        with pytest.raises(ProvisionError, match=r"the uplink icbupa has no carrier after 0.1 s: connect its cable"):
            nic.await_carrier("uplink0", netns, nic=NIC, timeout_s=0.1)
    run(["ip", "link", "set", ENDS[1], "up"], timeout_s=5)


#: Over two hosts the others are the scenarios'.
CASES: list[tuple[Case, Via]] = [
    (Case("linux-bridge", pairs=2, api="raw-mmsg"), "kernel"),
    (Case("veth"), "kernel"),
    (Case("direct"), "af_xdp"),
    (Case("ovs"), "af_xdp"),
    (Case("vpp", mode="xconnect"), "kernel"),
    (Case("vpp"), "af_xdp"),
]


@pytest.mark.parametrize(("case", "via"), CASES, ids=[f"{case.id}-{via}" for case, via in CASES])
def test_frames_pass_and_the_nic_comes_back(joined: None, case: Case, via: Via) -> None:
    require("lxc")
    switch = builtin_switches()[case.switch]
    with HostSession(UNDO_KINDS, SessionOptions(binaries=binaries())) as session:
        try:
            switch().probe(session, session.binaries.get(case.switch))
        except Unsupported as reason:
            pytest.skip(str(reason))
        workers = switch().needs(case.pairs, case.resolved_cores(switch)).pollers
        placement = plan(Topology.read(session.root), workers=workers, endpoints=2 * case.pairs, policy="cooperative")
        node = "netns" if via == "af_xdp" else "lxc"
        rig = Halves(session, case.sending(rate=Rate(2000)), placement, via, node)
        try:
            try:
                rig.build()
            except ProvisionError as error:
                if "this vpp has no plugin" in str(error):
                    pytest.skip(str(error))
                raise
            assert not links.exists(NIC)
            measured = measure(Side(rig, rig.case), BRIEF)
        finally:
            rig.close()
        assert links.exists(NIC)
    assert measured.verdict != "INVALID", measured.reason
    assert measured.frames.received > 0
    assert measured.frames.sent == measured.frames.received + measured.frames.lost
    assert [pair.received > 0 for pair in measured.frames.per_pair] == [True] * case.pairs


def binaries() -> dict[str, str]:
    found = shutil.which("vpp")
    return {"vpp": found} if found else {}
