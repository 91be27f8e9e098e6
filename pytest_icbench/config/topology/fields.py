# SPDX-License-Identifier: BSD-3-Clause
"""The keys of a topology's file, and the checks of their values. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pytest_icbench.config.topology.model import LEADERS, MAX_PAIRS, Application, Host
from pytest_icbench.model.attach_target import AttachTarget
from pytest_icbench.model.endpoint import Address

#: A node's name holds 32 characters; session and rig take 16 of them.
NAME_MAX = 16
_PAIRS = re.compile(r"([1-9][0-9]*)vs([1-9][0-9]*)")
_DIGITS_MAX = 9
_MAX_CPU = 8191
_NAME = (
    re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9_-]{{0,{NAME_MAX - 2}}}[A-Za-z0-9])?"),
    f"a name: 1 to {NAME_MAX} letters, digits, _ and -, the ends letters or digits",
)
#: The form of a key's text, and its description in a message.
_FORMS = {
    "name": _NAME,
    "peer": _NAME,
    "mac": (re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}"), "a MAC address, as 02:00:00:00:00:10"),
    "socket": (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}"), "a file's name: 1 to 15 letters, digits, _ . and -"),
    "interface": (re.compile(r"[^/\s]{1,15}"), "the name of a network interface"),
    "vf": (re.compile(r"[A-Za-z0-9_.@+-]{1,15}"), "the name of a network interface"),
    "pci": (
        re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]"),
        "a PCI address, as 0000:04:02.0",
    ),
    "device": (re.compile(r"/dev/vfio/[0-9]+"), "a device node of VFIO, as /dev/vfio/12"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """The table of a container. None stands for a key that the file does not have.

    Attributes:
        name: the container's name and host name: at most 16 letters, digits, ``_`` and ``-``.
        application: ``send`` or ``recv`` (throughput), ``client`` or ``server`` (latency). A list of both of one side
            serves both.
        peer: the container at the other end, which names this one.
        host: ``local`` (default) or ``remote``.
        cpus: CPUs of that host. The workload polls on the first; the rest are the container's. Either all containers
            of a host have some, or none. Default: the best available.
        ip: IPv4 address. Default: ``198.18.PAIR.1`` and ``.2``.
        netmask: in bits or as ``"255.255.255.0"``; peers are in one network. Default: 16.
        mac: unicast address. Default: ``02:00:00:00:PAIR:01`` and ``:02``.
        socket: file name of its vhost-user or memif socket. Default: the switch's.
        pci, vf: its virtual function (``sriov``): one of these, by PCI address or by the kernel's interface. Default: a
            free one.
        device: the node in ``/dev/vfio`` that the function is expected to have. Default: whichever it has.
        container: a container that runs already: ``docker:NAME``, ``podman:NAME``, ``lxc:NAME``, ``pid:NUMBER`` or
            ``netns:PATH``. All containers have it, or none. Default: one is made.
        interface: the interface of such a container. Default: the only one that is up with an IPv4 address.
    """

    EXACT: ClassVar[bool] = True

    name: str
    application: tuple[Application, ...]
    peer: str
    host: Host = "local"
    cpus: tuple[int, ...] | None = None
    ip: str | None = None
    netmask: str | None = None
    mac: str | None = None
    socket: str | None = None
    vf: str | None = None
    pci: str | None = None
    device: str | None = None
    container: str | None = None
    interface: str | None = None

    @property
    def attached(self) -> AttachTarget | None:
        """What the container is attached to, None if it is made."""
        if self.container is None:
            return None
        pci = self.pci and self.pci.lower()
        full = f"0000:{pci}" if pci and pci.count(":") == 1 else pci
        ip = self.ip if self.socket is None and pci is None else None
        return AttachTarget(self.container, self.interface, ip, self.socket, full)

    def address(self, usual: Address) -> Address:
        """Returns the address of the container; parts that the file leaves out are taken from ``usual``."""
        prefix = usual.prefix if self.netmask is None else ipaddress.IPv4Network(f"0.0.0.0/{self.netmask}").prefixlen
        return Address(self.ip or usual.ip, (self.mac or usual.mac).lower(), prefix)


@dataclass(frozen=True, slots=True)
class File:
    """A topology's file."""

    EXACT: ClassVar[bool] = True

    container: tuple[Table, ...]
    pairs: str | None = None


def problems(table: Table) -> Iterator[tuple[str, str]]:
    """Yields the key and half a sentence for each value that is wrong by itself."""
    if table.attached is not None:
        yield from _problems_of_attached(table, table.attached)
    elif table.interface is not None:
        yield "interface", 'it is for a container that runs already: add container = "docker:NAME", or leave it out'
    for key, (form, description) in _FORMS.items():
        value = getattr(table, key)
        is_checked = value is not None and not (key == "socket" and table.attached is not None)
        if is_checked and not form.fullmatch(value):
            yield key, f"'{value}' is not {description}"
    yield from _problems_of_applications(table)
    if table.cpus is not None:
        yield from (("cpus", problem) for problem in _cpu_problems(table.cpus))
    yield from _problems_of_address(table)


def _problems_of_applications(table: Table) -> Iterator[tuple[str, str]]:
    if not table.application:
        yield "application", "the list is empty: name one application or more"
    if len({name in LEADERS for name in table.application}) > 1:
        names = " and ".join(table.application)
        yield "application", f"{names} are different sides of a pair: a container is one of them"


def _problems_of_address(table: Table) -> Iterator[tuple[str, str]]:
    if table.ip is not None and (problem := _ip_problem(table.ip)):
        yield "ip", problem
    if table.netmask is not None and not _is_netmask(table.netmask):
        yield (
            "netmask",
            f"'{table.netmask}' is neither a number of bits from 1 to 31 nor such a mask ('255.255.255.0')",
        )
    if table.mac is not None and (int(table.mac[:2], 16) & 1 or table.mac == "00:00:00:00:00:00"):
        yield "mac", f"{table.mac} is not an address of a single station: take one that begins with 02"


def _problems_of_attached(table: Table, attached: AttachTarget) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a container that runs already: it has its addresses, and one way for frames."""
    if problem := attached.problem():
        yield "container", problem
    if table.host == "remote":
        yield "host", f"{table.name} runs already, and only this host's containers can be attached to"
    if table.socket is not None and not table.socket.startswith("/"):
        yield "socket", f"'{table.socket}' is not the absolute path of a socket in {table.container}"
    ways = [key for key in ("interface", "socket", "pci") if getattr(table, key) is not None]
    if len(ways) > 1:
        yield ways[1], f"{table.name} has {' and '.join(ways)}, and frames go one way: leave one of them out"
    refused = {
        "vf": "a VF that a container has is an interface there: write interface",
        "device": "it is for a container that is made: leave it out",
    }
    if not {"socket", "pci"} & {*ways}:
        own = f"the interface in {table.container} has its own, which is not changed: leave it out"
        refused |= {"mac": own, "netmask": own}
    yield from ((key, reason) for key, reason in refused.items() if getattr(table, key) is not None)


def _cpu_problems(cpus: tuple[int, ...]) -> Iterator[str]:
    if not cpus:
        yield "the list is empty: name the CPU of the workload, or leave cpus out"
    yield from (f"{cpu} is not a CPU's number" for cpu in cpus if not 0 <= cpu <= _MAX_CPU)
    if len(set(cpus)) < len(cpus):
        yield f"{list(cpus)} names a CPU twice"


def _ip_problem(text: str) -> str | None:
    try:
        address = ipaddress.IPv4Address(text)
    except ipaddress.AddressValueError:
        return f"'{text}' is not an IPv4 address, as 198.18.1.1"
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        return f"{text} is not an address of a single host on a wire"
    return None


def _is_netmask(text: str) -> bool:
    try:
        network = ipaddress.IPv4Network(f"0.0.0.0/{text}")
    except ValueError:
        return False
    return 1 <= network.prefixlen <= 31 and text in (str(network.prefixlen), str(network.netmask))


def pair_number(value: str) -> int:
    """Returns the number of pairs in ``4vs4``. Raises ValueError."""
    match = _PAIRS.fullmatch(value)
    if not match:
        raise ValueError(f"'{value}' is not of the form NvsN, as 4vs4")
    if match[1] != match[2]:
        raise ValueError(
            f"'{value}' has {match[1]} on one side and {match[2]} on the other: both are the same, as 4vs4"
        )
    if len(match[1]) > _DIGITS_MAX or int(match[1]) > MAX_PAIRS:
        raise ValueError(f"'{value:.20}' are more than the {MAX_PAIRS} pairs that are supported")
    return int(match[1])
