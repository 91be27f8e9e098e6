# SPDX-License-Identifier: BSD-3-Clause
"""Makes the tables of a switch driver's traits, of the fixture's calls, and of the applications."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from docs_records import cell

from pytest_icbench.driver.application.protocol import Application
from pytest_icbench.driver.application.registry import applications
from pytest_icbench.model import switch_traits
from pytest_icbench.plugin.fixture import Icbench

#: Members of the fixture that are not for tests that measure.
INTERNAL = ("finish", "unjudged", "rig", "switch")
#: What the wheel brings along.
OWN_PACKAGE = "pytest-icbench"


def code(text: str) -> str:
    """Returns the text of a docstring or comment for a cell, with Markdown's marks of code."""
    return cell(re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split())))


def traits() -> str:
    """Returns the class attributes of a switch's driver with the comments above them. Raises ValueError for none."""
    rows = ["| attribute | meaning |", "| --- | --- |"]
    comment: list[str] = []
    names: list[str] = []
    for line in [*inspect.getsource(switch_traits.SwitchTraits).splitlines(), ""]:
        if said := re.match(r" {4}#: (.*)", line):
            if names:
                rows.append(_trait(names, comment))
                comment, names = [], []
            comment.append(said[1])
        elif attribute := re.match(r" {4}(\w+): ClassVar\[", line):
            names.append(attribute[1])
        elif names and not line.strip():
            rows.append(_trait(names, comment))
            comment, names = [], []
    if len(rows) < 4:
        raise ValueError("model/switch_traits.py: no attribute has a comment")
    return "\n".join(rows)


def _trait(names: list[str], comment: list[str]) -> str:
    text = " ".join(comment) or "its name, and the group to which it belongs: `kernel` or `dpdk`"
    return f"| {', '.join(f'`{name}`' for name in names)} | {code(text).removesuffix('.')} |"


def fixture() -> str:
    """Returns the calls of the fixture with the first paragraph of each docstring."""
    rows = ["| member | what it does |", "| --- | --- |", "| `case` | the case, frozen |"]
    for name, member in vars(Icbench).items():
        if name.startswith("_") or name in INTERNAL:
            continue
        said = (inspect.getdoc(member) or "").partition("\n\n")[0]
        rows.append(f"| `{name}({', '.join(_arguments(member))})` | {code(said).removesuffix('.')} |")
    return "\n".join(rows)


def _arguments(member: object) -> Iterator[str]:
    assert callable(member)
    for parameter in list(inspect.signature(member).parameters.values())[1:]:
        yield f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name


def application_table() -> str:
    """Returns the applications with their programs, the words that can follow a name, and Debian's packages."""
    rows = ["| `app` | server and client | what can follow | Debian packages |", "| --- | --- | --- | --- |"]
    for name, kind in applications().items():
        packages = dict.fromkeys((kind.server.package, kind.client.package))
        packages.pop(OWN_PACKAGE, None)
        installed = ", ".join(f"`{package}`" for package in packages) or "\N{EN DASH}"
        rows.append(f"| `{name}` | {kind.summary} | {', '.join(_choices(kind))} | {installed} |")
    return "\n".join(rows)


def _choices(kind: type[Application]) -> Iterator[str]:
    """Yields the choices of a load, with the default in brackets."""
    if len(kind.modes) > 1:
        yield " or ".join(f"`{mode}`" for mode in kind.modes)
    if bounds := kind.connections:
        yield f"`c{bounds.least}` to `c{bounds.most}` ({bounds.natural})"
    if bounds := kind.message_bytes:
        natural = f" ({bounds.natural})" if bounds.natural else ""
        yield f"`{bounds.least}B` to `{bounds.most}B`{natural}"
    if bounds := kind.rate:
        yield f"`r{bounds.least}` to `r{bounds.most}` ({bounds.natural})"
