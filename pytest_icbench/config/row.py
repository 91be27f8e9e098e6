# SPDX-License-Identifier: BSD-3-Clause
"""An option: a field of ``option_table.Options`` that carries its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pytest_icbench.config import values


def _as_written(text: str, _where: str) -> str:
    return text


class Row(NamedTuple):
    """One option.

    Attributes:
        name: the option is ``--icbench-`` and the name with dashes, the ini value ``icbench_`` and the name.
        field: the name of the field of ``Options``.
        default: the value of the field if the option is not given. A relative path begins at the root directory.
        parse: turns a text and its origin into a value; raises UsageError.
        parse_at: the same for a value that also depends on the directory that relative paths begin at.
        flag: the option takes no value on the command line.
        setting: the name of the setting in ``Settings``; empty if the option is none.
        marker: the default of the marker's argument of this name, as written there; empty if there is none.
        path: the value is a file or a directory.
        ini_only: the command line has no such option, only the ini file has the value.
        older: an older name, which command line and ini file still take and no help shows.
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
    ini_only: bool = False
    older: str = ""

    @property
    def option(self) -> str:
        return "--icbench-" + self.name.replace("_", "-")

    @property
    def repeated(self) -> bool:
        """Whether the option can be given several times, and adds up: its text is a list, or says what it is for."""
        return self.metavar in ("LIST", "SPEC") or "=" in self.metavar

    @property
    def dest(self) -> str:
        return f"icbench_{self.name}"

    @property
    def ini(self) -> str:
        return f"icbench_{self.name}"

    @property
    def older_option(self) -> str:
        """The option by its older name; empty without one."""
        return self.older and "--icbench-" + self.older.replace("_", "-")

    @property
    def older_ini(self) -> str:
        """The ini value by its older name; empty without one."""
        return self.older and f"icbench_{self.older}"

    def read(self, text: str, where: str, base: Path) -> Any:
        """Returns the value of a text; relative paths begin at ``base``. Raises UsageError."""
        if self.path:
            return values.path(text, where, base)
        return self.parse(text, where) if self.parse_at is None else self.parse_at(text, where, base)


def option(
    metavar: str, text: str, parse: Callable[[str, str], Any] = _as_written, *, default: Any = None, **more: Any
) -> Any:
    """Makes a field of ``Options`` that is an option: ``text`` is its help, ``more`` are attributes of ``Row``."""
    row = {"metavar": metavar, "help": text, "parse": parse, "default": default, **more}
    if type(default).__hash__ is None:  # a mapping, which no field takes for its default
        return field(default_factory=lambda: default, metadata={"row": row})
    return field(default=default, metadata={"row": row})


def flag(text: str, **more: Any) -> Any:
    """Makes an option without a value, False unless it is given."""
    return option("", text, values.boolean, **{"default": False, "flag": True, **more})


def rows(kind: type) -> tuple[Row, ...]:
    """Returns the options of a class whose fields are options, in their order."""
    return _rows(kind)


@cache
def _rows(kind: type) -> tuple[Row, ...]:
    return tuple(
        Row(**{"name": attribute.name, "field": attribute.name, **attribute.metadata["row"]})
        # The fields of a base class come first; a marker is best read with the switch in front.
        for attribute in sorted(fields(kind), key=lambda attribute: attribute.name not in kind.__annotations__)
        if "row" in attribute.metadata
    )
