# SPDX-License-Identifier: BSD-3-Clause
"""The NIC by which a switch reaches the other host: ``--icbench-uplink [HOST=]NIC``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pytest_icbench.errors import UsageError

#: How a switch uses the NIC. ``kernel``: the NIC stays with the kernel, and a switch in user space uses AF_PACKET;
#: ``af_xdp``: the same with AF_XDP; ``vfio``: the NIC leaves the kernel for DPDK's own poll-mode driver.
Via = Literal["kernel", "af_xdp", "vfio"]

_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])", re.IGNORECASE)
_INTERFACE = re.compile(r"[^\s/:+=]{1,15}")
_FORMS = "write an interface (eth1), an interface for AF_XDP (eth1+af_xdp), or a PCI address for DPDK (0000:04:00.0)"


@dataclass(frozen=True, slots=True)
class Uplink:
    """A NIC of one host, named by interface, or by PCI address if ``via`` is ``vfio``."""

    nic: str
    via: Via = "kernel"

    def __str__(self) -> str:
        return f"{self.nic}+af_xdp" if self.via == "af_xdp" else self.nic

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON data; ``Uplink(**data)`` is the inverse."""
        return asdict(self)


def parse(text: str, where: str) -> Uplink:
    """Parses ``NIC``, ``NIC+af_xdp`` or a PCI address. Raises UsageError with a message that begins with ``where``."""
    match = _PCI.fullmatch(text)
    if match:
        return Uplink(f"{match[1] or '0000'}:{match[2]}".lower(), "vfio")
    nic, plus, driver = text.partition("+")
    if not _INTERFACE.fullmatch(nic) or (plus and driver not in ("af_packet", "af_xdp")):
        raise UsageError(f"{where}: '{text}' is no uplink: {_FORMS}")
    return Uplink(nic, "af_xdp" if driver == "af_xdp" else "kernel")


def parse_all(text: str, where: str) -> tuple[tuple[str, Uplink], ...]:
    """Parses ``NIC`` for this host, or ``HOST=NIC`` for another one; several with spaces or commas between.

    Returns pairs of host and uplink; the host is empty where none was named. Raises UsageError.
    """
    uplinks: dict[str, Uplink] = {}
    for word in text.replace(",", " ").split():
        host, equals, nic = word.rpartition("=")
        if equals and not host:
            raise UsageError(f"{where}: '{word}' names no host: write HOST=NIC, or NIC for this host")
        uplink = parse(nic, where)
        if host in uplinks:
            owner = host or "this host"
            raise UsageError(f"{where}: {owner} has two uplinks, {uplinks[host]} and {uplink}: name one")
        uplinks[host] = uplink
    if not uplinks:
        raise UsageError(f"{where}: there is no NIC in '{text}': {_FORMS}")
    return tuple(uplinks.items())


def name_of(remote: str, uplinks: Mapping[str, Uplink], where: str) -> str:
    """Returns the name under which the second host has an uplink of its own; empty if no host was named.

    Args:
        remote: the second host as the user typed it, ``[USER@]HOST``.
        uplinks: uplinks by host; the host is empty where none was named.

    Raises UsageError: only other hosts are named. Without this check a mistyped name would select the wrong NIC, which
    would be noticed late.
    """
    named = [host for host in uplinks if host]
    matching = [host for host in named if host in (remote, remote.rpartition("@")[2])]
    if named and not matching:
        raise UsageError(
            f"{where}: it names {' and '.join(named)}, but the second host is {remote}: write"
            f" {remote.rpartition('@')[2]}=NIC, or leave the host out where both NICs have one name"
        )
    return matching[0] if matching else ""
