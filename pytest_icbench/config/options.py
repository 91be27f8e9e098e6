# SPDX-License-Identifier: BSD-3-Clause
"""Reads the command line and the ini file into frozen ``Options``.

Every option ``--icbench-x-y`` has an ini twin ``icbench_x_y``. The same order holds for all: the command line
wins over the ini file, the ini file over a scenario (its marker, then the arguments of a call), and a scenario over the
default.
"""

from __future__ import annotations

import stat
from argparse import SUPPRESS
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_icbench.config import values
from pytest_icbench.config.groups import GROUP_OF, GROUPS
from pytest_icbench.config.option_table import ALIASES, Options
from pytest_icbench.config.row import Row, rows
from pytest_icbench.errors import UsageError

if TYPE_CHECKING:
    import pytest

Raw = Callable[[Row], "tuple[str, str] | None"]

#: The ini twin that ``--help`` shows, and which says that there are others.
SHOWN_TWIN = "icbench_switch"

__all__ = ["Options", "add_options", "from_config", "hide_ini_twins", "read", "too_large_burst"]


def add_options(parser: pytest.Parser, kind: type[Options] = Options) -> None:
    """Declares the options in their groups, and every ini twin. The help leaves out older names."""
    for title in GROUPS:
        parser.getgroup(title)  # in this order
    for row in (*rows(kind), *ALIASES):
        more: dict[str, Any] = {"metavar": row.metavar}
        if row.flag:
            more = {"action": "store_true"}
        elif row.repeated:
            more["action"] = "append"
        group = parser.getgroup(GROUP_OF.get(row.name, "icbench, reports"))
        if not row.ini_only:
            text = SUPPRESS if row in ALIASES else row.help
            group.addoption(row.option, default=None, dest=row.dest, help=text, **more)
        if row.older:
            group.addoption(row.older_option, default=None, dest=row.dest, help=SUPPRESS, **more)
            parser.addini(row.older_ini, f"an older name of {row.ini}", type="string", default="")
        parser.addini(row.ini, _ini_help(row), type="string", default="")


def _ini_help(row: Row) -> str:
    if row.ini_only:
        return row.help
    text = f"the same as {row.option}"
    return text if row.ini != SHOWN_TWIN else f"{text}; each option --icbench-x-y is also an ini value icbench_x_y"


def hide_ini_twins(config: pytest.Config) -> None:
    """Leaves the ini twins of options but one out of ``--help``, which ends the run and would list some sixty lines.

    pytest has no way to say so: the list that it prints from is its own. Without that list the help is only longer.
    """
    shown = getattr(getattr(config, "_parser", None), "_inidict", {})
    for row in (*rows(Options), *ALIASES):
        if not row.ini_only and row.ini != SHOWN_TWIN:
            shown.pop(row.ini, None)
        shown.pop(row.older_ini, None)


def from_config(config: pytest.Config, kind: type[Options] = Options) -> Options:
    """Returns the options of a run.

    Raises:
        UsageError: one sentence naming the option or the ini value.
    """

    def raw(row: Row) -> tuple[str, str] | None:
        typed = None if row.ini_only else config.getoption(row.dest, default=None)
        if typed is not None:
            text = "\n".join(typed) if row.repeated else str(typed)
            return row.option, "yes" if typed is True else text
        for name in filter(None, (row.ini, row.older_ini)):
            if text := str(config.getini(name) or "").strip():
                return name, text
        return None

    return read(raw, root=config.rootpath, directory=config.invocation_params.dir, kind=kind)


def read(raw: Raw, *, root: Path, directory: Path, kind: type[Options] = Options) -> Options:
    """Returns the options made from texts. The files that they name are read here, and nowhere else.

    Args:
        raw: returns the origin (option or ini name) and the text of a row's value, or None if it was not given.
        root: the directory where relative paths of the ini file, and default paths, begin.
        directory: the directory where relative paths of the command line begin.
        kind: the class whose fields are the options.

    Raises:
        UsageError: one sentence naming the option or the ini value.
    """
    arguments: dict[str, Any] = {row.field: root / row.default for row in rows(kind) if row.path and row.default}
    where: dict[str, str] = {}
    programs: dict[str, Path] = {}
    for row in (*rows(kind), *ALIASES):
        given = raw(row)
        if given is None:
            continue
        origin, text = given
        where[row.name] = origin
        value = row.read(text, origin, directory if _typed(origin) else root)
        if row in ALIASES:
            programs[row.name] = values.program(value, origin)
        else:
            arguments[row.field] = value
    if programs:
        arguments["binaries"] = _with_aliases(arguments.get("binaries", {}), programs, where)
    if "topology" in arguments:
        from pytest_icbench.config.topology.reading import read as read_topology  # other suites load this module, too

        dedicated = arguments.get("placement") == "dedicated"
        arguments["topology"] = read_topology(arguments["topology"], where["topology"], dedicated=dedicated)
    options = kind(**arguments, given=tuple(where.values()))
    _check(options, where)
    return options


def _typed(origin: str) -> bool:
    """Whether a value comes from the command line."""
    return origin.startswith("--")


def _with_aliases(
    binaries: Mapping[str, Path], programs: Mapping[str, Path], where: Mapping[str, str]
) -> Mapping[str, Path]:
    """Merges both ways to name the programs of switches; the command line wins over the ini file."""
    merged = {**binaries}
    for switch, path in programs.items():
        if switch not in binaries or (_typed(where[switch]) and not _typed(where["binary"])):
            merged[switch] = path
        elif _typed(where[switch]) == _typed(where["binary"]):
            raise UsageError(f"{where['binary']}: there are two programs for {switch}, see {where[switch]}; give one")
    return MappingProxyType(merged)


def _check(options: Options, where: Mapping[str, str]) -> None:
    """Checks conditions that involve several values. Raises UsageError."""
    for burst in options.burst or ():
        if burst > options.ring:
            raise UsageError(f"{where['burst']}: {too_large_burst(burst, options.ring)}")
    if options.thresholds is not None and not stat.S_ISREG(_mode(options.thresholds, where["thresholds"])):
        raise UsageError(f"{where['thresholds']}: there is no file {options.thresholds}")
    _check_directory(options.reports, where.get("reports", "--icbench-reports"))
    if options.remote is not None and options.uplink:
        from pytest_icbench.model.uplink import name_of  # other suites load this module, too

        name_of(options.remote, options.uplink, where["uplink"])
    _check_baselines(options, where)


def _mode(path: Path, where: str) -> int:
    """Returns the mode of what a path names; 0 for nothing. Raises UsageError for a name that no file can have."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{where}: '{str(path)[:80]}' cannot be looked at ({reason}): give another path") from None


def _check_directory(path: Path, where: str) -> None:
    mode = _mode(path, where)
    if mode and not stat.S_ISDIR(mode):
        raise UsageError(f"{where}: {path} is no directory")


def _check_baselines(options: Options, where: Mapping[str, str]) -> None:
    _check_directory(options.baselines, where.get("baselines", "--icbench-baselines"))
    if options.save is not None and options.save == options.compare:
        raise UsageError(
            f"{where['save']}: '{options.save}' is the baseline to compare with, and would follow every small loss;"
            " give another name, or take this run's values over afterwards: icbench accept"
        )


def too_large_burst(burst: int, ring: int) -> str:
    return f"a burst of {burst} does not fit into a ring of {ring}; take a lesser burst or a greater --icbench-ring"
