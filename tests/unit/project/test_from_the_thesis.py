# SPDX-License-Identifier: BSD-3-Clause
"""docs/reference/from-the-thesis.md: whatever it says is typed here exists, and nothing of the thesis' is left out."""

from __future__ import annotations

import re
import runpy
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_icbench.config.option_table import TABLE
from pytest_icbench.config.topology import Table, loads
from pytest_icbench.driver.switch.registry import builtin_switches
from tests.unit.project.test_docs import ROOT, code, first_cells

PAGE = ROOT / "docs" / "reference" / "from-the-thesis.md"

#: Of its scripts, as `--help` there tells them; of its configuration files; of its applications (getopt's letters).
SCRIPTS = "-d -t -o -v -r -b -p -c -f -F -H -C -T -X -D -S -R -m -B run_remote_test"
LISTS = "NAMES CPUS IPS NMASKS MACS VFS VFPCIS VFDEVS SOCKS OTHER_IPS OTHER_MACS CMDNAMES"
APPLICATIONS = "send recv client server clientst -r -p -b -R -B -c -m -s"


def rows(heading: str) -> list[list[str]]:
    """Cells of the table below a heading."""
    section = next(part for part in re.split(r"^## ", PAGE.read_text(), flags=re.M) if part.startswith(heading + "\n"))
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def here(heading: str) -> list[str]:
    """What stands in backquotes in the last column."""
    return code([cells[-1] for cells in rows(heading)])


def test_every_option_that_is_named_exists() -> None:
    options = {row.option for row in TABLE}
    named = set(re.findall(r"--icbench-[a-z-]+", PAGE.read_text()))
    assert len(named) > 15
    assert named - options == set()


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("The scripts", SCRIPTS.split()),
        ("The configuration file", [f"LXC_CONT_{name}" for name in LISTS.split()]),
        ("The applications", APPLICATIONS.split()),
    ],
)
def test_nothing_of_the_thesis_is_left_out(heading: str, names: list[str]) -> None:
    documented = code(first_cells(PAGE, heading))
    assert [name for name in names if name not in documented] == []
    assert all(cells[-1] for cells in rows(heading))


def test_the_seven_letters_of_a_test() -> None:
    assert [cells[0][0] for cells in rows("A test")] == list("DLSVPRB")


def test_switches_have_the_names_that_are_given() -> None:
    (values,) = (cells[1] for cells in rows("A test") if cells[0].startswith("V,"))
    there = set(code([values])) - {"pmd"}
    assert there | {"testpmd"} <= builtin_switches().keys()


def test_keys_of_a_container_exist_and_are_all_named() -> None:
    named = {word for word in here("The configuration file") if re.fullmatch("[a-z]+", word)}
    # The thesis made all its containers.
    of_attached = {"container", "interface"}
    assert named - {"client", "clientst"} == {field.name for field in fields(Table)} - of_attached


def test_options_of_the_workload_exist() -> None:
    documented = code(first_cells(ROOT / "docs" / "reference" / "workload.md", "Options"))
    letters = [word for word in here("The applications") if word.startswith("-")]
    assert len(letters) == 8
    assert [
        word for word in letters if word not in documented and not any(d.startswith(f"{word} ") for d in documented)
    ] == []


def test_the_listing_is_a_topology() -> None:
    (listing,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert tomllib.loads(listing)
    assert loads(listing, "listing 4.1").is_remote(1)


def test_scenario_files_that_are_named_exist() -> None:
    for name in re.findall(r"test_\w+\.py", PAGE.read_text()):
        assert Path(ROOT, "scenarios", name).is_file(), name


def scenarios() -> list[tuple[set[str], set[str]]]:
    """What each test of ``scenarios/`` reproduces, and its switches."""
    found = []
    for file in sorted(Path(ROOT, "scenarios").glob("test_*.py")):
        module = runpy.run_path(str(file))
        for name, test in module.items():
            for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
                rows = re.findall(r"[A-D]\d+", (test.__doc__ or "").partition("Reproduces:")[2])
                found.append((set(rows), set(mark.kwargs.get("switch", ()))))
    return found


@pytest.mark.parametrize("row", ["A2", "A3", "A4", "A6", "A8", "B2", "B3", "C3", "C4"])
def test_every_switch_takes_part_in_what_compares_switches(row: str) -> None:
    every = {name for name, driver in builtin_switches().items() if not driver.by_name_only} - {"veth", "direct"}
    named = {name for rows, switches in scenarios() if row in rows for name in switches}
    assert every - named == set()
