# SPDX-License-Identifier: BSD-3-Clause
"""The user's own configuration of switches: ``--icbench-switch-config SWITCH=FILE``, TOML, one file a switch.

A switch's driver says which keys it takes and of which kind (``config_keys``). Checking is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.toml import TomlFile
from pytest_icbench.wording import suggestion


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """A configuration that a switch takes.

    Attributes:
        values: the file's values by key, each of the kind that the switch takes.
    """

    file: TomlFile
    values: Mapping[str, Any]

    def treatment(self) -> dict[str, Any]:
        """Returns what a result keeps of the configuration."""
        return {"file": self.file.path.name, "sha256": self.file.sha256, "content": dict(self.file.data)}


def checked(file: TomlFile, switch: str, keys: Mapping[str, Kind]) -> SwitchConfig:
    """Returns the configuration of a switch.

    Args:
        keys: the keys that the switch takes, with the kind of each value.

    Raises:
        UsageError: the switch does not take a key or a value; the message names the file and the key.
    """
    if not keys:
        raise UsageError(f"{file.path}: {switch} takes no configuration")
    values: dict[str, Any] = {}
    for key, value in file.data.items():
        if key not in keys:
            raise UsageError(f"{file.path}: {switch} has no key '{key}'{suggestion(key, tuple(keys))}")
        values[key] = _value(value, keys[key], f"{file.path}: {key}")
    return SwitchConfig(file, values)


def _value(value: Any, kind: Kind, where: str) -> Any:
    if kind == "text" and isinstance(value, str):
        return value
    if kind == "number" and isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if kind == "texts" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(value)
    if (
        kind == "table"
        and isinstance(value, dict)
        and all(isinstance(item, str | int | float) for item in value.values())
    ):
        return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}
    expected = {
        "text": "a text",
        "number": "a whole number from 1 on",
        "texts": "a list of texts",
        "table": "a table of texts and numbers",
    }
    raise UsageError(f"{where} is not {expected[kind]}")
