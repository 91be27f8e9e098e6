# SPDX-License-Identifier: BSD-3-Clause
"""Rigs on the real host for tests of measurements, on whatever CPUs it has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import EndpointSpec
from pytest_icbench.testbed.case_rig import BuildOptions, Rig
from pytest_icbench.testbed.cpu_placement import plan
from tests.host.node_tools import require


@contextmanager
def built(
    session: HostSession,
    case: Case,
    *,
    beside: Rig | None = None,
    node: str = "lxc",
    endpoint_specs: Sequence[EndpointSpec] | None = None,
) -> Iterator[Rig]:
    """Runs a rig; with ``beside``, on that rig's CPUs of endpoints. Skips the test where the host cannot have it."""
    require(node)
    switch = builtin_switches()[case.switch]
    try:
        switch().probe(session, None)
        switch().probe_port(session, case.resolved_port(switch))
        if beside is None:
            workers = switch().needs(case.pairs, case.resolved_cores(switch)).pollers
            topology = Topology.read(session.root)
            placement = plan(topology, workers=workers, endpoints=2 * case.pairs, policy="auto")
        else:
            placement = replace(beside.placement, switch=())
    except Unsupported as reason:
        pytest.skip(str(reason))
    with running(Rig(case, placement, session, node, BuildOptions(endpoint_specs=endpoint_specs))) as rig:
        yield rig


@contextmanager
def running(rig: Rig) -> Iterator[Rig]:
    """Builds a rig, and closes it at the end."""
    rig.build()
    try:
        yield rig
    finally:
        rig.close()


@contextmanager
def acting(
    rig: Rig, act: Callable[[Mapping[int, int]], None], *, windows: int = 1, when: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Acts from a thread on each launch that starts, once side b of pair 1 has received frames in some windows.

    A launch reads no lines while frames are sent. A window is one line, which is one write that the kernel counts.

    Args:
        act: gets the ids of the processes by endpoint index.
        windows: the number of windows.
        when: whether the launch that starts is one of these.
    """
    start, over = rig.start, threading.Event()
    acts: list[Future[None]] = []

    def wait_and_act(pids: Mapping[int, int], before: int) -> None:
        while _lines_written(pids[1]) < before + windows:
            if over.wait(0.01):
                return
        act(pids)

    def started(launch_id: str, delay_s: float = 0.02) -> int:
        pids = rig.pids(launch_id)
        if when():
            acts.append(pool.submit(wait_and_act, pids, _lines_written(pids[1])))
        return start(launch_id, delay_s)

    rig.start = started  # type: ignore[method-assign]
    with ThreadPoolExecutor() as pool:
        try:
            yield
        finally:
            over.set()
            rig.start = start  # type: ignore[method-assign]
    for each in acts:
        each.result()


def _lines_written(pid: int) -> int:
    """Counts the lines that a process has written; 0 once it has ended."""
    try:
        counts = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except OSError:
        return 0
    return int(counts["syscw"])


def driver(rig: Rig) -> object:
    """Returns the switch's driver without the guard of its calls."""
    return vars(rig.host.switch)["_target"]
