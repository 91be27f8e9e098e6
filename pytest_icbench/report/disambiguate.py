# SPDX-License-Identifier: BSD-3-Clause
"""Results of one path and one traffic, distinguished by what their names leave out. Pure.

A chart has one value for each series and place. Results that differ by an axis that neither the path nor the traffic
names, or that were measured several times, would be joined to a zigzag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.display.case_names import grouped, path_of, traffic
from pytest_icbench.model.result import Result


def disambiguated(results: Sequence[Result]) -> list[Result]:
    """Returns the results, of which those that coincide with others have ``apart``.

    An axis that tells two results of a path apart is named in all results of the path, so that its lines go through.
    Results that no axis tells apart are counted: all but the first have their number.
    """
    axes: dict[tuple[str, str, str], dict[str, None]] = {}
    for group in grouped(results, _place).values():
        facts = [_facts(result) for result in group]
        names = [name for name in dict.fromkeys(name for known in facts for name in known) if _differ(facts, name)]
        if names:
            axes.setdefault(_line(group[0]), {}).update(dict.fromkeys(names))
    named = [_with(result, _said(result, axes.get(_line(result), ()))) for result in results]
    seen: Counter[Any] = Counter()
    counted = []
    for result in named:
        seen[_place(result)] += 1
        number = seen[_place(result)]
        counted.append(_with(result, f"no. {number}") if number > 1 else result)
    return counted


def _line(result: Result) -> tuple[str, str, str]:
    return result.dimension, result.metric, path_of(result)


def _place(result: Result) -> tuple[object, ...]:
    return (*_line(result), traffic(result))


def _facts(result: Result) -> dict[str, Any]:
    """Returns what can tell results apart; the placement of cases that no axis tells apart is one of it."""
    return {**result.axes, "placement": result.placement}


def _differ(facts: Sequence[dict[str, Any]], name: str) -> bool:
    return any(known.get(name) != facts[0].get(name) for known in facts)


def _said(result: Result, names: Iterable[str]) -> str:
    """Returns the values of axes: ``flows 1000, dedicated``; nothing for an axis that a result does without."""
    parts = []
    for name in names:
        value = _facts(result).get(name)
        word = name.replace("_", " ")
        if value not in (None, False, ""):
            parts.append(word if value is True else str(value) if name == "placement" else f"{word} {value}")
    return ", ".join(parts)


def _with(result: Result, text: str) -> Result:
    return replace(result, apart=", ".join(filter(None, (result.apart, text)))) if text else result
