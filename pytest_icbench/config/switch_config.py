# SPDX-License-Identifier: BSD-3-Clause
"""The user's own configuration of switches: ``--icbench-switch-config SWITCH=FILE``, TOML, one file a switch.

Which keys a switch takes, and of which kind, its driver says (``config_keys``). Reading and checking are pure.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.wording import suggestion


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """One file as it was read.

    Attributes:
        sha256: of its bytes.
    """

    path: Path
    sha256: str
    data: Mapping[str, Any]

    def treatment(self) -> dict[str, Any]:
        """What a result keeps of it."""
        return {"file": self.path.name, "sha256": self.sha256, "content": dict(self.data)}


def read(path: Path, where: str) -> SwitchConfig:
    """Raises UsageError with one sentence for what cannot be read."""
    try:
        content = path.read_bytes()
        data = tomllib.loads(content.decode())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: {path} cannot be read ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: {path} is not valid TOML: {error}") from None
    return SwitchConfig(path, hashlib.sha256(content).hexdigest(), data)


def checked(config: SwitchConfig, switch: str, keys: Mapping[str, Kind]) -> dict[str, Any]:
    """The values, of the kinds that the switch takes. Raises UsageError naming file and key."""
    if not keys:
        raise UsageError(f"{config.path}: {switch} takes no configuration")
    found: dict[str, Any] = {}
    for key, value in config.data.items():
        if key not in keys:
            raise UsageError(f"{config.path}: {switch} has no key '{key}'{suggestion(key, tuple(keys))}")
        found[key] = _value(value, keys[key], f"{config.path}: {key}")
    return found


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
