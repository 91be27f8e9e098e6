# SPDX-License-Identifier: BSD-3-Clause
"""Names of switches, of groups and of a switch in one of its modes (``vpp:xconnect``), and their configurations.

A user's configuration is ``--icbench-switch-config SWITCH=FILE``: TOML, one file a switch. A switch's driver declares
its keys and their kinds (``config_keys``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import GROUPS
from pytest_icbench.model.routes import ROUTER_MODES
from pytest_icbench.model.switch_traits import Kind, SwitchTraits
from pytest_icbench.model.text_files import TomlFile
from pytest_icbench.wording import suggestion

Catalogue = Mapping[str, type[SwitchTraits]]
#: Switches by name, each with the modes that follow its name; None for the name alone.
SwitchModes = Mapping[str, tuple[str | None, ...]]

#: The user's name for the natural mode of a switch.
DEFAULT_MODE = "default"
#: The user's name for all modes of a switch that work like a wire.
WIRE_MODES = "wires"
#: That for all modes in which it routes.
ROUTERS = "routers"
_WORDS = (DEFAULT_MODE, WIRE_MODES, ROUTERS)


def is_named(switch: str, words: Iterable[str]) -> bool:
    """Whether a switch is among names of switches, whatever the mode."""
    return any(word.partition(":")[0] == switch for word in words)


def resolve_switches(
    words: Iterable[str], catalogue: Catalogue, where: str, *, named: Collection[str] = ()
) -> SwitchModes:
    """Returns the switches of names and groups, each once.

    ``named``: further names that the user gave: a group holds a switch that is ``by_name_only`` only if it is one.
    Raises UsageError: a name is unknown, or a switch lacks the mode.
    """
    switches: dict[str, dict[str | None, None]] = {}
    for word in words:
        name, colon, mode = word.partition(":")
        if word in GROUPS:
            members = [key for key, cls in catalogue.items() if word in ("all", cls.family)]
            for key in members:
                if is_named(key, named) or not catalogue[key].by_name_only:
                    switches.setdefault(key, {})[None] = None
        elif name not in catalogue:
            raise UsageError(f"{where}: there is no switch '{word}'{suggestion(name, (*catalogue, *GROUPS))}")
        elif colon and mode not in _WORDS and (reason := explain_mode(catalogue[name], mode)):
            raise UsageError(f"{where}: {reason}")
        else:
            switches.setdefault(name, {})[mode if colon else None] = None
    return {name: tuple(modes) for name, modes in switches.items()}


def explain_mode(cls: type[SwitchTraits], mode: str) -> str | None:
    """Returns a sentence with a switch's modes if ``mode`` is not among them; else None."""
    if cls.has_mode(mode):
        return None
    return f"{cls.name} has no mode '{mode}'; its modes: {cls.mode_help or ' '.join(cls.modes) or 'none'}"


def check_modes(modes: Iterable[str], switches: Collection[type[SwitchTraits]], where: str) -> None:
    """Checks that one of the switches has each of the modes. Raises UsageError."""
    for mode in modes:
        if mode not in _WORDS and not any(cls.has_mode(mode) for cls in switches):
            known = [f"{cls.name} has {cls.mode_help}" for cls in switches if cls.mode_help]
            raise UsageError("; ".join([f"{where}: none of its switches has the mode '{mode}'", *known]))


def choose_modes(
    cls: type[SwitchTraits], named: Iterable[str | None], kept: Iterable[str | None], asked: tuple[str, ...] | None
) -> tuple[str | None, ...]:
    """Returns the modes in which a switch is measured; None stands for its natural one.

    Args:
        named: the modes that follow its name in the marker.
        kept: the modes that follow its name on the command line; they replace the marker's.
        asked: the marker's modes of all its switches, for the name alone. A switch that has none of them takes its
            natural mode.
    """
    modes: dict[str | None, None] = {}
    for word in [word for mode in kept for word in ((mode,) if mode else named)]:
        modes |= dict.fromkeys(_modes(asked if word is None else (word,), cls))
    return tuple(modes)


def _modes(asked: tuple[str, ...] | None, cls: type[SwitchTraits]) -> tuple[str | None, ...]:
    """Returns the requested modes that the switch has, or the natural one if it has none of them."""
    if asked is None:
        return (None,)
    modes: dict[str | None, None] = {}
    for name in asked:
        if name == DEFAULT_MODE:
            modes[None] = None
        elif name == WIRE_MODES:
            modes |= dict.fromkeys(cls.wire_modes)
        elif name == ROUTERS:
            modes |= dict.fromkeys(mode for mode in cls.modes if mode in ROUTER_MODES)
        elif cls.has_mode(name):
            modes[name] = None
    return tuple(modes) or (None,)


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """A configuration that a switch takes.

    ``values``: the file's values by key, each of the kind that the switch takes.
    """

    file: TomlFile
    values: Mapping[str, Any]

    def treatment(self) -> dict[str, Any]:
        """Returns what a result keeps of the configuration."""
        return {"file": self.file.path.name, "sha256": self.file.sha256, "content": dict(self.file.data)}


def check_config(file: TomlFile, switch: str, keys: Mapping[str, Kind]) -> SwitchConfig:
    """Returns the configuration of a switch. ``keys``: the keys that the switch takes, with the kind of each value.

    Raises UsageError: the switch does not take a key or a value; the message names the file and the key.
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
