# SPDX-License-Identifier: BSD-3-Clause
"""A firewall a subscriber: many routers of the kernel beside each other, each in a network namespace of its own.

All are in one node, between its two ports. A frame of side a goes through the firewall of its source address, a frame
of side b through that of its destination: flow k is the client of subscriber k + 1. Nothing else is between: a
classifier (BPF) on either port picks the link, and a filter on each link leads back to the port.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pytest_icbench.driver.function import frames
from pytest_icbench.driver.function.linux import LinuxFunction, make_router, pool_of
from pytest_icbench.driver.function.linux_parts import SOURCES, Parts, ruleset
from pytest_icbench.driver.function.protocol import VETH, Ends, Function, FunctionSpec, Probe
from pytest_icbench.errors import IcbenchError, ProvisionError
from pytest_icbench.host.net import bpf, links
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.endpoint import Address, Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.subscribers import MOST_SUBSCRIBERS, Subscribers

#: Indexes of the first links towards side a and side b in the node.
_INWARD, _OUTWARD = 10_000, 20_000
_CLIENTS = ipaddress.IPv4Network(SOURCES).network_address
#: Places of source and destination in a frame.
_SOURCE_AT, _TARGET_AT = 26, 30
_LINKS = ("eth0", "eth1")
_TOOL_S = 20.0


def _parsed(function: str) -> Subscribers | None:
    """Returns the subscribers of a name, each of whom has a firewall; None for another name."""
    subscribers = Subscribers.of(function)
    parts = None if subscribers is None else Parts.of(subscribers.each)
    if parts is None or replace(parts, rules=0, elements=0, deny_percent=100, firewall=False) != Parts():
        return None
    return subscribers if parts.listed or (parts.firewall and parts.deny_percent == 100) else None


def client(ends: Ends, number: int) -> Address:
    """Returns the client of a subscriber, counted from 0: the address of that flow of side a."""
    return replace(ends.leader, ip=str(_CLIENTS + number)) if number else ends.leader


class SubscribersFunction(Function):
    """Firewalls between the ports of one node, one for each subscriber."""

    name = "subscribers"
    ports = (VETH,)
    help = (
        f"subscribersN (N firewalls of their own, 1 to {MOST_SUBSCRIBERS:,}, flow k through the k-th), stateful or with"
        " +firewall, +aclN, +setN, +denyP as linux has them"
    )

    def __init__(self) -> None:
        self._spec: FunctionSpec | None = None
        self._netns = ""
        self._made: list[str] = []
        self._facts = FunctionFacts(self.name)
        self._session: HostSession | None = None

    @classmethod
    def has(cls, function: str) -> bool:
        return _parsed(function) is not None

    @classmethod
    def _of(cls, function: str) -> Subscribers:
        parsed = _parsed(function)
        if parsed is None:
            raise ProvisionError(f"{cls.name} has no function '{function}'; it has {cls.help}")
        return parsed

    @classmethod
    def memory_mib_of(cls, function: str) -> int:
        """Returns that of all namespaces, links and rules: about a MiB each."""
        return cls.memory_mib + cls._of(function).count

    @classmethod
    def seen(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns what each firewall shows: the sides' IP addresses behind its own MAC addresses."""
        return LinuxFunction.seen(cls._of(function).each, ends)

    @classmethod
    def only_answers(cls, function: str) -> bool:
        return LinuxFunction.only_answers(cls._of(function).each)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns, for every subscriber, one frame of each kind that the proof of a single firewall has."""
        asked = cls._of(function)
        stages: list[list[Probe]] = [[], []]
        for number in range(asked.count):
            whole = LinuxFunction.proof(asked.each, replace(ends, leader=client(ends, number)))
            for stage, probes in zip(stages, whole, strict=True):
                # The first of each: the first answer is to the first frame.
                for probe in {probe.says: probe for probe in reversed(probes)}.values():
                    expected = None if probe.expected is None else frames.numbered(probe.expected, len(stage))
                    stage.append(replace(probe, frame=frames.numbered(probe.frame, len(stage)), expected=expected))
        return stages

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns the versions of the kernel and of nft. Raises Unsupported with the package that is missing."""
        return replace(LinuxFunction().probe(session, self._of(function).each), component=self.name)

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Makes all firewalls. Raises ProvisionError with the number of the one that cannot be made."""
        _, inner, outer = spec.with_ports()
        if not isinstance(inner, Veth) or not isinstance(outer, Veth) or spec.node_facts is None:
            raise ProvisionError(f"function {spec.function} needs kernel interfaces")
        self._session, self._spec, self._netns = session, spec, spec.node_facts.netns
        asked = self._of(spec.function)
        count = asked.count
        rules = ruleset(Parts.of(asked.each) or Parts(), pool_of(spec.ends), *_LINKS)
        ports = ((inner.interface, _SOURCE_AT, _INWARD), (outer.interface, _TARGET_AT, _OUTWARD))
        for number in range(count):
            try:
                self._make(session, replace(spec.ends, leader=client(spec.ends, number)), number, rules)
            except IcbenchError as error:
                raise ProvisionError(f"{spec.label}: firewall {number + 1:,} of {count:,}: {error}") from None
        for port, offset, first in ports:
            bpf.gather_frames(range(first, first + count), port, self._netns)
            bpf.add_clsact(port, self._netns)
            program = bpf.redirect_by_address(offset, int(_CLIENTS), count, first)
            with bpf.load_program("classifier", program, name="redirect_by_address") as descriptor:
                bpf.attach_classifier(port, descriptor, self._netns)
        self._facts = replace(self.probe(session, spec.function), config={"nft": rules, "subscribers": count})

    def _make(self, session: HostSession, ends: Ends, number: int, rules: str) -> None:
        """Makes the firewall of a subscriber, with a link to either side."""
        assert self._spec is not None
        assert self._spec.node_facts is not None
        node = self._spec.node_facts.name.removeprefix(session.name(""))  # two rigs may be there at once
        netns = links.create_netns(session, f"{node}s{number}")
        self._made.append(netns)
        for first, name, address, neighbour in (
            (_INWARD, _LINKS[0], ends.inner, ends.leader),
            (_OUTWARD, _LINKS[1], ends.outer, ends.follower),
        ):
            there = links.End(f"s{first + number}", self._netns, index=first + number)
            here = links.End(name, netns, address, (neighbour,))
            links.create_pair(session, there, here, mtu=self._spec.mtu)
        make_router(netns, ends, *_LINKS)
        session.spawner.run(["nft", "-f", "-"], timeout_s=_TOOL_S, netns=netns, input=rules)

    def facts(self) -> FunctionFacts:
        return self._facts

    def _ports(self) -> tuple[FunctionSpec, str, str]:
        spec = self._spec
        if spec is None or not isinstance(spec.inner, Veth) or not isinstance(spec.outer, Veth):
            raise ProvisionError("the function was not started")
        return spec, spec.inner.interface, spec.outer.interface

    def check(self) -> None:
        """Raises ProvisionError if a port or a firewall's link is gone."""
        spec, inner, outer = self._ports()
        count = self._of(spec.function).count
        there = {name for name, _ in self._links()}
        for name in (inner, outer, *(f"s{first + k}" for k in range(count) for first in (_INWARD, _OUTWARD))):
            if name not in there:
                raise ProvisionError(f"{spec.label} has lost its link {name}")

    def _links(self) -> list[tuple[str, dict[str, int]]]:
        """Returns the names and counters of the node's links."""
        with links.netlink(self._netns, doing="the counters of a function") as route:
            return [(link.get_attr("IFLA_IFNAME"), dict(link.get_attr("IFLA_STATS64"))) for link in route.get_links()]

    def counters(self) -> FunctionCounters:
        """Returns what its ports carried, and what each firewall gave to side b."""
        spec, inner, outer = self._ports()
        count = self._of(spec.function).count
        counted = dict(self._links())
        try:
            return FunctionCounters(
                spec.pair,
                taken=int(counted[inner]["rx_packets"]),
                given=int(counted[outer]["tx_packets"]),
                hop=spec.hop,
                given_each=tuple(int(counted[f"s{_OUTWARD + number}"]["rx_packets"]) for number in range(count)),
            )
        except KeyError as error:
            raise ProvisionError(f"{spec.label} has lost its link {error.args[0]}") from None

    def stop(self) -> None:
        """Removes the firewalls. Idempotent."""
        while self._made and self._session is not None:
            netns = self._made.pop()
            with suppress(IcbenchError):  # the journal keeps it
                links.delete_netns(self._session, netns)
