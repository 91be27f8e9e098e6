# SPDX-License-Identifier: BSD-3-Clause
"""Reads the command line and the ini file into frozen ``Options``, and merges them into the ``Settings`` of a case.

The same order holds for all options: the command line wins over the ini file, the ini file over a scenario (its marker,
then the arguments of a call), and a scenario over the default.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pytest_icbench.config import candidates
from pytest_icbench.config.axes import explain_burst
from pytest_icbench.config.axis import Row, rows
from pytest_icbench.config.option_table import TABLE, Options, find_text
from pytest_icbench.config.topology import read as read_topology
from pytest_icbench.config.values import as_text
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import GROUPS, Case
from pytest_icbench.model.settings import LEAST_WARMUP_S, MOST_WARMUP_S, Settings
from pytest_icbench.model.text_files import TomlFile, read_toml
from pytest_icbench.model.uplink import name_of
from pytest_icbench.wording import suggestion

Raw = Callable[[Row], "tuple[str, str] | None"]

__all__ = [
    "NAMES",
    "Options",
    "check_candidates",
    "check_directories",
    "find_unused",
    "from_config",
    "merge_settings",
    "parse_overrides",
    "read",
]
_Cases = Sequence[Case]
_ROWS = {row.name: row for row in TABLE if row.setting}
#: Names that a marker and a call take: the options' names with underscores.
NAMES = tuple(_ROWS)


def _read_tables(files: Mapping[str, Path], where: str, _base: Path) -> Mapping[str, TomlFile]:
    """Reads the TOML files of switches or components. Raises UsageError."""
    return MappingProxyType({name: read_toml(path, where) for name, path in files.items()})


#: What is read from the files that options name; the table itself imports no reader, since every run loads it.
_READERS: Mapping[str, Callable[[Any, str, Path], Any]] = {
    "switch_config": _read_tables,
    "function_config": _read_tables,
    "candidate": candidates.parse,
}


def from_config(config: pytest.Config, kind: type[Options] = Options) -> Options:
    """Returns the options of a run. Raises UsageError: one sentence naming the option or the ini value."""
    return read(
        lambda row: find_text(config, row), root=config.rootpath, directory=config.invocation_params.dir, kind=kind
    )


def read(raw: Raw, *, root: Path, directory: Path, kind: type[Options] = Options) -> Options:
    """Returns the options made from texts. The files that they name are read here, and nowhere else.

    Args:
        raw: returns the origin (option or ini name) and the text of a row's value, or None if it was not given.
        root: the directory where relative paths of the ini file, and default paths, begin.
        directory: the directory where relative paths of the command line begin.
        kind: the class whose fields are the options.

    Raises UsageError: one sentence naming the option or the ini value.
    """
    arguments: dict[str, Any] = {row.field: root / row.default for row in rows(kind) if row.path and row.default}
    where: dict[str, str] = {}
    for row in rows(kind):
        given = raw(row)
        if given is not None:
            origin, text = given
            where[row.name] = origin
            base = directory if origin.startswith("--") else root
            value = row.read(text, origin, base)
            arguments[row.field] = _READERS[row.name](value, origin, base) if row.name in _READERS else value
    if "topology" in arguments:
        dedicated = arguments.get("placement") == "dedicated"
        arguments["topology"] = read_topology(arguments["topology"], where["topology"], dedicated=dedicated)
    options = kind(**arguments, given=tuple(where.values()))
    _check(options, where)
    return options


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


def check_candidates(options: Options, cases: _Cases) -> None:
    """Raises UsageError for a candidate that no selected case is compared with: the run would decide nothing on it."""
    switches = dict.fromkeys(case.switch for case in cases)
    for candidate in options.candidate:
        if not cases or any(candidate.concerns(case, options.node_of(case.base)) for case in cases):
            continue
        remedy = f"is of {candidate.target} (they are of {', '.join(switches)}): select one (--icbench-switch"
        remedy += f" {candidate.target})"
        if candidate.everywhere:
            remedy = "sends frames of the workload: select one that does"
        if candidate.kind == "node":
            remedy = f"has nodes of another kind than {candidate.value}: give another kind"
        if candidate.component is not None:
            remedy = "has a network function: give --icbench-function"
        raise UsageError(f"--icbench-candidate: no selected case {remedy}, or leave {candidate.key} out")


def find_unused(options: Options, cases: _Cases, components: Collection[str] = ()) -> list[str]:
    """Returns a sentence for each option that changes nothing for the selected cases.

    ``components``: names of the components that have a network function of the cases.
    """
    if not cases:
        return []
    switches = {case.switch for case in cases}
    found = [
        f"{row.option} has no effect: {row.applies.reason}"
        for row in rows(Options)
        if row.applies is not None and getattr(options, row.field) and not any(map(row.applies.to, cases))
    ]
    names = [word.partition(":")[0] for word in options.switch]
    for option, given, known, more in (
        ("switch", names, switches, ": it selects among tests' switches"),
        ("binary", options.binaries, {*switches, *components}, ""),
        ("switch-config", options.switch_config, switches, ""),
    ):
        for name in given:
            if name not in GROUPS and name not in known:
                found.append(f"--icbench-{option} {name} has no effect: no selected case is of {name}{more}")
    return found


def parse_overrides(named: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Returns the settings that a marker or a call gives, by their names in ``Settings``.

    ``named``: values by the names of options; None stands for a setting that is not given. Raises UsageError: a name is
    unknown or a value is bad.
    """
    overrides: dict[str, Any] = {}
    for name, value in named.items():
        row = _ROWS.get(name)
        if row is None:
            raise UsageError(f"{where}: there is no setting '{name}'{suggestion(name, NAMES)}")
        if value is not None:
            overrides[row.setting] = row.parse(as_text(value, f"{where}: {name}"), f"{where}: {name}")
    return MappingProxyType(overrides)


def merge_settings(options: Options, marker: Mapping[str, Any], call: Mapping[str, Any], where: str) -> Settings:
    """Returns the settings of one measurement.

    The order of precedence is: the user's settings, the call's, the marker's, the defaults.

    Args:
        marker: the marker's settings by their names in ``Settings``.
        call: the call's settings, likewise.

    Raises UsageError: the settings contradict each other.
    """
    merged = {**marker, **call, **options.settings}
    protocol = merged.pop("protocol", None)
    adaptive: dict[str, Any] = {}
    if protocol is None and not merged.keys() & {"warmup_s", "skip_s", "keep_s"}:
        adaptive = {"warmup_s": LEAST_WARMUP_S, "max_warmup_s": MOST_WARMUP_S}
    if "max_duration_s" in merged:  # a search has its own limit unless one is given
        merged["search_time_s"] = merged["max_duration_s"]
    try:
        base = Settings(**adaptive, ring=options.ring, debug=options.debug, rebuild=options.rebuild)
        if protocol is not None:
            base = base.with_protocol(protocol)
        return Settings(**{**base.to_dict(), **merged})
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
