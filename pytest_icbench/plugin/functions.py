# SPDX-License-Identifier: BSD-3-Clause
"""Network functions of this package and those that come through a hook, checked before they are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_icbench.config.switch_config import SwitchConfig, checked
from pytest_icbench.errors import UsageError
from pytest_icbench.model.contract import side_by_side
from pytest_icbench.plugin.brought import brought_classes
from pytest_icbench.plugin.usage import sentence_of
from pytest_icbench.wording import suggestion

if TYPE_CHECKING:
    import pytest

    from pytest_icbench.config.options import Options
    from pytest_icbench.model.case import Case

_HOOK = "pytest_icbench_functions"


def bring_functions(config: pytest.Config, options: Options) -> tuple[str, ...]:
    """Registers the components of the hook ``pytest_icbench_functions``. Raises UsageError.

    Returns the names of all components whose program the user can name; none where the user names no program.
    """
    brought = list(_brought(config))
    if not (brought or options.binaries or any(candidate.component for candidate in options.variant)):
        return ()
    from pytest_icbench.driver.function import registry

    registry.bring(brought)
    return tuple(cls.name for cls in registry.components() if cls.takes_binary)


def _brought(config: pytest.Config) -> Iterator[Any]:
    for cls in brought_classes(config, _HOOK):
        ports = getattr(cls, "ports", None)
        if not isinstance(ports, tuple | list) or not all(isinstance(port, str) for port in ports):
            raise UsageError(
                f"{_HOOK}: function '{cls.name}' ({cls.__module__}): ports is {ports!r:.60}, no tuple of texts"
            )
        try:
            cls.has("")
        except Exception as error:
            raise UsageError(f"{_HOOK}: function '{cls.name}' ({cls.__module__}): {sentence_of(error)}") from None
        yield cls


def options_without_effect(options: Options, cases: Sequence[Case]) -> list[str]:
    """Returns a sentence for each option that changes nothing for the selected cases."""
    from pytest_icbench.config.effects import without_effect

    return without_effect(options, cases, components_of(cases))


def components_of(cases: Iterable[Case]) -> set[str]:
    """Returns the names of the components that have a network function of these cases."""
    functions = {function for case in cases if case.function is not None for function in case.functions}
    if not functions:
        return set()
    from pytest_icbench.driver.function import registry

    return {cls.name for cls in registry.components() if any(map(cls.has, functions))}


def check_functions(options: Options, cases: Iterable[tuple[Case, str]]) -> dict[str, SwitchConfig]:
    """Checks the functions of cases and the user's configurations of components.

    Args:
        cases: each with its file and test, the beginning of a message.

    Returns:
        The configurations by key.

    Raises:
        UsageError: no component has a function, or a component does not take its configuration.
    """
    cases = [(case, where) for case, where in cases if case.function is not None]
    if not (cases or options.function or options.function_config):
        return {}
    from pytest_icbench.driver.function import registry
    from pytest_icbench.model.function_facts import function_key

    for text in filter(None, options.function or ()):
        for function in dict.fromkeys(side_by_side(text)):
            registry.check_known(function, "--icbench-function")
    for case, where in cases:
        for function in dict.fromkeys(case.functions):
            registry.check_known(function, f"{where}: icbench marker: functions")
    known = {cls.name: cls for cls in registry.components()}
    configs: dict[str, SwitchConfig] = {}
    for name, file in options.function_config.items():
        if name not in known:
            raise UsageError(
                f"--icbench-function-config: there is no component '{name}'{suggestion(name, tuple(known))}"
            )
        configs[function_key(name)] = checked(file, name, known[name].config_keys)
    for candidate in options.variant:
        if (component := candidate.component) is None:
            continue
        if component not in known:
            raise UsageError(
                f"--icbench-variant: there is no component '{component}'{suggestion(component, tuple(known))}"
            )
        if candidate.config is not None:
            configs[candidate.key] = checked(candidate.config, component, known[component].config_keys)
        elif not known[component].takes_binary:
            raise UsageError(f"--icbench-variant: {candidate.key}: {component} has no program of its own; give config:")
    return configs
