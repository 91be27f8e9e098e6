# SPDX-License-Identifier: BSD-3-Clause
"""Compares two versions side by side: launches them in adjacent pairs, on rigs that are built anew again and again.

``measure.comparing`` decides. Two launches are a pair; some pairs run on the same two rigs, then both are built anew.
Which of the two is built last, and launched first, is drawn. A rate that is "at least" shows a path that fell, but not
a switch that had time left. Where both versions tell the cycles that the switch spends on a frame, these decide then;
with a margin of their own they are judged beside the rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from random import Random

from pytest_icbench.errors import Invalid, ProvisionError, WorkloadError
from pytest_icbench.measure.comparing import (
    FEWEST_LOOKED,
    PAIRS_A_RIG,
    SESSION_ERROR,
    SUSPICIONS,
    Allowance,
    Look,
    confirming_rigs,
    fewest_comparing,
    first_look,
    is_narrow,
    second_look,
)
from pytest_icbench.measure.estimate import RIG_OVERHEAD_S, launch_estimate_s
from pytest_icbench.measure.progress import OnProgress, Phase
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.stopping import why_stop_after
from pytest_icbench.measure.strategy.repeat import Strategy
from pytest_icbench.measure.summary.gathered import Gathered, main_figure
from pytest_icbench.measure.summary.summarize import Surroundings, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.comparison import AT_LEAST, SideBySide
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import MAIN_FIGURES
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.stats.intervals import LOOKED_CONFIDENCE
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.quantiles import CONFIDENCE, median
from pytest_icbench.stats.rig_pairs import RigPair
from pytest_icbench.stats.states import same_state
from pytest_icbench.stats.student import FEWEST_UNITS

_RESTS_ON_CYCLES = "the rate is only 'at least', so the switch's cycles a frame decide"
_CYCLES_ROSE = "the rate has not changed beyond its margin, the switch's cycles a frame decide"


class PairStrategy(Strategy):
    """Runs adjacent pairs of launches of a candidate and its base; one rig runs at a time.

    Args:
        rig: the candidate's rig.
        base: the base's rig.
        allowed: how much worse the candidate may be.
        cases: number of comparisons in the session.
        executables: the workloads of the candidate and of the base.

    Attributes:
        by_cycles: why the switch's cycles a frame decide; None: the main figure does.
        rig_sizes: the pairs of launches on each pair of rigs so far.
    """

    def __init__(
        self,
        rig: MeasuredRig,
        base: MeasuredRig,
        case: Case,
        settings: Settings,
        allowed: Allowance,
        cases: int,
        on_progress: OnProgress | None = None,
        executables: tuple[Path | None, Path | None] = (None, None),
    ) -> None:
        super().__init__(rig, base, case, case.base, case.id, settings, on_progress, executables[0])
        self.base = base
        self.base_id = case.base.id
        self.allowed = allowed
        self.cases = cases
        self.executables = executables
        self.by_cycles: str | None = None
        self.rig_sizes: list[int] = []
        self.screened_rigs = 0
        self.first: Look | None = None
        self.comparison: SideBySide | None = None
        self._order = Random()
        self._pair_s = 0.0
        self._building_s = 2 * RIG_OVERHEAD_S

    # -- launches

    def _launches(self) -> None:
        repeats = self.settings.repeats
        a_rig = 1 if self.settings.fresh else PAIRS_A_RIG
        for pairs in repeat(a_rig) if repeats is None else fewest_comparing(self.settings):
            self._rig_pair(pairs, adaptive=repeats is None)
            why = self._why_stop()
            if why is not None:
                self.gathered.ended_by = why
                break
        self.screened_rigs = len(self.rig_sizes)
        self.first = self._first_look()
        if self.first.verdict in SUSPICIONS and not self._at_least(self.first.verdict):
            for pairs in confirming_rigs(len(self.gathered.launches), self.cases):
                self._rig_pair(pairs)
        self.comparison = self._decide(self.first)

    def _rig_pair(self, pairs: int, *, adaptive: bool = False) -> None:
        """Runs pairs of launches on two rigs, which are built for them unless they are the case's first ones.

        Args:
            adaptive: the time for the case may leave it at the first pair.
        """
        candidate_first = self._order.random() < 0.5
        if self.rig_sizes:
            self._build_anew(candidate_first)
        self.round = len(self.rig_sizes)
        self.rig_sizes.append(0)
        for number in range(pairs):
            if number and adaptive and not self._has_time(1):
                return
            began = time.monotonic()
            # The order alternates: the rigs change places half as often, and drift cancels.
            self._pair(candidate_first != bool(number % 2))
            self._pair_s = time.monotonic() - began
            self.rig_sizes[-1] += 1

    def _pair(self, candidate_first: bool) -> None:
        launches = [self._case_launch, self._base_launch]
        first, second = launches if candidate_first else launches[::-1]
        first()
        side = self.gathered.launches if candidate_first else self.gathered.reference
        self._await_state(side[-1].distance_ns)
        second()

    def _has_time(self, pairs: int) -> bool:
        """Whether the time for the case has room for more pairs, and for one pair on each rig that is then missing."""
        missing = max(FEWEST_UNITS - len(self.rig_sizes), 0)
        needed_s = (pairs + missing) * self._pair_s + missing * self._building_s
        return self._elapsed() + needed_s <= self.settings.max_duration_s

    def _base_launch(self) -> None:
        with _named(self.base_id):
            self._reference_launch(self.base)

    def _turn_to(self, rig: MeasuredRig) -> None:
        super()._turn_to(rig)
        self.executable = self.executables[rig is self.base]

    def _build_anew(self, candidate_first: bool) -> None:
        """Builds both rigs anew, so that chance at building (where memory lies) plays again.

        The one that is launched first is built last, and runs. Over two hosts it alone is built: its turn builds the
        other one, which takes the same NICs.
        """
        began = time.monotonic()
        self.running = None
        alone = not self.rig.endpoints or not self.base.endpoints
        self.rig.close()
        self.base.close()
        self.seen.clear()
        self.used.clear()
        first, second = (self.rig, self.base) if candidate_first else (self.base, self.rig)
        if not alone:
            self._build(second)
            second.pause()
        self._build(first)
        self.running = first
        self.executable = self.executables[first is self.base]
        self._building_s = time.monotonic() - began

    def _build(self, rig: MeasuredRig) -> None:
        if rig is self.rig:
            rig.build()
            return
        with _named(self.base_id):
            rig.build()

    # -- decisions

    def _first_look(self) -> Look:
        """Returns what the pairs so far show, and chooses the figure that decides."""
        look = self._look()
        if self._cycles_known() and (self._at_least(look.verdict) or self.allowed.cycles_named):
            silent = self._at_least(look.verdict)
            self.by_cycles = _RESTS_ON_CYCLES if silent else _CYCLES_ROSE
            cycles = self._look()
            worse = ORDER.index(cycles.verdict) < ORDER.index(look.verdict) and cycles.verdict != Verdict.IMPROVED
            if silent or worse:
                return cycles
            self.by_cycles = None
        return look

    def _look(self) -> Look:
        confidence = LOOKED_CONFIDENCE if self.settings.repeats is None else CONFIDENCE
        return first_look(self._known_rig_pairs(), self._margin, confidence)

    @property
    def _figure(self) -> str:
        if self.by_cycles:
            return "cycles_per_packet"
        return MAIN_FIGURES[self.case.dimension]

    @property
    def _margin(self) -> Margin:
        """The margin of the figure that decides."""
        return self.allowed.cycles if self.by_cycles else self.allowed.main

    def _cycles_known(self) -> bool:
        """Whether every launch of both sides has the switch's cycles a frame, and they can stand for the rate."""
        if self.case.dimension != "throughput":
            return False
        return all(launch.cycles_per_packet for launch in (*self.gathered.launches, *self.gathered.reference))

    def _value(self, launch: Launch) -> float:
        return (launch.cycles_per_packet or 0.0) if self.by_cycles else main_figure(self.case, launch)

    def _known_rig_pairs(self, begin: int = 0) -> list[RigPair]:
        """Returns the figures from a pair of rigs on. Raises Invalid if no pair of launches has two figures."""
        rig_pairs = self._rig_pairs(begin, len(self.rig_sizes))
        if not rig_pairs:
            raise Invalid("no-forwarding", f"{self.case_id}: no pair of launches has a value on both sides")
        return rig_pairs

    def _rig_pairs(self, begin: int, end: int) -> list[RigPair]:
        """Returns the figures of the pairs in one state of the host in which both sides have one.

        A percentile takes enough samples.
        """
        kept: list[RigPair] = []
        for number in range(begin, end):
            place = sum(self.rig_sizes[:number])
            chosen = slice(place, place + self.rig_sizes[number])
            pairs = list(zip(self.gathered.launches[chosen], self.gathered.reference[chosen], strict=True))
            alike = [pair for pair in pairs if same_state(*(launch.distance_ns for launch in pair))]
            # Where every pair met two states, they are wider apart, and in no order.
            values = [(self._value(new), self._value(old)) for new, old in alike or pairs]
            known = [(new, old) for new, old in values if new > 0 and old > 0]
            if known:
                kept.append(([new for new, _ in known], [old for _, old in known]))
        return kept

    def _why_stop(self) -> str | None:
        done, rigs = len(self.gathered.launches), len(self.rig_sizes)

        def narrow_after(pairs: int) -> bool:
            # A look is a pair of rigs, so the look before this one lacks the last one.
            return rigs >= FEWEST_LOOKED and self._narrow(rigs - (done - pairs))

        return why_stop_after(done, narrow_after, self.settings, self._elapsed(), self._pair_s + self._building_s)

    def _narrow(self, rigs: int) -> bool:
        """Whether the intervals of the figures that may decide are narrow after so many pairs of rigs."""
        at_least, known = self._at_least(Verdict.INCONCLUSIVE), self._cycles_known()
        precision, narrow = self.settings.precision, True
        if not (at_least and known):
            narrow = is_narrow(self._rig_pairs(0, rigs), self._margin, precision)
        if known and (at_least or self.allowed.cycles_named):
            self.by_cycles = _RESTS_ON_CYCLES
            narrow = narrow and is_narrow(self._rig_pairs(0, rigs), self._margin, precision)
            self.by_cycles = None
        return narrow

    def _at_least(self, verdict: Verdict) -> bool:
        """Whether the figures are lower bounds, so that the verdict cannot be drawn from them."""
        if self.by_cycles or self.case.dimension != "throughput" or verdict == Verdict.REGRESSED:
            return False  # what is "at least" can still fall, and be fallen short of
        now, base = (
            summarize(self.case, self.settings, Gathered(launches=list(launches)), self._around(rig)).lower_bound
            for launches, rig in ((self.gathered.launches, self.rig), (self.gathered.reference, self.base))
        )
        return now or base

    @staticmethod
    def _around(rig: MeasuredRig) -> Surroundings:
        cpus = rig.placement.endpoints
        return Surroundings(rig.placement.policy, tuple(rig.endpoints), shared=len(set(cpus)) < len(cpus))

    def _decide(self, screen: Look) -> SideBySide:
        """Returns the decision after the first look. Raises Invalid."""
        ratio, decision, confidence = screen.ratio, screen.verdict, CONFIDENCE
        begin, note, confirmed = 0, self.by_cycles, None
        if self._at_least(screen.verdict):
            decision, note = Verdict.INCONCLUSIVE, AT_LEAST
        elif len(self.rig_sizes) > self.screened_rigs:
            begin = self.screened_rigs
            second = second_look(self._known_rig_pairs(begin), self._margin, self.cases, screen.verdict)
            ratio, decision, confidence, confirmed = second.ratio, second.decision, second.confidence, second.confirmed
            note = second.note or note
            if not confirmed and self._at_least(decision):
                decision, note = Verdict.INCONCLUSIVE, AT_LEAST
        deciding, margin = self._known_rig_pairs(begin), self._margin
        return SideBySide(
            base=self.base_id,
            figure=self._figure,
            decision=decision,
            ratio=ratio.value,
            ratio_low=ratio.low,
            ratio_high=ratio.high,
            confidence=confidence,
            base_value=median([value for _, base in deciding for value in base]),
            tolerated=margin.tolerated,
            allowance=margin.allowance,
            pairs=sum(self.rig_sizes[begin:]),
            screened=sum(self.rig_sizes[: self.screened_rigs]),
            screen=screen.verdict,
            screen_ratio=screen.ratio.value,
            screen_low=screen.ratio.low,
            screen_high=screen.ratio.high,
            confirmed=confirmed,
            cases=self.cases,
            error_rate=SESSION_ERROR,
            note=note,
            rigs=len(self.rig_sizes) - begin,
            screened_rigs=self.screened_rigs,
        )

    # -- progress

    def _tell(self, phase: Phase, pps: float | None) -> None:
        if phase in ("preflight", "waiting"):
            self.detail = None
        else:
            done = len(self.gathered.launches)
            side = self.case.candidate if phase == "case" else "base"
            again = ", confirming" if self.first is not None else ""
            self.detail = f"{side} launch {done + 1}/{self._outlook(done)[1]}{again}"
        super()._tell(phase, pps)

    def _outlook(self, done: int) -> tuple[float, int]:
        elapsed, screened = self._elapsed(), sum(self.rig_sizes[: self.screened_rigs])
        if self.first is not None:
            launches = screened + sum(confirming_rigs(screened, self.cases))
            return max(launches - done, 0) * elapsed / max(done, 1), launches
        launches = max(sum(fewest_comparing(self.settings)), done + 1)
        pair_s = elapsed / done if done else launch_estimate_s(self.settings, reference=True)
        left_s = (launches - done) * pair_s
        if self.settings.repeats is None:
            left_s = min(left_s, max(self.settings.max_duration_s - elapsed, 0.0))
        return left_s, launches


@contextmanager
def _named(base: str) -> Iterator[None]:
    """Puts the base's id before what goes wrong there."""
    try:
        yield
    except Invalid as invalid:
        raise Invalid(invalid.reason, f"the base, {base}: {invalid.evidence}") from None
    except (ProvisionError, WorkloadError) as error:
        raise type(error)(f"the base, {base}: {error}") from None
