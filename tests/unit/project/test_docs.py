# SPDX-License-Identifier: BSD-3-Clause
"""The documents say what the code says (options, marker arguments, result fields, targets); links lead somewhere."""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.cli.main import parser
from pytest_icbench.config.cases import ARGUMENTS
from pytest_icbench.config.option_table import TABLE
from pytest_icbench.config.options import NAMES
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import EXIT_STATUS, Verdict
from pytest_icbench.plugin.fixture import Icbench
from pytest_icbench.verdict_reasons import INVALID_REASONS
from tests.unit.project.test_reference import reference

ROOT = Path(__file__).parents[3]
PACKAGE = Path(pytest_icbench.__file__).parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])
SCENARIO = ROOT / "docs" / "how-to" / "write-a-scenario.md"
VERDICTS = ROOT / "docs" / "how-to" / "verdicts.md"
COMMAND = ROOT / "docs" / "reference" / "command.md"


def first_cells(document: Path, heading: str) -> list[str]:
    """First cells of the tables below a heading, up to the next heading; escapes undone."""
    section = re.split(r"^#+ ", reference.built(document.read_text()), flags=re.M)
    found = [part for part in section if part.startswith(heading + "\n")]
    assert len(found) == 1, f"{document.name} has {len(found)} sections '{heading}'"
    rows = re.findall(r"^\| (.*?)(?<!\\)\|", found[0], flags=re.M)
    return [row.replace("\\|", "|").strip() for row in rows if not row.startswith("---")]


def code(cells: list[str]) -> list[str]:
    """What stands in backquotes."""
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def test_help_states_the_defaults_of_settings() -> None:
    defaults = Settings()
    for row in TABLE:
        stated = re.search(r"\(default: ([\d.]+)(%%)?[,)]", row.help)
        if row.setting and stated:
            value = float(stated[1]) / (100 if stated[2] else 1)
            assert value == getattr(defaults, row.setting), row.option


def test_the_page_of_scenarios_lists_every_argument_of_the_marker() -> None:
    documented = code(first_cells(SCENARIO, "The marker"))
    assert sorted(documented) == sorted(name for name in ARGUMENTS if name not in NAMES)


def test_the_page_of_scenarios_lists_every_call_of_the_fixture() -> None:
    documented = {cell.partition("(")[0] for cell in code(first_cells(SCENARIO, "The fixture"))}
    internal = {"finish", "unjudged", "rig", "switch"}
    assert documented == {name for name in vars(Icbench) if not name.startswith("_")} - internal | {"case"}


def test_the_page_of_the_command_lists_every_subcommand() -> None:
    documented = [cell.split()[1] for cell in code(first_cells(COMMAND, "The command `icbench`"))]
    assert sorted(documented) == sorted(subcommands())


def subcommands() -> list[str]:
    (action,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return list(action.choices)


def reasons() -> set[str]:
    """The reasons of INVALID that the code can give: arguments of ``Invalid``, and those that its checks return."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Name("Invalid"), args=[ast.Constant(str(reason)), *_]):
                    found.add(reason)
                case ast.Call(func=ast.Name("_Finding"), args=[_, _, ast.Constant(str(reason)), *_]):
                    found.add(reason)
                case ast.Tuple([ast.Constant(str(reason)), second]) if not isinstance(second, ast.Constant):
                    if file.parent.name == "launch" and re.fullmatch("[a-z]+(-[a-z]+)*", reason):
                        found.add(reason)
                case ast.IfExp(_, ast.Constant("emulated"), ast.Constant(str(reason))):
                    found.add(reason)
    return found


def test_the_reasons_are_those_of_the_table() -> None:
    assert reasons() == set(INVALID_REASONS)


def test_every_verdict_and_every_reason_has_a_heading_that_says_what_to_do() -> None:
    headings = set(re.findall(r"^#+ (.+)$", VERDICTS.read_text(), flags=re.M))
    assert {*Verdict, *INVALID_REASONS, "Skipped"} - headings == set()


def test_the_table_of_verdicts_has_the_exit_codes_that_the_code_gives() -> None:
    rows = re.findall(r"^\| \[([A-Z_]+)\]\(\S+\) \| .+? \| (yes|no) \| (\d+) \|", VERDICTS.read_text(), flags=re.M)
    codes = {"passed": 0, "broken": 1, **EXIT_STATUS}
    assert rows == [(str(each), "yes" if each.fails else "no", str(codes[each.outcome])) for each in Verdict]


def test_every_limit_of_a_rate_has_a_row_that_says_what_to_do() -> None:
    limits = {
        node.args[0].value
        for node in ast.walk(ast.parse((PACKAGE / "measure" / "summary" / "bottleneck.py").read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Bottleneck"
        if isinstance(node.args[0], ast.Constant)
    }
    assert set(code(first_cells(VERDICTS, "What limited a rate"))) == limits


def test_links_lead_to_files_and_headings() -> None:
    broken = []
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if target.startswith(("https://", "http://", "mailto:")):
                continue
            path, _, anchor = target.partition("#")
            file = (document.parent / path) if path else document
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{document.name}: {target}")
    assert broken == []


def anchors(document: Path) -> set[str]:
    """Anchors that a renderer gives to headings."""
    headings = re.findall(r"^#+ (.+)$", reference.built(document.read_text()), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert [
        page.name for page in (ROOT / "docs").glob("**/*.md") if page.name != "index.md" and page.name not in index
    ] == []


def test_pictures_are_small_and_shown() -> None:
    text = "".join(document.read_text() for document in DOCUMENTS)
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert len(pictures) > 1
    assert [picture.name for picture in pictures if picture.stat().st_size > 200_000] == []
    assert [picture.name for picture in pictures if f"pictures/{picture.name})" not in text] == []


def test_make_targets_named_in_documents_exist() -> None:
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = {
        target for document in DOCUMENTS for target in re.findall(r"`(?:sudo )?make ([a-z-]+)", document.read_text())
    }
    assert named - rules == set()


def test_files_named_in_documents_exist() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    known = subprocess.run(("git", "ls-files"), cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    folders = {str(parent) for name in known for parent in Path(name).parents}
    missing = []
    for document in DOCUMENTS:
        if document.parent.name == "contributing":  # names files that its changes add
            continue
        for name in re.findall(
            r"`((?:pytest_icbench|benchmarks|scenarios|scripts|tests|workload|docs|\.ci)/[\w./-]*)`",
            document.read_text(),
        ):
            if name.rstrip("/") not in folders and name not in known:
                missing.append(f"{document.name}: {name}")
    assert missing == []
