# SPDX-License-Identifier: BSD-3-Clause
"""The head of a report: its question, the facts of the run, verdicts counted, and warnings. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from pytest_icbench.display.case_names import path_of
from pytest_icbench.kinds.registry import kind_of
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import ORDER, Verdict
from pytest_icbench.report import overview, remarks
from pytest_icbench.report.columns import shown_verdict
from pytest_icbench.wording import alternatives, clock, counted, listed, printable

#: Verdicts with a count even if no case has them.
_ALWAYS = (Verdict.PASS, Verdict.REGRESSED, Verdict.INVALID)
#: Verdicts of comparisons: they have a count if anything was compared.
_COMPARED = (Verdict.INCONCLUSIVE, Verdict.IMPROVED)
#: Number of paths that the sentence on shared CPUs names.
MOST_PATHS = 12
#: Number of names in a sentence; only the number of further ones follows.
_FEW = 3


class Tile(NamedTuple):
    """A count on the first screen.

    Attributes:
        number: the number, or a word in its place.
        name: what is counted.
        detail: a remark.
        colour: the name of a colour, as verdicts have.
        target: the anchor of the part of the page with the details; empty without one.
    """

    number: str
    name: str
    detail: str = ""
    colour: str = "ink"
    target: str = ""


def question(results: Sequence[Result]) -> str:
    """Returns the title: the question that the run answers, on one line."""
    if not results:
        return "Nothing was measured"
    candidates = [result for result in results if result.point.candidate is not None]
    if candidates:
        return _question_of_versions(results, candidates)
    second = {result.run: result.against[0].baseline for result in results if result.against}
    if len(second) == 1:
        return printable("What changed in {} against {}?".format(*next(iter(second.items()))))
    baselines = _several(result.baseline for result in results if result.baseline)
    if baselines:
        return f"Is anything slower than {alternatives(baselines)}?"
    runs = _several(result.run for result in results if result.run)
    if len(runs) > 1:
        return f"What differs between {', '.join(runs[:-1])} and {runs[-1]}?"
    return _question_of_paths(results)


def _question_of_paths(results: Sequence[Result]) -> str:
    paths = _several(map(path_of, results))
    kinds = {kind_of(result) for result in results}
    if len(kinds) == 1 and (kind := kinds.pop()).question is not None:
        return kind.question.format(paths=", ".join(paths))
    loads = _loads(results)
    if len(paths) == 1:
        return f"How fast is {paths[0]}? {loads[0].upper()}{loads[1:]}"
    functions = _several(result.point.function for result in results if result.point.function)
    switches = _several(result.switch for result in results if result.switch not in overview.REFERENCES)
    if functions and len(switches) == 1:
        named = alternatives(functions) if len(functions) <= _FEW else counted(len(functions), "function")
        return f"What is left of {switches[0]} with {named}? {loads[0].upper()}{loads[1:]}"
    return f"Which switch? {len(paths)} paths, {loads}"


def _question_of_versions(results: Sequence[Result], candidates: Sequence[Result]) -> str:
    names = _several(f"{result.switch}:{result.point.candidate}" for result in candidates)
    switches = _several(result.switch for result in candidates)
    if len(names) > 1:
        return f"Did {alternatives(names)} regress?"
    switch = switches[0]
    after = _several(map(_version, candidates))
    bases = {result.point.base.id for result in candidates}
    before = _several(_version(result) for result in results if result.case in bases)
    if len(after) == len(before) == 1 and "" not in (after + before) and after != before:
        return f"Did {switch} {after[0]} regress against {before[0]}?"
    return f"Did {names[0]} regress against {switch}?"


def _version(result: Result) -> str:
    switch = result.treatment.get("switch")
    return str((switch.get("version") if isinstance(switch, dict) else None) or "")


def _several(texts: Iterable[str | None]) -> list[str]:
    """Returns the distinct texts in order, without control characters."""
    return [printable(text) for text in dict.fromkeys(text or "" for text in texts)]


def _loads(results: Sequence[Result]) -> str:
    """Returns what was sent: packet sizes, mixes by name, and the loads of applications."""
    loads = [result.point.load for result in results]
    frames = [load.frames.traffic for load in loads if load.USES_API]
    sizes = _sizes({traffic.mean_bytes for traffic in frames if traffic.mix is None})
    mixes = _several(f"mix {traffic.mix}" for traffic in frames if traffic.mix)
    named = _several(load.label for load in loads if load.PAIRED and load.label)
    return ", ".join(filter(None, [sizes, *mixes, *named]))


def _sizes(lengths: Iterable[float]) -> str:
    sizes = [f"{size:g}" for size in sorted(lengths)]
    if len(sizes) > _FEW:
        return f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]} bytes"
    *first, last = sizes or [""]
    return f"{', '.join(first)} and {last} bytes" if first else last and f"{last} bytes"


def facts(results: Sequence[Result], runs: Sequence[str] = ()) -> list[str]:
    """Returns the facts of the run for one line: when, where, what. Unknown ones are left out.

    ``runs``: names of the runs.
    """
    if not results:
        return [*(f"run {printable(run)}" for run in runs)]
    began = min((result.started_at for result in results if result.started_at), default=0.0)
    ended = max((result.started_at + result.duration_s for result in results), default=0.0)
    # The times of cases that take turns do not overlap, although all of them began at the first turn. A base has the
    # time of its candidate.
    bases = {result.side_by_side.base for result in results if result.side_by_side is not None}
    measured_s = max(ended - began, sum(result.duration_s for result in results if result.case not in bases))
    parts = []
    if began:
        parts.append(f"{datetime.fromtimestamp(began, UTC):%-d %b %Y, %H:%M} UTC, {clock(measured_s)} of measuring")
    parts += _hosts(results)
    systems = _known(result.treatment.get(name) for result in results for name in ("kernel", "dpdk"))
    parts += [f"Linux {kernel}" for kernel in _known(result.treatment.get("kernel") for result in results)]
    parts += [
        f"{path} {version}"
        for path, version in dict.fromkeys((_program(result), _version(result)) for result in results)
        if version and not any(common in version for common in systems)
    ]
    parts += [f"DPDK {version}" for version in _known(result.treatment.get("dpdk") for result in results)]
    parts += [f"{placement} placement" for placement in _known(result.placement for result in results)]
    parts += [f"icbench {version}" for version in _known(result.treatment.get("pytest_icbench") for result in results)]
    parts += [f"run {run}" for run in runs]
    return [printable(part) for part in parts]


def _program(result: Result) -> str:
    candidate = result.point.candidate
    return result.switch if candidate is None else f"{result.switch}:{candidate}"


def _known(values: Iterable[object]) -> list[str]:
    return [str(value) for value in dict.fromkeys(values) if value]


def _hosts(results: Sequence[Result]) -> list[str]:
    """Returns processor, number of CPUs and whether it is a virtual machine; several hosts are counted."""
    hosts = dict.fromkeys(
        (identity.get("cpu_model"), identity.get("cpus"), identity.get("hypervisor"), identity.get("machine"))
        for result in results
        if (identity := result.identity)
    )
    if len(hosts) > 1:
        return [f"{len(hosts)} hosts"]
    parts = []
    for model, cpus, hypervisor, _ in hosts:
        known = [str(model or ""), counted(int(cpus), "CPU") if cpus else ""]
        machine = "virtual machine" if hypervisor == "unknown" else f"virtual machine ({hypervisor})"
        parts.append(", ".join(filter(None, [*known, machine if hypervisor else ""])))
    return [part for part in parts if part]


def tiles(
    results: Sequence[Result], skipped: Sequence[tuple[str, str]], failed: Sequence[tuple[str, str]] = ()
) -> list[Tile]:
    """Returns the tiles: verdicts with counts, what was not measured and why, and a hint if there is no baseline.

    The base of a candidate counts only if it was judged itself. Of two runs only the second counts, with its verdicts
    against the first.

    Args:
        skipped: ids of skipped tests with their reasons.
        failed: ids of failed tests with their messages.
    """
    others = overview.failed_otherwise(failed, results)
    if second := {result.run for result in results if result.against}:
        results = [_against_first(result) for result in results if result.run in second]
    bases = {result.side_by_side.base for result in results if result.side_by_side}
    judged = [result for result in results if result.verdict or result.case not in bases]
    counts = dict(overview.verdicts(replace(result, verdict=shown_verdict(result)) for result in judged))
    compared = bool(bases or second) or any(result.baseline for result in results)
    shown = [*_ALWAYS, *(_COMPARED if compared else ())]
    order = [*shown, *(name for name in counts if name not in shown)]
    out = [Tile(str(len(others)), "failed", "", Verdict.REGRESSED.colour, "ic-notable")] if others else []
    out += [_counted(name, counts.get(name, 0)) for name in order]
    if bases:
        out.append(Tile(str(len(bases)), "measured as the base"))
    if skipped:
        out.append(Tile(str(len(skipped)), "not measured", short_reason(skipped), "warn", "ic-skipped"))
    if results and not compared:
        out.append(Tile("no baseline", "", "--icbench-save main makes one"))
    return out


def _against_first(result: Result) -> Result:
    """Returns a result of the second run with the worst of its verdict and those against the first run."""
    of_result = () if result.verdict == Verdict.NO_BASELINE else (result.verdict,)
    verdicts = {*of_result, *(finding.verdict for finding in result.against)}
    return replace(result, verdict=next((verdict for verdict in ORDER if verdict in verdicts), result.verdict))


def _counted(name: str, count: int) -> Tile:
    verdict = overview.verdict_named(name) if count else None
    if verdict is None:
        return Tile(f"{count:,}", printable(name))
    return Tile(f"{count:,}", verdict, "", verdict.colour, "ic-notable" if verdict.notable else "")


def short_reason(skipped: Sequence[tuple[str, str]]) -> str:
    """Returns which switches were not measured and why: ``vpp and snabb are not installed; sriov needs a card``."""
    names_by_reason: dict[str, list[str]] = {}
    for reason, tests in overview.skips(skipped):
        short = re.split(r"[:;(]", printable(reason), maxsplit=1)[0].strip()
        names = sorted({_switch(test) for test in tests} - {""})
        if len(names) == 1:
            short = short.removeprefix(f"{names[0]} ")
        together = names_by_reason.setdefault(short, [])
        together += [name for name in names if name not in together]
    parts = []
    for short, names in list(names_by_reason.items())[:_FEW]:
        who = listed(names)
        is_clause = re.match(r"(is|has|needs|cannot|can) ", short) is not None
        plural = re.sub("^is ", "are ", short) if len(names) > 1 else short
        parts.append(f"{who} {plural}" if is_clause else f"{who}: {short}" if who else short)
    more = len(names_by_reason) - _FEW
    return "; ".join(parts) + (f"; and {more} more reasons" if more > 0 else "")


def _switch(test: str) -> str:
    """Returns the switch in the id of a test: the beginning of the case in brackets."""
    case = test.rpartition("[")[2]
    head = case.partition("+")[0].partition(":")[0]
    parts = head.split("-")
    sized = next((place for place, part in enumerate(parts) if part[:-1].isdigit() and part.endswith("B")), len(parts))
    return "-".join(part for part in parts[:sized] if part not in ("udp", "raw", "mmsg", "dpdk"))


def warnings(results: Sequence[Result]) -> list[str]:
    """Returns the reasons for doubt: shared cores, disturbed windows, drift, states, the host's warnings."""
    reported = Counter(str(line) for result in results for line in result.conditions.get("warnings") or ())
    parts = [f"{text.rstrip('.')}." for text in reported]
    parts += _sharing(results)
    numbers = [result for result in results if result.is_number]
    if disturbed := [
        result
        for result in numbers
        if result.disturbed_launches or result.disturbed_windows or result.disturbed_repeated
    ]:
        parts.append(_disturbed(disturbed, numbers))
    broken = [result for result in results if not result.is_number]
    spoiled = [result for result in broken if result.disturbed_launches or result.disturbed_repeated]
    if spoiled:
        parts.append(f"Disturbed: {len(spoiled)} of {_cases(len(broken))} without a value.")
    drifted = sorted(
        (result for result in numbers if remarks.drift(result)), key=lambda result: -abs(result.drift or 0)
    )
    if drifted:
        named = ", ".join(f"{_label(result)} {remarks.drifted(result.drift or 0.0)}" for result in drifted[:_FEW])
        parts.append(f"{_cases(len(drifted)).capitalize()} drifted while measured: {_and_more(named, len(drifted))}.")
    if moved := [result for result in numbers if len(result.levels) > 1]:
        named = ", ".join(map(_label, moved[:_FEW]))
        several = "met several states of the host" + (f": {named}" if len(moved) <= _FEW else "")
        parts.append(f"{_cases(len(moved)).capitalize()} {several}. Each comparison is of one state.")
    return [printable(part) for part in parts]


def _sharing(results: Sequence[Result]) -> list[str]:
    """Returns which paths have endpoints that share CPUs, which have not, and what that does to a comparison."""
    groups = [[result for result in results if remarks.shares_cpus(result) is shared] for shared in (True, False)]
    if not groups[0]:
        return []
    said = []
    for verb, group in zip(("share", "have"), groups, strict=True):
        names = _several(map(path_of, group))
        more = " and others" if len(names) > MOST_PATHS else ""
        said += [f"{', '.join(names[:MOST_PATHS])}{more} {verb} {_endpoint_cpus(group)}"] if names else []
    return [f"The endpoints of {'; those of '.join(said)}. Sharing makes a path slower, never faster."]


def _endpoint_cpus(group: Sequence[Result]) -> str:
    cpus = {cpu for result in group for cpu in (result.treatment.get("cpus") or {}).get("endpoints") or ()}
    return f"CPU{'s' if len(cpus) > 1 else ''} {', '.join(map(str, sorted(cpus)))}" if cpus else "CPUs"


def _disturbed(disturbed: Sequence[Result], numbers: Sequence[Result]) -> str:
    """Returns how many launches and windows other processes disturbed, and the case with most of them."""
    launches = sum(result.disturbed_launches or 0 for result in disturbed), sum(result.launches for result in numbers)
    windows = sum(result.disturbed_windows for result in disturbed), sum(result.windows for result in numbers)
    counts = (("launches", launches), ("windows", windows))
    reported = " and ".join(f"{part:,} of {whole:,} {what}" for what, (part, whole) in counts if part)
    if repeated := sum(result.disturbed_repeated or 0 for result in disturbed):
        reported += f"{', ' if reported else ''}{counted(repeated, 'launch')} repeated"
    worst = max(disturbed, key=lambda result: result.disturbed_windows / max(result.windows, 1))
    most = f"; most in {_label(worst)}: {worst.disturbed_windows} of {worst.windows} windows" if windows[0] else ""
    return f"Disturbed: {reported}, in {_cases(len(disturbed))}{most}."


def _label(result: Result) -> str:
    return f"{result.case} (round trip)" if result.figures.LESS_IS_BETTER else result.case


def _cases(number: int) -> str:
    return counted(number, "case")


def _and_more(named: str, number: int) -> str:
    return named + (f" and {number - _FEW} more" if number > _FEW else "")
