# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of a network function's driver: what starts it, what it does to frames, and how that is proven.

A function has two ports between the ends of a pair: the inner one towards side a, the outer one towards side b.
Another package can bring one by the hook ``pytest_icbench_functions``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pytest_icbench.driver.node.protocol import Node, NodeFacts
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.denial import Denial
from pytest_icbench.model.endpoint import Address, Endpoint
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind

#: The port kind that stands for all interfaces of the kernel, whoever makes them.
VETH = "veth"


@dataclass(frozen=True, slots=True)
class Ends:
    """The four addresses of a pair with a function: its two sides, and the function's ports towards each.

    Those of a chain are the same, with the first function's inner and the last one's outer port. In a chain a function
    sees its neighbours as its sides: the IP address of the pair's side, behind the MAC address of the neighbour.

    Attributes:
        hops: how many functions stand between the two ports.
    """

    leader: Address
    follower: Address
    inner: Address
    outer: Address
    hops: int = 1

    @staticmethod
    def of(pair: int, leader: Address, follower: Address, hop: int = 1) -> Ends:
        """Returns those of a function; the ports' addresses are of RFC 2544's second half, without any network."""
        inner, outer = (
            Address(ip=f"198.19.{pair}.{last}", mac=f"02:00:00:01:{pair:02x}:{last:02x}", prefix=32)
            for last in (2 * hop - 1, 2 * hop)
        )
        return Ends(leader, follower, inner, outer)

    @staticmethod
    def of_chain(function: str, component: type[Function], row: Sequence[Ends]) -> list[Ends]:
        """Returns the ends of the functions of a chain, each with its neighbours as its sides.

        Args:
            row: those of the functions from side a to side b, with the sides of the pair.
        """
        forth: list[Ends] = []
        for ends in row:
            leader = component.seen(function, forth[-1])[1] if forth else ends.leader
            forth.append(replace(ends, leader=leader))
        back: list[Ends] = []
        for ends in reversed(forth):
            follower = component.seen(function, back[-1])[0] if back else ends.follower
            back.append(replace(ends, follower=follower))
        return back[::-1]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """The request of a rig to a function.

    Attributes:
        function: what it is asked to do (``nat+acl10``).
        pair: number of its pair.
        hop: its place in the chain of its pair, from side a; 1 is the first.
        hops: how many functions the chain has.
        counts_control: whether it has to tell control frames from data, if it can.
        sizes: lengths of the case's frames with FCS, in turn.
        flows: the label of the case's flows.
        sides: the kernel interfaces of the pair's two sides, each with its network namespace.
        inner, outer: its ports as its processes use them, inside ``node``.
        node, node_facts: the node that it works in; None for a function that is made of the switch's own flows.
        switch: the started switch.
        indexes: the switch's ports of the pair, in the order of the path.
        cpu: the CPU of its process.
        yield_every: what the process is to yield after; 0: it has its CPU for itself.
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
        """The directory of its files, at the same path in its node; a driver that has any makes it."""
        node, _, _ = self.with_ports()
        return Path(node.spec.sockets[0]) / self._stem

    @property
    def log(self) -> Path:
        """The file for the output of its process."""
        return self.work_dir / f"{self._stem}.log"

    @property
    def _stem(self) -> str:
        return f"function{self.pair}-{self.hop}"

    def with_ports(self) -> tuple[Node, Endpoint, Endpoint]:
        """Returns the node and both ports of a function that has them. Raises ProvisionError for one that has none."""
        if self.node is None or self.inner is None or self.outer is None:
            raise ProvisionError(f"function {self.function} has no node")
        return self.node, self.inner, self.outer


@dataclass(frozen=True, slots=True)
class Probe:
    """A frame that proves what a function does.

    Attributes:
        forth: whether side a sends it, else side b.
        frame: the frame without FCS.
        expected: the frame that the other side has to receive; None if it must not receive any.
        says: what the function has to do to it, as the end of a sentence.
    """

    forth: bool
    frame: bytes
    expected: bytes | None
    says: str


@dataclass(frozen=True, slots=True)
class SetRate:
    """The rate that a function lets pass, by which the accounts of launches are judged.

    Attributes:
        pps: frames per second from side a to side b.
        tolerance: share by which the rate of a launch may differ.
        burst: frames that pass at once behind a rest; None where there is no such bound.
    """

    pps: float
    tolerance: float
    burst: int | None = None


class Function(Protocol):
    """A driver. Each function of a rig has its own instance: ``Driver()``.

    Attributes:
        name: the name of the component, as results and ``--icbench-function-config`` have it.
        ports: port kinds at which its processes work.
        in_switch: the switch whose own flows make the function, so that it has no node and no ports; None for others.
        polls: whether its process polls, and takes a CPU in the placement.
        help: the functions that it has, for messages.
        chains: whether several can follow each other, and ``proof`` says what ``Ends.hops`` of them do together.
        hugepages_mib: huge pages of one function over ports in user space.
        memory_mib: memory that one function takes besides, with its node.
        any_frame: whether it takes frames of any headers, not only IPv4 and UDP without a VLAN tag.
        config_keys: keys of the user's configuration, with the kind of each value.
        takes_binary: whether ``--icbench-binary NAME=PATH`` names its program.
    """

    name: ClassVar[str]
    ports: ClassVar[tuple[str, ...]]
    in_switch: ClassVar[str | None] = None
    polls: ClassVar[bool] = False
    help: ClassVar[str] = ""
    chains: ClassVar[bool] = False
    hugepages_mib: ClassVar[int] = 0
    memory_mib: ClassVar[int] = 8
    any_frame: ClassVar[bool] = False
    config_keys: ClassVar[Mapping[str, Kind]] = {}
    takes_binary: ClassVar[bool] = False

    @classmethod
    def has(cls, function: str) -> bool:
        """Whether it does what the name says. Pure."""
        raise NotImplementedError

    @classmethod
    def ports_of(cls, function: str) -> tuple[str, ...]:  # noqa: ARG003
        """Returns those of ``ports`` at which this function works. Pure."""
        return cls.ports

    @classmethod
    def memory_mib_of(cls, function: str) -> int:  # noqa: ARG003 - as drivers override it
        """Returns ``memory_mib`` of this function. Pure."""
        return cls.memory_mib

    @classmethod
    def seen(cls, function: str, ends: Ends) -> tuple[Address, Address]:  # noqa: ARG003 - as drivers override it
        """Returns the address at which side a sees side b, and side b side a. Pure.

        A function that forwards frames as they are shows each side to the other one.
        """
        return ends.follower, ends.leader

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns the frames that prove the function, in stages that follow each other. Pure.

        Side a speaks first: to a stateful function a frame of side b is a new connection from outside.
        """
        raise NotImplementedError

    @classmethod
    def set_rate(cls, function: str, frame_bytes: float) -> SetRate | None:  # noqa: ARG003
        """Returns the rate that it lets pass at frames of so many bytes with FCS; None if it limits none. Pure."""
        return None

    @classmethod
    def most_flows(cls, function: str) -> int | None:  # noqa: ARG003
        """Returns for how many flows of side a there are ports, where addresses are translated; None for any. Pure."""
        return None

    @classmethod
    def denial(cls, function: str) -> Denial | None:  # noqa: ARG003
        """Returns the share of flows that it denies, and that measured launches then have; None without one. Pure."""
        return None

    @classmethod
    def only_answers(cls, function: str) -> bool:  # noqa: ARG003
        """Whether frames of side b pass only as answers to flows of side a. Pure."""
        return False

    @classmethod
    def least_cycles(cls, function: str) -> int:  # noqa: ARG003
        """Returns the busy cycles that each frame has to cost at least. Pure."""
        return 0

    @classmethod
    def readdresses(cls, function: str, hops: int) -> bool:  # noqa: ARG003
        """Whether frames leave so many of them in a row for another MAC address than their receiver's. Pure."""
        return False

    @classmethod
    def has_addresses(cls, function: str) -> bool:
        """Whether frames are for MAC addresses of its own ports, as a router's are. Pure."""
        ends = Ends.of(1, Address.of(1, "a"), Address.of(1, "b"))
        seen = cls.seen(function, ends)
        return [address.mac for address in seen] == [ends.inner.mac, ends.outer.mac]

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:  # noqa: ARG003
        """Returns the host's directories that its processes read, at the same path in the node. Each has /usr."""
        return ()

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns version and component. Changes nothing. Raises Unsupported with the reason and the remedy."""
        raise NotImplementedError

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it. Raises ProvisionError with the log's tail, or with the words of the program that refuses."""

    def await_started(self) -> None:
        """Waits until it works, where ``start`` does not: functions then start side by side. Raises as ``start``."""
        return

    def facts(self) -> FunctionFacts:
        """Returns the version and the configuration with which it was started."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if it is no longer alive."""

    def forget(self) -> None:
        """Removes all sessions: proofs, and launches of new flows, begin with an empty table. Raises ProvisionError."""
        return

    def counters(self) -> FunctionCounters:
        """Returns its counters. Raises ProvisionError if it does not answer."""
        raise NotImplementedError

    def leave(self) -> None:
        """Tells its process to end without waiting for that: functions then end side by side. ``stop`` follows."""
        return

    def stop(self) -> None:
        """Ends it; its node ends behind it. Idempotent, bounded in time."""
