# SPDX-License-Identifier: BSD-3-Clause
"""Frames of ACL-dropped flows in the accounts of launches: none passes, each is counted, and no other is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.workload.output import ReceivedTotals, SentTotals
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.launch import hops, validity
from pytest_icbench.measure.launch.acl_drops import miscounted
from pytest_icbench.measure.launch.commands import commands
from pytest_icbench.model.acl_drop import AclDrop, names_share
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import ChainAccount, FunctionCounters, FunctionTerms
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.unit.measure.acl_drop_outputs import couple
from tests.unit.scripted_rig import EXECUTABLE, FAST, FRAMES, ScriptedRig, scripted

ACL_DROP = AclDrop(30, 1000, 10_000)
CASE = Case(
    "veth",
    Frames(traffic=Traffic().with_labels("100", None), rate=Rate(50_000)),
    api="raw",
    function="acl1000+deny30",
)
TERMS = (FunctionTerms("acl1000+deny30", acl_drop=ACL_DROP),)


@dataclass
class AclDroppingRig(ScriptedRig):
    """A scripted rig whose function denies 30 of 100 frames.

    Attributes:
        miscounts: by how many frames a launch the function's counter is wrong.
        passes: frames of ACL-dropped flows that arrive in each launch.
        astray: frames that do not reach the function, of each window.
    """

    terms: Sequence[FunctionTerms] = TERMS
    miscounts: int = 0
    passes: int = 0
    astray: int = 0
    frames: int = 0
    launches: int = 0

    def __post_init__(self) -> None:
        self.path = lambda sent: sent * 7 // 10 - self.astray
        self.edit = self._acl_drops

    def _acl_drops(self, index: int, line: dict[str, Any]) -> dict[str, Any]:
        windows = line.get("windows", 1)
        if line["type"] == "ready":
            return line
        if line["role"] == "sender":
            return line | {"acl_drops": FRAMES * 3 // 10 * windows}
        if line["type"] == "summary":
            acl_drops = FRAMES * 3 // 10 * windows
            return line | {
                "gaps": line["gaps"] - acl_drops,
                "peer_acl_drops": acl_drops,
                "acl_drops_passed": self.passes,
            }
        return line

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        self.frames += 3 * FRAMES
        self.launches += 1
        return super().start(launch_id, delay_s)

    def prove(self) -> str | None:
        return None

    def functions(self) -> tuple[FunctionCounters, ...]:
        taken = self.frames - 3 * self.launches * self.astray
        acl_drops = self.frames * 3 // 10 + self.miscounts * self.launches
        return (FunctionCounters(1, taken + 2, taken - acl_drops + 2, acl_drops, control_taken=2, control_given=2),)


def measured(rig: AclDroppingRig, case: Case = CASE) -> Measurement:
    return measure(scripted(rig, case), FAST)


def test_acl_drop_frames_are_in_the_accounts_and_no_other_is_missing() -> None:
    found = measured(AclDroppingRig())
    assert (found.verdict, found.evidence) == (None, None)
    assert (found.frames.sent, found.frames.received, found.frames.lost, found.frames.acl_drops) == (
        9000,
        6300,
        0,
        2700,
    )
    assert (found.frames.frame_loss_ratio, found.frames.trial_loss_ratio) == (0, 0)
    assert [(one.received, one.lost, one.acl_drops) for one in found.frames.per_pair] == [(6300, 0, 2700)]
    (account,) = found.frames.chains or ()
    assert account == ChainAccount(1, 9000, 6300, (0, 0), (0, 0), None, 2700)


def test_frames_that_are_lost_beside_acl_drop_ones_are_lost() -> None:
    found = measured(AclDroppingRig(astray=10))
    assert (found.verdict, found.evidence) == (None, None)
    assert (found.frames.sent, found.frames.received, found.frames.lost, found.frames.acl_drops) == (
        9000,
        6210,
        90,
        2700,
    )
    assert found.frames.trial_loss_ratio == pytest.approx(0.01)
    (account,) = found.frames.chains or ()
    assert (account.lost, account.lost_before_hop, account.acl_drops) == (90, (90, 0), 2700)


def test_a_acl_drop_frame_that_passes_makes_the_case_invalid() -> None:
    found = measured(AclDroppingRig(passes=2))
    assert (found.verdict, found.reason) == ("INVALID", "function")
    assert found.evidence is not None
    assert "function acl1000+deny30 of pair 1: 2 frames of flows that it has to deny arrived at recv" in found.evidence


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (1, "it counted 901 ACL-dropped frames, and 900 were sent to it"),
        (-1, "it counted 899 ACL-dropped frames, and 900 were sent to it, and at most 0 of them did not get as far"),
    ],
)
def test_a_counter_that_does_not_agree_makes_the_case_invalid(wrong: int, words: str) -> None:
    found = measured(AclDroppingRig(miscounts=wrong))
    assert (found.verdict, found.reason) == ("INVALID", "function")
    assert words in (found.evidence or "")


def test_both_ends_are_reported_which_flows_are_acl_drop_and_those_of_other_cases_are_not() -> None:
    rig = AclDroppingRig()
    measured(rig)
    sender, receiver = (process.argv for process in rig.plan.processes[:2])
    assert (
        sender[sender.index("--acl-drops") + 1] == receiver[receiver.index("--peer-acl-drops") + 1] == "30:1000:10000"
    )
    for other in (
        CASE.sending(traffic=Traffic()),
        replace(CASE, function="acl1000"),
        replace(CASE, function="route"),
    ):
        assert not other.denies_flows
        assert not other.counts_hops
        assert other.rig_key != CASE.rig_key
    assert not names_share("acl10+denyall")
    assert not replace(CASE, dimension="latency").denies_flows


def old(data: Any) -> Any:
    """Data as a run of before has it."""
    if isinstance(data, dict):
        return {key: old(value) for key, value in data.items() if key != "acl_drops"}
    return [old(item) for item in data] if isinstance(data, list) else data


def test_a_stored_run_of_before_reads_back_as_before() -> None:
    found = measure(scripted(ScriptedRig(), Case("veth", Frames(rate=Rate(50_000)), api="raw")), FAST)
    text = found.to_json()
    before = json.dumps(old(json.loads(text)))
    assert before != text
    assert Measurement.from_json(before) == Measurement.from_json(text)


@given(st.integers(1, 99), st.integers(1, 3000), st.integers(0, 20_000))
def test_the_share_of_flows_is_that_of_their_places(percent: int, places: int, flows: int) -> None:
    acl_drops = [(place + 1) * percent // 100 > place * percent // 100 for place in range(places)]
    assert AclDrop(percent, places, 1).of_flows(flows) == sum(acl_drops[flow % places] for flow in range(flows))
    least = AclDrop(percent, 10_000, 1).least_flows
    assert AclDrop(percent, 10_000, 1).of_flows(least) == 1
    assert not AclDrop(percent, 10_000, 1).of_flows(least - 1)


@st.composite
def launches(draw: st.DrawFn) -> tuple[SentTotals, ReceivedTotals, FunctionCounters, int]:
    """The totals of both ends, the function's counters, and how many frames of allowed flows were lost.

    Each frame is denied or not, and lost before the function, behind it, or not.
    """
    frames = draw(st.lists(st.tuples(st.booleans(), st.sampled_from(("", "", "before", "behind"))), max_size=40))
    arrived = [number for number, (acl_drops, lost) in enumerate(frames) if not acl_drops and not lost]
    highest = arrived[-1] if arrived else -1
    below = [acl_drops for acl_drops, _ in frames[: highest + 1]]
    reached = [acl_drops for acl_drops, lost in frames if lost != "before"]
    sent = SentTotals(len(frames), len(frames), 0, 0, 0, len(frames), (), sum(acl_drops for acl_drops, _ in frames))
    received = ReceivedTotals(
        *(len(arrived), 0, 0, 0, 0, 0, highest, highest + 1 - len(arrived) - sum(below), 0, 0, 0),
        peer_acl_drops=sum(below),
    )
    given_out = sum(not acl_drops for acl_drops in reached)
    counters = FunctionCounters(1, len(reached) + 3, given_out + 3, sum(reached), control_taken=3, control_given=3)
    return sent, received, counters, sum(not acl_drops and bool(lost) for acl_drops, lost in frames)


ZERO = FunctionCounters(1, 0, 0, 0, control_taken=0, control_given=0)


@given(launches(), st.integers(-40, 40))
def test_any_launch_adds_up_and_no_wrong_counter_does(
    launch: tuple[SentTotals, ReceivedTotals, FunctionCounters, int], wrong: int
) -> None:
    sent, received, counters, lost = launch
    ends = couple(sent, received)
    assert validity.accounts(*ends) is None
    assert validity.lost_by_sequence(sent, received) == lost
    assert miscounted(TERMS, [ends], [ZERO], [counters]) is None
    accounts, fault = hops.accounts([ZERO], [counters], {1: (sent.sequences, received.received)}, denies=True)
    assert fault is None
    assert accounts is not None
    missed = sent.acl_drops - (counters.acl_drops or 0)
    assert accounts[0].lost == lost + missed  # of ACL-dropped frames, too, those that did not get to be denied
    assert sent.sequences == received.received + accounts[0].lost + (accounts[0].acl_drops or 0)
    astray = sent.sequences - ((counters.taken or 0) - 3)
    reported = miscounted(TERMS, [ends], [ZERO], [replace(counters, acl_drops=(counters.acl_drops or 0) + wrong)])
    assert (reported is not None) == (sent.acl_drops > 0 and not 0 <= missed - wrong <= min(astray, sent.acl_drops))


@given(launches(), st.integers(1, 5))
def test_a_receiver_that_knows_other_acl_drop_frames_is_found(
    launch: tuple[SentTotals, ReceivedTotals, FunctionCounters, int], more: int
) -> None:
    sent, received, _, _ = launch
    fault = validity.accounts(*couple(sent, replace(received, peer_acl_drops=received.peer_acl_drops + more)))
    assert fault is not None


def test_functions_that_do_not_tell_control_frames_have_room_for_an_end_mark() -> None:
    ends = couple(SentTotals(100, 100, 0, 0, 0, 100, (), 30), ReceivedTotals(*(70, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0)))
    unknown = FunctionCounters(1, 0, 0, 0)
    assert miscounted(TERMS, [ends], [unknown], [FunctionCounters(1, 103, 73, 30)]) is None
    assert miscounted(TERMS, [ends], [unknown], [FunctionCounters(1, 98, 73, 25)]) is None
    reported = miscounted(TERMS, [ends], [unknown], [FunctionCounters(1, 102, 73, 27)])
    assert reported == (
        "function acl1000+deny30 of pair 1: it counted 27 ACL-dropped frames, and 30 were sent to it, and at most 2"
        " of them"
        " did not get as far"
    )
    assert miscounted(TERMS, [ends], [unknown], [FunctionCounters(1, 102, 73, 27, overrun=1)]) is not None
    slow, slower = FunctionCounters(1, 0, 0, 0, overrun=5), FunctionCounters(1, 102, 73, 27, overrun=6)
    assert miscounted(TERMS, [ends], [slow], [slower]) is None
    assert miscounted(TERMS, [ends], [FunctionCounters(1)], [FunctionCounters(1)]) is None


FIREWALL = AclDrop(30, 100, 5000, ("ba",))


def test_of_a_firewall_side_b_has_the_acl_drop_frames() -> None:
    case = Case("veth", Frames(replace(Traffic(), both=True)), api="raw", function="firewall+deny30")
    rig = AclDroppingRig(terms=(FunctionTerms("firewall+deny30", acl_drop=FIREWALL),))
    leader, follower = (command.argv(EXECUTABLE) for command in list(commands(rig, case, FAST).values())[:2])
    assert "--acl-drops" not in leader
    assert leader[leader.index("--peer-acl-drops") + 1] == "30:100:5000"
    assert follower[follower.index("--acl-drops") + 1] == "30:100:5000"
    assert "--peer-acl-drops" not in follower
    one_way = case.sending(traffic=Traffic())
    assert not any(
        "acl_drops" in " ".join(command.argv(EXECUTABLE)) for command in commands(rig, one_way, FAST).values()
    )


@pytest.mark.parametrize(
    ("taken_back", "acl_drops", "right"),
    [(104, 30, True), (104, 29, False), (103, 29, True), (101, 26, False), (50, 0, True), (200, 31, False)],
)
def test_what_a_firewall_did_not_take_in_it_need_not_count(taken_back: int, acl_drops: int, right: bool) -> None:
    nothing = ReceivedTotals(*(100, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0))
    there = couple(SentTotals(100, 100, 0, 0, 0, 100), nothing)
    back = couple(SentTotals(100, 100, 0, 0, 0, 100, (), 30), nothing)
    after = FunctionCounters(1, 104, 100, acl_drops, taken_back=taken_back)
    reported = miscounted(TERMS, [there, back], [FunctionCounters(1, 0, 0, 0, taken_back=0)], [after])
    assert (reported is None) is right, reported
