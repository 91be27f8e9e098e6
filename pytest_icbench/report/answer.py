# SPDX-License-Identifier: BSD-3-Clause
"""The answer of a run in a few sentences; "undecided" is one of the possible answers. Pure.

Further sentences give the cost of a rule of an access list, and what a host with two CPUs can show and what it cannot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import ceil, inf
from statistics import linear_regression
from typing import NamedTuple

from pytest_icbench.display.case_names import (
    Traffic,
    interval_text,
    limit,
    main_figure,
    main_unit,
    number,
    path_of,
    short,
    three,
    traffic,
    value_text,
)
from pytest_icbench.gate.margins import COMPARED, MAIN
from pytest_icbench.kinds import registry
from pytest_icbench.kinds.registry import kind_of
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import KINDS
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report import decisions
from pytest_icbench.report.decisions import power
from pytest_icbench.report.overview import Ranking, held_back, rankings, verdict_named, work_of
from pytest_icbench.report.plain import plain_ratio, with_plain
from pytest_icbench.report.reported_intervals import deciding
from pytest_icbench.report.value_changes import change_of, comparisons, in_units
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import counted, grouped, listed, percent, plain_name, printable, signed_percent, span

#: Number of traffics that the first screen shows for each kind of measurement.
MOST_TRAFFICS = 2
#: Number of cases, or of paths, that a sentence names.
_FEW = 3
#: The words for values that decide.
_PLAIN = {"throughput_pps": "rate", "rtt_p50_ns": "round trip", "cycles_per_packet": "cycles a frame"}


class Sentence(NamedTuple):
    """A sentence of the answer.

    Attributes:
        lead: the first words, which say what it is about.
        text: the rest.
        verdict: the verdict that it reports; None for another.
    """

    lead: str
    text: str
    verdict: Verdict | None = None


def answer(results: Sequence[Result]) -> list[Sentence]:
    """Returns the sentences: candidates, the baseline, the highest rates, the shortest delays, created containers.

    The last ones say what a host of two CPUs can show, and what not.
    """
    results = with_plain(results)
    compared = [*_candidates(results), *(_second_run(results) or _baseline(results))]
    second = sorted({result.run for result in results if result.against and result.run})
    of_run = f" in {printable(second[0])}" if len(second) == 1 else ""
    # Where versions are compared, or functions measured, one path alone is no contest.
    ranked = [
        ranking
        for ranking in rankings(results)
        if len(ranking.paths) > 1 or not (compared or ranking.paths[0].point.function)
    ]
    return [
        *compared,
        *_functions(results),
        *(
            sentence
            for dimension in dict.fromkeys(kind.DIMENSION for kind in KINDS)
            if (of_kind := [item for item in ranked if item.paths[0].dimension == dimension])
            for sentence in _fastest(of_kind, of_kind[0].paths[0].figures.LEAD + of_run)
        ),
        *(Sentence("Rules:", sentence) for sentence in rule_costs(results)),
        *(
            Sentence(f"{path_of(result)}:", sentence)
            for result in results
            if (kind := kind_of(result)) and (sentence := kind.sentence(result))
        ),
        *(Sentence("What this host shows:", sentence) for sentence in few_cpus_show(results)),
    ]


def as_lines(results: Sequence[Result]) -> list[str]:
    """Returns the answer for terminals: the decision on each candidate with all its cases, then the other sentences."""
    shown = deciding(results)
    others = answer(shown)[len(_candidates(shown)) :]
    found = power([result for result in results if result.point.candidate is not None])
    return [*decisions.overall(results), *found, *(f"{sentence.lead} {sentence.text}" for sentence in others)]


def _functions(results: Sequence[Result]) -> list[Sentence]:
    """Returns a sentence for each of the first traffics: the share of the path's rate that each function leaves."""
    known = [result for result in results if not result.figures.LESS_IS_BETTER and plain_ratio(result) is not None]
    out = []
    for key in first_traffics(known) if known else ():
        group = sorted((item for item in known if _key(item) == key), key=lambda item: plain_ratio(item) or 0.0)
        named = [f"{path_of(item)} {_part(plain_ratio(item))}" for item in group[:_FEW]]
        more = f"; and {len(group) - _FEW} more" if len(group) > _FEW else ""
        text = f"{'; '.join(named)} of the path without the function{more}."
        out.append(Sentence(f"Rate with functions, {key[2].load or key[2].size}:", printable(text)))
    return out


def _part(ratio: Estimate | None) -> str:
    if ratio is None:
        return ""
    ends = "" if ratio.low is None or ratio.high is None else f" ({percent(ratio.low)} to {percent(ratio.high)})"
    return percent(ratio) + ends


def first_traffics(results: Iterable[Result]) -> list[tuple[str, str, Traffic]]:
    """Returns metric, placement and traffic of the comparisons on the first screen.

    The comparisons with the most paths come first. Among these it takes the shortest and the longest frames, or the
    first and the last comparison if all frames have one length.
    """
    groups = grouped(results, _key)
    if len(groups) <= MOST_TRAFFICS:
        return list(groups)
    paths = {key: len({path_of(replace(result, apart=None)) for result in group}) for key, group in groups.items()}
    most = max(paths.values())
    keys = [key for key in groups if paths[key] == most]
    first = min(keys, key=lambda key: key[2].packet_size)
    alike = [
        key
        for key in keys
        if key[:2] == first[:2] and key[2]._replace(packet_size=0) == first[2]._replace(packet_size=0)
    ]
    last = max(alike, key=lambda key: key[2].packet_size)
    if last == first:  # the traffics differ in another axis
        last = [key for key in keys if key[:2] == first[:2]][-1]
    return list(dict.fromkeys((first, last)))


def _candidates(results: Sequence[Result]) -> list[Sentence]:
    out = []
    for overall in decisions.candidates(results):
        verdict = verdict_named(overall.decision)
        cases = sorted(overall.results, key=lambda result: _worse(_ratio(result), result))
        counts = f"{overall.counts.replace(', ', '; ')} of {counted(len(cases), 'comparison')}."
        parts = [counts]
        for word, chosen in (("Worst", Verdict.REGRESSED), ("Best", Verdict.IMPROVED)):
            named = [result for result in cases if decisions.decision_of(result) == chosen]
            named = named if chosen == Verdict.REGRESSED else named[::-1]
            if named:
                parts.append(f"{word}: {_changes(named)}.")
        parts += [f"Undecided: {text}." for text in _outlooks(cases)[:1]]
        parts += [f"{line[0].upper()}{line[1:]}." for line in power(cases)]
        out.append(Sentence(f"{overall.candidate} against its base: {overall.decision}.", " ".join(parts), verdict))
    if not any(sentence.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) for sentence in out):
        return out  # next to undecided verdicts, the rate of false alarms would reassure without a reason
    rates = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in decisions.error_rates(results)]
    return [*out[:-1], out[-1]._replace(text=" ".join([out[-1].text, *rates]))]


def _outlooks(results: Sequence[Result]) -> list[str]:
    """Returns why cases are undecided, and what would decide them."""
    found = ((result, result.findings[0]) for result in results if result.findings)
    return [
        printable(f"{result.case}: {finding.outlook()}")
        for result, finding in found
        if finding.verdict == Verdict.INCONCLUSIVE and finding.outlook()
    ]


def _second_run(results: Sequence[Result]) -> list[Sentence]:
    """Returns the sentence on what changed since the previous run; empty for a single run."""
    out = []
    for comparison in comparisons([result for result in results if result.against]):
        worst = comparison.changes[0].verdict
        parts = [f"{comparison.counts.replace(', ', '; ')} of {counted(len(comparison.changes), 'value')}."]
        for word, chosen in (("Worst", Verdict.REGRESSED), ("Best", Verdict.IMPROVED)):
            named = [change for change in comparison.changes if change.verdict == chosen]
            named = named if chosen == Verdict.REGRESSED else named[::-1]
            shown = [f"{change.case} {in_units(change.name)[0]} {change.text}" for change in named[:_FEW]]
            more = f"; and {len(named) - _FEW} more" if len(named) > _FEW else ""
            parts += [f"{word}: {'; '.join(shown)}{more}."] if shown else []
        out.append(Sentence(f"{comparison.title}: {worst}.", printable(" ".join(parts)), verdict_named(worst)))
    return out


def _baseline(results: Sequence[Result]) -> list[Sentence]:
    # The base of a candidate is no baseline: the sentence on the candidate has all its cases.
    judged = [result for result in results if result.baseline and not _is_beside_its_base(result)]
    out = []
    for name, group in grouped(judged, lambda result: printable(str(result.baseline))).items():
        verdicts = Counter(str(result.verdict) for result in group)
        slower = _worst_first(group, Verdict.REGRESSED)
        better = _worst_first(group, Verdict.IMPROVED)[::-1]
        undecided = [item for item in group if _undecided(item.verdict)]
        undecided.sort(key=lambda item: _worse(_ratio(item) or Estimate(1.0), item))
        undetermined = len(undecided)
        parts = []
        if slower:
            verdict = Verdict.REGRESSED
            lead = f"{len(slower)} of {counted(len(group), 'case')} {verdict} against {name}."
            parts.append(f"Worst: {_changes(slower)}.")
        elif undetermined:
            lead = f"{undetermined} of {counted(len(group), 'case')} cannot be distinguished from {name}."
            verdict = Verdict.INCONCLUSIVE
        elif decisions.is_weak(group):  # what it cannot see is no reassurance
            lead, verdict = f"This session cannot tell whether anything is slower than {name}.", Verdict.INCONCLUSIVE
        else:
            lead, verdict = f"Nothing is slower than {name}.", Verdict.PASS
        if better:
            parts.append(f"{len(better)} {Verdict.IMPROVED}: {_changes(better)}.")
        if undetermined:
            worst = undecided[0]
            change = f", at worst {printable(worst.case)} {_change(worst)}" if _change(worst) else ""
            parts.append(f"Undecided: {undetermined}{change}.")
        if verdicts[Verdict.PASS]:
            parts.append(f"{verdicts[Verdict.PASS]} {Verdict.PASS}.")
        parts += [f"{line[0].upper()}{line[1:]}." for line in power(group)]
        out.append(Sentence(lead, " ".join(parts), verdict))
    return out


def _is_beside_its_base(result: Result) -> bool:
    """Whether a result was judged against a base of the same session, not against an earlier run."""
    comparison = result.side_by_side
    return comparison is not None and result.baseline == comparison.base


def _undecided(name: str | None) -> bool:
    verdict = verdict_named(name)
    return verdict is not None and not verdict.good and verdict != Verdict.REGRESSED


def _worst_first(group: Iterable[Result], verdict: Verdict) -> list[Result]:
    return sorted((item for item in group if item.verdict == verdict), key=lambda item: _worse(_ratio(item), item))


def _ratio(result: Result) -> Estimate | None:
    """Returns the change that decides the verdict. It need not be the change of the main value."""
    change = change_of(result)
    if change is None or change.ratio is None:
        return result.ratio_to_baseline
    return Estimate(change.ratio, change.low, change.high)


def _figure(result: Result) -> str:
    change = change_of(result)
    return MAIN[result.dimension] if change is None or change.ratio is None else change.name


def _worse(ratio: Estimate | None, result: Result) -> float:
    """Returns a sort key: the worse the change, the smaller the number."""
    if ratio is None or not ratio:
        return 0.0
    return 1 / ratio if COMPARED[_figure(result)][1] == "lower" else float(ratio)


def _changes(results: Sequence[Result]) -> str:
    named = [f"{printable(result.case)} {_change(result)}".rstrip() for result in results[:_FEW]]
    more = len(results) - _FEW
    return "; ".join(named) + (f"; and {more} more" if more > 0 else "")


def _change(result: Result) -> str:
    """Returns ``rate -12.1 % (-13.0 to -11.0)``; empty if a limit decided instead of a comparison."""
    ratio = _ratio(result)
    if ratio is None:
        return ""
    name = _figure(result)
    text = f"{_PLAIN.get(name) or plain_name(name)} {signed_percent(ratio)} %"
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} ({signed_percent(ratio.low)} to {signed_percent(ratio.high)})"


def _through(ranking: Ranking) -> str:
    """Returns what all paths of a ranking do beside forwarding frames; empty without anything."""
    work = work_of(ranking.paths[0])
    return f", {work}" if work else ""


def _fastest(ranked: Sequence[Ranking], lead: str) -> list[Sentence]:
    """Returns the sentence on the comparisons of one kind: the first ones, and who wins how often."""
    if not ranked:
        return []
    firsts = first_traffics(result for ranking in ranked for result in ranking.paths)
    chosen = [(ranking, key[2]) for ranking in ranked if (key := _key(ranking.paths[0])) in firsts]
    common = len({load._replace(packet_size=0) for _, load in chosen}) == 1 and not firsts[0][2].load
    out = [
        Sentence(f"{lead}, {load.size if common else load.say()}{_through(ranking)}:", _of(ranking))
        for ranking, load in chosen
    ]
    if len(ranked) > len(chosen):
        wins = Counter(ranking.winner for ranking in ranked).most_common()
        counts = [f"{count} {'' if name == 'undecided' else 'for '}{name}" for name, count in wins[: _FEW + 1]]
        others = sum(count for _, count in wins[_FEW + 1 :])
        counts += [f"{others} for others"] if others else []
        kind = ranked[0].paths[0].figures.PLURAL
        out.append(Sentence(f"All {len(ranked)} comparisons of {kind}:", f"{', '.join(counts)}."))
    return out


def _key(result: Result) -> tuple[str, str, Traffic]:
    """Returns the key that all results of one comparison share."""
    return result.metric, result.placement, traffic(result)


def _of(ranking: Ranking) -> str:
    best, *others = ranking.paths
    unit = main_unit(best)[0]
    slower = [result for result in others if result not in ranking.rivals]
    if not ranking.rivals:
        lead = f", {ranking.lead}" if ranking.lead else ""
        text = f"{path_of(best)} with {_whole(best)}{lead}"
        rest = slower[1:]
    else:
        leaders = [best, *ranking.rivals]
        text = f"{', '.join(f'{path_of(item)} {value_text(item)}' for item in leaders)} {unit}"
        ahead = ranking.ahead and f"; {ranking.ahead}"
        text = f"{text}, {ranking.lead}" if ranking.tied else f"undecided between {text}{_why(leaders)}{ahead}"
        rest = slower[1:] if ranking.ahead else slower
    limits = _limits([best, *ranking.rivals]) if best.figures.HAS_LIMIT else ""
    text += f". {limits}" if limits else "."
    if rest:
        named = ", ".join(f"{path_of(item)} {value_text(item)}" for item in rest[:_FEW])
        text += f" Slower: {named}{f' and {len(rest) - _FEW} more' if len(rest) > _FEW else ''}."
    if ranking.missing:
        text += f" Not measured at this distance of the CPUs: {', '.join(ranking.missing)}."
    return printable(text)


def _floors(leaders: Sequence[Result]) -> str:
    """Returns which of the leading paths can carry more than was measured, and why others may."""
    floors = [path_of(item) for item in leaders if item.at_least]
    held = [path_of(item) for item in leaders if any(held_back(item, other) for other in leaders)]
    parts = []
    if floors:
        named = "each" if len(floors) == len(leaders) else listed(floors)
        parts.append(f"; {named} can carry more")
    if held:
        parts.append(f"; the endpoints of {listed(held)} share CPUs, which makes a path slower, never faster")
    return "".join(parts)


def _why(leaders: Sequence[Result]) -> str:
    """Returns why the leading paths cannot be distinguished from each other, and what decides."""
    floors = _floors(leaders)
    if not any(interval_text(item) for item in leaders):
        return f"{floors}; too few launches to tell"
    return floors or f"; their intervals overlap{_more(leaders)}"


#: The most launches, as a multiple of those there are, that are named as deciding.
_MOST_TIMES = 30


def _more(leaders: Sequence[Result]) -> str:
    """Returns about how many more seconds separate overlapping intervals, which shrink by the root of launches."""
    best, *rivals = [main for item in leaders if (main := main_figure(item))]
    times = 0.0
    for rival in rivals:
        if None in (best.low, best.high, rival.low, rival.high) or best == rival:
            return ""
        wide = (best.high or 0.0) - (best.low or 0.0) + (rival.high or 0.0) - (rival.low or 0.0)
        times = max(times, (wide / 2 / abs(float(best) - float(rival))) ** 2)
    if times > _MOST_TIMES:
        return ", and even many more launches would hardly separate them"
    times = max(times, 1.5)
    seconds = sum(item.duration_s for item in leaders) * (times - 1)
    if not seconds:
        return ""
    fixed = all(item.ended_by == "repeats" for item in leaders)
    most = max(item.launches if fixed else item.duration_s for item in leaders) * times
    option = f"--icbench-{'repeats' if fixed else 'max-duration'} {ceil(most)}"
    return f"; about {span(seconds)} more would separate them ({option})"


def _limits(leaders: Sequence[Result]) -> str:
    """Returns what limits the leading paths: ``Limit: the sender or receiver (basicfwd, testpmd); the ring (ovs).``"""
    paths = grouped(leaders, limit)
    known = [(_LIMITS.get(name, name), group) for name, group in paths.items()]
    if len(known) == 1:
        return f"Limit: {known[0][0]}."
    named = [f"{name} ({', '.join(map(path_of, group))})" for name, group in known]
    return f"Limit: {'; '.join(named)}."


def _whole(result: Result) -> str:
    main, (unit, factor), interval = main_figure(result), main_unit(result), interval_text(result)
    return f"{three((main or 0.0) * factor)} {unit} ({interval})" if interval else f"{value_text(result)} {unit}"


_LIMITS = {
    "endpoint": "the sender or receiver",
    "switch": "the switch",
    "ring": "the ring",
    "host": "the host",
    "link": "the link",
    "path": "the path itself",
    "load": "the rate that was asked for",
    "": "not known",
}


_LIST = re.compile(r"\b(?P<kind>acl|set)(?P<rules>[1-9]\d*)\b", re.ASCII)
_LIST_KINDS = {"acl": "rule", "set": "element of a set"}


def rule_costs(results: Sequence[Result]) -> list[str]:
    """Returns the cost of a rule for each path and traffic that was measured flat out with lists of several lengths."""
    measured = [result for result in results if result.metric == "frmol" and result.is_number and _rules(result)]
    texts = []
    for group in grouped(measured, lambda result: (_path_of_lists(result), traffic(result))).values():
        points = {
            _rules(result): 1e9 / pps for result in group if (pps := number(result, result.frames.throughput_pps))
        }
        if len(points) > 1:
            match = _LIST.search(group[0].point.function or "")
            kind = _LIST_KINDS[match["kind"]] if match else ""
            lengths = f"{min(points):,} to {max(points):,}"
            slope = linear_regression(list(points), list(points.values())).slope
            texts.append(f"{_path_of_lists(group[0])}: each {kind} costs {short(slope)} ns a frame ({lengths}).")
    return texts


def _rules(result: Result) -> int:
    """Returns the length of the access list of a result's only function; 0 without one."""
    point = result.point
    match = None if point.pairs > 1 or point.chain > 1 else _LIST.search(point.function or "")
    return int(match["rules"]) if match else 0


def _path_of_lists(result: Result) -> str:
    """Returns the name of the path with N in place of the length."""
    function = _LIST.sub(lambda match: f"{match['kind']}N", result.point.function or "")
    return path_of(replace(result, axes={**result.axes, "function": function}))


#: Hosts with at most this many CPUs get these sentences.
FEW_CPUS = 2


#: Cases that a host with few CPUs shows only in part: a predicate, their name, what it shows and what it does not.
_SHOWN_IN_PART: tuple[tuple[Callable[[Result], object], str, str, str], ...] = (
    (
        lambda result: result.point.chain > 1,
        "chains",
        "what a hop adds and at which hop frames are lost",
        "what a chain carries if each function has a core; the 99th percentile is due to the scheduler",
    ),
    (
        lambda result: bool(result.point.cpu_allocations),
        "parts of a CPU",
        "how functions split one CPU",
        "what they do next to I/O on separate cores, since all senders share the other CPU",
    ),
    (
        lambda result: result.point.mixed and not result.point.cpu_allocations,
        "different functions on one CPU",
        "who gets the CPU and how long a ping waits",
        "that at the published rates, since all senders share the other CPU",
    ),
    (
        lambda result: _alike(result.point),
        "functions side by side",
        "what each additional one takes from the total",
        "what they pass on separate cores, since their senders and receivers share these CPUs",
    ),
    (
        lambda result: result.point.rate.trace is not None,
        "loads that change",
        "how soon a path follows a change",
        "how closely it follows on more cores",
    ),
    (
        lambda result: result.point.noisy_neighbour is not None,
        "noisy neighbours",
        "what shared memory and caches cost",
        "a noisy neighbour in another L3 domain, or of a path of several cores",
    ),
    (
        lambda result: (result.point.function or "").startswith("subscribers"),
        "subscribers",
        "how evenly clients are served and what many of them add to a round trip",
        "the greatest total, since the senders take as much of the CPUs as the firewalls",
    ),
)


def few_cpus_show(results: Sequence[Result]) -> list[str]:
    """Returns a sentence for each kind of case that two CPUs show only in part; none for hosts with more CPUs."""
    few = [result for result in results if _cpus(result) <= FEW_CPUS]
    own = [kind.in_part for kind in registry.KINDS if kind.in_part and any(kind_of(result) is kind for result in few)]
    others = [shown for has, *shown in _SHOWN_IN_PART if any(map(has, few))]
    return [f"{name}: two CPUs show {shown}; not {not_shown}." for name, shown, not_shown in (*others, *own)]


def _alike(case: Case) -> bool:
    """Whether equal functions run in parallel, one for each pair, without CPU shares and at a constant load."""
    several = case.function is not None and case.pairs > 1 and case.chain == 1
    return several and not case.one_cpu and case.rate.trace is None


def _cpus(result: Result) -> float:
    cpus = result.identity.get("cpus")
    return cpus if isinstance(cpus, int) and cpus > 0 else inf
