# SPDX-License-Identifier: BSD-3-Clause
"""A topology as frozen facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.endpoint_spec import EndpointSpec
from pytest_icbench.model.path import FramePath

Host = Literal["local", "remote"]
HOSTS: tuple[Host, ...] = ("local", "remote")
Application = Literal["send", "client", "recv", "server"]

#: What side a of a pair runs, and what side b runs then, by what is measured.
APPLICATIONS: Mapping[Dimension, tuple[str, str]] = {
    "throughput": ("send", "recv"),
    "latency": ("client", "server"),
}
LEADERS = tuple(names[0] for names in APPLICATIONS.values())
FOLLOWERS = tuple(names[1] for names in APPLICATIONS.values())
#: Pairs for which there are default addresses.
MAX_PAIRS = 254


@dataclass(frozen=True, slots=True)
class Container:
    """One endpoint.

    Attributes:
        name: of the container; its host name, too.
        host: where it runs.
        applications: what it can run: leaders (``send client``) or followers (``recv server``).
        peer: name of the container at the other end.
        address: IP, prefix length and MAC.
        cpus: CPUs of its host that are its own; the workload polls on the first. Empty: chosen for each case.
        socket: file name of its vhost-user or memif socket, None for the switch's.
        vf, pci: its virtual function by the kernel's interface, or by its PCI address; None: one that is free.
        device: the VFIO device node that it is expected to have, None for whichever it has.
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

    @property
    def leads(self) -> bool:
        """Whether it is side a of its pair."""
        return self.applications[0] in LEADERS

    @property
    def endpoint_spec(self) -> EndpointSpec:
        """What a rig is told of it."""
        return EndpointSpec(self.address, self.name, self.cpus, self.socket, self.pci or self.vf, self.device)


@dataclass(frozen=True, slots=True)
class Topology:
    """Containers by endpoint index, pairs in the order of the file.

    Attributes:
        origin: what a result keeps of the file: its name and hash.
    """

    containers: tuple[Container, ...]
    origin: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def path(self) -> FramePath:
        """Of all pairs."""
        return FramePath.over(self.containers)

    @property
    def pairs(self) -> int:
        return self.path.pairs

    def members(self, pairs: int) -> tuple[Container, ...]:
        """The containers of a case with so many pairs: those of the first ones."""
        return self.containers[: len(FramePath(pairs).endpoints)]

    def endpoint_specs(self, pairs: int) -> list[EndpointSpec]:
        """What the rig of a case with so many pairs is told, by endpoint index."""
        return [container.endpoint_spec for container in self.members(pairs)]

    def hosts(self, pairs: int) -> tuple[Host, ...]:
        """Where the endpoints of a case with so many pairs run, by index."""
        return tuple(container.host for container in self.members(pairs))

    def is_remote(self, pairs: int) -> bool:
        """Whether a case with so many pairs uses a second host."""
        return "remote" in self.hosts(pairs)

    def cpus(self, pairs: int) -> dict[int, int]:
        """CPU of each endpoint whose place is given, by index."""
        return {index: each.cpus[0] for index, each in enumerate(self.members(pairs)) if each.cpus}

    def unsupported_reason(self, case: Case) -> str | None:
        """Why a case cannot be run on it, with the remedy; None if it can."""
        if case.pairs > self.pairs:
            return (
                f"the topology has {_count(self.pairs)}, not {case.pairs}: lower --icbench-pairs, or write a larger one"
                f" (icbench topology {case.pairs}vs{case.pairs})"
            )
        for each in self.members(case.pairs):
            wanted = APPLICATIONS[case.dimension][0 if each.leads else 1]
            if wanted not in each.applications:
                return (
                    f"the topology lets {each.name} run {' and '.join(each.applications)} only, and {case.dimension}"
                    f" takes {wanted}: add it to its application"
                )
        return None

    def treatment(self) -> dict[str, Any]:
        """What a result keeps of it."""
        return {**self.origin, "containers": [to_table(container) for container in self.containers]}


def _count(pairs: int) -> str:
    return f"{pairs} pair{'' if pairs == 1 else 's'}"


def default(pairs: int, *, remote: bool = False, cpus: Sequence[int] = ()) -> Topology:
    """What is used without a file: addresses of RFC 2544's test network, every application.

    Args:
        pairs: 1 to 254.
        remote: sides b on the second host.
        cpus: CPUs of the endpoints of this host, by their order; none: chosen for each case.
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
    """The keys and values of its table in the file; what is not said is left out."""
    table: dict[str, Any] = {
        "name": container.name,
        "host": container.host,
        "application": list(container.applications),
        "peer": container.peer,
        "cpus": list(container.cpus) or None,
        "ip": container.address.ip,
        "netmask": container.address.prefix,
        "mac": container.address.mac,
        "socket": container.socket,
        "vf": container.vf,
        "pci": container.pci,
        "device": container.device,
    }
    return {key: value for key, value in table.items() if value is not None}
