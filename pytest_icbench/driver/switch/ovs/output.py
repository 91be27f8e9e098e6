# SPDX-License-Identifier: BSD-3-Clause
"""What Open vSwitch's tools print. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_icbench.driver.switch.protocol import Busy

_FLOW = re.compile(r"\bn_packets=(\d+),.*\bin_port=(\d+)")
_DESCRIBED = re.compile(r"^\s*(\w+)\(.*\): addr:")
_PORT = re.compile(r"^\s*port\s+(\S+?):")
_TX_DROPS = re.compile(r"\bovs_tx_\w*drops=(\d+)")
_CYCLES = re.compile(r"^\s*(idle|processing) cycles\s*:\s*(\d+)")
_VERSION = re.compile(r"\(Open vSwitch\) (\S+)")
_DPDK = re.compile(r"^DPDK (\S+)", re.MULTILINE)


def parse_versions(text: str) -> tuple[str | None, str | None]:
    """Versions of Open vSwitch and of its DPDK from ``ovs-vswitchd --version``; None where it names none."""
    ovs, dpdk = _VERSION.search(text), _DPDK.search(text)
    return (ovs.group(1) if ovs else None), (dpdk.group(1) if dpdk else None)


def parse_flows(text: str) -> dict[int, int]:
    """Packets by ingress port from ``ovs-ofctl dump-flows``, of flows that match on it."""
    return {int(port): int(packets) for packets, port in _FLOW.findall(text)}


def parse_drops(text: str) -> dict[int, int]:
    """Packets by port that could not be sent, from ``ovs-ofctl dump-ports`` of OpenFlow 1.4."""
    drops: dict[int, int] = {}
    port: int | None = None
    for line in text.splitlines():
        if match := _PORT.match(line):
            port = int(match.group(1)) if match.group(1).isdigit() else None
        elif port is not None:
            found = [int(number) for number in _TX_DROPS.findall(line)]
            if found:
                drops[port] = drops.get(port, 0) + sum(found)
    return drops


def parse_down(text: str) -> set[int]:
    """Ports without a link, from ``ovs-ofctl dump-ports-desc``."""
    down: set[int] = set()
    port: int | None = None
    for line in text.splitlines():
        if match := _DESCRIBED.match(line):
            port = int(match.group(1)) if match.group(1).isdigit() else None
        if port is not None and "LINK_DOWN" in line:
            down.add(port)
    return down


def parse_cycles(text: str) -> Busy:
    """Cycles of all PMD threads from ``dpif-netdev/pmd-stats-show``."""
    cycles = {"idle": 0, "processing": 0}
    inside = False
    for line in text.splitlines():
        if not line.startswith(" "):
            inside = line.startswith("pmd thread")
        elif inside and (match := _CYCLES.match(line)):
            cycles[match.group(1)] += int(match.group(2))
    return Busy(busy_cycles=cycles["processing"], idle_cycles=cycles["idle"])


def parse_table(text: str) -> list[dict[str, Any]]:
    """Rows of ``ovs-vsctl --format=json``: sets become lists, maps dicts, UUIDs strings. Raises ValueError."""
    table = json.loads(text)
    names = table["headings"]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in table["data"]]


def _plain(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2:
        kind, content = value
        if kind == "set":
            return [_plain(each) for each in content]
        if kind == "map":
            return {key: _plain(each) for key, each in content}
        if kind in ("uuid", "named-uuid"):
            return content
    return value


def polling_cores(text: str) -> dict[str, int]:
    """From ``ovs-appctl dpif-netdev/pmd-rxq-show``: the core on which each port's first queue is polled."""
    found: dict[str, int] = {}
    core = -1
    for line in text.splitlines():
        if thread := re.search(r"^pmd thread .*core_id (\d+)", line):
            core = int(thread[1])
        elif queue := re.search(r"port: (\S+) +queue-id: +0 ", line):
            found[queue[1]] = core
    return found


def any_queue_disabled(text: str) -> bool:
    """From ``ovs-appctl dpif-netdev/pmd-rxq-show``: whether a port's first queue is not yet enabled by its endpoint."""
    return re.search(r"queue-id: +0 \(disabled\)", text) is not None
