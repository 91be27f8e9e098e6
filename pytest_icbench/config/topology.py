# SPDX-License-Identifier: BSD-3-Clause
"""A topology, and its TOML file, whose keys are here. A mistake is one sentence that names file and place."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.codec import decode
from pytest_icbench.model.endpoint import ATTACH, Address, AttachTarget, EndpointSpec
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.text_files import parse_toml, read_toml
from pytest_icbench.wording import suggestion

Host = Literal["local", "remote"]
HOSTS: tuple[Host, ...] = ("local", "remote")
Application = Literal["send", "client", "recv", "server"]

#: The applications of side a and side b of a pair, by dimension.
APPLICATIONS: Mapping[Dimension, tuple[str, str]] = {"throughput": ("send", "recv"), "latency": ("client", "server")}
LEADERS = tuple(names[0] for names in APPLICATIONS.values())
FOLLOWERS = tuple(names[1] for names in APPLICATIONS.values())
#: The most pairs for which there are default addresses.
MAX_PAIRS = 254


@dataclass(frozen=True, slots=True)
class Container:
    """One endpoint.

    Attributes:
        name: the name of the container, and its host name.
        host: the host it runs on.
        applications: those that it can run: leaders (``send client``) or followers (``recv server``).
        peer: name of the container at the other end.
        address: IP, prefix length and MAC.
        cpus: CPUs of its host that belong to it; the workload polls on the first. Empty: chosen for each case.
        socket: file name of its vhost-user or memif socket; None: the name that the switch gives.
        vf, pci: its virtual function by network interface or by PCI address; None: any free one.
        device: the VFIO device node that it is expected to have, None: any.
        attached: what it is attached to, None: it is made for a case. ``address`` is then the interface's own, which
            the host knows, unless frames go through a socket or a PCI function.
    """

    name: str
    host: Host
    applications: tuple[str, ...]
    peer: str
    address: Address
    cpus: tuple[int, ...] = ()
    socket: str | None = None
    vf: str | None = None
    pci: str | None = None
    device: str | None = None
    attached: AttachTarget | None = None

    @property
    def leads(self) -> bool:
        """Whether it is side a of its pair."""
        return self.applications[0] in LEADERS

    @property
    def endpoint_spec(self) -> EndpointSpec:
        """The specification of the endpoint for a rig."""
        if self.attached is not None:
            return EndpointSpec(self.address, self.name, self.cpus, attached=self.attached)
        return EndpointSpec(self.address, self.name, self.cpus, self.socket, self.pci or self.vf, self.device)


@dataclass(frozen=True, slots=True)
class Topology:
    """Containers by endpoint index, pairs in the order of the file.

    Attributes:
        origin: name and hash of the file, as a result keeps them.
    """

    containers: tuple[Container, ...]
    origin: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def path(self) -> FramePath:
        """The path of all pairs."""
        return FramePath.over(self.containers)

    @property
    def pairs(self) -> int:
        return self.path.pairs

    def members(self, pairs: int) -> tuple[Container, ...]:
        """Returns the containers of the first pairs, for a case with this number of pairs."""
        return self.containers[: len(FramePath(pairs).endpoints)]

    def endpoint_specs(self, pairs: int) -> list[EndpointSpec]:
        """Returns the specifications of the endpoints of a case, by endpoint index."""
        return [container.endpoint_spec for container in self.members(pairs)]

    def endpoint_specs_of(self, case: Case) -> list[EndpointSpec] | None:
        """Returns the endpoints of a case or its reference link, whose endpoints are made even if the case's exist."""
        if self.attaches and case.switch != ATTACH:
            return None
        return self.endpoint_specs(case.pairs)

    def hosts(self, pairs: int) -> tuple[Host, ...]:
        """Returns the hosts of the endpoints of a case, by endpoint index."""
        return tuple(container.host for container in self.members(pairs))

    def is_remote(self, pairs: int) -> bool:
        """Whether a case with this number of pairs uses a second host."""
        return "remote" in self.hosts(pairs)

    def cpus(self, pairs: int) -> dict[int, int]:
        """Returns the polling CPU of each endpoint that has given CPUs, by endpoint index."""
        return {index: container.cpus[0] for index, container in enumerate(self.members(pairs)) if container.cpus}

    @property
    def attaches(self) -> bool:
        """Whether its containers run already: all of them do, or none."""
        return self.containers[0].attached is not None

    def unsupported_reason(self, case: Case) -> str | None:
        """Returns why a case cannot run on the topology, with the remedy; None if it can."""
        if self.attaches and case.switch != ATTACH:
            return f"the topology's containers and their path exist already: take --icbench-switch {ATTACH}"
        if not self.attaches and case.switch == ATTACH:
            return explain_missing_topology()
        if case.load.label is not None:
            return f"a topology is for the workload's frames, not for {case.load.label}: leave out --icbench-topology"
        if case.pairs > self.pairs:
            return (
                f"the topology has {_count(self.pairs)}, not {case.pairs}: lower --icbench-pairs, or write a larger one"
                f" (icbench topology {case.pairs}vs{case.pairs})"
            )
        return None if case.directions > 1 else self._application_misfit(case)

    def _application_misfit(self, case: Case) -> str | None:
        """Returns which container may not run the application that a case takes in one direction; None: all may."""
        for container in self.members(case.pairs):
            application = APPLICATIONS[case.dimension][0 if container.leads else 1]
            if application not in container.applications:
                given = " and ".join(container.applications)
                return (
                    f"the topology lets {container.name} run {given} only, and {case.dimension}"
                    f" takes {application}: add it to its application"
                )
        return None

    def treatment(self) -> dict[str, Any]:
        """Returns what a result keeps of the topology."""
        return {**self.origin, "containers": [to_table(container) for container in self.containers]}


def explain_missing_topology() -> str:
    """Returns why an existing path cannot be measured without a topology that names containers."""
    return (
        f'{ATTACH} measures between containers that run already: name them in a topology (container = "docker:web1")'
        " and give it by --icbench-topology"
    )


def _count(pairs: int) -> str:
    return f"{pairs} pair{'' if pairs == 1 else 's'}"


def default(pairs: int, *, remote: bool = False, cpus: Sequence[int] = ()) -> Topology:
    """Returns the topology that is used without a file: addresses of RFC 2544's test network, every application.

    Args:
        pairs: 1 to 254.
        remote: whether sides b are on the second host.
        cpus: CPUs of the endpoints of this host, in their order; empty: chosen for each case.
    """
    places = iter(cpus)
    containers = []
    path = FramePath(pairs)
    for index in path.endpoints:
        leads = path.leads(index)
        host: Host = "remote" if remote and not leads else "local"
        containers.append(
            Container(
                name=f"c{index}",
                host=host,
                applications=LEADERS if leads else FOLLOWERS,
                peer=f"c{path.peer(index)}",
                address=Address.of(path.pair(index), path.side(index)),
                cpus=(next(places),) if cpus and host == "local" else (),
            )
        )
    return Topology(tuple(containers))


def to_table(container: Container) -> dict[str, Any]:
    """Returns the keys and values of a container's table in the file, without those that are not given."""
    attached = container.attached
    # Then the addresses are the interface's.
    has_addresses = attached is not None and attached.socket is None and attached.pci is None
    table: dict[str, Any] = {
        "name": container.name,
        "container": attached and attached.container,
        "interface": attached and attached.interface,
        "host": container.host,
        "application": list(container.applications),
        "peer": container.peer,
        "cpus": list(container.cpus) or None,
        "ip": attached.ip if attached is not None and has_addresses else container.address.ip,
        "netmask": None if has_addresses else container.address.prefix,
        "mac": None if has_addresses else container.address.mac,
        "socket": container.socket,
        "vf": container.vf,
        "pci": container.pci,
        "device": container.device,
    }
    return {key: value for key, value in table.items() if value is not None}


_HEAD = """\
# A topology of pytest-icbench: who the endpoints are and where they run. Edit it, then give it to pytest:
#     pytest scenarios --icbench-topology FILE
# Only name, application and peer have to be there; what is left out is chosen for each case.
"""
_OPTIONAL = {
    "cpus": "# cpus = [2]               # of its host; the workload polls on the first",
    "socket": '# socket = "sock0"         # file name of its vhost-user or memif socket',
    "pci": '# pci = "0000:04:02.0"     # its virtual function (sriov); or vf = "enp4s2", by interface',
}


def to_toml(topology: Topology, *, hints: bool = False) -> str:
    """Returns the text of the file. With ``hints`` the first table has comments on the keys that can be added."""
    parts = [_HEAD if hints else "", f'pairs = "{topology.pairs}vs{topology.pairs}"\n']
    for number, container in enumerate(topology.containers):
        table = to_table(container)
        lines = [f"{key} = {_value(value)}" for key, value in table.items()]
        if hints and not number:
            lines += [text for key, text in _OPTIONAL.items() if key not in table]
        parts.append("\n[[container]]\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def _value(value: Any) -> str:
    """Returns a value as JSON. It is TOML, too, for texts, numbers and lists of these without surrogates."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return _value(value[0])
    return json.dumps(value, ensure_ascii=False)


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
        ip = self.ip if self.socket is None and self.pci is None else None
        return AttachTarget(self.container, self.interface, ip, self.socket, self.full_pci)

    @property
    def full_pci(self) -> str | None:
        """The PCI address with its domain, in lower case."""
        pci = self.pci and self.pci.lower()
        return f"0000:{pci}" if pci and pci.count(":") == 1 else pci

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


def read(path: Path, where: str = "--icbench-topology", *, dedicated: bool = False) -> Topology:
    """Returns the topology of a file.

    Args:
        where: the option, for messages about a file that cannot be read.
        dedicated: no two containers of a host may share a CPU.

    Raises UsageError: one sentence.
    """
    file = read_toml(path, where)
    topology = _topology(file.data, str(path), dedicated)
    return replace(topology, origin={"file": path.name, "sha256": file.sha256})


def loads(text: str, name: str, *, dedicated: bool = False) -> Topology:
    """Returns the topology of a text; ``name`` stands for the file in messages. Raises UsageError."""
    return _topology(parse_toml(text, name), name, dedicated)


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
        containers[index] = Container(
            name=table.name,
            host=table.host,
            applications=tuple(name for name in (*LEADERS, *FOLLOWERS) if name in table.application),
            peer=table.peer,
            address=table.address(Address.of(path.pair(endpoint), path.side(endpoint))),
            cpus=table.cpus or (),
            socket=table.socket,
            vf=table.vf,
            pci=table.full_pci,
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
    """Returns a container's peer, which has to name that container, too."""
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
