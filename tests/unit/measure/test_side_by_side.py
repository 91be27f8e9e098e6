# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side: in which order they are launched, and what is decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import Invalid, ProvisionError, UsageError
from pytest_icbench.measure.progress import Progress
from pytest_icbench.measure.strategy import repeat, side_by_side
from pytest_icbench.measure.strategy.side_by_side import PairStrategy, confirming, measure_versions
from pytest_icbench.measure.summary.summarize import Surroundings
from pytest_icbench.model.case import Case
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.launch import Launch, PairCounts
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.noninferiority import Margin

CASE = Case("testpmd", candidate="new")
HIGHER = Margin("higher")
#: No busy share: nobody knows what limits, and nothing is a lower bound.
LAUNCH_S = 1.5


@dataclass
class Model:
    """A rig and the rate of its launches.

    Attributes:
        pps: level. noise: relative standard deviation of a launch.
        later_pps: level after it was built anew, None for the same.
        invalid_after: launches before one that is no number.
        idle: the switch has time left. cycles: what it spends on a frame, None if it does not tell.
    """

    name: str
    log: list[str]
    pps: float = 5e6
    noise: float = 0.002
    later_pps: float | None = None
    idle: bool = False
    cycles: float | None = None
    invalid_after: int | None = None
    broken: bool = False
    preflighted: bool = True
    running: bool = True
    built: int = 1
    launches: int = 0
    random: Random = field(default_factory=lambda: Random(5))
    endpoints: list[Any] = field(default_factory=lambda: ["a", "b"])
    placement: Placement = field(default_factory=lambda: Placement("dedicated", (), (0, 1), (), 0, 0))

    def pause(self) -> None:
        self.running = False

    def resume(self) -> None:
        self.running = True

    def uplink_fault(self) -> str | None:
        return None

    def check(self) -> None:
        if self.broken:
            raise ProvisionError("the switch died")

    def close(self) -> None:
        self.log.append(f"close {self.name}")
        self.running = False
        self.endpoints = []

    def build(self) -> None:
        self.log.append(f"build {self.name}")
        self.built += 1
        self.running = True
        self.preflighted = False
        self.endpoints = ["a", "b"]
        self.pps = self.later_pps or self.pps

    def launch_pps(self) -> float:
        return self.pps * self.random.gauss(1, self.noise)


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Model]:
    """A candidate and its base; launches take no time, but the clock goes on."""
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
        return Launch(
            index=index,
            started_at=now[0],
            duration_s=1.0,
            overhead_s=0.5,
            throughput_pps=pps,
            offered_pps=pps,
            steal_share=0.0,
            generator_bound=False,
            pairs=(counts(pps),),
            busy_share=0.2 if rig.idle else 1.0,
            cycles_per_packet=rig.cycles and rig.cycles * rig.random.gauss(1, rig.noise),
            invalid="stalled" if rig.launches - 1 == rig.invalid_after else None,
            evidence="nothing came",
        )

    monkeypatch.setattr(repeat, "run_launch", run_launch)
    monkeypatch.setattr(repeat, "preflight", lambda rig, *_, **__: rig.log.append(f"preflight {rig.name}"))
    monkeypatch.setattr(repeat, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
    return new, base


def counts(pps: float) -> PairCounts:
    received = round(pps)
    zero = dict.fromkeys(("duplicated", "reordered", "late", "foreign", "corrupted", "polls", "empty_polls"), 0)
    return PairCounts(
        pair=1,
        scheduled=received,
        sent=received,
        refused=0,
        not_offered=0,
        tx_full=0,
        received=received,
        lost=0,
        throughput_pps=pps,
        offered_pps=pps,
        **zero,
    )


def compare(
    rigs: tuple[Model, Model], *, margin: Margin = HIGHER, cases: int = 1, case: Case = CASE, **settings: Any
) -> tuple[Measurement, Measurement]:
    around = Surroundings("dedicated", ())
    told: list[Progress] = []
    rigs[1].pause()
    now, base = measure_versions(
        rigs,  # type: ignore[arg-type]
        case,
        Settings(**settings),
        margin,
        cases,
        (around, around),
        on_progress=told.append,
    )
    assert rigs[0].running
    assert not rigs[1].running
    assert all(progress.left_s >= 0 for progress in told)
    assert Measurement.from_json(now.to_json()) == now
    return now, base


def launched(log: list[str]) -> list[str]:
    return [entry for entry in log if not entry.startswith("preflight")]


def decided(now: Measurement) -> SideBySide:
    assert now.side_by_side is not None
    assert now.decision == now.side_by_side.decision
    return now.side_by_side


def test_launches_take_turns_and_who_comes_first_changes(rigs: tuple[Model, Model]) -> None:
    now, base = compare(rigs, repeats=4)
    assert launched(rigs[0].log) == ["new", "base", "base", "new", "new", "base", "base", "new"]
    assert (now.case, base.case) == ("testpmd:new-64B-b32-1vs1-Rmax", "testpmd-64B-b32-1vs1-Rmax")
    assert (now.launches, base.launches) == (4, 4)
    assert decided(now).decision == "INCONCLUSIVE"
    assert decided(now).ratio_low is None
    assert (base.side_by_side, base.decision) == (None, None)


def test_the_same_passes_after_the_fewest_looks(rigs: tuple[Model, Model]) -> None:
    now, _ = compare(rigs)
    found = decided(now)
    assert (found.decision, found.confirmed, found.pairs, now.ended_by) == ("PASS", None, 7, "precision")
    assert now.ratio_to_base == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize(("pps", "decision"), [(4.5e6, "REGRESSED"), (5.5e6, "IMPROVED")])
def test_a_finding_is_confirmed_by_fresh_pairs_on_rigs_built_anew(
    rigs: tuple[Model, Model], pps: float, decision: str
) -> None:
    rigs[0].pps = pps
    now, base = compare(rigs)
    found = decided(now)
    assert (found.decision, found.screen, found.confirmed) == (decision, decision, True)
    assert (found.screened, found.pairs) == (7, 7)
    assert (now.launches, base.launches) == (14, 14)
    assert found.confidence == pytest.approx(0.98)
    assert found.ratio == pytest.approx(pps / 5e6, rel=0.01)
    changes = [entry for entry in rigs[0].log if entry not in ("new", "base")]
    assert changes == [
        "preflight base",
        *("close new", "close base", "build base", "build new"),
        *("preflight base", "preflight new"),
    ]


def test_what_fresh_rigs_do_not_show_again_is_no_regression(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps = 4.5e6, 5e6
    found = decided(compare(rigs)[0])
    assert (found.decision, found.screen, found.confirmed) == ("PASS", "REGRESSED", False)
    assert found.confidence == pytest.approx(0.95)
    assert found.ratio == pytest.approx(1, abs=0.01)


def test_what_is_seen_again_but_not_surely_is_not_told(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps = 4.5e6, 4.85e6
    found = decided(compare(rigs)[0])
    assert (found.decision, found.confirmed) == ("INCONCLUSIVE", False)
    assert found.note == "the first look said REGRESSED, fresh launches do not say it surely enough"


def test_more_cases_take_more_pairs_to_confirm(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    found = decided(compare(rigs, cases=100)[0])
    assert found.decision == "REGRESSED"
    assert found.confidence == pytest.approx(1 - 2e-4)
    assert found.pairs == 14  # the range of fourteen is the first with that confidence
    assert (found.cases, found.error_rate) == (100, side_by_side.SESSION_ERROR)


def test_noise_takes_more_pairs_until_the_time_is_up(rigs: tuple[Model, Model]) -> None:
    rigs[0].noise = rigs[1].noise = 0.2
    now, _ = compare(rigs, max_duration_s=60)
    assert now.ended_by == "max-duration"
    assert now.launches == 20
    assert decided(now).decision == "INCONCLUSIVE"


def test_a_tolerated_drop_passes(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 4.5e6
    found = decided(compare(rigs, margin=Margin("higher", tolerated=0.1))[0])
    assert (found.decision, found.tolerated, found.allowance) == ("PASS", 0.1, 0.03)


def test_a_switch_with_idle_share_decides_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].idle = 5.5e6, True
    comparison = decided(compare(rigs)[0])
    assert comparison.decision == "INCONCLUSIVE"
    assert "only 'at least'" in str(comparison.note)
    assert comparison.confirmed is None
    assert not [line for line in rigs[0].log if line.startswith("build")]


@pytest.mark.parametrize("other", [None, 200.0])
def test_a_path_that_falls_with_idle_share_is_confirmed_and_accused(
    rigs: tuple[Model, Model], other: float | None
) -> None:
    rigs[0].pps, rigs[0].idle, rigs[0].cycles, rigs[1].cycles = 4.5e6, True, 200, other
    comparison = decided(compare(rigs)[0])
    assert (comparison.decision, comparison.figure, comparison.confirmed) == ("REGRESSED", "throughput_pps", True)


@pytest.mark.parametrize(
    ("cycles", "tolerated", "decision"),
    [
        (200, 0.0, "PASS"),
        (230, 0.0, "REGRESSED"),
        (170, 0.0, "IMPROVED"),
        (230, 0.2, "PASS"),
        # A rate a fifth lower is a cost a quarter higher.
        (250, 0.2, "PASS"),
    ],
)
def test_the_switchs_cycles_decide_where_both_rates_are_at_least(
    rigs: tuple[Model, Model], cycles: float, tolerated: float, decision: str
) -> None:
    for rig, spent in zip(rigs, (cycles, 200), strict=True):
        rig.idle, rig.cycles, rig.noise = True, spent, 0.002
    comparison = decided(compare(rigs, margin=Margin("higher", tolerated))[0])
    assert (comparison.decision, comparison.figure) == (decision, "cycles_per_packet")
    assert comparison.ratio == pytest.approx(cycles / 200, rel=0.01)
    assert comparison.base_value == pytest.approx(200, rel=0.01)
    assert comparison.note == "the rate is only 'at least', so the switch's cycles a frame decide"
    assert comparison.confirmed is (True if decision in ("REGRESSED", "IMPROVED") else None)


def test_cycles_of_one_side_decide_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].idle, rigs[0].cycles = True, 300
    comparison = decided(compare(rigs)[0])
    assert (comparison.decision, comparison.figure) == ("INCONCLUSIVE", "throughput_pps")


def test_a_path_that_does_not_fall_again_decides_nothing(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps, rigs[0].idle = 4.5e6, 5e6, True
    comparison = decided(compare(rigs)[0])
    assert (comparison.screen, comparison.confirmed) == ("REGRESSED", False)
    assert comparison.decision == "INCONCLUSIVE"
    assert "at least" in str(comparison.note)


def test_a_base_with_idle_share_can_be_fallen_short_of(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[1].idle = 4.5e6, True
    assert decided(compare(rigs)[0]).decision == "REGRESSED"


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_that_is_no_number_makes_both_invalid(rigs: tuple[Model, Model], side: int) -> None:
    rigs[side].invalid_after = 3
    now, base = compare(rigs)
    assert (now.verdict, base.verdict, now.reason) == ("INVALID", "INVALID", "stalled")
    assert ("the base, testpmd-64B" in (now.evidence or "")) == bool(side)
    assert now.side_by_side is None


def test_a_base_that_dies_is_named(rigs: tuple[Model, Model]) -> None:
    rigs[1].broken = True
    now, _ = compare(rigs)
    assert (now.verdict, now.reason) == ("INVALID", "died")
    assert now.evidence == "the base, testpmd-64B-b32-1vs1-Rmax: the switch died"


def test_each_side_has_its_own_workload(rigs: tuple[Model, Model]) -> None:
    around = Surroundings("dedicated", ())
    rigs[1].pause()
    measure_versions(
        rigs,  # type: ignore[arg-type]
        CASE,
        Settings(repeats=2),
        HIGHER,
        1,
        (around, around),
        executables=("theirs", None),  # type: ignore[arg-type]
    )
    assert launched(rigs[0].log) == ["new by theirs", "base", "base", "new by theirs"]


@pytest.mark.parametrize("rate", [Rate(loss_ratio=0.0), Rate(loads=(1, 2))])
def test_a_rate_that_is_looked_for_has_no_neighbour(rigs: tuple[Model, Model], rate: Rate) -> None:
    with pytest.raises(UsageError, match="is looked for, not launched, so versions cannot take turns"):
        compare(rigs, case=Case("testpmd", candidate="new", rate=rate))


def test_pairs_without_figures_are_invalid(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 0.0
    now, _ = compare(rigs, repeats=2)
    assert (now.verdict, now.reason) == ("INVALID", "no-forwarding")


def test_latency_is_worse_when_it_is_greater() -> None:
    course = PairStrategy.__new__(PairStrategy)
    course.case_id = "x"
    course.case = Case("x", dimension="latency")
    course.gathered = SimpleNamespace(launches=[], reference=[])  # type: ignore[assignment]
    with pytest.raises(Invalid, match="no pair of launches has a figure on both sides"):
        course._ratio(0, 0.95)


def test_the_session_is_wrong_at_most_once_in_a_hundred(rigs: tuple[Model, Model]) -> None:
    """A version exactly at the limit, in sessions of twenty cases: confirmation alone bounds the errors."""
    assert confirming(20) == pytest.approx(1 - 2 * side_by_side.SESSION_ERROR / 20)
    assert confirming(1) == pytest.approx(0.98)
