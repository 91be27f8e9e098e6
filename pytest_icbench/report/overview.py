# SPDX-License-Identifier: BSD-3-Clause
"""A run in a few sentences: rankings with leads and limits, verdicts, and reasons of skips. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_icbench.display.case_names import (
    METRIC_NAMES,
    Traffic,
    hosts_apart,
    interval_text,
    main_figure,
    main_unit,
    number,
    path_of,
    short,
    traffic,
    value_text,
)
from pytest_icbench.kinds.search.search_columns import bounds
from pytest_icbench.model.case import REFERENCE_LINKS
from pytest_icbench.model.fitness import too_disturbed
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import NOTABLE, ORDER, Verdict
from pytest_icbench.report.host_states import apart, common_state, in_one_state, in_state, ratio_of
from pytest_icbench.report.plain import over
from pytest_icbench.report.remarks import shares_cpus
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import grouped, listed, percent

#: Paths are called equal if they differ by at most this share, by their intervals. Launches of one path on a virtual
#: machine differ by as much.
MOST_EQUAL = 0.25
#: What follows a lead that the intervals shown do not tell: every launch is compared with each of the same state.
BY_LAUNCHES = ", launch by launch"
#: Reference links. They show the capability of the endpoints and are not ranked.
REFERENCES = tuple(REFERENCE_LINKS.values())


@dataclass(frozen=True, slots=True)
class Ranking:
    """The paths of one traffic, the best first.

    Attributes:
        question: the metric and the traffic.
        winner: the best path, those that are equal, or ``undecided``.
        ranks: each path with its main value and interval.
        lead: the lead over the next path, and who equals the best or cannot be distinguished from it; empty for a
            single path.
        paths: the results of ``ranks``.
        rivals: those that cannot be distinguished from the best.
        missing: paths without a rank, since they were not measured in the common state of the host.
        ahead: the lead over the first path that is slower, of all that may be the best.
        tied: the rivals differ from the best by at most ``MOST_EQUAL``.
    """

    question: str
    winner: str
    ranks: tuple[str, ...]
    lead: str
    paths: tuple[Result, ...]
    rivals: tuple[Result, ...]
    missing: tuple[str, ...] = ()
    tied: bool = False
    ahead: str = ""


def rankings(results: Iterable[Result]) -> list[Ranking]:
    """Ranks the paths of each traffic, network function, dimension, metric and host: a policer is no rival of a NAT.

    Nor is a router of a bridge: switches that route are ranked apart from those that forward frames.

    Reference links are no switches and are not ranked. Candidates are judged in pairs with their base. Of two runs only
    the second is ranked.
    """
    ranked = [
        result
        for result in contestants(hosts_apart(list(results)))
        if result.switch not in REFERENCES and _value(result) is not None
    ]
    return [_ranking(group) for group in grouped(ranked, lambda one: (_key(one), work_of(one))).values()]


def in_common_states(results: Sequence[Result]) -> list[Result]:
    """Returns the results with their values in the state of the host in which they are ranked, reference links as well.

    A result that was not measured in that state keeps its value, and its path's name has the state. Versions side by
    side keep theirs, since each pair of launches is of one state, and so do results of two runs.
    """
    shown, places = list(results), hosts_apart(results)
    compared = {result.side_by_side.base for result in results if result.side_by_side is not None}
    free = [
        place
        for place, result in enumerate(places)
        if result.point.candidate is None and result.case not in compared and not result.against
    ]
    for group in grouped(free, lambda at: (places[at].run, _key(places[at]), work_of(places[at]))).values():
        ranked = [shown[place] for place in group if shown[place].switch not in REFERENCES]
        links = [shown[place] for place in group if shown[place].switch in REFERENCES]
        state = common_state(ranked or links, links if ranked else ())
        if state is None:
            continue
        for place in group:
            shown[place] = _in_state(shown[place], state)
    return shown


def _in_state(result: Result, state: Sequence[float]) -> Result:
    chosen = in_state(result, state)
    if chosen is not None or result.distance_ns is None:
        return chosen or result
    return replace(result, apart=", ".join(filter(None, (result.apart, apart(result.distance_ns)))))


def work_of(result: Result) -> str:
    """Returns what a path does beside forwarding frames, as words that follow its load; empty without anything."""
    if (function := result.point.function) is not None:
        return f"through {function}"
    return f"routed as IPv{version}" if (version := result.point.ip_version) is not None else ""


def contestants(results: Sequence[Result]) -> list[Result]:
    """Returns the results that can be ranked: no candidates, and of two compared runs only the second.

    The paths of the second run are named without the run.
    """
    second = {result.run for result in results if result.against}
    standing = [result for result in results if result.point.candidate is None and (not second or result.run in second)]
    return [replace(result, run=None) for result in standing] if len(second) == 1 else standing


def _ranking(group: Sequence[Result]) -> Ranking:
    _, metric, placement, key = _key(group[0])
    figures = group[0].figures
    group, state, missing = in_one_state(group)
    in_order = sorted(group, key=lambda result: _value(result) or 0.0, reverse=not figures.LESS_IS_BETTER)
    best_by_path: dict[str, Result] = {}
    for result in in_order:
        best_by_path.setdefault(path_of(result), result)
    best, *others = _best_first(list(best_by_path.values()))
    gains = {path_of(other): _gain(other, best) for other in others}
    rivals = [result for result in others if not _loses(result, best, gains[path_of(result)])]
    metric_name = f"{METRIC_NAMES[metric]} ({metric})" if figures.SAYS_METRIC else "median round-trip time"
    slower = [result for result in others if result not in rivals]
    apart = _greatest_difference([gains[path_of(result)] for result in rivals])
    bounded = not any(result.at_least or held_back(result, other) for result in (best, *rivals) for other in group)
    tied = bool(rivals) and bounded and apart is not None and apart <= MOST_EQUAL
    ahead = _ahead((best,) if tied else (best, *rivals), slower[0]) if slower else ""
    leads = [ahead]
    if rivals:
        leads.insert(0, f"equal within {percent(apart or 0.0)}" if tied else _undecided(best, rivals, gains))
    leaders = listed(list(map(path_of, (best, *rivals))))
    qualifiers = (work_of(best), f"{placement} placement" if placement else "")
    return Ranking(
        question=f"{metric_name}: {key.say()}" + "".join(f", {text}" for text in (*qualifiers, state) if text),
        winner=leaders if tied or not rivals else "undecided",
        ranks=tuple(f"{path_of(result)}: {figure_text(result)}" for result in (best, *others)),
        lead="; ".join(filter(None, leads)),
        ahead=ahead,
        paths=(best, *others),
        rivals=tuple(rivals),
        missing=missing,
        tied=tied,
    )


def _best_first(paths: list[Result]) -> list[Result]:
    """Returns paths with the best one first. Values and comparisons can be of different launches."""
    best = paths[0]
    for other in paths[1:]:
        gain = _gain(other, best)
        best = other if gain is not None and gain > 1 else best
    return [best, *(path for path in paths if path is not best)]


def _gain(other: Result, best: Result) -> Estimate | None:
    """Returns how many times as good a path is as another one, with its interval where both have one.

    It is what the intervals shown allow. Where these do not part the paths, it is over launches of the same states of
    the host, if these are known, unless other work disturbed them: paths are measured at different times.
    """
    shown = _shown_gain(other, best)
    if _parts(shown) or too_disturbed(other) or too_disturbed(best):
        return shown
    return ratio_of(*_by_size(other, best)) or shown


def _shown_gain(other: Result, best: Result) -> Estimate | None:
    """Returns the same by the values and intervals that reports show."""
    value, by = map(main_figure, _by_size(other, best))
    return over(value, by) if value and by else None


def _by_size(other: Result, best: Result) -> tuple[Result, Result]:
    """Returns the two in the order whose ratio says how many times as good ``other`` is."""
    return (best, other) if best.figures.LESS_IS_BETTER else (other, best)


def _parts(gain: Estimate | None) -> bool:
    return gain is not None and gain.low is not None and gain.high is not None and not gain.low <= 1 <= gain.high


def held_back(one: Result, other: Result) -> bool:
    """Whether the endpoints of the first path alone share CPUs, so that it may be faster than shown."""
    return shares_cpus(one) and not shares_cpus(other)


def _loses(other: Result, best: Result, gain: Estimate | None) -> bool:
    """Whether a path is slower than the best by their intervals; False if it may be faster than was measured."""
    if other.at_least or held_back(other, best):
        return False
    return gain is not None and gain.high is not None and gain.high < 1


def _greatest_difference(gains: Iterable[Estimate | None]) -> float | None:
    """Returns the greatest share by which a rival may differ from the best; None if one has no interval."""
    greatest = 0.0
    for gain in gains:
        if gain is None or not gain.low or gain.high is None:
            return None
        greatest = max(greatest, 1 / gain.low - 1, gain.high - 1)
    return greatest


def _undecided(best: Result, rivals: Sequence[Result], gains: Mapping[str, Estimate | None]) -> str:
    """Returns who cannot be distinguished from the path with the best value, and why."""
    kind = "bounds" if best.figures.BRACKETED else "intervals"
    reasons: dict[str, list[str]] = {}
    for rival in rivals:
        gain = gains[path_of(rival)]
        if rival.at_least:
            reason = "at least this, so may be faster"
        elif held_back(rival, best):
            reason = f"may be faster where endpoints do not share CPUs, as those of {path_of(best)}"
        elif gain is None or gain.low is None:
            reason = f"too few launches to tell from {path_of(best)}"
        else:
            reason = f"{kind} overlap with that of {path_of(best)}"
        reasons.setdefault(reason, []).append(path_of(rival))
    return "; ".join(f"{', '.join(paths)}: {reason}" for reason, paths in reasons.items())


def _key(result: Result) -> tuple[str, str, str, Traffic]:
    return result.dimension, result.metric, result.placement, traffic(result)


def _value(result: Result) -> float | None:
    return main_figure(result) if result.figures.is_capability(result.metric) else None


def figure_text(result: Result) -> str:
    """Returns the main value with its interval: ``7.81 Mpps (7.25 to 8.74), 4.00 Gbit/s``; empty without one.

    A search has its relevant bounds instead: ``7.81 Mpps (bounds 7.82 to 7.85), 4.00 Gbit/s``.
    """
    value = main_figure(result)
    if value is None:
        return ""
    unit, factor = main_unit(result)
    interval = (
        bounds(result) and f"bounds {bounds(result)}" if result.figures.BRACKETED else interval_text(result, short)
    )
    text = f"{short(value * factor)} {unit} ({interval})" if interval else f"{value_text(result, short)} {unit}"
    gbps = number(result, result.frames.throughput_gbps) if result.figures.SAYS_METRIC else None
    p99 = number(result, result.figures.tail)
    if gbps is not None:
        text += f", {gbps:.4g} Gbit/s"
    return text + ("" if p99 is None else f", 99th percentile {short(p99 / 1e3)} µs")


def _ahead(leaders: Sequence[Result], second: Result) -> str:
    """Returns the best path's lead over the next one; for several leaders, the least that each of them leads by."""
    best, *rivals = leaders
    if not rivals:
        return _lead(best, second, _gain(second, best))
    gains = [(_gain(second, leader), leader) for leader in leaders]
    known = [(gain.high, leader) for gain, leader in gains if gain is not None and gain.high is not None]
    if len(known) < len(leaders):
        return ""
    high, last = max(known, key=lambda item: item[0])
    by_launches = "" if all(_parts(_shown_gain(second, leader)) for leader in leaders) else BY_LAUNCHES
    return f"each at least {_lead(last, second, Estimate(high))}{by_launches}" if high < 1 else ""


def _lead(best: Result, second: Result, gain: Estimate | None) -> str:
    """Returns the lead of the best path over the next one: with its interval, or at least the end that is sure."""
    if gain is None or not gain:
        return ""
    words = "below" if best.figures.LESS_IS_BETTER else "times" if gain <= 0.5 else "ahead of"
    by_launches = "" if _parts(_shown_gain(second, best)) else BY_LAUNCHES

    def say(end: float) -> str:
        if words == "times":
            return f"{1 / end:.1f}" if end > 0.1 else f"{1 / end:,.0f}"
        return percent(1 - end if words == "below" else 1 / end - 1)

    name = path_of(second)
    if not gain.low or gain.high is None:
        return f"{say(gain)} {words} {name}"
    if best.at_least or held_back(best, second):
        return f"at least {say(gain.high)} {words} {name}{by_launches}"
    return f"{say(gain)} {words} {name} ({say(gain.high)} to {say(gain.low)}{by_launches})"


def verdict_named(name: str | None) -> Verdict | None:
    """Returns a verdict by its name; None for an unknown name, which a later version may write."""
    return next((verdict for verdict in Verdict if verdict == name), None)


def verdicts(results: Iterable[Result]) -> list[tuple[str, int]]:
    """Counts the results of each verdict, the worst first."""
    order: list[str] = list(ORDER)
    counted = Counter(result.verdict or "not judged" for result in results)
    return sorted(counted.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))


def failed_otherwise(failed: Iterable[tuple[str, str]], results: Iterable[Result]) -> list[tuple[str, str]]:
    """Returns the failed tests, each with the first line of its message, without those that a verdict failed.

    These are listed with their result.
    """
    judged = [f"[{result.case}" for result in results if result.verdict in NOTABLE]
    return [(test, text) for test, text in failed if not any(case in test for case in judged)]


def skips(reasons: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Groups the ids of skipped tests by reason, the most frequent first."""
    groups = grouped(reasons, lambda skip: skip[1])
    by_count = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [(reason, [test for test, _ in group]) for reason, group in by_count]
