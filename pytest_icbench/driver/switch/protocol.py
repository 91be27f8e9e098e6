# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of a switch driver.

Each driver is one file or folder. Other packages provide drivers by the hook ``pytest_icbench_switches``. Each rig
makes its own instance: ``Driver()``. Class attributes are read at collection, on any host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Address, AttachTarget, Endpoint
from pytest_icbench.model.path import Side
from pytest_icbench.model.routes import Share, ip_version
from pytest_icbench.model.switch_facts import Batches as Batches
from pytest_icbench.model.switch_facts import Busy as Busy
from pytest_icbench.model.switch_facts import PortCounters as PortCounters
from pytest_icbench.model.switch_facts import SwitchFacts as SwitchFacts
from pytest_icbench.model.switch_traits import Reach, SwitchTraits
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.uplink import Uplink

#: Name of an endpoint's interface in its node.
NODE_INTERFACE = "eth0"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A node that gets a port of the switch.

    Attributes:
        index: its number among all endpoints, see ``model.path``.
        pair: 1 to pairs.
        side: ``a`` sends or requests, ``b`` receives or answers.
        socket_dir: directory for the port's socket, at the same path in its node, which can write there; the path is
            short (sun_path has 107 bytes). If the switch ``joins_nodes``, all nodes of the pair have it.
        peer: address of the other end; None: the default address of the pair's other side.
        socket: file name of the port's socket; None: the switch chooses.
        interface: name of the port's interface in the node, if it has one.
        between: whether it is a port of a network function, whose processes outlive those of the endpoints.
        attached: the target to which its node is attached; None: the node was created.
        segment: number of a set of ports that reach each other; None: all ports are one set.
    """

    index: int
    pair: int
    side: Side
    address: Address
    node: NodeFacts
    socket_dir: Path
    peer: Address | None = None
    socket: str | None = None
    interface: str = NODE_INTERFACE
    between: bool = False
    segment: int | None = None
    attached: AttachTarget | None = None


@dataclass(frozen=True, slots=True)
class SwitchSpec:
    """The request of a rig to a switch.

    Attributes:
        port: port kind, resolved (never None).
        worker_cpus: one CPU for each worker of the switch.
        service_cpus: CPUs of its other threads, such as control threads.
        mtu: layer 3 MTU of every port.
        mode: forwarding mode; None: the natural one.
        config: the user's configuration, checked against ``config_keys``.
        work_dir: private directory for databases, logs and other sockets; removed with the rig.
        binary: the user's binary; None: the one on PATH.
        endpoint_cpus: CPU of each attachment's workload, by index (for NUMA-aware memory).
        functions: virtual function of each attachment (PCI address or interface) with its expected device node; None:
            the switch chooses.
        uplink: the NIC to the other host, where the attachments' peers are; None: all are on this host.
        queues: queue pairs of every port; more than one only for ``queue_ports``.
        ring: descriptors of a ring that the endpoints ask for, and that the switch sets where it is asked instead.
        rx_mode: how its workers learn of frames, one of ``rx_modes``; None: the natural way.
        common_sockets: directory below ``work_dir`` that all nodes read, for a switch with all sockets in one.
        routes: the table of a switch that routes: indexes of attachments, each with routes that lead to it.
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
    queues: int = 1
    ring: int = 256
    rx_mode: str | None = None
    common_sockets: Path | None = None
    routes: Sequence[tuple[int, Share]] = ()


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources of a started switch.

    Attributes:
        hugepages_mib: huge pages of the switch, without those of the endpoints.
        pollers: worker threads that poll.
    """

    hugepages_mib: int = 0
    pollers: int = 0


class Switch(SwitchTraits, Protocol):
    """A driver. ``SwitchTraits`` declares its class attributes."""

    _facts: SwitchFacts = SwitchFacts()

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns version and program. Changes nothing. Raises Unsupported with the reason and the remedy."""

    def probe_api(self, session: HostSession, api: str) -> None:
        """Raises Unsupported if this host lacks a requirement of one of ``apis``, such as a DPDK driver."""
        return

    def probe_port(self, session: HostSession, port: str) -> None:
        """Raises Unsupported if this host lacks a requirement of one of ``ports``; most have none."""
        return

    def probe_pairs(self, session: HostSession, pairs: int) -> None:
        """Raises Unsupported if this host cannot attach that number of pairs; most drivers have no limit."""
        return

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        """Returns the resources for a number of pairs and worker cores.

        Args:
            jumbo: whether there are frames above 1518 bytes.

        Raises Unsupported if the switch cannot use that number of cores.
        """
        return self.needs_with_queues(pairs, cores, 1, jumbo=jumbo)

    def needs_with_queues(self, pairs: int, cores: int, queues: int, *, jumbo: bool = False) -> Needs:
        """Returns ``needs`` for several queue pairs per port; a driver with ``queue_ports`` overrides it."""
        return self.needs(pairs, cores, jumbo=jumbo)

    def devices(self, session: HostSession, spec: SwitchSpec, addresses: Sequence[Address]) -> Sequence[Sequence[Path]]:
        """Returns the device nodes for each attachment's node, by index; empty if there are none.

        It is called before the nodes are started, and creates the devices if necessary. Raises ProvisionError;
        ``stop`` follows.
        """
        return ()

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts the switch with all its ports; returns one endpoint for each attachment, in order.

        A switch that is like a wire connects attachments 0 and 1, 2 and 3, and so on.

        Raises ProvisionError with the log's tail.
        """

    def facts(self) -> SwitchFacts:
        """Returns the version and the configuration with which it was started."""
        return self._facts

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if the switch is no longer alive."""
        return

    def fault(self) -> str | None:
        """Returns a reason why frames may not pass, such as a configuration or a stopped process; None without one."""
        return None

    def set_ageing(self, seconds: float) -> None:
        """Makes the switch forget addresses that it has not seen for ``seconds``. Raises ProvisionError."""
        raise ProvisionError(f"{self.name} keeps the addresses that it has learned")

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of each attachment's port; None if the switch has none."""
        return None

    def busy(self) -> Busy | None:
        """Returns the busy time or cycles of its workers so far; None if unknown."""
        return None

    def batches(self) -> Batches | None:
        """Returns frames and the calls that handled them; None if the switch does not count them."""
        return None

    def meet_endpoints(self) -> None:
        """Connects to the sockets that a launch's endpoints serve, and have just opened. Raises ProvisionError."""
        return

    def prepare_traffic(self) -> None:
        """Places queues on workers, after all endpoints have connected and before traffic. Raises ProvisionError."""
        return

    def assignment(self) -> Mapping[int, int] | None:
        """Returns the CPU that polls each port, by its index; None if unknown."""
        return None

    def pause(self) -> None:
        """Stops its pollers from using a CPU (SIGSTOP, freezer); a switch without pollers does nothing."""
        return

    def resume(self) -> None:
        """Lets its pollers continue."""
        return

    def stop(self) -> None:
        """Ends the switch and removes what it has created. Idempotent, bounded in time."""


@dataclass(frozen=True, slots=True)
class ForwardingBehaviour:
    """The forwarding behaviour that a driver declares by class attributes of the same names.

    Attributes:
        jumbo: whether frames above 1518 bytes pass.
        ip_version: IP version of the packets that it forwards by their addresses, and nothing else; None: it forwards
            frames.
    """

    learns: bool
    broadcast: Reach
    unknown_unicast: Reach
    vlan: bool
    filters: bool
    asks_first: bool
    jumbo: bool
    least_ageing_s: float | None
    hops: int | None
    ip_version: int | None = None
    floods: bool = False


def read_behaviour(driver: type[Switch], mode: str | None = None) -> ForwardingBehaviour:
    """Returns the behaviour that a driver declares for a mode; None is the natural one. Pure."""
    wire = mode is not None and mode in driver.wire_modes
    if (version := ip_version(driver.name, mode)) is not None:
        return ForwardingBehaviour(
            learns=False,
            broadcast="none",
            unknown_unicast="none",
            vlan=False,
            filters=driver.filters,
            asks_first=driver.asks_first,
            jumbo=Traffic(driver.max_frame_bytes).jumbo,
            least_ageing_s=None,
            hops=1,
            ip_version=version,
        )
    learns = driver.learns and not wire
    reach: Reach = "all" if learns else "peer"
    return ForwardingBehaviour(
        learns=learns,
        broadcast=reach if wire or driver.broadcast is None else driver.broadcast,
        unknown_unicast=reach if wire or driver.unknown_unicast is None else driver.unknown_unicast,
        vlan=driver.vlan,
        filters=driver.filters,
        asks_first=driver.asks_first,
        jumbo=Traffic(driver.max_frame_bytes).jumbo,
        least_ageing_s=driver.least_ageing_s if learns else None,
        hops=driver.hops,
        ip_version=None if driver.hops is None else 4,
        floods=driver.floods and not wire,
    )
