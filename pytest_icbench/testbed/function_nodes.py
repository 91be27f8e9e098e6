# SPDX-License-Identifier: BSD-3-Clause
"""The directories of a rig, and its network functions: their nodes, ports and life, and the proof that they work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.protocol import Ends, Function, FunctionSpec, Probe
from pytest_icbench.driver.guard import make_function, make_node
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.protocol import Node, NodeFacts, NodeSpec
from pytest_icbench.driver.switch.protocol import Attachment, Switch
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.cpu_usage import read_cpu_use
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.node_files import NODE_MIB, RIG_MIB, make_tmpfs
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Endpoint
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts, FunctionTerms
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import node_directory
from pytest_icbench.testbed.exchange import Exchange, ExchangeTarget


class NodeDirectories:
    """All directories of a rig. The constructor makes none.

    ``joined``: whether the nodes of a pair connect with each other and share a directory for their sockets.

    Attributes:
        work: for the switch; nodes see nothing of it but what follows.
        common: for a switch with all its sockets in one directory; nodes can read it.
        logs: for the logs of what runs in nodes; they cannot see it.
    """

    def __init__(self, session: HostSession, name: str, joined: bool) -> None:
        self._session, self._name, self._joined = session, name, joined
        self.work = session.dir / name
        self.common = self.work / "s"
        self.logs = Path()

    def make(self) -> None:
        """Makes those of the rig as a whole. Raises ProvisionError."""
        make_tmpfs(self.work, RIG_MIB, links=True)
        self.common.mkdir()
        self.logs = self._session.logs / self._name
        self.logs.mkdir()

    def remove(self) -> None:
        """Removes all. Idempotent. Raises ProvisionError."""
        remove_tree(self.work)
        remove_tree(self._session.dir / "log" / self._name)

    def of_endpoint(self, index: int, pair: int) -> list[Path]:
        """Makes what the node of an endpoint can write: its own directory, then that of its pair, if it has one.

        Raises ProvisionError. The last is that of its sockets.
        """
        return self._make(node_directory(self.work, index), pair)

    def of_function(self, pair: int, hop: int) -> list[Path]:
        """Makes the same for the node of a network function."""
        return self._make(self.work / f"f{pair}x{hop}", pair)

    def _make(self, own: Path, pair: int) -> list[Path]:
        shared = [self.work / f"w{pair}"] if self._joined else []
        for directory in (own, *shared):
            if not directory.exists():
                make_tmpfs(directory, NODE_MIB)
        return [own, *shared]


_INTERFACES = ("eth0", "eth1")
_PAGE_BYTES = 4096
#: The number of a pair and the place in its chain.
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StartContext:
    """The switch and the directories with which functions start.

    Attributes:
        switch: the started switch.
        ports: the ports' endpoints by index.
        work_dir: directory for logs.
        mtu: layer 3 MTU in bytes.
        config: the user's configuration of the component.
    """

    switch: Switch
    ports: Mapping[int, Endpoint]
    work_dir: Path
    mtu: int
    config: Mapping[str, Any]


class FunctionNodes:
    """The functions of a rig: a chain for each pair, each function in a separate node.

    Args:
        component: the maker of all functions.
        addresses: addresses of the endpoints, by index.
        undo: collects the calls that remove the functions; they are made in reverse order.

    ``chains``: by pair, the ends of each chain as a whole, for its proof.
    """

    def __init__(
        self,
        session: HostSession,
        case: Case,
        component: type[Function],
        placement: Placement,
        addresses: Sequence[Address],
        undo: list[Callable[[], None]],
    ) -> None:
        assert case.function is not None
        self.case = case
        #: Those of the pairs: all are of one component.
        self.functions = case.functions
        self.component = component
        self.path = case.path if self.component.in_switch is None else FramePath(case.pairs)
        self._ends: dict[_Place, Ends] = {}
        self.chains: list[Ends] = []
        for pair, (leader, follower) in zip(case.path.numbers, case.path.by_pair(addresses), strict=True):
            row = [Ends.make(pair, leader, follower, hop) for hop in range(1, case.chain + 1)]
            self.chains.append(replace(row[0], outer=row[-1].outer, hops=len(row)))
            of_chain = Ends.make_chain(self.functions[pair - 1], self.component, row)
            for hop, ends in enumerate(of_chain, start=1):
                self._ends[pair, hop] = ends
        self._session, self._placement, self._undo = session, placement, undo
        self._nodes: dict[_Place, Node] = {}
        self._node_facts: dict[_Place, NodeFacts] = {}
        self._socket_dirs: dict[_Place, Path] = {}
        self._functions: dict[_Place, Function] = {}
        self._frozen: set[_Place] = set()
        #: By pair, the interfaces of its sides in their nodes, each with its network namespace.
        self._sides: dict[int, list[tuple[str, str]]] = {}

    @property
    def peers(self) -> tuple[Address, ...]:
        """The address at which each endpoint sees its peer, by index."""
        seen = map(self.component.visible_addresses, self.functions, self.chains)
        return tuple(address for pair in seen for address in pair)

    @property
    def terms(self) -> tuple[FunctionTerms, ...]:
        """What launches have to show of each pair's function."""
        return tuple(map(self._terms, self.functions))

    def _terms(self, function: str) -> FunctionTerms:
        limit = self.component.rate_limit(function, self.case.traffic.mean_bytes)
        return FunctionTerms(
            function,
            None if limit is None else limit.pps,
            0.0 if limit is None else limit.tolerance,
            self.component.least_cycles(function),
            self.component.acl_drop(function),
            None if limit is None else limit.burst,
        )

    @property
    def addresses(self) -> list[Address]:
        """Addresses of the functions' ports at the switch, by index; the indexes continue after the endpoints'."""
        if self.component.in_switch is not None:
            return []
        return [address for ends in self._ends.values() for address in (ends.inner, ends.outer)]

    def start_nodes(
        self, kind: str, name: str, own: NodeDirectories, devices: Sequence[Sequence[Path]], *, hugepages: bool
    ) -> None:
        """Starts a node for each function that has processes or ports. Raises ProvisionError.

        Args:
            own: makes the directories that they can write.
            devices: the device nodes of each port, in the order of ``addresses``; empty if none has any.
        """
        if self.component.in_switch is not None:
            return
        directories = self.component.directories(self._session)
        for number, place in enumerate(self._ends):
            of_ports = devices[2 * number : 2 * number + 2]
            pair, hop = place
            writable = own.of_function(pair, hop)
            self._socket_dirs[place] = writable[-1]
            spec = NodeSpec(
                name=self._session.name(f"{name}f{pair}" + (f"x{hop}" if hop > 1 else "")),
                cpus=[self._cpu(place)],
                sockets=writable,
                devices=list(dict.fromkeys(device for port in of_ports for device in port)),
                directories=[own.common, *(path for path in directories if not path.is_relative_to("/usr"))],
                hugepages=hugepages,
                cpu=self.case.cpu_allocations[pair - 1] if self.case.cpu_allocations else None,
            )
            node = make_node(kind, self._session, spec)
            self._undo.append(node.stop)
            self._node_facts[place] = node.start()
            self._nodes[place] = node

    def _cpu(self, place: _Place) -> int:
        """The CPU of a function. One that does not poll runs on its pair's sender, where the kernel works."""
        pair, hop = place
        if self._placement.functions:
            return self._placement.functions[(pair - 1) * self.case.chain + hop - 1]
        return self._placement.endpoints[self.path.leaders[pair - 1]]

    def around(self, attachments: Sequence[Attachment]) -> list[Attachment]:
        """Returns the attachments of endpoints and functions' ports in the order of the path."""
        ordered: list[Attachment] = []
        for (leader, follower), chain in zip(self.path.by_pair(attachments), self.chains, strict=True):
            function = self.functions[leader.pair - 1]
            self._sides[leader.pair] = [(side.interface, side.node.netns) for side in (leader, follower)]
            seen_by_leader, seen_by_follower = self.component.visible_addresses(function, chain)
            row = [replace(leader, peer=seen_by_leader)]
            for hop, (inner, outer) in enumerate(self.path.between(leader.pair), start=1):
                ends = self._ends[leader.pair, hop]
                place = leader.pair, hop
                base = replace(leader, node=self._node_facts[place], socket=None, between=True)
                base = replace(base, socket_dir=self._socket_dirs[place])
                inward = replace(base, index=inner, side="b", address=ends.inner, peer=ends.leader)
                outward = replace(base, index=outer, side="a", address=ends.outer, peer=ends.follower)
                row += [replace(inward, interface=_INTERFACES[0]), replace(outward, interface=_INTERFACES[1])]
            ordered += [*row, replace(follower, peer=seen_by_follower)]
        return [replace(item, segment=number // 2) for number, item in enumerate(ordered)]

    def start(self, context: StartContext) -> None:
        """Starts all functions. Raises ProvisionError."""
        # Ports that serve each other become ready in sequence. Otherwise all start together, and a poller is
        # frozen as soon as it is ready: it would take the CPU time in which the next one starts.
        joined = any(port.serves for port in context.ports.values())
        freezing = self.component.polls and not joined and len(self._nodes) > 1
        try:
            for place, ends in self._ends.items():
                self._start_one(place, ends, context)
                if joined:
                    self._functions[place].await_started()
            for place, function in () if joined else self._functions.items():
                function.await_started()
                if freezing:
                    self._nodes[place].pause()
        finally:
            self.resume()
        self._undo += [self._leave, self.resume]  # a frozen process does not end by a signal

    def _leave(self) -> None:
        for function in self._functions.values():
            function.leave()

    def _start_one(self, place: _Place, ends: Ends, context: StartContext) -> None:
        pair, hop = place
        row = self.path.between(pair)
        between = row[hop - 1] if row else None
        spec = FunctionSpec(
            function=self.functions[pair - 1],
            pair=pair,
            ends=ends,
            inner=None if between is None else context.ports[between[0]],
            outer=None if between is None else context.ports[between[1]],
            node=self._nodes.get(place),
            node_facts=self._node_facts.get(place),
            switch=context.switch,
            indexes=[self.path.ends(pair)[0], *(between or ()), self.path.ends(pair)[1]],
            cpu=self._cpu(place),
            yield_every=self._placement.yield_every,
            mtu=context.mtu,
            work_dir=context.work_dir,
            config=context.config,
            hop=hop,
            hops=self.case.chain,
            counts_control=self.case.counts_hops,
            sides=self._sides[pair],
            sizes=self.case.traffic.sizes,
            flows=self.case.traffic.flows,
        )
        function = make_function(self.component)
        self._functions[place] = function
        self._undo.append(function.stop)
        function.start(self._session, spec)

    def facts(self) -> tuple[FunctionFacts, ...]:
        """Returns the facts of each function, by pair and hop."""
        return tuple(function.facts() for function in self._functions.values())

    def check(self) -> None:
        """Raises ProvisionError if one has died."""
        for function in self._functions.values():
            function.check()

    def forget(self) -> None:
        """Empties the functions' connection tables. Raises ProvisionError."""
        for function in self._functions.values():
            function.forget()

    def counters(self) -> tuple[FunctionCounters, ...]:
        """Returns the counters of each function, by pair and hop, with the memory of its node."""
        return tuple(
            replace(function.counters(), memory_bytes=self._memory(place), **self._cpu_use(place))
            for place, function in self._functions.items()
        )

    def _cpu_use(self, place: _Place) -> dict[str, Any]:
        """Returns the CPU time and the context switches of a function's processes; empty without a node."""
        node = self._nodes.get(place)
        if node is None:
            return {}
        groups = SessionGroup.get(self._session)
        return read_cpu_use(groups.pids(groups.member(node.spec.name)))

    def _memory(self, place: _Place) -> int | None:
        """Returns the memory of a function's node: its group's, else its processes'; None without a node."""
        node = self._nodes.get(place)
        if node is None:
            return None
        groups = SessionGroup.get(self._session)
        group, hierarchy = groups.member(node.spec.name), groups.layout.holding("memory")
        if hierarchy is not None:
            file = "memory.current" if hierarchy.unified else "memory.usage_in_bytes"
            with suppress(OSError, ValueError):
                return int((groups.root.path(hierarchy.path(group)) / file).read_text(encoding="ascii"))
        pages = 0
        for pid in groups.pids(group):
            with suppress(OSError, ValueError, IndexError):
                pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * _PAGE_BYTES

    def freeze(self, pairs: Collection[int]) -> None:
        """Freezes the processes of the functions of these pairs, and lets all others run. Raises ProvisionError."""
        frozen = {place for place in self._nodes if place[0] in pairs}
        for place in frozen ^ self._frozen:
            if place in frozen:
                self._nodes[place].pause()
                self._frozen.add(place)
            else:
                self._nodes[place].resume()
                self._frozen.discard(place)

    def pause(self) -> None:
        """Freezes the functions' processes."""
        for node in self._nodes.values():
            node.pause()

    def resume(self) -> None:
        """Lets the functions' processes run again."""
        for node in self._nodes.values():
            node.resume()


def prove(rig: ExchangeTarget, case: Case, functions: FunctionNodes, connected: Callable[[], None]) -> str | None:
    """Sends frames through each function, in both directions.

    ``connected``: waits until the switch has taken over the ports of all endpoints. Returns None if exactly the
    expected frames came out; else one sentence with the first wrong frame, or with the function's counter that does not
    agree. Raises WorkloadError, ProvisionError: a process, the switch or a function has died.
    """
    functions.forget()  # a table that launches have filled has no room for a proof
    names = case.functions
    proofs = [functions.component.proof(name, ends) for name, ends in zip(names, functions.chains, strict=True)]
    before = functions.counters()
    exchange = Exchange(rig, case)
    try:
        connected()
        for stage in zip(*proofs, strict=True):
            sent, expected = frames_of(case, stage)
            arrived = exchange.exchange(sent, expected)
            for pair, probes in zip(case.path.numbers, stage, strict=True):
                fault = first_wrong(case, f"function {names[pair - 1]} of pair {pair}", pair, probes, arrived)
                if fault is not None:
                    return fault
    finally:
        exchange.end()
    functions.check()
    return _counted(names, proofs, before, functions.counters())


def frames_of(case: Case, stage: Iterable[Sequence[Probe]]) -> tuple[dict[int, list[bytes]], dict[int, int]]:
    """Returns the frames of a stage by their senders' indexes, and how many are expected by the receivers' ones."""
    sent: dict[int, list[bytes]] = {}
    expected: Counter[int] = Counter()
    for pair, probes in zip(case.path.numbers, stage, strict=True):
        leader, follower = case.path.ends(pair)
        for probe in probes:
            sender, receiver = (leader, follower) if probe.forth else (follower, leader)
            sent.setdefault(sender, []).append(probe.frame)
            expected[receiver] += probe.expected is not None
    return sent, dict(expected)


def first_wrong(
    case: Case, subject: str, pair: int, probes: Sequence[Probe], arrived: Mapping[int, Sequence[bytes]]
) -> str | None:
    """Returns a sentence on the first frame that is missing, was changed wrongly, or should not have arrived.

    ``subject``: what is proven, the beginning of the sentence.
    """
    leader, follower = case.path.ends(pair)
    for forth, receiver, way in ((True, follower, "a to b"), (False, leader, "b to a")):
        # Answers of the nodes' kernels do not belong to the proof.
        came = Counter(data for data in arrived[receiver] if proof.is_proof(data))
        wanted = Counter(probe.expected for probe in probes if probe.forth is forth and probe.expected is not None)
        strange = list((came - wanted).elements())
        of_way = [probe for probe in probes if probe.forth is forth]
        for number, probe in enumerate(of_way, start=1):
            right = probe.expected is None or came[probe.expected] >= wanted[probe.expected]
            other = next(
                (data for data in strange if proof.frame_number(data) == proof.frame_number(probe.frame)), None
            )
            if right and other is None:
                continue
            came_as = "did not arrive" if other is None else f"arrived as {proof.describe(other)}"
            return (
                f"{subject}: frame {number} of {len(of_way)} from {way}"
                f" ({proof.describe(probe.frame)}) {probe.says}, but {came_as}"
            )
        if strange:
            return f"{subject}: an unexpected frame arrived: {proof.describe(strange[0])}"
    return None


def _counted(
    names: Sequence[str],
    proofs: Sequence[Sequence[Sequence[Probe]]],
    before: Sequence[FunctionCounters],
    after: Sequence[FunctionCounters],
) -> str | None:
    """Returns a sentence if the functions of a pair counted another number of ACL-dropped frames than were denied."""
    for pair, stages in enumerate(proofs, start=1):
        acl_drops = sum(probe.expected is None for stage in stages for probe in stage)
        readings = [
            (first.acl_drops, last.acl_drops) for first, last in zip(before, after, strict=True) if last.pair == pair
        ]
        if any(None in reading for reading in readings):
            continue
        counted = sum((last or 0) - (first or 0) for first, last in readings)
        if counted != acl_drops:
            name = names[pair - 1]
            return (
                f"function {name} of pair {pair}: it counted {counted} ACL-dropped frames, and {acl_drops} were denied"
            )
    return None
