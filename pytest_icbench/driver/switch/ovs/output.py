# SPDX-License-Identifier: BSD-3-Clause
"""The output of Open vSwitch's tools. Pure."""

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
_RECEIVED = re.compile(r"^\s*packets received\s*:\s*(\d+)")
_THREAD = re.compile(r"^pmd thread .*core_id (\d+)")
_QUEUE = re.compile(r"^ *port: (\S+) +queue-id: +(\d+) +\((?:enabled|(disabled))\)", re.MULTILINE)
_VERSION = re.compile(r"\(Open vSwitch\) (\S+)")
_DPDK = re.compile(r"^DPDK (\S+)", re.MULTILINE)


def parse_versions(text: str) -> tuple[str | None, str | None]:
    """Returns the versions of Open vSwitch and its DPDK from ``ovs-vswitchd --version``; None for a missing one."""
    ovs, dpdk = _VERSION.search(text), _DPDK.search(text)
    return (ovs.group(1) if ovs else None), (dpdk.group(1) if dpdk else None)


def parse_flows(text: str) -> dict[int, int]:
    """Returns packets by ingress port, from ``ovs-ofctl dump-flows``, of the flows that match on it."""
    return {int(port): int(packets) for packets, port in _FLOW.findall(text)}


def parse_drops(text: str) -> dict[int, int]:
    """Returns unsent packets by port, from ``ovs-ofctl dump-ports`` of OpenFlow 1.4."""
    drops: dict[int, int] = {}
    port: int | None = None
    for line in text.splitlines():
        if match := _PORT.match(line):
            port = int(match.group(1)) if match.group(1).isdigit() else None
        elif port is not None:
            counts = [int(number) for number in _TX_DROPS.findall(line)]
            if counts:
                drops[port] = drops.get(port, 0) + sum(counts)
    return drops


def parse_down(text: str) -> set[int]:
    """Returns the ports without a link, from ``ovs-ofctl dump-ports-desc``."""
    down: set[int] = set()
    port: int | None = None
    for line in text.splitlines():
        if match := _DESCRIBED.match(line):
            port = int(match.group(1)) if match.group(1).isdigit() else None
        if port is not None and "LINK_DOWN" in line:
            down.add(port)
    return down


def parse_cycles(text: str) -> Busy:
    """Returns the cycles of all PMD threads, and the frames of each, from ``dpif-netdev/pmd-stats-show``."""
    cycles = {"idle": 0, "processing": 0}
    frames: dict[str, int] = {}
    thread: re.Match[str] | None = None
    for line in text.splitlines():
        if not line.startswith(" "):
            thread = _THREAD.match(line)
        elif thread and (match := _CYCLES.match(line)):
            cycles[match.group(1)] += int(match.group(2))
        elif thread and (match := _RECEIVED.match(line)):
            frames[thread[1]] = int(match[1])
    return Busy(busy_cycles=cycles["processing"], idle_cycles=cycles["idle"], frames=frames)


def parse_table(text: str) -> list[dict[str, Any]]:
    """Returns rows of ``ovs-vsctl --format=json``: sets as lists, maps as dicts, UUIDs as text. Raises ValueError."""
    table = json.loads(text)
    names = table["headings"]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in table["data"]]


def _plain(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2:
        kind, content = value
        if kind == "set":
            return [_plain(member) for member in content]
        if kind == "map":
            return {key: _plain(entry) for key, entry in content}
        if kind in ("uuid", "named-uuid"):
            return content
    return value


def polling_cores(text: str) -> dict[str, int]:
    """Returns the core that polls each port's first queue, from ``ovs-appctl dpif-netdev/pmd-rxq-show``."""
    cores: dict[str, int] = {}
    core = -1
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            core = int(thread[1])
        elif queue := re.search(r"port: (\S+) +queue-id: +0 ", line):
            cores[queue[1]] = core
    return cores


def any_queue_disabled(text: str, queues: int = 1) -> bool:
    """Whether one of so many queues a port is not yet enabled by its endpoint, or missing.

    From ``ovs-appctl dpif-netdev/pmd-rxq-show``.
    """
    enabled_by_port: dict[str, set[int]] = {}
    for port, queue, disabled in _QUEUE.findall(text):
        enabled_by_port.setdefault(port, set()).update(() if disabled else (int(queue),))
    return any(not enabled >= set(range(queues)) for enabled in enabled_by_port.values())
