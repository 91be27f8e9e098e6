# SPDX-License-Identifier: BSD-3-Clause
"""Long runs and trains with real packets: what is on the disk while they run, and what a train loses."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.kinds.throughput.throughput_run import Ladder, burst_rate, climbs, train_settings
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.soak import soak_settings, with_losses
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built
from tests.host.test_invalid import invalid, measured
from tests.host.test_measure import switch_pid

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]

QUICK = Settings(warmup_s=0.1, drain_s=0.3)


@pytest.mark.parametrize("dimension", ["throughput", "latency"])
def test_the_windows_of_a_long_run_are_on_the_disk(session: HostSession, tmp_path: Path, dimension: str) -> None:
    path = tmp_path / "x.jsonl"
    case = Case("veth", Frames(burst=4, rate=Rate(2000)), api="udp-mmsg")
    with built(session, case) as rig:
        found = with_losses(measure(Side(rig, case), soak_settings(QUICK, 2.0, path)))
    assert (found.verdict, found.launches, found.ended_by) == (None, 1, "repeats")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    windows = {window.number: window for window in found.per_launch[0].windows}
    assert len(lines) >= len(windows) - 1  # nothing follows the last one before the end
    for line in lines:
        assert line["scheduled"] == windows[line["number"]].scheduled
        assert line["received"] <= windows[line["number"]].received
    assert found.frames.loss_event_count == len(found.frames.loss_events or ())
    assert sum(event.lost for event in found.frames.loss_events or ()) == found.frames.lost


def test_a_switch_that_dies_in_a_long_run_leaves_its_windows(session: HostSession, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    case = Case("testpmd", Frames(rate=Rate(20_000)))
    with built(session, case) as rig:
        found = measured(
            rig, case, lambda _pids: os.kill(switch_pid(rig), signal.SIGKILL), soak_settings(QUICK, 20.0, path)
        )
    assert "testpmd was killed by signal 9" in invalid(found, "died")
    assert found.duration_s < 15  # it is not waited for what cannot come any more
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert 1 <= len(lines) < 20
    assert all(line["received"] > 0 for line in lines)


def test_trains_cross_a_switch(session: HostSession) -> None:
    """Short ones pass whole; their rate is that of the sender's own loop."""
    case = Case("veth", api="udp-mmsg")
    ladder = Ladder(8, 64, 4)
    with built(session, case) as rig:
        found = measure(Side(rig, case), train_settings(QUICK, ladder, 0.05, 5))
    assert found.verdict is None
    launch = found.per_launch[0]
    climbed = climbs(launch.windows, ladder)
    assert len(climbed) == 5
    assert any(climb.frames == 64 for climb in climbed)
    rate = burst_rate(launch)
    assert rate is not None
    assert rate > 10_000


def test_testpmd_and_the_kernel_tell_their_work(session: HostSession) -> None:
    settings = Settings(warmup_s=0.1, duration_s=0.5, drain_s=0.3, repeats=1)
    for case in (Case("testpmd"), Case("linux-bridge", api="udp-mmsg")):
        with built(session, case) as rig:
            found = measure(Side(rig, case), settings)
        assert found.frames.cycles_per_packet is not None
        assert 10 < found.frames.cycles_per_packet < 1e6
