# SPDX-License-Identifier: BSD-3-Clause
"""A topology as frozen records. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_icbench.model.attach_target import ATTACH, AttachTarget
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.endpoint import Address, EndpointSpec
from pytest_icbench.model.path import FramePath

Host = Literal["local", "remote"]
HOSTS: tuple[Host, ...] = ("local", "remote")
Application = Literal["send", "client", "recv", "server"]

#: The applications of side a and side b of a pair, by dimension.
APPLICATIONS: Mapping[Dimension, tuple[str, str]] = {
    "throughput": ("send", "recv"),
    "latency": ("client", "server"),
}
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
