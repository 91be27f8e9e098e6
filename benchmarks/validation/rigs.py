# SPDX-License-Identifier: BSD-3-Clause
"""Rigs and launches for claims: as the plugin makes them, without a test around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import ATTACH
from pytest_icbench.model.measurement import Launch, Window
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from validation import priority
from validation.model import Row, Settings

#: At least this part of the windows has to be free of steal and preemption for a claim about time to be shown.
QUIET_SHARE = 0.8


def placement(session: HostSession, case: Case, policy: str = "auto") -> Placement:
    """Where the case's threads run. Raises Unsupported if this host cannot have it: the reason and its remedy."""
    driver = builtin_switches()[case.switch]
    driver().probe(session, session.binary(case.switch))
    driver().probe_api(session, case.resolved_api(driver))
    workers = driver().needs(case.pairs, case.resolved_cores(driver)).pollers
    if policy not in ("auto", "dedicated", "cooperative"):
        raise ValueError(f"no placement {policy}")
    return plan(Topology.read(session.root), workers=workers, endpoints=2 * case.pairs, policy=policy)  # type: ignore[arg-type]


@contextmanager
def built(session: HostSession, case: Case, settings: Settings, where: Placement | None = None) -> Iterator[Rig]:
    """A rig that forwards, closed afterwards. Raises Unsupported; ProvisionError if it forwards nothing.

    Its endpoints come before whatever else wants their CPUs, unless the switch is the kernel.
    """
    rig = Rig(case, where or placement(session, case), session, settings.node)
    rig.build()
    try:
        if builtin_switches()[case.switch].family == "dpdk":
            priority.nodes(session)
        fault = preflight(rig, case, Lengths())
        if fault is not None:
            raise ProvisionError(f"{case.id}: {fault[1]}")
        yield rig
    finally:
        rig.close()


def launch(rig: Rig, case: Case, lengths: Lengths) -> tuple[Launch, list[ProcessOutput]]:
    """One launch, and what its processes said: side a of pair 1, side b, ..."""
    run = Run(rig, case, lengths)
    return run.run(0, None), list(run.launch_output.outputs.values())


def switches() -> list[str]:
    """The built-in switches but for what is between containers that run already: here are none."""
    return [name for name in builtin_switches() if name != ATTACH]


def can_run(session: HostSession, cases: Sequence[Case]) -> tuple[list[Case], list[str]]:
    """The cases that this host can have, and a note for each that it cannot."""
    able, notes = [], []
    for case in cases:
        try:
            placement(session, case)
            able.append(case)
        except Unsupported as reason:
            notes.append(f"Without {case.id}: {reason}")
    return able, notes


def quiet_share(windows: Sequence[Window]) -> Row:
    """The part of the windows in which the host took no time from an endpoint, beside its bound."""
    share = sum(not window.disturbed for window in windows) / len(windows) if windows else 0.0
    bound = f"at least {QUIET_SHARE * 100:.0f} %"
    what = "windows free of steal and preemption"
    return Row(what, f"{share * 100:.1f} % of {len(windows)}", bound, share >= QUIET_SHARE)
