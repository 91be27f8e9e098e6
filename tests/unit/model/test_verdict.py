# SPDX-License-Identifier: BSD-3-Clause
"""The table of verdicts, and that nothing beside it names one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import pytest_icbench
from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import DamagedData, decode, encode
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.verdict import BAD, DEFAULT_FAILING, EXIT_STATUS, NOTABLE, ORDER, Verdict, parse_verdicts
from pytest_icbench.stats.verdict_rule import Outcome

PACKAGE = Path(pytest_icbench.__file__).parent
DOCS = Path(__file__).parents[3] / "docs"
CONCEPTS, VERDICTS = DOCS / "explanation" / "concepts.md", DOCS / "how-to" / "verdicts.md"
_NAMES = re.compile(rf"\b({'|'.join(Verdict)})\b")


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Texts that stand alone: docstrings, also those behind an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_text_of_the_package_names_a_verdict(file: Path) -> None:
    if file == PACKAGE / "model" / "verdict.py":
        return
    tree = ast.parse(file.read_text())
    reported = {id(node) for node in _docstrings(tree)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in reported]
    assert [(node.lineno, node.value) for node in texts if _NAMES.search(str(node.value))] == []


def test_no_style_sheet_or_script_names_a_verdict() -> None:
    for file in (*PACKAGE.rglob("*.css"), *PACKAGE.rglob("*.js")):
        assert _NAMES.search(file.read_text()) is None, file


def test_the_table() -> None:
    assert ORDER == ("INVALID", "REGRESSED", "INCOMPARABLE", "INCONCLUSIVE", "NO_BASELINE", "IMPROVED", "PASS")
    assert DEFAULT_FAILING == ("INVALID", "REGRESSED")
    assert ORDER[:5] == BAD
    assert ORDER[:4] == NOTABLE
    assert {verdict: EXIT_STATUS.get(verdict.outcome) for verdict in Verdict} == {
        "INVALID": None,
        "REGRESSED": 10,
        "INCOMPARABLE": 11,
        "INCONCLUSIVE": 11,
        "NO_BASELINE": 11,
        "IMPROVED": None,
        "PASS": None,
    }


def test_every_outcome_of_a_decision_has_one_verdict() -> None:
    assert {Verdict.of_outcome(outcome) for outcome in get_args(Outcome)} == {
        *(Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.IMPROVED),
    }
    changes = [verdict.decided for verdict in Verdict if verdict.decided is not None]
    assert len(set(changes)) == len(changes)


def test_the_documents_say_what_a_verdict_means() -> None:
    headings = re.findall(r"^## ([A-Z_]+)\n\n\S", VERDICTS.read_text(), re.MULTILINE)
    assert headings == [str(verdict) for verdict in Verdict]
    assert f"in the order {', '.join(Verdict)}." in " ".join(CONCEPTS.read_text().split())


def test_a_verdict_is_a_plain_text_in_files_and_read_back() -> None:
    found = Finding("throughput_pps", "min", 1.0, "limits", Verdict.PASS)
    data = encode(found)
    assert type(data["verdict"]) is str
    assert decode(Finding, data, "here").verdict is Verdict.PASS
    with pytest.raises(DamagedData, match=r"verdict: expected INVALID or REGRESSED or .*, found 'FINE'"):
        decode(Finding, {**data, "verdict": "FINE"}, "here")


def test_verdicts_that_fail_are_read() -> None:
    assert parse_verdicts("regressed, NO_BASELINE", "here") == (Verdict.REGRESSED, Verdict.NO_BASELINE)
    assert parse_verdicts("none", "here") == ()
    with pytest.raises(UsageError, match="here: 'PASS' is no verdict that could fail a test"):
        parse_verdicts("PASS", "here")
