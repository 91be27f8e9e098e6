# SPDX-License-Identifier: BSD-3-Clause
"""What versions side by side mean for people: a sentence a case, and one decision overall. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.wording import percent, printable


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
    results: tuple[Result, ...]

    @property
    def sentence(self) -> str:
        return f"{self.candidate} beside what there is: {self.decision} ({self.counts})"


def candidates(results: Iterable[Result]) -> list[Overall]:
    """The decision for each candidate, in the order in which they were measured; nothing without candidates.

    Args:
        results: of one session or of several, as lines of ``results.jsonl``.
    """
    groups: dict[str, list[Result]] = {}
    for result in results:
        candidate = result.point.candidate
        if candidate is not None:
            of = f" ({result.run})" if result.run else ""
            groups.setdefault(printable(f"{result.switch}:{candidate}{of}"), []).append(result)
    found = []
    for name, group in groups.items():
        decisions = [decision_of(result) for result in group]
        counts = ", ".join(f"{decisions.count(each)} {each}" for each in ORDER if each in decisions)
        found.append(Overall(name, min(decisions, key=ORDER.index), counts, tuple(group)))
    return found


def error_rates(results: Iterable[Result]) -> list[str]:
    """A sentence on how often a session accuses a good version; one for each of several sessions that differ in it."""
    stated = (found for result in results if (found := result.side_by_side))
    return [
        f"suspects were measured again: over {count} comparison{'' if count == 1 else 's'} at most {percent(rate)} of"
        " sessions accuse a good version"
        for count, rate in dict.fromkeys((found.cases, found.error_rate) for found in stated)
    ]


def overall(results: Sequence[Result]) -> list[str]:
    """The decision for each candidate over its cases, each case, and what it stands on, a sentence a line."""
    lines = []
    for each in candidates(results):
        lines += [each.sentence, *(f"  {_line(result)}" for result in each.results)]
    return lines + error_rates(results)


def decision_of(result: Result) -> str:
    """One of INVALID, REGRESSED, INCONCLUSIVE, IMPROVED and PASS."""
    return result.decision or (Verdict.INCONCLUSIVE if result.is_number else Verdict.INVALID)


def _line(result: Result) -> str:
    text = f"{printable(result.case)}: {decision_of(result)}"
    return ", ".join([text, *filter(None, comparison_of(result))])


def comparison_of(result: Result) -> tuple[str, str]:
    """What a candidate's comparison gave: the change with its interval, and what else there is to say."""
    found = result.side_by_side
    if found is None:
        return "", printable(result.reason or "")
    text = f"{found.figure} {_change(found.ratio)}"
    if found.ratio_low is not None and found.ratio_high is not None:
        text += f" ({_change(found.ratio_low)} to {_change(found.ratio_high)}, {found.pairs} pairs)"
    return text, f"first {found.screen}, not confirmed" if found.confirmed is False else ""


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"
