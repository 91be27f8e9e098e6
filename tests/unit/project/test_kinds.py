# SPDX-License-Identifier: BSD-3-Clause
"""Few modules ask "which kind is this": they ask the kind's row. Everything is read from the modules' syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).parents[3] / "pytest_icbench"
#: The packages that stand above the kinds, or beside them.
_ASKING = ("cli", "display", "gate", "plugin", "report", "store", "testbed")
#: The modules whose types are the kinds of loads and of figures.
_TYPES = ("pytest_icbench.model.load", "pytest_icbench.model.figures")
_KINDS = {"Frames", "Application", "Startup", "Throughput", "Latency", "Search", "FrameFigures"}
_DOTTED = {f"{module}.{kind}" for module in ("load", "figures") for kind in _KINDS}
_NAMES = {"throughput", "latency", "search", "application", "startup"}
#: What only measurements, launches, or loads of one kind have.
_OWN = {"application", "back_to_back", "crowd", "rtt", "search", "startup", "startups"}
#: The most questions. Lower it with each that goes.
MOST = 12


def questions(tree: ast.AST) -> Iterator[int]:
    """The lines of uses of a kind's type, and of comparisons with a kind's name or of its own part with None."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _TYPES
        for alias in node.names
        if alias.name in _KINDS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            if ast.unparse(node) in imported | _DOTTED:
                yield node.lineno
        elif isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            constants = {part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)}
            read = {side.attr for side in sides if isinstance(side, ast.Attribute)}
            if (None in constants and read & _OWN) or constants & _NAMES:
                yield node.lineno


def found() -> list[str]:
    return sorted(
        {
            f"{path.relative_to(_PACKAGE)}:{line}"
            for package in _ASKING
            for path in (_PACKAGE / package).rglob("*.py")
            for line in questions(ast.parse(path.read_text(encoding="utf-8")))
        }
    )


def test_few_modules_ask_which_kind_it_is() -> None:
    assert len(found()) == MOST, found()


@pytest.mark.parametrize(
    "text",
    [
        "from pytest_icbench.model.figures import Latency\nisinstance(figures, Latency)",
        "from pytest_icbench.model import load\nisinstance(case.load, load.Startup)",
        "measurement.application is not None",
        "case.dimension == 'latency'",
        "'search' != kind",
        "case.kind in ('application', 'startup')",
    ],
)
def test_a_question_is_found(text: str) -> None:
    assert list(questions(ast.parse(text)))


def test_what_every_kind_has_is_no_question() -> None:
    text = "result.figures.LESS_IS_BETTER or result.reason is None or kind_of(result).facts(result)"
    assert not list(questions(ast.parse(text)))
