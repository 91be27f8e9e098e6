# SPDX-License-Identifier: BSD-3-Clause
"""The table of what switches do with frames says what their drivers declare."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_icbench.driver.switch.abilities import Abilities, abilities
from pytest_icbench.driver.switch.registry import builtin_switches

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "switches.md"
WORDS = {"all": "all", "peer": "the peer", "none": "nobody", True: "yes", False: "no"}


def row(name: str, found: Abilities) -> str:
    age = "\N{EN DASH}" if found.least_ageing_s is None else f"{found.least_ageing_s:g} s"
    cells = [name, WORDS[found.learns], age, WORDS[found.broadcast], WORDS[found.unknown_unicast]]
    vlan = "as the card lets them" if found.filters else WORDS[found.vlan]
    return f"| {' | '.join([*cells, vlan, WORDS[found.jumbo]])} |"


def rows() -> list[str]:
    """Of each switch, and of its modes that differ."""
    found = []
    for name, driver in builtin_switches().items():
        found.append(row(f"`{name}`", abilities(driver)))
        found += [row(f"`{name}:{mode}`", abilities(driver, mode)) for mode in driver.wire_modes]
    return found


def test_the_page_says_what_drivers_declare() -> None:
    section = PAGE.read_text().split("## What they do with frames", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^\| `.*$", section, flags=re.M) == rows()
