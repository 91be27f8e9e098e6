# SPDX-License-Identifier: BSD-3-Clause
"""Compares two versions side by side: launches them in pairs, each on two rigs that are built for it.

``measure.stopping`` and ``stats.verdict_rule`` decide. A coin says for each pair which of the two is built last and
launched first. A pair whose launches met the host in two states is left out. A rate that is "at least" shows a slower
path, but not a slower switch that had time left. If both versions report the cycles that the switch spends on a frame,
these may decide. With a separate allowance they are judged in addition to the rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

from pytest_icbench.errors import Invalid, ProvisionError, WorkloadError
from pytest_icbench.measure.case_progress import OnProgress, Phase
from pytest_icbench.measure.estimate import RIG_OVERHEAD_S, launch_estimate_s
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.repetition import Strategy
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.stopping import Criteria, Series, fewest_comparing, why_stop_comparing
from pytest_icbench.measure.summary.launch_log import LaunchLog, main_figure, split_by_state
from pytest_icbench.measure.summary.summarize import Environment, Summary, summarize
from pytest_icbench.model.figures import BY_KIND
from pytest_icbench.model.finding import SideBySide
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import CYCLES, Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.stats.quantiles import Estimate, median
from pytest_icbench.stats.states import has_changed
from pytest_icbench.stats.verdict_rule import SESSION_ERROR, Allowance, Decision, decide_pairs

_RESTS_ON_CYCLES = "the rate is only 'at least', so the switch's cycles a frame decide"
_CYCLES_ROSE = "the rate has not changed beyond its allowance, the switch's cycles a frame decide"


class PairStrategy(Strategy):
    """Runs pairs of launches of a candidate and its base; one rig runs at a time.

    Args:
        candidate: the candidate on its rig.
        base: its base on another rig.
        criteria: what decides the comparison.
        summary: how launches of the case's kind become a measurement. Other arguments are those of ``Strategy``.
    """

    def __init__(
        self,
        candidate: Side,
        base: Side,
        settings: Settings,
        criteria: Criteria,
        summary: Summary,
        on_progress: OnProgress | None = None,
    ) -> None:
        super().__init__(candidate, base, settings, on_progress)
        self._summary = summary
        self.base = base.rig
        self.base_id = base.case.id
        self.allowed = criteria.allowed
        self.cases = criteria.cases
        self.comparison: SideBySide | None = None
        self._order = Random()
        self._pair_s = launch_estimate_s(settings, reference=True) + 2 * RIG_OVERHEAD_S

    # -- launches

    def _launches(self) -> None:
        why = None
        while why is None:
            began = time.monotonic()
            self.round = len(self.gathered.launches)
            self._pair(candidate_first=self._order.random() < 0.5)
            self._pair_s = time.monotonic() - began
            left_s = self.settings.max_duration_s - self._elapsed() - self._pair_s
            figures = self._figures()
            series = [Series(tuple(self._ratios(figure)), self._allowance(figure)) for figure in figures]
            why = why_stop_comparing(self._done, series, self.settings, self.cases * len(figures), left_s)
        self.gathered.ended_by = why
        self.comparison = self._decide()

    @property
    def _done(self) -> int:
        return len(self.gathered.launches)

    def _pair(self, *, candidate_first: bool) -> None:
        """Builds two rigs for a pair of launches, even the first pair, and runs it; a coin orders rigs and launches."""
        self._build_anew(candidate_first)
        launches = [self._case_launch, self._base_launch]
        first, second = launches if candidate_first else launches[::-1]
        first()
        side = self.gathered.launches if candidate_first else self.gathered.reference
        self._await_state(side[-1].distance_ns)
        second()

    def _base_launch(self) -> None:
        with _named(self.base_id):
            self._reference_launch(self.base)

    def _build_anew(self, candidate_first: bool) -> None:
        """Builds both rigs anew, so that chance at building (where memory lies) plays again.

        The one that is launched first is built last, and runs. Over two hosts it alone is built: its turn builds the
        other one, which takes the same NICs.
        """
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

    def _build(self, rig: MeasuredRig) -> None:
        if rig is self.rig:
            rig.build()
            return
        with _named(self.base_id):
            rig.build()

    # -- decisions

    @property
    def _main(self) -> str:
        return BY_KIND[self.case.kind].MAIN

    def _figures(self) -> list[str]:
        """Returns the figures that may decide, the main figure first."""
        cycles = self._cycles_known() and (self.allowed.cycles_named or self._at_least())
        return [self._main, CYCLES] if cycles else [self._main]

    def _allowance(self, figure: str) -> Allowance:
        return self.allowed.cycles if figure == CYCLES else self.allowed.main

    def _cycles_known(self) -> bool:
        """Whether every launch of both sides has the switch's cycles a frame, and they can stand for the rate."""
        if not self.case.one_way:
            return False
        return all(launch.cycles_per_packet for launch in (*self.gathered.launches, *self.gathered.reference))

    def _value(self, figure: str, launch: Launch) -> float:
        return (launch.cycles_per_packet or 0.0) if figure == CYCLES else main_figure(self.case, launch)

    def _values(self, figure: str, *, any_state: bool = False) -> list[tuple[float, float]]:
        """Returns a figure of candidate and base in the pairs in which both have one, in one state of the host.

        All four readings of a pair have to be of one state: the mean of a launch in which the state changed can look
        like either state. A percentile takes enough samples.
        """
        pairs = zip(self.gathered.launches, self.gathered.reference, strict=True)
        alike = [(new, old) for new, old in pairs if any_state or not has_changed(new.distances_ns + old.distances_ns)]
        values = [(self._value(figure, new), self._value(figure, old)) for new, old in alike]
        return [(new, old) for new, old in values if new > 0 and old > 0]

    def _ratios(self, figure: str, *, any_state: bool = False) -> list[float]:
        return [new / old for new, old in self._values(figure, any_state=any_state)]

    def _at_least(self) -> bool:
        """Whether the rates are lower bounds."""
        if not self.case.one_way:
            return False
        return any(
            launches and self._summary.bottleneck(self.case, launches, self._around(rig)).lower_bound
            for launches, rig in ((self.gathered.launches, self.rig), (self.gathered.reference, self.base))
        )

    @staticmethod
    def _around(rig: MeasuredRig) -> Environment:
        return Environment(rig.placement.policy, tuple(rig.endpoints), shared=_shares_a_cpu(rig))

    def _decision(self, figure: str, figures: int) -> Decision:
        """Returns the decision on a figure. Raises Invalid if no pair of launches has two values."""
        ratios = self._ratios(figure)
        if ratios:
            decision = decide_pairs(ratios, self._allowance(figure), self.cases * figures)
            changed = decision.reason == "few" and len(ratios) + (decision.more or 0) <= self._done
            return replace(decision, reason="state") if changed else decision
        apart = self._ratios(figure, any_state=True)
        if not apart:
            raise Invalid("no-forwarding", f"{self.case_id}: no pair of launches has a value on both sides")
        return Decision("open", Estimate(median(apart)), reason="state")

    def _decide(self) -> SideBySide:
        """Returns the decision on the figure that decides. Raises Invalid."""
        figures = self._figures()
        figure, note = self._main, None
        decision = self._decision(figure, len(figures))
        bound = self._at_least() and decision.outcome != "worse"  # what is "at least" can still fall
        if len(figures) > 1:
            cycles = self._decision(CYCLES, len(figures))
            if bound or _worse(cycles, decision):
                figure, decision, note = CYCLES, cycles, _RESTS_ON_CYCLES if bound else _CYCLES_ROSE
        elif bound:
            decision = Decision("open", decision.ratio, reason="bound")
        values = self._values(figure) or self._values(figure, any_state=True)
        return SideBySide(
            base=self.base_id,
            figure=figure,
            decision=Verdict.of_outcome(decision.outcome),
            reason=decision.reason,
            ratio=decision.ratio.value,
            ratio_low=decision.ratio.low,
            ratio_high=decision.ratio.high,
            finds=decision.power.finds,
            weak=decision.power.weak,
            base_value=median([base for _, base in values]),
            allowance=self._allowance(figure).share,
            pairs=len(self._ratios(figure)),
            dropped=len(self._ratios(figure, any_state=True)) - len(self._ratios(figure)),
            more_pairs=decision.more,
            cases=self.cases,
            error_rate=SESSION_ERROR,
            note=note,
        )

    # -- progress

    def _tell(self, phase: Phase, pps: float | None) -> None:
        if phase in ("preflight", "waiting"):
            self.detail = None
        else:
            side = (self.case.candidate or "candidate") if phase == "case" else "base"
            self.detail = f"{side} launch {self._done + 1}/{self._outlook(self._done)[1]}"
        super()._tell(phase, pps)

    def _outlook(self, done: int) -> tuple[float, int]:
        elapsed, fewest = self._elapsed(), fewest_comparing(self.settings, self.cases)
        launches = max(fewest, done + 1)
        pair_s = elapsed / done if done else self._pair_s
        left_s = (launches - done) * pair_s
        if self.settings.repeats is None and launches > fewest:
            left_s = min(left_s, max(self.settings.max_duration_s - elapsed, 0.0))
        return left_s, launches


def _worse(one: Decision, other: Decision) -> bool:
    """Whether a decision that is not good news counts before another one."""
    verdicts = [Verdict.of_outcome(decision.outcome) for decision in (one, other)]
    return ORDER.index(verdicts[0]) < ORDER.index(verdicts[1]) and verdicts[0] != Verdict.IMPROVED


@contextmanager
def _named(base: str) -> Iterator[None]:
    """Puts the base's id before what goes wrong there."""
    try:
        yield
    except Invalid as invalid:
        raise Invalid(invalid.reason, f"the base, {base}: {invalid.evidence}") from None
    except (ProvisionError, WorkloadError) as error:
        raise type(error)(f"the base, {base}: {error}") from None


def measure_side_by_side(
    summary: Summary,
    candidate: Side,
    base: Side,
    settings: Settings,
    criteria: Criteria,
    on_progress: OnProgress | None = None,
) -> tuple[Measurement, Measurement]:
    """Measures a candidate side by side with its base.

    Args:
        summary: how launches of the case's kind become a measurement.
        candidate: the candidate on its rig, running.
        base: its base on another rig, paused. At the end the rigs are as before.
        criteria: what decides the comparison.

    Returns:
        The candidate's measurement, with ``side_by_side``, and the base's. Both are INVALID if one of them is.

    Raises:
        WorkloadError: a process failed; with the tail of its log.
        ProvisionError: a rig could not be built anew, paused or resumed.
    """
    strategy = PairStrategy(candidate, base, settings, criteria, summary, on_progress)
    strategy.run_and_leave()
    gathered = split_by_state(strategy.gathered)  # both sides in one state
    logs = [
        LaunchLog(
            launches=launches,
            rejected=rejected,
            invalid=gathered.invalid,
            faults=gathered.faults,
            repeated=[launch for launch in gathered.repeated if launch.repeated == phase],
            others=[replace(launch, repeated="case") for launch in gathered.others if launch.repeated == phase],
            ended_by=gathered.ended_by,
            started_at=gathered.started_at,
            duration_s=gathered.duration_s,
            clock_step_s=gathered.clock_step_s,
        )
        for launches, rejected, phase in (
            (gathered.launches, gathered.rejected, "case"),
            (gathered.reference, [], "reference"),
        )
    ]
    now, then = (
        summarize(summary, side.case, settings, log, side.environment(shared=_shares_a_cpu(side.rig)))
        for side, log in zip((candidate, base), logs, strict=True)
    )
    return with_comparison(now, strategy.comparison), then


def _shares_a_cpu(rig: MeasuredRig) -> bool:
    """Whether two endpoints of a rig on one host have the same CPU."""
    return len(set(rig.placement.endpoints)) < len(rig.placement.endpoints)


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
