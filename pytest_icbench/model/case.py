# SPDX-License-Identifier: BSD-3-Clause
"""One point of a benchmark: what is measured, over which switch, with which traffic. Frozen, with a stable id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol, get_args

from pytest_icbench.model.path import FramePath
from pytest_icbench.model.rate import MAXIMUM, Rate
from pytest_icbench.model.traffic import SHORTEST, Traffic

Dimension = Literal["throughput", "latency"]
Family = Literal["kernel", "dpdk"]
#: Words that stand for several switches: all, and those of a family.
GROUPS = ("all", *get_args(Family))
#: The switch that is no switch, by family: what others are compared with.
REFERENCE_LINKS: Mapping[Family, str] = MappingProxyType({"kernel": "veth", "dpdk": "direct"})

#: API techniques of an endpoint, in the order in which they are shown.
SOCKET_APIS = ("udp", "udp-mmsg", "raw", "raw-mmsg")
#: DPDK applications over a kernel interface.
NETDEV_APIS = ("af_packet", "af_xdp")
APIS = (*SOCKET_APIS, "dpdk", *NETDEV_APIS)

#: Under these keys files have a case's mode and its candidate; a result's treatment has the latter under the same key.
MODE_KEY, CANDIDATE_KEY = "variant", "contender"
_KEYS = {"mode": MODE_KEY, "candidate": CANDIDATE_KEY}
_NAMES = {key: name for name, key in _KEYS.items()}


class Choices(Protocol):
    """What a switch offers: the part of a driver's class that a case needs to be resolved."""

    @property
    def ports(self) -> tuple[str, ...]: ...
    @property
    def default_apis(self) -> tuple[str, ...]: ...
    @property
    def default_cores(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Case:
    """The axes of one measurement.

    Attributes:
        dimension: what the measurement is about; not part of the id (a baseline's key is dimension and id).
        switch: driver name, for example ``ovs``.
        port: port kind, for example ``vhost-user``; None where the switch has its natural one.
        mode: one of the switch's own ways to forward; None for its natural one.
        candidate: name of what is measured side by side with what there is (``--icbench-variant``); None for the
            latter.
        api: API technique of the endpoints, one of ``APIS``; None where the switch has one natural choice.
        switch_cores: worker cores of the switch; None for its natural number.
        traffic: what is sent.
        burst: frames handed over at once, 1 to 1024.
        pairs: sender-receiver pairs, at least 1.
    """

    switch: str
    traffic: Traffic = SHORTEST
    burst: int = 32
    pairs: int = 1
    rate: Rate = MAXIMUM
    dimension: Dimension = "throughput"
    port: str | None = None
    mode: str | None = None
    switch_cores: int | None = None
    api: str | None = None
    blocking: bool = False
    touch: bool = False
    remote: bool = False
    candidate: str | None = None

    @property
    def id(self) -> str:
        """``switch[+port][:mode][:candidate][-cN]-api[-blocking][-touch]-64B-b32-1vs1-Rmax[-remote]``.

        Only ``\\w : + - .``.
        """
        head = self.switch
        if self.port is not None:
            head += f"+{self.port}"
        if self.variant_label is not None:
            head += f":{self.variant_label}"
        parts = [head]
        if self.switch_cores is not None:
            parts.append(f"c{self.switch_cores}")
        if self.api is not None:
            parts.append(self.api)
        if self.blocking:
            parts.append("blocking")
        if self.touch:
            parts.append("touch")
        parts += [self.traffic.label, f"b{self.burst}", f"{self.pairs}vs{self.pairs}", f"R{self.rate}"]
        if self.remote:
            parts.append("remote")
        return "-".join(parts)

    @property
    def variant_label(self) -> str | None:
        """Mode and candidate as the id has them: ``cost1000:new``. Users know both as variants."""
        return ":".join(filter(None, (self.mode, self.candidate))) or None

    @property
    def base(self) -> Case:
        """The case that this one is measured side by side with: itself without a candidate."""
        return replace(self, candidate=None)

    @property
    def ids(self) -> tuple[str, ...]:
        """Those by which its limits are found: a candidate is held to what its base is held to, too."""
        return (self.id,) if self.candidate is None else (self.base.id, self.id)

    @property
    def path(self) -> FramePath:
        """Its endpoints: who is whose peer, and who leads."""
        return FramePath(self.pairs)

    @property
    def rig_key(self) -> tuple[object, ...]:
        """Cases with the same key run on the same rig, without anything being built anew."""
        return (
            self.remote,
            self.switch,
            self.mode or "",
            self.candidate or "",
            self.port or "",
            self.switch_cores or 0,
            self.pairs,
            self.traffic.jumbo,
            self.api in NETDEV_APIS,
        )

    def resolved_port(self, switch: Choices) -> str:
        """The port kind, the switch's natural one where the case names none."""
        return self.port if self.port is not None else switch.ports[0]

    def resolved_api(self, switch: Choices) -> str:
        """The API technique, the switch's natural one where the case names none."""
        return self.api if self.api is not None else switch.default_apis[0]

    def resolved_cores(self, switch: Choices) -> int:
        """Worker cores, the switch's natural number where the case names none."""
        return self.switch_cores if self.switch_cores is not None else switch.default_cores

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``from_dict`` is the inverse."""
        data: dict[str, Any] = {}
        for field in fields(self):
            if field.name == "traffic":
                data |= self.traffic.to_axes()
            else:
                data[_KEYS.get(field.name, field.name)] = getattr(self, field.name)
        data["rate"] = self.rate.to_json()
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Case:
        traffic = Traffic.from_axes(data)
        axes = {_NAMES.get(key, key): value for key, value in data.items() if key not in traffic.to_axes()}
        return cls(**{**axes, "traffic": traffic, "rate": Rate.from_json(data["rate"])})
