# SPDX-License-Identifier: BSD-3-Clause
"""What a switch driver is. One file a driver; another package can bring one (hook ``icbench_switches``).

A driver is made anew for each rig: ``Driver()``; class attributes are facts that are read at collection, on any host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Address, Endpoint
from pytest_icbench.model.path import Side
from pytest_icbench.model.switch_facts import Batches as Batches
from pytest_icbench.model.switch_facts import Busy as Busy
from pytest_icbench.model.switch_facts import PortCounters as PortCounters
from pytest_icbench.model.switch_facts import SwitchFacts as SwitchFacts
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.model.uplink import Uplink


@dataclass(frozen=True, slots=True)
class Attachment:
    """One node that wants a port.

    Attributes:
        index: its place among all endpoints, as ``model.path`` numbers them.
        pair: 1 to pairs.
        side: ``a`` sends or asks, ``b`` receives or answers.
        socket_dir: directory bound into the node at the same path, below the switch's ``work_dir``; the port's socket
            belongs in it. All nodes of a rig share it. Short (sun_path has 107 bytes).
        peer: who is at the other end; None: the address that a pair's other side has by default.
        socket: file name of the port's socket, None for the switch's own choice.
    """

    index: int
    pair: int
    side: Side
    address: Address
    node: NodeFacts
    socket_dir: Path
    peer: Address | None = None
    socket: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchSpec:
    """What the rig asks of a switch.

    Attributes:
        port: port kind, resolved (never None).
        worker_cpus: one CPU for each worker of the switch.
        service_cpus: where everything else of the switch (control threads) may run.
        mtu: layer 3 MTU of every port.
        mode: which of its ways to forward, None for the natural one.
        config: the user's own configuration, checked against ``config_keys``.
        work_dir: private directory for sockets, databases, logs; removed with the rig.
        binary: the user's binary instead of the one on PATH.
        endpoint_cpus: CPU of each attachment's workload, by index (for NUMA-aware memory).
        functions: virtual function of each attachment by PCI address or interface, with the device node that it is
            expected to have; None: chosen by the switch.
        uplink: the NIC by which it reaches the other host, where the attachments' peers are; None: all are here.
    """

    name: str
    port: str
    worker_cpus: Sequence[int]
    service_cpus: Sequence[int]
    mtu: int
    work_dir: Path
    binary: Path | None = None
    endpoint_cpus: Sequence[int] = ()
    mode: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    functions: Sequence[tuple[str | None, str | None]] = ()
    uplink: Uplink | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources of a started switch: MiB of huge pages by itself, and worker threads that poll."""

    hugepages_mib: int = 0
    pollers: int = 0


class Switch(SwitchTraits, Protocol):
    """A driver. What it is, its class attributes say: see ``SwitchTraits``."""

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Changes nothing. Raises Unsupported with the reason and the remedy."""

    def probe_api(self, session: HostSession, api: str) -> None:
        """Changes nothing. Raises Unsupported if this host lacks what one of ``apis`` takes, as a DPDK driver."""

    def probe_pairs(self, session: HostSession, pairs: int) -> None:
        """Changes nothing. Raises Unsupported if this host cannot attach so many pairs; most drivers have no limit."""
        return

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        """Resources for so many pairs and worker cores, ``jumbo`` for frames above 1518 bytes.

        Raises Unsupported if so many cores cannot be used.
        """

    def devices(self, session: HostSession, spec: SwitchSpec, addresses: Sequence[Address]) -> Sequence[Sequence[Path]]:
        """Before the nodes are started: device nodes that each attachment's node gets, by index; nothing: none do.

        A driver that has something to make for that does it here. Raises ProvisionError; ``stop`` follows.
        """
        return ()

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts the switch with all its ports connected; one endpoint for each attachment, in order.

        Raises ProvisionError with the log's tail.
        """

    def facts(self) -> SwitchFacts:
        """What it was started with."""

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if the switch is no longer alive."""

    def set_ageing(self, seconds: float) -> None:
        """Forgets an address that it has not seen for so many seconds. Raises ProvisionError."""
        raise ProvisionError(f"{self.name} keeps the addresses that it has learned")

    def counters(self) -> list[PortCounters] | None: ...

    def busy(self) -> Busy | None: ...

    def batches(self) -> Batches | None:
        """Frames by call, where the switch tells."""
        return None

    def connected(self) -> None:
        """All endpoints of a launch are connected, and no traffic has begun: the time to place queues on workers.

        Raises ProvisionError.
        """
        return

    def assignment(self) -> Mapping[int, int] | None:
        """CPU that polls each port, by its index, as far as the switch tells; None if it does not."""
        return None

    def pause(self) -> None:
        """Stops its pollers from using a CPU (SIGSTOP, freezer); a no-op for a kernel switch."""

    def resume(self) -> None: ...

    def stop(self) -> None:
        """Ends it and removes what it made. Idempotent, bounded in time."""
