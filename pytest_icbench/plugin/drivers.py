# SPDX-License-Identifier: BSD-3-Clause
"""Switches of this package and those that come through a hook, checked before they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_icbench.driver.third_party import index_by_name
from pytest_icbench.errors import UsageError
from pytest_icbench.plugin.brought import brought_classes
from pytest_icbench.plugin.usage import sentence_of

if TYPE_CHECKING:
    import pytest

    from pytest_icbench.driver.switch.protocol import Switch

_HOOK = "pytest_icbench_switches"
_TEXTS = "a tuple of texts"
_FLAG = "True or False"
#: The traits that collection uses: whether a value is right, and the words for it.
_TRAITS: Mapping[str, tuple[Any, str]] = {
    "family": (lambda value: isinstance(value, str), "a text"),
    "ports": (lambda value: _texts(value) and len(value) > 0, _TEXTS),
    "apis": (lambda value: _texts(value) and len(value) > 0, _TEXTS),
    "default_apis": (lambda value: _texts(value) and len(value) > 0, _TEXTS),
    "default_cores": (lambda value: type(value) is int and value >= 0, "an integer of at least 0"),
    "scalable": (lambda value: isinstance(value, bool), _FLAG),
    "learns": (lambda value: isinstance(value, bool), _FLAG),
    "max_frame_bytes": (lambda value: type(value) is int and value >= 64, "an integer of at least 64"),
    "max_pairs": (
        lambda value: value is None or (type(value) is int and value >= 1),
        "an integer of at least 1, or None",
    ),
}


def _texts(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(item, str) for item in value)


def catalogue(config: pytest.Config) -> dict[str, type[Switch]]:
    """Returns all switches: those of this package and of the hook ``pytest_icbench_switches``. Raises UsageError."""
    from pytest_icbench.driver.switch.registry import builtin_switches

    builtin = builtin_switches()
    switches = index_by_name(builtin.values(), brought_classes(config, _HOOK), hook=_HOOK, plural="switches")
    for name, cls in switches.items():
        if name not in builtin:
            _check(cls)
    return switches


def _check(cls: Any) -> None:
    """Raises UsageError if a class lacks a trait that collection uses, or has it with a wrong type."""
    for name, (right, words) in _TRAITS.items():
        if not hasattr(cls, name):
            raise UsageError(f"{_HOOK}: switch '{cls.name}' ({cls.__module__}) lacks the attribute '{name}'")
        if not right(getattr(cls, name)):
            raise UsageError(
                f"{_HOOK}: switch '{cls.name}' ({cls.__module__}): {name} is {getattr(cls, name)!r:.60}, but has to be"
                f" {words}"
            )
    try:
        for port in cls.ports:
            if not _texts(cls.port_apis(port)):
                raise TypeError(f"port_apis('{port}') has to return {_TEXTS}")
        cls.has_mode("")
    except Exception as error:
        raise UsageError(f"{_HOOK}: switch '{cls.name}' ({cls.__module__}): {sentence_of(error)}") from None
