# SPDX-License-Identifier: BSD-3-Clause
"""What no two containers of a topology may have alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_icbench.config.topology.model import Container

#: Told the container's place in the file, the key and the sentence; does not return.
Fail = Callable[[int, str, str], None]


def check_unique(containers: Sequence[tuple[int, Container]], fail: Fail, line: Callable[[int, str], int]) -> None:
    """MACs and IPs are on one wire; sockets and virtual functions are a host's.

    Args:
        containers: each with its place in the file.
        line: of a container's key, by its place.
    """
    owners: dict[tuple[str, str, str], tuple[int, Container]] = {}
    for index, container in sorted(containers, key=lambda each: each[0]):
        for key, what, scope, value in _claims(container):
            other = owners.setdefault((key, scope, value), (index, container))
            if other[1] is not container:
                where = f" in line {line(other[0], key)}"
                fail(index, key, f"{container.name} has the {what} {value} of {other[1].name}{where}: take another one")


def _claims(container: Container) -> Iterator[tuple[str, str, str, str]]:
    """Key, what it is called, where it has to be unique, value."""
    yield "mac", "MAC address", "", container.address.mac
    yield "ip", "IP address", "", container.address.ip
    for key, what, value in (
        ("socket", "socket", container.socket),
        ("vf", "VF", container.vf),
        ("pci", "PCI address", container.pci),
        ("device", "device", container.device),
    ):
        if value is not None:
            yield key, what, container.host, value
