# SPDX-License-Identifier: BSD-3-Clause
"""The counters of each switch for real: they agree with the endpoints to the frame, and tell the load."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.launch.switch_work import Ports
from pytest_icbench.measure.repetition import MOST_FAULTS
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.switch_facts import PortCounters
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.verdict_reasons import HARNESS_REASONS
from tests.host.node_tools import clean, session
from tests.host.rig_tools import acting, built
from tests.host.test_switches import BRIEF, assert_heard, one_way, there_and_back

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

#: A receiver announces itself once; a sender marks its end up to three times.
ANNOUNCED, END_MARKS = 1, 3


def difference(before: Ports, after: Ports, name: str) -> list[int]:
    assert before is not None
    assert after is not None
    pairs = zip(before, after, strict=True)
    return [(getattr(new, name) or 0) - (getattr(old, name) or 0) for old, new in pairs]


def settled(rig: Rig) -> tuple[PortCounters, ...] | None:
    """The switch's counters once nothing is on the way any more, as for a while in a guest that is emulated."""
    counters, deadline = rig.counters(), time.monotonic() + 5
    while time.monotonic() < deadline:
        time.sleep(0.02)
        before, counters = counters, rig.counters()
        if counters == before:
            break
    return counters


def refusals(rig: Rig, index: int) -> int:
    """ICMP messages by which the kernel of a node has said that nobody has a port."""
    pid = vars(rig.host)["_inits"][index]
    lines = Path(f"/proc/{pid}/net/snmp").read_text(encoding="ascii").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Icmp:"))
    return int(values[names.index("OutDestUnreachs")])


@pytest.mark.parametrize("name", ["veth", "linux-bridge", "testpmd", "ovs", "vpp", "snabb", "forward"])
def test_counters_agree_with_the_endpoints(session: HostSession, name: str) -> None:
    """To the frame: what the endpoints do not count are their control frames."""
    case = Case(name)
    settings = replace(BRIEF, warmup_s=0.0)  # the launch's totals are those of its windows then
    with built(session, case) as rig:
        there_and_back(rig, case)  # addresses are learnt
        for _ in range(MOST_FAULTS + 1):
            before, said = settled(rig), refusals(rig, 0)
            launch = run_launch(rig, case.sending(rate=Rate(50_000)), settings)
            after = settled(rig)
            if launch.invalid not in HARNESS_REASONS:
                break
        # A kernel answers an announcement that comes before the sender has its port.
        said = refusals(rig, 0) - said
    assert_heard(launch)
    sent, received = launch.total("sent"), launch.total("received")
    came, dropped = difference(before, after, "rx_packets"), difference(before, after, "tx_dropped")
    assert said <= ANNOUNCED
    assert sent + 1 <= came[0] - said <= sent + END_MARKS
    # As the result has it, which counts from when the receiver has announced itself to when the sender has ended: end
    # marks that are repeated may be on the way then.
    assert launch.switch_counters is not None
    assert launch.switch_counters[0].rx_packets is not None
    assert 0 <= came[0] - launch.switch_counters[0].rx_packets < END_MARKS
    # A kernel answers an end mark that is repeated when the receiver has ended: nobody has the port.
    answers = END_MARKS - 1 if builtin_switches()[case.switch].family == "kernel" else 0
    assert ANNOUNCED <= came[1] <= ANNOUNCED + answers
    assert received <= came[0] - said - dropped[1] <= received + END_MARKS
    if after is not None and after[1].tx_packets is not None:
        given = difference(before, after, "tx_packets")
        assert received <= given[1] <= came[0] - dropped[1]
        # An announcement that comes before the sender's port is up does not fit into it.
        assert given[0] + dropped[0] == came[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["testpmd", "ovs", "vpp", "snabb", "forward"])
def test_frames_that_a_full_ring_costs_are_named(session: HostSession, name: str) -> None:
    """A receiver that is off its CPU for a while loses frames, and the switch tells how many."""
    case = Case(name)
    with built(session, case) as rig:
        there_and_back(rig, case)

        def stall(pids: Mapping[int, int]) -> None:
            os.kill(pids[1], signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(pids[1], signal.SIGCONT)

        before = rig.counters()
        settings = replace(BRIEF, warmup_s=0.0, duration_s=0.5)
        with acting(rig, stall):
            launch = run_launch(rig, case.sending(rate=Rate(50_000)), settings)
        after = rig.counters()
    assert launch.total("lost") > 0
    came, dropped = difference(before, after, "rx_packets"), difference(before, after, "tx_dropped")
    assert 0 <= came[0] - dropped[1] - launch.total("received") <= END_MARKS


@pytest.mark.slow
def test_pmd_cycles_tell_the_load(session: HostSession) -> None:
    """A thread that loses its CPU while it is busy counts that as busy, so one launch alone proves nothing."""
    case = Case("ovs")
    shares: dict[int | None, list[float]] = {1000: [], None: []}
    with built(session, case) as rig:
        there_and_back(rig, case)
        for _ in range(10):
            for pps, reported in shares.items():
                launch = one_way(rig, case, pps)
                assert launch.busy_share is not None
                reported.append(launch.busy_share)
            if min(shares[1000]) < max(shares[None]):
                break
        assert rig.assignment() == dict.fromkeys("01", rig.placement.switch[0])
    assert 0 <= min(shares[1000]) < max(shares[None]) <= 1
