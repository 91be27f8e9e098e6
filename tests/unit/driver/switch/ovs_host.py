# SPDX-License-Identifier: BSD-3-Clause
"""An Open vSwitch for tests of its driver: its tools answer as the real ones do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.ovs.userspace_datapath import OpenVSwitch
from tests.unit.recording_host import RecordingSession, attachments_of, program, spec_of

VERSION = "ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.11\n"


TOOLS = ("ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl")


FLOWS = """OFPST_FLOW reply (OF1.4) (xid=0x2):
 cookie=0x0, duration=3.419s, table=0, n_packets=3190915, n_bytes=191454900, priority=1,in_port=1 actions=NORMAL
 cookie=0x0, duration=3.407s, table=0, n_packets=1, n_bytes=60, priority=1,in_port=2 actions=NORMAL
 cookie=0x0, duration=3.446s, table=0, n_packets=5, n_bytes=0, priority=0 actions=NORMAL
"""


PORTS = """OFPST_PORT reply (OF1.4) (xid=0x2): 3 ports
  port LOCAL: rx pkts=0, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=0, bytes=0, drop=1, errs=0, coll=0
           duration=3.475s
  port  1: rx pkts=?, bytes=?, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=?, bytes=?, drop=?, errs=?, coll=?
           duration=3.466s
           CUSTOM Statistics
                      ovs_tx_retries=9, ovs_tx_failure_drops=0, ovs_tx_mtu_exceeded_drops=0,
                      ovs_tx_qos_drops=0, ovs_rx_qos_drops=4, ovs_tx_invalid_hwol_drops=0,
  port  2: rx pkts=?, bytes=?, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=?, bytes=?, drop=?, errs=?, coll=?
           duration=3.466s
           CUSTOM Statistics
                      ovs_tx_retries=0, ovs_tx_failure_drops=1185, ovs_tx_mtu_exceeded_drops=10,
                      ovs_tx_qos_drops=0, ovs_rx_qos_drops=0, ovs_tx_invalid_hwol_drops=0,
"""


CYCLES = """pmd thread numa_id 0 core_id 0:
  packets received: 7
  idle cycles: 19661965526 (75.00%)
  processing cycles: 100 (25.00%)
pmd thread numa_id 0 core_id 1:
  packets received: 9
  idle cycles: 1 (1.00%)
  processing cycles: 2 (99.00%)
main thread:
  packets received: 0
  idle cycles: 1000 (1.00%)
  processing cycles: 1000 (99.00%)
"""


DESCRIBED = """\
OFPST_PORT_DESC reply (OF1.4) (xid=0x2):
 1(p0): addr:00:00:00:00:00:00
     config:     0
     state:      LIVE
     speed: 0 Mbps now, 0 Mbps max
 2(p1): addr:00:00:00:00:00:00
     config:     0
     state:      {state}
     speed: 0 Mbps now, 0 Mbps max
 LOCAL(br0): addr:62:16:0e:54:4b:4a
     config:     PORT_DOWN
     state:      LINK_DOWN
"""


class Host:
    """Answers as Open vSwitch's tools do."""

    def __init__(self) -> None:
        self.version = VERSION
        self.types = ["dpdk", "dpdkvhostuser", "dpdkvhostuserclient", "internal"]
        self.states: list[str] = []
        self.interfaces = [["br0", 65534, ["set", []]], ["p0", 1, ["set", []]], ["p1", 2, ["set", []]]]

    def __call__(self, words: list[str], text: str | None) -> str:
        name, rest = Path(words[0]).name, words[1:]
        if rest == ["--version"]:
            return self.version
        if "list" in rest and rest[-1] == "Open_vSwitch":
            row = [True, ["set", self.types]]
            return json.dumps({"headings": ["dpdk_initialized", "iface_types"], "data": [row]})
        if "list" in rest and rest[-1] == "Interface":
            return json.dumps({"headings": ["name", "ofport", "error"], "data": self.interfaces})
        answers = {"dump-flows": FLOWS, "dump-ports": PORTS}
        answers["dump-ports-desc"] = DESCRIBED.format(state=self.states.pop(0) if self.states else "LIVE")
        assert name in TOOLS
        return next((answers[word] for word in rest if word in answers), "")


def rxqs(**cores: int) -> str:
    """As OVS 3.1 shows first queues."""
    return "".join(
        f"pmd thread numa_id 0 core_id {core}:\n  isolated : true\n"
        f"  port: {port}                queue-id:  0 (enabled)   pmd usage: NOT AVAIL\n  overhead: NOT AVAIL\n"
        for port, core in cores.items()
    )


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def session(host: Host, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("o")
    found = RecordingSession(directory, host)
    for place in ("bin", "sbin", "share/openvswitch"):
        (directory / place).mkdir(parents=True)
    for tool in TOOLS:
        program(directory / "bin", tool)
    (directory / "share" / "openvswitch" / "vswitch.ovsschema").write_text("{}")
    found.binaries["ovs"] = program(directory / "sbin", "ovs-vswitchd")
    netns: list[str] = []

    def create(session: Any, suffix: str) -> str:
        netns.append(suffix)
        return "/netns/x"

    monkeypatch.setattr("pytest_icbench.driver.switch.ovs.daemons.links.create_netns", create)
    monkeypatch.setattr(
        "pytest_icbench.driver.switch.ovs.daemons.links.delete_netns", lambda session, path: netns.remove("r1-ovs")
    )
    found.netns = netns  # type: ignore[attr-defined]
    asked: list[tuple[Path, str]] = []
    answers = {"dpif-netdev/pmd-stats-show": CYCLES, "dpif-netdev/pmd-rxq-show": rxqs(p0=2, p1=2)}

    def ask(path: Path, command: str, timeout_s: float) -> str:
        asked.append((path, command))
        return answers.get(command, "")

    @contextmanager
    def asks(path: Path, command: str, timeout_s: float) -> Iterator[Callable[[], str]]:
        yield partial(str, ask(path, command, timeout_s))

    monkeypatch.setattr("pytest_icbench.driver.switch.ovs.daemons.send_request", ask)
    monkeypatch.setattr("pytest_icbench.driver.switch.ovs.daemons.open_request", asks)
    found.asked, found.answers = asked, answers  # type: ignore[attr-defined]
    yield found
    found.spawner.close()


def start(session: Any, pairs: int = 1, **changes: Any) -> tuple[OpenVSwitch, list[Any]]:
    switch = OpenVSwitch()
    return switch, switch.start(session, spec_of(session.dir, **changes), attachments_of(session.dir, pairs))


def commands(session: Any, tool: str) -> list[list[str]]:
    return [words[1:] for words in session.spawner.ran if Path(words[0]).name == tool]
