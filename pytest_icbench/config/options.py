# SPDX-License-Identifier: BSD-3-Clause
"""Reads the command line and the ini file into frozen ``Options``.

The same order holds for all options: the command line wins over the ini file, the ini file over a scenario (its marker,
then the arguments of a call), and a scenario over the default.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pytest_icbench.config import candidates
from pytest_icbench.config.axes import explain_burst
from pytest_icbench.config.axis import Row, rows
from pytest_icbench.config.declaration import find_text
from pytest_icbench.config.option_table import Options
from pytest_icbench.config.topology.reading import read as read_topology
from pytest_icbench.errors import UsageError
from pytest_icbench.model import toml
from pytest_icbench.model.toml import TomlFile
from pytest_icbench.model.uplink import name_of

Raw = Callable[[Row], "tuple[str, str] | None"]

__all__ = ["Options", "check_directories", "from_config", "read"]


def _read_tables(files: Mapping[str, Path], where: str, _base: Path) -> Mapping[str, TomlFile]:
    """Reads the TOML files of switches or components. Raises UsageError."""
    return MappingProxyType({name: toml.read(path, where) for name, path in files.items()})


#: What is read from the files that options name; the table itself imports no reader, since every run loads it.
_READERS: Mapping[str, Callable[[Any, str, Path], Any]] = {
    "switch_config": _read_tables,
    "function_config": _read_tables,
    "candidate": candidates.parse,
}


def from_config(config: pytest.Config, kind: type[Options] = Options) -> Options:
    """Returns the options of a run.

    Raises:
        UsageError: one sentence naming the option or the ini value.
    """
    return read(
        lambda row: find_text(config, row),
        root=config.rootpath,
        directory=config.invocation_params.dir,
        kind=kind,
    )


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
    for row in rows(kind):
        given = raw(row)
        if given is not None:
            origin, text = given
            where[row.name] = origin
            base = directory if _is_typed(origin) else root
            value = row.read(text, origin, base)
            arguments[row.field] = _READERS[row.name](value, origin, base) if row.name in _READERS else value
    if "topology" in arguments:
        dedicated = arguments.get("placement") == "dedicated"
        arguments["topology"] = read_topology(arguments["topology"], where["topology"], dedicated=dedicated)
    options = kind(**arguments, given=tuple(where.values()))
    _check(options, where)
    return options


def _is_typed(origin: str) -> bool:
    """Whether a value comes from the command line."""
    return origin.startswith("--")


def _check(options: Options, where: Mapping[str, str]) -> None:
    """Checks conditions that involve several values. Raises UsageError."""
    for burst in options.burst or ():
        if burst > options.ring:
            raise UsageError(f"{where['burst']}: {explain_burst(burst, options.ring)}")
    if options.thresholds is not None and not stat.S_ISREG(_mode(options.thresholds, where["thresholds"])):
        raise UsageError(f"{where['thresholds']}: there is no file {options.thresholds}")
    if options.remote is not None and options.uplink:
        name_of(options.remote, options.uplink, where["uplink"])
    if options.save is not None and options.save == options.compare:
        raise UsageError(
            f"{where['save']}: '{options.save}' is the baseline to compare with, and would follow every small loss;"
            " give another name, or take this run's values over afterwards: icbench accept"
        )
    for name in ("reports", "baselines"):
        if name in where:
            _check_directory(getattr(options, name), where[name])


def check_directories(options: Options) -> None:
    """Raises UsageError if the path of reports or of baselines is not a directory, even if it is the default."""
    _check_directory(options.reports, "--icbench-reports")
    _check_directory(options.baselines, "--icbench-baselines")


def _mode(path: Path, where: str) -> int:
    """Returns the mode of what a path names; 0 for nothing. Raises UsageError for a name that no file can have."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{where}: '{str(path)[:80]}' cannot be examined ({reason}): give another path") from None


def _check_directory(path: Path, where: str) -> None:
    mode = _mode(path, where)
    if mode and not stat.S_ISDIR(mode):
        raise UsageError(f"{where}: {path} is not a directory")
