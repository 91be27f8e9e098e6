# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of a measurement with what was before: the findings on its figures. Pure.

With a version side by side (method 1) the decision is made already. With the sessions that a baseline keeps (method 2)
each session has one value, and the interval is that of the prediction of one more (``stats.decision.decide_session``).
The value decides together with its ratio to the reference link that was launched beside it, which tells the host from
the software. A session outside by both is a possible regression. It is measured again on fresh rigs at the session's
end, and is REGRESSED if it is outside by both again. What needs to be outside twice and by both is so by chance even
more rarely than each look's level says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_icbench.gate.entry import Baseline, Entry, entry_of
from pytest_icbench.gate.foresight import levels_of, more_sessions
from pytest_icbench.gate.limits import further, too_few_samples
from pytest_icbench.gate.margins import Allowed, Margins
from pytest_icbench.model import circumstances
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import CYCLES, Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.decision import ENOUGH_SESSIONS, Outcome, decide_session
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, Estimate

#: Notes on the figure that decides.
_PATH_FELL = "the path carries less, whatever limits it"
_RESTS_ON_CYCLES = "the rate is a bound"
_FIXED = "the rate was given"
#: Notes on why nothing is decided.
_LINK_TOO = "the reference link changed, too: the host is not as it was"
_LINK_ALONE = "worse only relative to the reference link: the host is not as it was"
_NO_LINK = "no reference link tells host from software: compare both versions (--icbench-variant)"
_SAME = "the software is the same: only the host can have changed"
_ONCE = "worse once, and not measured again (--icbench-budget)"


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """The outcome of a comparison with a baseline.

    Attributes:
        name: the baseline's name.
        findings: one for each figure that decides, the most telling one first; empty without a comparable entry.
        main: the finding on the main figure, whether it decides or not; None without a comparable entry.
        missing: why the baseline has no entry to compare with; None if it has one.
        incomparable: the facts that differ and must not; None if none does.
        treatment: the differences in what is tested, which are what an upgrade changed.
        warnings: conditions that differ.
    """

    name: str
    findings: tuple[Finding, ...] = ()
    main: Finding | None = None
    missing: str | None = None
    incomparable: str | None = None
    treatment: tuple[circumstances.Difference, ...] = ()
    warnings: tuple[str, ...] = ()


class Nearest(NamedTuple):
    """An entry that a case may be compared with.

    Attributes:
        differences: all that differs.
        hindering: those of them that must not.
    """

    entry: Entry
    differences: list[circumstances.Difference]
    hindering: list[circumstances.Difference]


@dataclass(frozen=True)
class Comparer:
    """Compares measurements with one baseline.

    Args:
        patterns: facts that have to be the same; see ``circumstances.matches``.
        cases: the number of cases of the session, which share its error rate.
    """

    baseline: Baseline
    patterns: Sequence[str] = circumstances.DEFAULT
    cases: int = 1

    def compare(self, measurement: Measurement, margins: Margins, *, retest: bool = False) -> BaselineComparison | None:
        """Compares a measurement; None for one that no baseline holds: a long run, trains of frames, INVALID.

        Args:
            retest: whether the case is measured again, since it was worse.
        """
        now = entry_of(measurement)
        return None if now is None else self.compare_entry(now, margins, measurement, retest=retest)

    def nearest(self, now: Entry) -> Nearest | None:
        """Returns the most comparable entry of the same case, the newest of several; None if there is no such case."""
        return max(
            (self._beside(now, entry) for entry in self.baseline.about(now.about)),
            key=lambda each: (-len(each.hindering), each.entry.measured),
            default=None,
        )

    def _beside(self, now: Entry, entry: Entry) -> Nearest:
        differences = circumstances.all_differences(now, entry)
        return Nearest(
            entry, differences, [each for each in differences if circumstances.matches(each.fact, self.patterns)]
        )

    def compare_entry(
        self, now: Entry, margins: Margins, measurement: Measurement | None = None, *, retest: bool = False
    ) -> BaselineComparison:
        """Compares an entry with the most comparable one of the same case.

        Args:
            measurement: the one that the entry is of; without it the time that more launches take is unknown.
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

        def find(allowed: Allowed) -> Finding:
            finding = self._plain(now, before, allowed)
            if finding.value is None or finding.baseline_value is None:
                return _without_value(finding, self.baseline, measurement)
            judged = _over_sessions(finding, now, before, allowed, self.cases * len(compared), retest=retest)
            return _of_launches(judged, now, before, measurement)

        findings = [find(allowed) for allowed in compared]
        deciding = _deciding(now, before, findings, lambda: find(margins.of_cycles()))
        return BaselineComparison(name, tuple(deciding), findings[0], treatment=changed, warnings=warnings)

    def _plain(self, now: Entry, before: Entry, allowed: Allowed) -> Finding:
        """Returns a finding without a verdict. What is not positive counts as no value."""
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


def _without_value(finding: Finding, baseline: Baseline, measurement: Measurement | None) -> Finding:
    """Returns the finding on a figure that one of the two does not have."""
    if finding.value is not None:
        return replace(finding, reason="few", note=f"{baseline.noun} has no value")
    lacking = too_few_samples(finding, measurement) if measurement is not None else None
    return lacking or replace(finding, reason="few", note="no value")


def _of_launches(judged: Finding, now: Entry, before: Entry, measurement: Measurement | None) -> Finding:
    """Returns the finding unless the new session's launches decide nothing: "at least", or too few of them."""
    worse = judged.retest or judged.verdict == Verdict.REGRESSED
    if judged.name == "throughput_pps" and (now.lower_bound or before.lower_bound):
        # What is "at least" can still fall, and be fallen short of: the path is slower, whatever limits it.
        bound = replace(judged, at_least=now.lower_bound, value_high=None if now.lower_bound else judged.value_high)
        if worse:
            return replace(bound, note=judged.note or (_PATH_FELL if now.lower_bound else None))
        return replace(bound, verdict=Verdict.INCONCLUSIVE, reason="bound", note=None, more=None)
    if judged.value_low is not None:
        return judged
    plain = replace(judged, verdict=Verdict.INCONCLUSIVE, reason="few", note=None, more=None, retest=False)
    if measurement is not None:
        return too_few_samples(plain, measurement) or further(plain, measurement)
    more = max(FEWEST_LAUNCHES - now.launches, 0) or None
    return replace(plain, unit="launch", units=now.launches, more=more)


def _deciding(now: Entry, before: Entry, findings: list[Finding], find_cycles: Callable[[], Finding]) -> list[Finding]:
    """Returns the findings on the figures that can tell, of which the first is about the main figure.

    A rate that is "at least" tells of a path that fell, but not of a switch that had time left. The switch's own cycles
    a frame take its place, where both sides have them. They stand beside a given rate for the same reason.
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


def _over_sessions(
    finding: Finding, now: Entry, before: Entry, allowed: Allowed, cases: int, *, retest: bool
) -> Finding:
    """Returns the finding with the verdict on its figure, which has a positive value on both sides.

    Args:
        cases: the number of figures of the session that share its error rate.
        retest: whether the case is measured again, since it was worse.
    """
    sides = levels_of(allowed.name, before, now.distance_ns)
    if not sides:
        return _too_few(finding, now, before)
    of_now = [values.get(allowed.name) for values in (now.values.values, now.values.against)]
    known = [(value, levels) for value, levels in zip(of_now, sides, strict=False) if value is not None and value > 0]
    decisions = [decide_session(value, levels, allowed.allowance, cases) for value, levels in known]
    # A loss has to be found on both sides, so the less sure one counts.
    weak = any(decision.weak for decision in decisions)
    own, *others = [decision.ratio for decision in decisions]
    value = known[0][0]
    judged: dict[str, Any] = {
        "value": value,
        "baseline_value": value / own.value,
        "ratio": own.value,
        "ratio_low": own.low,
        "ratio_high": own.high,
        "against_control": Estimate(others[0], others[0].low, others[0].high) if others else None,
        "unit": "session",
        "units": len(known[0][1][-1]),
        "finds": max(decision.finds for decision in decisions if decision.finds is not None),
        "weak": weak,
    }
    finding = replace(finding, **judged)
    outcomes = [decision.outcome for decision in decisions]
    spread_hides = outcomes == ["open", "worse"]
    if "worse" in outcomes and not spread_hides:
        if set(outcomes) == {"worse"} and _same_software(now, before):
            return replace(finding, reason="host", note=_SAME)
        return _of_worse(finding, outcomes, retest=retest)
    if spread_hides or (weak and outcomes != ["better", "better"]):
        return replace(
            finding, reason="spread", more=more_sessions([side for _, side in known], allowed.allowance, cases)
        )
    return replace(finding, verdict=Verdict.IMPROVED if outcomes == ["better", "better"] else Verdict.PASS)


def _same_software(now: Entry, before: Entry) -> bool:
    """Whether no part of what is tested has changed since the newest session, as far as both say how it is started."""
    known = now.old is not None and before.old is not None and before.old.same(now.old)
    return known and now.treatment.get("switch") == before.treatment.get("switch")


def _of_worse(finding: Finding, outcomes: Sequence[Outcome], *, retest: bool) -> Finding:
    """Returns the finding on a figure that is worse by itself, relative to the reference link, or by both."""
    if set(outcomes) != {"worse"}:
        return replace(finding, reason="host", note=_LINK_TOO if outcomes[0] == "worse" else _LINK_ALONE)
    if not retest:
        return replace(finding, reason="few", note=_ONCE, retest=True)
    if len(outcomes) == 1:
        return replace(finding, reason="host", note=_NO_LINK)
    return replace(finding, verdict=Verdict.REGRESSED)


def _too_few(finding: Finding, now: Entry, before: Entry) -> Finding:
    """Returns the finding beside too few sessions, with the ratio of both values and what their launches leave open."""
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


def against_base(
    now: Measurement, base: Measurement | None, margins: Margins, baseline: str | None = None
) -> BaselineComparison | None:
    """Returns the candidate's comparison as the gate judges it; None if it is no number.

    Args:
        now: the candidate's measurement.
        base: the base's measurement; without it the comparison lists no differences.
        margins: those of the base, which takes the place of a baseline.
        baseline: the name of the baseline whose version is the base, on a retest.
    """
    comparison = now.side_by_side
    if comparison is None:
        return None
    allowed = margins.of_cycles() if comparison.figure == CYCLES else margins.of(now.dimension)[0]
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
        for difference in (circumstances.differences(now, base, ("treatment",)) if base is not None else ())
        if not difference.fact.startswith(("treatment.cpus", f"treatment.{CANDIDATE_KEY}"))
    )
    return BaselineComparison(finding.baseline or "", (finding,), finding, treatment=changed)
