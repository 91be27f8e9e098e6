# SPDX-License-Identifier: BSD-3-Clause
"""A load that changes every second, over a real path that delays every frame."""

from __future__ import annotations

import time
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
from pytest_icbench.model.trace import Trace
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from tests.host.function_tools import UNDISTURBED, through
from tests.host.node_tools import clean, cpu_ticks, require, session
from tests.host.rig_tools import built, running

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

TRACE = Trace("test", ((200, 1000, 200),))
WINDOW_S = 0.1
SETTINGS = replace(UNDISTURBED, window_s=WINDOW_S, drain_s=1.0)
#: What a frame costs a function that passes some thousand a second. The preflight asks it for fewer.
CYCLES = 2_000_000


@pytest.mark.slow
def test_a_change_arrives_after_the_delay_of_the_path(session: HostSession) -> None:
    case = Case("forward-raw", Frames(burst=1, rate=Rate(trace=TRACE)), mode="delay200000us")
    with built(session, case) as rig:
        found = measure(Side(rig, case), SETTINGS.following(TRACE))
    assert (found.verdict, found.evidence, found.metric) == (None, None, "trace")
    assert found.frames.followed is not None
    assert [(one.second, one.from_pps, one.to_pps) for one in found.frames.followed] == [(1, 200, 1000), (2, 1000, 200)]
    # No frame is kept for less than the delay, and a busy host may keep some for longer.
    assert all(one.follow_s is not None and one.follow_s >= 0.29 for one in found.frames.followed)
    quiet(found)
    assert all(one.follow_s is not None and one.follow_s <= 0.3 + WINDOW_S for one in found.frames.followed)


@pytest.mark.slow
def test_the_time_to_follow_is_that_of_the_queue_before_a_known_capacity(session: HostSession) -> None:
    require("lxc")
    step = Trace("step", ((200, 2500, 200, 200, 200),))
    case = Case("veth", Frames(burst=1, rate=Rate(trace=step)), function=f"cost{CYCLES}", api="raw-mmsg")
    # The function has a CPU that nothing else of the case has.
    placement = plan(Topology.read(session.root), workers=1, endpoints=2, policy="cooperative")
    placement = replace(placement, switch=(), functions=placement.switch)
    with running(Rig(case, placement, session, "lxc")) as rig:
        found = measure(Side(rig, case), SETTINGS.following(step))
    assert (found.verdict, found.evidence, found.frames.lost) == (None, None, 0)
    (launch,) = found.per_launch
    assert launch.tsc_hz is not None
    capacity = launch.tsc_hz / CYCLES
    assert 200 < capacity < 2385, "the step is beyond it, and what follows is not"
    assert found.frames.followed is not None
    up, down = found.frames.followed
    assert up.follow_s is None
    quiet(found)
    # For a second frames came faster than it passes them. Those sent later wait for them.
    second = round(1 / WINDOW_S)
    step_windows = [window for window in launch.windows if second < window.number <= 2 * second]
    ended_ns = max(window.start_ns + window.duration_ns for window in step_windows)
    drained_s = (max(window.last_ns or 0 for window in step_windows) - ended_ns) / 1e9
    assert down.follow_s == pytest.approx(drained_s, abs=WINDOW_S)
    # None passes sooner than it costs. A hypervisor makes a frame last longer, and counts that as no one's time.
    least_s = (2500 - capacity) / capacity
    assert least_s - WINDOW_S < drained_s < 1.5 * least_s


def quiet(found: Measurement) -> None:
    """Skips what a busy host makes later."""
    if any(launch.disturbed is not None for launch in found.per_launch):
        pytest.skip("other processes took the CPUs, so that frames come later than the path lets them")


def test_functions_are_frozen_and_thawed_and_a_frozen_one_ends(session: HostSession) -> None:
    case = Case("veth", function="wire", pairs=2, api="raw-mmsg")
    with through(session, case) as rig:
        group = SessionGroup.get(session)
        nodes = vars(rig.host)["_functions"]._nodes
        pids = {place[0]: group.pids(group.member(node.spec.name)) for place, node in nodes.items()}

        def works(pair: int) -> bool:
            before = sum(map(cpu_ticks, pids[pair]))
            time.sleep(0.3)
            return sum(map(cpu_ticks, pids[pair])) > before

        for frozen, running in ((2, 1), (1, 2)):
            rig.freeze((frozen,))
            assert (works(frozen), works(running)) == (False, True)
        rig.freeze(())
        assert works(1)
        rig.freeze((1, 2))
        began = time.monotonic()
    assert time.monotonic() - began < 5, "each would be waited for until it has not ended by SIGKILL either"
