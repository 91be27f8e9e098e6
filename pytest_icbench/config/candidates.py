# SPDX-License-Identifier: BSD-3-Clause
"""``--icbench-variant SWITCH:NAME=WHAT``: what is measured side by side with what there is.

WHAT is the path of another binary, ``config:FILE`` for another configuration of the same binary, or ``variant:NAME``
for another of the switch's own variants. ``workload:NAME=PATH`` is another workload, whatever the switch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_icbench.errors import UsageError
from pytest_icbench.wording import suggestion

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.model.case import Case

#: Instead of a switch: the program that sends, receives and measures.
WORKLOAD = "workload"
_FORM = "SWITCH:NAME=PATH, SWITCH:NAME=config:FILE or SWITCH:NAME=variant:NAME"
_NAME = re.compile(r"[\w+.-]+", re.ASCII)
#: The variant that a switch is without any.
_RESERVED = "default"


@dataclass(frozen=True, slots=True)
class Contender:
    """One side that is compared with what there is.

    Attributes:
        target: name of a switch, or ``workload``.
        name: the user's, part of the case's id.
        kind: what is another one.
        value: a path, or the name of one of the switch's variants.
    """

    target: str
    name: str
    kind: Literal["binary", "config", "variant"]
    value: str

    @property
    def key(self) -> str:
        """By which binaries and configurations of it are known: ``ovs:new``."""
        return f"{self.target}:{self.name}"

    @property
    def path(self) -> Path:
        return Path(self.value)


def parse(text: str, where: str, directory: Path) -> tuple[Contender, ...]:
    """One a line. Paths are relative to ``directory`` and must be there. Raises UsageError."""
    found: dict[tuple[str, str], Contender] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        contender = _one(line, where, directory)
        if found.setdefault((contender.target, contender.name), contender) is not contender:
            raise UsageError(f"{where}: there are two variants {contender.key}; give one another name")
    everywhere = {name for target, name in found if target == WORKLOAD}
    for target, name in found:
        if target != WORKLOAD and name in everywhere:
            raise UsageError(f"{where}: {target}:{name} and workload:{name} would have the same ids; rename one")
    return tuple(found.values())


def _one(line: str, where: str, directory: Path) -> Contender:
    head, equals, value = line.partition("=")
    target, colon, name = head.partition(":")
    if not (target and colon and equals and value):
        raise UsageError(f"{where}: '{line}' is not {_FORM}")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: '{name}' is no name for a variant; use letters, digits and _ + . -")
    if name == _RESERVED:
        raise UsageError(f"{where}: '{name}' is what {target} is without a variant; give yours another name")
    kind, colon, rest = value.partition(":")
    if colon and kind == "variant":
        return Contender(target, name, "variant", rest)
    config = bool(colon) and kind == "config"
    path = directory / Path(rest if config else value).expanduser()
    if not path.is_file():
        raise UsageError(f"{where}: {target}:{name}: there is no file {path}")
    if not config and not os.access(path, os.X_OK):
        raise UsageError(f"{where}: {target}:{name}: {path} is not executable")
    return Contender(target, name, "config" if config else "binary", str(path.absolute()))


def check(contenders: Iterable[Contender], catalogue: Mapping[str, type[Switch]], where: str) -> None:
    """What only the switches can tell. Raises UsageError with one sentence."""
    from pytest_icbench.config.switch_config import checked, read  # other suites load this module, too

    for contender in contenders:
        target, name = contender.target, contender.name
        if target == WORKLOAD:
            _check_workload(contender, where)
            continue
        if target not in catalogue:
            raise UsageError(f"{where}: there is no switch '{target}'{suggestion(target, (*catalogue, WORKLOAD))}")
        cls = catalogue[target]
        if cls.has_variant(name):
            raise UsageError(f"{where}: {target} has a variant '{name}' of its own; give yours another name")
        if contender.kind == "variant" and not cls.has_variant(contender.value):
            known = cls.variant_help or " ".join(cls.variants) or "none"
            raise UsageError(
                f"{where}: {contender.key}: {target} has no variant '{contender.value}'; its variants: {known}"
            )
        if contender.kind == "config":
            checked(read(contender.path, where), target, cls.config_keys)
        if contender.kind == "binary" and not cls.takes_binary:
            raise UsageError(f"{where}: {contender.key}: {target} has no binary of its own; give config: or variant:")


def _check_workload(contender: Contender, where: str) -> None:
    if contender.kind != "binary":
        raise UsageError(f"{where}: {contender.key}: another workload is another binary; give its path")


def contender_key(case: Case) -> str:
    """By which the binary and the configuration of a case's switch are known."""
    return case.switch if case.contender is None else f"{case.switch}:{case.contender}"


def of_switch(contenders: Iterable[Contender], switch: str) -> tuple[Contender, ...]:
    """Those that cases of a switch are compared with."""
    return tuple(each for each in contenders if each.target in (switch, WORKLOAD))
