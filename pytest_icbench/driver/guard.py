# SPDX-License-Identifier: BSD-3-Clause
"""Wraps calls into third-party drivers: exceptions and malformed results become one-line errors that name the driver.

A driver may raise the errors of this package with its own messages. Any other exception and any result of a wrong type
is a DriverFault: ``switch 'foo': start() raised KeyError: 'nix' (foo.py:12)``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from traceback import extract_tb
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_icbench.driver.application import registry as application_registry
from pytest_icbench.driver.application.protocol import Application, ProcessSpec
from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.driver.node.attached_node import AttachedNode
from pytest_icbench.driver.node.protocol import Node, NodeFacts
from pytest_icbench.driver.node.registry import node_sides
from pytest_icbench.driver.switch.protocol import Needs, Switch
from pytest_icbench.errors import DriverFault, IcbenchError
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.process import Process
from pytest_icbench.model.application import ClientFigures
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.path import Side
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters, SwitchFacts
from pytest_icbench.model.traffic import Traffic

if TYPE_CHECKING:
    from pytest_icbench.driver.node.protocol import NodeSpec
    from pytest_icbench.host.host_session import HostSession

T = TypeVar("T")
#: Checks a driver's return value against the protocol, given the call's arguments.
Check = Callable[[Any, tuple[Any, ...]], bool]
#: The check of a result, and the words for it in a message.
Result = tuple[Check, str]
#: The longest text of an exception in a message.
_TEXT_MAX = 300


def _is(kind: Any) -> Check:
    """Returns the check of a record: its type and the types of all its values."""

    def check(value: Any, arguments: tuple[Any, ...]) -> bool:  # noqa: ARG001 - as ``Check``
        if not isinstance(value, kind):
            return False
        data = encode(value)
        json.dumps(data, allow_nan=False)
        decode(type(value), data, "")
        return True

    return check


def _optional(check: Check) -> Check:
    return lambda value, arguments: value is None or check(value, arguments)


def _listed(check: Check) -> Check:
    return lambda value, arguments: isinstance(value, list | tuple) and all(check(item, arguments) for item in value)


def _ports(value: Any, arguments: tuple[Any, ...]) -> bool:
    return _listed(_is(Endpoint))(value, arguments) and len(value) == len(arguments[2])


def _devices(value: Any, arguments: tuple[Any, ...]) -> bool:
    paths = _listed(_listed(lambda item, _: isinstance(item, Path)))(value, arguments)
    return paths and len(value) in (0, len(arguments[2]))


def _needs(value: Any, arguments: tuple[Any, ...]) -> bool:  # noqa: ARG001
    return isinstance(value, Needs) and all(
        type(number) is int and 0 <= number < 2**31 for number in (value.hugepages_mib, value.pollers)
    )


def _cpu_by_port(value: Any, arguments: tuple[Any, ...]) -> bool:  # noqa: ARG001
    return isinstance(value, Mapping) and all(type(port) is int and type(cpu) is int for port, cpu in value.items())


def _plain_facts(value: Any, arguments: tuple[Any, ...]) -> bool:  # noqa: ARG001
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return False
    json.dumps(encode(value), allow_nan=False)
    return True


def _number(value: Any, arguments: tuple[Any, ...]) -> bool:  # noqa: ARG001
    return type(value) in (int, float) and math.isfinite(value)


def _instance(kind: type) -> Check:
    return lambda value, _: isinstance(value, kind)


def _methods(protocol: type, checks: Mapping[str, Result]) -> Mapping[str, Result | None]:
    """Returns the methods of a driver's instance, each with the check of its result; None: the result is ignored."""
    own = {name for name, member in vars(protocol).items() if isinstance(member, FunctionType)}
    return {name: checks.get(name) for name in own if not name.startswith("_")}


_NEEDS = (_needs, "Needs with integers of at least 0")
_SWITCH = _methods(
    Switch,
    {
        "probe": (_is(SwitchFacts), "SwitchFacts of texts and numbers"),
        "needs": _NEEDS,
        "needs_with_queues": _NEEDS,
        "devices": (_devices, "a list of paths for each address, or none at all"),
        "start": (_ports, "a list with an endpoint for each attachment"),
        "facts": (_is(SwitchFacts), "SwitchFacts of texts and numbers"),
        "fault": (_optional(_instance(str)), "a text, or None"),
        "counters": (_optional(_listed(_is(PortCounters))), "a list of PortCounters, or None"),
        "busy": (_optional(_is(Busy)), "Busy, or None"),
        "batches": (_optional(_is(Batches)), "Batches, or None"),
        "assignment": (_optional(_cpu_by_port), "a mapping of ports to CPUs, or None"),
    },
)
_FUNCTION = _methods(
    Function,
    {
        "probe": (_is(FunctionFacts), "FunctionFacts of texts and numbers"),
        "facts": (_is(FunctionFacts), "FunctionFacts of texts and numbers"),
        "counters": (_is(FunctionCounters), "FunctionCounters"),
    },
)
_PROCESS = (_is(ProcessSpec), "ProcessSpec with texts")
_COUNT = (_optional(_number), "a number, or None")
_APPLICATION = _methods(
    Application,
    {
        "serve": _PROCESS,
        "drive": _PROCESS,
        "parse": (_is(ClientFigures), "ClientFigures of numbers"),
        "prepare": (_listed(_instance(str)), "a tuple of texts"),
        "count_served": _COUNT,
        "read_server_count": _COUNT,
        "read_relayed_count": _COUNT,
        "tolerance": (_number, "a number"),
    },
)
_NODE = _methods(Node, {"start": (_instance(NodeFacts), "NodeFacts"), "spawn": (_instance(Process), "a Process")})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"


def _place(error: BaseException) -> str:
    """Returns the place in the driver where an error was raised."""
    frames = extract_tb(error.__traceback__)[1:]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _text(error: BaseException) -> str:
    try:
        text = _short(str(error))
    except Exception:  # its __str__ is the driver's, too
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def call_guarded(driver: str, method: str, call: Callable[[], T], result: Result | None = None, *given: Any) -> T:
    """Calls a driver's method.

    Args:
        driver: kind and name of the driver, for the message.
        result: the check of the result; None: the result is ignored.
        given: the positional arguments, for the check.

    Raises the driver's error if it is one of this package or Ctrl-C, DriverFault for any other.
    """
    try:
        value = call()
    except (IcbenchError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit, and the exceptions by which pytest ends tests and sessions
        raise DriverFault(f"{driver}: {method}() raised {_text(error)}{_place(error)}") from error
    if result is not None and not _matches(result[0], value, given):
        raise DriverFault(f"{driver}: {method}() returned {_kind(value)}: it has to be {result[1]}")
    return value


def _matches(check: Check, value: Any, given: tuple[Any, ...]) -> bool:
    try:
        return check(value, given)
    except Exception:  # a value whose methods fail, or that is not JSON
        return False


def _kind(value: Any) -> str:
    try:
        return f"{_short(repr(value))[:60]} ({type(value).__name__})"
    except Exception:
        return type(value).__name__


class _Guarded:
    """Wraps a driver's instance: its methods are guarded, its other attributes are passed through."""

    def __init__(self, target: Any, driver: str, methods: Mapping[str, Result | None]) -> None:
        self.__dict__.update(_target=target, _driver=driver, _methods=methods)

    def __getattr__(self, name: str) -> Any:
        if name not in self._methods:
            return getattr(self._target, name)
        try:
            method = getattr(self._target, name)
        except AttributeError:
            raise DriverFault(f"{self._driver}: it has no method {name}()") from None

        def call(*arguments: Any, **keywords: Any) -> Any:
            return call_guarded(
                self._driver, name, lambda: method(*arguments, **keywords), self._methods[name], *arguments
            )

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)


def make_switch(cls: type[Switch]) -> Switch:
    """Returns an instance of a driver whose calls are guarded. Raises DriverFault."""
    driver = f"switch '{getattr(cls, 'name', cls.__name__)}'"
    return cast("Switch", _Guarded(call_guarded(driver, "__init__", cls), driver, _SWITCH))


def switch_needs(cls: type[Switch], pairs: int, cores: int, traffic: Traffic) -> Needs:
    """Returns the resources of a switch. Only a driver with ``queue_ports`` needs to know about queues.

    Raises Unsupported, DriverFault.
    """
    switch = make_switch(cls)
    if traffic.queues == 1:
        return switch.needs(pairs, cores, jumbo=traffic.jumbo)
    return switch.needs_with_queues(pairs, cores, traffic.queues, jumbo=traffic.jumbo)


def make_function(cls: type[Function]) -> Function:
    """Returns an instance of a function's driver whose calls are guarded. Raises DriverFault."""
    driver = f"function '{getattr(cls, 'name', cls.__name__)}'"
    return cast("Function", _Guarded(call_guarded(driver, "__init__", cls), driver, _FUNCTION))


def make_application(label: str, versions: Mapping[str, str]) -> Application:
    """Returns the application of a case's label, whose calls are guarded.

    Raises UsageError for an unknown one, DriverFault.
    """
    driver = f"application '{label.partition(':')[0]}'"
    made = call_guarded(driver, "__init__", lambda: application_registry.application(label, versions))
    return cast("Application", _Guarded(made, driver, _APPLICATION))


def make_node(kind: str, session: HostSession, spec: NodeSpec, side: Side = "a") -> Node:
    """Returns a node, not yet started, whose calls are guarded; an ``AttachedNode`` if its spec attaches it.

    Args:
        side: the side of the path that it is on, where kinds differ.

    Raises UsageError for an unknown kind, DriverFault.
    """
    cls = node_sides(kind)[side] if spec.attached is None else AttachedNode
    driver = f"node '{cls.kind}'"
    return cast("Node", _Guarded(call_guarded(driver, "__init__", lambda: cls(session, spec)), driver, _NODE))


def probe_node(kind: str, session: HostSession) -> None:
    """Checks that nodes of a kind can be started. Changes nothing.

    Raises Unsupported if they cannot, UsageError for an unknown kind, DriverFault.
    """
    for cls in node_sides(kind).values():
        call_guarded(f"node '{cls.kind}'", "probe", partial(cls.probe, session))


def node_findings(cls: type[Node]) -> Sequence[Finding]:
    """Returns what ``icbench doctor`` shows of a kind of node. Raises DriverFault."""

    def listed() -> Any:
        findings: Iterable[Finding] = cls.findings()
        return list(findings)

    result = _listed(_instance(Finding)), "an iterable of Finding"
    findings: list[Finding] = call_guarded(f"node '{cls.kind}'", "findings", listed, result)
    return findings


def node_treatment(kind: str) -> Mapping[str, Any]:
    """Returns the facts that results keep of a kind of node. Raises UsageError for an unknown kind, DriverFault."""
    result = _plain_facts, "a mapping of texts to plain data"
    facts: dict[str, Any] = {}
    for cls in node_sides(kind).values():
        facts |= call_guarded(f"node '{cls.kind}'", "treatment", cls.treatment, result)
    return facts
