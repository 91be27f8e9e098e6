# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a function that the kernel makes, and the rules for them: nftables and HTB. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from pytest_icbench.model.denial import Denial, denied_before
from pytest_icbench.model.endpoint import Address
from pytest_icbench.wording import THOUSANDS

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
_POOL_FIRST, _POOL_LAST = 1024, 65535
#: Ports of the pool's address for flows.
POOL_PORTS = _POOL_LAST - _POOL_FIRST + 1
#: Frames of the longest queue of a shaper.
QUEUE_FRAMES = 100
#: A policer's burst, as a share of a second's frames, and at least this many.
_BURST_SHARE, _BURST_LEAST = 0.005, 50
#: Bytes of a frame that the kernel does not count: its FCS.
FCS_BYTES = 4


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
    def of(cls, function: str) -> Self | None:
        """Returns the parts of a function.

        None if one is unknown, repeated, out of range or without its other, or if the share of an access list that is
        denied is not even one port: nothing could prove it.
        """
        words = function.split("+")
        if len(set(words)) < len(words):
            return None
        numbers: dict[str, int] = {}
        for word in words:
            if word in ("route", "nat", "firewall"):
                continue
            match = _PART.fullmatch(word)
            number = None if match is None else _number(match)
            if match is None or number is None or match["word"] in numbers:
                return None
            numbers[match["word"]] = number
        lists = {"acl", "set"} & numbers.keys()
        stateful = {"nat", "firewall"} & set(words)
        if (
            len(lists) > 1
            or ("deny" in numbers and not lists and "firewall" not in words)
            or {"police", "shape"} <= numbers.keys()
        ):
            return None
        if "table" in numbers and not stateful:
            return None
        if lists and numbers[lists.pop()] * numbers.get("deny", 100) < 100:
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


def _number(match: re.Match[str]) -> int | None:
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


def ruleset(parts: Parts, pool: Address, inner: str, outer: str) -> str:
    """Returns the rules for ``nft -f``; empty for a plain router.

    Args:
        pool: the address that sources are translated to.
        inner, outer: names of the function's interfaces.
    """
    lines = ["table ip icbench {", "  counter denied {}"]
    if parts.listed:
        lines += ["  chain refused { counter name denied drop; }"]
    rules: list[str] = []
    if parts.police_pps:
        limit = f"limit rate over {parts.police_pps}/second burst {parts.police_burst} packets"
        rules.append(f'iifname "{inner}" {limit} counter name denied drop')
    rules += [
        f"udp dport {FIRST_PORT + place} {'goto refused' if parts.denies(place) else 'accept'}"
        for place in range(parts.rules)
    ]
    if parts.elements:
        elements = ", ".join(
            f"{FIRST_PORT + place} : {'goto refused' if parts.denies(place) else 'accept'}"
            for place in range(parts.elements)
        )
        rules.append(f"udp dport vmap {{ {elements} }}")
    if rules:
        lines += ["  chain forward {", "    type filter hook forward priority 0; policy accept;"]
        lines += [*(f"    {rule}" for rule in rules), "  }"]
    if parts.firewall:
        # A receiver's announcement is none of the denied frames that a launch accounts for.
        apart = f'    iifname "{outer}" ct state new,invalid udp dport {OWN_PORT} drop'
        lines += [
            "  chain entering {",
            "    type filter hook prerouting priority 0; policy accept;",
            *([] if parts.denial is None else [apart]),
            f'    iifname "{outer}" ct state new,invalid counter name denied drop',
            "  }",
        ]
    if parts.nat:
        lines += [
            "  chain leaving {",
            "    type nat hook postrouting priority 100; policy accept;",
            f'    oifname "{outer}" ip saddr {SOURCES} udp sport < 1024 snat to {pool.ip}:{_POOL_FIRST}-{_POOL_LAST}',
            f'    oifname "{outer}" snat to {pool.ip}',
            "  }",
        ]
    return "\n".join([*lines, "}", ""]) if len(lines) > 2 else ""


def accounts(inner: str, outer: str) -> str:
    """Returns the rules that count the workload's control frames from side a: in a chain data are counted without them.

    The window of a control frame, 65535, stands behind the UDP header and the stream. A frame is taken before the table
    of connections sees it, which may have no room for it.
    """
    hooks = (("taken", "prerouting", -300, "iifname", inner), ("given", "postrouting", 200, "oifname", outer))
    lines = ["table ip icbench_accounts {"]
    for name, hook, priority, direction, interface in hooks:
        lines += [
            f"  counter {name} {{}}",
            f"  chain {name} {{",
            f"    type filter hook {hook} priority {priority}; policy accept;",
            f'    {direction} "{interface}" udp dport 9 @th,80,16 0xffff counter name {name}',
            "  }",
        ]
    return "\n".join([*lines, "}", ""])


def shaper(parts: Parts, outer: str) -> list[list[str]]:
    """Returns the arguments of ``tc`` that make the shaper; none without one."""
    if not parts.shape_bits:
        return []
    # A burst of 15 kB makes up for a CPU that comes late by some milliseconds, and is over before the first window.
    return [
        ["qdisc", "add", "dev", outer, "root", "handle", "1:", "htb", "default", "1"],
        [
            *("class", "add", "dev", outer, "parent", "1:", "classid", "1:1", "htb"),
            *("rate", f"{parts.shape_bits}bit", "burst", "15k", "cburst", "15k"),
        ],
        ["qdisc", "add", "dev", outer, "parent", "1:1", "pfifo", "limit", str(QUEUE_FRAMES)],
    ]
