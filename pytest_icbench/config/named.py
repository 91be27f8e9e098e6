# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of options that name what other modules know: protocols, presets, interfaces, files of switches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_icbench.config import values
from pytest_icbench.model import toml, uplink

if TYPE_CHECKING:
    from pytest_icbench.model.toml import TomlFile
    from pytest_icbench.model.uplink import Uplink


def protocol(text: str, where: str) -> str:
    """Parses the name of a publication's protocol. Raises UsageError."""
    from pytest_icbench.model.settings import PROTOCOLS  # other suites load this module, too

    return values.one_of(*PROTOCOLS)(text, where)


def search_preset(text: str, where: str) -> str:
    """Parses the name of a preset of searches. Raises UsageError."""
    from pytest_icbench.model.search_goal import PRESETS  # other suites load this module, too

    return values.one_of(*PRESETS)(text, where)


def uplinks(text: str, where: str) -> Mapping[str, Uplink]:
    """Parses the interfaces that lead to the second host. Raises UsageError."""
    return MappingProxyType(dict(uplink.parse_all(text, where)))


def switch_configurations(text: str, where: str, base: Path) -> Mapping[str, TomlFile]:
    """Reads the files of ``SWITCH=FILE`` by switch; relative paths begin at ``base``. Raises UsageError."""
    files = values.files(text, where, base)
    return MappingProxyType({switch: toml.read(path, where) for switch, path in files.items()})
