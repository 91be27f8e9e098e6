# SPDX-License-Identifier: BSD-3-Clause
"""``subscribersN``: one firewall per subscriber, each a router of the kernel in its own network namespace.

All firewalls are between the two ports of one node. A frame of side a passes the firewall of its source address, a
frame of side b that of its destination: flow k is the client of subscriber k + 1. A BPF classifier on each port
selects the link, and a filter on each link redirects frames back to the port.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.function_parts import SOURCES, ParsedFunction, Parts, nat_address
from pytest_icbench.driver.function.linux import LinuxFunction, make_router, ruleset
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe
from pytest_icbench.errors import IcbenchError, ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import bpf, links
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.subscribers import MOST_SUBSCRIBERS, Subscribers

#: Indexes of the first links towards side a and side b in the node.
_INWARD, _OUTWARD = 10_000, 20_000
_CLIENTS = ipaddress.IPv4Network(SOURCES).network_address
#: Places of source and destination in a frame.
_SOURCE_AT, _TARGET_AT = 26, 30
_LINKS = ("eth0", "eth1")
_TOOL_S = 20.0


def client(ends: Ends, number: int) -> Address:
    """Returns the address of a subscriber's client, counted from 0: the source of that flow of side a."""
    return replace(ends.leader, ip=str(_CLIENTS + number)) if number else ends.leader


class SubscribersFunction(ParsedFunction[Subscribers]):
    """Firewalls between the ports of one node, one for each subscriber."""

    name = "subscribers"
    ports = (VETH,)
    help = (
        f"subscribersN (N separate firewalls, 1 to {MOST_SUBSCRIBERS:,}, flow k through the k-th), stateful or with"
        " +firewall, +aclN, +setN, +denyP as linux has them"
    )

    def __init__(self) -> None:
        self._netns = ""
        self._made: list[str] = []
        self._session: HostSession | None = None

    @classmethod
    def parse(cls, function: str) -> Subscribers | None:
        subscribers = Subscribers.of(function)
        parts = None if subscribers is None else Parts.parse(subscribers.each)
        if parts is None or not parts.only(("rules", "elements", "deny_percent", "firewall")):
            return None
        return subscribers if parts.listed or (parts.firewall and parts.deny_percent == 100) else None

    @classmethod
    def required_memory_mib(cls, function: str) -> int:
        """Returns the memory of all namespaces, links and rules: about 1 MiB per subscriber."""
        return cls.memory_mib + cls.parse_own(function).count

    @classmethod
    def visible_addresses(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses with the firewall's MAC addresses."""
        return LinuxFunction.visible_addresses(cls.parse_own(function).each, ends)

    @classmethod
    def only_answers(cls, function: str) -> bool:
        return LinuxFunction.only_answers(cls.parse_own(function).each)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns one frame per subscriber for each kind of frame in the proof of a single firewall."""
        asked = cls.parse_own(function)
        stages: list[list[Probe]] = [[], []]
        for number in range(asked.count):
            whole = LinuxFunction.proof(asked.each, replace(ends, leader=client(ends, number)))
            for stage, probes in zip(stages, whole, strict=True):
                # The first of each: the first answer is to the first frame.
                for probe in {probe.says: probe for probe in reversed(probes)}.values():
                    expected = None if probe.expected is None else proof.set_number(probe.expected, len(stage))
                    stage.append(replace(probe, frame=proof.set_number(probe.frame, len(stage)), expected=expected))
        return stages

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        """Returns the versions of the kernel and of nft. Raises Unsupported with the package that is missing."""
        return replace(LinuxFunction().probe(session, self.parse_own(function).each), component=self.name)

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Makes all firewalls. Raises ProvisionError with the number of the one that cannot be made."""
        inner, outer = spec.interfaces
        self._session, self._spec, self._netns = session, spec, spec.netns
        asked = self.parse_own(spec.function)
        count = asked.count
        rules = ruleset(Parts.parse(asked.each) or Parts(), nat_address(spec.ends), *_LINKS)
        ports = ((inner, _SOURCE_AT, _INWARD), (outer, _TARGET_AT, _OUTWARD))
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
        """Makes the firewall of a subscriber, with a link to each side."""
        spec = self.started_spec()
        assert spec.node_facts is not None
        node = spec.node_facts.name.removeprefix(
            session.name("")
        )  # unique, because two rigs can exist at the same time
        netns = links.create_netns(session, f"{node}s{number}")
        self._made.append(netns)
        for first, name, address, neighbour in (
            (_INWARD, _LINKS[0], ends.inner, ends.leader),
            (_OUTWARD, _LINKS[1], ends.outer, ends.follower),
        ):
            there = links.End(f"s{first + number}", self._netns, index=first + number)
            here = links.End(name, netns, address, (neighbour,))
            links.create_pair(session, there, here, mtu=spec.mtu)
        make_router(netns, ends, *_LINKS)
        session.spawner.run(["nft", "-f", "-"], timeout_s=_TOOL_S, netns=netns, input=rules)

    def check(self) -> None:
        """Raises ProvisionError if a port or a firewall's link is gone."""
        spec = self.started_spec()
        inner, outer = spec.interfaces
        count = self.parse_own(spec.function).count
        there = {name for name, _ in self._links()}
        for name in (inner, outer, *(f"s{first + k}" for k in range(count) for first in (_INWARD, _OUTWARD))):
            if name not in there:
                raise ProvisionError(f"{spec.label}: its link {name} is gone: it was removed")

    def _links(self) -> list[tuple[str, dict[str, int]]]:
        """Returns the names and counters of the node's links."""
        with links.netlink(self._netns, doing="the counters of a function") as route:
            return [(link.get_attr("IFLA_IFNAME"), dict(link.get_attr("IFLA_STATS64"))) for link in route.get_links()]

    def counters(self) -> FunctionCounters:
        """Returns what its ports carried, and what each firewall gave to side b."""
        spec = self.started_spec()
        inner, outer = spec.interfaces
        count = self.parse_own(spec.function).count
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
            raise ProvisionError(f"{spec.label}: its link {error.args[0]} is gone: it was removed") from None

    def stop(self) -> None:
        """Removes the firewalls. Idempotent."""
        while self._made and self._session is not None:
            netns = self._made.pop()
            with suppress(IcbenchError):  # the journal keeps it
                links.delete_netns(self._session, netns)
