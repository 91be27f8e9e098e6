# SPDX-License-Identifier: BSD-3-Clause
"""Reads a topology from its TOML file. A mistake is one sentence that names the file and the place in it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_icbench.config.topology.fields import File, Table, pair_number, problems
from pytest_icbench.config.topology.model import FOLLOWERS, LEADERS, MAX_PAIRS, Container, Topology
from pytest_icbench.errors import UsageError
from pytest_icbench.model import toml
from pytest_icbench.model.codec import decode
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.path import FramePath
from pytest_icbench.wording import suggestion


def read(path: Path, where: str = "--icbench-topology", *, dedicated: bool = False) -> Topology:
    """Returns the topology of a file.

    Args:
        where: the option, for messages about a file that cannot be read.
        dedicated: no two containers of a host may share a CPU.

    Raises:
        UsageError: one sentence.
    """
    file = toml.read(path, where)
    topology = _topology(file.data, str(path), dedicated)
    return replace(topology, origin={"file": path.name, "sha256": file.sha256})


def loads(text: str, name: str, *, dedicated: bool = False) -> Topology:
    """Returns the topology of a text; ``name`` stands for the file in messages. Raises UsageError."""
    return _topology(toml.parse(text, name), name, dedicated)


class _Mistake(Exception):
    """A mistake in a file: its place and a sentence about it."""

    def __init__(self, index: int, key: str, sentence: str) -> None:
        super().__init__(f"container[{index}]{key and '.'}{key}: {sentence}")


def _topology(data: Mapping[str, Any], name: str, dedicated: bool) -> Topology:
    tables = data.get("container")
    if not isinstance(tables, list) or not tables:
        raise UsageError(f"{name}: there are no containers: give each a table that begins with [[container]]")
    file = decode(File, {**data, "container": list(map(_plain, tables))}, name)
    try:
        containers = _containers(file.container)
        _check_all_exist(containers)
        _check_unique(containers)
        _check_networks(containers)
        _check_cpus(containers, dedicated)
    except _Mistake as mistake:
        raise UsageError(f"{name}: {mistake}") from None
    _check_number(file.pairs, FramePath.over(containers).pairs, name)
    return Topology(tuple(containers.values()))


def _plain(table: Any) -> Any:
    """Returns a container's table without abbreviations: single values become lists, a number of bits a text."""
    if not isinstance(table, dict):
        return table
    lists = {key: [table[key]] for key in ("application", "cpus") if key in table and not isinstance(table[key], list)}
    bits = table.get("netmask")
    return {**table, **lists, **({"netmask": str(bits)} if type(bits) is int else {})}


def _containers(tables: Sequence[Table]) -> dict[int, Container]:
    """Returns the containers by their place in the file, in the order of endpoints."""
    for index, table in enumerate(tables):
        for key, sentence in problems(table):
            raise _Mistake(index, key, sentence)
    containers = {}
    places = _paired(tables)
    path = FramePath.over(places)
    for endpoint, index in zip(path.endpoints, places, strict=True):
        table = tables[index]
        pci = table.pci and table.pci.lower()
        containers[index] = Container(
            name=table.name,
            host=table.host,
            applications=tuple(name for name in (*LEADERS, *FOLLOWERS) if name in table.application),
            peer=table.peer,
            address=table.address(Address.of(path.pair(endpoint), path.side(endpoint))),
            cpus=table.cpus or (),
            socket=table.socket,
            vf=table.vf,
            pci=f"0000:{pci}" if pci and pci.count(":") == 1 else pci,
            device=table.device,
            attached=table.attached,
        )
    return containers


def _paired(tables: Sequence[Table]) -> list[int]:
    """Returns places in the file by endpoint index: pairs in the order of their first containers, the leader first."""
    places = _places_by_name(tables)
    paired: list[int] = []
    for index, table in enumerate(tables):
        peer = _find_peer(index, tables, places)
        if index not in paired:
            later = places[peer.name]
            _check_sides(table, peer, later)
            paired += (index, later) if table.application[0] in LEADERS else (later, index)
    pairs, most = FramePath.over(paired).pairs, FramePath(MAX_PAIRS)
    if pairs > most.pairs:
        sentence = f"there are {pairs} pairs, and at most {MAX_PAIRS} are supported"
        raise _Mistake(len(most.endpoints), "", sentence)
    return paired


def _places_by_name(tables: Sequence[Table]) -> dict[str, int]:
    places: dict[str, int] = {}
    for index, table in enumerate(tables):
        if places.setdefault(table.name, index) != index:
            other = f"container[{places[table.name]}]"
            raise _Mistake(index, "name", f"{table.name} is the name of {other}, too: take another")
    return places


def _find_peer(index: int, tables: Sequence[Table], places: Mapping[str, int]) -> Table:
    """Returns the container that one names as its peer, and which names it."""
    table = tables[index]
    if table.peer not in places:
        raise _Mistake(index, "peer", f"there is no container '{table.peer}'{suggestion(table.peer, tuple(places))}")
    peer = tables[places[table.peer]]
    if peer is table:
        raise _Mistake(index, "peer", f"{table.name} is its own peer: name the container at the other end")
    if peer.peer != table.name:
        sentence = f"{table.name} has the peer {peer.name}, whose own is {peer.peer}: let each name the other"
        raise _Mistake(index, "peer", sentence)
    return peer


def _check_sides(first: Table, second: Table, later: int) -> None:
    """Checks that one container leads and the other follows. ``later`` is the place of the second."""
    leads = first.application[0] in LEADERS
    if leads == (second.application[0] in LEADERS):
        verbs, known = ("ask or send", FOLLOWERS) if leads else ("answer or receive", LEADERS)
        sentence = f"{first.name} and {second.name} are peers and both {verbs}: let one of them be {' or '.join(known)}"
        raise _Mistake(later, "application", sentence)
    leader, follower = (first, second) if leads else (second, first)
    expected = [FOLLOWERS[LEADERS.index(name)] for name in LEADERS if name in leader.application]
    if set(expected) != set(follower.application):
        sentence = (
            f"{leader.name} runs {' and '.join(leader.application)}, so its peer {follower.name} has to run"
            f" {' and '.join(expected)}, not {' and '.join(follower.application)}: change one of them"
        )
        raise _Mistake(later, "application", sentence)


def _check_number(given: str | None, pairs: int, name: str) -> None:
    try:
        number = pairs if given is None else pair_number(given)
    except ValueError as error:
        raise UsageError(f"{name}: pairs: {error}") from None
    if number != pairs:
        raise UsageError(f"{name}: pairs: it says {given}, and the containers are {pairs}vs{pairs}: change one of them")


def _check_all_exist(containers: Mapping[int, Container]) -> None:
    """Checks that all containers run already, or none."""
    in_file = sorted(containers.items())
    there = [container.name for _, container in in_file if container.attached is not None]
    for index, container in in_file:
        if there and container.attached is None:
            sentence = f"{there[0]} is in a container that runs already, and {container.name} is not"
            raise _Mistake(index, "", f"{sentence}: give each of them a container, or none")


def _check_unique(containers: Mapping[int, Container]) -> None:
    """Checks that MACs and IPs are unique on the wire, and sockets and virtual functions on each host."""
    owners: dict[tuple[str, str, str], int] = {}
    for index, container in sorted(containers.items()):
        for key, noun, scope, value in _claims(container):
            owner = owners.setdefault((key, scope, value), index)
            if owner != index:
                sentence = f"{container.name} has the {noun} {value} of {containers[owner].name} (container[{owner}])"
                raise _Mistake(index, key, f"{sentence}: take another one")


def _claims(container: Container) -> Iterator[tuple[str, str, str, str]]:
    """Yields key, noun, the scope in which the value is unique, and the value."""
    if (place := container.attached) is not None:
        port = place.interface or place.socket or place.pci
        yield "container", "place", "", f"{place.container} {port}" if port else place.container
        return
    yield "mac", "MAC address", "", container.address.mac
    yield "ip", "IP address", "", container.address.ip
    for key, noun in (("socket", "socket"), ("vf", "VF"), ("pci", "PCI address"), ("device", "device")):
        if (value := getattr(container, key)) is not None:
            yield key, noun, container.host, value


def _check_networks(containers: Mapping[int, Container]) -> None:
    in_order = []
    if any(container.attached is not None for container in containers.values()):
        return  # their networks exist, and may have routers between them
    for index, container in containers.items():
        address = container.address
        network = ipaddress.IPv4Interface(f"{address.ip}/{address.prefix}").network
        in_order.append((index, container, network))
        if network.prefixlen < 31 and address.ip in (str(network.network_address), str(network.broadcast_address)):
            sentence = f"{address.ip} is the network's own or its broadcast address in /{address.prefix}"
            raise _Mistake(index, "ip", f"{container.name}: {sentence}: take one between")
    for (_, leader, leader_network), (index, follower, follower_network) in FramePath.over(in_order).by_pair(in_order):
        if leader_network != follower_network:
            ends = [f"({end.address.ip}/{end.address.prefix})" for end in (follower, leader)]
            sentence = f"{follower.name} {ends[0]} and its peer {leader.name} {ends[1]} are not in one network"
            raise _Mistake(index, "ip", f"{sentence}: change ip or netmask")


def _check_cpus(containers: Mapping[int, Container], dedicated: bool) -> None:
    """Checks that all containers of a host have CPUs or none, and that dedicated CPUs are not shared."""
    in_file = sorted(containers.items())
    with_cpus = {container.host: container.name for _, container in reversed(in_file) if container.cpus}
    owners: dict[tuple[str, int], int] = {}
    for index, container in in_file:
        host = container.host
        if host in with_cpus and not container.cpus:
            sentence = f"{container.name} has no cpus, and {with_cpus[host]} on the same host has"
            raise _Mistake(index, "", f"{sentence}: give them to all containers of the {host} host, or to none")
        for cpu in container.cpus if dedicated else ():
            owner = owners.setdefault((host, cpu), index)
            if owner != index:
                sentence = f"CPU {cpu} is {containers[owner].name}'s (container[{owner}])"
                remedy = "with --icbench-placement dedicated no CPU is shared: take another one"
                raise _Mistake(index, "cpus", f"{sentence}, and {remedy}")
