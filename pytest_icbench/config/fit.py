# SPDX-License-Identifier: BSD-3-Clause
"""Whether any host can run a case, by its switch alone. Pure."""

from __future__ import annotations

from pytest_icbench.config.choices import possible
from pytest_icbench.config.frames import direction_misfit, flows_misfit, header_misfit, queues_misfit
from pytest_icbench.config.options import too_large_burst
from pytest_icbench.config.switch_names import mode_misfit
from pytest_icbench.model.case import API_FRAME_BYTES, APPLICATION_API, Case
from pytest_icbench.model.switch_traits import SwitchTraits


def unsupported_reason(case: Case, cls: type[SwitchTraits], ring: int) -> str | None:
    """Returns why no host can run the case, or None; it depends on the switch only, and the host is not asked."""
    if (reason := remote_misfit(case, cls)) is not None:
        return reason
    if case.load.largest_burst > ring:
        return too_large_burst(case.burst, ring)
    if case.traffic.longest_bytes > cls.max_frame_bytes:
        return (
            f"{case.traffic.longest_bytes} bytes are more than {case.switch} carries;"
            f" take packet sizes up to {cls.max_frame_bytes}"
        )
    api, port = case.resolved_api(cls), case.resolved_port(cls)
    for carrier, longest in (
        (f"api {api}", API_FRAME_BYTES.get(api)),
        (f"{case.switch}'s port {port}", cls.port_frame_bytes.get(port)),
    ):
        if longest is not None and case.traffic.longest_bytes > longest:
            return (
                f"{case.traffic.longest_bytes} bytes are more than {carrier} carries; take packet sizes up to {longest}"
            )
    pairs = case.path.wires_count
    if cls.max_pairs is not None and pairs > cls.max_pairs:
        plural = "" if cls.max_pairs == 1 else "s"
        ports = "" if case.function is None else " of ports (the functions' among them)"
        return f"{case.switch} takes at most {cls.max_pairs} pair{plural}{ports}, not {pairs}; lower --icbench-pairs"
    if case.rate.trace is not None and len(case.rate.trace.columns) not in (0, 1, case.pairs):
        columns = len(case.rate.trace.columns)
        return f"trace {case.rate.trace.label} has rates for {columns} pairs, not for {case.pairs}: set --icbench-pairs"
    lone = case.function is None or case.pairs < 2 or case.chain > 1 or not case.one_way
    if lone and case.rate.trace is not None and case.rate.trace.freezes:
        return (
            f"rate {case.rate} freezes half of the functions side by side while frames are sent: take functions,"
            " two pairs or more, no chain, and throughput"
        )
    if case.neighbour is not None and (case.candidate is not None or case.contracts):
        option = "share and cap" if case.contracts else "--icbench-variant"
        return f"launches beside a neighbour are held against those without it: leave out {option}"
    misfit = header_misfit(case, cls, api) or flows_misfit(case, api) or direction_misfit(case)
    if (reason := misfit or queues_misfit(case, cls, api)) is not None:
        return reason
    return None if case.mode is None else mode_misfit(cls, case.mode)


def remote_misfit(case: Case, cls: type[SwitchTraits]) -> str | None:
    """Returns why the case cannot run over two hosts, or None; the hosts are not asked."""
    if not case.remote:
        return None
    what = case.load.ON_ONE_HOST or ("launches beside a neighbour" if case.neighbour is not None else None)
    if what is not None:
        return f"{what} run on one host: leave out --icbench-remote"
    if not cls.uplinks:
        return f"{case.switch} has no way to a second host: it runs without --icbench-remote"
    if cls.uplink_pairs is not None and case.pairs > cls.uplink_pairs:
        return f"{case.switch} takes at most {cls.uplink_pairs} pair over its uplink, not {case.pairs}"
    return None


def ports_of_sockets(cls: type[SwitchTraits], asked: tuple[str, ...] | None) -> list[str]:
    """Returns the port kinds over which an application's sockets go: the natural one first, unless others are asked."""
    able = [port for port in cls.ports if APPLICATION_API in cls.port_apis(port)]
    if asked is None:
        return [port for port in able if port not in cls.ports_by_name][:1]
    return list(possible(asked, tuple(able)))
