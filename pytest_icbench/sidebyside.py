# SPDX-License-Identifier: BSD-3-Clause
"""What versions side by side mean for the gate and for people: one decision a case, and one overall. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_icbench import comparable
from pytest_icbench.baseline.against import Against
from pytest_icbench.judging import Better, Margin, launches_until_told
from pytest_icbench.margins import COMPARED, Allowed
from pytest_icbench.report.names import printable
from pytest_icbench.result import Measurement
from pytest_icbench.result_judged import Finding
from pytest_icbench.result_versions import SideBySide
from pytest_icbench.stats import Estimate
from pytest_icbench.wording import cut, percent

#: Of several decisions the first is the overall one.
_ORDER = ("INVALID", "REGRESSED", "INCONCLUSIVE", "IMPROVED", "PASS")


def against_base(now: Measurement, base: Measurement | None, allowed: Allowed) -> Against | None:
    """The contender's comparison as the gate judges it; None if it is no number.

    Without ``base`` nothing is said of what differs.
    """
    found = now.side_by_side
    if found is None:
        return None
    ratio = Estimate(found.ratio, found.ratio_low, found.ratio_high)
    more = None
    if found.decision == "INCONCLUSIVE" and found.note is None:
        more = launches_until_told(ratio, allowed.margin.limit, found.pairs)
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
        note=found.note or ("too few pairs for an interval" if found.ratio_low is None else None),
    )
    changed = tuple(
        each
        for each in (comparable.differences(now, base, ("treatment",)) if base is not None else ())
        if not each.fact.startswith(("treatment.cpus", "treatment.contender"))
    )
    return Against(finding.baseline or "", (finding,), treatment=changed)


def allowed_then(found: SideBySide) -> Allowed:
    """What was allowed when a stored comparison was made."""
    better: Better = COMPARED[found.figure][1]
    margin = Margin(better, found.tolerated, found.allowance)
    return Allowed(found.figure, "drop" if better == "higher" else "rise", margin, "the limits of that run")


def overall(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The decision for each contender over its cases, and what it stands on; nothing without contenders.

    Args:
        results: of a session, as lines of ``results.jsonl``.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        contender = (result.get("axes") or {}).get("contender")
        if contender is not None:
            groups.setdefault(f"{result.get('switch')}:{contender}", []).append(result)
    lines = []
    for name, group in groups.items():
        decisions = [decision_of(result) for result in group]
        worst = min(decisions, key=_ORDER.index)
        counts = ", ".join(f"{decisions.count(each)} {each}" for each in _ORDER if each in decisions)
        lines.append(f"{printable(name)} beside what there is: {worst} ({counts})")
        lines += [f"  {_line(result)}" for result in group]
    stated = [result["side_by_side"] for result in results if result.get("side_by_side")]
    if stated:
        count = stated[0]["cases"]
        lines.append(
            f"suspects were measured again: over {count} comparison{'' if count == 1 else 's'} at most"
            f" {percent(stated[0]['error_rate'])} of sessions accuse a good version"
        )
    return [cut(line) for line in lines]


def decision_of(result: Mapping[str, Any]) -> str:
    """One of INVALID, REGRESSED, INCONCLUSIVE, IMPROVED and PASS."""
    return str(result.get("decision") or ("INVALID" if result.get("verdict") == "INVALID" else "INCONCLUSIVE"))


def _line(result: Mapping[str, Any]) -> str:
    found = result.get("side_by_side")
    text = f"{printable(str(result.get('case')))}: {decision_of(result)}"
    if not found:
        return f"{text} {printable(str(result.get('reason') or ''))}".rstrip()
    text += f", {found['figure']} {_change(found['ratio'])}"
    if found["ratio_low"] is not None:
        text += f" ({_change(found['ratio_low'])} to {_change(found['ratio_high'])}, {found['pairs']} pairs)"
    if found["confirmed"] is False:
        text += f", first {found['screen']}, not confirmed"
    return text


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"
