# SPDX-License-Identifier: BSD-3-Clause
"""A measurement against a baseline: which entry it may be compared with, and what comes of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.gate.entry import Baseline, Entry, entry_of
from pytest_icbench.gate.limits import Effort, further, too_few_samples
from pytest_icbench.gate.margins import Allowed, Margins
from pytest_icbench.model import circumstances
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import fixed_share, ratio_of

#: What a rate that is "at least" says about an upgrade.
_AT_LEAST = "the switch had idle share, so the rate is only 'at least': more endpoints' cores, or a search, would tell"


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """What a comparison with a baseline gave.

    Attributes:
        name: of the baseline.
        findings: one for each figure compared, the main one first; empty without a comparable entry.
        missing: why there is nothing to compare with; None if there is.
        incomparable: the facts that differ and must not; None if there are none.
        treatment: facts about what is tested that differ, as (fact, before, now): what an upgrade changed.
        warnings: conditions that differ.
    """

    name: str
    findings: tuple[Finding, ...] = ()
    missing: str | None = None
    incomparable: str | None = None
    treatment: tuple[circumstances.Difference, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparer:
    """Compares with one baseline.

    Args:
        patterns: facts that have to be the same; see ``comparable``.
    """

    baseline: Baseline
    patterns: Sequence[str] = circumstances.DEFAULT

    def compare(self, measurement: Measurement, margins: Margins) -> BaselineComparison | None:
        """None for what no baseline holds: a long run, trains of frames, what is INVALID."""
        now = entry_of(measurement)
        if now is None:
            return None
        return self.compare_entry(now, margins, measurement)

    def compare_entry(self, now: Entry, margins: Margins, measurement: Measurement | None = None) -> BaselineComparison:
        """The same for an entry; without its measurement nobody knows how long its launches took with all around."""
        name = self.baseline.name
        candidates = self.baseline.about(now)
        if not candidates:
            return BaselineComparison(name, missing=f"baseline {name} has no such case")
        ranked = [self._rank(circumstances.all_differences(now, each), each) for each in candidates]
        fewest = min(len(hindering) for hindering, _, _ in ranked)
        hindering, every, before = max(
            (one for one in ranked if len(one[0]) == fewest), key=lambda one: one[2].measured
        )
        changed = tuple(each for each in every if each.fact.startswith("treatment."))
        if hindering:
            told = "; ".join(map(str, hindering))
            return BaselineComparison(name, incomparable=f"baseline {name}: {told}", treatment=changed)
        warnings = tuple(str(each) for each in every if each.fact.startswith("conditions."))
        findings = [self._find(now, before, allowed, measurement) for allowed in margins.of(now.dimension)]
        return BaselineComparison(name, tuple(findings), treatment=changed, warnings=warnings)

    def _rank(
        self, every: list[circumstances.Difference], entry: Entry
    ) -> tuple[list[circumstances.Difference], list[circumstances.Difference], Entry]:
        return [each for each in every if circumstances.matches(each.fact, self.patterns)], every, entry

    def _find(self, now: Entry, before: Entry, allowed: Allowed, measurement: Measurement | None) -> Finding:
        margin, own, old = allowed.margin, now.figures.get(allowed.name), before.figures.get(allowed.name)
        ratio = ratio_of(own, old) if own is not None and old is not None else None
        found = Finding(
            allowed.name,
            allowed.kind,
            margin.tolerated + margin.allowance,
            allowed.source,
            Verdict.INCONCLUSIVE,
            baseline=self.baseline.name,
            measured=before.measured,
            value=own.value if own else None,
            value_low=own.low if own else None,
            value_high=own.high if own else None,
            baseline_value=old.value if old else None,
            baseline_value_low=old.low if old else None,
            baseline_value_high=old.high if old else None,
            ratio=ratio.value if ratio is not None else None,
            ratio_low=ratio.low if ratio is not None else None,
            ratio_high=ratio.high if ratio is not None else None,
        )
        if own is None or old is None:
            missing = "no value" if own is None else "the baseline has no value"
            lacking = too_few_samples(found, measurement) if own is None and measurement is not None else None
            return lacking or replace(found, note=missing)
        if ratio is None:
            return replace(found, note="the baseline's value is 0")
        verdict = Verdict.of_change(margin.change(ratio))
        if allowed.name == "throughput_pps" and (
            now.lower_bound or (before.lower_bound and verdict != Verdict.REGRESSED)
        ):
            # A baseline that is "at least" can still be fallen short of.
            return replace(found, at_least=now.lower_bound, note=_AT_LEAST)
        if verdict != Verdict.INCONCLUSIVE:
            return replace(found, verdict=verdict)
        if ratio.low is None and old.low is None:
            return replace(found, note="the baseline has no interval (too few launches): save it with six at least")
        if own.low is None and measurement is not None and (lacking := too_few_samples(found, measurement)) is not None:
            return lacking
        effort = Effort.of(measurement) if measurement is not None else _effort_of(now)
        return further(found, effort, ratio if ratio.low is not None else None, margin.limit, fixed_share(own, old))


def _effort_of(entry: Entry) -> Effort:
    return Effort(entry.launches, searched=entry.metric in ("ndr", "pdr"))
