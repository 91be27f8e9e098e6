# SPDX-License-Identifier: BSD-3-Clause
"""Parts of functions: ``nat``, ``acl10`` …, joined by ``+`` to ``nat+acl100+deny30``, and what proves them. Pure."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Self, TypeVar

from pytest_icbench.driver.function.proof import FREE_FRAMES, FREE_PORT, TTL, frame, route_frame
from pytest_icbench.driver.function.protocol import Ends, Function, Probe
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.acl_drop import AclDrop, acl_drop_before
from pytest_icbench.model.endpoint import Address
from pytest_icbench.wording import THOUSANDS

P = TypeVar("P")
#: Parts with a number: its field of ``Parts`` and its range. A slower policer or shaper would drop frames of the proof.
_NUMBERED = {
    "acl": ("rules", 1, 10_000),
    "set": ("elements", 1, 50_000),
    "deny": ("deny_percent", 1, 100),
    "police": ("police_pps", 5_000, 10_000_000),
    "shape": ("shape_bits", 2_000_000, 40_000_000_000),
    # A smaller table has no room for the proof. In a larger one the kernel's usual 262,144 buckets have too long lists.
    "table": ("sessions", 1_000, 2_000_000),
}
_PART = re.compile(rf"(?P<word>{'|'.join(_NUMBERED)})(?P<number>[1-9]\d*)(?P<unit>[kM]?(?:bit)?)", re.ASCII)
#: UDP port of the first rule. No rule has the workload's port 9.
FIRST_PORT = 10_000
#: The first UDP port of unsolicited frames of side b, and the workload's port.
UNSOLICITED_PORT, OWN_PORT = 5000, 9
#: Source addresses of flows, and their ports after NAT. The kernel translates a source port below 512, like the
#: workload's, to another one of these 511 unless it gets a range.
SOURCES = "100.64.0.0/10"
POOL_FIRST, POOL_LAST = 1024, 65535
#: A policer's burst as a share of a second's frames, and its smallest size in frames.
_BURST_SHARE, _BURST_LEAST = 0.005, 50
#: Frames of a proof for the first ports of an access list. The last port has one more.
_LISTED_FRAMES = 100
#: Last byte of the address that a NAT shows.
_POOL_AT = 16


@dataclass(frozen=True, slots=True)
class Parts:
    """A function made of parts, such as ``nat+acl100+deny30``.

    Attributes:
        nat: whether sources are translated to the pool's address.
        rules: number of rules in a linear access list.
        elements: number of elements in an access list that is a set.
        deny_percent: share of rules or elements that deny, rounded down; the rest accept. For a firewall without an
            access list, the share of unsolicited frames of side b.
        police_pps: frames per second from side a that pass.
        shape_bits: bits per second towards side b, without FCS.
        firewall: whether side b may only answer.
        sessions: size of the connection table; 0: the host's.
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
        list that denies less than one port, because no frame could prove it.
        """
        words = function.split("+")
        numbers = _parse_numbers(words)
        if numbers is None or len(set(words)) < len(words) or not _fit_together(words, numbers):
            return None
        fields = {_NUMBERED[word][0]: number for word, number in numbers.items()}
        return cls(nat="nat" in words, firewall="firewall" in words, **fields)

    def only(self, names: Iterable[str]) -> bool:
        """Whether it has no part but those of these fields."""
        return self == replace(type(self)(), **{name: getattr(self, name) for name in names})

    @property
    def listed(self) -> int:
        """The number of UDP ports in the access list."""
        return self.rules or self.elements

    @property
    def stateful(self) -> bool:
        """Whether it keeps sessions."""
        return self.nat or self.firewall

    def denies(self, place: int) -> bool:
        """Whether the port at a place of the access list is denied. ACL-dropped ports are spread evenly."""
        return acl_drop_before(place + 1, self.deny_percent) > acl_drop_before(place, self.deny_percent)

    @property
    def police_burst(self) -> int:
        """The frames that its policer lets pass at once."""
        return max(_BURST_LEAST, round(self.police_pps * _BURST_SHARE))

    @property
    def acl_drop(self) -> AclDrop | None:
        """The share of flows that the function denies; None without one, or if other frames are dropped, too."""
        if self.deny_percent == 100 or self.police_pps or self.shape_bits or (self.firewall and self.listed):
            return None
        if self.firewall:
            return AclDrop(self.deny_percent, 100, UNSOLICITED_PORT, ("ba",))
        return AclDrop(self.deny_percent, self.listed, FIRST_PORT)


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
    """Returns the number of a part, in its unit; None if the unit is invalid or the number out of range."""
    word, unit = match["word"], match["unit"]
    if unit.endswith("bit") != (word == "shape") or (unit and word not in ("police", "shape", "table")):
        return None
    number = int(match["number"]) * THOUSANDS[unit.removesuffix("bit")]
    _, least, most = _NUMBERED[word]
    return number if least <= number <= most else None


class ParsedFunction(Function, Generic[P]):
    """A driver whose functions have names of a grammar, read by ``parse``."""

    @classmethod
    @abstractmethod
    def parse(cls, function: str) -> P | None:
        """Returns the meaning of a function's name; None if another component makes it."""

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
    def acl_drop(cls, function: str) -> AclDrop | None:
        return cls.parse_own(function).acl_drop

    @classmethod
    def most_flows(cls, function: str) -> int | None:
        return POOL_LAST - POOL_FIRST + 1 if cls.parse_own(function).nat else None

    @classmethod
    def only_answers(cls, function: str) -> bool:
        return cls.parse_own(function).stateful


def nat_address(ends: Ends) -> Address:
    """Returns the NAT address that side b sees: in the pair's network, with the MAC address of the outer port."""
    network, _, _ = ends.leader.ip.rpartition(".")
    return Address(ip=f"{network}.{_POOL_AT}", mac=ends.outer.mac, prefix=ends.leader.prefix)


class RouterFunction(PartsFunction):
    """A driver whose functions route between two subnets; the same frames prove it, whatever makes it.

    ``word``: the part that selects this driver where another one has the function too (``vpp+nat``); empty: none does.
    ``makes``: the fields of ``Parts`` that it makes: it has no function with another part.
    """

    word: ClassVar[str] = ""
    makes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def can_make(cls, parts: Parts) -> bool:
        """Whether the driver can make a function of these parts."""
        return parts.only(cls.makes)

    @classmethod
    def parse(cls, function: str) -> Parts | None:
        words = function.split("+")
        if cls.word and cls.word in words:
            words.remove(cls.word)
        parts = Parts.parse("+".join(words))
        return parts if parts is not None and cls.can_make(parts) else None

    @classmethod
    def visible_addresses(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses (side a's after NAT) with the function's MAC addresses."""
        leader = nat_address(ends).ip if cls.parse_own(function).nat else ends.leader.ip
        prefix = ends.leader.prefix
        return Address(ends.follower.ip, ends.inner.mac, prefix), Address(leader, ends.outer.mac, prefix)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames of side a to ports inside and outside the access list, then side b's answers."""
        parts = cls.parse_own(function)
        pool = nat_address(ends).ip if parts.nat else None
        seen_by_leader, seen_by_follower = cls.visible_addresses(function, ends)
        ttl = f"with TTL {TTL - ends.hops} and new MAC addresses"
        to_b = f"has to leave from {pool or ends.leader.ip} {ttl}"
        forth: list[Probe] = []
        back: list[Probe] = []
        listed = sorted({*range(min(parts.listed, _LISTED_FRAMES)), *([parts.listed - 1] if parts.listed else [])})
        ports = [(FREE_PORT + number, False) for number in range(FREE_FRAMES)]
        ports += [(FIRST_PORT + place, parts.denies(place)) for place in listed]
        for port, acl_drops in ports:
            sent = frame(ends.leader, seen_by_leader, port)
            out = route_frame(sent, ends.outer.mac, ends.follower.mac, source_ip=pool, hops=ends.hops)
            forth.append(Probe(True, sent, None if acl_drops else out, "has to be denied" if acl_drops else to_b))
        for number in range(FREE_FRAMES if parts.firewall else 0):
            sent = frame(ends.follower, seen_by_follower, UNSOLICITED_PORT + number)
            back.append(Probe(False, sent, None, "has to be denied: it is unsolicited"))
        for number in range(FREE_FRAMES):
            sent = frame(ends.follower, seen_by_follower, FREE_PORT + number)
            target = ends.leader.ip if pool else None
            out = route_frame(sent, ends.inner.mac, ends.leader.mac, target_ip=target, hops=ends.hops)
            back.append(Probe(False, sent, out, f"has to reach {ends.leader.ip} {ttl}"))
        return forth, back
