# SPDX-License-Identifier: BSD-3-Clause
"""A run in a few sentences: what won, by how much, what limited it, what was skipped and why. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_icbench.model.case import REFERENCE_LINKS
from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import ORDER
from pytest_icbench.report.axes import (
    MAXIMA,
    METRIC_NAMES,
    grouped,
    hosts_apart,
    is_latency,
    main_figure,
    main_unit,
    number,
    path_of,
    short,
    traffic,
)
from pytest_icbench.report.remarks import bounds, is_search
from pytest_icbench.report.versions import decision_of

#: Reference links: they show what the endpoints can do, and win nothing.
REFERENCES = tuple(REFERENCE_LINKS.values())


@dataclass(frozen=True, slots=True)
class Ranking:
    """Cases of the same traffic in order, best first.

    Attributes:
        question: what was measured of which traffic.
        winner: the best path; its figure and interval with the unit.
        lead: by how much it leads, and whether the intervals tell the two apart; empty where nobody else ran.
        limit: what limited the winner.
    """

    question: str
    winner: str
    figure: str
    lead: str
    limit: str


def rankings(results: Iterable[Result]) -> list[Ranking]:
    """One for each traffic, dimension, metric and host. Figures that are only "at least" are not ranked."""
    found = []
    apart = hosts_apart(list(results))
    ranked = [result for result in apart if result.switch not in REFERENCES and _value(result) is not None]
    for (dimension, metric, placement, key), group in grouped(ranked, _key).items():
        latency = dimension == "latency"
        firm = [result for result in group if latency or not result.lower_bound]
        firm.sort(key=lambda result: _value(result) or 0.0, reverse=not latency)
        if not firm:
            continue
        best = firm[0]
        rivals = [result for result in firm if path_of(result) != path_of(best)]
        beyond = [result for result in group if result not in firm and (_value(result) or 0) > (_value(best) or 0)]
        what = "median round-trip time" if latency else f"{METRIC_NAMES[metric]} ({metric})"
        found.append(
            Ranking(
                question=f"{what}: {key.say()}" + (f", {placement} placement" if placement else ""),
                winner="not told" if beyond else path_of(best),
                figure="" if beyond else figure_text(best),
                lead=_beyond(beyond, best)
                if beyond
                else _lead(best, rivals, latency=latency) + _unranked(len(group) - len(firm)),
                limit="" if latency or beyond else _limit(best),
            )
        )
    return found


def _key(result: Result) -> tuple[str, str, str, object]:
    return result.dimension, result.metric, result.placement, traffic(result)


def _value(result: Result) -> float | None:
    ranked = is_latency(result) or (result.metric in MAXIMA and not result.back_to_back)
    return main_figure(result) if ranked else None


def _interval(result: Result) -> tuple[float, float] | None:
    main = main_figure(result)
    return None if main is None or main.low is None or main.high is None else (main.low, main.high)


def figure_text(result: Result) -> str:
    """The main figure with its interval: ``7.81 Mpps (7.25 to 8.74), 4.00 Gbit/s``; empty without one.

    Of a search with its relevant bounds: ``7.81 Mpps (bounds 7.82 to 7.85), 4.00 Gbit/s``.
    """
    latency, value = is_latency(result), main_figure(result)
    if value is None:
        return ""
    unit, factor = main_unit(result)
    text = f"{short(value * factor)} {unit}"
    if not latency and result.lower_bound:
        text = f"≥ {text}"
    interval = _interval(result)
    if is_search(result):
        text += f" (bounds {bounds(result)})" if bounds(result) else ""
    elif interval is not None:
        text += f" ({short(interval[0] * factor)} to {short(interval[1] * factor)})"
    gbps = None if latency else number(result, result.throughput_gbps)
    p99 = number(result, result.rtt_p99_ns) if latency else None
    if gbps is not None:
        text += f", {gbps:.4g} Gbit/s"
    return text + ("" if p99 is None else f", 99th percentile {short(p99 / 1e3)} µs")


def _lead(best: Result, others: Sequence[Result], *, latency: bool) -> str:
    if not others:
        return ""
    second = others[0]
    own, other = _value(best) or 0.0, _value(second) or 0.0
    if not own or not other:
        return ""
    percent = (1 - own / other) * 100 if latency else (own / other - 1) * 100
    word = "below" if latency else "ahead of"
    share = f"{own / other:.1f} times" if not latency and percent >= 100 else f"{percent:.1f} %"
    said = f"{share} {'' if share.endswith('times') else word + ' '}{path_of(second)}"
    decided = _side_by_side(best, second) or _side_by_side(second, best)
    if decided is not None:
        return f"{said}; {decided}"
    intervals = _interval(best), _interval(second)
    if intervals[0] is None or intervals[1] is None:
        return f"{said}; too few launches to tell them apart"
    apart = intervals[0][1] < intervals[1][0] if latency else intervals[0][0] > intervals[1][1]
    return said if apart else f"{said}; their {'bounds' if is_search(best) else 'intervals'} overlap"


def _side_by_side(one: Result, other: Result) -> str | None:
    """What was decided of a candidate and its base: launches in adjacent pairs tell more than two intervals."""
    told = one.side_by_side is not None and one.side_by_side.base == other.case
    return f"side by side {path_of(one)} is {decision_of(one)}" if told else None


def _beyond(results: Sequence[Result], best: Result) -> str:
    """Nobody wins against a figure that is only "at least", and greater all the same."""
    most = max(results, key=lambda result: _value(result) or 0.0)
    return f"{path_of(most)} takes {figure_text(most)}, more than {path_of(best)} with {figure_text(best)}"


def _unranked(count: int) -> str:
    return f" ({count} with “at least” not ranked)" if count else ""


def _limit(result: Result) -> str:
    evidence = result.bottleneck_evidence
    return f"{result.bottleneck}: {evidence}" if evidence else result.bottleneck


def verdicts(results: Iterable[Result]) -> list[tuple[str, int]]:
    """How many results have which verdict, the worst first."""
    order: list[str] = list(ORDER)
    counted = Counter(result.verdict or "not judged" for result in results)
    return sorted(counted.items(), key=lambda each: order.index(each[0]) if each[0] in order else len(order))


def skips(reasons: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Reasons of skipped tests with their ids, the most frequent first."""
    found: dict[str, list[str]] = {}
    for test, reason in reasons:
        found.setdefault(reason, []).append(test)
    return sorted(found.items(), key=lambda each: -len(each[1]))
