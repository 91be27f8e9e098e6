# SPDX-License-Identifier: BSD-3-Clause
"""Calls that are declared once, as methods with types, and answered by another object or at the end of a connection.

The declaration is the only place that names a call: what forwards it asks the declaration for its arguments, and codec
for their JSON.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, get_type_hints

from pytest_icbench.model.codec import decode, encode

F = TypeVar("F", bound=Callable[..., Any])

#: Whose answer it is where two hosts have a part each: ``this`` host's, ``both`` hosts', that of the host which has the
#: ``endpoint`` named by the argument ``index`` (None: both). ``special``: who forwards it has a method for it.
Hosts = Literal["this", "both", "endpoint", "special"]


@dataclass(frozen=True, slots=True)
class Call:
    """One declared method.

    Attributes:
        function: the method as it was declared.
        join: makes one answer of two hosts' answers, this host's first; None: there is nothing to tell.
    """

    function: Callable[..., Any]
    hosts: Hosts = "this"
    join: Callable[[Any, Any], Any] | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    def bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Every argument by its name, defaults included."""
        bound = _signature(self.function).bind(None, *arguments, **keywords)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def encode_arguments(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Plain JSON data of what ``bind`` returned."""
        return [encode(argument) for argument in arguments.values()]

    def answer(self, target: object, data: Sequence[Any]) -> Any:
        """Makes the call on an object: plain JSON data of the arguments in, of the result out.

        Raises DamagedData for arguments of another type, and what the call raises.
        """
        names = list(_signature(self.function).parameters)[1:]
        hints = _hints(self.function)
        arguments = [
            decode(hints[name], value, f"{self.name}: {name}") for name, value in zip(names, data, strict=False)
        ]
        return encode(getattr(target, self.name)(*arguments))

    def decode_result(self, data: Any) -> Any:
        """The result as the method's annotation has it. Raises DamagedData for another type."""
        return decode(_hints(self.function)["return"], data, self.name)


class Forwarding:
    """Where calls can be declared. A subclass overrides them one by one, or ``forward`` for all that it leaves."""

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Does a call that the class has no method of its own for."""
        raise NotImplementedError(f"{type(self).__name__} has no {call.name}")


def call(hosts: Hosts = "this", join: Callable[[Any, Any], Any] | None = None) -> Callable[[F], F]:
    """Declares a method of a ``Forwarding`` class as a call: its body is never run. Arguments as of ``Call``."""

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
    """The calls that a class declares or inherits, by name."""
    declared = {name: getattr(getattr(kind, name), "call", None) for name in dir(kind)}
    return {name: found for name, found in declared.items() if isinstance(found, Call)}


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)
