# SPDX-License-Identifier: BSD-3-Clause
"""Sentences on comparisons: the decision on each candidate, its cases, error rates and power. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_icbench.gate.baseline_comparison import compute_power_before
from pytest_icbench.gate.entry import Entry
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.finding import Finding, SideBySide
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.report.value_changes import candidate_name
from pytest_icbench.stats.verdict_rule import WEAK_LOSS, Power
from pytest_icbench.wording import counted, grouped, percent, printable, signed_percent

#: What gives a weak session more power.
MORE_TIME = "give more time (--icbench-max-duration)"
MORE_SESSIONS = "save more (--icbench-save), or use --icbench-candidate"


@dataclass(frozen=True, slots=True)
class Overall:
    """The decision on a candidate over all its cases.

    Attributes:
        candidate: ``ovs:new``, with the run where there are several.
        decision: the worst decision of its cases.
        counts: the number of cases with each decision.
        results: its lines of ``results.jsonl``.
    """

    candidate: str
    decision: str
    counts: str
    results: tuple[Result, ...]

    @property
    def sentence(self) -> str:
        """The decision as reports show it."""
        return f"{self.candidate} against its base: {self.decision} ({self.counts})"


def candidates(results: Iterable[Result]) -> list[Overall]:
    """Returns the decision for each candidate, the worst first; nothing without candidates."""
    decided = []
    compared = (result for result in results if result.point.candidate is not None)
    for name, group in grouped(compared, candidate_name).items():
        decisions = [decision_of(result) for result in group]
        counts = ", ".join(f"{decisions.count(decision)} {decision}" for decision in ORDER if decision in decisions)
        decided.append(Overall(printable(name), min(decisions, key=ORDER.index), counts, tuple(group)))
    return sorted(decided, key=lambda overall: ORDER.index(overall.decision))


def error_rates(results: Iterable[Result]) -> list[str]:
    """Returns how often a session without a change has a REGRESSED: a sentence for each rate."""
    stated = (comparison for result in results if (comparison := result.side_by_side))
    return [
        f"false alarms of the whole session ({counted(count, 'comparison')}): at most {percent(rate)}"
        for count, rate in dict.fromkeys((comparison.cases, comparison.error_rate) for comparison in stated)
    ]


def overall(results: Sequence[Result]) -> list[str]:
    """Returns lines: the decision for each candidate, its cases with their changes, and the error rates."""
    lines = []
    for candidate in candidates(results):
        lines += [candidate.sentence, *(f"  {_line(result)}" for result in candidate.results)]
    return lines + error_rates(results)


def decision_of(result: Result) -> str:
    """Returns INVALID, REGRESSED, INCONCLUSIVE, IMPROVED or PASS."""
    return result.decision or (Verdict.INCONCLUSIVE if result.is_number else Verdict.INVALID)


def _line(result: Result) -> str:
    text = f"{printable(result.case)}: {decision_of(result)}"
    return ", ".join(filter(None, (text, _comparison(result))))


def _comparison(result: Result) -> str:
    """Returns the change of a candidate with its interval and both values, or why there is none; it may be empty."""
    comparison = result.side_by_side
    if comparison is None:
        return printable(result.reason or "")
    text = f"{comparison.figure} {_change(comparison.ratio)}"
    if comparison.ratio_low is not None and comparison.ratio_high is not None:
        text += f" ({_change(comparison.ratio_low)} to {_change(comparison.ratio_high)}, {comparison.pairs} pairs)"
    return f"{text}: {_deciding(comparison)}"


#: The end of a figure's name, the unit it is shown in and what that takes.
_UNITS = (("_ns", "µs", 1e-3), ("_pps", "Mpps", 1e-6), ("", "cycles", 1.0))


def _deciding(comparison: SideBySide) -> str:
    """Returns the values of both versions on the launches that decide; those of all launches can differ."""
    unit, factor = next((unit, factor) for end, unit, factor in _UNITS if comparison.figure.endswith(end))
    base = comparison.base_value * factor
    now, before = (f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in (base * comparison.ratio, base))
    return f"{now} against {before} {unit}"


def _change(ratio: float) -> str:
    return f"{signed_percent(ratio)} %"


def power(results: Sequence[Measurement]) -> list[str]:
    """Returns a sentence on the changes that the comparisons can detect, and a warning if they detect little."""
    compared = [(result.case, finding) for result in results if (finding := _compared(result)) is not None]
    pairs = all(one.unit == "pair" for _, one in compared)
    powers = [(case, Power(one.finds, one.weak)) for case, one in compared]
    return [printable(line) for line in explain_powers(powers, pairs=pairs)]


def is_weak(results: Sequence[Measurement]) -> bool:
    """Whether a compared case would have missed a loss of a tenth in half of such sessions."""
    return any(finding.weak for result in results if (finding := _compared(result)) is not None)


def _compared(result: Measurement) -> Finding | None:
    return next((finding for finding in result.findings if finding.baseline is not None), None)


def explain_powers(powers: Sequence[tuple[str, Power]], *, before: bool = False, pairs: bool = False) -> list[str]:
    """Returns a sentence on the losses that a session can find, and a warning if it is weak; none without cases.

    Args:
        powers: each case with its power.
        before: whether the session is still to come.
        pairs: whether all are comparisons of versions side by side.
    """
    known = sorted((power.finds, case) for case, power in powers if power.finds is not None)
    lines = []
    if known:
        (least, first), (most, last) = known[0], known[-1]
        text = f"{'finds' if before else 'would have found'} nine times of ten: a loss of {percent(least)} in {first}"
        lines.append(f"this session {text}" + (f", of {percent(most)} in {last}" if len(known) > 1 else ""))
    weak = sum(power.weak for _, power in powers)
    if weak:
        cannot = f"weak session: {counted(weak, 'case')} of {len(powers)} cannot show a loss of {percent(WEAK_LOSS)}"
        remedy = MORE_TIME if pairs else MORE_SESSIONS
        lines.append(f"{cannot} in half of such sessions: {remedy}")
    return lines


def explain_saved(entries: Sequence[Entry]) -> list[str]:
    """Returns a sentence on the cases that a baseline cannot judge yet; none if it can judge all of them."""
    margins = Margins()
    lacking = [
        entry for entry in entries if compute_power_before(entry, margins.of(entry.dimension)[0], len(entries)).weak
    ]
    if not lacking:
        return []
    fewest = min(len(entry.in_state(entry.distance_ns)) for entry in lacking)
    missed = f"a loss of {percent(WEAK_LOSS)} would be missed more often than not"
    cases = counted(len(lacking), "case")
    return [f"it cannot judge {cases} of {len(entries)} yet (fewest sessions: {fewest}): {missed}"]
