# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side: in which order they are launched, and what is decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.measure.comparing import SESSION_ERROR, Allowance, confirming, confirming_rigs, fixed_rigs
from pytest_icbench.measure.progress import Progress
from pytest_icbench.measure.strategy import repeat, side_by_side
from pytest_icbench.measure.summary.summarize import Surroundings
from pytest_icbench.measure.versions import measure_versions
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
#: Rigs of a first look that is precise at once.
FIRST_LOOK = 4


@dataclass
class Model:
    """A rig and the rate of its launches.

    Attributes:
        pps: level. noise: relative standard deviation of a launch.
        later_pps: level on rigs of the second look, None for the same.
        draw: what a rig draws when it is built.
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
    unbuildable: bool = False
    effect: float = 1.0
    draw: Callable[[], float] = lambda: 1.0
    launches: int = 0
    random: Random = field(default_factory=lambda: Random(5))
    endpoints: list[Any] = field(default_factory=lambda: ["a", "b"])
    placement: Placement = field(default_factory=lambda: Placement("dedicated", (), (0, 1), (), 0, 0))

    def pause(self) -> None:
        self.running = False

    def resume(self) -> None:
        self.running = True

    def path_fault(self) -> str | None:
        return None

    def check(self) -> None:
        if self.broken:
            raise ProvisionError("the switch died")

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
        if self.later_pps and self.built > FIRST_LOOK:
            self.pps = self.later_pps
        self.effect = self.draw()

    def launch_pps(self) -> float:
        return self.pps * self.effect * self.random.gauss(1, self.noise)


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
    clock = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0])
    monkeypatch.setattr(repeat, "time", clock)
    monkeypatch.setattr(side_by_side, "time", clock)
    monkeypatch.setattr(side_by_side, "Random", lambda: Random(1))
    return new, base


def counts(pps: float) -> PairCounts:
    received = round(pps)
    zero: dict[str, Any] = dict.fromkeys(
        ("duplicated", "reordered", "late", "foreign", "corrupted", "polls", "empty_polls"), 0
    )
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
    rigs: tuple[Model, Model],
    *,
    margin: Margin | Allowance = HIGHER,
    cases: int = 1,
    case: Case = CASE,
    **settings: Any,
) -> tuple[Measurement, Measurement]:
    around = Surroundings("dedicated", ())
    told: list[Progress] = []
    rigs[1].pause()
    now, base = measure_versions(
        rigs,  # type: ignore[arg-type]
        case,
        Settings(**settings),
        Allowance.of(margin) if isinstance(margin, Margin) else margin,
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


def by_rigs(log: list[str]) -> list[tuple[list[str], str]]:
    """The launches on each pair of rigs, and in which order its two rigs were built (empty for the first pair)."""
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


def test_pairs_take_turns_on_rigs_that_are_built_anew_and_what_comes_first_is_drawn(rigs: tuple[Model, Model]) -> None:
    now, base = compare(rigs, repeats=12)
    order = by_rigs(rigs[0].log)
    assert len(order) == 6
    for launches, built in order:
        first, second = launches[:2]
        assert launches == [first, second, second, first]
        assert built in ("", f"{second} {first}")  # the one that is launched first is built last
    assert {launches[0] for launches, _ in order} == {"new", "base"}
    assert (now.case, base.case) == ("testpmd:new-64B-b32-1vs1-Rmax", "testpmd-64B-b32-1vs1-Rmax")
    assert (now.launches, base.launches) == (12, 12)
    assert [launch.round for launch in now.per_launch] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert (decided(now).rigs, decided(now).screened_rigs, decided(now).decision) == (6, 6, "PASS")
    assert (base.side_by_side, base.decision) == (None, None)


@pytest.mark.parametrize(
    ("repeats", "spread"), [(1, [1]), (2, [1, 1]), (3, [1, 1, 1]), (4, [2, 1, 1]), (6, [2, 2, 2]), (7, [2, 2, 2, 1])]
)
def test_a_fixed_number_of_pairs_is_spread_over_three_rigs_at_least(repeats: int, spread: list[int]) -> None:
    assert fixed_rigs(repeats) == spread


def test_two_rigs_give_no_interval(rigs: tuple[Model, Model]) -> None:
    found = decided(compare(rigs, repeats=2)[0])
    assert (found.decision, found.ratio_low, found.rigs) == ("INCONCLUSIVE", None, 2)


def test_a_rig_of_its_own_for_each_launch_is_built_once(rigs: tuple[Model, Model]) -> None:
    compare(rigs, repeats=4, fresh=True)
    assert [sorted(launches) for launches, _ in by_rigs(rigs[0].log)] == [["base", "new"]] * 4
    assert rigs[0].built == rigs[1].built == 4


def test_the_same_passes_after_the_fewest_looks(rigs: tuple[Model, Model]) -> None:
    now, _ = compare(rigs)
    found = decided(now)
    assert (found.decision, found.confirmed, found.pairs, found.rigs) == ("PASS", None, 8, 4)
    assert now.ended_by == "precision"
    assert now.ratio_to_base == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize(("pps", "decision"), [(4.5e6, "REGRESSED"), (5.5e6, "IMPROVED")])
def test_a_finding_is_confirmed_by_fresh_pairs_on_rigs_built_anew(
    rigs: tuple[Model, Model], pps: float, decision: str
) -> None:
    rigs[0].pps = pps
    now, base = compare(rigs)
    found = decided(now)
    assert (found.decision, found.screen, found.confirmed) == (decision, decision, True)
    assert (found.screened, found.screened_rigs, found.pairs, found.rigs) == (8, 4, 14, 7)
    assert (now.launches, base.launches) == (22, 22)
    assert found.confidence == pytest.approx(0.98, abs=0.005)
    assert found.ratio == pytest.approx(pps / 5e6, rel=0.01)
    assert rigs[0].built == rigs[1].built == 11


@pytest.mark.parametrize("seed", range(12))
def test_rigs_that_differ_accuse_nobody(rigs: tuple[Model, Model], seed: int) -> None:
    """One rig in two lies 6 % lower; all launches on it agree, however many there are."""
    for number, rig in enumerate(rigs):
        random = Random(f"{seed} {number}")
        rig.draw = lambda random=random: random.choice((1.0, 0.94))  # type: ignore[misc]
        rig.effect = rig.draw()
    assert decided(compare(rigs)[0]).decision in ("PASS", "INCONCLUSIVE")


def test_a_base_that_cannot_be_built_anew_is_named(rigs: tuple[Model, Model]) -> None:
    rigs[1].unbuildable = True
    with pytest.raises(ProvisionError, match="the base, testpmd-64B-b32-1vs1-Rmax: no memory"):
        compare(rigs)


def test_what_fresh_rigs_do_not_show_again_is_no_regression(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps, rigs[0].later_pps = 4.5e6, 5e6
    found = decided(compare(rigs)[0])
    assert (found.decision, found.screen, found.confirmed) == ("PASS", "REGRESSED", False)
    assert found.confidence == pytest.approx(0.95, abs=0.01)
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
    assert (found.rigs, found.pairs) == (14, 14)  # the range of fourteen is the first with that confidence
    assert (found.cases, found.error_rate) == (100, SESSION_ERROR)
    assert confirming_rigs(40, 1) == [2] * 20


def test_noise_takes_more_pairs_until_the_time_is_up(rigs: tuple[Model, Model]) -> None:
    rigs[0].noise = rigs[1].noise = 0.2
    now, _ = compare(rigs, max_duration_s=60)
    assert now.ended_by == "max-duration"
    assert now.launches == 20
    assert decided(now).decision == "INCONCLUSIVE"


@pytest.mark.parametrize(("limit_s", "sizes"), [(8, [1]), (9, [1, 1, 1]), (20, [2, 2, 2]), (24, [2, 2, 2, 2])])
def test_little_time_is_spent_on_three_rigs_rather_than_on_pairs(
    rigs: tuple[Model, Model], limit_s: float, sizes: list[int]
) -> None:
    """A pair takes 3 s; rigs take no time here, but are reckoned with until the first ones were built."""
    rigs[0].noise = rigs[1].noise = 0.2
    now, _ = compare(rigs, max_duration_s=limit_s)
    rounds = [launch.round for launch in now.per_launch]
    assert [rounds.count(number) for number in range(decided(now).screened_rigs)] == sizes


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
    assert comparison.rigs == comparison.screened_rigs


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
        Allowance.of(HIGHER),
        1,
        (around, around),
        executables=("theirs", None),  # type: ignore[arg-type]
    )
    assert set(launched(rigs[0].log)) - {"close new", "close base", "build new", "build base"} == {
        "new by theirs",
        "base",
    }


@pytest.mark.parametrize("rate", [Rate(loss_ratio=0.0), Rate(loads=(1, 2))])
def test_a_rate_that_is_looked_for_has_no_neighbour(rigs: tuple[Model, Model], rate: Rate) -> None:
    with pytest.raises(UsageError, match="is looked for, not launched, so versions cannot take turns"):
        compare(rigs, case=Case("testpmd", candidate="new", rate=rate))


def test_pairs_without_figures_are_invalid(rigs: tuple[Model, Model]) -> None:
    rigs[0].pps = 0.0
    now, _ = compare(rigs, repeats=2)
    assert (now.verdict, now.reason) == ("INVALID", "no-forwarding")


def test_the_session_is_wrong_at_most_once_in_a_hundred(rigs: tuple[Model, Model]) -> None:
    """A version exactly at the limit, in sessions of twenty cases: confirmation alone bounds the errors."""
    assert confirming(20) == pytest.approx(1 - 2 * SESSION_ERROR / 20)
    assert confirming(1) == pytest.approx(0.98)
