# SPDX-License-Identifier: BSD-3-Clause
"""``--icbench-variant SWITCH:NAME=WHAT``: the candidates, which are measured side by side with their base.

WHAT is the path of another binary, ``config:FILE`` for another configuration of the same binary, or ``variant:NAME``
for another of the switch's own variants. ``workload:NAME=PATH`` is another workload, whatever the switch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_icbench.config.switch_names import DEFAULT_MODE, mode_misfit
from pytest_icbench.config.values import file_mode
from pytest_icbench.errors import UsageError
from pytest_icbench.model import toml
from pytest_icbench.model.candidate import WORKLOAD, Candidate
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.wording import suggestion

_FORM = "SWITCH:NAME=PATH, SWITCH:NAME=config:FILE or SWITCH:NAME=variant:NAME"
_NAME = re.compile(r"[\w+.-]+", re.ASCII)


def parse(text: str, where: str, directory: Path) -> tuple[Candidate, ...]:
    """Parses candidates, one per line, and reads their configurations. Raises UsageError.

    Args:
        text: lines as the user wrote them.
        where: the name of the option in a message.
        directory: the directory where relative paths begin.
    """
    candidates: dict[tuple[str, str], Candidate] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        candidate = _parse_line(line, where, directory)
        if candidates.setdefault((candidate.target, candidate.name), candidate) is not candidate:
            raise UsageError(f"{where}: there are two variants {candidate.key}; give one another name")
    everywhere = {name for target, name in candidates if target == WORKLOAD}
    for target, name in candidates:
        if target != WORKLOAD and name in everywhere:
            raise UsageError(f"{where}: {target}:{name} and workload:{name} would have the same ids; rename one")
    return tuple(candidates.values())


def _parse_line(line: str, where: str, directory: Path) -> Candidate:
    head, equals, value = line.partition("=")
    target, colon, name = head.partition(":")
    if not (target and colon and equals and value):
        raise UsageError(f"{where}: '{line}' is not {_FORM}")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: '{name}' is no name for a variant; use letters, digits and _ + . -")
    if name == DEFAULT_MODE:
        raise UsageError(f"{where}: '{name}' is what {target} is without a variant; give yours another name")
    kind, colon, rest = value.partition(":")
    if colon and kind == "variant":
        return Candidate(target, name, "variant", rest)
    config = bool(colon) and kind == "config"
    path = directory / Path(rest if config else value).expanduser()
    file_mode(path, f"{where}: {target}:{name}")
    if not config and not os.access(path, os.X_OK):
        raise UsageError(f"{where}: {target}:{name}: {path} is not executable")
    file = toml.read(path.absolute(), where) if config else None
    return Candidate(target, name, "config" if config else "binary", str(path.absolute()), file)


def check(candidates: Iterable[Candidate], catalogue: Mapping[str, type[SwitchTraits]], where: str) -> None:
    """Checks what only the switches know. Raises UsageError with one sentence."""
    for candidate in candidates:
        target, name = candidate.target, candidate.name
        if target == WORKLOAD:
            _check_workload(candidate, where)
            continue
        if target not in catalogue:
            raise UsageError(f"{where}: there is no switch '{target}'{suggestion(target, (*catalogue, WORKLOAD))}")
        cls = catalogue[target]
        if cls.has_mode(name):
            raise UsageError(f"{where}: {target} has a variant '{name}' of its own; give yours another name")
        if candidate.kind == "variant" and (reason := mode_misfit(cls, candidate.value)):
            raise UsageError(f"{where}: {candidate.key}: {reason}")
        if candidate.kind == "binary" and not cls.takes_binary:
            raise UsageError(f"{where}: {candidate.key}: {target} has no binary of its own; give config: or variant:")


def _check_workload(candidate: Candidate, where: str) -> None:
    if candidate.kind != "binary":
        raise UsageError(f"{where}: {candidate.key}: another workload is another binary; give its path")


def of_switch(candidates: Iterable[Candidate], switch: str) -> tuple[Candidate, ...]:
    """Returns the candidates that the cases of a switch are compared with."""
    return tuple(candidate for candidate in candidates if candidate.target in (switch, WORKLOAD))
