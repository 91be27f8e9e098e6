# SPDX-License-Identifier: BSD-3-Clause
"""The table of the workload's options, from the C source that parses and prints them."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "workload" / "src"

_ROW = re.compile(
    r"""\{ (?:'(?P<letter>\w)'|0), \s* "(?P<name>[\w-]+)", \s* (?:"(?P<argument>[^"]*)"|NULL), \s*
    (?P<kind>KIND_\w+), \s* AT\((?P<field>[\w.]+)\), \s*
    (?P<least>[^,]+), \s* (?P<greatest>[^,]+), \s* (?P<help>(?:"[^"]*"\s*)+) \}""",
    re.VERBOSE,
)
#: Kinds of options that have a number, with a default and bounds.
_NUMBERS = ("KIND_U16", "KIND_U32", "KIND_U64", "KIND_RATE", "KIND_SECONDS", "KIND_MICROSECONDS")
#: What a help text says as it is typed or printed.
_TYPED = re.compile(r"(?<![\w`-])(--?[a-zA-Z][\w-]*|\w+\(\)|[a-zA-Z]+_[a-zA-Z_]+)(?![\w`(])")


def workload_options() -> str:
    """The options of the workload: default and bounds of numbers, and what `--help` says of each.

    Raises ValueError if the source is not written as expected.
    """
    text = (SOURCE / "option" / "table.c").read_text(encoding="utf-8")
    table, _, rest = text.partition("OPTION_ROWS")
    defaults = dict(re.findall(r"\.([\w.]+) = ([\d.]+)", rest))
    rows = ["| option | default | bounds | meaning |", "| --- | --- | --- | --- |"]
    found = list(_ROW.finditer(table))
    if len(found) != table.count("KIND_"):
        raise ValueError(f"option/table.c: {table.count('KIND_')} options, of which {len(found)} are understood")
    for row in found:
        typed = f"--{row['name']} {row['argument'] or ''}".strip()
        names = f"`-{row['letter']}`, `{typed}`" if row["letter"] else f"`{typed}`"
        default, bounds = ("off" if row["argument"] is None else "\N{EN DASH}"), ""
        if row["kind"] in _NUMBERS:
            default = defaults.get(row["field"], "0")
            bounds = f"{number(row['least'])} to {number(row['greatest'])}"
        meaning = re.sub(r"'(\w+)'", r"`\1`", "".join(re.findall(r'"([^"]*)"', row["help"])))
        meaning = _TYPED.sub(r"`\1`", meaning)
        rows.append(f"| {names} | {default} | {bounds} | {meaning} |")
    return "\n".join(rows)


def number(text: str) -> str:
    """A bound as it is read: a macro's value, without exponent or suffix. Raises ValueError for another expression."""
    text = text.strip()
    if re.fullmatch(r"[A-Z_]+", text):
        sources = "".join(header.read_text(encoding="utf-8") for header in sorted(SOURCE.rglob("*.h")))
        defined = re.search(rf"#define {text} (\d+)u?\b", sources)
        if defined is None:
            raise ValueError(f"option/table.c: {text} is no number in a header")
        text = defined[1]
    if shifted := re.fullmatch(r"(\d+) << (\d+)", text):
        text = str(int(shifted[1]) << int(shifted[2]))
    return f"{float(text):,.15g}"
