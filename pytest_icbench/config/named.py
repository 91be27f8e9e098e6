# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of options that are given seldom; what they need is loaded then, since every pytest run loads the options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_icbench.config import values

if TYPE_CHECKING:
    from pytest_icbench.model.candidate import Candidate
    from pytest_icbench.model.toml import TomlFile
    from pytest_icbench.model.traffic import Traffic
    from pytest_icbench.model.uplink import Uplink


def packet_sizes(text: str, where: str) -> tuple[Traffic, ...]:
    from pytest_icbench.config import frames

    return frames.packet_sizes(text, where)


def mixes(text: str, where: str) -> tuple[Traffic, ...]:
    from pytest_icbench.config import frames

    return frames.mixes(text, where)


def flows(text: str, where: str) -> tuple[str | None, ...]:
    from pytest_icbench.config import frames

    return frames.flows(text, where)


def headers(text: str, where: str) -> tuple[str | None, ...]:
    from pytest_icbench.config import frames

    return frames.headers(text, where)


def directions(text: str, where: str) -> tuple[bool, ...]:
    from pytest_icbench.config import frames

    return frames.directions(text, where)


def crowds(text: str, where: str) -> tuple[str, ...]:
    from pytest_icbench.config import births

    return births.crowds(text, where)


def variants(text: str, where: str, directory: Path) -> tuple[Candidate, ...]:
    from pytest_icbench.config import candidates

    return candidates.parse(text, where, directory)


def protocol(text: str, where: str) -> str:
    """Parses the name of a publication's protocol. Raises UsageError."""
    from pytest_icbench.model.settings import PROTOCOLS

    return values.one_of(*PROTOCOLS)(text, where)


def search_preset(text: str, where: str) -> str:
    """Parses the name of a preset of searches. Raises UsageError."""
    from pytest_icbench.model.search_goal import PRESETS

    return values.one_of(*PRESETS)(text, where)


def uplinks(text: str, where: str) -> Mapping[str, Uplink]:
    """Parses the interfaces that lead to the second host. Raises UsageError."""
    from pytest_icbench.model import uplink

    return MappingProxyType(dict(uplink.parse_all(text, where)))


def switch_configurations(text: str, where: str, base: Path) -> Mapping[str, TomlFile]:
    """Reads the files of ``SWITCH=FILE`` by switch; relative paths begin at ``base``. Raises UsageError."""
    from pytest_icbench.model import toml

    files = values.files(text, where, base)
    return MappingProxyType({switch: toml.read(path, where) for switch, path in files.items()})
