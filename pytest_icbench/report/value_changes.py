# SPDX-License-Identifier: BSD-3-Clause
"""Changes against a baseline, another version or another run, the worst first. Pure.

A change comes from the comparison that decided the verdict: the pairs of launches of two versions side by side, or the
finding of the gate against a baseline. So every report shows the numbers of the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_icbench.display.case_names import label, shared, short
from pytest_icbench.display.table import Cells, grid, listing
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Baseline, make_entry
from pytest_icbench.gate.margins import COMPARED, MAIN, Margins
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.finding import Finding, SideBySide
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.stats.verdict_rule import Allowance
from pytest_icbench.wording import counted, grouped, printable, signed_percent

#: The compared values as readers know them: name, unit, and the factor to the unit.
_NAMES: Mapping[str, tuple[str, str, float]] = {
    "throughput_pps": ("rate", "Mpps", 1e-6),
    "cycles_per_packet": ("cycles of the switch", "a frame", 1.0),
    "operations_per_second": ("rate", "operations/s", 1.0),
    "response_p50_ns": ("median response", "µs", 1e-3),
    "response_p99_ns": ("99th percentile response", "µs", 1e-3),
    "response_p99_9_ns": ("99.9th percentile response", "µs", 1e-3),
    "server_cpu_ns_per_operation": ("CPU of the server", "µs an operation", 1e-3),
    "rtt_p50_ns": ("median RTT", "µs", 1e-3),
    "rtt_mean_ns": ("mean RTT", "µs", 1e-3),
    "rtt_p90_ns": ("90th percentile RTT", "µs", 1e-3),
    "rtt_p99_ns": ("99th percentile RTT", "µs", 1e-3),
    "rtt_p99_9_ns": ("99.9th percentile RTT", "µs", 1e-3),
}

#: The directory of a session.
_SESSION = re.compile(r"/run/icbench/[^/,]+/(r\d+/)?")


def in_units(name: str) -> tuple[str, str, float]:
    """Returns a compared value as readers know it: its name, its unit, and the factor to the unit."""
    return _NAMES.get(name, (name, "", 1.0))


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one value of a case.

    Attributes:
        case: the id of the case now.
        name: the value's name in results: ``throughput_pps``.
        before, now: the values in the unit of results; None if unknown.
        ratio, low, high: now over before with its interval; None if unknown.
        limit: the worst ratio allowed; None if unknown.
        gain: the ratio above which (below which for a time) a change is a gain and not noise; None if unknown.
        note: why nothing is decided, or another remark.
    """

    case: str
    name: str
    verdict: str
    before: float | None = None
    now: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    gain: float | None = None
    note: str = ""

    @property
    def less_is_better(self) -> bool:
        """Whether a smaller value is better, as for a time."""
        return self.name in COMPARED and COMPARED[self.name][1] == "lower"

    @property
    def worsening(self) -> float:
        """The share by which the value is worse than before; negative for a gain, 0 where it is unknown."""
        if self.ratio is None:
            return 0.0
        return self.ratio - 1 if self.less_is_better else 1 - self.ratio

    @property
    def text(self) -> str:
        """The change with its interval: ``-12.0 % (-13.0 to -11.0)``; empty where it is unknown."""
        if self.ratio is None:
            return ""
        if self.low is None or self.high is None:
            return f"{signed_percent(self.ratio)} %"
        return f"{signed_percent(self.ratio)} % ({signed_percent(self.low)} to {signed_percent(self.high)})"

    @property
    def values(self) -> str:
        """Both values in the reader's unit: ``5.1 to 4.488 Mpps``; empty where one is unknown."""
        if self.before is None or self.now is None:
            return ""
        _, unit, factor = in_units(self.name)
        return f"{short(self.before * factor)} to {short(self.now * factor)} {unit}"


def comparison_lines(comparison: Comparison, width: int) -> list[str]:
    """Returns the lines of a comparison for terminals: title with counts, facts, tables, and each remark once."""
    lines = [f"{comparison.title}: {comparison.counts}", *(f"  {fact}" for fact in comparison.facts)]
    lines += ["", *change_tables(comparison.changes, width)]
    notes = grouped((change for change in comparison.changes if change.note), lambda change: change.note)
    return lines + [f"{counted(len(changes), 'value')}: {note}" for note, changes in notes.items()]


#: The heads of tables of changes, and whether their cells are aligned to the right.
_HEADS = {"before": True, "now": True, "change": True, "95 %": True, "verdict": False}


def change_tables(changes: Sequence[Change], width: int) -> list[str]:
    """Returns a table for each value, with an empty line after it. Names leave out the end that all cases share."""
    lines: list[str] = []
    for name, group in grouped(changes, lambda change: change.name).items():
        end = shared([change.case for change in group])
        names = [label(change.case, end) for change in group]
        columns = zip(*map(_cells, group), strict=True)
        cells = [Cells(head, texts, right) for (head, right), texts in zip(_HEADS.items(), columns, strict=True)]
        title, unit, _ = in_units(name)
        value = f"{title}, {unit}" if unit else title
        lines += [f"{value}, all with {end.removeprefix('-')}" if end else value]
        lines += [*(grid(names, cells, width) or listing(names, cells, width)), ""]
    return lines


def _cells(change: Change) -> tuple[str, ...]:
    factor = in_units(change.name)[2]
    before, now = ("" if value is None else short(value * factor) for value in (change.before, change.now))
    ends = [signed_percent(end) for end in (change.low, change.high) if end is not None]
    ratio = "" if change.ratio is None else f"{signed_percent(change.ratio)} %"
    return before, now, ratio, " to ".join(ends) if len(ends) == 2 else "", change.verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """All changes against one base, baseline or run.

    Attributes:
        title: the two sides: ``ovs:new against ovs``.
        facts: versions, files and configurations of both sides, as sentences.
        changes: the changes, the worst first.
        counts: the number of changes of each verdict.
    """

    title: str
    facts: tuple[str, ...]
    changes: tuple[Change, ...]
    counts: str

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Returns the heads of a table of the changes and its rows; without remarks where no change has one."""
        heads = ("Case", "Value", "Before to now", "Change (interval)", "Verdict", "Remark")
        rows: list[tuple[str, ...]] = [
            (change.case, in_units(change.name)[0], change.values, change.text, change.verdict, change.note)
            for change in self.changes
        ]
        count = len(heads) if any(change.note for change in self.changes) else len(heads) - 1
        return heads[:count], [row[:count] for row in rows]


def compared(title: str, facts: Iterable[str], changes: Iterable[Change]) -> Comparison:
    """Returns a comparison with its changes in order."""
    changes = list(changes)
    verdicts = [change.verdict for change in changes]
    order = [*ORDER, *sorted(set(verdicts) - set(ORDER))]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in order if verdict in verdicts)
    places = {verdict: place for place, verdict in enumerate(ORDER)}
    ordered = sorted(changes, key=lambda change: (places.get(change.verdict, 99), -change.worsening, change.case))
    return Comparison(printable(title), tuple(map(printable, facts)), tuple(ordered), counts)


def change_of(result: Result) -> Change | None:
    """Returns the change of a result's main value; None for a result that was compared with nothing."""
    return next(iter(changes_of(result)), None)


def changes_of(result: Result) -> list[Change]:
    """Returns the changes of a result, that of its main value first."""
    if result.side_by_side is not None:
        return [_side_by_side(result, result.side_by_side)]
    if result.point.candidate is not None:
        verdict = result.decision or (Verdict.INCONCLUSIVE if result.is_number else Verdict.INVALID)
        return [Change(result.case, MAIN[result.dimension], verdict, note=printable(result.reason or ""))]
    findings = result.against or tuple(finding for finding in result.findings if finding.baseline is not None)
    main = MAIN.get(result.dimension)
    ratio = result.ratio_to_baseline
    if not findings and ratio is not None and main is not None:
        verdict = result.verdict or Verdict.INCONCLUSIVE
        return [Change(result.case, main, verdict, ratio=ratio.value, low=ratio.low, high=ratio.high)]
    return [of_finding(result.case, item) for item in sorted(findings, key=lambda item: item.name != main)]


def _side_by_side(result: Result, comparison: SideBySide) -> Change:
    better = COMPARED[comparison.figure][1] if comparison.figure in COMPARED else "higher"
    limit, gain = (Allowance(better, share).limit for share in (comparison.allowance, -comparison.allowance))
    notes = (comparison.note, f"{counted(comparison.pairs, 'pair')} of launches")
    return Change(
        case=result.case,
        name=comparison.figure,
        verdict=result.decision or comparison.decision,
        before=comparison.base_value,
        now=comparison.base_value * comparison.ratio,
        ratio=comparison.ratio,
        low=comparison.ratio_low,
        high=comparison.ratio_high,
        limit=limit,
        gain=gain,
        note="; ".join(filter(None, notes)),
    )


def of_finding(case: str, finding: Finding) -> Change:
    """Returns the change that a finding against a baseline states."""
    drop = finding.kind == "drop"
    return Change(
        case=case,
        name=finding.name,
        verdict=finding.verdict,
        before=finding.baseline_value,
        now=finding.value,
        ratio=finding.ratio,
        low=finding.ratio_low,
        high=finding.ratio_high,
        limit=1 - finding.limit if drop else 1 + finding.limit,
        gain=1 + finding.limit if drop else 1 - finding.limit,
        note=finding.outlook() or finding.note or "",
    )


def comparisons(results: Sequence[Result]) -> list[Comparison]:
    """Returns a comparison for each candidate, for each baseline, and for the previous run."""
    groups = grouped((result for result in results if result.point.candidate is not None), candidate_name)
    bases = {(result.case, result.dimension, result.run): result for result in results}
    every = [
        compared(
            f"{name} against its base",
            _versions(group, bases),
            (change for item in group for change in changes_of(item)),
        )
        for name, group in groups.items()
    ]
    plain = [result for result in results if result.point.candidate is None and changes_of(result)]
    for (run, before), group in grouped(plain, lambda result: (result.run, _before(result))).items():
        every.append(
            compared(
                f"{run or 'This run'} against {before}",
                _differences(group),
                (change for item in group for change in changes_of(item)),
            )
        )
    return every


def candidate_name(result: Result) -> str:
    """Returns the name of a result's candidate, with the run where there are several: ``ovs:new``."""
    of = f" ({result.run})" if result.run else ""
    return f"{result.switch}:{result.point.candidate}{of}"


def _before(result: Result) -> str:
    return str(result.against[0].baseline) if result.against else f"baseline {result.baseline or ''}".rstrip()


def _versions(group: Sequence[Result], bases: Mapping[tuple[str, str, str | None], Result]) -> list[str]:
    """Returns sentences on what a candidate replaces and how it differs from its base."""
    sentences = []
    for result in group:
        base = bases.get((result.point.base.id, result.dimension, result.run))
        sentences += [_replaced(result), *([] if base is None else _differing(result, base))]
    return list(dict.fromkeys(filter(None, sentences)))


def _replaced(result: Result) -> str:
    """Returns what a candidate replaces and by what: ``ovs:new is the binary ovs-vswitchd (sha256 1f…)``."""
    facts = result.treatment.get(CANDIDATE_KEY)
    if not isinstance(facts, Mapping):
        return ""
    kinds = {
        "binary": "the binary",
        "config": "the configuration",
        "lib": "the libraries",
        "sysctl": "the kernel option",
    }
    kinds |= {"node": "the nodes", "old": "the old version"}
    digest, kind = str(facts.get("sha256") or ""), str(facts.get("kind"))
    text = f"{result.switch}:{result.point.candidate} is {kinds.get(kind, f'the {kind}')} {facts.get('value')}"
    target = facts.get("target")
    where = f" of {target}" if target and target != result.switch else ""
    return f"{text}{where}" + (f" (sha256 {digest[:12]})" if digest else "")


def _differing(now: Result, before: Result) -> list[str]:
    """Returns the versions and configurations in which two results differ."""
    here, there = _software(now.treatment), _software(before.treatment)
    names = [name for name in dict.fromkeys([*there, *here]) if here.get(name) != there.get(name)]
    if not names and now.treatment:
        version = here.get("switch version")
        return [f"switch version {version} on both sides"] if version else []
    return [sentence for name in names if (sentence := changed(name, there.get(name), here.get(name)))]


def _software(treatment: Mapping[str, Any]) -> dict[str, Any]:
    switch = treatment.get("switch")
    facts = dict(switch) if isinstance(switch, Mapping) else {}
    named = {
        "switch version": facts.get("version"),
        "DPDK": treatment.get("dpdk"),
        "workload": treatment.get("workload_build"),
        "kernel": treatment.get("kernel"),
    }
    for name, value in (facts.get("config") or {}).items():
        named[f"switch setting {name}"] = value
    user = facts.get("user_config")
    return {**named, "user's configuration": user}


def changed(name: str, before: object, now: object) -> str:
    """Returns a sentence on a fact that differs: ``switch version: 3.1.0 before, 3.3.0 now``.

    For two command lines it lists the words that only one of them has. It is empty if only the name of the session's
    directory differs, which is new in each session.
    """
    before, now = _lasting(before), _lasting(now)
    if before == now:
        return ""
    if isinstance(before, list) and isinstance(now, list):
        only_before, only_now = (
            [word for word in here if word not in there] for here, there in ((before, now), (now, before))
        )
        before, now = " ".join(only_before) or None, " ".join(only_now) or None
        if before == now:
            return f"{name}: the same words in another order"
    return f"{name}: {_shown(before)} before, {_shown(now)} now"


def _lasting(value: object) -> object:
    """Returns a fact without the names of sessions' directories."""
    if isinstance(value, list | tuple):
        return [_SESSION.sub("/run/icbench/", str(word)) for word in value]
    return _SESSION.sub("/run/icbench/", value) if isinstance(value, str) else value


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        digest = str(value.get("sha256") or "")[:12]
        named = f"{value.get('file')} (sha256 {digest})"
        value = named if digest else ", ".join(f"{key} {item}" for key, item in value.items())
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _differences(group: Sequence[Result]) -> list[str]:
    """Returns the facts that differ from the baseline's, without the CPUs of threads."""
    sentences = [
        sentence
        for result in group
        for name, (before, now) in result.treatment_changes.items()
        if not name.startswith("cpus.") and (sentence := changed(name, before, now))
    ]
    findings = (finding for result in group for finding in (*result.against, *result.findings))
    days = sorted({finding.measured[:10] for finding in findings if finding.measured})
    measured = [f"measured before: {', '.join(days)}"] if days else []
    return [*measured, *(list(dict.fromkeys(sentences)) or ["the same versions and configuration on both sides"])]


def against_first(results: Sequence[Result], before: str, now: str) -> list[Result]:
    """Returns the results; those of the second run have ``against``, and the facts that differ.

    A result is unchanged if the first run has no entry for it, if the conditions differ, or if no baseline can hold it.
    The default margin applies. ``before`` and ``now``: the names of the two runs; they differ.
    """
    entries = [entry for result in results if result.run == before and (entry := make_entry(result)) is not None]
    comparer = Comparer(Baseline(f"run {before}", tuple(entries), is_run=True))
    return [_against(result, comparer) if result.run == now else result for result in results]


def _against(result: Result, comparer: Comparer) -> Result:
    if result.point.candidate is not None:  # its base of the same session decides
        return result
    comparison = comparer.compare(result, Margins(), retest=True)
    if comparison is None or not comparison.findings:
        return result
    changes = {
        difference.fact.removeprefix("treatment."): [difference.there, difference.here]
        for difference in comparison.treatment
    }
    return replace(result, against=comparison.findings, treatment_changes=changes)
