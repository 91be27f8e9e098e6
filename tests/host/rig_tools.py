# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of measurements share: rigs on the real host, on whatever CPUs it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint_spec import EndpointSpec
from pytest_icbench.testbed.placement import plan
from pytest_icbench.testbed.rig import Rig
from tests.host.node_tools import require


@dataclass(frozen=True)
class NodeOption:
    node: str = "lxc"


@contextmanager
def built(
    session: HostSession,
    case: Case,
    *,
    beside: Rig | None = None,
    node: str = "lxc",
    endpoint_specs: Sequence[EndpointSpec] | None = None,
) -> Iterator[Rig]:
    """A running rig; with ``beside``, on that one's endpoint CPUs. Skips where the host cannot have it."""
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
    with running(Rig(case, placement, session, NodeOption(node), endpoint_specs=endpoint_specs)) as rig:
        yield rig


@contextmanager
def running(rig: Rig) -> Iterator[Rig]:
    """The rig, built before and closed after."""
    rig.build()
    try:
        yield rig
    finally:
        rig.close()


def driver(rig: Rig) -> object:
    """Returns the switch's driver itself, from behind the guard of its calls."""
    return vars(rig.host.switch)["_target"]
