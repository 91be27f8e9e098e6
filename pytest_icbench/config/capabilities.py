# SPDX-License-Identifier: BSD-3-Clause
"""The capabilities of switches, compared with a request of a marker and the user. The host is not examined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_icbench.config.axes import Axes, explain_burst
from pytest_icbench.config.axis import rows
from pytest_icbench.config.options import Options
from pytest_icbench.config.switches import explain_mode
from pytest_icbench.errors import UsageError
from pytest_icbench.model.api_techniques import API_FRAME_BYTES, APPLICATION_API
from pytest_icbench.model.case import Case
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.wording import alternatives


def unsupported_reason(case: Case, cls: type[SwitchTraits], ring: int) -> str | None:
    """Returns why no host can run the case, or None."""
    if (reason := remote_misfit(case, cls)) is not None:
        return reason
    if case.load.largest_burst > ring:
        return explain_burst(case.burst, ring)
    for check in _CHECKS:
        if (reason := check(case, cls)) is not None:
            return reason
    return None


def _length_misfit(case: Case, cls: type[SwitchTraits]) -> str | None:
    """Returns which of switch, technique and port cannot carry the case's longest frame, or None."""
    bytes_, api, port = case.traffic.longest_bytes, case.resolved_api(cls), case.resolved_port(cls)
    carriers = (
        (case.switch, cls.max_frame_bytes),
        (f"api {api}", API_FRAME_BYTES.get(api)),
        (f"{case.switch}'s port {port}", cls.port_frame_bytes.get(port)),
    )
    for carrier, longest in carriers:
        if longest is not None and bytes_ > longest:
            return f"{bytes_} bytes are more than {carrier} carries; take packet sizes up to {longest}"
    return None


def _pairs_misfit(case: Case, cls: type[SwitchTraits]) -> str | None:
    pairs = case.path.wires_count
    if cls.max_pairs is None or pairs <= cls.max_pairs:
        return None
    plural = "" if cls.max_pairs == 1 else "s"
    ports = "" if case.function is None else " of ports (including the functions')"
    return f"{case.switch} takes at most {cls.max_pairs} pair{plural}{ports}, not {pairs}; lower --icbench-pairs"


def _trace_misfit(case: Case, _cls: type[SwitchTraits]) -> str | None:
    trace = case.rate.trace
    if trace is None:
        return None
    columns = len(trace.columns)
    if columns not in (0, 1, case.pairs):
        return f"trace {trace.label} has rates for {columns} pairs, not for {case.pairs}: set --icbench-pairs"
    lone = case.function is None or case.pairs < 2 or case.chain > 1 or not case.one_way
    if lone and trace.freezes:
        return (
            f"rate {case.rate} freezes half of the functions side by side while frames are sent: it needs"
            " functions, two pairs or more, no chain, and throughput"
        )
    return None


def _noisy_neighbour_misfit(case: Case, _cls: type[SwitchTraits]) -> str | None:
    if case.noisy_neighbour is not None and (case.candidate is not None or case.cpu_allocations):
        option = "CPU share and quota" if case.cpu_allocations else "--icbench-candidate"
        return f"launches with a noisy neighbour are compared with those without it: leave out {option}"
    return None


def _axis_misfit(case: Case, cls: type[SwitchTraits]) -> str | None:
    """Returns why the path or the endpoints cannot have a value of an axis, or None."""
    api = case.resolved_api(cls)
    reasons = (row.misfit(case, cls, api) for row in rows(Axes) if row.misfit is not None)
    return next((reason for reason in reasons if reason is not None), None)


def _mode_misfit(case: Case, cls: type[SwitchTraits]) -> str | None:
    return None if case.mode is None else explain_mode(cls, case.mode)


#: The first that does not fit is the reason.
_CHECKS: tuple[Callable[[Case, type[SwitchTraits]], str | None], ...] = (
    _length_misfit,
    _pairs_misfit,
    _trace_misfit,
    _noisy_neighbour_misfit,
    _axis_misfit,
    _mode_misfit,
)


def remote_misfit(case: Case, cls: type[SwitchTraits]) -> str | None:
    """Returns why the case cannot run over two hosts, or None. The hosts are not examined."""
    if not case.remote:
        return None
    what = case.load.ON_ONE_HOST or ("launches with a noisy neighbour" if case.noisy_neighbour is not None else None)
    if what is not None:
        return f"{what} run on one host: leave out --icbench-remote"
    if not cls.uplinks:
        return f"{case.switch} cannot reach a second host: it runs without --icbench-remote"
    if cls.uplink_pairs is not None and case.pairs > cls.uplink_pairs:
        return f"{case.switch} takes at most {cls.uplink_pairs} pair over its uplink, not {case.pairs}"
    return None


def select_socket_ports(cls: type[SwitchTraits], asked: tuple[str, ...] | None) -> list[str]:
    """Returns the port kinds of an application's sockets: the natural one first, unless some are requested."""
    able = [port for port in cls.ports if APPLICATION_API in cls.port_apis(port)]
    if asked is None:
        return [port for port in able if port not in cls.ports_by_name][:1]
    return list(select_supported(asked, tuple(able)))


def select_supported(asked: tuple[str, ...], supported: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the requested names that are supported; ``all`` stands for all of them."""
    return supported if "all" in asked else tuple(name for name in asked if name in supported)


def check_reach(options: Options, kept: Sequence[type[SwitchTraits]]) -> None:
    """Checks that a requested switch has one of the requested techniques and ports. Raises UsageError."""
    for option, what, asked, had in (
        ("--icbench-api", "API", options.api, {cls.name: tuple(cls.apis) for cls in kept}),
        ("--icbench-port", "port kind", options.port, {cls.name: tuple(cls.ports) for cls in kept}),
    ):
        if not kept or asked is None or "all" in asked or any(set(asked) & {*kinds} for kinds in had.values()):
            continue
        has = "; ".join(f"{name} has {alternatives(kinds)}" for name, kinds in [*had.items()][:3] if kinds)
        names = ", ".join(cls.name for cls in kept)
        raise UsageError(f"{option}: {names} can have no {what} {alternatives(asked)}{has and f' ({has})'}")


def check_way(options: Options, kept: Sequence[type[SwitchTraits]]) -> None:
    """Checks that a requested switch has a requested technique over a requested or a usual port kind.

    A marker may name the port kind, so this is for a session in which no test has a case. Raises UsageError.
    """
    if options.api is None or "all" in options.api or "all" in (options.port or ()):
        return
    remedies = []
    for cls in kept:
        able = [port for port in cls.ports if {*options.api} & {*cls.port_apis(port)}]
        if {*able} & {*(options.port or (port for port in cls.ports if port not in cls.ports_by_name))}:
            return
        if able:
            remedies.append(f"{cls.name} has {alternatives(options.api)} over port kind {alternatives(able)} alone")
    if remedies:
        raise UsageError(f"--icbench-api: {'; '.join(remedies[:3])}: choose with --icbench-port")
