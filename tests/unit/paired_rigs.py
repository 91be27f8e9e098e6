# SPDX-License-Identifier: BSD-3-Clause
"""A candidate and its base whose launches take no time: what they were asked, and what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.kinds.runs import measure_versions
from pytest_icbench.measure import repetition, side_by_side
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.stopping import Allowances, Criteria
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.finding import SideBySide
from pytest_icbench.model.launch import Launch, PairCounts
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.states import geometric_mean
from pytest_icbench.stats.verdict_rule import Allowance
from tests.unit.model_rig import ModelRig, frames, set_clock

CASE = Case("testpmd", candidate="new")
HIGHER = Allowance("higher")
#: Time of a launch, as the clock of these tests goes.
LAUNCH_S = 1.5


@dataclass
class Model(ModelRig):
    """A rig and the rate of its launches.

    Attributes:
        pps: level. noise: relative standard deviation of a launch.
        draw: what a rig draws when it is built.
        invalid_after: launches before one that is no number.
        distances: the readings of a launch, how far the host's CPUs are apart, in ns, in turn.
        idle: the switch has time left. cycles: what it spends on a frame, None if it does not tell.
    """

    name: str
    log: list[str]
    pps: float = 5e6
    noise: float = 0.002
    idle: bool = False
    cycles: float | None = None
    invalid_after: int | None = None
    distances: tuple[tuple[float, ...], ...] = ((),)
    built: int = 1
    unbuildable: bool = False
    effect: float = 1.0
    draw: Callable[[], float] = lambda: 1.0
    launches: int = 0
    random: Random = field(default_factory=lambda: Random(5))

    def close(self) -> None:
        self.log.append(f"close {self.name}")
        self.running = False
        self.endpoints = []

    def build(self) -> None:
        if self.unbuildable:
            raise ProvisionError("no memory")
        self.log.append(f"build {self.name}")
        self.built += 1
        self.running = True
        self.preflighted = False
        self.endpoints = ["a", "b"]
        self.effect = self.draw()

    def launch_pps(self) -> float:
        return self.pps * self.effect * self.random.gauss(1, self.noise)


def paired_rigs(monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Model]:
    """Returns a candidate and its base; launches take no time, but the clock goes on."""
    log: list[str] = []
    now = [1000.0]
    new, base = Model("new", log), Model("base", log, running=True, random=Random(6))

    def run_launch(rig: Model, case: Case, settings: Settings, *, index: int, executable: Any, **_: Any) -> Launch:
        other = base if rig is new else new
        assert rig.running
        assert not other.running
        assert (case.candidate == "new") == (rig is new)
        rig.check()
        now[0] += LAUNCH_S
        rig.launches += 1
        rig.log.append(rig.name if executable is None else f"{rig.name} by {executable}")
        pps = rig.launch_pps()
        readings = rig.distances[rig.launches % len(rig.distances)]
        return Launch(
            index=index,
            started_at=now[0],
            duration_s=1.0,
            overhead_s=0.5,
            throughput_pps=pps,
            offered_pps=pps,
            steal_share=0.0,
            distances_ns=readings,
            distance_ns=geometric_mean(readings),
            generator_bound=False,
            pairs=(counts(pps),),
            busy_share=0.2 if rig.idle else 1.0,
            cycles_per_packet=rig.cycles and rig.cycles * rig.random.gauss(1, rig.noise),
            invalid="stalled" if rig.launches - 1 == rig.invalid_after else None,
            evidence="nothing came",
        )

    monkeypatch.setattr(repetition, "run_launch", run_launch)
    monkeypatch.setattr(repetition, "preflight", lambda rig, *_, **__: rig.log.append(f"preflight {rig.name}"))
    set_clock(monkeypatch, now, repetition, side_by_side)
    monkeypatch.setattr(side_by_side, "Random", lambda: Random(1))
    return new, base


def counts(pps: float) -> PairCounts:
    return replace(frames(1, round(pps), round(pps)), throughput_pps=pps, offered_pps=pps)


def sides(rigs: tuple[Model, Model], case: Case = CASE) -> tuple[Side, Side]:
    """Returns a candidate and its base on their rigs."""
    around = Environment("dedicated", ())
    new, base = (Side(rig, of, around=around) for rig, of in zip(rigs, (case, case.base), strict=True))  # type: ignore[arg-type]
    return new, base


def compare(
    rigs: tuple[Model, Model],
    *,
    allowance: Allowance | Allowances = HIGHER,
    cases: int = 1,
    case: Case = CASE,
    **settings: Any,
) -> tuple[Measurement, Measurement]:
    reported: list[Progress] = []
    rigs[1].pause()
    allowed = Allowances.of(allowance) if isinstance(allowance, Allowance) else allowance
    now, base = measure_versions(*sides(rigs, case), Settings(**settings), Criteria(allowed, cases), reported.append)
    assert rigs[0].running
    assert not rigs[1].running
    assert all(progress.left_s >= 0 for progress in reported)
    assert Measurement.from_json(now.to_json()) == now
    return now, base


def launched(log: list[str]) -> list[str]:
    return [entry for entry in log if not entry.startswith("preflight")]


def decided(now: Measurement) -> SideBySide:
    assert now.side_by_side is not None
    assert now.decision == now.side_by_side.decision
    return now.side_by_side


def by_rigs(log: list[str]) -> list[tuple[list[str], str]]:
    """Returns the launches on each pair of rigs, and the order of building them (empty for the first pair)."""
    rigs: list[tuple[list[str], str]] = [([], "")]
    for entry in launched(log):
        kind, _, name = entry.partition(" ")
        if kind == "build" and len(rigs[-1][0]):
            rigs.append(([], name))
        elif kind == "build":
            rigs[-1] = ([], f"{rigs[-1][1]} {name}")
        elif kind != "close":
            rigs[-1][0].append(kind)
    return rigs
