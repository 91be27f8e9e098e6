# SPDX-License-Identifier: BSD-3-Clause
"""The documents say what the code says (options, marker arguments, result fields, targets); links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_icbench.config.cases import ARGUMENTS
from pytest_icbench.config.option_table import INI_ONLY, TABLE
from pytest_icbench.config.settings import NAMES
from pytest_icbench.model.codec import keys
from pytest_icbench.model.comparison import SideBySide
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.launch import Launch, PairCounts, SwitchPort, Window
from pytest_icbench.model.long_run import BackToBack, LossEvent
from pytest_icbench.model.measurement import Measurement, PairResult
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import Search, SweepPoint, Trial

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])
GUIDE = ROOT / "docs" / "reference" / "user-guide.md"
FORMAT = ROOT / "docs" / "reference" / "result-format.md"


def first_cells(document: Path, heading: str) -> list[str]:
    """First cells of the tables below a heading, up to the next heading; escapes undone."""
    section = re.split(r"^#+ ", document.read_text(), flags=re.M)
    found = [part for part in section if part.startswith(heading + "\n")]
    assert len(found) == 1, f"{document.name} has {len(found)} sections '{heading}'"
    rows = re.findall(r"^\| (.*?)(?<!\\)\|", found[0], flags=re.M)
    return [row.replace("\\|", "|").strip() for row in rows if not row.startswith("---")]


def code(cells: list[str]) -> list[str]:
    """What stands in backquotes."""
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def test_user_guide_lists_every_option_with_its_value_and_no_other() -> None:
    documented = [word for word in code(first_cells(GUIDE, "Options")) if word.startswith("--")]
    assert sorted(documented) == sorted(f"{row.option} {row.metavar}".strip() for row in TABLE)


def test_user_guide_says_of_an_option_what_its_help_says() -> None:
    text = GUIDE.read_text()
    for row in TABLE:
        assert row.help.replace("%%", "%").replace("|", "\\|") in text, row.option


def test_help_states_the_defaults_of_settings() -> None:
    defaults = Settings()
    for row in TABLE:
        stated = re.search(r"\(default: ([\d.]+)(%%)?[,)]", row.help)
        if row.setting and stated:
            value = float(stated[1]) / (100 if stated[2] else 1)
            assert value == getattr(defaults, row.setting), row.option


def test_user_guide_lists_every_ini_value_without_option() -> None:
    documented = [word for word in code(first_cells(GUIDE, "Options")) if word.startswith("icbench_")]
    assert sorted(documented) == sorted(INI_ONLY)


def test_user_guide_lists_every_axis_of_the_marker() -> None:
    documented = code(first_cells(GUIDE, "Writing a scenario"))
    assert [name for name in ARGUMENTS if name not in NAMES and name not in documented] == []


@pytest.mark.parametrize(
    ("heading", "cls"),
    [
        ("A result", Measurement),
        ("A launch", Launch),
        ("A pair of a launch", PairCounts),
        ("A pair of a result", PairResult),
        ("A port of the switch", SwitchPort),
        ("A loss event", LossEvent),
        ("Side by side", SideBySide),
        ("Back-to-back frames", BackToBack),
        ("A window", Window),
        ("A finding", Finding),
        ("A search", Search),
        ("A trial of a search", Trial),
        ("A point of a sweep", SweepPoint),
    ],
)
def test_result_format_lists_every_field_and_no_other(heading: str, cls: type) -> None:
    documented = code(first_cells(FORMAT, heading))
    names = list(keys(cls))
    # An estimate's interval is said once for all estimates.
    estimates = {name for name in names if f"{name}_low" in names}
    expected = [name for name in names if name.removesuffix("_low").removesuffix("_high") not in estimates - {name}]
    assert sorted(documented) == sorted(expected)


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
    headings = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert [
        page.name for page in (ROOT / "docs").glob("**/*.md") if page.name != "index.md" and page.name not in index
    ] == []


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
