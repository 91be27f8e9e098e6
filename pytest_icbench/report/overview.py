# SPDX-License-Identifier: BSD-3-Clause
"""A run in a few sentences: rankings with leads and limits, verdicts, and reasons of skips. Pure."""

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

#: Reference links: they show the capability of the endpoints and are not ranked.
REFERENCES = tuple(REFERENCE_LINKS.values())


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best of the cases with the same traffic.

    Attributes:
        question: the metric and the traffic.
        winner: the best path.
        figure: its main value and interval with the unit.
        lead: its lead over the second path, and whether their intervals overlap; empty without a second path.
        limit: the bottleneck of the winner.
    """

    question: str
    winner: str
    figure: str
    lead: str
    limit: str


def rankings(results: Iterable[Result]) -> list[Ranking]:
    """Ranks the cases of each traffic, dimension, metric and host. Values that are only "at least" are not ranked."""
    rows = []
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
        metric_name = "median round-trip time" if latency else f"{METRIC_NAMES[metric]} ({metric})"
        rows.append(
            Ranking(
                question=f"{metric_name}: {key.say()}" + (f", {placement} placement" if placement else ""),
                winner="undecided" if beyond else path_of(best),
                figure="" if beyond else figure_text(best),
                lead=_beyond(beyond, best)
                if beyond
                else _lead(best, rivals, latency=latency) + _unranked(len(group) - len(firm)),
                limit="" if latency or beyond else _limit(best),
            )
        )
    return rows


def _key(result: Result) -> tuple[str, str, str, object]:
    return result.dimension, result.metric, result.placement, traffic(result)


def _value(result: Result) -> float | None:
    ranked = is_latency(result) or (result.metric in MAXIMA and not result.back_to_back)
    return main_figure(result) if ranked else None


def _interval(result: Result) -> tuple[float, float] | None:
    main = main_figure(result)
    return None if main is None or main.low is None or main.high is None else (main.low, main.high)


def figure_text(result: Result) -> str:
    """Returns the main value with its interval: ``7.81 Mpps (7.25 to 8.74), 4.00 Gbit/s``; empty without one.

    A search has its relevant bounds instead: ``7.81 Mpps (bounds 7.82 to 7.85), 4.00 Gbit/s``.
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
    best_value, second_value = _value(best) or 0.0, _value(second) or 0.0
    if not best_value or not second_value:
        return ""
    percent = (1 - best_value / second_value) * 100 if latency else (best_value / second_value - 1) * 100
    word = "below" if latency else "ahead of"
    share = f"{best_value / second_value:.1f} times" if not latency and percent >= 100 else f"{percent:.1f} %"
    text = f"{share} {'' if share.endswith('times') else word + ' '}{path_of(second)}"
    decided = _side_by_side(best, second) or _side_by_side(second, best)
    if decided is not None:
        return f"{text}; {decided}"
    intervals = _interval(best), _interval(second)
    if intervals[0] is None or intervals[1] is None:
        return f"{text}; too few launches to tell them apart"
    apart = intervals[0][1] < intervals[1][0] if latency else intervals[0][0] > intervals[1][1]
    return text if apart else f"{text}; their {'bounds' if is_search(best) else 'intervals'} overlap"


def _side_by_side(candidate: Result, other: Result) -> str | None:
    """Returns the decision on a candidate if the other result is its base; it is sharper than their intervals."""
    is_base = candidate.side_by_side is not None and candidate.side_by_side.base == other.case
    return f"side by side {path_of(candidate)} is {decision_of(candidate)}" if is_base else None


def _beyond(results: Sequence[Result], best: Result) -> str:
    """Returns the lead of a ranking that has no winner, since a greater value is only "at least"."""
    most = max(results, key=lambda result: _value(result) or 0.0)
    return f"{path_of(most)} takes {figure_text(most)}, more than {path_of(best)} with {figure_text(best)}"


def _unranked(count: int) -> str:
    return f" ({count} with “at least” not ranked)" if count else ""


def _limit(result: Result) -> str:
    evidence = result.bottleneck_evidence
    return f"{result.bottleneck}: {evidence}" if evidence else result.bottleneck


def verdicts(results: Iterable[Result]) -> list[tuple[str, int]]:
    """Counts the results of each verdict, the worst first."""
    order: list[str] = list(ORDER)
    counted = Counter(result.verdict or "not judged" for result in results)
    return sorted(counted.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))


def skips(reasons: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Groups the ids of skipped tests by reason, the most frequent first."""
    tests_by_reason: dict[str, list[str]] = {}
    for test, reason in reasons:
        tests_by_reason.setdefault(reason, []).append(test)
    return sorted(tests_by_reason.items(), key=lambda item: -len(item[1]))
