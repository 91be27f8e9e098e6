# SPDX-License-Identifier: BSD-3-Clause
"""A topology takes effect: its names, CPUs and addresses are seen in the containers and on the wire."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_icbench.config.topology import loads
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.process import run
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import VhostUser
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import BuildOptions, Rig
from tests.host.node_tools import clean, require, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")]

#: The bridge takes frames before those who listen to one protocol.
_ETH_P_ALL = 3
CPUS = sorted(os.sched_getaffinity(0))
TEXT = f"""
[[container]]
name = "dpdk_c0"
application = "send"
peer = "dpdk_c1"
cpus = {CPUS[-1]}
ip = "10.0.3.10"
netmask = 24
mac = "02:00:00:00:00:10"
socket = "sock7"

[[container]]
name = "dpdk_c1"
application = "recv"
peer = "dpdk_c0"
cpus = [{CPUS[0]}]
ip = "10.0.3.11"
netmask = 24
mac = "02:00:00:00:00:11"
"""
TOPOLOGY = loads(TEXT, "lab.toml")
BRIEF = Settings(warmup_s=0.0, duration_s=0.2, window_s=0.05, drain_s=0.1)


def rig_of(session: HostSession, case: Case) -> Rig:
    require("lxc")
    places = TOPOLOGY.cpus(1)
    placement = Placement("cooperative", (), (places[0], places[1]), (CPUS[0],), 0, 128)
    return Rig(case, placement, session, "lxc", BuildOptions(endpoint_specs=TOPOLOGY.endpoint_specs(1)))


def init_of(name: str) -> int:
    """The first process of the container with this host name."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and b"icbench-workload\0pause" in _read(entry / "cmdline"):
            shown = run(["nsenter", "--target", entry.name, "--uts", "hostname"], timeout_s=5, check=False)
            if shown.stdout.strip() == name:
                return int(entry.name)
    raise AssertionError(f"no container calls itself {name}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_names_cpus_and_addresses_are_the_containers(session: HostSession) -> None:
    rig = rig_of(session, Case("linux-bridge", Frames(rate=Rate(2000))))
    rig.build()
    try:
        for container in TOPOLOGY.containers:
            init = init_of(container.name)
            allowed = [
                line for line in Path(f"/proc/{init}/status").read_text().splitlines() if "Cpus_allowed_list" in line
            ]
            assert allowed == [f"Cpus_allowed_list:\t{container.cpus[0]}"]
            shown = run(["ip", "address", "show", "eth0"], timeout_s=5, netns=f"/proc/{init}/ns/net").stdout
            assert f"inet {container.address.ip}/24" in shown
            assert container.address.mac in shown
        frames = on_the_wire(session, rig)
    finally:
        rig.close()
    a, b = (container.address for container in TOPOLOGY.containers)
    headers = {(frame[:6].hex(":"), frame[6:12].hex(":"), frame[26:30], frame[30:34]) for frame in frames}
    assert (b.mac, a.mac, socket.inet_aton(a.ip), socket.inet_aton(b.ip)) in headers
    assert {source for _, source, _, _ in headers} <= {a.mac, b.mac}


def on_the_wire(session: HostSession, rig: Rig) -> list[bytes]:
    """Frames of a launch as they come into the switch."""
    frames: list[bytes] = []
    (bridge,) = Path("/run/netns").glob(f"icb{session.id}-r*-br")
    with enter_netns(str(bridge)):
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    listener.bind(("p0", _ETH_P_ALL))
    listener.settimeout(0.2)
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            try:
                frames.append(listener.recv(2048))
            except TimeoutError:
                continue

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        launch = run_launch(rig, rig.case, BRIEF)
    finally:
        over.set()
        thread.join()
        listener.close()
    assert launch.invalid is None
    assert launch.pairs[0].received > 0
    return frames


def test_sockets_and_addresses_of_dpdk_endpoints(session: HostSession) -> None:
    rig = rig_of(session, Case("direct", Frames(rate=Rate(2000))))
    rig.build()
    try:
        for endpoint, container in zip(rig.endpoints, TOPOLOGY.containers, strict=True):
            assert isinstance(endpoint, VhostUser)
            assert asdict(endpoint.address) == asdict(container.address)
            assert Path(endpoint.socket).name == "sock7"
        launch = run_launch(rig, rig.case, BRIEF)
    finally:
        rig.close()
    assert launch.invalid is None
    assert launch.pairs[0].received == launch.pairs[0].sent > 0
