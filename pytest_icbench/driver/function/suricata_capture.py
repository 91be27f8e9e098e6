# SPDX-License-Identifier: BSD-3-Clause
"""How frames get to Suricata and behind it: between two kernel interfaces (AF_PACKET), or two virtio-user ports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pytest_icbench.driver.function.dpdk_function import port_statistics, virtio_user_devices
from pytest_icbench.driver.function.protocol import FunctionSpec
from pytest_icbench.driver.function.suricata_engine import Engine
from pytest_icbench.driver.workload.eal import eal_arguments
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.net import ethtool, links
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Veth

_RING, _BUFFERS = 256, 4095
#: Huge pages for the buffers of both ports and its rings, in MiB.
HUGEPAGES_MIB = 64
_PORTS = ("net_virtio_user0", "net_virtio_user1")


@dataclass(frozen=True, slots=True)
class Carried:
    """The frames that its ports have carried, of both directions where none is named.

    Attributes:
        taken, given: from side a to side b.
        taken_back: from side b.
        blocked: those that it dropped on purpose.
        dropped: those that found no room before it.
    """

    taken: int
    given: int
    taken_back: int
    blocked: int
    dropped: int


class Capture(Protocol):
    """A way for frames.

    Attributes:
        settings: its part of ``suricata.yaml``.
        options: of Suricata's command line.
    """

    settings: Mapping[str, Any]
    options: Sequence[str]

    def started(self, engine: Engine) -> None:
        """Does what is left to do once the engine runs."""

    def carried(self, engine: Engine) -> Carried:
        """Returns what it has carried since the start. Raises ProvisionError if that is not told."""
        raise NotImplementedError


class KernelCapture(Capture):
    """Two kernel interfaces. Raises ProvisionError for other ports."""

    options = ("--af-packet",)

    def __init__(self, session: HostSession, spec: FunctionSpec) -> None:
        inner, outer = spec.inner, spec.outer
        if not isinstance(inner, Veth) or not isinstance(outer, Veth) or spec.node_facts is None:
            raise ProvisionError(f"function {spec.function} needs kernel interfaces")
        # It gives frames out as they came in, with the checksum that a sender's kernel has left to its device.
        ethtool.apply_settings(session, spec.sides, {"checksum": "false"})
        self._netns, self._interfaces = spec.node_facts.netns, (inner.interface, outer.interface)
        self.settings = copying(*self._interfaces)
        self._unseen = 0

    def started(self, engine: Engine) -> None:  # noqa: ARG002 - as ``Capture``
        """Remembers the frames that came before it."""
        self._unseen = self._arrived()

    def _arrived(self) -> int:
        return sum(links.statistics(name, self._netns)["rx_packets"] for name in self._interfaces)

    def carried(self, engine: Engine) -> Carried:
        """Returns what the interfaces carried and what it blocked, once it has counted all frames that arrived."""
        shown = engine.settled(lambda: self._arrived() - self._unseen)
        inner, outer = (links.statistics(name, self._netns) for name in self._interfaces)
        return Carried(
            inner["rx_packets"], outer["tx_packets"], outer["rx_packets"], shown["blocked"], shown["dropped"]
        )


class DpdkCapture(Capture):
    """Two virtio-user ports, each polled by a worker that sleeps when nothing comes.

    A worker adds up its counters when a frame comes at least three seconds after the last time. So what the ports took
    and did not give is what it blocked.

    Args:
        drivers: directory of DPDK's drivers; None for that which DPDK was built for.
    """

    options = ("--dpdk",)

    def __init__(self, spec: FunctionSpec, drivers: Path | None) -> None:
        self._cpu, self._runtime = spec.cpu, spec.directory
        _, inner, _ = spec.with_ports()
        eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=_RING, jumbo=False)[:-1]
        self.settings = polling(eal, virtio_user_devices(spec, _RING), spec.mtu, drivers)

    def started(self, engine: Engine) -> None:
        """Leads all its threads to its CPU: Suricata wants one for each worker, so it was given all to choose from."""
        for thread in Path(f"/proc/{engine.daemon.process.pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), {self._cpu})

    def carried(self, engine: Engine) -> Carried:
        """Returns what the ports counted."""
        engine.daemon.check()
        inner, outer = port_statistics(self._runtime, len(_PORTS))
        blocked = sum(port["ipackets"] - port["opackets"] for port in (inner, outer))
        return Carried(inner["ipackets"], outer["opackets"], outer["ipackets"], blocked, 0)


def copying(inner: str, outer: str) -> dict[str, Any]:
    """Returns the settings with which it copies frames between two kernel interfaces. Pure."""
    common = {
        "threads": 1,
        "copy-mode": "ips",
        "cluster-type": "cluster_flow",
        "defrag": False,
        "use-mmap": True,
        "tpacket-v3": False,
    }
    interfaces = [
        {"interface": interface, "copy-iface": other, "cluster-id": number, **common}
        for number, (interface, other) in enumerate(((inner, outer), (outer, inner)), start=1)
    ]
    return {"af-packet": interfaces}


def polling(eal: Sequence[str], devices: Sequence[str], mtu: int, drivers: Path | None) -> dict[str, Any]:
    """Returns the settings with which it copies frames between two DPDK ports. Pure.

    Args:
        eal: EAL's arguments, without devices.
        devices: the values of ``--vdev``, in the order of the ports.
        mtu: layer 3 MTU of both.
        drivers: the directory of DPDK's drivers; None for that which DPDK was built for.
    """
    arguments: dict[str, Any] = {"vdev": list(devices)}
    words = [word for word in eal if word != "--no-telemetry"]
    for word, following in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith("-"):
            arguments[word.lstrip("-")] = "" if following.startswith("-") else following
    arguments["m"] = str(HUGEPAGES_MIB)
    if drivers is not None:
        arguments["d"] = str(drivers)
    common = {
        "threads": 1,
        "interrupt-mode": True,
        "promisc": False,  # nobody filters before a virtio-user port
        "multicast": False,
        "mtu": mtu,
        "mempool-size": _BUFFERS,
        "mempool-cache-size": "auto",
        "rx-descriptors": _RING,
        "tx-descriptors": _RING,
        "copy-mode": "ips",
    }
    interfaces = [
        {"interface": port, "copy-iface": other, **common} for port, other in zip(_PORTS, reversed(_PORTS), strict=True)
    ]
    affinity = [{"management-cpu-set": {"cpu": []}}, {"worker-cpu-set": {"cpu": ["all"], "mode": "balanced"}}]
    return {
        "dpdk": {"eal-params": arguments, "interfaces": interfaces},
        "threading": {"set-cpu-affinity": True, "cpu-affinity": affinity},
    }
