# SPDX-License-Identifier: BSD-3-Clause
"""Functions that get parts of one CPU by allocation, on the real host."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from tests.host.function_tools import UNDISTURBED
from tests.host.node_tools import clean, require, session
from tests.host.rig_tools import running

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone


@pytest.mark.slow
@pytest.mark.parametrize(("share", "cap"), [("70:30", None), (None, "30:30")])
def test_functions_get_their_parts_of_a_cpu(session: HostSession, share: str | None, cap: str | None) -> None:
    require("lxc")
    case = Case(
        "veth",
        Frames(burst=8, rate=Rate(12_000)),
        function="cost20000",
        cpu_share=share,
        cpu_quota=cap,
        pairs=2,
        api="raw-mmsg",
    )
    placement = plan(Topology.read(session.root), workers=1, endpoints=len(case.path.endpoints), policy="cooperative")
    placement = replace(placement, switch=(), functions=placement.switch * case.pairs)
    with running(Rig(case, placement, session, "lxc")) as rig:
        began = time.monotonic()
        found = measure(Side(rig, case), UNDISTURBED)
        lasted_ns = (time.monotonic() - began) * 1e9
    assert (found.verdict, found.evidence) == (None, None)
    first, second = found.functions or ()
    assert [(work.cpu_share, work.cpu_quota) for work in (first, second)] == [
        (c.cpu_share, c.cpu_quota) for c in case.cpu_allocations
    ]
    assert all((work.taken or 0) > 100 for work in (first, second))
    assert (first.involuntary_switches or 0) + (first.voluntary_switches or 0) > 10
    times_ns = [work.cpu_ns or 0 for work in (first, second)]
    if share is not None:
        # They poll, so both want the CPU all the time.
        assert times_ns[0] / sum(times_ns) == pytest.approx(0.7, abs=0.05)
    else:
        # The CPU is idle for the rest: neither takes what the other leaves.
        assert all(0.05 < time_ns / lasted_ns < 0.35 for time_ns in times_ns)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", ["throughput", "latency"])
def test_different_functions_share_a_cpu(session: HostSession, dimension: Dimension) -> None:
    case = Case(
        "veth",
        Frames(burst=8, rate=Rate(4_000)),
        dimension=dimension,
        function="wire:2xcost20000",
        pairs=3,
        api="raw-mmsg",
    )
    placement = plan(Topology.read(session.root), workers=1, endpoints=len(case.path.endpoints), policy="cooperative")
    placement = replace(placement, switch=(), functions=placement.switch * case.pairs)
    with running(Rig(case, placement, session, "netns")) as rig:
        found = measure(Side(rig, case), replace(UNDISTURBED, drain_s=1.0))
    assert (found.verdict, found.evidence) == (None, None)
    works = found.functions or ()
    assert sum(work.cpu_used_share or 0 for work in works) == pytest.approx(1)
    # Each yields where it has nothing to do, so those that have more to do get more.
    assert min(work.cpu_used_share or 0 for work in works[1:]) > (works[0].cpu_used_share or 1) > 0
    assert all((work.taken or 0) > 1000 and 1 <= (work.batch_size or 0) <= 32 for work in works)
    if dimension == "latency":
        (launch,) = found.per_launch
        assert [pair.pair for pair in launch.pairs] == [1]
        assert (found.round_trips.rtt_samples or 0) > 100
    else:
        assert all((work.goodput_pps or 0) > 1000 for work in works)
