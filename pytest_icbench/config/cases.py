# SPDX-License-Identifier: BSD-3-Clause
"""Turns a marker into cases. Pure: the host is not asked, so that every host collects the same list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

from pytest_icbench.config import candidates, frames, values
from pytest_icbench.config.between import between
from pytest_icbench.config.births import LINK, birth_arguments, birth_cases
from pytest_icbench.config.bit_rate import BitRate
from pytest_icbench.config.choices import choose, cores_of
from pytest_icbench.config.fit import ports_of_sockets
from pytest_icbench.config.function_options import parse_functions
from pytest_icbench.config.neighbours import beside
from pytest_icbench.config.option_table import SOAK_LENGTHS, TABLE
from pytest_icbench.config.options import Options
from pytest_icbench.config.reach import check_reach
from pytest_icbench.config.sequences import parse_words
from pytest_icbench.config.settings import NAMES, as_text, parse_overrides
from pytest_icbench.config.switch_config import SwitchConfig, checked
from pytest_icbench.config.switch_names import (
    Catalogue,
    SwitchModes,
    check_modes,
    is_named,
    modes_of,
    resolve_switches,
)
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import APPLICATION_API, SOCKET_APIS, Case, Dimension
from pytest_icbench.model.load import Application, Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.subscribers import misfit, with_active
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.model.traffic import SHORTEST, Traffic
from pytest_icbench.wording import suggestion

#: The most comparisons of one test.
MAX_COMPARISONS = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a marker. None stands for the switch's natural choice.

    Attributes:
        switch: names and groups, as written; ``vpp:xconnect`` is a switch in one of its variants.
        packet_size, mix: frames of one length, then mixes; each with each ``header``, ``flows``, ``direction``
            and ``queues``.
        api, port: names or ``all``.
        app, birth: loads of applications, or containers to create; None for frames of the workload.
        variant: names of modes for switches without one of their own; ``default`` stands for the natural one, ``wires``
            for all ``wire_modes``.
        remote: whether the case is over two hosts; empty: if there is a second one.
        functions, function_count: those between the ends of each pair (None: none), and how many (None: as ``pairs``).
        chain: how many of a function each frame passes one after the other.
        share, cap: per cents of one CPU for functions side by side; their number is that of the pairs.
        active: numbers of active clients of functions for subscribers, each at the rate.
        neighbour, isolation: load beside every other launch, and how it is kept apart (None: not at all).
        measure: the method that the test calls besides ``throughput`` and ``latency``; None: no other.
        soak_duration: the length of the test's long run in seconds.
        comparisons: how many times the test compares a candidate with its base.
        settings: values by their names in ``Settings``.
    """

    switch: tuple[str, ...] = ("all",)
    packet_size: tuple[Traffic, ...] = (SHORTEST,)
    mix: tuple[Traffic, ...] = ()
    flows: tuple[str | None, ...] = (None,)
    header: tuple[str | None, ...] = (None,)
    direction: tuple[bool, ...] = (False,)
    queues: tuple[int, ...] = (1,)
    burst: tuple[int, ...] = (32,)
    pairs: tuple[int, ...] = (1,)
    rate: tuple[Rate | BitRate, ...] = (Rate(),)
    switch_cores: tuple[int, ...] | None = None
    api: tuple[str, ...] | None = None
    app: tuple[str, ...] | None = None
    birth: tuple[str, ...] | None = None
    port: tuple[str, ...] | None = None
    variant: tuple[str, ...] | None = None
    remote: tuple[bool, ...] = ()
    blocking: tuple[bool, ...] = (False,)
    touch: tuple[bool, ...] = (False,)
    functions: tuple[str | None, ...] = (None,)
    function_count: tuple[int, ...] | None = None
    chain: tuple[int, ...] = (1,)
    share: tuple[str, ...] | None = None
    cap: tuple[str, ...] | None = None
    active: tuple[int, ...] | None = None
    neighbour: tuple[str, ...] | None = None
    isolation: tuple[str | None, ...] | None = None
    dimension: Dimension = "throughput"
    measure: Literal["search", "sweep", "soak", "back_to_back"] | None = None
    soak_duration: float | None = None
    comparisons: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)


_AXES: dict[str, Callable[[str, str], Any]] = {
    **{row.name: row.parse for row in TABLE if row.marker and not row.flag},
    "variant": parse_words,
    "functions": parse_functions,
}
_FLAGS = ("blocking", "touch", "remote")
_SINGLE: dict[str, Callable[[str, str], Any]] = {
    "dimension": values.one_of("throughput", "latency"),
    "measure": values.one_of("search", "sweep", "soak", "back_to_back"),
    "soak_duration": SOAK_LENGTHS,
    "comparisons": values.count(1, MAX_COMPARISONS, "comparisons"),
}
#: Arguments for which None is the same as leaving them out.
_NONE = frozenset(
    {"api", "app", "birth", "port", "switch_cores", "variant", "measure", "soak_duration", "mix", "function_count"}
    | {"share", "cap", "active", "neighbour", "isolation"}
)
ARGUMENTS = (*_AXES, *_FLAGS, *_SINGLE, *NAMES)


def parse_marker(args: Sequence[object], named: Mapping[str, Any], where: str) -> Request:
    """Reads the arguments of a marker.

    Args:
        args: positional arguments, which are an error.
        named: values by name.
        where: file and test, the beginning of a message.

    Raises:
        UsageError: one sentence.
    """
    where = f"{where}: icbench marker"
    if args:
        raise UsageError(f"{where}: give its arguments by name (switch=..., packet_size=...)")
    arguments: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    for name, value in named.items():
        at = f"{where}: {name}"
        if name not in ARGUMENTS:
            raise UsageError(f"{where}: there is no argument '{name}'{suggestion(name, ARGUMENTS)}")
        if name in NAMES:
            overrides[name] = value
        elif value is None and name in _NONE:
            continue
        elif name in _AXES:
            arguments[name] = _AXES[name](as_text(value, at), at)
        elif name in _FLAGS:
            arguments[name] = values.flags(value, at)
        else:
            arguments[name] = _SINGLE[name](as_text(value, at), at)
    if "mix" in arguments:
        arguments.setdefault("packet_size", ())
    if arguments.get("app") is not None:
        if "dimension" in named or arguments.get("measure") is not None or "api" in arguments:
            raise UsageError(f"{where}: an application has traffic of its own; leave out dimension, measure and api")
        arguments["dimension"] = "application"
    if arguments.get("birth") is not None:
        arguments |= birth_arguments([name for name in named if name not in NAMES], where)
    return Request(**arguments, settings=parse_overrides(overrides, where))


def as_given(options: Options, name: str) -> str:
    """Returns how an option was given, the beginning of a message: ``--icbench-x``, or ``icbench_x`` of an ini file."""
    ini = f"icbench_{name.replace('-', '_')}"
    return ini if ini in options.given else f"--icbench-{name}"


def check_names(options: Options, catalogue: Catalogue, programs: Sequence[str] = ()) -> None:
    """Checks the names on the command line. Raises UsageError for one that no switch knows.

    Args:
        programs: names of ``--icbench-binary`` besides those of switches.
    """
    kept = resolve_switches(options.switch, catalogue, as_given(options, "switch"))
    if options.port is not None:
        _check_ports(options.port, catalogue, as_given(options, "port"))
    check_reach(options, [catalogue[name] for name in kept])
    binary = as_given(options, "binary")
    for name in options.binaries:
        if name in programs:
            continue
        if name not in catalogue:
            known = (*(key for key, cls in catalogue.items() if cls.takes_binary), *programs)
            raise UsageError(f"{binary}: there is no switch '{name}'{suggestion(name, known)}")
        if not catalogue[name].takes_binary:
            raise UsageError(f"{binary}: {name} has no program of its own; leave it out")
    for name in options.switch_config:
        if name not in catalogue:
            config = as_given(options, "switch-config")
            raise UsageError(f"{config}: there is no switch '{name}'{suggestion(name, tuple(catalogue))}")
    candidates.check(options.variant, catalogue, as_given(options, "variant"))


def check_configs(options: Options, catalogue: Catalogue) -> dict[str, SwitchConfig]:
    """Returns the user's configurations by switch and by candidate (``ovs:new``), which without one has its base's.

    Raises:
        UsageError: a switch does not take its configuration.
    """
    configs = {name: checked(file, name, catalogue[name].config_keys) for name, file in options.switch_config.items()}
    for switch in catalogue:
        base = configs.get(switch)
        for candidate in candidates.of_switch(options.variant, switch):
            config = base
            if candidate.target == switch and candidate.config is not None:
                config = checked(candidate.config, switch, catalogue[switch].config_keys)
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
    names a switch that supports none of them. A switch that has none of the modes takes its natural one.

    Raises:
        UsageError: one sentence that begins with ``where``.
    """
    where = f"{where}: icbench marker"
    if request.port is not None:
        _check_ports(request.port, catalogue, f"{where}: port")
    keep: SwitchModes = dict.fromkeys(catalogue, (None,))
    if options.switch:
        keep = resolve_switches(options.switch, catalogue, as_given(options, "switch"))
    cases: dict[Case, None] = {}
    topology = options.topology
    if request.birth is not None:
        return birth_cases(options.birth or request.birth) if LINK in keep else []

    def remotes(pairs: int) -> tuple[bool, ...]:
        if request.remote:
            return request.remote
        return (options.remote is not None if topology is None else topology.is_remote(pairs),)

    ways_between = between(
        options.function or request.functions,
        chains=options.chain or request.chain,
        shares=options.share or request.share,
        caps=options.cap or request.cap,
        pairs=options.pairs,
        counts=options.function_count or request.function_count,
        plain_pairs=options.pairs or request.pairs,
        where=where,
    )
    neighbours = beside(options.neighbour or request.neighbour, options.isolation or request.isolation, where)
    names = resolve_switches(request.switch, catalogue, f"{where}: switch", named=options.switch)
    check_modes(request.variant or (), [catalogue[name] for name in names], f"{where}: variant")
    for name, named_modes in names.items():
        cls = catalogue[name]
        named = is_named(name, request.switch)
        modes = modes_of(cls, named_modes, keep.get(name, ()), request.variant)
        apis = choose("API", request.api, options.api, cls.default_apis, cls.apis, named, f"{where}: {name}")
        ports = choose("port kind", request.port, options.port, cls.ports[:1], cls.ports, named, f"{where}: {name}")
        if request.app is not None:
            able = ports_of_sockets(cls, options.port or request.port)
            if named and not able:
                remedy = f"choose its port {' or '.join(cls.ports_by_name)}, or " if cls.ports_by_name else ""
                raise UsageError(f"{where}: {name} carries no sockets, so no applications; {remedy}leave it out")
            if name in keep:
                cases |= dict.fromkeys(_of_applications(request, options, cls, modes, able, remotes))
            continue
        ways = _ways(cls, apis, ports, request, options)
        if named and not ways and options.api is None and options.port is None:
            raise UsageError(f"{where}: {name} has no API {' or '.join(apis)} over port kind {' or '.join(ports)}")
        if name not in keep:
            continue
        for clients, mode, cores, (way, remote), (port, api), blocking, touch, traffic, burst, rate in product(
            options.active or request.active or (None,),
            modes,
            cores_of(options.switch_cores or request.switch_cores, cls),
            [({**row, **by}, remote) for row in ways_between for by in neighbours for remote in remotes(row["pairs"])],
            ways,
            request.blocking if options.blocking is None else (options.blocking,),
            request.touch if options.touch is None else (options.touch,),
            _frames(request, options),
            options.burst or request.burst,
            options.rate or request.rate,
        ):
            case = Case(
                switch=name,
                load=Frames(traffic, burst, rate if isinstance(rate, Rate) else rate.at(traffic, where)),
                dimension=request.dimension,
                port=None if port == cls.ports[0] else port,
                mode=mode,
                switch_cores=cores,
                api=None if cls.default_apis == (api,) else api,
                blocking=blocking and api in SOCKET_APIS,
                touch=touch,
                remote=remote,
                **way,
            )
            case = of_subscribers(case, clients, where)
            # A candidate is measured side by side with its base, so the base needs no separate test.
            cases |= dict.fromkeys(_compared(case, options))
    return list(cases)


def of_subscribers(case: Case, active: int | None, where: str) -> Case:
    """Returns a case with so many active clients. Raises UsageError if they, or its flows, have no firewall each."""
    try:
        case = case if active is None else with_active(case, active)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    if (reason := misfit(case)) is not None:
        raise UsageError(f"{where}: {reason}")
    return case


def _frames(request: Request, options: Options) -> tuple[Traffic, ...]:
    """Returns the frames to send: packet sizes, then mixes; either of the user's replaces both of the request."""
    asked = request if options.packet_size is None and options.mix is None else options
    names = ("header", "flows", "direction", "queues")
    ways = [getattr(options, name) or getattr(request, name) for name in names]
    return frames.combined((*(asked.packet_size or ()), *(asked.mix or ())), *ways)


def _of_applications(
    request: Request,
    options: Options,
    cls: type[SwitchTraits],
    modes: Sequence[str | None],
    ports: Sequence[str],
    remotes: Callable[[int], tuple[bool, ...]],
) -> Iterator[Case]:
    """Yields the cases of a request with applications, which have no axes of frames."""
    for mode, cores, (pairs, remote), port, app in product(
        modes,
        cores_of(options.switch_cores or request.switch_cores, cls),
        [(number, remote) for number in options.pairs or request.pairs for remote in remotes(number)],
        ports,
        options.app or request.app or (),
    ):
        case = Case(
            switch=cls.name,
            load=Application(app),
            pairs=pairs,
            dimension="application",
            port=None if port == cls.ports[0] else port,
            mode=mode,
            switch_cores=cores,
            api=None if cls.default_apis == (APPLICATION_API,) else APPLICATION_API,
            remote=remote,
        )
        yield from _compared(case, options)


def _compared(case: Case, options: Options) -> list[Case]:
    """Returns the cases of the candidates that take a case's place; the case itself without any."""
    return [replace(case, candidate=one.name) for one in options.variant if one.concerns(case)] or [case]


def _ways(
    cls: type[SwitchTraits], apis: tuple[str, ...], ports: tuple[str, ...], request: Request, options: Options
) -> list[tuple[str, str]]:
    """Returns pairs of port kind and API technique; the one that was not chosen follows the one that was."""
    if request.port is None and options.port is None:
        chosen = [port for port in cls.ports if port not in cls.ports_by_name]
        first = {api: next((port for port in chosen if api in cls.port_apis(port)), None) for api in apis}
        return [(port, api) for port in dict.fromkeys(first.values()) if port for api in apis if first[api] == port]
    if request.api is None and options.api is None:
        natural = {port: tuple(api for api in apis if api in cls.port_apis(port)) for port in ports}
        return [(port, api) for port in ports for api in natural[port] or cls.port_apis(port)[:1]]
    return [(port, api) for port in ports for api in apis if api in cls.port_apis(port)]
