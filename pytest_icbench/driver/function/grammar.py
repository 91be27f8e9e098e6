# SPDX-License-Identifier: BSD-3-Clause
"""The grammar of functions: parts joined by ``+``, such as ``nat+acl100+deny30``, and what proves them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from pytest_icbench.driver.function.proof import FREE_FRAMES, FREE_PORT, TTL, frame, route_frame
from pytest_icbench.driver.function.protocol import Ends, Function, Probe
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.denial import Denial, denied_before
from pytest_icbench.model.endpoint import Address
from pytest_icbench.wording import THOUSANDS

P = TypeVar("P")
_PART = re.compile(r"(?P<word>acl|set|deny|police|shape|table)(?P<number>[1-9]\d*)(?P<unit>[kM]?(?:bit)?)", re.ASCII)
#: Numbers that a part may have. A slower policer or shaper would drop frames of the proof.
_RANGES = {
    "acl": (1, 10_000),
    "set": (1, 50_000),
    "deny": (1, 100),
    "police": (5_000, 10_000_000),
    # Less has no room for the proof; more, in the kernel's usual 262,144 buckets, makes lists that it calls too long.
    "table": (1_000, 2_000_000),
}
_SHAPE_BITS = (2_000_000, 40_000_000_000)
#: The UDP port of the first rule; the workload's own, 9, is in none.
FIRST_PORT = 10_000
#: The first UDP port of frames of side b that nobody asked for, and the workload's own.
UNASKED_PORT, OWN_PORT = 5000, 9
#: Addresses of a sender's flows, and the ports for them at an address that they are translated to: the kernel gives a
#: source port below 512, as the workload's is, another one of these 511.
SOURCES = "100.64.0.0/10"
POOL_FIRST, POOL_LAST = 1024, 65535
#: Ports of the pool's address for flows.
POOL_PORTS = POOL_LAST - POOL_FIRST + 1
#: A policer's burst, as a share of a second's frames, and at least this many.
_BURST_SHARE, _BURST_LEAST = 0.005, 50
#: Bytes of a frame that the kernel does not count: its FCS.
FCS_BYTES = 4
#: Frames of a proof for the first ports of an access list. The last port has one more.
_LISTED_FRAMES = 100
#: Last byte of the address that a NAT shows.
_POOL_AT = 16


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a function such as ``nat+acl100+deny30``.

    Attributes:
        nat: whether sources are translated to the pool's address.
        rules: rules of the access list, one after the other.
        elements: elements of the access list as a set.
        deny_percent: share of rules or elements that deny, rounded down; the others accept. Of a firewall without them,
            the share of side b's frames that nobody asked for.
        police_pps: frames per second from side a that pass.
        shape_bits: bits per second towards side b, without FCS.
        firewall: whether side b may only answer.
        sessions: entries that the table of connections has at most; 0 leaves it as the host has it.
    """

    nat: bool = False
    rules: int = 0
    elements: int = 0
    deny_percent: int = 100
    police_pps: int = 0
    shape_bits: int = 0
    firewall: bool = False
    sessions: int = 0

    @classmethod
    def parse(cls, function: str) -> Self | None:
        """Returns the parts of a function's name; None if it is not valid.

        A part is invalid if it is unknown, repeated, out of range or without the part that it needs. So is an access
        list of which less than one port is denied, because no frame could prove it.
        """
        words = function.split("+")
        numbers = _parse_numbers(words)
        if numbers is None or len(set(words)) < len(words) or not _fit_together(words, numbers):
            return None
        return cls(
            nat="nat" in words,
            rules=numbers.get("acl", 0),
            elements=numbers.get("set", 0),
            deny_percent=numbers.get("deny", 100),
            police_pps=numbers.get("police", 0),
            shape_bits=numbers.get("shape", 0),
            firewall="firewall" in words,
            sessions=numbers.get("table", 0),
        )

    @property
    def listed(self) -> int:
        """The number of UDP ports in the access list."""
        return self.rules or self.elements

    @property
    def stateful(self) -> bool:
        """Whether it keeps sessions."""
        return self.nat or self.firewall

    def denies(self, place: int) -> bool:
        """Whether the port at a place of the access list is denied; the denied ones are spread evenly over it."""
        return denied_before(place + 1, self.deny_percent) > denied_before(place, self.deny_percent)

    @property
    def police_burst(self) -> int:
        """The frames that its policer lets pass at once."""
        return max(_BURST_LEAST, round(self.police_pps * _BURST_SHARE))

    @property
    def denial(self) -> Denial | None:
        """The share of flows that it denies; None if its name does not say, or if it drops other frames, too."""
        if self.deny_percent == 100 or self.police_pps or self.shape_bits or (self.firewall and self.listed):
            return None
        if self.firewall:
            return Denial(self.deny_percent, 100, UNASKED_PORT, ("ba",))
        return Denial(self.deny_percent, self.listed, FIRST_PORT)


def _parse_numbers(words: Sequence[str]) -> dict[str, int] | None:
    """Returns the numbers of parts by their words; None if a part is unknown, repeated or out of range."""
    numbers: dict[str, int] = {}
    for word in words:
        if word in ("route", "nat", "firewall"):
            continue
        match = _PART.fullmatch(word)
        number = None if match is None else _parse_number(match)
        if match is None or number is None or match["word"] in numbers:
            return None
        numbers[match["word"]] = number
    return numbers


def _fit_together(words: Sequence[str], numbers: Mapping[str, int]) -> bool:
    """Whether each part has the part that it needs and excludes no other."""
    lists = {"acl", "set"} & numbers.keys()
    if len(lists) > 1 or {"police", "shape"} <= numbers.keys():
        return False
    if "deny" in numbers and not lists and "firewall" not in words:
        return False
    if "table" in numbers and not {"nat", "firewall"} & set(words):
        return False
    return not lists or numbers[lists.pop()] * numbers.get("deny", 100) >= 100


def _parse_number(match: re.Match[str]) -> int | None:
    """Returns the number of a part in its unit; None if it has no such unit or is out of range."""
    word, unit = match["word"], match["unit"]
    if word == "shape":
        bits = int(match["number"]) * THOUSANDS[unit.removesuffix("bit")] if unit.endswith("bit") else 0
        return bits if _SHAPE_BITS[0] <= bits <= _SHAPE_BITS[1] else None
    if unit not in THOUSANDS or (unit and word not in ("police", "table")):
        return None
    number = int(match["number"]) * THOUSANDS[unit]
    least, most = _RANGES[word]
    return number if least <= number <= most else None


class ParsedFunction(Function, Generic[P]):
    """A driver whose functions have names of a grammar, read by ``parse``."""

    @classmethod
    def parse(cls, function: str) -> P | None:
        """Returns the meaning of a function's name; None if another component makes it."""
        raise NotImplementedError

    @classmethod
    def parse_own(cls, function: str) -> P:
        """Returns the meaning of a function's name. Raises ProvisionError if another component makes it."""
        parsed = cls.parse(function)
        if parsed is None:
            raise ProvisionError(f"{cls.name} has no function '{function}'; it has {cls.help}")
        return parsed

    @classmethod
    def has(cls, function: str) -> bool:
        return cls.parse(function) is not None


class PartsFunction(ParsedFunction[Parts]):
    """A driver whose functions are ``Parts``."""

    @classmethod
    def denial(cls, function: str) -> Denial | None:
        return cls.parse_own(function).denial

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return POOL_PORTS if cls.parse_own(function).nat else None

    @classmethod
    def only_answers(cls, function: str) -> bool:
        return cls.parse_own(function).stateful


def pool_of(ends: Ends) -> Address:
    """Returns the address that a NAT shows to side b: of the network of the pair, behind the function's outer port."""
    network, _, _ = ends.leader.ip.rpartition(".")
    return Address(ip=f"{network}.{_POOL_AT}", mac=ends.outer.mac, prefix=ends.leader.prefix)


class RouterFunction(PartsFunction):
    """A driver whose functions route between two subnets; the same frames prove it, whatever makes it.

    Attributes:
        word: the part that selects this driver where another one has the function too (``vpp+nat``); empty: none does.
    """

    word: ClassVar[str] = ""

    @classmethod
    def can_make(cls, parts: Parts) -> bool:  # noqa: ARG003 - as drivers override it
        """Whether the driver can make a function of these parts."""
        return True

    @classmethod
    def parse(cls, function: str) -> Parts | None:
        words = function.split("+")
        if cls.word and cls.word in words:
            words.remove(cls.word)
        parts = Parts.parse("+".join(words))
        return parts if parts is not None and cls.can_make(parts) else None

    @classmethod
    def visible_addresses(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses, or the pool's, behind the function's own MAC addresses."""
        leader = pool_of(ends).ip if cls.parse_own(function).nat else ends.leader.ip
        prefix = ends.leader.prefix
        return Address(ends.follower.ip, ends.inner.mac, prefix), Address(leader, ends.outer.mac, prefix)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames of side a to ports within and without the access list, then side b's answers to them."""
        parts = cls.parse_own(function)
        pool = pool_of(ends).ip if parts.nat else None
        seen_by_leader, seen_by_follower = cls.visible_addresses(function, ends)
        ttl = f"with TTL {TTL - ends.hops} and new MAC addresses"
        to_b = f"has to leave from {pool or ends.leader.ip} {ttl}"
        forth: list[Probe] = []
        back: list[Probe] = []
        listed = sorted({*range(min(parts.listed, _LISTED_FRAMES)), *([parts.listed - 1] if parts.listed else [])})
        ports = [(FREE_PORT + number, False) for number in range(FREE_FRAMES)]
        ports += [(FIRST_PORT + place, parts.denies(place)) for place in listed]
        for port, denied in ports:
            sent = frame(ends.leader, seen_by_leader, port)
            out = route_frame(sent, ends.outer.mac, ends.follower.mac, source_ip=pool, hops=ends.hops)
            forth.append(Probe(True, sent, None if denied else out, "has to be denied" if denied else to_b))
        for number in range(FREE_FRAMES if parts.firewall else 0):
            sent = frame(ends.follower, seen_by_follower, UNASKED_PORT + number)
            back.append(Probe(False, sent, None, "has to be denied: nobody asked"))
        for number in range(FREE_FRAMES):
            sent = frame(ends.follower, seen_by_follower, FREE_PORT + number)
            target = ends.leader.ip if pool else None
            out = route_frame(sent, ends.inner.mac, ends.leader.mac, target_ip=target, hops=ends.hops)
            back.append(Probe(False, sent, out, f"has to reach {ends.leader.ip} {ttl}"))
        return forth, back
