# SPDX-License-Identifier: BSD-3-Clause
"""Joins two halves of a rig on this host by a veth pair, to test what each switch does with a NIC."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import run
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.placement import CpuState, Placement
from pytest_icbench.model.rig import LaunchPlan, Polled, RigSpec
from pytest_icbench.model.uplink import Uplink, Via
from pytest_icbench.testbed.host_rig import HostRig

#: Ends of the cable.
ENDS = ("icbupa", "icbupb")


@contextmanager
def cable() -> Iterator[None]:
    """Makes a veth pair on the host and sets it up."""
    run(["ip", "link", "add", ENDS[0], "type", "veth", "peer", "name", ENDS[1]], timeout_s=5)
    try:
        for end in ENDS:
            run(["ip", "link", "set", end, "up"], timeout_s=5)
        yield
    finally:
        run(["ip", "link", "delete", ENDS[0]], timeout_s=5, check=False)


class Halves(MeasuredRig):
    """A rig for a measurement with sides a of a case at one NIC and sides b at the other."""

    def __init__(self, session: HostSession, case: Case, placement: Placement, via: Via, node: str) -> None:
        self.preflighted = False
        self.case = case
        self.placement = placement
        self.hosts = [HostRig(session, builtin_switches()) for _ in ENDS]
        self._launches: dict[str, list[str]] = {}
        binary = session.binaries.get(case.switch)
        #: A worker on each CPU of the placement: each half's switch has its own.
        self._specs = [
            RigSpec(
                name=f"r90{half}",
                case=case,
                placement=replace(placement, switch=placement.switch[half : half + 1] or placement.switch),
                node=node,
                binary=None if binary is None else str(binary),
                here=tuple(index for index in range(2 * case.pairs) if index % 2 == half),
                uplink=Uplink(ENDS[half], via),
            )
            for half in range(2)
        ]
        self.endpoints: list[Endpoint] = []

    def build(self) -> None:
        found: dict[int, Endpoint] = {}
        for host, spec in zip(self.hosts, self._specs, strict=True):
            found |= dict(zip(spec.here or (), host.prepare(spec).endpoints, strict=True))
        self.endpoints = [found[index] for index in sorted(found)]

    def launch(self, plan: LaunchPlan) -> str:
        launches: list[str] = []
        for half in (1, 0):
            mine = tuple(process for process in plan.processes if process.index % 2 == half)
            launches.insert(0, self.hosts[half].launch(replace(plan, processes=mine)))
        self._launches[launches[0]] = launches
        return launches[0]

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        here, there = self._both(launch_id)
        there[0].start(there[1], delay_s)
        return here[0].start(here[1], delay_s)

    def _both(self, launch_id: str) -> list[tuple[HostRig, str]]:
        return list(zip(self.hosts, self._launches[launch_id], strict=True))

    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        for host, each in self._both(launch_id):
            host.tell(each, text, index)

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        deadline = time.monotonic() + timeout_s
        while True:
            reported = Polled()
            for host, each in self._both(launch_id):
                part = host.poll(each, 0.005)
                reported = Polled(reported.lines + part.lines, {**reported.exited, **part.exited})
            if reported.lines or reported.exited or time.monotonic() >= deadline:
                return reported

    def log_tail(self, launch_id: str, index: int) -> str:
        return self.hosts[index % 2].log_tail(self._launches[launch_id][index % 2], index)

    def end(self, launch_id: str) -> None:
        for host, each in self._both(launch_id):  # each takes the harness' CPUs away, and gives them back
            host.end(each)

    def busy(self) -> None:
        return None

    def hardware(self, launch_id: str) -> None:
        return None

    def interference(self, launch_id: str) -> None:
        return None

    def cpu_state(self) -> CpuState:
        return self.hosts[0].cpu_state()

    def batches(self) -> None:
        return None

    def counters(self) -> None:
        return None

    def check(self) -> None:
        for host in self.hosts:
            host.check()

    def path_fault(self) -> None:
        return None

    def close(self) -> None:
        for host in self.hosts:
            host.undo()

    def pause(self) -> None: ...

    def resume(self) -> None: ...
