# SPDX-License-Identifier: BSD-3-Clause
"""A topology from its TOML file. Every mistake is one sentence that names the file and the line."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from pytest_icbench.config.topology import fields
from pytest_icbench.config.topology.lines import line_of
from pytest_icbench.config.topology.model import FOLLOWERS, LEADERS, MAX_PAIRS, Container, Topology
from pytest_icbench.config.topology.unique import check_unique
from pytest_icbench.errors import UsageError
from pytest_icbench.model.endpoint import Address
from pytest_icbench.wording import suggestion

_TOP = ("pairs", "container")


def read(path: Path, where: str = "--icbench-topology", *, dedicated: bool = False) -> Topology:
    """The topology of a file.

    Args:
        where: the option, for messages about a file that cannot be read.
        dedicated: no two containers of a host may share a CPU.

    Raises UsageError, one sentence.
    """
    try:
        content = path.read_bytes()
        text = content.decode()
    except OSError as error:
        raise UsageError(f"{where}: {path} cannot be read ({error.strerror}): name a topology's file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{where}: {path} is no text in UTF-8: name a topology's file") from None
    topology = loads(text, str(path), dedicated=dedicated)
    return replace(topology, origin={"file": path.name, "sha256": hashlib.sha256(content).hexdigest()})


def loads(text: str, name: str, *, dedicated: bool = False) -> Topology:
    """As ``read``, from the text; ``name`` stands for the file in messages."""
    return _Reader(text.replace("\r\n", "\n"), name).topology(dedicated)


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def _line(self, *path: str | int) -> int:
        return line_of(self._text, path)

    def _fail(self, sentence: str, *path: str | int) -> NoReturn:
        raise UsageError(f"{self._name} line {self._line(*path)}: {sentence}")

    def topology(self, dedicated: bool) -> Topology:
        try:
            document = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{self._name} is not valid TOML: {error}") from None
        for key in document:
            if key not in _TOP:
                self._fail(f"a topology has no key '{key}'{suggestion(key, _TOP)}", key)
        tables = document.get("container")
        if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
            self._fail("there are no containers: give each a table that begins with [[container]]", "container")
        found = [self._container(index, table) for index, table in enumerate(tables)]
        placed = self._paired(found)
        self._check_number(document.get("pairs"), len(placed) // 2)
        filled = self._with_addresses(placed)
        check_unique(filled, lambda index, key, sentence: self._fail(sentence, "container", index, key), self._entry)
        self._check_networks(filled)
        self._check_cpus(filled, dedicated)
        return Topology(tuple(container for _, container in filled))

    def _entry(self, index: int, key: str) -> int:
        return self._line("container", index, key)

    def _container(self, index: int, table: Mapping[str, Any]) -> Container:
        """Its values, each by itself."""
        for key in table:
            if key not in fields.READERS:
                self._fail(
                    f"a container has no key '{key}'{suggestion(key, tuple(fields.READERS))}", "container", index, key
                )
        values: dict[str, Any] = {}
        for key, reader in fields.READERS.items():
            if key not in table:
                if key in fields.REQUIRED:
                    who = f"container {table['name']!r}" if isinstance(table.get("name"), str) else "a container"
                    self._fail(f"{who} lacks its {key}: add {fields.REQUIRED[key]}", "container", index)
                continue
            try:
                values[key] = reader(table[key])
            except ValueError as error:
                self._fail(f"{key}: {error}", "container", index, key)
        return Container(
            name=values["name"],
            host=values.get("host", "local"),
            applications=values["application"],
            peer=values["peer"],
            # Empty: to be filled in once its pair has a number.
            address=Address(values.get("ip", ""), values.get("mac", ""), values.get("netmask", 0)),
            cpus=values.get("cpus", ()),
            socket=values.get("socket"),
            vf=values.get("vf"),
            pci=values.get("pci"),
            device=values.get("device"),
        )

    def _paired(self, found: Sequence[Container]) -> list[tuple[int, Container]]:
        """By endpoint index, each with its place in the file."""
        numbers: dict[str, int] = {}
        for index, container in enumerate(found):
            if container.name in numbers:
                line = self._entry(numbers[container.name], "name")
                self._fail(
                    f"the name {container.name} stands in line {line}, too: take another", "container", index, "name"
                )
            numbers[container.name] = index
        placed: list[tuple[int, Container]] = []
        seen: set[int] = set()
        for index, container in enumerate(found):
            at = ("container", index, "peer")
            if container.peer not in numbers:
                self._fail(f"there is no container '{container.peer}'{suggestion(container.peer, tuple(numbers))}", *at)
            other = found[numbers[container.peer]]
            if other is container:
                self._fail(f"{container.name} is its own peer: name the container at the other end", *at)
            if other.peer != container.name:
                self._fail(
                    f"{container.name} has the peer {other.name}, whose own is {other.peer}: let each name the other",
                    *at,
                )
            if index in seen:
                continue
            seen |= {index, numbers[other.name]}
            placed += self._sides((index, container), (numbers[other.name], other))
        return placed

    def _sides(self, one: tuple[int, Container], two: tuple[int, Container]) -> list[tuple[int, Container]]:
        """Who leads first."""
        (_, first), (later, second) = one, two
        at = ("container", later, "application")
        if first.leads == second.leads:
            what = "ask or send" if first.leads else "answer or receive"
            known = FOLLOWERS if first.leads else LEADERS
            self._fail(
                f"{first.name} and {second.name} are peers and both {what}: let one of them be {' or '.join(known)}",
                *at,
            )
        leader, follower = (first, second) if first.leads else (second, first)
        expected = {FOLLOWERS[LEADERS.index(each)] for each in leader.applications}
        if expected != set(follower.applications):
            self._fail(
                f"{leader.name} runs {' and '.join(leader.applications)}, to which {' and '.join(sorted(expected))}"
                f" belongs, and its peer {follower.name} {' and '.join(follower.applications)}",
                *at,
            )
        return [one, two] if first.leads else [two, one]

    def _check_number(self, given: Any, pairs: int) -> None:
        if pairs > MAX_PAIRS:
            self._fail(f"there are {pairs} pairs, and at most {MAX_PAIRS} are supported", "container", 2 * MAX_PAIRS)
        if given is None:
            return
        try:
            wanted = fields.pair_number(given)
        except ValueError as error:
            self._fail(f"pairs: {error}", "pairs")
        if wanted != pairs:
            self._fail(f"pairs says {given}, and the containers are {pairs}vs{pairs}: change one of them", "pairs")

    def _with_addresses(self, placed: Sequence[tuple[int, Container]]) -> list[tuple[int, Container]]:
        """What the file leaves out is as without a file."""
        filled = []
        for position, (index, container) in enumerate(placed):
            usual = Address.of(position // 2 + 1, "b" if position % 2 else "a")
            given = container.address
            address = Address(given.ip or usual.ip, given.mac or usual.mac, given.prefix or usual.prefix)
            filled.append((index, replace(container, address=address)))
        return filled

    def _check_networks(self, filled: Sequence[tuple[int, Container]]) -> None:
        for (_, a), (index, b) in zip(filled[::2], filled[1::2], strict=True):
            key = "ip"
            for container in (a, b):
                problem = fields.host_problem(container.address)
                if problem is not None:
                    place = next(number for number, each in filled if each is container)
                    self._fail(f"{container.name}: {problem}", "container", place, key)
            if fields.network(a.address) != fields.network(b.address):
                self._fail(
                    f"{b.name} ({b.address.ip}/{b.address.prefix}) and its peer {a.name}"
                    f" ({a.address.ip}/{a.address.prefix}) are not in one network: change ip or netmask",
                    "container",
                    index,
                    key,
                )

    def _check_cpus(self, filled: Sequence[tuple[int, Container]], dedicated: bool) -> None:
        in_file = sorted(filled, key=lambda each: each[0])
        for host in dict.fromkeys(container.host for _, container in in_file):
            there = [(index, container) for index, container in in_file if container.host == host]
            with_cpus = [container for _, container in there if container.cpus]
            for index, container in there:
                if with_cpus and not container.cpus:
                    self._fail(
                        f"{container.name} has no cpus, and {with_cpus[0].name} on the same host has: give them to all"
                        f" containers of the {host} host, or to none",
                        "container",
                        index,
                    )
            owners: dict[int, tuple[int, Container]] = {}
            for index, container in there if dedicated else ():
                for cpu in container.cpus:
                    if cpu in owners:
                        before, owner = owners[cpu]
                        self._fail(
                            f"CPU {cpu} is {owner.name}'s (line {self._entry(before, 'cpus')}), and with"
                            " --icbench-placement dedicated nobody shares: take another one",
                            "container",
                            index,
                            "cpus",
                        )
                    owners[cpu] = index, container
