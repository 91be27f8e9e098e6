# SPDX-License-Identifier: BSD-3-Clause
"""A noisy neighbour beside launches, on the real host."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.testbed import noisy_neighbour_load
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from tests.host.function_tools import TWICE
from tests.host.node_tools import clean, require, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

CASE = Case("veth", Frames(burst=1, rate=Rate(2000)), api="udp", dimension="latency", noisy_neighbour="cpu")


def measured(
    session: HostSession, kind: str = "lxc", case: Case = CASE, then: Callable[[int], None] = lambda _: None
) -> Measurement:
    """A case of two pairs of launches; ``then`` is called with the number of each that began beside the noisy
    neighbour.
    """
    require(kind)
    program = noisy_neighbour_load.COMMANDS[case.noisy_neighbour or ""][0]
    if program == "stress-ng" and shutil.which(program) is None:
        pytest.skip("stress-ng is not installed: apt install stress-ng")
    placement = plan(Topology.read(session.root), workers=1, endpoints=2, policy="cooperative")
    placement = replace(placement, switch=(), noisy_neighbour=placement.switch)
    rig = Rig(case, placement, session, kind)
    rig.build()
    try:
        with noisy_neighbour_load.open_views(rig, None, case, kind) as (case_rig, alone):
            start, count = case_rig.start, iter(range(9))

            def started(launch_id: str, delay_s: float = 0.02) -> int:
                moment = start(launch_id, delay_s)
                then(next(count))
                return moment

            assert alone is not None
            case_rig.start = started  # type: ignore[method-assign]
            return measure(Side(case_rig, case), TWICE, Side(alone, case.undisturbed))
    finally:
        rig.close()


@pytest.mark.parametrize("kind", ["lxc", pytest.param("netns", marks=pytest.mark.slow)])
def test_a_noisy_neighbour_is_busy_beside_every_other_launch(session: HostSession, kind: str) -> None:
    found = measured(session, kind)
    assert (found.verdict, found.evidence) == (None, None)
    assert found.frames.noisy_neighbour is not None
    assert (found.frames.noisy_neighbour.pairs, len(found.per_reference_launch)) == (2, 2)
    assert {"mean", "maximum"} <= set(found.frames.noisy_neighbour.ratios)  # the 99th percentile takes more round trips
    assert 0 < (found.frames.noisy_neighbour.busy or 0) <= 1


@pytest.mark.slow
def test_a_noisy_neighbour_that_ends_early_is_reported(session: HostSession) -> None:
    def kill(number: int) -> None:
        groups = SessionGroup.get(session)
        if number == 1:
            for pid in groups.pids(groups.member(session.name("neighbour"))):
                os.kill(pid, signal.SIGKILL)

    found = measured(session, then=kill)
    assert (found.verdict, found.reason) == ("INVALID", "noisy-neighbour")
    assert (found.evidence or "").startswith("noisy neighbour cpu ended early: stress-ng was killed by signal 9")


@pytest.mark.slow
def test_a_noisy_neighbour_that_cannot_be_found_or_sleeps_is_reported(
    session: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisy_neighbour_load, "BUSY_TIMEOUT_S", 0.3)
    monkeypatch.setattr(noisy_neighbour_load, "COMMANDS", {"cpu": ["sleep", "1000"], "cache": ["stress-nix"]})
    found = measured(session, "netns")
    assert (found.verdict, found.reason) == ("INVALID", "noisy-neighbour")
    assert (found.evidence or "").startswith(
        "noisy neighbour cpu is not busy: 0% of the time of its CPU 0.3 s after its start"
    )
    found = measured(session, "netns", replace(CASE, noisy_neighbour="cache"))
    assert found.evidence == "noisy neighbour cache: stress-nix is not installed: apt install stress-ng"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stream", "noisy"])
def test_a_noisy_neighbour_of_each_program_works(session: HostSession, kind: str) -> None:
    found = measured(session, case=replace(CASE, noisy_neighbour=kind))
    assert (found.verdict, found.evidence) == (None, None)
    assert found.frames.noisy_neighbour is not None
    assert (found.frames.noisy_neighbour.busy or 0) > 0
