# SPDX-License-Identifier: BSD-3-Clause
"""Single launches over a rig that is only a script: windows, what is no number, who hangs."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.measure.launch import launcher
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Endpoint, Veth, VhostUser
from pytest_icbench.model.launch import SwitchPort
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.placement import CpuState
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters
from tests.unit.scripted_rig import (
    FRAMES,
    RTT,
    ScriptedRig,
    hold,
    one,
    place,
    run,
    silent_from,
    spoil,
)


def test_windows_are_matched_and_counted() -> None:
    found = one(ScriptedRig(path=lambda sent: sent - 10))
    assert (found.invalid, len(found.windows)) == (None, 3)
    assert [window.lost for window in found.windows] == [10, 10, 10]
    assert (found.total("sent"), found.total("received"), found.total("lost")) == (3000, 2970, 30)
    assert found.throughput_pps == pytest.approx(990 / 0.02)
    assert found.offered_pps == pytest.approx(1000 / 0.02)


def test_pairs_are_added_up() -> None:
    found = one(ScriptedRig(), Case("veth", api="udp", pairs=2))
    assert [pair.pair for pair in found.pairs] == [1, 2]
    assert found.throughput_pps == pytest.approx(2 * 1000 / 0.02)


def test_discarded_windows_are_kept_as_evidence_only() -> None:
    settings = Settings(warmup_s=0.0, duration_s=0.06, window_s=0.02, skip_s=0.02, keep_s=0.02, repeats=1)
    found = one(ScriptedRig(), settings=settings)
    assert [window.kept for window in found.windows] == [False, True, False]
    assert (found.total("sent"), found.duration_s) == (1000, pytest.approx(0.02))


def test_a_client_is_matched_with_itself() -> None:
    found = one(ScriptedRig(back=lambda sent: sent - 1), RTT)
    assert found.invalid is None
    assert found.total("lost") == 3
    assert (found.rtt.count, found.rtt.lost, found.rtt.percentile(0.5)) == (999, 3, 10)


def test_requests_that_never_left_are_slower_than_all_answers() -> None:
    """In each of three windows 10 were lost, 20 refused, and 70 too late to be sent; 990 answers came in all."""

    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if index or line["type"] not in ("window", "summary"):
            return line
        of_each = 1 if line["type"] == "window" else 3
        first = {"rtt_first_ns": {**line["rtt_ns"], "count": 90, "counts": [[10, 90]]}} if "rtt_ns" in line else {}
        missing = {"refused": 20 * of_each, "not_offered": 70 * of_each, "bursts": 32 * of_each}
        return {**line, **first, **missing, "scheduled": line["sent"] + 20 * of_each}

    launched = one(ScriptedRig(back=lambda sent: sent - 10, edit=edit), RTT)
    assert launched.invalid is None
    (pair,) = launched.pairs
    assert (pair.lost, pair.unanswered) == (30, 30 + 60 + 210)
    assert (launched.rtt.lost, launched.rtt_actual.lost) == (300, 30)
    assert launched.rtt.percentile(0.75) == 10
    assert launched.rtt.percentile(0.8) is None
    assert launched.rtt_actual.percentile(0.95) == 10
    # Bursts of which the port took something have their first request with or without an answer, the others have none.
    assert launched.rtt_first.lost == 96 - 90 + math.ceil(270 / RTT.burst)


def test_gaps_stand_by_process() -> None:
    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["type"] == "window":
            return {**line, "gap_ns": 2_000_000 * (index + 1), "gap_count": 3 + index}
        return line

    settings = Settings(warmup_s=0.0, duration_s=0.06, window_s=0.02, skip_s=0.02, repeats=1)
    launched = one(ScriptedRig(edit=edit), settings=settings)
    first = launched.windows[0]
    assert (first.sender_gap_s, first.sender_gaps, first.receiver_gap_s, first.receiver_gaps) == (0.002, 3, 0.004, 4)
    sender, receiver = launched.endpoints
    assert (sender.index, sender.gap_s, sender.gaps) == (0, pytest.approx(0.004), 6)
    assert (receiver.index, receiver.gap_s, receiver.gaps) == (1, pytest.approx(0.008), 8)


def test_a_loop_that_counts_no_gaps_has_none() -> None:
    launched = one(ScriptedRig())
    assert [(work.gap_s, work.gaps) for work in launched.endpoints] == [(None, None)] * 2
    assert launched.windows[0].sender_gap_s is None
    counted = {"gap_ns": 5, "gap_count": 1}
    partly = one(ScriptedRig(edit=lambda _, line: line | counted if line.get("window") == 1 else line))
    assert partly.endpoints[0].gap_s is None


def test_who_connects_to_its_peer_starts_with_it_and_waits_for_its_socket() -> None:
    rig = ScriptedRig()
    rig.endpoints = [VhostUser(Address.of(1, "a"), "/s", serves=True), VhostUser(Address.of(1, "b"), "/s", "back-end")]
    one(rig, Case("direct"))
    server, client = rig.plan.processes
    assert [(server.index, server.stage, server.socket), (client.index, client.stage, client.socket)] == [
        (0, 0, "/s"),
        (1, 0, None),
    ]
    assert "--await" not in server.argv
    assert client.argv[client.argv.index("--await") + 1] == "/s"


def test_who_connects_to_a_switch_starts_after_who_serves() -> None:
    rig = ScriptedRig()
    rig.endpoints = [VhostUser(Address.of(1, "a"), "/s", serves=True), VhostUser(Address.of(1, "b"), "/t")]
    one(rig, Case("ovs"))
    assert [(process.stage, "--await" in process.argv) for process in rig.plan.processes] == [(0, False), (1, False)]


def test_only_endpoints_that_share_a_cpu_yield() -> None:
    rig = ScriptedRig(placement=place("cooperative", (0, 0), 64))
    one(rig)
    yields = [process.argv[process.argv.index("--yield") + 1] for process in rig.plan.processes]
    assert yields == ["64", "1"]


def test_busy_share_and_cycles_per_packet_come_from_between_the_samples() -> None:
    rig = ScriptedRig(cycles=iter([Busy(1000, 500), Busy(901_000, 100_500)]))
    found = one(rig, settings=Settings(warmup_s=0.0, duration_s=0.2, window_s=0.1, repeats=1))
    assert found.busy_share is None  # the script ends before the second sample
    rig = ScriptedRig(cycles=iter([Busy(1000, 500), Busy(901_000, 100_500)]))
    rig.edit = lambda index, line: line if line["type"] != "summary" else hold(rig, index, line)
    found = one(rig, settings=Settings(warmup_s=0.0, duration_s=0.2, window_s=0.1, repeats=1))
    assert found.busy_share == pytest.approx(0.9)
    assert 0 < (found.cycles_per_packet or 0) < 900_000 / (10_000 * 0.1)  # exact in test_switch_work.py: time goes on


def test_frames_by_core_come_from_between_the_samples() -> None:
    taken = [{"2": 10, "5": 1}, {"2": 40, "5": 11}]
    rig = ScriptedRig(cycles=iter([Busy(busy, 500, frames=frames) for busy, frames in zip((1, 2), taken, strict=True)]))
    rig.edit = lambda index, line: line if line["type"] != "summary" else hold(rig, index, line)
    found = one(rig, settings=Settings(warmup_s=0.0, duration_s=0.2, window_s=0.1, repeats=1))
    assert found.frames_by_core == {"2": 30, "5": 10}


def test_a_single_worker_has_no_imbalance() -> None:
    rig = ScriptedRig(cycles=iter([Busy(1, 500, frames={"2": 1}), Busy(2, 500, frames={"2": 3})]))
    rig.edit = lambda index, line: line if line["type"] != "summary" else hold(rig, index, line)
    found = one(rig, settings=Settings(warmup_s=0.0, duration_s=0.2, window_s=0.1, repeats=1))
    assert found.frames_by_core is None


def test_vectors_per_call_come_from_between_the_samples() -> None:
    rig = ScriptedRig(counted=iter([Batches(100, 100), Batches(6500, 300)]))
    rig.edit = lambda index, line: line if line["type"] != "summary" else hold(rig, index, line)
    found = one(rig, settings=Settings(warmup_s=0.0, duration_s=0.2, window_s=0.1, repeats=1))
    assert found.vectors_per_call == pytest.approx(32)


@pytest.mark.parametrize(
    ("rig", "reason", "evidence"),
    [
        (ScriptedRig(path=lambda sent: 0), "no-forwarding", "pair 1: of 3000 frames sent from a to b none arrived"),
        (ScriptedRig(edit=spoil("summary", corrupted=2)), "corrupted", "recv of pair 1 received 2 damaged frames"),
        (
            ScriptedRig(edit=spoil("summary", corrupted=9, joined=7)),
            "corrupted",
            "recv of pair 1 received 7 datagrams longer",
        ),
        (
            ScriptedRig(path=lambda sent: 0, edit=spoil("summary", joined=7)),
            "corrupted",
            "recv of pair 1 received 7 datagrams longer than any that was sent, beside 0 good ones",
        ),
        (ScriptedRig(edit=spoil("summary", foreign=500)), "flooded", "received 500 frames of others beside 3000"),
        (ScriptedRig(edit=spoil("summary", gaps=1)), "accounts", "sent 3000 frames, but recv of pair 1 received 3000"),
        (ScriptedRig(edit=spoil("summary", 0, refused=1)), "accounts", "scheduled 3000 frames, but sent 3000 and was"),
        (ScriptedRig(edit=spoil("summary", 0, sequences=9)), "accounts", "sent 3000 frames with 9 sequence numbers"),
        (ScriptedRig(edit=spoil("window", 1, received=1001)), "accounts", "received 1001 frames of 1000 sent"),
        (ScriptedRig(edit=spoil("window", 1, first_ns=1)), "clock", "before its window"),
    ],
    ids=["silence", "damage", "joined", "all joined", "flood", "gaps", "scheduled", "sequences", "window", "clock"],
)
def test_what_is_no_number_says_why(rig: ScriptedRig, reason: str, evidence: str) -> None:
    found = one(rig)
    assert found.invalid == reason
    assert evidence in found.evidence


def test_a_path_that_goes_silent_has_stalled() -> None:
    settings = Settings(warmup_s=0.0, duration_s=0.12, window_s=0.02, repeats=1)
    rig = ScriptedRig(edit=silent_from(3))
    found = one(rig, settings=settings)
    assert (found.invalid, found.evidence) == ("stalled", "pair 1: nothing arrived in the last 4 of 6 windows")


def test_a_server_that_answers_nothing_after_a_while_has_stalled_and_gives_no_upper_percentile() -> None:
    """Six windows, of which two have answers: the requests of the others are slower than all that were answered."""
    settings = Settings(warmup_s=0.0, duration_s=0.12, window_s=0.02, repeats=1)
    answered = {"received": 2 * FRAMES, "highest_sequence": 2 * FRAMES - 1, "gaps": 0, "unanswered": 4 * FRAMES}

    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if index == 0 and line["type"] == "window" and line["window"] > 2:
            return {**line, "received": 0, "first_ns": None, "last_ns": None}
        if index == 0 and line["type"] == "summary":
            rtt = {**line["rtt_ns"], "count": 2 * FRAMES, "counts": [[10, 2 * FRAMES]]}
            return {**line, **answered, "rtt_ns": rtt, "rtt_actual_ns": rtt}
        return line

    found = one(ScriptedRig(edit=edit), RTT, settings)
    assert (found.invalid, found.evidence) == ("stalled", "pair 1: nothing arrived in the last 4 of 6 windows")
    assert (found.rtt.count, found.rtt.lost) == (2 * FRAMES, 4 * FRAMES)
    assert (found.rtt.percentile(0.3), found.rtt.percentile(0.5)) == (10, None)


def test_a_process_that_dies_fails_with_its_log() -> None:
    with pytest.raises(WorkloadError, match=r"^recv of pair 1 was ended by signal 9\ntail of 1$"):
        one(ScriptedRig(exits={1: -9}))
    with pytest.raises(WorkloadError, match=r"^send of pair 1 ended with exit code 3 \(set-up failed\)"):
        one(ScriptedRig(exits={0: 3}))
    with pytest.raises(WorkloadError, match="send of pair 1 ended without a summary"):
        one(ScriptedRig(exits={0: 0}))
    with pytest.raises(WorkloadError, match=r"ended before its time \(reason: signal\)"):
        one(ScriptedRig(edit=spoil("summary", 0, reason="signal")))


def test_a_damaged_line_fails_the_launch() -> None:
    rig = ScriptedRig(edit=spoil("summary", 0, sent="many"))
    with pytest.raises(WorkloadError, match="send of pair 1: summary: sent: "):
        one(rig)
    assert rig.log[-1] == "rig end"


def test_a_dead_switch_is_named_instead_of_its_endpoints() -> None:
    with pytest.raises(ProvisionError, match="the switch is dead"):
        one(ScriptedRig(exits={1: 4}, dead="the switch is dead"))


def test_every_wait_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "READY_TIMEOUT_S", 0.1)
    monkeypatch.setattr(launcher, "READY_EACH_S", 0.0)
    monkeypatch.setattr(launcher, "END_MARGIN_S", 0.1)
    rig = ScriptedRig(edit=lambda index, line: None if (index, line["type"]) == (1, "ready") else line)
    with pytest.raises(WorkloadError, match=r"^recv of pair 1: not ready within 0.1 s\ntail of 1"):
        one(rig)
    rig = ScriptedRig(edit=lambda index, line: None if (index, line["type"]) == (1, "summary") else line)
    with pytest.raises(WorkloadError, match=r"^recv of pair 1: still running .* it hangs\ntail of 1"):
        one(rig)
    assert rig.log[-1] == "rig end"


def test_processes_that_start_on_one_cpu_have_a_second_each() -> None:
    def patience_s(pairs: int) -> float:
        ends: list[Endpoint] = [
            Veth(Address.of(pair, side), "eth0", None) for pair in range(1, pairs + 1) for side in ("a", "b")
        ]
        rig = ScriptedRig(endpoints=ends, placement=place(endpoints=(0, 1) * pairs))
        return launcher.Run(rig, Case("veth", pairs=pairs), Settings()).patience_s

    assert patience_s(1) == launcher.READY_TIMEOUT_S
    assert patience_s(20) == 20.0


def test_a_harness_that_looks_late_hears_what_was_said_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "READY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(launcher, "READY_EACH_S", 0.0)
    monkeypatch.setattr(launcher, "END_MARGIN_S", 0.0)

    class Late(ScriptedRig):
        def launch(self, plan: Any) -> str:
            launch_id = super().launch(plan)
            time.sleep(0.1)
            return launch_id

        def start(self, launch_id: str, delay_s: float = 0.0) -> int:
            begin = super().start(launch_id, delay_s)
            time.sleep(0.2)
            return begin

    assert one(Late()).total("received") == 3 * FRAMES


def test_a_server_is_reported_to_stop_when_its_client_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "FOLLOWER_GRACE_S", 0.01)
    monkeypatch.setattr(launcher, "END_MARGIN_S", 0.1)
    rig = ScriptedRig(edit=lambda index, line: None if (index, line["type"]) == (1, "summary") else line)
    with pytest.raises(WorkloadError, match="server of pair 1: still running"):
        one(rig, RTT)
    assert "rig told stop" in rig.log


def test_what_the_switch_counted_is_the_difference_over_a_launch_and_the_sum_over_launches() -> None:
    """A counter that it does not keep, or that began anew, is nobody's; a preflight is not counted."""
    reported = iter(
        [
            (PortCounters(0, 100, None, 1, 10), PortCounters(1, 5, 50, 0, 0)),
            (PortCounters(0, 400, None, 1, 12), PortCounters(1, 6, 350, 0, 3)),
            (PortCounters(0, 400, None, 1, 12), PortCounters(1, 6, 350, 0, 3)),
            (PortCounters(0, 700, None, 1, 12), PortCounters(1, 2, 650, 0, 3)),
        ]
    )
    found = run(ScriptedRig(preflighted=False, ports=reported), repeats=2)
    assert [launch.switch_counters for launch in found.per_launch] == [
        (SwitchPort(0, 300, None, 0, 2), SwitchPort(1, 1, 300, 0, 3)),
        (SwitchPort(0, 300, None, 0, 0), SwitchPort(1, None, 300, 0, 0)),
    ]
    assert found.switch_counters == (SwitchPort(0, 600, None, 0, 2), SwitchPort(1, None, 600, 0, 3))
    assert Measurement.from_json(found.to_json()).switch_counters == found.switch_counters


def test_a_switch_that_keeps_no_counters_has_none() -> None:
    assert run(ScriptedRig()).switch_counters is None


def test_the_state_of_the_cpus_is_read_before_and_after() -> None:
    states = iter([CpuState(64.0, 1000.0), CpuState(400.0, 4000.0)])
    launched = one(ScriptedRig(states=states))
    assert launched.distances_ns == (64.0, 400.0)
    assert launched.distance_ns == pytest.approx(160.0)
    assert launched.work_ns == pytest.approx(2000.0)


def test_a_reading_without_figures_is_left_out() -> None:
    launched = one(ScriptedRig(states=iter([CpuState(), CpuState(400.0, 4000.0)])))
    assert (launched.distances_ns, launched.distance_ns) == ((400.0,), pytest.approx(400.0))
    unknown = one(ScriptedRig())
    assert (unknown.distances_ns, unknown.distance_ns, unknown.work_ns) == ((), None, None)
