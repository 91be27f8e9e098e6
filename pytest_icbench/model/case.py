# SPDX-License-Identifier: BSD-3-Clause
"""A case is one point of a benchmark: a switch, its traffic and what is measured. Frozen, with a stable id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, get_args

from pytest_icbench.model import flows
from pytest_icbench.model.acl_drop import names_share
from pytest_icbench.model.api_techniques import APIS, NETDEV_APIS
from pytest_icbench.model.codec import DamagedData, check_fields
from pytest_icbench.model.cpu_allocation import CpuAllocation, percents, side_by_side
from pytest_icbench.model.load import LABELLED, NO_FRAMES, Frames, Load
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.routes import Share, few_flows, ip_version, share
from pytest_icbench.model.traffic import LABEL, WAITS, Traffic

Dimension = Literal["throughput", "latency", "application", "startup"]
Family = Literal["kernel", "dpdk"]
#: Words that stand for several switches: all of them, or a family.
GROUPS = ("all", *get_args(Family))
#: The reference link by family, with which switches are compared: the driver that has no switch.
REFERENCE_LINKS: Mapping[Family, str] = MappingProxyType({"kernel": "veth", "dpdk": "direct"})

#: Ways in which a switch's workers learn of frames: they look all the time, are woken, or either, by the load.
POLLING = "polling"
RX_MODES = (POLLING, "interrupt", "adaptive")

#: Keys of a case's mode and candidate in files; a result's treatment has the candidate under the same key.
MODE_KEY, CANDIDATE_KEY = "mode", "candidate"
_KEYS = {"mode": MODE_KEY, "candidate": CANDIDATE_KEY}
_NAMES = {key: name for name, key in _KEYS.items()}
#: Axes without a key where they are None.
_RARE = ("wait", "rx_mode", "function", "cpu_share", "cpu_quota", "noisy_neighbour", "isolation", "node")


class Choices(Protocol):
    """The choices that a switch offers: the part of a driver's class by which a case is resolved."""

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
        dimension: what is measured; not part of the id (a baseline's key is dimension and id).
        switch: driver name, for example ``ovs``.
        port: port kind, for example ``vhost-user``; None for the switch's natural one.
        mode: one of the switch's own ways to forward; None for its natural one.
        candidate: name of the version that is measured side by side with its base (``--icbench-candidate``); None for
            the base.
        api: API technique of the endpoints, one of ``APIS``; None for a switch with a single natural one.
        switch_cores: worker cores of the switch; None for its natural number.
        rx_mode: how its workers learn of frames, one of ``RX_MODES``; None for its natural way.
        load: what puts load on the path.
        pairs: sender-receiver pairs, at least 1.
        wait: how endpoints learn of frames, one of ``WAITS``; None: they poll.
        function: the network function between the ends of each pair (``nat+acl10``); None for none. Different ones
            share one CPU, one for each pair: ``wire:2xcost1000``.
        chain: how many of that function each frame passes one after the other, at least 1.
        cpu_share, cpu_quota: per cents of one CPU for the function of each pair (``70:30``); None without such
            allocations.
        noisy_neighbour: load on CPUs of its own beside every other launch (``stream:2``, see
            ``model.noisy_neighbour``), or None.
        isolation: how it is kept apart: ``l3``, or ways of the L3 cache (``cat:11.1``); None: it is not.
        node: the kind of its nodes, or of those of sides a and b (``lxc+vm``); None: the session's.
    """

    switch: str
    load: Load = NO_FRAMES
    pairs: int = 1
    dimension: Dimension = "throughput"
    port: str | None = None
    mode: str | None = None
    switch_cores: int | None = None
    rx_mode: str | None = None
    api: str | None = None
    blocking: bool = False
    check_payload: bool = False
    remote: bool = False
    candidate: str | None = None
    wait: str | None = None
    function: str | None = None
    chain: int = 1
    cpu_share: str | None = None
    cpu_quota: str | None = None
    noisy_neighbour: str | None = None
    isolation: str | None = None
    node: str | None = None

    @property
    def frames(self) -> Frames:
        """Its frames; the default ones for a case without frames of the workload."""
        return self.load.frames

    @property
    def traffic(self) -> Traffic:
        """The frames that are sent."""
        return self.frames.traffic

    @property
    def burst(self) -> int:
        """Frames handed over at once, 1 to 1024."""
        return self.frames.burst

    @property
    def rate(self) -> Rate:
        """How much is offered, or which rate is searched for."""
        return self.frames.rate

    def sending(self, *, traffic: Traffic | None = None, burst: int | None = None, rate: Rate | None = None) -> Self:
        """Returns the case with other frames; unchanged without frames of the workload. None: as before."""
        return replace(self, load=self.load.sending(traffic=traffic, burst=burst, rate=rate))

    @property
    def id(self) -> str:
        """The id: ``switch[+port][:mode][:candidate][-cN][-rx:mode][-via:function][-xN]-api…-64B-b32-1vs1-Rmax``.

        The function is followed by ``-share70:30`` and ``-cap50:50``, and by ``-beside:stream:2`` and ``-cat:11.1`` for
        a noisy neighbour; ``-api`` by ``-blocking``, ``-interrupt`` or ``-adaptive``, and ``-touch``.
        Of an application it is ``switch[+port][:mode][:candidate][-cN]-app:redis-1vs1-Rmax[-remote]``, of containers
        that are created ``veth-birth:netns:1000-1vs1-Rmax``.
        At its end are the kind of nodes (``-vm``), if the case names one, and ``-remote`` for two hosts. It consists of
        ``\\w : + - .`` alone.
        """
        port = "" if self.port is None else f"+{self.port}"
        parts = [f"{self.switch}{port}" + ("" if self.mode_label is None else f":{self.mode_label}")]
        for prefix, value in (
            ("c", self.switch_cores),
            ("rx:", self.rx_mode),
            ("via:", self.function),
            ("x", self.chain if self.chain > 1 else None),
            ("share", self.cpu_share),
            ("cap", self.cpu_quota),
            ("beside:", self.noisy_neighbour),
            ("", self.isolation),
            ("", self.api),
        ):
            parts += [f"{prefix}{value}"] if value is not None else []
        parts += [*self.call_parts, *self.load.parts, f"{self.pairs}vs{self.pairs}", f"R{self.rate}"]
        return "-".join(filter(None, (*parts, self.node, "remote" if self.remote else None)))

    @property
    def call_parts(self) -> list[str]:
        """The part of the id on the endpoints' calls, but for the API technique."""
        touch = "touch" if self.check_payload else None
        return [part for part in ("blocking" if self.blocking else None, self.wait, touch) if part is not None]

    @property
    def mode_label(self) -> str | None:
        """The mode and the candidate as in the id: ``cost1000:new``."""
        return ":".join(filter(None, (self.mode, self.candidate))) or None

    @property
    def base(self) -> Case:
        """The case with which a candidate's case is measured side by side: the same case without a candidate."""
        return replace(self, candidate=None)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids by which its limits are found: the limits of the base hold for its candidate, too."""
        return (self.id,) if self.candidate is None else (self.base.id, self.id)

    @property
    def path(self) -> FramePath:
        """The path of its frames, which knows the peers and the leaders among the endpoints."""
        return FramePath(self.pairs, 0 if self.function is None else self.chain)

    @property
    def kind(self) -> str:
        """The kind of its measurements: ``throughput search latency application startup``."""
        return self.load.measured_as(self.dimension)

    @property
    def polls(self) -> bool:
        """Whether nothing on its path is meant to sleep."""
        sleeps = self.blocking or self.wait is not None or self.rx_mode not in (None, POLLING)
        return isinstance(self.load, Frames) and not sleeps

    @property
    def one_way(self) -> bool:
        """Whether its frames go from senders to receivers, and none is answered."""
        return self.dimension == "throughput"

    @property
    def round_trips(self) -> bool:
        """Whether its frames are requests, each of which is answered."""
        return self.dimension == "latency"

    @property
    def directions(self) -> int:
        """How many ends of each pair send: two where both do at once. Round trips are one client's."""
        return 2 if self.traffic.both and self.one_way else 1

    @property
    def senders(self) -> int:
        """The number of senders whose frames are measured, each of which sends at the case's rate."""
        return len(self.measured) * self.directions

    @property
    def functions(self) -> tuple[str, ...]:
        """The function of each pair; none for a path without."""
        if self.function is None:
            return ()
        return side_by_side(self.function) if self.mixed else (self.function,) * self.pairs

    @property
    def mixed(self) -> bool:
        """Whether different functions stand side by side. Round trips are then those through the first alone."""
        return self.function is not None and ":" in self.function

    @property
    def beside_alone(self) -> bool:
        """Whether its reference is one of its functions, or subscribers, alone: round trips beside many."""
        return self.round_trips and (self.mixed or (self.function or "").startswith("subscribers"))

    @property
    def measured(self) -> range:
        """The numbers of the pairs that are measured: beside pings, others only keep their functions busy."""
        return self.path.numbers[:1] if self.mixed and self.round_trips else self.path.numbers

    @property
    def one_cpu(self) -> bool:
        """Whether its functions share one CPU that nothing else of the case has."""
        return self.mixed or bool(self.cpu_allocations)

    @property
    def ip_version(self) -> int | None:
        """The IP version of the packets that its switch routes; None: it forwards frames."""
        return ip_version(self.switch, self.mode)

    def routes_of(self, index: int) -> Share | None:
        """Returns the routes that the frames of an endpoint take; None: they go to its peer's address."""
        both = self.traffic.both  # also in launches that ask for answers before a measurement both ways
        if self.traffic.routes is None or not (both or self.path.leads(index)):
            return None
        return share(self.traffic.routes, self.routed_senders, index if both else self.path.pair(index) - 1)

    @property
    def routed_senders(self) -> int:
        """How many senders have a share of the routes."""
        return self.pairs * (2 if self.traffic.both else 1)

    @property
    def answered(self) -> Traffic:
        """Its traffic, with those flows alone whose answers come back: to one port, by a router to one address."""
        label = self.traffic.flows
        if flows.differ_by_port(label):
            return replace(self.traffic, flows=None)
        routes, senders = self.traffic.routes, self.routed_senders
        most = 1 if routes is None else share(routes, senders, senders - 1).count
        if self.ip_version is None or flows.differ_by_mac(label) or flows.number(label) <= most:
            return self.traffic
        return replace(self.traffic, flows=flows.parse(str(most)))

    @property
    def unused_routes(self) -> str | None:
        """The warning that its flows do not look up the whole table; None if they do."""
        if self.traffic.routes is None:
            return None
        least = share(self.traffic.routes, self.routed_senders, 0).count
        return few_flows(flows.number(self.traffic.flows), least)

    @property
    def cpu_allocations(self) -> tuple[CpuAllocation, ...]:
        """The allocation of each pair's function; none without allocations."""
        rows = zip_longest(percents(self.cpu_share), percents(self.cpu_quota))
        return tuple(CpuAllocation(share, cap) for share, cap in rows)

    @property
    def new_flows(self) -> bool:
        """Whether each of its frames is a session of its own to functions in its path."""
        return self.function is not None and self.traffic.flows == flows.NEW

    @property
    def denies_flows(self) -> bool:
        """Whether a share of its flows is for functions in its path to deny, as their name says."""
        several = (self.traffic.flows is not None or self.traffic.both) and self.one_way
        return several and self.function is not None and names_share(self.function)

    @property
    def counts_hops(self) -> bool:
        """Whether its functions say of each launch how many frames they took and gave, control frames apart."""
        return self.chain > 1 or self.new_flows or self.denies_flows

    @property
    def rig_key(self) -> tuple[object, ...]:
        """A key that cases share if they run on the same rig, without anything being built anew."""
        return (
            *(self.remote, self.node or "", self.switch, self.mode or "", self.candidate or "", self.port or ""),
            *(self.switch_cores or 0, self.rx_mode or "", self.function or "", self.chain),
            *(self.new_flows, self.denies_flows, self.cpu_share or "", self.cpu_quota or "", self.pairs),
            *(self.traffic.jumbo, self.traffic.queues, self.traffic.routes or 0),
            *(self.traffic.routes is not None and self.traffic.both, self.api in NETDEV_APIS, self.load.rig),
        )

    @property
    def undisturbed(self) -> Case:
        """The case without its noisy neighbour."""
        return replace(self, noisy_neighbour=None, isolation=None)

    @property
    def search(self) -> Case:
        """The search for the rate that the case's load is a share of, by endpoints that poll: the load is the same for
        all ways to wait.
        """
        return replace(self.undisturbed, dimension="throughput", wait=None).sending(rate=self.rate.searched)

    def resolved_port(self, switch: Choices) -> str:
        """Returns the port kind: the switch's natural one if the case names none."""
        return self.port if self.port is not None else switch.ports[0]

    def resolved_api(self, switch: Choices) -> str:
        """Returns the API technique: the switch's natural one if the case names none."""
        return self.api if self.api is not None else switch.default_apis[0]

    def resolved_cores(self, switch: Choices) -> int:
        """Returns the number of worker cores: the switch's natural one if the case names none."""
        return self.switch_cores if self.switch_cores is not None else switch.default_cores

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON data; ``from_dict`` is the inverse. A path without a function has no key for it."""
        data: dict[str, Any] = {}
        for field in fields(self):
            if field.name == "load":
                data |= self.traffic.to_axes() | {"burst": self.burst, "pairs": self.pairs, "rate": self.rate.to_json()}
            else:
                data[_KEYS.get(field.name, field.name)] = getattr(self, field.name)
        data |= self.load.axes
        for name in _RARE:  # most cases have none, and say so by leaving it out
            if data[name] is None:
                del data[name]
        if self.chain == 1:
            del data["chain"]
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Case:
        """Returns the case of ``to_dict``.

        Raises DamagedData for a wrong type, ValueError for an unknown rate, mix, flows, header or direction.
        """
        check_fields(_Axes, data, "axes")
        frames = Frames(Traffic.from_axes(data), data.get("burst", NO_FRAMES.burst), Rate.from_json(data.get("rate")))
        labelled = [kind(data[key]) for key, kind in LABELLED.items() if data.get(key) is not None]
        names = {field.name for field in fields(cls)} - {"load"}
        axes = {_NAMES.get(key, key): value for key, value in data.items()}
        axes = {name: value for name, value in axes.items() if name in names}
        if "switch" not in axes or any(data.get(name, 1) < 1 for name in ("pairs", "burst", "chain")):
            raise DamagedData("axes: the case has no switch, or fewer than one pair, frame or function in a row")
        return cls(**axes, load=labelled[0] if labelled else frames)


@dataclass(frozen=True, slots=True)
class _Axes:
    """The types of a case's axes in files. The rate is an integer or a text."""

    switch: str
    packet_size: int
    mix: str | None
    flows: str | None
    header: str | None
    direction: str | None
    queues: int
    routes: int | None
    burst: int
    pairs: int
    dimension: Dimension
    port: str | None
    mode: str | None
    switch_cores: int | None
    rx_mode: str | None
    api: str | None
    blocking: bool
    check_payload: bool
    wait: str | None
    remote: bool
    candidate: str | None
    function: str | None
    app: str | None
    startup: str | None
    chain: int
    cpu_share: str | None
    cpu_quota: str | None
    noisy_neighbour: str | None
    isolation: str | None
    node: str | None


#: Keys of a case's axes in files.
AXES = frozenset({*(field.name for field in fields(_Axes)), "rate"})

#: The end of a benchmark's node id. A controller knows nothing else of its workers' items.
CASE_ID = re.compile(
    rf"(?P<head>[\w:+.-]+)-(?:(?P<traffic>{LABEL})-b\d+|(?:app|birth):[\w:.]+)-(?P<pairs>\d+)vs\d+-R[\w.:%*]+?(?P<place>-[\w:+.-]+)?\]$"
)
_API, _WAIT = "|".join(sorted(APIS, key=len, reverse=True)), "|".join(WAITS)
_FLAGS = re.compile(rf"(?:-(?P<api>{_API}))?(?:-blocking)?(?:-(?:{_WAIT}))?(?:-touch)?$")


def is_case(nodeid: str) -> bool:
    """Whether a node id is a benchmark's."""
    return CASE_ID.search(nodeid) is not None


def rig_group(nodeid: str) -> tuple[object, ...] | None:
    """Returns a key that benchmarks on one rig share (``Case.rig_key``), as far as the id shows; None for other tests.

    A switch whose name ends like an API (``forward-raw``) cannot be distinguished from another switch with raw sockets.
    That only costs a rig that is built once more.
    """
    match = CASE_ID.search(nodeid.rpartition("[")[2]) if "[" in nodeid else None
    if match is None:
        return None
    flags = _FLAGS.search(match["head"])
    assert flags is not None
    return (
        match["head"][: flags.start()],
        match["pairs"],
        match["traffic"] is not None and (traffic := Traffic.from_label(match["traffic"])).jumbo,
        match["traffic"] is not None and traffic.queues,
        match["traffic"] is not None and (traffic.routes, traffic.routes is not None and traffic.both),
        match["place"],
        flags["api"] in NETDEV_APIS,
    )
