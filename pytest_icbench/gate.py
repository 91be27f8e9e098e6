# SPDX-License-Identifier: BSD-3-Clause
"""Limits and what a measurement is worth against them. Pure.

A limit is the worst value that is still allowed. It is missed (REGRESSED) only if the whole interval lies beyond it,
held (PASS) only if the whole interval lies within, and otherwise the measurement does not tell (INCONCLUSIVE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from pytest_icbench.errors import Invalid, Regression
from pytest_icbench.result import Measurement

Verdict = Literal["PASS", "IMPROVED", "REGRESSED", "INCONCLUSIVE", "NO_BASELINE", "INCOMPARABLE", "INVALID"]

#: Length of the first line of a message: pytest cuts longer ones in its summary.
FIRST_LINE = 100

#: Results that a limit can name, by the dimensions that have them. Estimates bring an interval, counters none.
LIMITABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "throughput_pps",
            "throughput_per_pair_pps",
            "throughput_gbps",
            "throughput_l1_gbps",
            "fairness",
            "cycles_per_packet",
        ),
        ("throughput",),
    ),
    **dict.fromkeys(
        (
            "rtt_mean_ns",
            "rtt_p50_ns",
            "rtt_p90_ns",
            "rtt_p99_ns",
            "rtt_p99_9_ns",
            "rtt_p99_99_ns",
            "rtt_max_ns",
            "rtt_samples",
            "rtt_lost",
        ),
        ("latency",),
    ),
    **dict.fromkeys(
        (
            "offered_pps",
            "ratio_to_reference",
            "scheduled",
            "sent",
            "refused",
            "received",
            "lost",
            "duplicated",
            "reordered",
            "late",
            "foreign",
            "corrupted",
            "frame_loss_ratio",
            "trial_loss_ratio",
            "disturbed_windows",
        ),
        ("throughput", "latency"),
    ),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit.

    Attributes:
        name: of a result, one of ``LIMITABLE``.
        kind: ``min`` or ``max``.
        value: the worst value allowed, in the result's unit.
        source: where it is written: file, table and key.
    """

    name: str
    kind: Literal["min", "max"]
    value: float
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit against one measurement. ``low`` and ``high`` equal ``value`` for a result without an interval."""

    limit: Limit
    verdict: Literal["PASS", "REGRESSED", "INCONCLUSIVE"]
    value: float | None
    low: float | None
    high: float | None

    def sentence(self) -> str:
        """Value, interval, limit and its source."""
        what = f"{self.limit.name}: {show(self.value)}"
        if self.high == inf:
            what += " (at least)"
        elif self.low is not None and self.high is not None and self.low != self.high:
            what += f" (interval {show(self.low)} to {show(self.high)})"
        word = "at least" if self.limit.kind == "min" else "at most"
        return f"{what}, limit {word} {show(self.limit.value)} from {self.limit.source}: {self.verdict}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a measurement is worth. True in a condition unless its verdict fails a test."""

    verdict: Verdict
    reason: str
    details: tuple[str, ...] = ()
    strict: bool = False

    @property
    def fails(self) -> bool:
        """REGRESSED, INVALID and INCOMPARABLE fail; when strict, everything but PASS and IMPROVED."""
        if self.verdict in ("PASS", "IMPROVED"):
            return False
        return self.strict or self.verdict in ("REGRESSED", "INVALID", "INCOMPARABLE")

    def __bool__(self) -> bool:
        return not self.fails

    def message(self) -> str:
        """First line of at most 100 characters, then the findings, one a line."""
        return "\n".join((cut(f"{self.verdict}: {self.reason}"), *self.details))


def judge(measurement: Measurement, limits: Sequence[Limit], *, strict: bool = False) -> Judgement:
    """The verdict: INVALID first, then the worst of all limits that the measurement's dimension has.

    Args:
        strict: a verdict other than PASS and IMPROVED fails.
    """
    if measurement.verdict == "INVALID":
        reason = measurement.reason or "unknown"
        evidence = (measurement.evidence,) if measurement.evidence else ()
        return Judgement("INVALID", f"{reason} ({measurement.case})", evidence, strict)
    findings = [_find(measurement, limit) for limit in limits if measurement.dimension in LIMITABLE.get(limit.name, ())]
    if not findings:
        return Judgement("NO_BASELINE", f"{measurement.case} has no limit and no baseline", (), strict)
    order = ("REGRESSED", "INCONCLUSIVE", "PASS")
    if measurement.generator_bound and measurement.metric == "fixed":
        findings = [_refuse(finding) for finding in findings]
    findings.sort(key=lambda finding: order.index(finding.verdict))
    worst = findings[0]
    details = [finding.sentence() for finding in findings]
    if measurement.bottleneck not in ("switch", "unknown") and worst.verdict != "PASS":
        details.append(f"the {measurement.bottleneck} was the bottleneck: {measurement.bottleneck_evidence}")
    return Judgement(worst.verdict, _reason(measurement, worst), tuple(details), strict)


def enforce(judgement: Judgement) -> Judgement:
    """The judgement, if it does not fail a test.

    Raises:
        Invalid: verdict INVALID.
        Regression: every other verdict that fails; the message is ``Judgement.message``.
    """
    __tracebackhide__ = True  # of pytest: the test's own line is what matters
    if not judgement.fails:
        return judgement
    if judgement.verdict == "INVALID":
        raise Invalid(judgement.reason, "\n".join(judgement.details) or "no evidence was kept")
    raise Regression(judgement.message())


def _find(measurement: Measurement, limit: Limit) -> Finding:
    value = getattr(measurement, limit.name)
    if value is None:
        return Finding(limit, "INCONCLUSIVE", None, None, None)
    low = getattr(measurement, f"{limit.name}_low", value)
    high = getattr(measurement, f"{limit.name}_high", value)
    if measurement.search is not None and measurement.lower_bound and limit.name.startswith("throughput_"):
        high = inf  # "at least": what the device can do may lie anywhere above
    if low is None or high is None:
        # An estimate without an interval (too few launches) can neither hold nor miss a limit.
        return Finding(limit, "INCONCLUSIVE", value, None, None)
    if limit.kind == "min":
        held, missed = low >= limit.value, high < limit.value
    else:
        held, missed = high <= limit.value, low > limit.value
    return Finding(limit, "PASS" if held else "REGRESSED" if missed else "INCONCLUSIVE", value, low, high)


#: What a path does to frames that nobody offered is not known.
_LOSSES = ("frame_loss_ratio", "trial_loss_ratio", "lost", "refused")


def _refuse(finding: Finding) -> Finding:
    """No verdict about loss at a rate that the sender did not offer."""
    return replace(finding, verdict="INCONCLUSIVE") if finding.limit.name in _LOSSES else finding


def _reason(measurement: Measurement, worst: Finding) -> str:
    limit = worst.limit
    if measurement.generator_bound and limit.name in _LOSSES and worst.verdict == "INCONCLUSIVE":
        why = f"{limit.name}: the sender could not offer the rate"
    elif worst.value is None:
        why = f"{limit.name} has no value"
    elif worst.low is None:
        why = f"{limit.name} {show(worst.value)} has no interval (too few launches)"
    else:
        words = {
            ("min", "REGRESSED"): "below",
            ("max", "REGRESSED"): "above",
            ("min", "PASS"): "not below",
            ("max", "PASS"): "not above",
        }
        word = words.get((limit.kind, worst.verdict), "too near")
        why = f"{limit.name} {show(worst.value)} {word} {show(limit.value)}"
    return f"{why}, {measurement.case}"


def show(value: float | None) -> str:
    """A number as messages show it: four significant digits, k and M from 10,000 up."""
    if value is None:
        return "none"
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= max(unit, 10_000):
            return f"{value / unit:.4g}{suffix}"
    return f"{value:.4g}"


def cut(line: str, length: int = FIRST_LINE) -> str:
    """The line, at most ``length`` characters long."""
    return line if len(line) <= length else line[: length - 3] + "..."
