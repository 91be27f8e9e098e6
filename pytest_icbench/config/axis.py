# SPDX-License-Identifier: BSD-3-Clause
"""An option: a field of a dataclass that carries its row. An axis is an option that a marker has, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_icbench.config import values

if TYPE_CHECKING:  # cases are not needed to declare options, which every pytest run does
    from pytest_icbench.model.case import Case
    from pytest_icbench.model.switch_traits import SwitchTraits

#: The groups in which ``pytest --help`` shows the options, those first that most users need.
FIRST = "icbench, first of all"
MEASURED = "icbench, what is measured"
TIME = "icbench, how long and how often"
SEARCHES = "icbench, searches for ndr and pdr"
GATING = "icbench, comparing and gating"
HOST = "icbench, host"
REPORTS = "icbench, reports"
GROUPS = (FIRST, MEASURED, TIME, SEARCHES, GATING, HOST, REPORTS)

#: ``Row.traffic`` of an axis whose values are the frames themselves.
FRAMES = "*"


def _as_written(text: str, _where: str) -> str:
    return text


class Applies(NamedTuple):
    """The cases that an option changes, and the sentence on a session without any."""

    to: Callable[[Case], bool]
    reason: str


class Row(NamedTuple):
    """One option.

    Attributes:
        group: the group of ``pytest --help``.
        name: the option is ``--icbench-`` and the name with dashes, the ini value ``icbench_`` and the name.
        default: the value of the field if the option is not given. A relative path begins at the root directory.
        parse: turns a text and its origin into a value; raises UsageError.
        parse_at: the same for a value that also depends on the directory that relative paths begin at.
        flag: the option takes no value on the command line.
        setting: the name of the setting in ``Settings``; empty if the option is none.
        marker: the default of the marker's argument, as written there; empty if the option is not an axis.
        argument: the name of that argument.
        natural: the values of an axis that neither the user nor the marker gives.
        traffic: the field of ``Traffic`` that the values of an axis are for, or ``FRAMES``; empty for others.
        misfit: returns why a switch cannot have a case's value with an API technique, or None.
        applies: the cases that the option changes; None: all.
        path: the value is a file or a directory.
        ini_only: the command line has no such option, only the ini file has the value.
    """

    group: str
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
    argument: str = ""
    natural: tuple[Any, ...] | None = None
    traffic: str = ""
    misfit: Callable[[Case, type[SwitchTraits], str], str | None] | None = None
    applies: Applies | None = None
    path: bool = False
    ini_only: bool = False

    @property
    def option(self) -> str:
        return "--icbench-" + self.name.replace("_", "-")

    @property
    def repeated(self) -> bool:
        """Whether the option can be given several times, so that its values add up: lists, and values with a name."""
        return self.metavar in ("LIST", "SPEC") or "=" in self.metavar

    @property
    def dest(self) -> str:
        return f"icbench_{self.name}"

    @property
    def ini(self) -> str:
        return f"icbench_{self.name}"

    def read(self, text: str, where: str, base: Path) -> Any:
        """Returns the value of a text; relative paths begin at ``base``. Raises UsageError."""
        if self.path:
            return values.path(text, where, base)
        return self.parse(text, where) if self.parse_at is None else self.parse_at(text, where, base)


def option(
    group: str,
    metavar: str,
    text: str,
    parse: Callable[[str, str], Any] = _as_written,
    *,
    default: Any = None,
    **more: Any,
) -> Any:
    """Makes a field that is an option: ``text`` is its help, ``more`` are attributes of ``Row``."""
    row = {"group": group, "metavar": metavar, "help": text, "parse": parse, "default": default, **more}
    if type(default).__hash__ is None:  # a mapping, which no field takes for its default
        return field(default_factory=lambda: default, metadata={"row": row})
    return field(default=default, metadata={"row": row})


def axis(
    metavar: str,
    text: str,
    parse: Callable[[str, str], Any],
    *,
    group: str = MEASURED,
    marker: str = "",
    **more: Any,
) -> Any:
    """Makes a field that is an axis: None unless it is given, and then a tuple of values."""
    marker = marker or repr(more.get("natural", (None,))[0])
    return option(group, metavar, text, parse, marker=marker, **more)


def flag(group: str, text: str, **more: Any) -> Any:
    """Makes an option without a value, False unless it is given."""
    return option(group, "", text, values.boolean, **{"default": False, "flag": True, **more})


def rows(kind: type) -> tuple[Row, ...]:
    """Returns the options of a class whose fields are options, in their order."""
    return _rows(kind)


@cache  # mypy takes no class without a hash for its argument
def _rows(kind: type) -> tuple[Row, ...]:
    return tuple(
        Row(
            **{"name": attribute.name, "field": attribute.name, "argument": attribute.name, **attribute.metadata["row"]}
        )
        # The fields of a base class come first, but help and markers are best read with the switch in front.
        for attribute in sorted(fields(kind), key=lambda attribute: attribute.name != "switch")
        if "row" in attribute.metadata
    )
