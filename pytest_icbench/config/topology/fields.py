# SPDX-License-Identifier: BSD-3-Clause
"""The keys of a container's table: how each value is read. Pure; a bad value raises ValueError with half a sentence."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pytest_icbench.config.topology.model import FOLLOWERS, HOSTS, LEADERS, MAX_PAIRS, Host
from pytest_icbench.model.endpoint import Address
from pytest_icbench.wording import suggestion

#: A node's name holds 32 characters, of which session and rig take 16.
NAME_MAX = 16
_NAME = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9_-]{{0,{NAME_MAX - 2}}}[A-Za-z0-9])?")
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])")
_INTERFACE = re.compile(r"[A-Za-z0-9_.@+-]{1,15}")
_SOCKET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_DEVICE = re.compile(r"/dev/vfio/[0-9]+")
_PAIRS = re.compile(r"([1-9][0-9]*)vs([1-9][0-9]*)")
_MAX_CPU = 8191


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text: write it in quotes")
    return value


def _matching(pattern: re.Pattern[str], form: str, *, lower: bool = False) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = _text(value).lower() if lower else _text(value)
        if not pattern.fullmatch(text):
            raise ValueError(f"'{value}' is not {form}")
        return text

    return read


def _host(value: Any) -> Host:
    for host in HOSTS:
        if value == host:
            return host
    raise ValueError(f"there is no host '{value}'{suggestion(str(value), HOSTS)}")


def _applications(value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    known = (*LEADERS, *FOLLOWERS)
    for name in names:
        if name not in known:
            raise ValueError(f"there is no application '{name}'{suggestion(str(name), known)}")
    if not names:
        raise ValueError(f"the list is empty: name one or more of {', '.join(known)}")
    for family in (LEADERS, FOLLOWERS):
        if all(name in family for name in names):
            return tuple(name for name in family if name in names)
    raise ValueError(f"{' and '.join(names)} are different sides of a pair: a container is one of them")


def _ip(value: Any) -> str:
    try:
        address = ipaddress.IPv4Address(_text(value))
    except ipaddress.AddressValueError:
        raise ValueError(f"'{value}' is no IPv4 address, as 198.18.1.1") from None
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        raise ValueError(f"{value} is no address of a single host on a wire")
    return str(address)


def _netmask(value: Any) -> int:
    """Bits, or the thesis' dotted form."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 31:
        return value
    if isinstance(value, str):
        if re.fullmatch(r"[1-9]|[12][0-9]|3[01]", value):
            return int(value)
        with suppress(ipaddress.AddressValueError):
            bits = f"{int(ipaddress.IPv4Address(value)):032b}"
            if re.fullmatch("1+0+", bits):
                return bits.count("1")
    raise ValueError(f"'{value}' is neither a number of bits from 1 to 31 nor such a mask ('255.255.255.0')")


def _mac(value: Any) -> str:
    text = _matching(_MAC, "a MAC address, as 02:00:00:00:00:10", lower=True)(value)
    if int(text[:2], 16) & 1 or text == "00:00:00:00:00:00":
        raise ValueError(f"{text} is no address of a single station: take one that begins with 02")
    return text


def _pci(value: Any) -> str:
    match = _PCI.fullmatch(_text(value).lower())
    if not match:
        raise ValueError(f"'{value}' is not a PCI address, as 0000:04:02.0")
    return f"{match[1] or '0000'}:{match[2]}"


def _cpus(value: Any) -> tuple[int, ...]:
    numbers = value if isinstance(value, list) else [value]
    if not numbers:
        raise ValueError("the list is empty: name the CPU of the workload, or leave cpus out")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _MAX_CPU:
            raise ValueError(f"{number!r} is no CPU's number")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{numbers} names a CPU twice")
    return tuple(numbers)


_name = _matching(_NAME, f"a name: 1 to {NAME_MAX} letters, digits, _ and -, the ends letters or digits")

#: How each key's value is read, in the order in which they are checked.
READERS: Mapping[str, Callable[[Any], Any]] = {
    "name": _name,
    "host": _host,
    "application": _applications,
    "peer": _name,
    "cpus": _cpus,
    "ip": _ip,
    "netmask": _netmask,
    "mac": _mac,
    "socket": _matching(_SOCKET, "a file's name: 1 to 15 letters, digits, _ . and -"),
    "vf": _matching(_INTERFACE, "the name of a network interface"),
    "pci": _pci,
    "device": _matching(_DEVICE, "a device node of VFIO, as /dev/vfio/12"),
}
#: Keys that have to be there, and an example of each.
REQUIRED = {"name": 'name = "c0"', "application": 'application = "send"', "peer": 'peer = "c1"'}


def pair_number(value: Any) -> int:
    """The number of pairs in ``4vs4``. Raises ValueError."""
    match = _PAIRS.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError(f"'{value}' is not of the form NvsN, as 4vs4")
    if match[1] != match[2]:
        raise ValueError(
            f"'{value}' has {match[1]} on one side and {match[2]} on the other: both are the same, as 4vs4"
        )
    if int(match[1]) > MAX_PAIRS:
        raise ValueError(f"'{value}' are more than the {MAX_PAIRS} pairs that are supported")
    return int(match[1])


def network(address: Address) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(f"{address.ip}/{address.prefix}").network


def host_problem(address: Address) -> str | None:
    """Why the address cannot be a host's in its network; None if it can."""
    found = network(address)
    if found.prefixlen < 31 and address.ip in (str(found.network_address), str(found.broadcast_address)):
        return f"{address.ip} is the network's own or its broadcast address in /{address.prefix}: take one between"
    return None
