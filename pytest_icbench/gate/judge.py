# SPDX-License-Identifier: BSD-3-Clause
"""Judges a measurement by its limits and its baseline. Pure.

Each limit and each compared figure gives a ``Finding``. The worst of them, in the order of ``ORDER``, is the verdict.
``Policy`` says which verdicts fail a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from pytest_icbench.errors import Invalid, Regression
from pytest_icbench.gate.baseline_comparison import BaselineComparison
from pytest_icbench.gate.limits import Limit, applies, find
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.fitness import TOO_DISTURBED, disturbance, too_disturbed, unfit
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import DEFAULT_FAILING, GOOD, ORDER, Verdict
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.verdict_reasons import INVALID_REASONS


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver of the verdicts of some cases.

    Attributes:
        case: a pattern (``*``, ``?``, ``[...]``) over case ids.
        reason: why they are waived, for readers.
        until: the last day on which it holds, ``YYYY-MM-DD``, in UTC.
    """

    case: str
    reason: str
    until: str

    def holds(self, today: date) -> bool:
        """Whether the waiver has not expired."""
        return today <= date.fromisoformat(self.until)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules by which verdicts fail a test.

    Attributes:
        failing: verdicts that fail a test.
        strict: every verdict but PASS and IMPROVED fails a test.
        waivers: cases whose verdicts fail no test, with a reason and a last day. INVALID is never waived.
        today: the day in UTC; None never matches a waiver.
    """

    failing: tuple[str, ...] = DEFAULT_FAILING
    strict: bool = False
    waivers: tuple[Waiver, ...] = ()
    today: date | None = None

    def fails(self, verdict: str) -> bool:
        """Whether a verdict fails a test; waivers are not considered."""
        return verdict not in GOOD and (self.strict or verdict in self.failing)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons. It is true in a condition unless the verdict fails a test.

    Attributes:
        reason: one sentence, which begins with the case.
        context: further facts that matter, one a line.
        fails: whether the verdict fails a test.
        findings: all findings, the one that decided first.
        against: the comparison with the baseline; None if there was none.
        waiver: until when and why a failing verdict is waived; None if it is not.
    """

    verdict: Verdict
    reason: str
    context: tuple[str, ...] = ()
    fails: bool = False
    findings: tuple[Finding, ...] = ()
    against: BaselineComparison | None = None
    waiver: str | None = None

    def __bool__(self) -> bool:
        return not self.fails

    @property
    def details(self) -> tuple[str, ...]:
        """The findings and their context, one a line."""
        return (*(finding.detail() for finding in self.findings), *self.context)

    @property
    def _compared(self) -> bool:
        """Whether the verdict rests on a comparison: its PASS then names the loss that would have been found."""
        return bool(self.findings) and self.findings[0].baseline is not None

    def message(self) -> str:
        """Returns the verdict with its sentence, then the details, one a line."""
        return "\n".join((f"{self.verdict}: {self.reason}", *self.details))

    def fields(self) -> dict[str, Any]:
        """Returns the measurement's fields that the judgement sets; none for INVALID, which keeps its reason."""
        if self.verdict == Verdict.INVALID:
            return {}
        fields: dict[str, Any] = {
            "verdict": self.verdict,
            "reason": self.reason if self.verdict != Verdict.PASS or self._compared else None,
            "findings": self.findings,
            "waiver": self.waiver,
        }
        if self.against is not None:
            fields["baseline"] = self.against.name
            fields["treatment_changes"] = {
                difference.fact.partition(".")[2]: [difference.there, difference.here]
                for difference in self.against.treatment
            }
            if (main := self.against.main) is not None:
                ratio = None if main.ratio is None else Estimate(main.ratio, main.ratio_low, main.ratio_high)
                fields["ratio_to_baseline"] = ratio
        return fields


def judge(
    measurement: Measurement,
    limits: Sequence[Limit] = (),
    *,
    against: BaselineComparison | None = None,
    policy: Policy | None = None,
) -> Judgement:
    """Judges a measurement: INVALID first, then the worst finding about its limits and its baseline.

    Args:
        limits: those on results that the measurement does not have are ignored.
        against: the comparison with the baseline; None if there is none.
        policy: which verdicts fail; by default REGRESSED and INVALID.
    """
    policy = policy or Policy()
    if measurement.verdict == Verdict.INVALID:
        reason = measurement.reason or "unknown"
        evidence = measurement.evidence or INVALID_REASONS.get(reason, "no evidence was kept")
        return Judgement(Verdict.INVALID, f"{measurement.case}: {reason}", (evidence,), policy.fails(Verdict.INVALID))
    findings = [find(measurement, limit) for limit in limits if applies(limit, measurement)]
    findings += against.findings if against is not None else ()
    findings = [_unless_disturbed(measurement, finding) for finding in findings]
    findings.sort(key=lambda finding: ORDER.index(finding.verdict))
    reasons = [(finding.verdict, finding.sentence()) for finding in findings[:1]]
    if against is not None and against.missing is not None:
        reasons.append((Verdict.NO_BASELINE, against.missing))
    if against is not None and against.incomparable is not None:
        reasons.append((Verdict.INCOMPARABLE, against.incomparable))
    if not reasons:
        reasons.append((Verdict.NO_BASELINE, "no limit and no baseline"))
    verdict, reason = min(reasons, key=lambda candidate: ORDER.index(candidate[0]))
    waiver, note = _find_waiver(measurement.case, verdict, policy)
    context = (*_collect_context(measurement, verdict, against), *note)
    fails = policy.fails(verdict) and waiver is None
    return Judgement(verdict, f"{measurement.case}: {reason}", context, fails, tuple(findings), against, waiver)


def enforce(judgement: Judgement) -> Judgement:
    """Returns the judgement unless it fails a test.

    Raises:
        Invalid: verdict INVALID.
        Regression: every other verdict that fails; the message is ``Judgement.message``.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    if not judgement.fails:
        return judgement
    if judgement.verdict == Verdict.INVALID:
        raise Invalid(judgement.reason, "\n".join(judgement.details))
    raise Regression(judgement.message(), verdict=judgement.verdict)


def _unless_disturbed(measurement: Measurement, finding: Finding) -> Finding:
    """Returns the finding; INCONCLUSIVE instead of REGRESSED where too many launches were disturbed.

    Versions side by side keep their verdict: a disturbance affects the base as often as the candidate.
    """
    side_by_side = measurement.side_by_side is not None and finding.baseline is not None
    if finding.verdict != Verdict.REGRESSED or side_by_side or not too_disturbed(measurement):
        return finding
    return replace(finding, verdict=Verdict.INCONCLUSIVE, reason="host", note=TOO_DISTURBED)


def _find_waiver(case: str, verdict: Verdict, policy: Policy) -> tuple[str | None, list[str]]:
    """Returns the text of the waiver that holds for a failing verdict, and lines about waivers for the message.

    Of several waivers the one that ends last counts.
    """
    matching = [waiver for waiver in policy.waivers if fnmatchcase(case, waiver.case)]
    if not matching or not policy.fails(verdict) or policy.today is None:
        return None, []
    last = sorted(matching, key=lambda waiver: waiver.until)[-1]
    if last.holds(policy.today):
        return f"until {last.until}: {last.reason}", [f"waived until {last.until}: {last.reason}"]
    return None, [f"its waiver expired on {last.until}: {last.reason}"]


def _collect_context(measurement: Measurement, verdict: Verdict, against: BaselineComparison | None) -> list[str]:
    """Returns lines on changed facts, warnings, a bottleneck other than the switch, and other processes."""
    lines = []
    if against is not None:
        since = "unlike the base" if measurement.side_by_side is not None else f"changed since baseline {against.name}"
        lines += [f"{since}: {difference}" for difference in against.treatment]
        lines += [f"warning: {warning}" for warning in against.warnings]
    if measurement.bottleneck not in ("switch", "unknown") and verdict not in GOOD:
        lines.append(f"the {measurement.bottleneck} was the bottleneck: {measurement.bottleneck_evidence}")
    lines += [disturbance(measurement), unfit(measurement) if against is not None else ""]
    return list(filter(None, lines))
