# SPDX-License-Identifier: BSD-3-Clause
"""What a measurement is worth: its limits and its baseline, one verdict. Pure.

Each limit and each figure of the baseline is a ``Finding``; the worst of them is the verdict, in the order of
``ORDER``. What fails a test is a matter of ``Policy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pytest_icbench.errors import Invalid, Regression
from pytest_icbench.gate.against import BaselineComparison
from pytest_icbench.gate.limits import LOSSES, Limit, applies, find
from pytest_icbench.gate.waivers import Waiver
from pytest_icbench.gate.waivers import find as find_waiver
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import DEFAULT_FAILING, GOOD, ORDER, Verdict
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import cut, percent, show


@dataclass(frozen=True, slots=True)
class Policy:
    """Which verdicts fail a test.

    Attributes:
        failing: these do.
        strict: all do but PASS and IMPROVED.
        waivers: which cases fail none, for what reason and until when. An INVALID measurement is never waived.
        today: in UTC; None never matches a waiver.
    """

    failing: tuple[str, ...] = DEFAULT_FAILING
    strict: bool = False
    waivers: tuple[Waiver, ...] = ()
    today: date | None = None

    def fails(self, verdict: str) -> bool:
        return verdict not in GOOD and (self.strict or verdict in self.failing)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a measurement is worth. True in a condition unless its verdict fails a test.

    Attributes:
        reason: one sentence. details: the findings, and what stands around them, one a line.
        fails: whether the verdict fails a test.
        findings: the one that decided first. against: what the baseline said.
        waiver: why, and until when, the verdict fails no test though it would.
    """

    verdict: Verdict
    reason: str
    details: tuple[str, ...] = ()
    fails: bool = False
    findings: tuple[Finding, ...] = ()
    against: BaselineComparison | None = None
    waiver: str | None = None

    def __bool__(self) -> bool:
        return not self.fails

    def message(self) -> str:
        """First line of at most 100 characters, then the details, one a line."""
        return "\n".join((cut(f"{self.verdict}: {self.reason}"), *self.details))

    def fields(self) -> dict[str, Any]:
        """The fields of a measurement that its judgement sets; INVALID keeps its own reason."""
        if self.verdict == Verdict.INVALID:
            return {}
        found: dict[str, Any] = {
            "verdict": self.verdict,
            "reason": None if self.verdict == Verdict.PASS else self.reason,
            "findings": self.findings,
            "waiver": self.waiver,
        }
        if self.against is not None:
            found["baseline"] = self.against.name
            found["treatment_changes"] = {
                each.fact.partition(".")[2]: [each.there, each.here] for each in self.against.treatment
            }
            for main in self.against.findings[:1]:
                ratio = None if main.ratio is None else Estimate(main.ratio, main.ratio_low, main.ratio_high)
                found["ratio_to_baseline"] = ratio
        return found


def judge(
    measurement: Measurement,
    limits: Sequence[Limit] = (),
    *,
    against: BaselineComparison | None = None,
    policy: Policy | None = None,
) -> Judgement:
    """The verdict: INVALID first, then the worst of all limits that the measurement's dimension has and its baseline.

    Args:
        against: what a comparison with the baseline gave; None where none is wanted.
        policy: what fails; by default REGRESSED and INVALID.
    """
    policy = policy or Policy()
    if measurement.verdict == Verdict.INVALID:
        reason = measurement.reason or "unknown"
        evidence = (measurement.evidence,) if measurement.evidence else ()
        return Judgement(Verdict.INVALID, f"{reason} ({measurement.case})", evidence, policy.fails(Verdict.INVALID))
    findings = [find(measurement, limit) for limit in limits if applies(limit, measurement)]
    findings += against.findings if against is not None else ()
    findings.sort(key=lambda each: ORDER.index(each.verdict))
    found: list[tuple[Verdict, str]] = []
    if findings:
        found.append((findings[0].verdict, _reason(measurement, findings[0])))
    if against is not None and against.missing is not None:
        found.append((Verdict.NO_BASELINE, f"{against.missing}, {measurement.case}"))
    if against is not None and against.incomparable is not None:
        found.append((Verdict.INCOMPARABLE, f"{against.incomparable}, {measurement.case}"))
    if not found:
        found.append((Verdict.NO_BASELINE, f"{measurement.case} has no limit and no baseline"))
    verdict, reason = min(found, key=lambda one: ORDER.index(one[0]))
    waiver, note = _waived(measurement.case, verdict, policy)
    details = (*(each.sentence() for each in findings), *_around(measurement, verdict, against), *note)
    fails = policy.fails(verdict) and waiver is None
    return Judgement(verdict, reason, details, fails, tuple(findings), against, waiver)


def enforce(judgement: Judgement) -> Judgement:
    """The judgement, if it does not fail a test.

    Raises:
        Invalid: verdict INVALID.
        Regression: every other verdict that fails; the message is ``Judgement.message``.
    """
    __tracebackhide__ = True  # of pytest: the test's own line is what matters
    if not judgement.fails:
        return judgement
    if judgement.verdict == Verdict.INVALID:
        raise Invalid(judgement.reason, "\n".join(judgement.details) or "no evidence was kept")
    raise Regression(judgement.message(), verdict=judgement.verdict)


def _waived(case: str, verdict: Verdict, policy: Policy) -> tuple[str | None, list[str]]:
    """The waiver that lets a failing verdict pass, and what is to be said of waivers."""
    if not policy.fails(verdict) or policy.today is None:
        return None, []
    holding, expired = find_waiver(policy.waivers, case, policy.today)
    if holding is not None:
        return f"until {holding.until}: {holding.reason}", [f"waived until {holding.until}: {holding.reason}"]
    if expired is not None:
        return None, [f"its waiver expired on {expired.until}: {expired.reason}"]
    return None, []


def _around(measurement: Measurement, verdict: Verdict, against: BaselineComparison | None) -> list[str]:
    """What stands around the figures of a verdict."""
    lines = []
    if against is not None:
        lines += [f"changed since baseline {against.name}: {each}" for each in against.treatment]
        lines += [f"warning: {each}" for each in against.warnings]
    if measurement.bottleneck not in ("switch", "unknown") and verdict not in GOOD:
        lines.append(f"the {measurement.bottleneck} was the bottleneck: {measurement.bottleneck_evidence}")
    return lines


_WORDS = {
    ("min", Verdict.REGRESSED): "below",
    ("max", Verdict.REGRESSED): "above",
    ("min", Verdict.PASS): "not below",
    ("max", Verdict.PASS): "not above",
}


def _reason(measurement: Measurement, found: Finding) -> str:
    if measurement.generator_bound and found.name in LOSSES and found.verdict == Verdict.INCONCLUSIVE:
        why = found.name
    elif found.value is None:
        why = f"{found.name} has no value"
    elif found.baseline is not None:
        why = _reason_of_change(found)
    elif found.value_low is None:
        why = f"{found.name} {show(found.value)} has no interval"
    else:
        word = _WORDS.get((found.kind, found.verdict), "too near")
        why = f"{found.name} {show(found.value)} {word} {show(found.limit)}"
    if found.outlook():
        why += f"{': ' if found.note else ', '}{found.outlook()}"
    return f"{why}, {measurement.case}"


def _reason_of_change(found: Finding) -> str:
    """``throughput_pps 4.6M is 8.2 % lower than 5M of baseline main``."""
    if found.ratio is None:
        return f"{found.name} {show(found.value)}"
    way = "lower" if found.ratio < 1 else "higher"
    why = f"{found.name} {show(found.value)} {percent(found.ratio - 1)} {way} than {show(found.baseline_value)}"
    why += f" of {found.baseline}"
    if found.verdict == Verdict.INCONCLUSIVE and not found.note:
        why += ", but the interval reaches beyond the limit"
    return why
