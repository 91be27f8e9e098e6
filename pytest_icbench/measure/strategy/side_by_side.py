# SPDX-License-Identifier: BSD-3-Clause
"""Compares two versions side by side: launches them in adjacent pairs, and decides between them.

A first look launches pairs until the interval of their ratio is narrow, by its width alone (as ``stopping`` does for
one version). If it finds REGRESSED or IMPROVED, that is only a suspicion: both rigs are built anew, and a fixed number
of fresh pairs decides alone. The second interval has the confidence ``confirming``. With it the probability that any
comparison of a session ends in REGRESSED, although no candidate is worse than allowed, is at most ``SESSION_ERROR``. It
depends neither on the number of comparisons nor on the first looks (Bonferroni; the fresh launches are independent of
them).

A rate that is "at least" shows a path that fell, but not a switch that had time left. Where both versions tell the
cycles that the switch spends on a frame, these decide then.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_icbench.errors import Invalid, ProvisionError, UsageError, WorkloadError
from pytest_icbench.measure.progress import OnProgress, Phase
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.stopping import TELLING, why_stop_after
from pytest_icbench.measure.strategy.repeat import Strategy
from pytest_icbench.measure.summary.summarize import Gathered, Surroundings, main_figure, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.comparison import AT_LEAST, SideBySide
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.intervals import LOOKED_CONFIDENCE
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.paired import factor, fewest_pairs
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, median

#: Greatest probability that a session accuses any version although none is worse than allowed.
SESSION_ERROR = 0.01
#: The verdicts of a first look that fresh launches have to confirm.
_SUSPICIONS = (Verdict.REGRESSED, Verdict.IMPROVED)
_RESTS_ON_CYCLES = "the rate is only 'at least', so the switch's cycles a frame decide"


def confirming(cases: int) -> float:
    """Returns the confidence of the two-sided interval that confirms one of ``cases`` suspicions."""
    return 1 - 2 * SESSION_ERROR / max(cases, 1)


def check_comparable(case: Case) -> None:
    """Raises UsageError for a search or a sweep, whose launches have no neighbour to be compared with."""
    if case.rate.is_search or case.rate.is_sweep:
        raise UsageError(
            f"{case.rate.typed} is looked for, not launched, so versions cannot take turns: with --icbench-variant give"
            " --icbench-rate max or a load"
        )


class PairStrategy(Strategy):
    """Runs adjacent pairs of launches of a candidate and its base; one rig runs at a time.

    Args:
        rig: the candidate's rig.
        base: the base's rig.
        margin: the loss of the main figure that is allowed.
        cases: number of comparisons in the session.
        executables: the workloads of the candidate and of the base.

    Attributes:
        by_cycles: the switch's cycles a frame decide, not the rate.
    """

    def __init__(
        self,
        rig: MeasuredRig,
        base: MeasuredRig,
        case: Case,
        settings: Settings,
        margin: Margin,
        cases: int,
        on_progress: OnProgress | None = None,
        executables: tuple[Path | None, Path | None] = (None, None),
    ) -> None:
        super().__init__(rig, base, case, case.base, case.id, settings, on_progress, executables[0])
        self.base = base
        self.base_id = case.base.id
        self.margin = margin
        self.cases = cases
        self.executables = executables
        self.screened = 0
        self.by_cycles = False
        self.first: tuple[Estimate, Verdict] | None = None
        self.comparison: SideBySide | None = None

    # -- launches

    def _launches(self) -> None:
        while True:
            self._pair()
            why = self._why_stop()
            if why is not None:
                self.gathered.ended_by = why
                break
        self.screened = len(self.gathered.launches)
        self.first = self._look()
        if self._cycles_tell(self.first[1]):
            self.by_cycles = True
            self.first = self._look()
        if self.first[1] in _SUSPICIONS and not self._at_least(self.first[1]):
            self._build_anew()
            for _ in range(max(self.screened, fewest_pairs(confirming(self.cases)))):
                self._pair()
        self.comparison = self._decide(*self.first)

    def _pair(self) -> None:
        number = len(self.gathered.launches)
        # The order alternates: the rigs change places half as often, and drift cancels.
        if number % 2:
            self._base_launch()
        self._case_launch()
        if not number % 2:
            self._base_launch()

    def _base_launch(self) -> None:
        try:
            self._reference_launch(self.base)
        except Invalid as invalid:
            raise Invalid(invalid.reason, f"the base, {self.base_id}: {invalid.evidence}") from None
        except (ProvisionError, WorkloadError) as error:
            raise type(error)(f"the base, {self.base_id}: {error}") from None

    def _turn_to(self, rig: MeasuredRig) -> None:
        super()._turn_to(rig)
        self.executable = self.executables[rig is self.base]

    def _build_anew(self) -> None:
        """Builds both rigs anew, so that chance at building (where memory lies) plays again."""
        self.rig.close()
        self.base.close()
        self.seen.clear()
        self.base.build()
        self.base.pause()
        self.rig.build()
        self.running = self.rig
        self.executable = self.executables[0]

    # -- decisions

    def _look(self) -> tuple[Estimate, Verdict]:
        ratio = self._ratio(0, LOOKED_CONFIDENCE if self.settings.repeats is None else CONFIDENCE)
        return ratio, self._verdict(ratio)

    def _verdict(self, ratio: Estimate) -> Verdict:
        return Verdict.of_change(self._allowed.change(ratio))

    @property
    def _figure(self) -> str:
        if self.by_cycles:
            return "cycles_per_packet"
        return "throughput_pps" if self.case.dimension == "throughput" else "rtt_p50_ns"

    @property
    def _allowed(self) -> Margin:
        """The margin of the figure that decides."""
        return self.margin.of_cost if self.by_cycles else self.margin

    def _cycles_tell(self, verdict: Verdict) -> bool:
        """Whether the rate decides nothing, and every pair has the switch's cycles a frame on both sides."""
        launches = (*self.gathered.launches, *self.gathered.reference)
        return self._at_least(verdict) and all(launch.cycles_per_packet for launch in launches)

    def _value(self, launch: Launch) -> float:
        return (launch.cycles_per_packet or 0.0) if self.by_cycles else main_figure(self.case, launch)

    def _ratio(self, begin: int, confidence: float) -> Estimate:
        """Returns the ratio of the pairs from the index ``begin`` on. Raises Invalid if no pair has two figures."""
        now, base = self._pairs(begin, None)
        if not now:
            raise Invalid("no-forwarding", f"{self.case_id}: no pair of launches has a figure on both sides")
        return factor(now, base, confidence)

    def _pairs(self, begin: int, end: int | None) -> tuple[list[float], list[float]]:
        """Returns the figures of the pairs in which both sides have one: a percentile takes enough samples."""
        sides = (self.gathered.launches[begin:end], self.gathered.reference[begin:end])
        now, base = ([self._value(launch) for launch in side] for side in sides)
        kept = [place for place, pair in enumerate(zip(now, base, strict=True)) if all(value > 0 for value in pair)]
        return [now[place] for place in kept], [base[place] for place in kept]

    def _why_stop(self) -> str | None:
        done, elapsed = len(self.gathered.launches), self._elapsed()
        return why_stop_after(done, self._narrow, self.settings, elapsed, (elapsed - self.repeated_s) / done)

    def _narrow(self, pairs: int) -> bool:
        self.by_cycles = self._cycles_tell(Verdict.INCONCLUSIVE)
        now, base = self._pairs(0, pairs)
        width = factor(now, base, LOOKED_CONFIDENCE).relative_half_width if now else None
        widest = min(self.settings.precision, TELLING * abs(1 - self._allowed.limit))
        self.by_cycles = False
        return width is not None and width <= widest

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

    def _decide(self, screen: Estimate, verdict: Verdict) -> SideBySide:
        """Returns the decision after a first look with this ratio and verdict. Raises Invalid."""
        ratio = screen
        begin, note, confirmed, confidence = 0, _RESTS_ON_CYCLES if self.by_cycles else None, None, CONFIDENCE
        decision = verdict
        if self._at_least(verdict):
            decision, note = Verdict.INCONCLUSIVE, AT_LEAST
        elif len(self.gathered.launches) > self.screened:
            begin, confidence = self.screened, confirming(self.cases)
            ratio = self._ratio(begin, confidence)
            confirmed = self._verdict(ratio) == verdict
            if not confirmed:
                confidence = CONFIDENCE
                ratio = self._ratio(begin, confidence)
                fresh = self._verdict(ratio)
                decision = Verdict.INCONCLUSIVE if fresh in _SUSPICIONS else fresh
                if self._at_least(fresh):
                    decision, note = Verdict.INCONCLUSIVE, AT_LEAST
                elif decision == Verdict.INCONCLUSIVE:
                    note = f"the first look said {verdict}, fresh launches do not say it surely enough"
        return SideBySide(
            base=self.base_id,
            figure=self._figure,
            decision=decision,
            ratio=ratio.value,
            ratio_low=ratio.low,
            ratio_high=ratio.high,
            confidence=confidence,
            base_value=median(self._pairs(begin, None)[1]),
            tolerated=self._allowed.tolerated,
            allowance=self._allowed.allowance,
            pairs=len(self.gathered.launches) - begin,
            screened=self.screened,
            screen=verdict,
            screen_ratio=screen.value,
            screen_low=screen.low,
            screen_high=screen.high,
            confirmed=confirmed,
            cases=self.cases,
            error_rate=SESSION_ERROR,
            note=note,
        )

    # -- progress

    def _tell(self, phase: Phase, pps: float | None) -> None:
        if phase == "preflight":
            self.detail = None
        else:
            done = len(self.gathered.launches)
            side = self.case.candidate if phase == "case" else "base"
            again = ", confirming" if self.first is not None else ""
            self.detail = f"{side} launch {done + 1}/{self._outlook(done)[1]}{again}"
        super()._tell(phase, pps)

    def _outlook(self, done: int) -> tuple[float, int]:
        if self.first is None:
            return super()._outlook(done)
        launches = self.screened + max(self.screened, fewest_pairs(confirming(self.cases)))
        return max(launches - done, 0) * self._elapsed() / max(done, 1), launches


def measure_versions(
    rigs: tuple[MeasuredRig, MeasuredRig],
    case: Case,
    settings: Settings,
    margin: Margin,
    cases: int,
    around: tuple[Surroundings, Surroundings],
    *,
    api: str | None = None,
    on_progress: OnProgress | None = None,
    executables: tuple[Path | None, Path | None] = (None, None),
) -> tuple[Measurement, Measurement]:
    """Measures a candidate beside its base.

    Args:
        rigs: the candidate's, running, and the base's, paused; at the end they are so again.
        case: the candidate's case.
        margin: the loss that is allowed.
        cases: number of comparisons in the session.
        around: the circumstances of each side's figures.
        api: the technique for a case that names none.

    Returns:
        The candidate's measurement, with ``side_by_side``, and the base's. Both are INVALID if one of them is.

    Raises:
        UsageError: the rate is a search or a sweep. Errors of ``measure`` pass through.
    """
    check_comparable(case)
    launched = replace(case, api=case.api or api)
    strategy = PairStrategy(*rigs, launched, settings, margin, cases, on_progress, executables)
    strategy.case_id, strategy.base_id = case.id, case.base.id
    try:
        strategy.run()
    finally:
        strategy.leave()
    gathered = strategy.gathered
    shared = [len(set(rig.placement.endpoints)) < len(rig.placement.endpoints) for rig in rigs]
    sides = [
        Gathered(
            launches=launches,
            rejected=rejected,
            invalid=gathered.invalid,
            faults=gathered.faults,
            repeated=[launch for launch in gathered.repeated if launch.repeated == side],
            ended_by=gathered.ended_by,
            started_at=gathered.started_at,
            duration_s=gathered.duration_s,
        )
        for launches, rejected, side in (
            (gathered.launches, gathered.rejected, "case"),
            (gathered.reference, [], "reference"),
        )
    ]
    now, base = (
        summarize(measured, settings, side, replace(surroundings, shared=crowded))
        for measured, side, surroundings, crowded in zip((case, case.base), sides, around, shared, strict=True)
    )
    return with_comparison(now, strategy.comparison), base


def with_comparison(now: Measurement, comparison: SideBySide | None) -> Measurement:
    """Returns the candidate's measurement with its comparison; unchanged without one."""
    if comparison is None:
        return now
    return replace(
        now,
        side_by_side=comparison,
        decision=comparison.decision,
        ratio_to_base=Estimate(comparison.ratio, comparison.ratio_low, comparison.ratio_high),
    )
