# SPDX-License-Identifier: BSD-3-Clause
"""Calls that are declared once, as methods with types, and answered by another object or at the end of a connection.

Only the declaration names a call. A forwarding class takes the arguments from the declaration, and their JSON from the
codec.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, get_type_hints

from pytest_icbench.model.codec import decode, encode

F = TypeVar("F", bound=Callable[..., Any])

#: The host that answers a call where a rig has two: ``this`` host, ``both`` hosts, or the host with the ``endpoint``
#: that the argument ``index`` names (None: both). ``special``: the forwarding class has a method of its own for the
#: call.
Hosts = Literal["this", "both", "endpoint", "special"]


@dataclass(frozen=True, slots=True)
class Call:
    """A declared method.

    Attributes:
        function: the method as it was declared.
        hosts: the host or hosts that answer.
        join: makes one answer of two hosts' answers, this host's first; None if the call has no result.
    """

    function: Callable[..., Any]
    hosts: Hosts = "this"
    join: Callable[[Any, Any], Any] | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    def bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Returns every argument by its name, defaults included."""
        bound = _signature(self.function).bind(None, *arguments, **keywords)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def encode_arguments(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Returns the arguments that ``bind`` returned as plain JSON data."""
        return [encode(argument) for argument in arguments.values()]

    def answer(self, target: object, data: Sequence[Any]) -> Any:
        """Makes the call on an object; takes the arguments and returns the result as plain JSON data.

        Raises DamagedData: an argument has another type. Errors of the call itself pass through.
        """
        names = list(_signature(self.function).parameters)[1:]
        hints = _hints(self.function)
        arguments = [
            decode(hints[name], value, f"{self.name}: {name}") for name, value in zip(names, data, strict=False)
        ]
        return encode(getattr(target, self.name)(*arguments))

    def decode_result(self, data: Any) -> Any:
        """Returns the result as the method's annotation has it. Raises DamagedData for another type."""
        return decode(_hints(self.function)["return"], data, self.name)


class Forwarding:
    """The base of classes that declare calls. A subclass overrides single calls, or ``forward`` for all the others."""

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Makes a call for which the class has no method of its own."""
        raise NotImplementedError(f"{type(self).__name__} has no {call.name}")


def call(hosts: Hosts = "this", join: Callable[[Any, Any], Any] | None = None) -> Callable[[F], F]:
    """Declares a method of a ``Forwarding`` class as a call; its body never runs. Arguments are those of ``Call``."""

    def declare(function: F) -> F:
        declared = Call(function, hosts, join)

        @functools.wraps(function)
        def forwarded(self: Forwarding, *arguments: Any, **keywords: Any) -> Any:
            return self.forward(declared, arguments, keywords)

        forwarded.call = declared  # type: ignore[attr-defined]
        return cast("F", forwarded)

    return declare


@functools.cache
def calls_of(kind: type) -> Mapping[str, Call]:
    """Returns the calls that a class declares or inherits, by name."""
    declared = {name: getattr(getattr(kind, name), "call", None) for name in dir(kind)}
    return {name: declaration for name, declaration in declared.items() if isinstance(declaration, Call)}


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)
