# SPDX-License-Identifier: BSD-3-Clause
"""Asks the hooks for switches, nodes, functions and applications of other packages, and checks what they return.

A registry is imported only if a case or an option needs it: importing it takes as long as collecting a hundred cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.config.cases import Request, check_startup_kinds, name_option
from pytest_icbench.config.options import Options, find_unused
from pytest_icbench.config.switches import SwitchConfig, check_config
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.unique_names import index_by_name
from pytest_icbench.errors import UsageError
from pytest_icbench.model.candidate import Candidate
from pytest_icbench.model.case import Case
from pytest_icbench.model.cpu_allocation import side_by_side
from pytest_icbench.model.function_facts import function_key
from pytest_icbench.plugin.usage import describe_error
from pytest_icbench.wording import suggestion

#: The kind of nodes that is used unless the user asks for another one.
DEFAULT_NODE = Options().node
_SWITCHES_HOOK = "pytest_icbench_switches"
_FUNCTIONS_HOOK = "pytest_icbench_functions"
_TEXTS = "a tuple of texts"
_FLAG = "True or False"
#: The traits that collection uses: a check of the value, and what it has to be.
_TRAITS: Mapping[str, tuple[Any, str]] = {
    "family": (lambda value: isinstance(value, str), "a text"),
    "ports": (lambda value: _are_texts(value) and len(value) > 0, _TEXTS),
    "apis": (lambda value: _are_texts(value) and len(value) > 0, _TEXTS),
    "default_apis": (lambda value: _are_texts(value) and len(value) > 0, _TEXTS),
    "default_cores": (lambda value: type(value) is int and value >= 0, "an integer of at least 0"),
    "scalable": (lambda value: isinstance(value, bool), _FLAG),
    "learns": (lambda value: isinstance(value, bool), _FLAG),
    "max_frame_bytes": (lambda value: type(value) is int and value >= 64, "an integer of at least 64"),
    "max_pairs": (
        lambda value: value is None or (type(value) is int and value >= 1),
        "an integer of at least 1, or None",
    ),
}


def ask_hook(config: pytest.Config, hook: str, attribute: str = "name") -> list[Any]:
    """Returns the classes that a hook brings, each with a text for a name.

    Args:
        hook: the hook's name, the beginning of a message.
        attribute: the attribute with the name.

    Raises UsageError: the hook raised, or returned something else.
    """
    try:
        classes = [cls for several in getattr(config.hook, hook)(config=config) for cls in several]
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{hook} raised {describe_error(error)}") from None
    for cls in classes:
        if not isinstance(cls, type):
            raise UsageError(f"{hook}: {cls!r:.60} is no class")
        name = getattr(cls, attribute, None)
        if not isinstance(name, str) or not name.strip():
            raise UsageError(
                f"{hook}: {cls.__name__} ({cls.__module__}) has no {attribute}: its attribute '{attribute}' is"
                f" {name!r:.60}"
            )
    return classes


# -- switches


def catalogue(config: pytest.Config) -> dict[str, type[Switch]]:
    """Returns all switches: those of this package and of the hook ``pytest_icbench_switches``. Raises UsageError."""
    builtin = builtin_switches()
    switches = index_by_name(builtin.values(), ask_hook(config, _SWITCHES_HOOK), hook=_SWITCHES_HOOK, plural="switches")
    for name, cls in switches.items():
        if name not in builtin:
            _check_traits(cls)
    return switches


def _check_traits(cls: Any) -> None:
    """Raises UsageError if a class lacks a trait that collection uses, or has it with a wrong type."""
    where = f"{_SWITCHES_HOOK}: switch '{cls.name}' ({cls.__module__})"
    for name, (is_right, words) in _TRAITS.items():
        if not hasattr(cls, name):
            raise UsageError(f"{where} lacks the attribute '{name}'")
        if not is_right(getattr(cls, name)):
            raise UsageError(f"{where}: {name} is {getattr(cls, name)!r:.60}, but has to be {words}")
    try:
        for port in cls.ports:
            if not _are_texts(cls.port_apis(port)):
                raise TypeError(f"port_apis('{port}') has to return {_TEXTS}")
        cls.has_mode("")
    except Exception as error:
        raise UsageError(f"{where}: {describe_error(error)}") from None


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(item, str) for item in value)


# -- nodes


def bring_nodes(config: pytest.Config, kind: str, where: str = "--icbench-node") -> None:
    """Registers the kinds of nodes of the hook ``pytest_icbench_nodes``. ``kind``: one that ``where`` asks for.

    Raises UsageError: the hook returns no classes with distinct names, or ``kind`` is unknown.
    """
    brought = ask_hook(config, "pytest_icbench_nodes", "kind")
    if not brought and kind == DEFAULT_NODE:
        return
    from pytest_icbench.driver.node import registry

    registry.bring(brought)
    registry.node_sides(kind, where)


def check_startups(cases: Iterable[Case]) -> None:
    """Raises UsageError for containers of an unknown kind."""
    startups = [case for case in cases if case.load.crowd is not None]
    if startups:
        from pytest_icbench.driver.node.registry import node_kinds

        check_startup_kinds(startups, (cls.kind for cls in node_kinds()))


# -- applications


def with_applications(config: pytest.Config, request: Request, options: Options) -> tuple[Request, Options]:
    """Returns both arguments with the applications' names as in ids. Raises UsageError for an unknown application."""
    if request.app is None:
        return request, options
    from pytest_icbench.driver.application import registry

    registry.bring(ask_hook(config, "pytest_icbench_applications"))
    asked = None if options.app is None else registry.labels(options.app, name_option(options, "app"))
    return replace(request, app=registry.labels(request.app, "icbench marker: app")), replace(options, app=asked)


# -- functions


def bring_functions(config: pytest.Config, options: Options) -> tuple[str, ...]:
    """Registers the components of the hook ``pytest_icbench_functions``. Raises UsageError.

    Returns the names of all components whose program the user can name; none if the user names no program.
    """
    brought = list(_ask_for_functions(config))
    if not (brought or options.binaries or any(candidate.component for candidate in options.candidate)):
        return ()
    from pytest_icbench.driver.function import registry

    registry.bring(brought)
    return tuple(cls.name for cls in registry.components() if cls.takes_binary)


def _ask_for_functions(config: pytest.Config) -> Iterator[Any]:
    for cls in ask_hook(config, _FUNCTIONS_HOOK):
        where = f"{_FUNCTIONS_HOOK}: function '{cls.name}' ({cls.__module__})"
        if missing := sorted(getattr(cls, "__abstractmethods__", ())):
            raise UsageError(f"{where}: it has no {', '.join(f'{name}()' for name in missing)}")
        ports = getattr(cls, "ports", None)
        if not _are_texts(ports):
            raise UsageError(f"{where}: ports is {ports!r:.60}, but has to be {_TEXTS}")
        try:
            cls.has("")
        except Exception as error:
            raise UsageError(f"{where}: {describe_error(error)}") from None
        yield cls


def find_unused_options(options: Options, cases: Sequence[Case]) -> list[str]:
    """Returns a sentence for each option that changes nothing for the selected cases."""
    return find_unused(options, cases, find_components(cases))


def find_components(cases: Iterable[Case]) -> set[str]:
    """Returns the names of the components that have a network function of these cases."""
    functions = {function for case in cases if case.function is not None for function in case.functions}
    if not functions:
        return set()
    from pytest_icbench.driver.function import registry

    return {cls.name for cls in registry.components() if any(map(cls.has, functions))}


def check_functions(options: Options, cases: Iterable[tuple[Case, str]]) -> dict[str, SwitchConfig]:
    """Checks the functions of cases and the user's configurations of components.

    ``cases``: each with its file and test, the beginning of a message. Returns the configurations by key. Raises
    UsageError: no component has a function, or a component does not take its configuration.
    """
    cases = [(case, where) for case, where in cases if case.function is not None]
    if not (cases or options.function or options.function_config):
        return {}
    from pytest_icbench.driver.function import registry

    named = {
        function: "--icbench-function"
        for text in filter(None, options.function or ())
        for function in side_by_side(text)
    }
    for case, where in cases:
        for function in case.functions:
            named.setdefault(function, f"{where}: icbench marker: functions")
    for function, where in named.items():
        registry.check_known(function, where)
    components: dict[str, type[Any]] = {cls.name: cls for cls in registry.components()}
    configs: dict[str, SwitchConfig] = {}
    for name, file in options.function_config.items():
        component = _find_component(name, components, "--icbench-function-config")
        configs[function_key(name)] = check_config(file, name, component.config_keys)
    for candidate in options.candidate:
        if candidate.component is not None:
            configs |= _check_candidate(candidate, candidate.component, components)
    return configs


def _find_component(name: str, components: Mapping[str, type[Any]], option: str) -> type[Any]:
    if name not in components:
        raise UsageError(f"{option}: there is no component '{name}'{suggestion(name, tuple(components))}")
    return components[name]


def _check_candidate(candidate: Candidate, name: str, components: Mapping[str, type[Any]]) -> dict[str, SwitchConfig]:
    """Returns the configuration of a component's candidate by its key; empty if it has none."""
    component = _find_component(name, components, "--icbench-candidate")
    if candidate.config is not None:
        return {candidate.key: check_config(candidate.config, name, component.config_keys)}
    if not component.takes_binary:
        raise UsageError(f"--icbench-candidate: {candidate.key}: {name} has no program of its own; give config:")
    return {}
