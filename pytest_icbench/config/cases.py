# SPDX-License-Identifier: BSD-3-Clause
"""Turns a marker into cases. Pure: the host is not examined, so every host collects the same list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

from pytest_icbench.config import candidates, values
from pytest_icbench.config.axes import Axes
from pytest_icbench.config.capabilities import check_reach, select_socket_ports, select_supported
from pytest_icbench.config.option_table import SOAK_LENGTHS, TABLE
from pytest_icbench.config.options import NAMES, Options, parse_overrides
from pytest_icbench.config.switches import (
    Catalogue,
    SwitchConfig,
    SwitchModes,
    check_config,
    check_modes,
    choose_modes,
    is_named,
    resolve_switches,
)
from pytest_icbench.config.values import parse_words
from pytest_icbench.errors import UsageError
from pytest_icbench.model.api_techniques import APPLICATION_API, SOCKET_APIS
from pytest_icbench.model.case import POLLING, Case, Dimension
from pytest_icbench.model.cpu_allocation import percents, side_by_side
from pytest_icbench.model.headers import UDP6
from pytest_icbench.model.load import Application, Frames, Startup
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.routes import ip_version
from pytest_icbench.model.startup import FORK
from pytest_icbench.model.subscribers import misfit, with_active
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.wording import suggestion

#: The most comparisons of one test.
MAX_COMPARISONS = 1000
#: Addresses of functions have a byte for the pair.
MOST_FUNCTIONS = 254
#: Each container gets a veth pair, and no switch is measured.
LINK = "veth"


@dataclass(frozen=True, slots=True)
class Request(Axes):
    """The arguments of a marker: axes, and what the test does. None stands for the switch's natural choice.

    Attributes:
        switch: names and groups, as written; ``vpp:xconnect`` is a switch in one of its modes.
        mode: names of modes for switches that are given without one; ``default`` is the natural one, ``wires`` stands
            for all ``wire_modes``, ``routers`` for ``ip4`` and ``ip6``.
        node: kinds of nodes, or pairs of them (``lxc+vm``); None: that of ``--icbench-node``, which ids do not show.
        remote: whether the case is over two hosts; empty: if there is a second one.
        measure: the method that the test calls besides ``throughput`` and ``latency``; None: no other.
        soak_duration: the length of the test's long run in seconds.
        comparisons: how many times the test compares a candidate with its base.
        settings: values by their names in ``Settings``.
    """

    switch: tuple[str, ...] = ("all",)
    mode: tuple[str, ...] | None = None
    node: tuple[str, ...] | None = None
    remote: tuple[bool, ...] = ()
    dimension: Dimension = "throughput"
    measure: Literal["search", "sweep", "soak", "back_to_back"] | None = None
    soak_duration: float | None = None
    comparisons: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)


_AXES = {row.argument: row for row in TABLE if row.marker}
_FIELDS = {name: row.field for name, row in _AXES.items()}
#: Arguments that are True, False or a list of these, and the names of their fields.
_FLAGS = (*(name for name, row in _AXES.items() if row.flag), "remote")
#: The parsers of all other arguments but settings.
_PARSERS: dict[str, Callable[[str, str], Any]] = {
    **{name: row.parse for name, row in _AXES.items() if not row.flag},
    "mode": parse_words,
    "node": parse_words,
    "dimension": values.one_of("throughput", "latency"),
    "measure": values.one_of("search", "sweep", "soak", "back_to_back"),
    "soak_duration": SOAK_LENGTHS,
    "comparisons": values.count(1, MAX_COMPARISONS, "comparisons"),
}
#: Arguments for which None is the same as leaving them out.
_NONE = {"mode", "node", "measure", "soak_duration", *(name for name, row in _AXES.items() if row.marker == "None")}
ARGUMENTS = tuple(dict.fromkeys((*_PARSERS, *_FLAGS, *NAMES)))


def parse_marker(args: Sequence[object], named: Mapping[str, Any], where: str) -> Request:
    """Reads the arguments of a marker. ``args``: positional arguments, which are an error.

    Raises UsageError: one sentence.
    """
    where = f"{where}: icbench marker"
    if args:
        raise UsageError(f"{where}: give its arguments by name (switch=..., packet_size=...)")
    if unknown := [name for name in named if name not in ARGUMENTS]:
        raise UsageError(f"{where}: there is no argument '{unknown[0]}'{suggestion(unknown[0], ARGUMENTS)}")
    fields: dict[str, Any] = {}
    for name, value in named.items():
        if name not in NAMES and (value is not None or name not in _NONE):
            fields[_FIELDS.get(name, name)] = _parse_argument(name, value, f"{where}: {name}")
    if "app" in fields:
        if "dimension" in named or {"measure", "api"} & {*fields}:
            raise UsageError(f"{where}: an application brings its traffic; leave out dimension, measure and api")
        fields["dimension"] = "application"
    if "startup" in fields:
        fields |= startup_arguments([name for name in named if name not in NAMES], where)
    settings = parse_overrides({name: value for name, value in named.items() if name in NAMES}, where)
    return Request(**fields, settings=settings)


def _parse_argument(name: str, value: object, where: str) -> Any:
    return values.flags(value, where) if name in _FLAGS else _PARSERS[name](values.as_text(value, where), where)


def name_option(options: Options, name: str) -> str:
    """Returns how an option was given, the beginning of a message: ``--icbench-x``, or ``icbench_x`` of an ini file."""
    ini = f"icbench_{name.replace('-', '_')}"
    return ini if ini in options.given else f"--icbench-{name}"


def check_names(options: Options, catalogue: Catalogue, programs: Sequence[str] = ()) -> None:
    """Checks the names on the command line. Raises UsageError for one that no switch knows.

    ``programs``: names of ``--icbench-binary`` that are not switches.
    """
    kept = resolve_switches(options.switch, catalogue, name_option(options, "switch"))
    if options.port is not None:
        _check_ports(options.port, catalogue, name_option(options, "port"))
    check_reach(options, [catalogue[name] for name in kept])
    binary = name_option(options, "binary")
    for name in options.binaries:
        if name in programs:
            continue
        if name not in catalogue:
            known = (*(key for key, cls in catalogue.items() if cls.takes_binary), *programs)
            raise UsageError(f"{binary}: there is no switch '{name}'{suggestion(name, known)}")
        if not catalogue[name].takes_binary:
            raise UsageError(f"{binary}: {name} runs no program; leave it out")
    for name in options.switch_config:
        if name not in catalogue:
            config = name_option(options, "switch-config")
            raise UsageError(f"{config}: there is no switch '{name}'{suggestion(name, tuple(catalogue))}")
    candidates.check(options.candidate, catalogue, name_option(options, "candidate"))


def check_configs(options: Options, catalogue: Catalogue) -> dict[str, SwitchConfig]:
    """Returns the user's configurations by switch and by candidate (``ovs:new``); a candidate inherits its base's.

    Raises UsageError: a switch does not take its configuration.
    """
    configs = {
        name: check_config(file, name, catalogue[name].config_keys) for name, file in options.switch_config.items()
    }
    for switch in catalogue:
        base = configs.get(switch)
        for candidate in candidates.select_for_switch(options.candidate, switch):
            config = base
            if candidate.target == switch and candidate.config is not None:
                config = check_config(candidate.config, switch, catalogue[switch].config_keys)
            if config is not None:
                configs[f"{switch}:{candidate.name}"] = config
    return configs


def _check_ports(ports: Iterable[str], catalogue: Catalogue, where: str) -> None:
    known = tuple(dict.fromkeys(port for cls in catalogue.values() for port in cls.ports))
    for port in ports:
        if port != "all" and port not in known:
            raise UsageError(f"{where}: there is no port kind '{port}'{suggestion(port, (*known, 'all'))}")


def expand(request: Request, options: Options, catalogue: Catalogue, where: str) -> list[Case]:
    """Returns all cases of a request, with the axes that the user replaced.

    A switch takes those values of ``api``, ``port`` and ``switch_cores`` that it supports. It is an error if the marker
    names a switch that supports none of them. A switch that has none of the modes takes its natural one. Raises
    UsageError: one sentence that begins with ``where``.
    """
    where = f"{where}: icbench marker"
    if request.port is not None:
        _check_ports(request.port, catalogue, f"{where}: port")
    keep: SwitchModes = dict.fromkeys(catalogue, (None,))
    if options.switch:
        keep = resolve_switches(options.switch, catalogue, name_option(options, "switch"))
    if request.startup is not None:
        labels = dict.fromkeys(options.startup or request.startup) if LINK in keep else ()
        return [Case(switch=LINK, load=Startup(label), dimension="startup") for label in labels]
    expansion = _Expansion(request, options, request.replaced_by(options), where)
    paths = expansion.combine_paths()
    names = resolve_switches(request.switch, catalogue, f"{where}: switch", named=options.switch)
    check_modes(request.mode or (), [catalogue[name] for name in names], f"{where}: mode")
    cases: dict[Case, None] = {}
    for name, named_modes in names.items():
        cls = catalogue[name]
        named = is_named(name, request.switch)
        modes = choose_modes(cls, named_modes, keep.get(name, ()), request.mode)
        ways = expansion.choose_ways(cls, named=named)
        if name not in keep:
            continue
        if request.app is not None:
            made = expansion.application_cases(cls, modes, ways)
        else:
            made = expansion.frame_cases(cls, modes, ways, paths)
        cases |= dict.fromkeys(made)
    return list(cases)


@dataclass(frozen=True, slots=True)
class _Expansion:
    """A request that becomes cases. ``axes``: the values of all axes; the user's have replaced those of the request."""

    request: Request
    options: Options
    axes: Axes
    where: str

    def combine_paths(self) -> list[tuple[dict[str, Any], bool]]:
        """Returns the axes between the endpoints by their names in ``Case``, each with whether it is over two hosts."""
        functions = _combine_functions(self.axes, self.options.pairs, self.where)
        noisy_neighbours = _combine_noisy_neighbours(self.axes, self.where)
        return [
            ({**way, **noisy_neighbour}, remote)
            for way in functions
            for noisy_neighbour in noisy_neighbours
            for remote in self._remotes(way["pairs"])
        ]

    def _remotes(self, pairs: int) -> tuple[bool, ...]:
        if self.request.remote:
            return self.request.remote
        topology = self.options.topology
        return (self.options.remote is not None if topology is None else topology.is_remote(pairs),)

    def choose_ways(self, cls: type[SwitchTraits], *, named: bool) -> list[tuple[str, str]]:
        """Returns the pairs of port kind and API technique that a switch is measured with.

        ``named``: whether the marker names the switch. Raises UsageError: a switch that is named has none of the
        requested ones.
        """
        request, options = self.request, self.options
        where = f"{self.where}: {cls.name}"
        apis = self._choose("api", cls.default_apis, cls.apis, where if named else None)
        ports = self._choose("port", cls.ports[:1], cls.ports, where if named else None)
        if request.app is not None:
            able = select_socket_ports(cls, options.port or request.port)
            if named and not able:
                remedy = f"choose its port {' or '.join(cls.ports_by_name)}, or " if cls.ports_by_name else ""
                raise UsageError(f"{where} has no sockets for applications; {remedy}leave the switch out")
            return [(port, APPLICATION_API) for port in able]
        ways = _combine_ways(cls, apis, ports, request, options)
        if named and not ways and options.api is None and options.port is None:
            raise UsageError(f"{where} has no API {' or '.join(apis)} over port kind {' or '.join(ports)}")
        return ways

    def _choose(
        self, axis: Literal["api", "port"], natural: tuple[str, ...], supported: tuple[str, ...], named_at: str | None
    ) -> tuple[str, ...]:
        """Returns the names that a switch takes: its natural ones unless the marker or the user asks for some.

        ``named_at``: the beginning of a message if the marker names the switch; else None. Raises UsageError: a switch
        that is named supports none of the requested ones.
        """
        asked: tuple[str, ...] | None = getattr(self.request, axis)
        if asked is not None and named_at is not None and not select_supported(asked, supported):
            noun = "API" if axis == "api" else "port kind"
            raise UsageError(f"{named_at} has no {noun} {' or '.join(asked)}; it has {' '.join(supported)}")
        chosen: tuple[str, ...] | None = getattr(self.axes, axis)
        return natural if chosen is None else select_supported(chosen, supported)

    def _cores(self, cls: type[SwitchTraits]) -> tuple[int | None, ...]:
        """Returns the requested worker cores; None is the natural number, the only one of a switch with no choice."""
        asked = self.axes.switch_cores
        if asked is None or not cls.scalable:
            return (None,)
        return tuple(None if cores == cls.default_cores else cores for cores in asked)

    def frame_cases(
        self,
        cls: type[SwitchTraits],
        modes: Sequence[str | None],
        ways: Sequence[tuple[str, str]],
        paths: Sequence[tuple[dict[str, Any], bool]],
    ) -> Iterator[Case]:
        """Yields the cases of a switch that send frames of the workload."""
        axes = self.axes
        for (clients, mode), cores, (path, remote), (port, api), calls, traffic, burst, rate in (
            (one, *others)
            for one in product(axes.active or (None,), modes)
            for others in product(
                self._cores(cls),
                paths,
                self._routed_ways(cls.name, one[1], ways),
                tuple(product(axes.blocking or (), axes.wait or (), axes.check_payload or ())),
                self._routed_frames(cls.name, one[1]),
                axes.burst or (),
                axes.rate or (),
            )
        ):
            blocking, wait, touch = calls
            case = Case(
                switch=cls.name,
                load=Frames(traffic, burst, rate if isinstance(rate, Rate) else rate.at(traffic, self.where)),
                dimension=self.request.dimension,
                port=None if port == cls.ports[0] else port,
                mode=mode,
                switch_cores=cores,
                api=None if cls.default_apis == (api,) else api,
                blocking=blocking and api in SOCKET_APIS,
                wait=wait,
                check_payload=touch,
                remote=remote,
                **path,
            )
            yield from self._versions(set_active(case, clients, self.where), cls)

    def _is_given(self, *names: str) -> bool:
        """Whether the marker or the user gives one of these axes."""
        return any(getattr(given, name) is not None for given in (self.request, self.options) for name in names)

    def _routed_frames(self, switch: str, mode: str | None) -> Sequence[Traffic]:
        """Returns the frames; an IPv6 router's default ones are IPv6."""
        frames = self.axes.frames()
        if ip_version(switch, mode) != 6 or self._is_given("header"):
            return frames
        frames = tuple(replace(traffic, header=UDP6) for traffic in frames)
        if self._is_given("packet_size", "mix"):
            return frames
        return tuple(replace(traffic, packet_size=traffic.least_bytes) for traffic in frames)

    def _routed_ways(self, switch: str, mode: str | None, ways: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Returns the ports and techniques; raw sockets for a router of IPv6 if nobody gives a technique."""
        if ip_version(switch, mode) != 6 or self._is_given("api"):
            return ways
        return list(dict.fromkeys((port, "raw-mmsg" if api.startswith("udp") else api) for port, api in ways))

    def application_cases(
        self, cls: type[SwitchTraits], modes: Sequence[str | None], ways: Sequence[tuple[str, str]]
    ) -> Iterator[Case]:
        """Yields the cases of a switch with applications, which have no axes of frames."""
        for mode, cores, (pairs, remote), (port, api), app in product(
            modes,
            self._cores(cls),
            [(number, remote) for number in self.axes.pairs or () for remote in self._remotes(number)],
            ways,
            self.axes.app or (),
        ):
            case = Case(
                switch=cls.name,
                load=Application(app),
                pairs=pairs,
                dimension="application",
                port=None if port == cls.ports[0] else port,
                mode=mode,
                switch_cores=cores,
                api=None if cls.default_apis == (api,) else api,
                remote=remote,
            )
            yield from self._versions(case, cls)

    def _versions(self, case: Case, cls: type[SwitchTraits]) -> Iterator[Case]:
        """Yields a case in each rx mode between nodes of each kind, or those of the candidates in its place."""
        for asked, node in product(self.axes.rx_mode or (None,), self.request.node or (None,)):
            natural = asked is None or asked == next(iter(cls.rx_modes(case.resolved_port(cls))), POLLING)
            base = replace(case, rx_mode=None if natural else asked, node=node)
            kind, known = self.options.node_of(base), self.options.candidate
            yield from [replace(base, candidate=one.name) for one in known if one.concerns(base, kind)] or [base]


def set_active(case: Case, active: int | None, where: str) -> Case:
    """Returns a case with active clients. Raises UsageError if one of them, or one of its flows, lacks a firewall."""
    try:
        case = case if active is None else with_active(case, active)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    if (reason := misfit(case)) is not None:
        raise UsageError(f"{where}: {reason}")
    return case


def _combine_ways(
    cls: type[SwitchTraits], apis: tuple[str, ...], ports: tuple[str, ...], request: Request, options: Options
) -> list[tuple[str, str]]:
    """Returns pairs of port kind and API technique; an unchosen one follows from the chosen one."""
    if request.port is None and options.port is None:
        chosen = [port for port in cls.ports if port not in cls.ports_by_name]
        first = {api: next((port for port in chosen if api in cls.port_apis(port)), None) for api in apis}
        return [(port, api) for port in dict.fromkeys(first.values()) if port for api in apis if first[api] == port]
    if request.api is None and options.api is None:
        natural = {port: tuple(api for api in apis if api in cls.port_apis(port)) for port in ports}
        return [(port, api) for port in ports for api in natural[port] or cls.port_apis(port)[:1]]
    return [(port, api) for port in ports for api in apis if api in cls.port_apis(port)]


def _combine_noisy_neighbours(axes: Axes, where: str) -> list[dict[str, Any]]:
    """Returns the axes of noisy neighbours by their names in ``Case``. Raises UsageError for isolation alone."""
    noisy_neighbours, isolations = axes.noisy_neighbour, axes.isolation
    if noisy_neighbours is None:
        if any(isolations or ()):
            raise UsageError(
                f"{where}: isolation is for a noisy neighbour, and there is none: give noisy_neighbour, too"
            )
        return [{}]
    return [{"noisy_neighbour": one, "isolation": apart} for one in noisy_neighbours for apart in isolations or (None,)]


def _combine_functions(axes: Axes, own_pairs: Sequence[int] | None, where: str) -> list[dict[str, Any]]:
    """Returns the axes of functions with the number of pairs, by their names in ``Case``.

    Args:
        axes: their ``function`` None stands for a path without any. CPU shares and quotas have a function, and a pair,
            for each of their per cents; different functions side by side have a pair each.
        own_pairs: the numbers of pairs that the user requests, which override the functions'.

    Raises UsageError: shares, quotas and functions are for different numbers of functions, or for a chain.
    """
    ways: list[dict[str, Any]] = []
    for function in axes.function or ():
        if function is None:
            ways += [{"function": None, "pairs": number} for number in axes.pairs or ()]
            continue
        row = side_by_side(function)
        if ":" in function and not 2 <= len(row) <= MOST_FUNCTIONS:
            raise UsageError(f"{where}: '{function}' are {len(row)} functions: take 2 to {MOST_FUNCTIONS} side by side")
        for chain, share, cap in product(axes.chain or (), axes.cpu_share or (None,), axes.cpu_quota or (None,)):
            count = _count_functions(function, len(row), chain, (share, cap), where)
            numbers = (count,) if count else own_pairs or axes.function_count or axes.pairs or ()
            fields = {"function": function, "chain": chain, "cpu_share": share, "cpu_quota": cap}
            ways += [{**fields, "pairs": number} for number in numbers]
    return ways


def _count_functions(
    function: str, named: int, chain: int, cpu_allocation: tuple[str | None, str | None], where: str
) -> int | None:
    """Returns how many functions lie side by side; None where neither their names nor an allocation says it.

    ``named``: the number of functions that ``function`` names.
    """
    share, cap = cpu_allocation
    counts = {len(percents(text)) for text in cpu_allocation if text is not None}
    if len(counts) > 1:
        raise UsageError(f"{where}: CPU share {share} and CPU quota {cap} are for different numbers of functions")
    if counts and named > 1 and counts != {named}:
        raise UsageError(
            f"{where}: CPU {'share' if share else 'quota'} {share or cap} is for {counts.pop()} functions, and"
            f" '{function}' are {named}"
        )
    if (counts or named > 1) and chain > 1:
        what = "CPU shares and quotas are" if counts else f"'{function}' is"
        raise UsageError(f"{where}: {what} for functions side by side: leave out chain")
    return named if named > 1 else next(iter(counts), None)


def startup_arguments(named: Iterable[str], where: str) -> dict[str, Any]:
    """Returns the arguments of a marker that follow from ``startup``.

    ``named``: the names of the given arguments, without settings. Raises UsageError for any but ``startup``.
    """
    if others := [name for name in named if name != "startup"]:
        raise UsageError(f"{where}: start-up creates containers and sends no traffic; leave out {', '.join(others)}")
    return {"dimension": "startup", "switch": (LINK,)}


def check_startup_kinds(cases: Iterable[Case], kinds: Iterable[str]) -> None:
    """Raises UsageError for containers of a kind that is not among ``kinds``."""
    known = (*kinds, FORK)
    for case in cases:
        crowd = case.load.crowd
        if crowd is not None and crowd.kind not in known:
            raise UsageError(f"start-up: there is no kind of node '{crowd.kind}'{suggestion(crowd.kind, known)}")
