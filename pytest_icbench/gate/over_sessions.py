# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a figure against the sessions that a baseline keeps: method 2 of the gate. Pure.

One value a session, and one interval of the prediction of one more (``stats.decision.decide_session``). The value
decides together with its ratio to the reference link that was launched beside it, which tells the host from the
software. A session outside by both is a possible regression. It is measured again on fresh rigs at the session's end,
and is REGRESSED if it is outside by both again. What needs to be outside twice and by both is so by chance even more
rarely than each look's level says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.gate.entry import Entry
from pytest_icbench.gate.margins import Allowed
from pytest_icbench.gate.power import levels_of, more_sessions, power_of
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.decision import ENOUGH_SESSIONS, Outcome, decide_session
from pytest_icbench.stats.quantiles import Estimate

_LINK_TOO = "the reference link changed, too: the host is not as it was"
_LINK_ALONE = "worse only relative to the reference link: the host is not as it was"
_NO_LINK = "no reference link tells host from software: compare both versions (--icbench-variant)"
_SAME = "the software is the same: only the host can have changed"
_ONCE = "worse once, and not measured again (--icbench-budget)"


def over_sessions(
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
    power = power_of([levels for _, levels in known], allowed.allowance, cases)
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
        "finds": power.finds,
        "weak": power.weak,
    }
    finding = replace(finding, **judged)
    outcomes = [decision.outcome for decision in decisions]
    spread_hides = outcomes == ["open", "worse"]
    if "worse" in outcomes and not spread_hides:
        if set(outcomes) == {"worse"} and _same_software(now, before):
            return replace(finding, reason="host", note=_SAME)
        return _of_worse(finding, outcomes, retest=retest)
    if spread_hides or (power.weak and outcomes != ["better", "better"]):
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
