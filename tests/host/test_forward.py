# SPDX-License-Identifier: BSD-3-Clause
"""The forwarder between real containers: what it does to frames, foretold to the frame and counted at both ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.driver.switch.forward import Forwarder, ForwarderPort, ForwardSwitch
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import SHORTEST, Traffic
from pytest_icbench.testbed.case_rig import Rig
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built, driver

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]

#: Without a warm-up the totals of the windows are those of the launch.
BRIEF = Settings(warmup_s=0.0, duration_s=0.3, drain_s=0.3, repeats=1)
N = 7
END_MARKS = 3
ATTEMPTS = 4


def forwarder(rig: Rig) -> Forwarder:
    switch = driver(rig)
    assert isinstance(switch, ForwardSwitch)
    assert switch.forwarder is not None
    return switch.forwarder


def change(before: ForwarderPort, after: ForwarderPort) -> ForwarderPort:
    """What a port counted in between."""
    differences = {name: (getattr(after, name) or 0) - (getattr(before, name) or 0) for name in ForwarderPort.__slots__}
    return ForwarderPort(**{**differences, "port": after.port})


def one_way(rig: Rig) -> tuple[Launch, ForwarderPort, ForwarderPort]:
    """A launch from a to b, and what both ports counted meanwhile.

    A receiver that is kept off its CPU has no room for frames, which is not the forwarder's doing: then another one.
    """
    for _ in range(ATTEMPTS):
        before = forwarder(rig).counters().ports
        launch = run_launch(rig, rig.case.sending(burst=4, rate=Rate(5000)), BRIEF)
        after = forwarder(rig).counters().ports
        a, b = (change(*ports) for ports in zip(before, after, strict=True))
        # Every frame that entered left, or is accounted for.
        for this, other in ((a, b), (b, a)):
            assert this.rx + this.duplicated == this.dropped + this.overflow + this.kept + other.tx + other.refused
        assert (a.missed, b.missed) == (0, 0)
        # A receiver announces itself, maybe before the sender is there.
        assert a.refused <= b.rx == b.control
        assert launch.invalid in (None, "clock"), launch.evidence
        # An end mark is repeated, and the receiver may have gone by then.
        if launch.invalid is None and b.refused < END_MARKS:
            assert launch.total("sent") > 500
            return launch, a, b
    raise AssertionError(f"in {ATTEMPTS} launches the receiver never kept up with 5000 frames a second")


@pytest.mark.parametrize("number", [N, 100])
def test_drop_is_exact(session: HostSession, number: int) -> None:
    with built(session, Case("forward", mode=f"drop{number}")) as rig:
        for _ in range(2):
            launch, a, b = one_way(rig)
            sent = launch.total("sent")
            assert a.rx - (a.control or 0) == sent
            assert a.dropped == sent // number
            assert launch.total("received") == sent - sent // number
            assert 0 <= b.tx - launch.total("received") <= END_MARKS
            assert (launch.total("duplicated"), launch.total("reordered")) == (0, 0)


@pytest.mark.parametrize("traffic", [SHORTEST, Traffic(128, flows="2", header="tcp6+vlan7")], ids=lambda of: of.label)
def test_duplicates_and_reordering_are_exact(session: HostSession, traffic: Traffic) -> None:
    """Of two flows that take turns a frame's successor is of the other one, so nothing is reordered within a flow."""
    with built(
        session, Case("forward", Frames(traffic), mode=f"dup{N}+reorder{N + 2}+swap", check_payload=True)
    ) as rig:
        launch, a, _ = one_way(rig)
    sent = launch.total("sent")
    # The very last frame has no successor: the end mark lets it go.
    displaced = sent // (N + 2) - (sent % (N + 2) == 0)
    assert (launch.total("received"), launch.total("lost")) == (sent, 0)
    assert launch.total("duplicated") == a.duplicated == sent // N
    assert a.reordered == displaced
    assert launch.total("reordered") == (displaced if traffic.flows is None else 0)
    assert (launch.total("corrupted"), launch.total("foreign")) == (0, 0)


def test_a_delay_is_never_too_short(session: HostSession) -> None:
    """The shortest round trip is about its double: the others are longer by what a busy host takes its time for."""
    delay_ns = 20_000_000
    shortest_ns, late_ns = {}, 0
    for mode in (None, "delay20ms"):
        with built(session, Case("forward", mode=mode)) as rig:
            case = replace(rig.case, dimension="latency").sending(burst=1, rate=Rate(1000))
            launch = run_launch(rig, case, BRIEF)
            late_ns = forwarder(rig).counters().delay_late_max_ns
        assert launch.invalid is None, launch.evidence
        assert launch.rtt_actual is not None
        shortest_ns[mode] = launch.rtt_actual.minimum or 0
    assert late_ns > 0
    assert shortest_ns[None] < 2 * delay_ns <= shortest_ns["delay20ms"] < 4 * delay_ns


def test_a_cost_bounds_the_rate(session: HostSession) -> None:
    """No more frames pass than the cycles allow, and a forwarder that has more of them is never idle."""
    cycles = 20_000
    with built(session, Case("forward", mode=f"cost{cycles}")) as rig:
        case = rig.case.sending(rate=Rate())
        before = forwarder(rig).counters()
        launch = run_launch(rig, case, BRIEF)
        after = forwarder(rig).counters()
    frames = sum(port.rx for port in after.ports) - sum(port.rx for port in before.ports)
    busy = after.busy_cycles - before.busy_cycles
    assert launch.invalid is None, launch.evidence
    assert frames > 1000
    assert busy >= frames * cycles * 0.999
    assert launch.busy_share is not None
    assert launch.busy_share > 0.5
