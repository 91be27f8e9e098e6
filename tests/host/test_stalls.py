# SPDX-License-Identifier: BSD-3-Clause
"""A stall is in the round trips, whoever stands still: requests that it hits hardest are late, or slower than all.

The whole table of rates, lengths and links is in the validation, beside an open loop.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

STALL_S = 0.3
LENGTHS = Settings(warmup_s=0.1, duration_s=1.5, window_s=0.05, drain_s=0.5)
SOCKETS = Case("veth", Frames(burst=1, rate=Rate(1000)), api="udp-mmsg", dimension="latency")
MEMIF = Case("direct", Frames(burst=4, rate=Rate(100_000)), port="memif", dimension="latency")
CLIENT, SERVER = 0, 1


def stalled(rig: Rig, case: Case, who: int) -> tuple[Launch, float]:
    """A launch in which one end stands still, and for how many seconds it did at least."""
    lasted: list[float] = []

    def look(output: LaunchOutput) -> bool:
        if not lasted and len(output.outputs[CLIENT].windows) >= 8:
            # On a shared CPU the client is still writing its line now, and what that takes is no gap.
            time.sleep(0.01)
            pid = rig.pids(run.id)[who]
            os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            time.sleep(STALL_S)
            # Before it goes on: what this process waits for a CPU afterwards is no part of the stall.
            lasted.append(time.monotonic() - began)
            os.kill(pid, signal.SIGCONT)
        return False

    run = Run(rig, case, LENGTHS, enough=look)
    return run.run(0, None), lasted[0]


@pytest.mark.parametrize("who", [CLIENT, SERVER], ids=["client", "server"])
@pytest.mark.parametrize(
    "case", [pytest.param(SOCKETS, id="sockets"), pytest.param(MEMIF, id="memif", marks=pytest.mark.slow)]
)
def test_a_stall_is_in_the_percentiles(session: HostSession, case: Case, who: int) -> None:
    """Of the requests of 1.5 s a fifth was due in a stall of 0.3 s: a hundredth of all waited for 285 ms or longer."""
    with built(session, case) as rig:
        launch, seconds = stalled(rig, case, who)
    assert launch.invalid is None, launch.evidence
    assert launch.rtt is not None
    assert launch.total("refused") == launch.total("not_offered") == 0
    assert launch.rtt.count + launch.rtt.lost == pytest.approx(1.5 * (case.rate.pps or 0), rel=0.01)
    assert launch.rtt.lost < 0.001 * launch.rtt.count
    late = launch.rtt.percentile(0.99)
    assert late is not None
    # Whatever else the host did makes round trips longer, never shorter.
    assert late >= 0.97 * (seconds - 0.015) * 1e9
    assert (launch.rtt.percentile(0.9) or 0) >= 0.9 * (seconds - 0.15) * 1e9
    (client, server) = launch.endpoints
    assert ((client, server)[who].gap_s or 0) >= 0.95 * STALL_S


@pytest.mark.slow
def test_a_server_that_answers_no_more_is_a_stall_of_the_path(session: HostSession) -> None:
    """It answers for a while, and then every frame is too long for its interface: no percentile is claimed."""
    case = SOCKETS.sending(traffic=replace(SOCKETS.traffic, packet_size=512))
    with built(session, case, node="netns") as rig:
        cut: list[int] = []

        def look(output: LaunchOutput) -> bool:
            if not cut and len(output.outputs[CLIENT].windows) >= 10:
                cut.append(rig.pids(run.id)[SERVER])
                links.set_mtu("eth0", 68, netns=f"/proc/{cut[0]}/ns/net")
            return False

        run = Run(rig, case, LENGTHS, enough=look)
        launch = run.run(0, None)
    assert launch.invalid == "stalled"
    assert launch.rtt is not None
    assert launch.rtt.percentile(0.9) is None
