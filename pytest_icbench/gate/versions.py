# SPDX-License-Identifier: BSD-3-Clause
"""What versions side by side mean for the gate and for people: one decision a case, and one overall. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from pytest_icbench.gate.against import BaselineComparison
from pytest_icbench.gate.limits import AT_LIMIT
from pytest_icbench.gate.margins import Allowed
from pytest_icbench.model import circumstances
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.report.axes import RUN
from pytest_icbench.report.names import printable
from pytest_icbench.stats.noninferiority import Margin, launches_until_told
from pytest_icbench.stats.paired import fewest_pairs
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate
from pytest_icbench.wording import percent

#: Of several decisions the first is the overall one.
_ORDER = ("INVALID", "REGRESSED", "INCONCLUSIVE", "IMPROVED", "PASS")


def against_base(now: Measurement, base: Measurement | None, allowed: Allowed) -> BaselineComparison | None:
    """The candidate's comparison as the gate judges it; None if it is no number.

    Without ``base`` nothing is said of what differs.
    """
    found = now.side_by_side
    if found is None:
        return None
    more, note = None, found.note
    if found.decision == "INCONCLUSIVE" and (note is None or found.confirmed is False):
        more, why = _more_pairs(found, allowed.margin)
        note = note or why
    finding = Finding(
        name=found.figure,
        kind=allowed.kind,
        limit=found.tolerated + found.allowance,
        source=allowed.source,
        verdict=found.decision,
        value=found.ratio * found.base_value,
        baseline=f"{found.base} beside it",
        baseline_value=found.base_value,
        ratio=found.ratio,
        ratio_low=found.ratio_low,
        ratio_high=found.ratio_high,
        more_launches=more,
        more_s=None if more is None else more * now.duration_s / max(now.launches, 1),
        note=note,
    )
    changed = tuple(
        each
        for each in (circumstances.differences(now, base, ("treatment",)) if base is not None else ())
        if not each.fact.startswith(("treatment.cpus", f"treatment.{CANDIDATE_KEY}"))
    )
    return BaselineComparison(finding.baseline or "", (finding,), treatment=changed)


def _more_pairs(found: SideBySide, margin: Margin) -> tuple[int | None, str | None]:
    """About how many pairs more would tell, and why it does not where the interval does not say that."""
    if found.ratio_low is None or found.ratio_high is None:
        return max(fewest_pairs(CONFIDENCE) - found.pairs, 1), "too few pairs for an interval"
    worse = (found.ratio < margin.limit) == (margin.better == "higher")
    widened = 1.0
    if found.confirmed is False and worse:  # what has to be confirmed is held to the confidence of the session
        normal = NormalDist()
        widened = normal.inv_cdf(1 - found.error_rate / found.cases) / normal.inv_cdf((1 + CONFIDENCE) / 2)
    low, high = (found.ratio + widened * (end - found.ratio) for end in (found.ratio_low, found.ratio_high))
    more = launches_until_told(Estimate(found.ratio, low, high), margin.limit, found.pairs)
    return more, AT_LIMIT if more is None else None


@dataclass(frozen=True, slots=True)
class Overall:
    """A candidate over all its cases.

    Attributes:
        candidate: ``ovs:new``, and of which run where there are several.
        decision: the worst of its cases. counts: how many have which.
        results: its lines of ``results.jsonl``.
    """

    candidate: str
    decision: str
    counts: str
    results: tuple[Mapping[str, Any], ...]

    @property
    def sentence(self) -> str:
        return f"{self.candidate} beside what there is: {self.decision} ({self.counts})"


def candidates(results: Iterable[Mapping[str, Any]]) -> list[Overall]:
    """The decision for each candidate, in the order in which they were measured; nothing without candidates.

    Args:
        results: of one session or of several, as lines of ``results.jsonl``.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        candidate = (result.get("axes") or {}).get(CANDIDATE_KEY)
        if candidate is not None:
            of = f" ({result[RUN]})" if result.get(RUN) else ""
            groups.setdefault(printable(f"{result.get('switch')}:{candidate}{of}"), []).append(result)
    found = []
    for name, group in groups.items():
        decisions = [decision_of(result) for result in group]
        counts = ", ".join(f"{decisions.count(each)} {each}" for each in _ORDER if each in decisions)
        found.append(Overall(name, min(decisions, key=_ORDER.index), counts, tuple(group)))
    return found


def error_rates(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence on how often a session accuses a good version; one for each of several sessions that differ in it."""
    stated = (found for result in results if (found := result.get("side_by_side")))
    return [
        f"suspects were measured again: over {count} comparison{'' if count == 1 else 's'} at most {percent(rate)} of"
        " sessions accuse a good version"
        for count, rate in dict.fromkeys((found["cases"], found["error_rate"]) for found in stated)
    ]


def overall(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The decision for each candidate over its cases, each case, and what it stands on, a sentence a line."""
    lines = []
    for each in candidates(results):
        lines += [each.sentence, *(f"  {_line(result)}" for result in each.results)]
    return lines + error_rates(results)


def decision_of(result: Mapping[str, Any]) -> str:
    """One of INVALID, REGRESSED, INCONCLUSIVE, IMPROVED and PASS."""
    return str(result.get("decision") or ("INVALID" if result.get("verdict") == "INVALID" else "INCONCLUSIVE"))


def _line(result: Mapping[str, Any]) -> str:
    text = f"{printable(str(result.get('case')))}: {decision_of(result)}"
    return ", ".join([text, *filter(None, comparison_of(result))])


def comparison_of(result: Mapping[str, Any]) -> tuple[str, str]:
    """What a candidate's comparison gave: the change with its interval, and what else there is to say."""
    found = result.get("side_by_side")
    if not found:
        return "", printable(str(result.get("reason") or ""))
    text = f"{found['figure']} {_change(found['ratio'])}"
    if found["ratio_low"] is not None:
        text += f" ({_change(found['ratio_low'])} to {_change(found['ratio_high'])}, {found['pairs']} pairs)"
    return text, f"first {found['screen']}, not confirmed" if found["confirmed"] is False else ""


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"
