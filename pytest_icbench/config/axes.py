# SPDX-License-Identifier: BSD-3-Clause
"""The axes: what a case can be a combination of. An axis is one row here, and a field of a record of ``model``.

The user's values replace those of a marker, which replace the natural values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pytest_icbench.config import values
from pytest_icbench.config.axis import FIRST, FRAMES, Applies, axis, rows
from pytest_icbench.config.rates import BitRate, parse_rates
from pytest_icbench.config.values import parse_words
from pytest_icbench.errors import UsageError
from pytest_icbench.model import flows as flow_labels
from pytest_icbench.model import headers as header_labels
from pytest_icbench.model import routes as route_labels
from pytest_icbench.model.api_techniques import APIS
from pytest_icbench.model.cpu_allocation import percents, side_by_side
from pytest_icbench.model.load import Application, Frames, Startup
from pytest_icbench.model.noisy_neighbour import KINDS, L3, MOST_CPUS, NoisyNeighbour, cache_ways
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.startup import MOST_CONTAINERS, Crowd
from pytest_icbench.model.traffic import (
    BOTH,
    MAX_FRAME_BYTES,
    MAX_QUEUES,
    MIN_FRAME_BYTES,
    ONE,
    SHORTEST,
    Traffic,
    sends_both_ways,
    waits,
)
from pytest_icbench.wording import alternatives, suggestion

if TYPE_CHECKING:  # cases are not needed to declare options, which every pytest run does
    from pytest_icbench.model.case import Case
    from pytest_icbench.model.switch_traits import SwitchTraits

#: API techniques and port kinds whose DPDK driver cannot wake an endpoint, and what can in their place.
_POLLED = {"af_packet": "--icbench-api raw-mmsg", "af_xdp": "--icbench-api xdp", "memif": "--icbench-port vhost-user"}
_PERCENTS = re.compile(r"\d{1,3}(:\d{1,3})*", re.ASCII)
#: Addresses of a chain's ports are 198.19.PAIR.x, two for each function.
MAX_CHAIN = 100
#: The word for a path without a function.
NO_FUNCTION = "none"
_FUNCTION = re.compile(r"[a-z][A-Za-z0-9.]*(\+[a-z][A-Za-z0-9.]*)*", re.ASCII)
_NUMBERED = re.compile(rf"([1-9]\d{{0,2}}x)?({_FUNCTION.pattern})", re.ASCII)
#: The word for cases that are not isolated.
NOT_ISOLATED = "none"


def parse_functions(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none nat nat+acl10``; None stands for no function. Raises UsageError for what no id can hold."""
    words = parse_words(text, where)
    for word in words:
        parts, several = word.split(":"), ":" in word
        if not all((_NUMBERED if several else _FUNCTION).fullmatch(part) for part in parts) or (
            several and NO_FUNCTION in side_by_side(word)
        ):
            raise UsageError(
                f"{where}: '{word[:60]}' is not a function: write parts joined by + (nat+acl10), different functions"
                f" side by side joined by : (wire:2xcost1000), or {NO_FUNCTION}"
            )
    return tuple(None if word == NO_FUNCTION else word for word in words)


def _parse_percents(text: str, where: str) -> list[tuple[str, list[int]]]:
    words = parse_words(text, where)
    for word in words:
        if not _PERCENTS.fullmatch(word):
            raise UsageError(f"{where}: '{word[:60]}' is not a list of per cents: write 70:30, one for each function")
    return [(word, [*percents(word)]) for word in words]


def parse_cpu_shares(text: str, where: str) -> tuple[str, ...]:
    """Parses ``50 70:30``: per cents of one CPU for functions side by side; a single N is ``N:(100-N)``.

    Raises UsageError: a share is 0, or shares sum to more than 100.
    """
    splits = []
    for word, numbers in _parse_percents(text, where):
        if len(numbers) == 1:
            numbers.append(100 - numbers[0])
        if min(numbers) < 1 or sum(numbers) > 100:
            raise UsageError(
                f"{where}: '{word}' is not possible on one CPU: shares are at least 1 and sum to at most 100 per cent"
            )
        splits.append(":".join(map(str, numbers)))
    return tuple(dict.fromkeys(splits))


def parse_cpu_quotas(text: str, where: str) -> tuple[str, ...]:
    """Parses ``50:50 20``: the most per cent of its CPU that each function gets. Raises UsageError."""
    for word, numbers in _parse_percents(text, where):
        if min(numbers) < 1 or max(numbers) > 100:
            raise UsageError(f"{where}: '{word}' is not possible on one CPU: a quota is 1 to 100 per cent")
    return parse_words(text, where)


def parse_noisy_neighbours(text: str, where: str) -> tuple[str, ...]:
    """Parses ``none cpu stream:2``. Raises UsageError for another kind, or too many CPUs."""
    labels = []
    for word in parse_words(text, where):
        noisy_neighbour = NoisyNeighbour.of(word)
        if noisy_neighbour is None:
            kind = word.partition(":")[0]
            what = f"'{word[:60]}' is not a number of CPUs of a noisy neighbour: write {kind}:2, 1 to {MOST_CPUS}"
            if kind not in KINDS:
                what = f"there is no noisy neighbour '{kind[:60]}'{suggestion(kind, tuple(KINDS))}"
            raise UsageError(f"{where}: {what}")
        labels.append(noisy_neighbour.label)
    return tuple(dict.fromkeys(labels))


def parse_isolations(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none l3 cat:11-1``; None stands for no isolation. Raises UsageError for other words and empty parts."""
    isolations = []
    for word in parse_words(text, where):
        label = word.replace("-", ".")
        ways = cache_ways(label)
        if 0 in ways:
            raise UsageError(f"{where}: '{word}' leaves a part without a cache way: give each at least 1")
        if word not in (NOT_ISOLATED, L3) and not ways:
            raise UsageError(
                f"{where}: '{word[:60]}' is not an isolation: write {NOT_ISOLATED}, {L3}, or cat: with the cache ways"
                " of two to four parts, the noisy neighbour's last (cat:11-1, cat:3-3-3-3)"
            )
        isolations.append(None if word == NOT_ISOLATED else label)
    return tuple(dict.fromkeys(isolations))


def parse_crowds(text: str, where: str) -> tuple[str, ...]:
    """Parses crowds (``netns:1000 fork:300``), whose kinds are checked where nodes are known. Raises UsageError."""
    labels = []
    for word in parse_words(text, where):
        crowd = Crowd.of(word)
        if crowd is None:
            raise UsageError(
                f"{where}: '{word}' is not a number of containers; write KIND:N, N from 1 to {MOST_CONTAINERS:,}, as"
                " netns:1000, or KIND:N:TIMEms with the time between new clients, as netns:200:25ms"
            )
        labels.append(crowd.label)
    return tuple(labels)


def parse_active(text: str, where: str) -> tuple[int, ...]:
    """Parses numbers of active clients. Raises UsageError."""
    from pytest_icbench.model.subscribers import (
        MOST_SUBSCRIBERS,  # imports cases, which declaring options does not need
    )

    return values.numbers("active clients", 1, MOST_SUBSCRIBERS)(text, where)


#: Addresses of the pairs are 198.18.PAIR.x.
MAX_PAIRS = 254
MAX_BURST = 1024
MAX_CORES = 1024

_SPEC = (
    "SPEC is a list (64 512 or 64,512) or a sequence, from .step .to (64 .32 .256) or from..step..to (64..32..256);"
    " the suffixes k and M are allowed"
)


def _packet_sizes(text: str, where: str) -> tuple[Traffic, ...]:
    """Parses the lengths of frames that all have one. Raises UsageError."""
    parse = values.numbers("bytes (Ethernet frame with FCS)", MIN_FRAME_BYTES, MAX_FRAME_BYTES)
    return tuple(map(Traffic, parse(text, where)))


def _parse_flag(text: str, where: str) -> tuple[bool, ...]:
    return (values.boolean(text, where),)


def _header_misfit(case: Case, cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why the path or the endpoints cannot have the headers of a case, or None."""
    header = case.traffic.header
    version = case.ip_version or (None if getattr(cls, "hops", None) is None else 4)
    if version is not None and version != (4 if header_labels.is_ipv4(header) else 6):
        words = " or ".join(name for name in header_labels.NAMES if name.endswith(str(version)))
        return (
            f"{_switch(case)} forwards IPv{version} packets and nothing else, so not {header or header_labels.PLAIN};"
            f" take {words}"
        )
    if (reason := case.traffic.misfit) is not None or header is None:
        return reason
    if api.startswith("udp"):
        return (
            f"a UDP socket sends udp4, not {header}; take --icbench-api raw or raw-mmsg, or leave --icbench-header out"
        )
    if header_labels.has_tag(header) and api == "xdp":
        return f"an AF_XDP socket may not see the VLAN tag of {header}; take --icbench-api raw or raw-mmsg"
    if header_labels.has_tag(header) and (not cls.vlan or cls.filters or version is not None):
        return f"{_switch(case)} does not pass frames with a VLAN tag; leave +vlan out of {header}"
    return None


def _flows_misfit(case: Case, _cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why endpoints with this API cannot have the flows of a case, or None."""
    if case.traffic.flows is not None and api.startswith("udp"):
        return "a UDP socket has one flow; take --icbench-api raw or raw-mmsg, or leave --icbench-flows out"
    if case.round_trips and flow_labels.differ_by_port(case.traffic.flows):
        return "answers come back to one port, so flows cannot differ by ports or be new; take addresses or macs"
    return None


def _direction_misfit(case: Case, _cls: type[SwitchTraits], _api: str) -> str | None:
    """Returns why both ends of a case cannot send at once, or None."""
    if not case.traffic.both:
        return None
    remedy = "leave --icbench-direction out"
    if case.round_trips:
        return f"round trips go both ways already, and a server sends answers only: {remedy}"
    if case.rate.trace is not None:
        return f"a trace has rates for sides a only: {remedy}"
    if case.blocking:
        return "an end that sends and receives at once polls, so its sockets cannot block: leave --icbench-blocking out"
    return None


def _queues_misfit(case: Case, cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why the path or the endpoints cannot have the queues of a case, or None."""
    queues, remedy = case.traffic.queues, "leave --icbench-queues out"
    if queues == 1:
        return None
    if api != "dpdk":
        return f"api {api} has one queue: take --icbench-api dpdk, or {remedy}"
    port = case.resolved_port(cls)
    if port not in cls.queue_ports:
        kinds = f"take {' or '.join(cls.queue_ports)}" if cls.queue_ports else remedy
        return f"{case.switch}'s port {port} has one queue pair, not {queues}: {kinds}"
    if case.remote:
        return f"an uplink to a second host has one queue: {remedy}"
    if case.function is not None:
        return f"the ports of function {case.function} have one queue: {remedy}"
    if flow_labels.differ_by_mac(case.traffic.flows):
        return (
            f"a card's hash does not see MAC addresses, so flows {case.traffic.flows} would all be in one of {queues}"
            " queues: take addresses or ports"
        )
    return None


def _wait_misfit(case: Case, cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why endpoints with this API cannot wait as a case says, or None."""
    if case.wait is None:
        return None
    if case.blocking:
        return "blocking sockets wait in their calls: leave --icbench-blocking or --icbench-wait out"
    driver = case.resolved_port(cls) if api == "dpdk" else api
    if driver in _POLLED:
        return f"DPDK's driver for {driver} has no receive interrupts, so they can only poll: take {_POLLED[driver]}"
    return None


def _routes_misfit(case: Case, cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why the path or the endpoints cannot have the routes of a case, or why a router cannot have its path."""
    routes, switch = case.traffic.routes, _switch(case)
    if case.ip_version is not None and case.remote:
        return f"{switch} routes between endpoints of one host: leave --icbench-remote out"
    if case.ip_version is not None and case.function is not None:
        return f"{switch} routes between the ends of a pair, so function {case.function} has no place: leave it out"
    if case.ip_version is not None and case.round_trips and case.answered != case.traffic:
        return f"{switch} routes answers to a client's own address alone: take no more flows than routes, or macs"
    if routes is None:
        return None
    number = f"{routes:,} route{'' if routes == 1 else 's'}"
    if case.ip_version not in getattr(cls, "route_bytes", {}):  # a third-party driver may be no Switch
        routers = [f"{cls.name}:{mode}" for mode in cls.modes if mode in route_labels.ROUTER_MODES]
        remedy = f"take {alternatives(routers or [route_labels.ROUTER])}, or leave --icbench-routes out"
        return f"{switch} does not route, so it has no table for {number}: {remedy}"
    if api.startswith("udp"):
        return (
            f"a UDP socket sends to its peer alone, so it looks up none of {number}; take --icbench-api raw or raw-mmsg"
        )
    if routes < case.routed_senders:
        return (
            f"{case.routed_senders} senders need a route of their own each, and the table has {number}: take more with"
            " --icbench-routes"
        )
    return None


def _switch(case: Case) -> str:
    return case.switch if case.mode is None else f"{case.switch}:{case.mode}"


def _rx_mode_misfit(case: Case, cls: type[SwitchTraits], _api: str) -> str | None:
    """Returns why a switch's workers cannot learn of frames in the case's way, or None."""
    if case.rx_mode is None:
        return None
    port = case.resolved_port(cls)
    if case.rx_mode in (has := cls.rx_modes(port)):
        return None
    choice = alternatives(has) if has else "no choice"
    return f"{case.switch}'s port {port} has {choice}, not rx mode {case.rx_mode}: leave --icbench-rx-mode out"


def explain_burst(burst: int, ring: int) -> str:
    """Returns why a burst cannot be handed over at once."""
    return f"a burst of {burst} does not fit into a ring of {ring}; take a smaller burst or a larger --icbench-ring"


_OF_FRAMES = Applies(lambda case: isinstance(case.load, Frames), "no selected case sends frames of the workload")
_OF_FUNCTIONS = Applies(lambda case: case.function is not None, "no selected case has a network function")


@dataclass(frozen=True, slots=True)
class Axes:
    """The values of each axis; None where none are given."""

    packet_size: tuple[Traffic, ...] | None = axis(
        "SPEC",
        "replace the packet sizes of all scenarios: Ethernet frames with FCS in bytes, 64 to 9216. " + _SPEC,
        _packet_sizes,
        group=FIRST,
        marker="64",
        traffic=FRAMES,
    )
    mix: tuple[Traffic, ...] | None = axis(
        "LIST",
        "replace the packet sizes of all scenarios by mixes, with spaces between: simple (7 x 64, 4 x 570, 1 x 1518),"
        " nfvbench (7 x 64, 4 x 594, 1 x 1518), a genome of RFC 6985 (aaagb) or sizes and weights (64:7,594:4,1518:1)",
        values.labels(
            Traffic.of_mix,
            "no mix given; write simple, nfvbench, a genome (aaagb) or 64:7,594:4,1518:1",
            "is not a mix",
            commas=False,
        ),
        traffic=FRAMES,
    )
    header: tuple[str | None, ...] | None = axis(
        "LIST",
        "replace the headers: udp4, tcp4, udp6 or tcp6, then +vlanN for a VLAN tag (udp4 tcp6 udp6+vlan100); the"
        " smallest frames have 64, 76, 84 and 96 bytes, 4 more with a tag",
        values.labels(
            header_labels.parse, "no headers given; write udp4, tcp4, udp6, tcp6 or udp4+vlan100", "are not headers"
        ),
        marker="'udp4'",
        natural=(None,),
        traffic="header",
        misfit=_header_misfit,
    )
    flows: tuple[str | None, ...] | None = axis(
        "LIST",
        "replace the flows: number (1 to 1M), then :addresses (the default), :ports or :macs for what differs, then"
        " :zipf unless all come equally often (1 64k 1M:macs:zipf); new: each frame is a new flow",
        values.labels(
            flow_labels.parse, "no number of flows given; write 1, 64k, 64k:ports or 1M:zipf", "are not flows"
        ),
        marker="1",
        natural=(None,),
        traffic="flows",
        misfit=_flows_misfit,
    )
    direction: tuple[bool, ...] | None = axis(
        "LIST",
        "replace the directions: one (side a of a pair sends), both (both ends send at once; rates and losses are then"
        " also those of each direction)",
        values.labels(sends_both_ways, f"no direction given; write {ONE} or {BOTH}", "is not a direction"),
        marker="'one'",
        natural=(False,),
        traffic="both",
        misfit=_direction_misfit,
    )
    queues: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the numbers of queue pairs of an endpoint, 1 to 16: flows are spread over them by their"
        " Toeplitz hash, as a network card does",
        values.numbers("queue pairs", 1, MAX_QUEUES),
        natural=(1,),
        traffic="queues",
        misfit=_queues_misfit,
    )
    routes: tuple[int | None, ...] | None = axis(
        "SPEC",
        "replace the numbers of routes in the table of a switch that routes, 1 to 1M (1 1k 100k 1M): flows are spread"
        " over them by their destinations, so give as many flows",
        values.numbers("routes", 1, route_labels.MAX_ROUTES),
        natural=(None,),
        traffic="routes",
        misfit=_routes_misfit,
    )
    burst: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the bursts: frames handed over at once, 1 to 1024 and at most --icbench-ring",
        values.numbers("frames", 1, MAX_BURST),
        natural=(32,),
    )
    rate: tuple[Rate | BitRate, ...] | None = axis(
        "SPEC",
        "replace the rates: max, frames per second and pair (1000, 500k, 1M..1M..20M), bits per second with preamble"
        " and gap (10Gbps; 10GbpsL2 without), ndr or pdr:0.5%% (a search for the greatest load without loss, or with"
        " at most that), mfr (the maximum over offered loads), trace:steps:30k or trace:FILE (a rate for each second)",
        parse_rates,
        group=FIRST,
        marker="'max'",
        natural=(Rate(),),
    )
    pairs: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the numbers of sender-receiver pairs, 1 to 254",
        values.numbers("pairs", 1, MAX_PAIRS),
        natural=(1,),
    )
    switch_cores: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the numbers of worker cores; left out for switches that have no choice",
        values.numbers("worker cores", 1, MAX_CORES),
    )
    rx_mode: tuple[str, ...] | None = axis(
        "LIST",
        "replace the ways in which the switch's workers learn of frames: polling, interrupt, adaptive; skipped where"
        " the switch has no such choice",
        values.rx_modes,
        misfit=_rx_mode_misfit,
    )
    api: tuple[str, ...] | None = axis(
        "LIST",
        f"replace the API techniques of the endpoints: {' '.join(APIS)}, or all; each switch takes those that it"
        " supports",
        values.apis,
    )
    app: tuple[str, ...] | None = axis(
        "LIST",
        "replace the applications of the scenarios that have some: NAME[:MODE][:cN][:NB][:rN], N connections or"
        " streams, messages of N bytes, N requests per second of an open loop (redis:set:c16, tcp_rr:r5000), or all",
        values.applications,
        applies=Applies(lambda case: isinstance(case.load, Application), "no selected case has an application"),
    )
    startup: tuple[str, ...] | None = axis(
        "LIST",
        "replace the containers of the scenarios that create some in sequence: KIND:N, a kind of node or fork"
        " (netns:1000 fork:300), or KIND:N:TIMEms, each by the first frame of a client, one client every TIME ms"
        " (netns:200:25ms)",
        parse_crowds,
        applies=Applies(lambda case: isinstance(case.load, Startup), "no selected case creates containers"),
    )
    port: tuple[str, ...] | None = axis(
        "LIST",
        "replace the port kinds (vhost-user, vhost-user-packed, memif, ...); each switch takes those it supports",
        parse_words,
    )
    blocking: tuple[bool, ...] | None = axis(
        "",
        "blocking sockets, no polling (socket APIs)",
        _parse_flag,
        flag=True,
        natural=(False,),
        applies=Applies(lambda case: case.blocking, "no selected case has sockets"),
    )
    wait: tuple[str | None, ...] | None = axis(
        "LIST",
        "replace how endpoints learn of frames: poll, interrupt (they sleep until a frame arrives, or one is due),"
        " adaptive (they poll for 50 µs after each frame, then sleep); results then say how much CPU they used",
        values.labels(waits, "no way to wait given; write poll, interrupt or adaptive", "is no way to wait"),
        marker="'poll'",
        natural=(None,),
        misfit=_wait_misfit,
        applies=_OF_FRAMES,
    )
    check_payload: tuple[bool, ...] | None = axis(
        "",
        "generate and check every payload byte",
        _parse_flag,
        flag=True,
        natural=(False,),
    )
    function: tuple[str | None, ...] | None = axis(
        "LIST",
        "replace the network functions between the ends of each pair: wire, cost1000, swap, route, nat,"
        " acl1000+deny30, police200k, shape10Mbit, firewall, inspect, subscribers1000, parts joined by +; different"
        " ones side by side on one CPU (wire:2xcost1000); or none (docs/reference/functions.md)",
        parse_functions,
        marker="'none'",
        argument="functions",
        natural=(None,),
        applies=_OF_FRAMES,
    )
    function_count: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the numbers of functions side by side, 1 to 254: a pair for each; cases without a function keep"
        " their pairs",
        values.numbers("pairs", 1, MAX_PAIRS),
        applies=_OF_FUNCTIONS,
    )
    chain: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the numbers of functions in a row between the ends of each pair, 1 to 100",
        values.numbers("functions in a row", 1, MAX_CHAIN),
        natural=(1,),
        applies=_OF_FUNCTIONS,
    )
    cpu_share: tuple[str, ...] | None = axis(
        "LIST",
        "replace the CPU shares of functions side by side, in per cent of one CPU: 70:30, or 70 for the same; a pair"
        " for each",
        parse_cpu_shares,
        applies=_OF_FUNCTIONS,
    )
    cpu_quota: tuple[str, ...] | None = axis(
        "LIST",
        "replace the CPU quotas of functions side by side, in per cent of their CPU: 50:50; a pair for each",
        parse_cpu_quotas,
        applies=_OF_FUNCTIONS,
    )
    active: tuple[int, ...] | None = axis(
        "SPEC",
        "replace the numbers of active clients of functions for subscribers, 1 to 1000: each sends at the rate, through"
        " its own firewall",
        parse_active,
    )
    noisy_neighbour: tuple[str, ...] | None = axis(
        "LIST",
        f"replace the noisy neighbours, load on separate CPUs during every other launch: {alternatives(tuple(KINDS))};"
        " stream:2 for two CPUs; none is the control",
        parse_noisy_neighbours,
        applies=_OF_FRAMES,
    )
    isolation: tuple[str | None, ...] | None = axis(
        "LIST",
        "replace the isolation of noisy neighbours: none, l3 (CPUs of another L3 cache), or cat:11-1 to cat:3-3-3-3"
        " (ways of the L3 cache through resctrl, the noisy neighbour's last)",
        parse_isolations,
    )

    @property
    def replaces_frames(self) -> bool:
        """Whether a value is given that says which frames are sent."""
        return any(getattr(self, row.field) is not None for row in rows(Axes) if row.traffic)

    def replaced_by(self, given: Axes) -> Axes:
        """Returns the values of all axes: the given ones, else this object's, else the natural ones."""
        has_lengths = given.packet_size is not None or given.mix is not None  # either replaces both
        chosen: dict[str, Any] = {}
        for row in rows(Axes):
            sources = (given,) if row.traffic == FRAMES and has_lengths else (given, self)
            found = (getattr(axes, row.field) for axes in sources)
            chosen[row.field] = next((value for value in found if value is not None), row.natural)
        return Axes(**chosen)

    def frames(self) -> tuple[Traffic, ...]:
        """Returns the frames to send: each packet size, then each mix, with each header, flows and so on."""
        lengths: Sequence[Traffic] = (*(self.packet_size or ()), *(self.mix or ())) or (SHORTEST,)
        ways = [row for row in rows(Axes) if row.traffic not in ("", FRAMES)]
        return tuple(
            replace(length, **{row.traffic: value for row, value in zip(ways, combination, strict=True)})
            for length in lengths
            for combination in product(*(getattr(self, row.field) for row in ways))
        )
