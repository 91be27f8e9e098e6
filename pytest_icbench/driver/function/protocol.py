# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of a network function's driver: how it starts, what it does to frames, and how that is proven.

A function has two ports between the ends of a pair: the inner one towards side a, the outer one towards side b.
Other packages provide drivers by the hook ``pytest_icbench_functions``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.acl_drop import AclDrop
from pytest_icbench.model.endpoint import Address, Endpoint, Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

if TYPE_CHECKING:
    from pytest_icbench.driver.node.protocol import Node, NodeFacts
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.host.host_session import HostSession


#: The port kind that stands for every interface of the kernel.
VETH = "veth"


@dataclass(frozen=True, slots=True)
class Ends:
    """The four addresses of a pair with a function: its two sides, and the function's port towards each side.

    Those of a chain are the first function's inner port and the last one's outer port. To a function of a chain, its
    neighbours are the sides: they have the IP address of the pair's side and the MAC address of the neighbour.

    Attributes:
        hops: number of functions from the inner to the outer port.
    """

    leader: Address
    follower: Address
    inner: Address
    outer: Address
    hops: int = 1

    @staticmethod
    def make(pair: int, leader: Address, follower: Address, hop: int = 1) -> Ends:
        """Returns the ends of a function. Its ports have addresses of 198.19.0.0/16 (RFC 2544), each with prefix 32."""
        inner, outer = (
            Address(ip=f"198.19.{pair}.{last}", mac=f"02:00:00:01:{pair:02x}:{last:02x}", prefix=32)
            for last in (2 * hop - 1, 2 * hop)
        )
        return Ends(leader, follower, inner, outer)

    @staticmethod
    def make_chain(function: str, component: type[Function], row: Sequence[Ends]) -> list[Ends]:
        """Returns the ends of each function of a chain, with its neighbours as its sides.

        Args:
            row: ends of the functions from side a to side b, all with the sides of the pair.
        """
        forth: list[Ends] = []
        for ends in row:
            leader = component.visible_addresses(function, forth[-1])[1] if forth else ends.leader
            forth.append(replace(ends, leader=leader))
        back: list[Ends] = []
        for ends in reversed(forth):
            follower = component.visible_addresses(function, back[-1])[0] if back else ends.follower
            back.append(replace(ends, follower=follower))
        return back[::-1]

    def direction(self, forth: bool) -> tuple[Address, Address]:
        """Returns sender and receiver of frames from side a to side b, or of the other direction."""
        return (self.leader, self.follower) if forth else (self.follower, self.leader)


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """The request of a rig to a function.

    Attributes:
        function: its name (``nat+acl10``).
        pair: number of its pair.
        hop: its place in the chain of its pair, from side a; 1 is the first.
        hops: number of functions in the chain.
        counts_control: whether it has to count control frames separately, if it can.
        sizes: lengths in bytes of the case's frames with FCS, in turn.
        flows: label of the case's flows.
        sides: kernel interfaces of the pair's two sides, each with its network namespace.
        inner, outer: its ports as its processes use them, inside ``node``.
        node, node_facts: the node in which it runs; None for a function made of the switch's own flows.
        switch: the started switch.
        indexes: the switch's ports of the pair, in the order of the path.
        cpu: the CPU of its process.
        yield_every: number of frames after which the process yields; 0: it has its CPU for itself.
        mtu: layer 3 MTU of its ports.
        config: the user's configuration, checked against ``config_keys``.
        work_dir: private directory for logs.
    """

    function: str
    pair: int
    ends: Ends
    inner: Endpoint | None
    outer: Endpoint | None
    node: Node | None
    node_facts: NodeFacts | None
    switch: Switch
    indexes: Sequence[int]
    cpu: int
    yield_every: int
    mtu: int
    work_dir: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    hop: int = 1
    hops: int = 1
    counts_control: bool = False
    sides: Sequence[tuple[str, str]] = ()
    sizes: Sequence[int] = ()
    flows: str | None = None

    @property
    def label(self) -> str:
        """The function in a message: ``function wire of pair 1``, with its place in a chain."""
        place = f", hop {self.hop} of {self.hops}" if self.hops > 1 else ""
        return f"function {self.function} of pair {self.pair}{place}"

    @property
    def directory(self) -> Path:
        """The directory of its files, at the same path in its node, which can write there (``host.node_files``)."""
        node, _, _ = self.require_ports()
        return Path(node.spec.sockets[0])

    @property
    def log(self) -> Path:
        """The file for the output of its process."""
        return self.work_dir / f"function{self.pair}-{self.hop}.log"

    def require_ports(self) -> tuple[Node, Endpoint, Endpoint]:
        """Returns the node and both ports. Raises ProvisionError for a function without."""
        if self.node is None or self.inner is None or self.outer is None:
            raise ProvisionError(f"function {self.function} has no node")
        return self.node, self.inner, self.outer

    @property
    def interfaces(self) -> tuple[str, str]:
        """Its two kernel interfaces. Raises ProvisionError for other ports."""
        if not isinstance(self.inner, Veth) or not isinstance(self.outer, Veth):
            raise ProvisionError(f"function {self.function} needs kernel interfaces")
        return self.inner.interface, self.outer.interface

    @property
    def netns(self) -> str:
        """The network namespace of its node. Raises ProvisionError without a node."""
        if self.node_facts is None:
            raise ProvisionError(f"function {self.function} has no node")
        return self.node_facts.netns


@dataclass(frozen=True, slots=True)
class Probe:
    """A frame that proves what a function does.

    Attributes:
        forth: whether side a sends it, else side b.
        frame: the frame without FCS.
        expected: the frame that the other side has to receive; None if it must not receive any.
        says: what the function has to do with it, as the predicate of a sentence.
    """

    forth: bool
    frame: bytes
    expected: bytes | None
    says: str


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The rate limit of a function, against which the rate of each launch is checked.

    Attributes:
        pps: frames per second from side a to side b.
        tolerance: largest relative deviation of a launch.
        burst: frames that pass at once after an idle time; None without a limit.
    """

    pps: float
    tolerance: float
    burst: int | None = None


class Function(Protocol):
    """A driver. Each function of a rig has its own instance: ``Driver()``.

    Attributes:
        name: the name of the component in results and ``--icbench-function-config``.
        ports: port kinds that its processes can use.
        in_switch: the switch whose own flows make the function, which then has no node and no ports; None otherwise.
        polls: whether its process needs a CPU of the placement.
        yields: whether it gives its CPU away when it finds no frames; if not, it has no rate on a CPU that it shares.
        help: the functions that it makes, for messages.
        chains: whether functions can follow each other, with ``proof`` for ``Ends.hops`` of them together.
        hugepages_mib: huge pages of one function over ports in user space.
        memory_mib: other memory of one function with its node.
        any_frame: whether it forwards frames with any headers, not only IPv4 and UDP without a VLAN tag.
        config_keys: keys of the user's configuration, with the kind of each value.
        takes_binary: whether ``--icbench-binary NAME=PATH`` names its program.
    """

    name: ClassVar[str]
    ports: ClassVar[tuple[str, ...]]
    in_switch: ClassVar[str | None] = None
    polls: ClassVar[bool] = False
    yields: ClassVar[bool] = True
    help: ClassVar[str] = ""
    chains: ClassVar[bool] = False
    hugepages_mib: ClassVar[int] = 0
    memory_mib: ClassVar[int] = 8
    any_frame: ClassVar[bool] = False
    config_keys: ClassVar[Mapping[str, Kind]] = {}
    takes_binary: ClassVar[bool] = False
    _facts: FunctionFacts | None = None
    _spec: FunctionSpec | None = None

    @classmethod
    @abstractmethod
    def has(cls, function: str) -> bool:
        """Whether it makes the function of that name. Pure."""

    @classmethod
    def usable_ports(cls, function: str) -> tuple[str, ...]:  # noqa: ARG003
        """Returns the members of ``ports`` that this function can use. Pure."""
        return cls.ports

    @classmethod
    def required_memory_mib(cls, function: str) -> int:  # noqa: ARG003 - as drivers override it
        """Returns ``memory_mib`` of this function. Pure."""
        return cls.memory_mib

    @classmethod
    def visible_addresses(cls, function: str, ends: Ends) -> tuple[Address, Address]:  # noqa: ARG003 - as drivers override it
        """Returns the address of side b as side a sees it, then that of side a as side b sees it. Pure.

        By default the function does not change addresses.
        """
        return ends.follower, ends.leader

    @classmethod
    @abstractmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns the frames that prove the function, in consecutive stages. Pure.

        Side a sends first, because to a stateful function a frame of side b is a new connection from outside.
        """

    @classmethod
    def rate_limit(cls, function: str, frame_bytes: float) -> RateLimit | None:  # noqa: ARG003
        """Returns its rate limit for frames of ``frame_bytes`` bytes with FCS; None without a limit. Pure."""
        return None

    @classmethod
    def most_flows(cls, function: str) -> int | None:  # noqa: ARG003
        """Returns the number of flows of side a for which a NAT has ports; None without a limit. Pure."""
        return None

    @classmethod
    def acl_drop(cls, function: str) -> AclDrop | None:  # noqa: ARG003
        """Returns the share of flows that it drops also in measured launches; None if there is none. Pure."""
        return None

    @classmethod
    def only_answers(cls, function: str) -> bool:  # noqa: ARG003
        """Whether frames of side b pass only as answers to flows of side a. Pure."""
        return False

    @classmethod
    def least_cycles(cls, function: str) -> int:  # noqa: ARG003
        """Returns the minimum of busy cycles per frame. Pure."""
        return 0

    @classmethod
    def changes_addresses(cls, function: str, hops: int) -> bool:  # noqa: ARG003
        """Whether frames leave a chain of ``hops`` functions with another MAC address than their receiver's. Pure."""
        return False

    @classmethod
    def has_addresses(cls, function: str) -> bool:
        """Whether frames are addressed to its ports' MAC addresses, as to a router. Pure."""
        ends = Ends.make(1, Address.of(1, "a"), Address.of(1, "b"))
        seen = cls.visible_addresses(function, ends)
        return [address.mac for address in seen] == [ends.inner.mac, ends.outer.mac]

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:  # noqa: ARG003
        """Returns host directories, besides /usr, that its processes read at the same path in the node."""
        return ()

    @abstractmethod
    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns version and component. Changes nothing. Raises Unsupported with the reason and the remedy."""

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it. Raises ProvisionError with the log's tail or with the message of the program that failed."""

    def await_started(self) -> None:
        """Waits until the function works, so that several can start at the same time. Raises as ``start`` does."""
        return

    def facts(self) -> FunctionFacts:
        """Returns the version and the configuration with which it was started."""
        return self._facts or FunctionFacts(self.name)

    def started_spec(self) -> FunctionSpec:
        """Returns the request with which it was started. Raises ProvisionError if it was not started."""
        if self._spec is None:
            raise ProvisionError("the function was not started")
        return self._spec

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if it is no longer alive."""

    def forget(self) -> None:
        """Removes all sessions, because proofs and launches start with an empty table. Raises ProvisionError."""
        return

    @abstractmethod
    def counters(self) -> FunctionCounters:
        """Returns its counters. Raises ProvisionError if it does not answer."""

    def leave(self) -> None:
        """Asks its process to end without waiting, so that several functions can end at the same time."""
        return

    def stop(self) -> None:
        """Ends it before its node ends. Idempotent, bounded in time."""
