# SPDX-License-Identifier: BSD-3-Clause
"""Running rigs with network functions for tests, and a wire in the place of a function."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.protocol import Function, FunctionSpec
from pytest_icbench.driver.function.registry import component_behind
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from tests.host.node_tools import require
from tests.host.rig_tools import running

#: One launch, which is not repeated if other processes disturb it: there is no time for that.
SHORT = Settings(
    max_duration_s=1.0, warmup_s=0.1, duration_s=0.4, window_s=0.05, drain_s=0.3, repeats=1, reference=False
)
#: For figures over more than one launch.
TWICE = replace(SHORT, repeats=2)
#: For figures that are compared: a launch that other processes disturb is repeated.
UNDISTURBED = replace(SHORT, max_duration_s=60.0)


@contextmanager
def through(session: HostSession, case: Case) -> Iterator[Rig]:
    """Runs a rig with its functions. Skips the test where the host cannot have it."""
    require("lxc")
    cls = builtin_switches()[case.switch]
    assert case.function is not None
    try:
        cls().probe(session, None)
        component = component_behind(cls, case.resolved_port(cls), case.function)
        component().probe(session, case.function)
        workers = cls().needs(case.path.wires_count, case.resolved_cores(cls)).pollers
        pollers = case.pairs * case.chain if component.polls else 0
        count = len(case.path.endpoints)
        placement = plan(Topology.read(session.root), workers=workers, endpoints=count + pollers, policy="auto")
    except Unsupported as reason:
        pytest.skip(str(reason))
    placement = replace(placement, endpoints=placement.endpoints[:count], functions=placement.endpoints[count:])
    with running(Rig(case, placement, session, "lxc")) as rig:
        yield rig


@contextmanager
def in_place(cls: type[Function]) -> Iterator[None]:
    """Puts a component before all others."""
    before = dict(registry._components)
    registry._components.clear()
    registry._components.update({cls.name: cls, **before})
    try:
        yield
    finally:
        registry.bring(())


class Wire(Function):
    """A wire in the place of a function, with that function's name and proof."""

    def __init__(self) -> None:
        self._wire = ForwarderFunction()

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        self._wire.start(session, replace(spec, function="wire", yield_every=1))

    def await_started(self) -> None:
        self._wire.await_started()

    def facts(self) -> FunctionFacts:
        return self._wire.facts()

    def check(self) -> None:
        self._wire.check()

    def forget(self) -> None:
        self._wire.forget()

    def counters(self) -> FunctionCounters:
        return self._wire.counters()

    def leave(self) -> None:
        self._wire.leave()

    def stop(self) -> None:
        self._wire.stop()


class WireWithoutProgram(Wire):
    """A wire in the place of a function whose program need not be installed."""

    @classmethod
    def directories(cls, session: HostSession) -> tuple[Path, ...]:
        return ()

    def probe(self, session: HostSession, function: str) -> FunctionFacts:
        return self._wire.probe(session, "wire")


def suricata() -> dict[str, Path]:
    """Returns the program of Suricata that a test takes if none is on PATH."""
    named = os.environ.get("ICBENCH_TEST_SURICATA")
    return {"suricata": Path(named)} if named else {}
