# SPDX-License-Identifier: BSD-3-Clause
"""A search and a sweep with real frames: behind a forwarder whose cost a frame is known, with its reference link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]

#: So many cycles a frame that no endpoint of a present machine is slower.
CASE = Case("forward", Frames(rate=Rate(loss_ratio=0.1)), mode="cost100000")


def test_a_search_ends_between_bounds_and_keeps_every_trial(session: HostSession) -> None:
    settings = Settings(warmup_s=0.1, search_trial_s=0.1, search_sum_s=0.2, search_width=0.2, ring=64)
    reference = reference_case(CASE, "vhost-user", family="dpdk")
    assert reference is not None
    with built(session, CASE) as rig:
        rig.pause()
        with built(session, replace(reference, port=None), beside=rig) as beside:
            beside.pause()
            rig.resume()
            found = measure(Side(rig, CASE), settings, Side(beside, reference))
    assert (found.verdict, found.evidence, found.metric) == (None, None, "pdr")
    assert found.ended_by in ("goal", "max-duration", "generator-bound")
    search = found.searched.search
    assert search is not None
    assert search.calibrated_on == "reference"
    assert {trial.of for trial in search.trials} == {"case", "reference"}
    assert len(found.per_launch) + len(found.per_reference_launch) == len(search.trials)
    for trial in search.trials:
        assert trial.received <= trial.scheduled
        assert trial.scheduled >= trial.refused
    assert found.frames.scheduled == found.frames.sent + found.frames.refused
    assert found.frames.sent == found.frames.received + found.frames.lost
    assert found.searched.search_lower_pps is not None
    assert search.greatest_pps is not None
    assert found.searched.search_lower_pps < (found.searched.search_upper_pps or search.greatest_pps * 1.01)
    assert found.frames.throughput_pps is not None
    # A core of less than 10 GHz forwards fewer than 100,000 frames a second, and a tenth may be lost.
    assert 1000 < found.frames.throughput_pps < 120_000


def test_a_search_over_sockets_runs_without_a_reference(session: HostSession) -> None:
    case = Case("veth", Frames(rate=Rate(loss_ratio=0.1)), api="udp-mmsg")
    settings = Settings(warmup_s=0.1, search_trial_s=0.1, search_sum_s=0.2, search_width=0.2, search_time_s=20.0)
    with built(session, case, node="netns") as rig:
        found = measure(Side(rig, case), settings)
    assert found.searched.search is not None
    assert found.searched.search.calibrated_on == "case"
    assert found.searched.search.trials
    if found.reason == "generator-bound":  # said only where a busy machine keeps the sender itself from its schedule
        least = min(trial.load_pps for trial in found.searched.search.trials if trial.load_pps)
        bad = [trial for trial in found.searched.search.trials if trial.load_pps == least and not trial.good]
        assert 2 * sum(trial.generator_bound for trial in bad) > len(bad) > 0
        assert all(trial.not_offered > 0 for trial in bad if trial.generator_bound)
    else:
        assert found.reason in (None, "unfinished", "lossy")


def test_a_sweep_takes_its_maximum_from_fresh_launches(session: HostSession) -> None:
    case = Case("linux-bridge", Frames(rate=Rate(loads=(5_000, 20_000))), api="udp-mmsg")
    settings = Settings(max_duration_s=5.0, warmup_s=0.1, duration_s=0.3, drain_s=0.3, repeats=2)
    with built(session, case, node="netns") as rig:
        found = measure(Side(rig, case), settings)
    assert (found.verdict, found.metric) == (None, "mfr")
    assert found.launches == 2 or (found.launches == 1 and found.per_other_launch)  # in another state of the host
    assert [point.load_pps for point in found.rates.sweep] == [5_000, 20_000]
    assert len(found.per_launch) == 2 + found.launches
    best = max(found.rates.sweep, key=lambda point: point.throughput_pps)
    assert found.frames.throughput_pps == pytest.approx(best.throughput_pps, rel=0.5)
