# SPDX-License-Identifier: BSD-3-Clause
"""Whole measurements over a rig that is only a script: launches, reference, faults, the preflight."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.quantiles import Estimate
from tests.unit.scripted_rig import (
    FAST,
    MAX,
    PACED,
    RTT,
    ScriptedRig,
    hold,
    one,
    run,
    scripted,
    silent_from,
    spoil,
)


def test_a_measurement_of_launches() -> None:
    found = run(ScriptedRig(path=lambda sent: sent - 100), repeats=6)
    assert (found.case, found.metric, found.launches, found.windows) == ("veth-udp-64B-b32-1vs1-Rmax", "frmol", 6, 18)
    assert found.throughput_pps == Estimate(found.throughput_pps, found.throughput_pps, found.throughput_pps)
    assert found.throughput_pps == pytest.approx(45_000)
    assert found.throughput_gbps == pytest.approx(45_000 * 64 * 8 / 1e9)
    assert found.figures.throughput_l1_gbps == pytest.approx(45_000 * 84 * 8 / 1e9)
    assert found.frame_loss_ratio == found.figures.trial_loss_ratio == 0.1
    assert (found.confidence, found.ended_by, found.verdict) == (0.95, "repeats", None)
    assert (found.ratio_to_reference, found.rtt_p50_ns, found.cycles_per_packet) == (None, None, None)


def test_fewer_than_six_launches_have_no_interval() -> None:
    found = run(ScriptedRig(), repeats=3)
    assert found.throughput_pps is not None
    assert (found.throughput_pps.low, found.confidence, found.precision) == (None, None, None)


def test_the_reference_is_interleaved_and_only_one_runs() -> None:
    log: list[str] = []
    rig = ScriptedRig(name="case", log=log, path=lambda sent: sent // 2)
    reference = ScriptedRig(name="ref", log=log)
    found = run(rig, reference, repeats=6)
    assert found.ratio_to_reference is not None
    assert (found.ratio_to_reference.value, found.ratio_to_reference.low) == pytest.approx((0.5, 0.5))
    assert len(found.per_reference_launch) == 6
    running = {"case"}
    for entry in log:
        name, what = entry.split()
        running = running - {name} if what == "pause" else running | {name} if what == "resume" else running
        assert what != "launch" or running == {name}
    assert running == {"case"}


class InTurn(ScriptedRig):
    """Exists only while it runs: what is paused has no endpoints any more."""

    def pause(self) -> None:
        super().pause()
        self.endpoints = []

    def resume(self) -> None:
        super().resume()
        self.endpoints = ScriptedRig().endpoints


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({"repeats": 1}, "c r"),
        ({"repeats": 6}, "cccc rrrrrr cc"),
        ({"repeats": None, "max_duration_s": 1e-9}, "c r"),
    ],
)
def test_rigs_that_cannot_exist_at_once_take_turns(settings: dict[str, Any], order: str) -> None:
    """Few turns, and a preflight whenever one was built anew."""
    log: list[str] = []
    rig, reference = InTurn(name="case", log=log, path=lambda sent: sent // 2), InTurn(name="ref", log=log)
    reference.pause()
    found = run(rig, reference, **settings)
    assert found.ratio_to_reference == pytest.approx(0.5)
    launches = "".join(
        entry[0] if entry.endswith("launch") else " " if entry.endswith("resume") else "" for entry in log
    )
    turns = [turn for turn in launches.split(" ") if turn]
    measured = [turns[0], *(turn[1:] for turn in turns[1:])]  # all but the first begin with a preflight
    assert " ".join(turn for turn in measured if turn) == order
    assert rig.endpoints
    assert not reference.endpoints


def test_a_reference_that_cannot_be_built_leaves_the_case_running() -> None:
    def fail() -> None:
        raise ProvisionError("the cable is out")

    rig, reference = InTurn(name="case"), InTurn(name="ref")
    reference.pause()
    reference.resume = fail  # type: ignore[method-assign]
    found = run(rig, reference, repeats=2)
    assert (found.launches, found.ratio_to_reference, found.verdict) == (2, None, None)
    assert found.reference_evidence == "reference link veth: the cable is out"
    assert rig.endpoints


def test_a_cable_that_explains_it_is_named() -> None:
    fault = "the uplink eth1 has no carrier"
    stalled = run(ScriptedRig(edit=silent_from(2), fault=fault), window_s=0.01)
    assert (stalled.reason, stalled.evidence) == (
        "stalled",
        f"{fault}; pair 1: nothing arrived in the last 5 of 6 windows",
    )
    before = run(ScriptedRig(preflighted=False, path=lambda sent: 0, fault=fault))
    assert before.reason == "no-forwarding"
    assert (before.evidence or "").startswith(f"{fault}; ")
    ended = run(ScriptedRig(exits={0: 3}, fault=fault))
    assert (ended.reason, (ended.evidence or "").partition(";")[0]) == ("no-forwarding", fault)


def test_latency_ratio_is_the_references_over_the_cases() -> None:
    def slow(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["type"] == "summary" and line["role"] == "client":
            rtt = {**line["rtt_ns"], "min": 20, "max": 40, "counts": [[40, line["rtt_ns"]["count"]]]}
            return {**line, "rtt_ns": rtt}
        return line

    found = run(ScriptedRig(edit=slow), ScriptedRig(), case=RTT)
    assert (found.rtt_p50_ns, found.figures.rtt_samples, found.figures.rtt_lost) == (40, 3000, 0)
    assert found.ratio_to_reference == pytest.approx(0.25)


def first_of_bursts(index: int, line: dict[str, Any]) -> dict[str, Any]:
    """A hundred bursts a window, of which each third window loses one's answer; cycles of both ends."""
    if line["type"] == "window":
        return {**line, "bursts": 100, "busy_cycles": 3000, "idle_cycles": 1000}
    if line["type"] == "summary" and line["role"] == "client":
        first = {"count": 299, "min": 5, "mean": 6.0, "max": 7, "significant_digits": 3, "counts": [[6, 299]]}
        return {**line, "rtt_first_ns": first}
    return line


def test_the_first_of_a_burst_the_variation_and_the_floor_stand_beside_the_round_trip_times() -> None:
    found = run(ScriptedRig(edit=first_of_bursts), ScriptedRig(), case=RTT, repeats=6)
    assert (found.figures.rtt_first_p50_ns, found.figures.rtt_first_samples) == (Estimate(6, 6, 6), 6 * 299)
    assert found.per_launch[0].rtt_first is not None
    assert found.per_launch[0].rtt_first.lost == 1
    assert (found.rtt_p50_ns, found.figures.pdv_p50_ns, found.figures.pdv_max_ns) == (10, Estimate(1, 1, 1), 2)
    assert (found.figures.floor_p50_ns, found.figures.floor_p99_ns, found.figures.floor_samples) == (10, 10, 6 * 1000)
    assert (found.figures.sender_cycles_per_packet, found.figures.receiver_cycles_per_packet) == (3.0, 3.0)
    assert (found.figures.sender_busy_share, found.figures.receiver_busy_share) == (0.75, 0.75)
    alone = run(ScriptedRig(), case=RTT)
    assert (
        alone.figures.floor_p50_ns,
        alone.figures.floor_samples,
        alone.figures.rtt_first_samples,
        alone.figures.rtt_first_p50_ns,
    ) == (
        None,
        0,
        0,
        None,
    )
    assert (alone.figures.sender_cycles_per_packet, alone.figures.sender_busy_share) == (None, None)


def test_the_cpu_that_each_end_used_is_a_share_of_the_measured_time() -> None:
    def used(index: int, line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "cpu_ns": (20_000_000, 5_000_000)[index % 2]} if line["type"] == "window" else line

    found = run(ScriptedRig(edit=used), duration_s=0.2, window_s=0.1)
    assert found.figures.sender_cpu_share == pytest.approx(0.2)
    assert found.figures.receiver_cpu_share == pytest.approx(0.05)
    older = run(ScriptedRig())
    assert (older.figures.sender_cpu_share, older.figures.receiver_cpu_share) == (None, None)


def test_windows_have_their_round_trip_times() -> None:
    rtt = {"count": 20, "min_ns": 1, "mean_ns": 2, "p50_ns": 2, "p99_ns": None, "max_ns": 9}
    found = one(ScriptedRig(edit=spoil("window", 0, rtt=rtt)), RTT)
    assert {
        (window.rtt_samples, window.rtt_min_ns, window.rtt_p50_ns, window.rtt_p99_ns, window.rtt_max_ns)
        for window in found.windows
    } == {(20, 1, 2, None, 9)}


def test_hardware_events_are_medians_over_launches() -> None:
    def events() -> Iterator[dict[str, dict[str, int]]]:
        while True:
            yield {"endpoints": {"cycles": 0}}
            yield {"endpoints": {"cycles": 10**9}}

    settings: dict[str, Any] = {"duration_s": 0.2, "window_s": 0.1, "repeats": 1}
    rig = ScriptedRig(events=events())
    rig.edit = lambda index, line: line if line["type"] != "summary" else hold(rig, index, line)
    found = run(rig, **settings)
    assert set(found.figures.hardware) == {"endpoints"}
    assert found.figures.hardware["endpoints"]["cycles"] == pytest.approx(10**9 / (10_000 * 0.17), rel=0.25)
    assert run(ScriptedRig(), **settings).figures.hardware == {}


def test_there_is_no_ratio_at_a_fixed_rate() -> None:
    found = run(ScriptedRig(), ScriptedRig(), case=PACED)
    assert (found.metric, found.ratio_to_reference) == ("fixed", None)


def test_a_sender_that_cannot_offer_the_rate_is_the_limit() -> None:
    found = run(ScriptedRig(), case=Case("veth", Frames(rate=Rate(1_000_000)), api="udp"))
    assert (found.generator_bound, found.bottleneck, found.figures.trial_loss_ratio) == (True, "endpoint", 0)
    found = run(ScriptedRig(), case=Case("veth", Frames(rate=Rate(50_000)), api="udp"))
    assert (found.generator_bound, found.bottleneck) == (False, "unknown")


def test_trouble_at_the_reference_costs_the_ratio_only() -> None:
    found = run(ScriptedRig(), ScriptedRig(exits={0: 3}))
    assert (found.verdict, found.launches, found.ratio_to_reference) == (None, 3, None)
    assert found.reference_evidence.startswith("reference link veth: client of pair 1 ended with exit code 3")


def test_an_invalid_launch_ends_the_case_with_its_reason() -> None:
    found = run(ScriptedRig(path=lambda sent: 0))
    assert (found.verdict, found.reason, found.launches, found.repeated) == ("INVALID", "no-forwarding", 0, 0)
    assert "none arrived" in found.evidence
    assert found.throughput_pps is None
    assert found.per_launch[0].invalid == "no-forwarding"


def test_the_harness_own_faults_are_repeated_twice_at_most() -> None:
    faulty = {"left": 2}

    def late_clock(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if index == 1 and line["type"] == "window" and line["window"] == 1 and faulty["left"]:
            faulty["left"] -= 1
            return {**line, "first_ns": 1}
        return line

    found = run(ScriptedRig(edit=late_clock))
    assert (found.verdict, found.launches, found.repeated) == (None, 3, 2)
    assert found.faults[0].startswith("clock: a frame of window 1")
    faulty["left"] = 3
    found = run(ScriptedRig(edit=late_clock))
    assert (found.verdict, found.reason, found.repeated) == ("INVALID", "clock", 2)


def test_a_crash_of_a_workload_is_a_fault_of_the_harness() -> None:
    """Here it crashes each time: after two further tries the case fails, with the log."""
    rig = ScriptedRig(exits={1: -11})
    with pytest.raises(WorkloadError, match=r"^recv of pair 1 was ended by signal 11\ntail of 1$"):
        run(rig)
    assert rig.log.count("rig launch") == 3
    rig = ScriptedRig(exits={1: 3})
    with pytest.raises(WorkloadError, match="set-up failed"):
        run(rig)
    assert rig.log.count("rig launch") == 1


def test_a_workload_that_crashes_once_is_started_again() -> None:
    rig = ScriptedRig(exits={1: -11})
    end = rig.end

    def mend(launch_id: str) -> None:
        rig.exits.clear()
        end(launch_id)

    rig.end = mend  # type: ignore[method-assign]
    found = run(rig)
    assert (found.verdict, found.launches, found.repeated) == (None, 3, 1)
    assert found.faults == ("died: recv of pair 1 was ended by signal 11",)


def test_a_switch_that_dies_is_a_verdict() -> None:
    rig = ScriptedRig(exits={1: 4}, dead="testpmd was killed by signal 9; the end of its log:\n  vhost: lost")
    found = run(rig)
    assert (found.verdict, found.reason, found.launches, found.repeated) == ("INVALID", "died", 0, 0)
    assert found.evidence == rig.dead
    assert run(ScriptedRig(preflighted=False, dead="it is dead")).reason == "died"


def test_a_switch_that_lives_and_does_not_answer_has_stalled() -> None:
    def refuse(launch_id: str, delay_s: float = 0.0) -> int:
        raise ProvisionError("vpp did not answer; the end of its log:\n  waiting")

    for preflighted in (True, False):
        rig = ScriptedRig(preflighted=preflighted)
        rig.start = refuse  # type: ignore[method-assign]
        found = run(rig)
        assert (found.verdict, found.reason) == ("INVALID", "stalled")
        assert found.evidence == "vpp did not answer; the end of its log:\n  waiting"


def test_a_clock_that_is_set_meanwhile_is_a_condition_and_changes_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    tell, sent = time.time, []

    def path(frames: int) -> int:
        sent.append(frames)
        return frames

    whole = run(ScriptedRig(path=path), repeats=3)
    assert "clock_step_s" not in whole.conditions
    sent.clear()
    monkeypatch.setattr(time, "time", lambda: tell() - 3600 * bool(sent))
    found = run(ScriptedRig(path=path), repeats=3)
    assert found.conditions["clock_step_s"] == pytest.approx(-3600, abs=0.1)
    assert found.throughput_pps == whole.throughput_pps
    assert 0 <= found.duration_s < 60


def test_a_machine_without_an_invariant_clock_has_no_numbers() -> None:
    found = run(ScriptedRig(exits={0: 6}))
    assert (found.verdict, found.reason, found.throughput_pps, found.repeated) == ("INVALID", "clock", None, 0)
    assert "send of pair 1 ended with exit code 6 (this machine's TSC is not invariant)" in found.evidence
    assert "invtsc" in found.evidence


def test_a_full_port_that_nothing_leaves_forwards_nothing() -> None:
    """At maximum load a sender schedules no frame that its port does not take."""
    stuck = {"scheduled": 0, "sent": 0, "received": 0, "sequences": 0, "highest_sequence": -1, "gaps": 0}

    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        changed = {name: value for name, value in stuck.items() if name in line}
        return {**line, **changed, **({"tx_full": 7} if "tx_full" in line else {})}

    found = one(ScriptedRig(edit=edit))
    assert found.invalid == "no-forwarding"
    assert found.evidence == "pair 1: of 0 frames sent from a to b none arrived, and its port refused 21 calls"


NOTHING = {"scheduled": 0, "sent": 0, "received": 0, "sequences": 0, "highest_sequence": -1, "gaps": 0, "tx_full": 0}


def offers_nothing(index: int, line: dict[str, Any]) -> dict[str, Any]:
    return {**line, **{name: value for name, value in NOTHING.items() if name in line}}


@pytest.mark.parametrize(("case", "who"), [(RTT, "client"), (PACED, "send")])
def test_a_client_that_never_gets_its_cpu_is_named_and_has_no_percentile(case: Case, who: str) -> None:
    found = run(ScriptedRig(edit=offers_nothing), case=case.sending(burst=4))
    assert (found.verdict, found.reason, found.rtt_p50_ns) == ("INVALID", "clock", None)
    assert found.evidence == f"{who} of pair 1 offered none of the 60 frames due in 0.06 s: it had no CPU"


def test_a_sender_that_offers_nothing_had_no_cpu_or_nothing_was_due() -> None:
    edit = offers_nothing
    found = one(ScriptedRig(edit=edit))
    assert found.invalid == "clock"
    assert found.evidence == (
        "send of pair 1 offered no frame in 0.06 s, though it should send all it can: it had no CPU"
    )
    found = one(ScriptedRig(edit=edit), case=MAX.sending(rate=Rate(10)))
    assert (found.invalid, found.evidence) == (
        "no-forwarding",
        "pair 1: no frame was due in 0.06 s; measure longer, or at a greater rate",
    )


def test_round_trips_at_a_rate_that_was_not_offered_are_no_numbers() -> None:
    fast = Case("veth", Frames(rate=Rate(1_000_000)), api="udp", dimension="latency")
    found = run(ScriptedRig(), case=fast)
    assert (found.verdict, found.reason) == ("INVALID", "generator-bound")
    assert found.evidence == "the client offered 50,000 of 1,000,000 frames per second; ask for less"
    assert run(ScriptedRig(), case=RTT).verdict is None


def test_progress_reports_the_rate_and_the_time_left() -> None:
    heard: list[Progress] = []
    measure(scripted(ScriptedRig(preflighted=False)), FAST, on_progress=heard.append)
    assert heard[0].phase == "preflight"
    assert [progress.launch for progress in heard if progress.receive_mpps is None][1:] == [1, 2, 3]
    assert [progress.receive_mpps for progress in heard if progress.phase == "case"][1::2] == [0.05] * 3
    assert all(progress.left_s >= 0 and progress.launches == 3 for progress in heard)


def test_a_case_without_a_technique_runs_with_its_switchs_own_on_both_rigs() -> None:
    rig, reference = ScriptedRig(), ScriptedRig()
    measured, link = (replace(scripted(each, Case("veth")), api="raw-mmsg") for each in (rig, reference))
    found = measure(measured, FAST, link)
    assert found.case == "veth-64B-b32-1vs1-Rmax"
    assert all({"-R", "-m"} <= set(process.argv) for each in (rig, reference) for process in each.plan.processes)


def test_the_bits_of_a_mix_are_those_that_arrived() -> None:
    """Sent 64 and 1518 in turn; what the receiver counted decides, not what was sent."""

    class LosesLongFrames(ScriptedRig):
        def _mean_bytes(self) -> float:
            return 100.0

    case = Case("ovs", Frames(Traffic.of_mix("64:1,1518:1")))
    even, uneven = run(ScriptedRig(), case=case), run(LosesLongFrames(), case=case)
    for measured, mean in ((even, 791.0), (uneven, 100.0)):
        assert measured.figures.mean_frame_bytes == pytest.approx(mean)
        pps = measured.throughput_pps.value
        assert measured.throughput_gbps.value == pytest.approx(pps * mean * 8 / 1e9)
        assert measured.figures.throughput_l1_gbps.value == pytest.approx(pps * (mean + 20) * 8 / 1e9)
