# SPDX-License-Identifier: BSD-3-Clause
"""Declares the options to pytest. Every pytest run loads this module, and what it imports.

Every option ``--icbench-x-y`` has an ini twin ``icbench_x_y``. Their values are read by ``options``.
"""

from __future__ import annotations

import tomllib
import warnings
from typing import Any

import pytest

from pytest_icbench.config.axis import GROUPS, Row, rows
from pytest_icbench.config.option_table import Options
from pytest_icbench.config.values import as_text
from pytest_icbench.errors import UsageError

#: The ini twin that ``--help`` shows, and which says that there are others.
SHOWN_TWIN = "icbench_switch"


def add_options(parser: pytest.Parser, kind: type[Options] = Options) -> None:
    """Declares the options in their groups, and every ini twin."""
    for title in GROUPS:
        parser.getgroup(title)  # in this order
    for row in rows(kind):
        if not row.ini_only:
            more: dict[str, Any] = {"metavar": row.metavar}
            if row.flag:
                more = {"action": "store_true"}
            elif row.repeated:
                more["action"] = "append"
            parser.getgroup(row.group).addoption(row.option, default=None, dest=row.dest, help=row.help, **more)
        parser.addini(row.ini, _ini_help(row), type="string", default="")


def _ini_help(row: Row) -> str:
    if row.ini_only:
        return row.help
    text = f"the same as {row.option}"
    return text if row.ini != SHOWN_TWIN else f"{text}; each option --icbench-x-y is also an ini value icbench_x_y"


def hide_ini_twins(config: pytest.Config) -> None:
    """Hides the ini twins of options, except for one, from ``--help``, which would list some sixty lines.

    pytest has no interface for this, so its internal list is changed. Without that list the help is only longer.
    """
    shown = getattr(getattr(config, "_parser", None), "_inidict", {})
    for row in rows(Options):
        if not row.ini_only and row.ini != SHOWN_TWIN:
            shown.pop(row.ini, None)


def is_any_given(config: pytest.Config) -> bool:
    """Whether an option or an ini value is given."""
    return any(find_text(config, row) is not None for row in rows(Options))


def find_text(config: pytest.Config, row: Row) -> tuple[str, str] | None:
    """Returns the origin of an option's value and its text; None if it is not given. Raises ``pytest.UsageError``."""
    typed = None if row.ini_only else config.getoption(row.dest, default=None)
    if typed is not None:
        text = "\n".join(typed) if row.repeated else str(typed)
        return row.option, "yes" if typed is True else text
    text = _ini_text(config, row).strip()
    return (row.ini, text) if text else None


def _ini_text(config: pytest.Config, row: Row) -> str:
    """Returns the text of an ini value, of whatever type a TOML file gives it. Raises ``pytest.UsageError``."""
    try:
        with warnings.catch_warnings(action="ignore"):  # pytest's, of a list in [tool.pytest.ini_options]
            value = config.getini(row.ini)
    except (TypeError, pytest.UsageError):  # a type of [tool.pytest] for which addini has none that fits all releases
        assert config.inipath is not None
        document = tomllib.loads(config.inipath.read_text(encoding="utf-8"))
        value = {**document.get("pytest", {}), **document.get("tool", {}).get("pytest", {})}[row.ini]
    if isinstance(value, list) and len(value) > 1 and not row.repeated:
        raise pytest.UsageError(f"{row.ini}: a list of {len(value)} values where one belongs")
    try:
        return as_text(value, row.ini)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
