# SPDX-License-Identifier: BSD-3-Clause
"""What a switch driver is. One file a driver; another package can bring one (hook ``icbench_switches``).

A driver is made anew for each rig: ``Driver()``; class attributes are facts that are read at collection, on any host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from pytest_icbench.config.switch_config import Kind
from pytest_icbench.driver.node.protocol import NodeFacts
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.case import Family
from pytest_icbench.model.endpoint import Address, Endpoint
from pytest_icbench.model.path import Side
from pytest_icbench.model.uplink import Uplink, Via

#: Which other ports a frame reaches.
Reach = Literal["all", "peer", "none"]


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
class PortCounters:
    """A port's own counters since it exists, from the switch's side: ``rx`` is what came from the endpoint.

    ``tx`` is what was given to it, without ``tx_dropped``. None where the switch does not tell.
    """

    index: int
    rx_packets: int | None
    tx_packets: int | None
    rx_dropped: int | None = None
    tx_dropped: int | None = None


@dataclass(frozen=True, slots=True)
class Busy:
    """Work of the switch since it exists: a difference of two gives the busy share and the cycles per frame.

    Attributes:
        busy_cycles, idle_cycles: of all workers; ``idle_cycles`` None where only the busy ones are counted.
        busy_ns: time instead of cycles, of a switch that has no workers of its own (the kernel's).
        workers: threads that poll all the time; with them the busy share follows from ``busy_cycles`` alone.
        far: of a path over two hosts, the other host's half.
    """

    busy_cycles: int | None = None
    idle_cycles: int | None = None
    busy_ns: int | None = None
    workers: int = 0
    far: Busy | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """Frames that all workers handled since the switch exists, and in how many calls: their quotient is a batch."""

    frames: int
    calls: int


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources of a started switch: MiB of huge pages by itself, and worker threads that poll."""

    hugepages_mib: int = 0
    pollers: int = 0


@dataclass(slots=True)
class SwitchFacts:
    """What goes into a result's treatment: version, configuration, build flags as the switch tells them.

    ``program``: path of the one that probing found; another one of the same version is another switch to a run that is
    resumed.
    """

    version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    program: str | None = None


class Switch(Protocol):
    """A driver."""

    name: ClassVar[str]
    family: ClassVar[Family]
    #: Port kinds, the natural one first.
    ports: ClassVar[tuple[str, ...]]
    #: API techniques its endpoints can use.
    apis: ClassVar[tuple[str, ...]]
    #: Those measured when nobody asks for others. One: it is left out of the id.
    default_apis: ClassVar[tuple[str, ...]]
    #: Worker cores when nobody asks; 0 for a switch without pollers.
    default_cores: ClassVar[int]
    #: Whether the number of worker cores can be chosen.
    scalable: ClassVar[bool]
    #: Whether it learns MAC addresses.
    learns: ClassVar[bool]
    #: Which ports a broadcast or multicast frame reaches, and a frame to an address that nobody has shown: ``all``
    #: others, the ``peer`` of its pair alone, or ``none``. None: ``all`` if it learns, else ``peer``.
    broadcast: ClassVar[Reach | None] = None
    unknown_unicast: ClassVar[Reach | None] = None
    #: Whether a frame with a VLAN tag passes as it is.
    vlan: ClassVar[bool] = True
    #: Whether its ports are functions of a network card, which filters by itself: frames with a VLAN tag and multicast
    #: frames reach those of the declared whom the card lets have them, and a frame to many may come back to its sender
    #: (some cards leave it to the functions' drivers to drop that).
    filters: ClassVar[bool] = False
    #: Least time in seconds that ``set_ageing`` takes; None: what it has learned it keeps.
    least_ageing_s: ClassVar[float | None] = None
    #: Greatest frame in bytes with FCS.
    max_frame_bytes: ClassVar[int]
    #: Greatest number of pairs, None without a limit.
    max_pairs: ClassVar[int | None]
    #: Whether it runs a program that the user can name another of.
    takes_binary: ClassVar[bool] = True
    #: Ways to forward beside the natural one, by name.
    modes: ClassVar[tuple[str, ...]] = ()
    #: What its modes look like, for messages, where they have parameters.
    mode_help: ClassVar[str] = ""
    #: Those of its modes that join the ports of a pair like a wire: they neither learn nor reach other pairs.
    wire_modes: ClassVar[tuple[str, ...]] = ()
    #: Nothing to choose among others (a known truth, a network function): no group stands for it, only its name.
    by_name_only: ClassVar[bool] = False

    #: Ways in which it can have an uplink to another host; none: it is for one host only.
    uplinks: ClassVar[tuple[Via, ...]] = ()
    #: Pairs that can share its uplink, None without a limit.
    uplink_pairs: ClassVar[int | None] = None

    #: Keys that the user's own configuration of it may have, with the kind of each.
    config_keys: ClassVar[Mapping[str, Kind]] = {}

    @classmethod
    def has_mode(cls, mode: str) -> bool:
        """Whether it has such a mode; a driver whose modes have parameters overrides this."""
        return mode in cls.modes

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:  # noqa: ARG003 - as drivers override it
        """Those of ``apis`` that endpoints on this port kind can use; a driver whose kinds differ overrides this."""
        return cls.apis

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
