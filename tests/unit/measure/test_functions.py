# SPDX-License-Identifier: BSD-3-Clause
"""A case is held to its functions: by proofs around its launches, and by the accounts of the launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.functions import too_cheap, wrong_rate
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionCounters, FunctionTerms, FunctionWork
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from tests.unit.scripted_rig import FAST, ScriptedRig, scripted

CASE = Case("veth", Frames(rate=Rate(50_000)), api="udp", function="wire")


@dataclass
class FunctionRig(ScriptedRig):
    """A scripted rig with a function.

    Attributes:
        proofs: what each proof says; the last one also says all that follow.
    """

    proofs: list[str | None] = field(default_factory=lambda: [None])
    terms: Sequence[FunctionTerms] = (FunctionTerms("wire"),)
    frames: int = 0

    def prove(self) -> str | None:
        self.log.append("prove")
        return self.proofs.pop(0) if len(self.proofs) > 1 else self.proofs[0]

    def functions(self) -> tuple[FunctionCounters, ...]:
        self.frames += 100
        return (FunctionCounters(1, self.frames, self.frames - 10, 10, self.frames * 2000, self.frames * 500, 4096),)


def measured(rig: FunctionRig, case: Case = CASE) -> Measurement:
    return measure(scripted(rig, case), FAST)


def test_a_frame_s_cycles_are_those_of_both_directions() -> None:
    before = FunctionCounters(1, taken=10, taken_back=0, busy_cycles=0, idle_cycles=0)
    after = FunctionCounters(1, taken=110, taken_back=300, busy_cycles=40_000, idle_cycles=0)
    assert FunctionWork.between(before, after).cycles_per_frame == 100


def test_a_function_is_proven_before_and_after_and_has_its_figures() -> None:
    rig = FunctionRig()
    found = measured(rig)
    assert (found.verdict, rig.log.count("prove")) == (None, 2)
    assert found.functions == (FunctionWork(1, 100, 100, 0, 0.8, 2000.0, 4096),)
    assert Measurement.from_json(found.to_json()).functions == found.functions


def test_a_function_that_fails_before_the_first_launch_or_after_the_last_makes_the_case_invalid() -> None:
    before, after = FunctionRig(proofs=["frame 1 is wrong"]), FunctionRig(proofs=[None, "frame 7 is wrong"])
    first, last = measured(before), measured(after)
    assert (first.verdict, first.reason, first.launches) == ("INVALID", "function", 0)
    assert first.evidence == "frame 1 is wrong, before the first launch"
    assert (last.verdict, last.reason, last.launches) == ("INVALID", "function", 3)
    assert last.evidence == "frame 7 is wrong, after the last launch"


def test_a_path_without_a_function_is_not_asked() -> None:
    rig = FunctionRig(proofs=["never"])
    found = measured(rig, replace(CASE, function=None))
    assert (found.verdict, found.functions, rig.log.count("prove")) == (None, None, 0)


def test_a_cost_that_is_not_paid_is_reported() -> None:
    terms = [FunctionTerms("cost3000", least_cycles=3000)]
    assert measured(FunctionRig(terms=terms)).evidence == (
        "function cost3000 of pair 1: a frame cost it 2,000 cycles, and has to cost 3,000"
    )
    assert too_cheap(terms, [FunctionWork(1)]) is None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (lambda sent: sent // 5, None),
        (lambda sent: sent, "50,000 frames/s passed, which is not within 2% of the 10,000 that it is set to"),
        (lambda sent: sent // 6, "8,300 frames/s passed"),
    ],
)
def test_a_policer_is_held_to_its_rate(path: object, words: str | None) -> None:
    rig = FunctionRig(path=path, terms=[FunctionTerms("police10k", 10_000, 0.02)])  # type: ignore[arg-type]
    found = measured(rig)
    assert (found.reason is None) is (words is None), found.evidence
    assert words is None or words in (found.evidence or "")


def test_a_policer_above_the_offered_rate_proves_nothing() -> None:
    rig = FunctionRig(terms=[FunctionTerms("police1M", 1_000_000, 0.02)])
    assert "50,000 frames/s were offered, and it is set to let 1,000,000 pass" in (measured(rig).evidence or "")


def test_without_launches_no_rate_is_judged() -> None:
    assert wrong_rate([FunctionTerms("police1M", 1e6, 0.02)], CASE, []) is None
