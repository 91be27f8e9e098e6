# SPDX-License-Identifier: BSD-3-Clause
"""Compares a measurement with its base or its baseline, and returns a finding for each figure. Pure.

Method 1, versions side by side: the pairs have made the decision already.

Method 2, the sessions of a baseline: each session counts by one value. The interval is a prediction interval for one
more session (``stats.verdict_rule.decide_session``). The value and its ratio to the reference link are judged alike,
since the ratio separates the software from the host. A session outside both intervals is a possible regression. A
retest on rebuilt rigs at the session's end decides: REGRESSED if it is outside both again. Both conditions make a false
alarm rarer than the level of each test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pytest_icbench.gate.entry import Baseline, Entry, Levels, make_entry
from pytest_icbench.gate.limits import estimate_effort, explain_few_samples
from pytest_icbench.gate.margins import FigureAllowance, Margins
from pytest_icbench.model import comparability
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import CYCLES, Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.intervals import estimate_spread
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, Estimate
from pytest_icbench.stats.verdict_rule import (
    ENOUGH_SESSIONS,
    MOST_SESSIONS,
    Allowance,
    Outcome,
    Power,
    decide_session,
    session_power,
)

#: Notes on the figure that decides.
_PATH_FELL = "the path carries less, whatever limits it"
_RESTS_ON_CYCLES = "the rate is a bound"
_FIXED = "the rate was given"
#: Notes on why nothing is decided.
_LINK_TOO = "the reference link changed, too: the host is not as it was"
_LINK_ALONE = "worse only relative to the reference link: the host is not as it was"
_NO_LINK = "no reference link tells host from software: compare both versions (--icbench-candidate)"
_SAME = "the software is the same: only the host can have changed"
_ONCE = "worse once, and not measured again (--icbench-budget)"


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """The outcome of a comparison with a baseline.

    Attributes:
        name: the baseline's name.
        findings: one for each figure that decides, the most important one first; empty without a comparable entry.
        main: the finding on the main figure, whether it decides or not; None without a comparable entry.
        missing: why the baseline has no entry to compare with; None if it has one.
        incomparable: the facts that must match and differ; None if all match.
        treatment: the differences between the versions tested.
        warnings: conditions that differ.
    """

    name: str
    findings: tuple[Finding, ...] = ()
    main: Finding | None = None
    missing: str | None = None
    incomparable: str | None = None
    treatment: tuple[comparability.Difference, ...] = ()
    warnings: tuple[str, ...] = ()


class NearestEntry(NamedTuple):
    """A baseline's entry of the same case, with its differences from the new one.

    Attributes:
        differences: all facts that differ.
        hindering: those of them that must match.
    """

    entry: Entry
    differences: list[comparability.Difference]
    hindering: list[comparability.Difference]


@dataclass(frozen=True)
class Comparer:
    """Compares measurements with one baseline.

    Args:
        patterns: facts that must match; see ``comparability.matches``.
        cases: number of cases of the session, which share its error rate.
    """

    baseline: Baseline
    patterns: Sequence[str] = comparability.DEFAULT
    cases: int = 1

    def compare(self, measurement: Measurement, margins: Margins, *, retest: bool = False) -> BaselineComparison | None:
        """Compares a measurement. Returns None if baselines hold no such ones: long runs, trains of frames, INVALID.

        Args:
            retest: whether this is the retest of a possible regression.
        """
        now = make_entry(measurement)
        return None if now is None else self.compare_entry(now, margins, measurement, retest=retest)

    def nearest(self, now: Entry) -> NearestEntry | None:
        """Returns the most comparable entry of the same case, the newest of several; None if there is no such case."""
        return max(
            (self._find_differences(now, entry) for entry in self.baseline.about(now.about)),
            key=lambda each: (-len(each.hindering), each.entry.measured),
            default=None,
        )

    def _find_differences(self, now: Entry, entry: Entry) -> NearestEntry:
        differences = comparability.all_differences(now, entry)
        return NearestEntry(
            entry, differences, [each for each in differences if comparability.matches(each.fact, self.patterns)]
        )

    def compare_entry(
        self, now: Entry, margins: Margins, measurement: Measurement | None = None, *, retest: bool = False
    ) -> BaselineComparison:
        """Compares an entry with the most comparable one of the same case.

        Args:
            measurement: the measurement of the entry; without it the time for more launches is unknown.
            retest: as in ``compare``.
        """
        name = self.baseline.name
        nearest = self.nearest(now)
        if nearest is None:
            return BaselineComparison(name, missing=f"{self.baseline.title} has no such case")
        before, differences = nearest.entry, nearest.differences
        changed = tuple(difference for difference in differences if difference.fact.startswith("treatment."))
        if nearest.hindering:
            reasons = "; ".join(map(str, nearest.hindering))
            return BaselineComparison(name, incomparable=f"{self.baseline.title}: {reasons}", treatment=changed)
        warnings = tuple(str(difference) for difference in differences if difference.fact.startswith("conditions."))
        compared = margins.of(now.dimension)

        def find(allowed: FigureAllowance) -> Finding:
            finding = self._unjudged_finding(now, before, allowed)
            if finding.value is None or finding.baseline_value is None:
                return _explain_missing_value(finding, self.baseline, measurement)
            judged = _judge_by_sessions(finding, now, before, allowed, self.cases * len(compared), retest=retest)
            return _check_launches(judged, now, before, measurement)

        findings = [find(allowed) for allowed in compared]
        deciding = _select_deciding(now, before, findings, lambda: find(margins.for_cycles()))
        return BaselineComparison(name, tuple(deciding), findings[0], treatment=changed, warnings=warnings)

    def _unjudged_finding(self, now: Entry, before: Entry, allowed: FigureAllowance) -> Finding:
        """Returns a finding with the values and no decision yet. A value that is not positive counts as missing."""
        new, old = now.figures.get(allowed.name), before.figures.get(allowed.name)
        return Finding(
            allowed.name,
            allowed.kind,
            allowed.allowance.share,
            allowed.source,
            Verdict.INCONCLUSIVE,
            baseline=self.baseline.name,
            measured=before.measured,
            value=new.value if new and new.value > 0 else None,
            value_low=new.low if new else None,
            value_high=new.high if new else None,
            baseline_value=old.value if old and old.value > 0 else None,
        )


def _explain_missing_value(finding: Finding, baseline: Baseline, measurement: Measurement | None) -> Finding:
    """Returns the finding on a figure that the new or the old entry lacks."""
    if finding.value is not None:
        return replace(finding, reason="few", note=f"{baseline.noun} has no value")
    lacking = explain_few_samples(finding, measurement) if measurement is not None else None
    return lacking or replace(finding, reason="few", note="no value")


def _check_launches(judged: Finding, now: Entry, before: Entry, measurement: Measurement | None) -> Finding:
    """Returns the finding, or INCONCLUSIVE if the new session's launches cannot decide: a bound, or too few of them."""
    worse = judged.retest or judged.verdict == Verdict.REGRESSED
    if judged.name == "throughput_pps" and (now.lower_bound or before.lower_bound):
        # A lower bound can still fall, or be missed by a later rate: then the path is slower, whatever limits it.
        bound = replace(judged, at_least=now.lower_bound, value_high=None if now.lower_bound else judged.value_high)
        if worse:
            return replace(bound, note=judged.note or (_PATH_FELL if now.lower_bound else None))
        return replace(bound, verdict=Verdict.INCONCLUSIVE, reason="bound", note=None, more=None)
    if judged.value_low is not None:
        return judged
    plain = replace(judged, verdict=Verdict.INCONCLUSIVE, reason="few", note=None, more=None, retest=False)
    if measurement is not None:
        return explain_few_samples(plain, measurement) or estimate_effort(plain, measurement)
    more = max(FEWEST_LAUNCHES - now.launches, 0) or None
    return replace(plain, unit="launch", units=now.launches, more=more)


def _select_deciding(
    now: Entry, before: Entry, findings: list[Finding], find_cycles: Callable[[], Finding]
) -> list[Finding]:
    """Returns the findings on the figures that decide, the main one first.

    A lower bound of a rate shows a slower path, but not a slower switch that had time left. The switch's cycles a frame
    replace it if both entries have them. They complement a fixed rate for the same reason.
    """
    known = all(CYCLES in entry.figures for entry in (now, before))
    bound = findings[0].reason == "bound"
    if not known or not (bound or now.metric == "fixed"):
        return findings
    cycles = find_cycles()
    if cycles.verdict != Verdict.INCONCLUSIVE:
        cycles = replace(cycles, note=_RESTS_ON_CYCLES if bound else _FIXED)
    others = [finding for finding in findings if finding.name != CYCLES]
    return [cycles, *(others[1:] if bound else others)]


def _judge_by_sessions(
    finding: Finding, now: Entry, before: Entry, allowed: FigureAllowance, cases: int, *, retest: bool
) -> Finding:
    """Returns the finding with its verdict by method 2. Both entries have a positive value of the figure.

    Args:
        cases: number of the session's figures, which share its error rate.
        retest: whether this is the retest of a possible regression.
    """
    sides = before.collect_levels(allowed.name, now.distance_ns)
    if not sides:
        return _report_few_sessions(finding, now, before)
    of_now = [values.get(allowed.name) for values in (now.values.values, now.values.against)]
    known = [(value, levels) for value, levels in zip(of_now, sides, strict=False) if value is not None and value > 0]
    decisions = [decide_session(value, levels, allowed.allowance, cases) for value, levels in known]
    # A loss has to be found in the value and in the ratio, so the less certain one counts.
    weak = any(decision.power.weak for decision in decisions)
    own, *others = [decision.ratio for decision in decisions]
    value = known[0][0]
    finding = replace(
        finding,
        value=value,
        baseline_value=value / own.value,
        ratio=own.value,
        ratio_low=own.low,
        ratio_high=own.high,
        relative_to_control=Estimate(others[0], others[0].low, others[0].high) if others else None,
        unit="session",
        units=len(known[0][1][-1]),
        finds=max(decision.power.finds or 0.0 for decision in decisions),
        weak=weak,
    )
    outcomes = [decision.outcome for decision in decisions]
    spread_hides = outcomes == ["open", "worse"]
    if "worse" in outcomes and not spread_hides:
        if set(outcomes) == {"worse"} and _same_software(now, before):
            return replace(finding, reason="host", note=_SAME)
        return _judge_loss(finding, outcomes, retest=retest)
    if spread_hides or (weak and outcomes != ["better", "better"]):
        return replace(
            finding, reason="spread", more=_count_more_sessions([side for _, side in known], allowed.allowance, cases)
        )
    return replace(finding, verdict=Verdict.IMPROVED if outcomes == ["better", "better"] else Verdict.PASS)


def compute_power(sides: Sequence[Levels], allowance: Allowance, cases: int, more: int = 0) -> Power:
    """Returns the power of a comparison with earlier sessions (``Entry.collect_levels``).

    A loss has to be found in the value and in its ratio to the reference link, so the less certain of both counts.

    Args:
        cases: number of the session's figures, which share its error rate.
        more: sessions that are still to be saved.
    """
    powers = []
    for levels in sides:
        if (spread := estimate_spread(levels)) is not None:
            later = replace(spread, freedom=spread.freedom + more)
            powers.append(session_power(later, len(levels[-1]) + more, allowance, cases))
    found = max((power.finds for power in powers if power.finds is not None), default=None)
    return Power(found, any(power.weak for power in powers) or not powers)


def compute_power_before(before: Entry, allowed: FigureAllowance, cases: int) -> Power:
    """Returns the power of a comparison with a baseline's entry, in the state of its newest session."""
    return compute_power(before.collect_levels(allowed.name, before.distance_ns), allowed.allowance, cases)


def _count_more_sessions(sides: Sequence[Levels], allowance: Allowance, cases: int) -> int | None:
    """Returns how many more sessions a baseline needs for enough power; None if ``MOST_SESSIONS`` are not enough."""
    room = MOST_SESSIONS - min(len(levels[-1]) for levels in sides)
    enough = (more for more in range(1, room + 1) if not compute_power(sides, allowance, cases, more).weak)
    return next(enough, None)


def _same_software(now: Entry, before: Entry) -> bool:
    """Whether nothing tested has changed since the newest session, as far as both entries say how it is started."""
    known = now.old is not None and before.old is not None and before.old.same(now.old)
    return known and now.treatment.get("switch") == before.treatment.get("switch")


def _judge_loss(finding: Finding, outcomes: Sequence[Outcome], *, retest: bool) -> Finding:
    """Returns the finding on a figure whose value, or whose ratio to the reference link, is worse."""
    if set(outcomes) != {"worse"}:
        return replace(finding, reason="host", note=_LINK_TOO if outcomes[0] == "worse" else _LINK_ALONE)
    if not retest:
        return replace(finding, reason="few", note=_ONCE, retest=True)
    if len(outcomes) == 1:
        return replace(finding, reason="host", note=_NO_LINK)
    return replace(finding, verdict=Verdict.REGRESSED)


def _report_few_sessions(finding: Finding, now: Entry, before: Entry) -> Finding:
    """Returns the finding with too few sessions: the ratio of both values, with the quotients of their ends."""
    new, old = now.figures[finding.name], before.figures[finding.name]
    ends: tuple[float | None, float | None] = (None, None)
    if new.low is not None and new.high is not None and old.low and old.high:
        ends = new.low / old.high, new.high / old.low
    alike = len(before.in_state(now.distance_ns))
    moved = alike < len(before.sessions)
    return replace(
        finding,
        ratio=new.value / old.value,
        ratio_low=ends[0],
        ratio_high=ends[1],
        unit="session",
        units=alike,
        weak=True,
        reason="state" if moved else "few",
        more=None if moved else max(ENOUGH_SESSIONS - alike, 1),
    )


def compare_with_base(
    now: Measurement, base: Measurement | None, margins: Margins, baseline: str | None = None
) -> BaselineComparison | None:
    """Returns the comparison of a candidate with its base; None if the candidate's measurement has no value.

    Args:
        now: the candidate's measurement.
        base: the base's measurement; without it the comparison lists no differences.
        margins: the margins of the base.
        baseline: on a retest, the baseline whose version is the base.
    """
    comparison = now.side_by_side
    if comparison is None:
        return None
    allowed = margins.for_cycles() if comparison.figure == CYCLES else margins.of(now.dimension)[0]
    more, pairs = comparison.more_pairs, comparison.pairs + comparison.dropped
    note = None if comparison.reason else comparison.note
    if comparison.reason == "state":
        some = f"{comparison.dropped} of {pairs} pairs met the host's CPUs in two states"
        note = some if comparison.pairs else "no pair met the host's CPUs in one state"
    finding = Finding(
        name=comparison.figure,
        kind=allowed.kind,
        limit=comparison.allowance,
        source=allowed.source,
        verdict=comparison.decision,
        value=comparison.ratio * comparison.base_value,
        baseline=baseline or comparison.base,
        baseline_value=comparison.base_value,
        ratio=comparison.ratio,
        ratio_low=comparison.ratio_low,
        ratio_high=comparison.ratio_high,
        unit="pair",
        units=comparison.pairs,
        finds=comparison.finds,
        weak=comparison.weak,
        reason=comparison.reason,
        note=note,
        more=more,
        more_s=None if more is None else more * now.duration_s / pairs,
    )
    changed = tuple(
        difference
        for difference in (comparability.differences(now, base, ("treatment",)) if base is not None else ())
        if not difference.fact.startswith(("treatment.cpus", f"treatment.{CANDIDATE_KEY}"))
    )
    return BaselineComparison(finding.baseline or "", (finding,), finding, treatment=changed)
