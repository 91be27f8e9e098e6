# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables of options: the workload's from its C source, those of `icbench` from its parser, and make's targets."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pytest_icbench.cli.main import parser

MAKEFILE = Path(__file__).parents[1] / "Makefile"
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
    """Returns the workload's options with defaults and bounds of numbers, and the text of `--help`.

    Raises:
        ValueError: the source has an option in another form.
    """
    text = (SOURCE / "option" / "table.c").read_text(encoding="utf-8")
    table, _, rest = text.partition("OPTION_ROWS")
    defaults = dict(re.findall(r"\.([\w.]+) = ([\d.]+)", rest))
    rows = ["| option | default | bounds | meaning |", "| --- | --- | --- | --- |"]
    found = list(_ROW.finditer(table))
    if len(found) != table.count("KIND_"):
        raise ValueError(f"option/table.c: {table.count('KIND_')} options; {len(found)} of them could be read")
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
    """Returns a bound as a number: a macro's value without exponent or suffix. Raises ValueError for something else."""
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


def subcommands() -> str:
    """Returns the subcommands of `icbench` with their arguments, as `--help` describes them."""
    (action,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
    rows = ["| command | what it does |", "| --- | --- |"]
    for name, command in action.choices.items():
        taken = [argument for argument in command._actions if argument.dest != "help"]
        typed = " ".join([name, *(positional(argument) for argument in taken if not argument.option_strings)])
        said = [f"`{option(argument)}`: {expanded(command, argument)}" for argument in taken if shown(argument)]
        what = helps[name][:1].upper() + helps[name][1:]
        rows.append(f"| `icbench {typed}` | {'<br>'.join([what, *said])} |")
    return "\n".join(rows)


def shown(argument: argparse.Action) -> bool:
    """Whether `--help` says something about an argument."""
    return bool(argument.help) and argument.help != argparse.SUPPRESS


def positional(argument: argparse.Action) -> str:
    """Returns the spelling of an argument without a name."""
    metavar = str(argument.metavar).replace("NvsN", "4vs4")
    return {None: metavar, "+": f"{metavar}…", "*": f"[{metavar}…]", "?": f"[{metavar}]"}[argument.nargs]  # type: ignore[index]


def option(argument: argparse.Action) -> str:
    """Returns the spelling of an option, or the name of an argument."""
    if not argument.option_strings:
        return str(argument.metavar)
    value = "" if argument.nargs == 0 else f" {argument.metavar or argument.dest.upper()}"
    return f"{argument.option_strings[-1]}{value}"


def expanded(command: argparse.ArgumentParser, argument: argparse.Action) -> str:
    """Returns the help of an argument with its default, for a cell of a table."""
    text = command._get_formatter()._expand_help(argument)
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*").replace("[...]", "\\[...\\]")


def targets() -> str:
    """Returns the targets of make, as `make help` lists them."""
    found = re.findall(r"^([a-z-]+):.*## (.*)$", MAKEFILE.read_text(encoding="utf-8"), flags=re.M)
    return "\n".join(["| command | what |", "| --- | --- |", *(f"| `make {name}` | {what} |" for name, what in found)])
