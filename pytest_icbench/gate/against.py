# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of a measurement with a baseline: which entry it may be compared with, and the findings. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_icbench.gate.entry import SEARCHED, Baseline, Entry, entry_of
from pytest_icbench.gate.limits import Effort, further, too_few_samples
from pytest_icbench.gate.margins import CYCLES, Allowed, Margins
from pytest_icbench.gate.over_sessions import over_sessions
from pytest_icbench.model import circumstances
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict

#: Notes on the figure that decides.
_PATH_FELL = "the path carries less, whatever limits it"
_RESTS_ON_CYCLES = "the rate is a bound"
_FIXED = "the rate was given"


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

    def compare(self, measurement: Measurement, margins: Margins, *, retest: bool = False) -> BaselineComparison | None:
        """Compares a measurement; None for one that no baseline holds: a long run, trains of frames, INVALID.

        Args:
            retest: whether the case is measured again, since it was worse.
        """
        now = entry_of(measurement)
        return None if now is None else self.compare_entry(now, margins, measurement, retest=retest)

    def nearest(self, now: Entry) -> tuple[Entry, list[circumstances.Difference]] | None:
        """Returns the most comparable entry of the same case, the newest of several, and all that differs.

        None if the baseline has no such case.
        """
        candidates = [(entry, circumstances.all_differences(now, entry)) for entry in self.baseline.about(now)]
        fewest = min((len(self._hindering(differences)) for _, differences in candidates), default=0)
        return max(
            (each for each in candidates if len(self._hindering(each[1])) == fewest),
            key=lambda each: each[0].measured,
            default=None,
        )

    def _hindering(self, differences: Sequence[circumstances.Difference]) -> list[circumstances.Difference]:
        return [difference for difference in differences if circumstances.matches(difference.fact, self.patterns)]

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
        before, differences = nearest
        changed = tuple(difference for difference in differences if difference.fact.startswith("treatment."))
        if hindering := self._hindering(differences):
            reasons = "; ".join(map(str, hindering))
            return BaselineComparison(name, incomparable=f"{self.baseline.title}: {reasons}", treatment=changed)
        warnings = tuple(str(difference) for difference in differences if difference.fact.startswith("conditions."))
        compared = margins.of(now.dimension)

        def find(allowed: Allowed) -> Finding:
            finding = self._plain(now, before, allowed)
            if finding.value is None or finding.baseline_value is None:
                return _without_value(finding, self.baseline, measurement)
            judged = over_sessions(finding, now, before, allowed, self.cases * len(compared), retest=retest)
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
        note = judged.note if not now.lower_bound or not worse or judged.note else _PATH_FELL
        bound = replace(judged, at_least=now.lower_bound, value_high=None if now.lower_bound else judged.value_high)
        if worse:
            return replace(bound, note=note)
        return replace(bound, verdict=Verdict.INCONCLUSIVE, reason="bound", note=None, more=None)
    if judged.value_low is not None:
        return judged
    plain = replace(judged, verdict=Verdict.INCONCLUSIVE, reason="few", note=None, more=None, retest=False)
    if measurement is not None and (lacking := too_few_samples(plain, measurement)) is not None:
        return lacking
    effort = (
        Effort.of(measurement) if measurement is not None else Effort(now.launches, searched=now.metric in SEARCHED)
    )
    return further(plain, effort, None)


def _deciding(now: Entry, before: Entry, findings: list[Finding], find_cycles: Callable[[], Finding]) -> list[Finding]:
    """Returns the findings on the figures that can tell, of which the first is about the main figure.

    A rate that is "at least" tells of a path that fell, but not of a switch that had time left. The switch's own cycles
    a frame take its place, where both sides have them. They stand beside a given rate for the same reason.
    """
    known = all(CYCLES in entry.figures for entry in (now, before))
    bound = findings[0].reason == "bound"
    if now.dimension != "throughput" or not known or not (bound or now.metric == "fixed"):
        return findings
    cycles = find_cycles()
    if cycles.verdict != Verdict.INCONCLUSIVE:
        cycles = replace(cycles, note=_RESTS_ON_CYCLES if bound else _FIXED)
    others = [finding for finding in findings if finding.name != CYCLES]
    return [cycles, *(others[1:] if bound else others)]
