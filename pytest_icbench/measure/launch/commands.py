# SPDX-License-Identifier: BSD-3-Clause
"""Makes the workload commands of a case, one for each endpoint of a rig. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pytest_icbench.driver.workload.command import Application, WorkloadCommand, natural_api
from pytest_icbench.driver.workload.eal import endpoint_ring
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.endpoint import Endpoint, Memif, Nic, VhostUser
from pytest_icbench.model.rig import LaunchPlan, PlannedProcess
from pytest_icbench.model.settings import Settings

_APPLICATIONS: dict[Dimension, tuple[Application, Application]] = {
    "throughput": ("send", "recv"),
    "latency": ("client", "server"),
}
#: Streams of one direction of a launch: each pair's stream is its number, and that of frames from b to a is so much
#: higher. The next launch begins twice as many numbers higher.
_STREAMS = 256
_LAUNCHES = 128


def pair_of(stream: int) -> int:
    """Returns the number of the pair that a stream belongs to, from 1."""
    return stream % _STREAMS


def commands(rig: MeasuredRig, case: Case, settings: Settings, launch: int = 0) -> dict[int, WorkloadCommand]:
    """Returns a command by endpoint index: senders (clients) on sides a, receivers (servers) on sides b.

    ``launch``: a number that differs from those of the launches shortly before. A frame of an earlier launch may still
    wait in a switch that was off its CPU; its stream tells it apart.
    """
    endpoints, placement = rig.endpoints, rig.placement
    by_index = {}
    path = case.path
    for index in path.endpoints:
        dimension = case.dimension if path.pair(index) in case.measured else "throughput"
        leading, following = _APPLICATIONS[dimension] if case.directions == 1 else ("duplex", "duplex")
        leads = path.leads(index)
        sends = leads or case.directions > 1
        trace = () if case.rate.trace is None else case.rate.trace.rates(path.pair(index))
        stream, other = (
            launch % _LAUNCHES * 2 * _STREAMS + path.pair(index) + _STREAMS * (way == "ba")
            for way in (path.direction(index), path.direction(path.peer(index)))
        )
        api = natural_api(case.api, endpoints[index])
        by_index[index] = WorkloadCommand(
            application=leading if leads else following,
            endpoint=endpoints[index],
            peer=rig.peers[index] if rig.peers else endpoints[path.peer(index)].address,
            api=api,
            cpu=placement.endpoints[index],
            traffic=case.traffic,
            burst=case.burst,
            stream=stream if sends else other,
            peer_stream=other if case.directions > 1 else None,
            direction=path.direction(index) if case.directions > 1 else None,
            # The warm-up has the first rate of a trace, or a single frame per second: 0 would be the maximum.
            rate_pps=max(trace[0], 1) if trace else case.rate.pps or 0,
            trace=trace if sends else (),
            # A receiver learns from its sender's end mark when to end.
            duration_s=settings.sending_s if sends else 0.0,
            warmup_s=settings.warmup_s,
            window_s=settings.window_s,
            drain_s=settings.drain_s,
            ring=endpoint_ring(_driver(endpoints[index], api), settings.ring),
            # A receiver yields when its poll comes back empty.
            yield_every=placement.yield_every if sends else min(placement.yield_every, 1),
            catch_up=settings.catch_up,
            blocking=case.blocking,
            wait=case.wait,
            check_payload=case.check_payload,
            train=settings.train if sends else None,
            acl_drops=_acl_drops(rig, case, index) if sends else None,
            peer_acl_drops=_acl_drops(rig, case, path.peer(index)) if case.directions > 1 or not sends else None,
            routes=case.routes_of(index),
            awaits=_connects(endpoints[index], endpoints[path.peer(index)]),
        )
    return by_index


def _acl_drops(rig: MeasuredRig, case: Case, index: int) -> str | None:
    """Returns which of an endpoint's frames the function in its path denies, as the workload's option has it."""
    acl_drop = rig.terms[case.path.pair(index) - 1].acl_drop if case.denies_flows and rig.terms else None
    if acl_drop is None:
        return None
    return acl_drop.of(case.path.direction(index), flows=case.traffic.flows is not None, both=case.directions > 1)


def _connects(endpoint: Endpoint, peer: Endpoint) -> bool:
    """Whether an endpoint connects to the socket that its peer makes, with no switch between."""
    sockets = VhostUser | Memif
    if not (isinstance(endpoint, sockets) and isinstance(peer, sockets)):
        return False
    return peer.serves and not endpoint.serves and peer.socket == endpoint.socket


def _driver(endpoint: Endpoint, api: str) -> str:
    return endpoint.driver if isinstance(endpoint, Nic) else api


class Command(Protocol):
    """A command that starts one process of a launch."""

    @property
    def endpoint(self) -> Endpoint: ...
    def argv(self, executable: Path) -> list[str]:
        """Returns the whole command line."""


def launch_plan(by_index: Mapping[int, Command], executable: Path, hello_timeout_s: float) -> LaunchPlan:
    """Returns the plan for ``rig.launch``.

    Serving endpoints start first, and once their sockets exist those of their peers that do not wait by themselves.
    """
    staged = any(command.endpoint.serves for command in by_index.values())
    processes = []
    for index, command in by_index.items():
        endpoint = command.endpoint
        awaits = isinstance(command, WorkloadCommand) and command.awaits
        stage = 0 if endpoint.serves or awaits or not staged else 1
        socket = endpoint.socket if endpoint.serves and isinstance(endpoint, VhostUser | Memif) else None
        processes.append(PlannedProcess(index, tuple(command.argv(executable)), stage, socket))
    return LaunchPlan(tuple(processes), hello_timeout_s)
