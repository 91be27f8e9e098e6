# SPDX-License-Identifier: BSD-3-Clause
"""Modelled rigs for searches and sweeps: they forward by arithmetic, and launches take no time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pytest_icbench.kinds.runs import measure, recomputed
from pytest_icbench.kinds.search import search_run
from pytest_icbench.measure import repetition
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch, PairCounts
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.unit.model_rig import ModelRig, frames, set_clock

NDR, PDR = Rate(loss_ratio=0.0), Rate(loss_ratio=0.005)
OVERHEAD_S = 0.6


@dataclass
class Model(ModelRig):
    """A rig with the frames that it forwards, per second and pair.

    Attributes:
        capacity_pps: frames received at most.
        refuses: whether the rest is refused by the sender's port, or lost.
        sender_pps: what the senders can offer at most.
        extra_loss: frames lost in every launch.
        invalid: reason of a launch that begins after ``after`` others.
    """

    capacity_pps: float
    sender_pps: float = 20e6
    refuses: bool = False
    extra_loss: int = 0
    invalid: str | None = None
    after: int = 0
    loads: list[int | None] = field(default_factory=list)
    caps: list[int] = field(default_factory=list)

    def counts(self, pair: int, rate: Rate, duration_s: float) -> PairCounts:
        intended = round((rate.pps or self.sender_pps) * duration_s)
        scheduled = min(intended, round(self.sender_pps * duration_s))
        passed = max(min(scheduled, round(self.capacity_pps * duration_s)) - self.extra_loss, 0)
        if rate.is_max and self.refuses:
            scheduled = passed + self.extra_loss  # what is refused is offered again
        refused = scheduled - passed if self.refuses else 0
        not_offered = 0 if rate.is_max else intended - scheduled
        return frames(pair, scheduled, passed, refused=refused, not_offered=not_offered, seconds=duration_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    timeless(monkeypatch)


def timeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets launches take no time, and the clock of strategies go on by their length."""
    now = [1000.0]

    def run_launch(rig: Model, case: Case, settings: Settings, *, index: int, **_: Any) -> Launch:
        assert rig.running
        rig.check()
        now[0] += settings.warmup_s + settings.duration_s + OVERHEAD_S
        rig.loads.append(case.rate.pps)
        rig.caps.append(settings.catch_up)
        pairs = tuple(rig.counts(pair, case.rate, settings.duration_s) for pair in range(1, case.pairs + 1))
        offered = sum(pair.offered_pps for pair in pairs)
        return Launch(
            index=index,
            started_at=now[0],
            duration_s=settings.duration_s,
            overhead_s=OVERHEAD_S,
            throughput_pps=sum(pair.throughput_pps for pair in pairs),
            offered_pps=offered,
            steal_share=0.0,
            generator_bound=case.rate.pps is not None and offered < 0.99 * case.rate.pps * case.pairs,
            pairs=pairs,
            invalid=rig.invalid if len(rig.loads) > rig.after else None,
            evidence="nothing arrived",
        )

    monkeypatch.setattr(repetition, "run_launch", run_launch)
    monkeypatch.setattr(repetition, "preflight", lambda *_, **__: None)
    set_clock(monkeypatch, now, repetition, search_run)


def find(rig: Model, beside: Model | None = None, rate: Rate = PDR, pairs: int = 1, **settings: Any) -> Measurement:
    case = Case("testpmd", Frames(rate=rate), pairs=pairs)
    reported: list[Progress] = []
    facts = {"endpoints": ["vhost-user"] * 2 * pairs, "cpus": {"endpoints": [*range(2 * pairs)]}}
    around = Environment("dedicated", (), treatment=facts)
    reference = None if beside is None else Side(beside, case)  # type: ignore[arg-type]
    found = measure(Side(rig, case, around=around), Settings(**settings), reference, reported.append)  # type: ignore[arg-type]
    assert rig.running
    assert beside is None or not settings.get("reference", True) or not beside.running
    assert all(progress.left_s >= 0 for progress in reported)
    assert Measurement.from_json(found.to_json()) == found
    return found


def anew(found: Measurement) -> Measurement:
    """Computes a measurement from recorded launches, as ``icbench report`` does."""
    return recomputed(Measurement.from_json(found.to_json()))


@dataclass
class Late(Model):
    """A sender that is late with some of its frames at any load but the maximum, which has no schedule."""

    missing: float = 0.0

    def counts(self, pair: int, rate: Rate, duration_s: float) -> PairCounts:
        if rate.pps is None:
            return Model.counts(self, pair, rate, duration_s)
        intended = round(rate.pps * duration_s)
        held = replace(self, sender_pps=min(self.sender_pps, (1 - self.missing) * rate.pps))
        return replace(found := Model.counts(held, pair, rate, duration_s), not_offered=intended - found.scheduled)
