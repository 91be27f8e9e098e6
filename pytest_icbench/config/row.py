# SPDX-License-Identifier: BSD-3-Clause
"""What an option is: a field of ``option_table.Options`` that carries its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pytest_icbench.config import values


def _as_written(text: str, _where: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Row:
    """One option.

    Attributes:
        name: the option is ``--icbench-`` and the name with dashes, the ini value ``icbench_`` and the name.
        field: of ``Options``.
        default: what the field is if nothing is said. A relative path begins at the root directory.
        parse: text and its origin to a value; raises UsageError.
        parse_at: the same for what also depends on the directory that relative paths begin at.
        flag: takes no value on the command line.
        setting: the name in ``measure.Settings``, empty for what is none.
        marker: the default of the marker's argument of this name, as written there; empty if there is none.
        path: a file or directory.
        repeated: can be given several times; its values are lines (of the ini value, too).
        ini_only: there is no such option, only the ini value.
    """

    name: str
    field: str
    metavar: str
    help: str
    default: Any = None
    parse: Callable[[str, str], Any] = _as_written
    parse_at: Callable[[str, str, Path], Any] | None = None
    flag: bool = False
    setting: str = ""
    marker: str = ""
    path: bool = False
    repeated: bool = False
    ini_only: bool = False

    @property
    def option(self) -> str:
        return "--icbench-" + self.name.replace("_", "-")

    @property
    def dest(self) -> str:
        return f"icbench_{self.name}"

    @property
    def ini(self) -> str:
        return f"icbench_{self.name}"

    def read(self, text: str, where: str, base: Path) -> Any:
        """The value of a text; ``base`` is where relative paths begin. Raises UsageError."""
        if self.path:
            return values.path(text, where, base)
        return self.parse(text, where) if self.parse_at is None else self.parse_at(text, where, base)


def option(
    metavar: str, text: str, parse: Callable[[str, str], Any] = _as_written, *, default: Any = None, **more: Any
) -> Any:
    """A field of ``Options`` that is an option: ``text`` is its help, ``more`` are attributes of ``Row``."""
    row = {"metavar": metavar, "help": text, "parse": parse, "default": default, **more}
    return field(default_factory=lambda: default, metadata={"row": row})


def flag(text: str, **more: Any) -> Any:
    """An option without a value, False unless it is given."""
    return option("", text, values.boolean, **{"default": False, "flag": True, **more})


def rows(kind: type) -> tuple[Row, ...]:
    """The options of a class whose fields are options, in their order."""
    return tuple(
        Row(**{"name": each.name, "field": each.name, **each.metadata["row"]})
        for each in fields(kind)
        if "row" in each.metadata
    )
