# SPDX-License-Identifier: BSD-3-Clause
"""Distinguishes results of equal path and traffic by the axes that their names leave out. Pure.

A chart has one value for each series and place. Results with equal names would become a zigzag: they differ in an axis
that neither the path nor the traffic names, or they were measured several times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.display.case_names import grouped, path_of, traffic
from pytest_icbench.model.result import Result


def disambiguated(results: Sequence[Result]) -> list[Result]:
    """Returns the results; those with equal names have ``apart``.

    An axis in which two results of a path differ is named in all results of the path, so that its lines are not broken.
    Results without such an axis are numbered, from the second one on.
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
    """Returns the facts that can distinguish results: the axes, the placement and the test."""
    return {**result.axes, "placement": result.placement, "test": _test(result)}


def _test(result: Result) -> str:
    """Returns the name of a result's test with the parameters that are not its case's: ``test_rate[fast]``."""
    name, _, parameters = (result.test or "").rpartition("::")[2].partition("[")
    case, parameters = result.case, parameters.removesuffix("]")
    own = parameters.replace(case, "").strip("-") if case in parameters else ""
    return f"{name}[{own}]" if own else name


def _differ(facts: Sequence[dict[str, Any]], name: str) -> bool:
    return any(known.get(name) != facts[0].get(name) for known in facts)


def _said(result: Result, names: Iterable[str]) -> str:
    """Returns the values of axes: ``flows 1000, dedicated``; empty for an axis that a result does not have."""
    parts = []
    for name in names:
        value = _facts(result).get(name)
        word = name.replace("_", " ")
        if value not in (None, False, ""):
            parts.append(word if value is True else str(value) if name in ("placement", "test") else f"{word} {value}")
    return ", ".join(parts)


def _with(result: Result, text: str) -> Result:
    return replace(result, apart=", ".join(filter(None, (result.apart, text)))) if text else result
