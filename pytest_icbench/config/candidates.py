# SPDX-License-Identifier: BSD-3-Clause
"""``--icbench-candidate TARGET:NAME=WHAT``: the candidates, which are measured side by side with their base.

WHAT is the path of another binary or of a tree with it, or the version of a tree of this host; or it begins with what
differs: ``config:FILE`` (another configuration of the same binary), ``mode:NAME`` (another of the switch's own modes),
``lib:DIR`` (other shared libraries), ``sysctl:KEY=VALUE`` (a kernel option), and of the endpoints ``api:API``,
``node:KIND`` and ``image:DIR``.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

from pytest_icbench.config.switches import DEFAULT_MODE, explain_mode
from pytest_icbench.config.values import file_mode, mode_of, program
from pytest_icbench.errors import UsageError
from pytest_icbench.model.api_techniques import APIS
from pytest_icbench.model.candidate import FUNCTION, HOST, SETTABLE, WORKLOAD, Candidate, Kind, file_of
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.model.text_files import read_toml
from pytest_icbench.wording import alternatives, suggestion

_FORM = "TARGET:NAME=WHAT, such as ovs:new=PATH, ovs:rxq=config:FILE or host:poll=sysctl:net.core.busy_poll=50"
_NAME = re.compile(r"[\w+.-]+", re.ASCII)
#: What can differ, by target; a switch's is under the empty name, a function's under ``FUNCTION``.
_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "": ("binary", "config", "mode", "lib"),
    FUNCTION: ("binary", "config"),
    WORKLOAD: ("binary", "api", "node", "image"),
    HOST: ("sysctl",),
}
_SETTABLE = re.compile(SETTABLE, re.ASCII)
_VALUE = re.compile(r"\s*[^\s,=][^,=]*")


def parse(text: str, where: str, directory: Path) -> tuple[Candidate, ...]:
    """Parses candidates, one per line, and reads their configurations. Raises UsageError.

    ``directory``: the directory where relative paths begin.
    """
    candidates: dict[tuple[str, str], Candidate] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        candidate = _parse_line(line, where, directory)
        if candidates.setdefault((candidate.target, candidate.name), candidate) is not candidate:
            raise UsageError(f"{where}: there are two candidates {candidate.key}; give one another name")
    everywhere = [candidate for candidate in candidates.values() if candidate.everywhere]
    for candidate in candidates.values():
        for other in everywhere:
            if other is not candidate and other.name == candidate.name:
                raise UsageError(f"{where}: {candidate.key} and {other.key} would have the same ids; rename one")
    return tuple(candidates.values())


def _parse_line(line: str, where: str, directory: Path) -> Candidate:
    head, equals, value = line.partition("=")
    target, colon, name = head.rpartition(":")
    if not (target and colon and equals and value):
        raise UsageError(f"{where}: '{line}' is not {_FORM}")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: '{name}' is not a name for a candidate; use letters, digits and _ + . -")
    if name == DEFAULT_MODE:
        raise UsageError(f"{where}: '{name}' names {target} without a mode; give the candidate another name")
    prefix, colon, rest = value.partition(":")
    kind: Kind = prefix if colon and prefix in get_args(Kind) and prefix not in ("binary", "old") else "binary"  # type: ignore[assignment]
    return _of_kind(kind, (target, name), value if kind == "binary" else rest, f"{where}: {target}:{name}", directory)


def _of_kind(kind: Kind, named: tuple[str, str], value: str, at: str, directory: Path) -> Candidate:
    """Returns the candidate of a target and a name. Raises UsageError for a value that cannot be one of its kind."""
    if kind in ("binary", "config", "lib", "image"):
        path = (directory / Path(value).expanduser()).absolute()
        if kind in ("lib", "image"):
            _check_directory(kind, path, at)
        elif kind == "binary":
            path = program(named[0], value, at, directory).absolute()
        else:
            file_mode(path, at)
        file = read_toml(path, at.partition(": ")[0]) if kind == "config" else None
        return Candidate(*named, kind, str(path), file)
    if kind == "sysctl":
        for option in value.split(","):
            name, _, wanted = option.strip().partition("=")
            settable = ".." not in option and _SETTABLE.fullmatch(file_of(name.rstrip()))
            if not settable or not _VALUE.fullmatch(wanted):
                raise UsageError(
                    f"{at}: '{option.strip()}' is not a kernel option that may be set here; give net.NAME=VALUE,"
                    " vm.NAME=VALUE or kernel.sched_NAME=VALUE"
                )
    if kind == "api" and value not in APIS:
        raise UsageError(f"{at}: there is no API '{value}'{suggestion(value, APIS)}")
    return Candidate(*named, kind, value)


def _check_directory(kind: Kind, path: Path, at: str) -> None:
    """Raises UsageError for a directory that lacks what ``kind`` needs."""
    if not stat.S_ISDIR(mode_of(path)):
        raise UsageError(f"{at}: there is no directory {path}")
    if kind == "lib" and not any(path.glob("*.so*")):
        raise UsageError(f"{at}: {path} has no shared libraries")
    if kind == "image" and not (path / "usr").is_dir():
        raise UsageError(f"{at}: {path} is not a root directory of an image: it has no usr; unpack one there")


def check(candidates: Iterable[Candidate], catalogue: Mapping[str, type[SwitchTraits]], where: str) -> None:
    """Checks what only the switches know. Raises UsageError with one sentence."""
    for candidate in candidates:
        target, name = candidate.target, candidate.name
        known = FUNCTION if candidate.component is not None else target if candidate.everywhere else ""
        if not candidate.everywhere and target not in catalogue:
            others = (*catalogue, WORKLOAD, HOST)
            raise UsageError(f"{where}: there is no switch '{target}'{suggestion(target, others)}")
        if candidate.kind not in _KINDS[known]:
            kinds = ["its path" if kind == "binary" else f"{kind}:" for kind in _KINDS[known]]
            raise UsageError(f"{where}: {candidate.key}: for {target} give {alternatives(kinds)}")
        if not candidate.everywhere:
            _check_switch(candidate, catalogue[target], f"{where}: ")
        for cls in catalogue.values() if candidate.everywhere else ():
            if cls.has_mode(name):
                raise UsageError(f"{where}: {cls.name} already has a mode '{name}'; give yours another name")


def _check_switch(candidate: Candidate, cls: type[SwitchTraits], where: str) -> None:
    target, name = candidate.target, candidate.name
    if cls.has_mode(name):
        raise UsageError(f"{where}{target} already has a mode '{name}'; give yours another name")
    if candidate.kind == "mode" and (reason := explain_mode(cls, candidate.value)):
        raise UsageError(f"{where}{candidate.key}: {reason}")
    if candidate.kind in ("binary", "lib") and not cls.takes_binary:
        raise UsageError(f"{where}{candidate.key}: {target} runs no binary; give config: or mode:")


def select_for_switch(candidates: Iterable[Candidate], switch: str) -> tuple[Candidate, ...]:
    """Returns the candidates that the cases of a switch are compared with."""
    return tuple(candidate for candidate in candidates if candidate.everywhere or candidate.target == switch)
