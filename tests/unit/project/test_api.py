# SPDX-License-Identifier: BSD-3-Clause
"""What comes from elsewhere, or reads as if it did, imports ``pytest_icbench.api`` and nothing else of the package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench import api

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("scenarios/*.md"))]
SUITE = "pytest_icbench.conformance"


def imported(source: str) -> Iterator[str]:
    """Every module that the source imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            if node.module == "pytest_icbench":
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def code_blocks(document: Path) -> list[str]:
    """The Python that a document shows."""
    return re.findall(r"^```python\n(.*?)^```$", document.read_text(encoding="utf-8"), flags=re.M | re.S)


def ours(source: str) -> set[str]:
    return {name for name in imported(source) if name.split(".")[0] == "pytest_icbench"}


@pytest.mark.parametrize("scenario", sorted(ROOT.glob("scenarios/**/*.py")), ids=lambda path: path.name)
def test_a_scenario_imports_the_api_alone(scenario: Path) -> None:
    assert ours(scenario.read_text(encoding="utf-8")) <= {"pytest_icbench.api"}


@pytest.mark.parametrize(
    "module", sorted((ROOT / "pytest_icbench/conformance").rglob("*.py")), ids=lambda path: path.name
)
def test_the_conformance_suite_imports_the_api_and_itself_alone(module: Path) -> None:
    names = ours(module.read_text(encoding="utf-8"))
    assert {name for name in names if not name.startswith(SUITE)} <= {"pytest_icbench.api"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_in_documents_imports_the_api_alone(document: Path) -> None:
    assert [ours(block) for block in code_blocks(document) if not ours(block) <= {"pytest_icbench.api"}] == []


def test_the_documents_show_code_that_imports_it() -> None:
    blocks = [block for document in DOCUMENTS for block in code_blocks(document)]
    assert any("pytest_icbench.api" in ours(block) for block in blocks)


@pytest.mark.parametrize("name", api.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(api, name) is not None


def test_the_names_that_come_late_are_those_that_a_type_checker_sees() -> None:
    """The rest stands in the module as soon as it is imported."""
    tree = ast.parse(Path(api.__file__).read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If) and not isinstance(node.test, ast.UnaryOp))
    seen = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(api.__all__) - set(vars(api))


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match=r"'pytest_icbench\.api' has no attribute 'Rig'"):
        getattr(api, "Rig")  # noqa: B009 - a type checker knows


def test_a_driver_loads_nothing_that_measures() -> None:
    """It is imported by every pytest run of its environment."""
    program = "import sys, pytest_icbench.api; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    packages = {".".join(name.split(".")[:2]) for name in done.stdout.split()}
    ours = ("plugin", "measure", "testbed", "gate", "store", "report", "conformance")
    assert packages.isdisjoint({*(f"pytest_icbench.{name}" for name in ours), "pyroute2", "lxc", "scapy", "xdist"})
