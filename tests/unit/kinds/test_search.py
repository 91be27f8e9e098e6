# SPDX-License-Identifier: BSD-3-Clause
"""Searches and sweeps on rigs that are only models: whose limit is found, what is calibrated, how each one ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.kinds.runs import measure
from pytest_icbench.kinds.search import search_run
from pytest_icbench.kinds.search.mlrsearch import Bounds
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import PairCounts
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.dependence import FEWEST_DECIDING
from pytest_icbench.stats.quantiles import Estimate
from tests.unit.search_model import NDR, PDR, Model, clock, find

__all__ = ["clock"]  # a fixture

pytestmark = pytest.mark.usefixtures("clock")


@pytest.mark.parametrize("refuses", [False, True], ids=["loses", "refuses"])
@pytest.mark.parametrize(("rate", "metric"), [(NDR, "ndr"), (PDR, "pdr")])
@pytest.mark.parametrize("pairs", [1, 2])
def test_a_devices_limit_is_found_between_its_bounds(refuses: bool, rate: Rate, metric: str, pairs: int) -> None:
    """What the switch's ring refuses is its loss just as what it loses."""
    rig, reference = Model(3e6, refuses=refuses), Model(15e6)
    found = find(rig, reference, rate, pairs)
    true_pps = 3e6 * pairs / (1 - (rate.loss_ratio or 0))
    assert (found.metric, found.verdict, found.ended_by, found.lower_bound) == (metric, None, "goal", False)
    assert found.searched.search is not None
    assert (found.searched.search.reached, found.searched.search.evidence, found.searched.search.calibrated_on) == (
        True,
        None,
        "reference",
    )
    assert found.searched.search_lower_pps is not None
    assert found.searched.search_upper_pps is not None
    assert found.searched.search_lower_pps <= true_pps * 1.0001 <= found.searched.search_upper_pps * 1.0002
    assert found.searched.search_upper_pps - found.searched.search_lower_pps <= 0.0051 * found.searched.search_upper_pps
    assert found.frames.throughput_pps is not None
    assert found.frames.throughput_pps.value == found.frames.throughput_pps.low == pytest.approx(3e6 * pairs, rel=0.006)
    assert found.frames.throughput_pps.high == found.searched.search_upper_pps
    assert found.frames.throughput_per_pair_pps == pytest.approx(3e6, rel=0.006)
    assert (found.confidence, found.precision) == (None, None)
    assert found.frames.trial_loss_ratio is not None
    assert found.frames.trial_loss_ratio <= (rate.loss_ratio or 0)
    assert found.ratio_to_reference == pytest.approx(3 / 15, rel=0.03)
    # Counters are of the trials at the lower bound; all launches are kept, in their order.
    at_lower = [trial for trial in found.searched.search.trials if trial.load_pps == found.searched.search_lower_pps]
    assert found.launches == len(at_lower)
    assert found.frames.scheduled == sum(trial.scheduled for trial in at_lower)
    assert [launch.index for launch in found.per_launch] == list(range(len(found.per_launch)))
    assert len(found.per_launch) + len(found.per_reference_launch) == len(found.searched.search.trials)


def test_calibration_and_the_question_whose_limit_it_is_run_on_the_reference_link() -> None:
    rig, reference = Model(3e6), Model(15e6)
    found = find(rig, reference)
    assert found.searched.search is not None
    where = [trial.of for trial in found.searched.search.trials]
    assert where[0] == where[-1] == "reference"
    assert reference.loads[0] is None
    assert reference.loads[-1] == round(found.searched.search_upper_pps or 0)
    assert None not in rig.loads
    assert set(rig.caps) == {128}
    assert reference.caps[0] == 0


def test_the_calibrated_load_is_one_that_the_reference_link_sustains() -> None:
    """At the maximum rate its senders push 20 Mpps, of which it loses a quarter."""
    found = find(Model(3e6), Model(15e6))
    assert found.searched.search is not None
    assert found.searched.search.greatest_pps == pytest.approx(15e6, rel=0.03)
    assert found.searched.search.least_pps == pytest.approx(15e3, rel=0.03)


def test_a_device_that_outruns_the_senders_can_do_at_least_that() -> None:
    found = find(Model(30e6), Model(15e6))
    assert (found.verdict, found.ended_by, found.lower_bound, found.generator_bound) == (
        None, "generator-bound", True, True,
    )  # fmt: skip
    assert found.frames.throughput_pps is not None
    assert found.frames.throughput_pps == pytest.approx(15e6, rel=0.03)
    assert (found.frames.throughput_pps.high, found.searched.search_upper_pps) == (None, None)
    assert found.searched.search is not None
    assert "reference link sustains" in str(found.searched.search.evidence)
    assert "at least that" in str(found.searched.search.evidence)


def test_a_limit_that_the_reference_link_has_too_is_not_the_devices() -> None:
    """The reference was quick when it was calibrated and is not any more."""
    rig, reference = Model(3e6), Model(15e6)

    class Slowing(Model):
        def counts(self, pair: int, rate: Rate, duration_s: float) -> PairCounts:
            if rig.loads:
                self.capacity_pps = 3e6
            return super().counts(pair, rate, duration_s)

    found = find(rig, Slowing(15e6))
    assert (found.ended_by, found.lower_bound, found.generator_bound) == ("generator-bound", True, True)
    assert found.frames.throughput_pps is not None
    assert found.frames.throughput_pps.high is None
    assert found.searched.search_upper_pps is not None
    assert "the reference link loses more than 0.5 % there too" in str(
        found.searched.search and found.searched.search.evidence
    )
    assert reference.loads == []


def test_a_sender_that_cannot_keep_the_load_makes_no_limit_of_the_device() -> None:
    """Through the device the senders only reach 4 Mpps; what they could not offer is not the device's loss."""
    found = find(Model(9e6, sender_pps=4e6), Model(15e6))
    assert (found.ended_by, found.lower_bound) == ("generator-bound", True)
    assert found.frames.throughput_pps is not None
    assert 3.976e6 <= found.frames.throughput_pps <= 4e6
    assert "the senders cannot offer it" in str(found.searched.search and found.searched.search.evidence)
    assert any(trial.generator_bound for trial in (found.searched.search.trials if found.searched.search else ()))


@pytest.mark.parametrize("rate", [NDR, PDR], ids=str)
def test_a_device_that_always_loses_some_is_invalid_with_the_evidence(rate: Rate) -> None:
    found = find(Model(9e6, extra_loss=14 if rate == NDR else 10**5), Model(15e6), rate)
    assert (found.verdict, found.reason) == ("INVALID", "lossy")
    assert (found.frames.throughput_pps, found.searched.search_lower_pps) == (None, None)
    assert found.searched.search_upper_pps is not None
    what = "no load passes without loss" if rate == NDR else "no load passes with at most 0.5 % loss"
    assert str(found.evidence).startswith(what)
    assert "frames lost or refused in 1 s" in str(found.evidence)


def test_a_reference_that_always_loses_some_makes_it_the_generators() -> None:
    found = find(Model(9e6, extra_loss=14), Model(15e6, extra_loss=14), NDR)
    assert (found.verdict, found.reason) == ("INVALID", "generator-bound")
    assert "but the reference link does not either" in str(found.evidence)


@pytest.mark.parametrize("after", [0, 1, 5, 12])
def test_a_launch_that_is_no_number_ends_the_search(after: int) -> None:
    rig = Model(3e6, invalid="stalled", after=after)
    found = find(rig, Model(15e6))
    assert (found.verdict, found.reason, found.evidence) == ("INVALID", "stalled", "nothing arrived")
    assert (found.frames.throughput_pps, found.ended_by) == (None, "invalid")
    assert len(rig.loads) == after + 1
    assert len(found.per_launch) == after + 1


def test_a_reference_that_fails_costs_the_ratio_and_not_the_search() -> None:
    found = find(Model(3e6, refuses=True), Model(15e6, broken=True))
    assert (found.verdict, found.ended_by) == (None, "goal")
    assert found.ratio_to_reference is None
    assert "the switch died" in str(found.reference_evidence)
    assert found.searched.search is not None
    assert found.searched.search.calibrated_on == "case"
    assert found.frames.throughput_pps == pytest.approx(3e6, rel=0.01)


def test_without_a_reference_the_path_itself_is_calibrated() -> None:
    for found in (find(Model(3e6, refuses=True)), find(Model(3e6, refuses=True), Model(15e6), reference=False)):
        assert found.searched.search is not None
        assert found.searched.search.calibrated_on == "case"
        assert found.searched.search.greatest_pps == pytest.approx(3.3e6)
        assert found.frames.throughput_pps == pytest.approx(3e6, rel=0.01)


def test_when_time_runs_out_the_result_says_what_was_proven() -> None:
    whole = find(Model(3e6), Model(15e6))
    seen = set()
    for limit in range(4, round(whole.duration_s) + 1):
        found = find(Model(3e6), Model(15e6), search_time_s=float(limit), max_duration_s=float(limit))
        assert found.duration_s <= limit + 8  # the calibration, and the reference at the end
        if found.ended_by == "goal":
            continue
        assert found.ended_by == "max-duration"
        assert found.searched.search is not None
        said = str(found.searched.search.evidence)
        assert said.startswith(f"ended after {limit} s, before its goal: ")
        assert said.endswith("give it more time (--icbench-max-duration)")
        assert (found.verdict, found.reason, found.frames.throughput_pps) == ("INVALID", "unfinished", None)
        proven = "proven: below 3.019 Mpps" if found.searched.search_upper_pps else "no bound was proven"
        assert proven in said
        seen.add((proven, "shorter trials" in said))
    assert seen == {
        ("no bound was proven", False),
        ("no bound was proven", True),
        ("proven: below 3.019 Mpps", True),
    }


def test_bounds_that_are_still_apart_are_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Bounds(2.9e6, 3.1e6, 2.9e6, False, (2.9e6, 3.1e6))
    monkeypatch.setattr(search_run, "find_bounds", lambda *_: bounds)
    found = find(Model(3e6), Model(15e6))
    assert (found.verdict, found.ended_by, found.lower_bound) == (None, "max-duration", False)
    assert found.frames.throughput_pps == Estimate(2.9e6, 2.9e6, 3.1e6)
    said = str(found.searched.search and found.searched.search.evidence)
    assert "the bounds are 6.4516 % apart, not within 0.5 %; give it more time" in said


def test_a_lower_bound_alone_is_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Bounds(2.9e6, None, 2.89e6, False, (2.9e6, 3.2e6))
    monkeypatch.setattr(search_run, "find_bounds", lambda *_: bounds)
    found = find(Model(3e6), Model(15e6))
    assert (found.verdict, found.ended_by, found.lower_bound) == (None, "max-duration", True)
    assert (found.frames.throughput_pps, found.generator_bound) == (Estimate(2.89e6, 2.89e6), False)
    said = str(found.searched.search and found.searched.search.evidence)
    assert "proven: above 2.9 Mpps; shorter trials put it above 2.9 Mpps and below 3.2 Mpps" in said


def test_the_progress_reports_trial_and_bounds() -> None:
    reported: list[Progress] = []
    case = Case("testpmd", Frames(rate=PDR))
    rig, link = Side(Model(3e6), case), Side(Model(15e6), case)  # type: ignore[arg-type]
    measure(rig, Settings(), link, reported.append)
    details = [str(progress.detail) for progress in reported]
    assert details[0] == "calibration"
    assert any(detail.startswith("trial 1 at 1") and detail.endswith("Mpps, bounds ..") for detail in details)
    assert any(" at 3.0" in detail and "bounds 3.0" in detail for detail in details)
    assert details[-1].startswith("reference at 3.0")


@pytest.mark.parametrize("rate", [NDR, Rate(loads=())], ids=str)
def test_latency_has_no_rate_to_look_for(rate: Rate) -> None:
    case = Case("testpmd", Frames(rate=rate), dimension="latency")
    with pytest.raises(UsageError, match=f"not at rate {rate}; give max or frames per second"):
        measure(Side(Model(3e6), case), Settings())  # type: ignore[arg-type]


# -- sweeps


class Collapsing(Model):
    """Forwards less when it is offered more than it can."""

    def counts(self, pair: int, rate: Rate, duration_s: float) -> PairCounts:
        offered = rate.pps or self.sender_pps
        held = replace(self, capacity_pps=3e6 if offered <= 3e6 else 1e6)
        return Model.counts(held, pair, rate, duration_s)


def test_the_maximum_is_taken_over_the_loads_and_measured_afresh() -> None:
    rig = Collapsing(3e6)
    found = find(rig, rate=Rate(loads=(1_000_000, 2_000_000, 3_000_000, 4_000_000)), repeats=3, pairs=2)
    assert (found.metric, found.case) == ("mfr", "testpmd-64B-b32-2vs2-Rmfr")
    assert [point.load_pps for point in found.rates.sweep] == [2e6, 4e6, 6e6, 8e6]
    assert [point.throughput_pps for point in found.rates.sweep] == [2e6, 4e6, 6e6, 2e6]
    assert [point.trial_loss_ratio for point in found.rates.sweep] == [0, 0, 0, 0.75]
    assert (found.frames.throughput_pps, found.launches, found.frames.lost) == (6e6, 3, 0)
    assert rig.loads == [1_000_000, 2_000_000, 3_000_000, 4_000_000, *[3_000_000] * 3]
    assert [launch.index for launch in found.per_launch] == list(range(7))
    assert (found.lower_bound, found.ratio_to_reference) == (False, None)


def test_a_sweep_that_ends_before_anything_is_lost_says_at_least() -> None:
    found = find(Model(9e6), rate=Rate(loads=(1_000_000, 2_000_000)), repeats=1)
    assert (found.frames.throughput_pps, found.lower_bound) == (2e6, True)
    assert found.bottleneck_evidence == "all of the greatest load arrived: a greater one may give more"


def test_a_sweep_without_loads_takes_tenths_of_what_the_reference_link_takes() -> None:
    rig, reference = Model(3e6), Model(15e6)
    found = find(rig, reference, rate=Rate(loads=()), repeats=1)
    assert reference.loads == [None]
    assert [point.load_pps for point in found.rates.sweep] == [2e6 * step for step in range(1, 11)]
    assert found.frames.throughput_pps == 3e6


def test_the_time_of_a_case_is_for_the_launches_at_the_best_load() -> None:
    loads = tuple(range(1_000_000, 21_000_000, 1_000_000))
    found = find(Model(3e6), rate=Rate(loads=loads), max_duration_s=60.0)
    assert (len(found.rates.sweep), found.ended_by) == (20, "precision")
    assert found.launches > FEWEST_DECIDING


def test_a_launch_that_is_no_number_ends_a_sweep() -> None:
    found = find(Model(3e6, invalid="flooded", after=2), rate=Rate(loads=(1_000_000, 2_000_000, 3_000_000)))
    assert (found.verdict, found.reason, len(found.rates.sweep)) == ("INVALID", "flooded", 2)
    assert [launch.index for launch in found.per_launch] == [0, 1, 2]
