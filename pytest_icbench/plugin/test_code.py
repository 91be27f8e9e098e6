# SPDX-License-Identifier: BSD-3-Clause
"""What a test's own code tells of what it will measure, before it runs. Pure but for reading its source.

A forecast needs no more: names that are called, and how long a run is asked for where a number stands there.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_icbench.measure.estimate import SOAK_S


@dataclass(frozen=True, slots=True)
class TestCode:
    """Of one test function.

    Attributes:
        names: attributes and globals that it uses (``soak``, ``back_to_back`` …).
        soak_s: seconds of its long run; of several the longest. What is no number in the code counts as the default.
        measurements: how many calls of ``_MEASURING`` stand there, at least 1: what calls others is not known.
    """

    __test__ = False

    names: frozenset[str] = frozenset()
    soak_s: float = SOAK_S
    measurements: int = 1


#: Calls that compare a candidate with its base.
_MEASURING = frozenset({"measure", "throughput", "latency"})


def read(function: object) -> TestCode:
    """What the code of a test function tells; nothing for what is none."""
    code = getattr(function, "__code__", None)
    names = frozenset(code.co_names) if code is not None else frozenset[str]()
    if not names & {"soak", *_MEASURING} or not callable(function):
        return TestCode(names)
    calls = list(_calls(function))
    soaks = (call for name, call in calls if name == "soak")
    measurements = sum(name in _MEASURING for name, _ in calls)
    return TestCode(names, max(_durations(soaks), default=SOAK_S), max(measurements, 1))


def _calls(function: Callable[..., object]) -> Iterator[tuple[str, ast.Call]]:
    """Calls of methods, with the method's name; none where the source cannot be had."""
    try:
        # The condition holds the indentation of a method, whatever its lines are like.
        tree = ast.parse("if True:\n" + "".join(f" {line}" for line in inspect.getsourcelines(function)[0]))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node


def _durations(calls: Iterator[ast.Call]) -> Iterator[float]:
    for call in calls:
        given = {each.arg: each.value for each in call.keywords}
        duration = call.args[0] if call.args else given.get("duration")
        found = None if duration is None else _number(duration)
        yield found if found is not None and found > 0 else SOAK_S


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _number(node: ast.expr) -> float | None:
    """The value of a number, or of plain arithmetic with numbers (``8 * 3600``); None for anything else."""
    if isinstance(node, ast.Constant):
        value = node.value
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None or (isinstance(node.op, ast.Div) and right == 0):
            return None
        return _OPERATORS[type(node.op)](left, right)
    return None
