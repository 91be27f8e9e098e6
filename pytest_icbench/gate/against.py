# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of a measurement with a baseline: which entry it may be compared with, and the findings. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_icbench.gate.best_launches import BEST
from pytest_icbench.gate.entry import SEARCHED, Baseline, Entry, entry_of
from pytest_icbench.gate.limits import Effort, further, too_few_samples
from pytest_icbench.gate.margins import CYCLES, Allowed, Margins
from pytest_icbench.gate.other_cases import OtherCase, other_case, together
from pytest_icbench.gate.over_sessions import SessionVerdict, over_sessions
from pytest_icbench.model import circumstances
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.stats.sessions import as_wide_as
from pytest_icbench.stats.states import same_state

#: The note on a rate that is "at least", of a switch that does not tell its cycles a frame.
_AT_LEAST = (
    "the switch was not the limit, so the rate is only 'at least': more endpoints' cores, a search or a round trip"
    " would tell"
)
#: The note on a rate that is "at least" and fell all the same.
_PATH_FELL = "the switch was not the limit, and the path carries less all the same"
#: The note on a verdict that rests on the switch's cycles.
_RESTS_ON_CYCLES = "it decides: the rate is only 'at least'"
_FIXED = "it decides: the rate was given"


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
    #: What each case that was compared says of the host, by its switch and its key.
    _heard: dict[str, dict[str, OtherCase]] = field(default_factory=dict, init=False, repr=False, compare=False)
    #: What the cases of a switch say together: a session may have thousands.
    _said: dict[str, OtherCase] = field(default_factory=dict, init=False, repr=False, compare=False)

    def compare(self, measurement: Measurement, margins: Margins, *, first: bool = False) -> BaselineComparison | None:
        """Compares a measurement; None for one that no baseline holds: a long run, trains of frames, INVALID.

        Args:
            first: whether this is a first look, after which a suspect is measured again.
        """
        now = entry_of(measurement)
        if now is None:
            return None
        return self.compare_entry(now, margins, measurement, first=first)

    def compare_entry(
        self, now: Entry, margins: Margins, measurement: Measurement | None = None, *, first: bool = False
    ) -> BaselineComparison:
        """Compares an entry with the most comparable one of the same case, the newest of several.

        Args:
            measurement: the one that the entry is of; without it the time that more launches take is unknown.
            first: as in ``compare``.
        """
        name = self.baseline.name
        candidates = self.baseline.about(now)
        if not candidates:
            return BaselineComparison(name, missing=f"{self.baseline.title} has no such case")
        ranked = [self._rank(circumstances.all_differences(now, entry), entry) for entry in candidates]
        fewest = min(len(hindering) for hindering, _, _ in ranked)
        hindering, differences, before = max(
            (ranking for ranking in ranked if len(ranking[0]) == fewest), key=lambda ranking: ranking[2].measured
        )
        changed = tuple(difference for difference in differences if difference.fact.startswith("treatment."))
        if hindering:
            reasons = "; ".join(map(str, hindering))
            return BaselineComparison(name, incomparable=f"{self.baseline.title}: {reasons}", treatment=changed)
        warnings = tuple(str(difference) for difference in differences if difference.fact.startswith("conditions."))
        compared = margins.of(now.dimension)
        shares = self.cases * len(compared)
        if (heard := other_case(now.values, before.in_state(now.distance_ns), compared[0])) is not None:
            self._hear(now, heard)
        others = [said for switch, said in self._said.items() if switch != now.switch]

        def find(allowed: Allowed) -> Finding:
            return self._find(now, before, allowed, measurement, shares, others, first=first)

        findings = [find(allowed) for allowed in compared]
        deciding = self._deciding(now, before, findings, lambda: find(margins.of_cycles()))
        return BaselineComparison(name, tuple(deciding), findings[0], treatment=changed, warnings=warnings)

    def _hear(self, now: Entry, case: OtherCase) -> None:
        """Adds what a case says of the host, in place of what it said at its first look."""
        of_switch = self._heard.setdefault(now.switch, {})
        new = now.key not in of_switch
        of_switch[now.key] = case
        said = self._said.get(now.switch)
        self._said[now.switch] = together([said, case] if new and said is not None else of_switch.values())

    def _deciding(
        self, now: Entry, before: Entry, findings: list[Finding], find_cycles: Callable[[], Finding]
    ) -> list[Finding]:
        """The findings on the figures that can tell, of which the first is about the main figure.

        A rate that is "at least" tells of a path that fell, but not of a switch that had time left. The switch's own
        cycles a frame take its place, where both sides have them. They stand beside a given rate for the same reason.
        """
        told = all(CYCLES in entry.figures for entry in (now, before))
        silent = findings[0].note == _AT_LEAST
        if now.dimension != "throughput" or not told or not (silent or now.metric == "fixed"):
            return findings
        cycles = find_cycles()
        if cycles.verdict != Verdict.INCONCLUSIVE:
            rests = _RESTS_ON_CYCLES if silent else _FIXED
            cycles = replace(cycles, note=f"{rests}; {cycles.note}" if cycles.note else rests)
        others = [finding for finding in findings if finding.name != CYCLES]
        return [cycles, *(others[1:] if silent else others)]

    def _rank(
        self, differences: list[circumstances.Difference], entry: Entry
    ) -> tuple[list[circumstances.Difference], list[circumstances.Difference], Entry]:
        """The differences that hinder a comparison, all of them, and the entry."""
        hindering = [difference for difference in differences if circumstances.matches(difference.fact, self.patterns)]
        return hindering, differences, entry

    def _find(
        self,
        now: Entry,
        before: Entry,
        allowed: Allowed,
        measurement: Measurement | None,
        shares: int,
        others: Sequence[OtherCase],
        *,
        first: bool,
    ) -> Finding:
        new, old = now.figures.get(allowed.name), before.figures.get(allowed.name)
        finding = Finding(
            allowed.name,
            allowed.kind,
            allowed.margin.tolerated + allowed.margin.allowance,
            allowed.source,
            Verdict.INCONCLUSIVE,
            baseline=self.baseline.name,
            measured=before.measured,
            value=new.value if new else None,
            value_low=new.low if new else None,
            value_high=new.high if new else None,
            baseline_value=old.value if old else None,
            baseline_value_low=old.low if old else None,
            baseline_value_high=old.high if old else None,
        )
        if new is None or old is None:
            missing = "no value" if new is None else f"{self.baseline.noun} has no value"
            lacking = too_few_samples(finding, measurement) if new is None and measurement is not None else None
            return lacking or replace(finding, note=missing)
        if not same_state(now.distance_ns, before.distance_ns):
            here, there = (f"{entry.distance_ns or 0:.0f} ns" for entry in (now, before))
            moved = f"the CPUs are {here} apart, and were {there} in {self.baseline.title}: another state of the host"
            return replace(finding, note=f"{moved}; measure again, or save that state too")
        judged = over_sessions(now, before, allowed, shares, others, first=first, of_run=self.baseline.is_run)
        if judged is None:
            return replace(finding, note=f"{self.baseline.noun}'s value is 0")
        if allowed.name == "throughput_pps" and (now.lower_bound or before.lower_bound):
            # What is "at least" can still fall, and be fallen short of: the path is slower, whatever limits it.
            fell = judged.verdict == Verdict.REGRESSED or judged.suspect
            note = _AT_LEAST if not fell else judged.note
            if fell and now.lower_bound and note in (None, BEST):
                note = "; ".join(filter(None, (_PATH_FELL, note)))
            verdict = judged.verdict if fell else Verdict.INCONCLUSIVE
            return _with_sessions(
                finding, judged, verdict=verdict, at_least=now.lower_bound, note=note, more_sessions=None
            )
        if new.low is None:
            return self._too_few(_with_sessions(finding, judged), now, measurement)
        if judged.by_launches:
            effort = Effort.of(measurement) if measurement is not None else _effort_of(now)
            return further(_with_sessions(finding, judged), effort, judged.ratio, allowed.margin.limit)
        return _with_sessions(finding, judged, verdict=judged.verdict)

    def _too_few(self, finding: Finding, now: Entry, measurement: Measurement | None) -> Finding:
        """Returns the finding on a figure without an interval: too few launches, or too few samples."""
        plain = replace(finding, note=None, more_sessions=None, suspect=False)
        if measurement is not None and (lacking := too_few_samples(plain, measurement)) is not None:
            return lacking
        effort = Effort.of(measurement) if measurement is not None else _effort_of(now)
        return further(plain, effort, None)


def _with_sessions(finding: Finding, judged: SessionVerdict, **others: Any) -> Finding:
    """Returns the finding with what the comparison over sessions found, and with other values for some fields."""
    # Compared is each session's median, or its best; the mean of its rounds, which is reported, can lie far from both.
    value = judged.value if judged.sessions > 1 or judged.medians is not None else None
    assert finding.value is not None  # both sides have one
    now = Estimate(finding.value, finding.value_low, finding.value_high)
    if value is not None:
        own = now if judged.medians is None else Estimate(value, value, value)
        now = as_wide_as(Estimate(value, own.low, own.high), judged.ratio)
    of_sessions: dict[str, Any] = {
        "value": now.value,
        "value_low": now.low,
        "value_high": now.high,
        "ratio": judged.ratio.value,
        "ratio_low": judged.ratio.low,
        "ratio_high": judged.ratio.high,
        "baseline_value": finding.baseline_value if value is None else value / judged.ratio.value,
        "baseline_value_low": finding.baseline_value_low if value is None else None,
        "baseline_value_high": finding.baseline_value_high if value is None else None,
        "note": judged.note,
        "sessions": judged.sessions,
        "more_sessions": judged.more_sessions,
        "against_control": judged.against,
        "control_change": judged.control,
        "finds": judged.finds,
        "medians": judged.medians,
        "suspect": judged.suspect,
    }
    return replace(finding, **{**of_sessions, **others})


def _effort_of(entry: Entry) -> Effort:
    return Effort(entry.launches, searched=entry.metric in SEARCHED)
