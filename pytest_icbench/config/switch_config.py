# SPDX-License-Identifier: BSD-3-Clause
"""The user's own configuration of switches: ``--icbench-switch-config SWITCH=FILE``, TOML, one file a switch.

Which keys a switch takes, and of which kind, its driver says (``config_keys``). Reading and checking are pure.
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
        values: what the file says, of the kinds that the switch takes.
    """

    file: TomlFile
    values: Mapping[str, Any]

    def treatment(self) -> dict[str, Any]:
        """What a result keeps of it."""
        return {"file": self.file.path.name, "sha256": self.file.sha256, "content": dict(self.file.data)}


def checked(file: TomlFile, switch: str, keys: Mapping[str, Kind]) -> SwitchConfig:
    """The configuration of a switch that takes these keys. Raises UsageError naming file and key."""
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
    if kind == "texts" and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return list(value)
    if (
        kind == "table"
        and isinstance(value, dict)
        and all(isinstance(each, str | int | float) for each in value.values())
    ):
        return {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in value.items()}
    expected = {
        "text": "a text",
        "number": "a whole number from 1 on",
        "texts": "a list of texts",
        "table": "a table of texts and numbers",
    }
    raise UsageError(f"{where} is not {expected[kind]}")
