# SPDX-License-Identifier: BSD-3-Clause
"""Turns frozen dataclasses into plain JSON data and back. It refuses data that does not fit with one sentence.

It knows the types of which results and calls are made: bool, int, float, str, StrEnum, None, Literal, ``X | None``,
``tuple[X, ...]``, ``tuple[X, Y]``, ``dict[str, X]``, ``dict[int, X]`` (or ``Mapping``), dataclasses, and unions of
dataclasses that differ in the Literal of their field ``kind``. An ``Estimate`` is an object: ``value``, ``low`` and
``high``. A field with the metadata ``UNWRITTEN`` has no key. Pure.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pytest_icbench.errors import UsageError
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import suggestion

T = TypeVar("T")

#: Metadata of a field that is not written to files.
UNWRITTEN: Mapping[str, bool] = types.MappingProxyType({"written": False})

#: The greatest integer in a file, of which any sum is still a float, and the greatest depth of data without a type.
_GREATEST, _DEEPEST = 2**200, 50
#: Digits of the longest key that is a number.
_LONGEST_KEY = 30
#: The escape of a surrogate: two make a character, one alone is none.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

#: Types of data that nothing can be wrong with.
_ALWAYS_PLAIN = frozenset({str, bool, type(None)})
#: The types of data that a scalar takes, and what it is in messages.
_SCALARS: Mapping[Any, tuple[type | types.UnionType, str]] = types.MappingProxyType(
    {
        type(None): (type(None), "null"),
        bool: (bool, "true or false"),
        str: (str, "a string"),
        int: (int, "an integer"),
        float: (int | float, "a number"),
    }
)
_PAIRS = (tuple[int, int], ...)


class DamagedData(UsageError):
    """An error in data that was read; the message names the place and the expected value."""


def encode(value: Any) -> Any:
    """Returns plain JSON data of a dataclass (tuples become lists). Raises ValueError for NaN and Infinity."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_dataclass(value)
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, Estimate):
        return {"value": encode(value.value), "low": encode(value.low), "high": encode(value.high)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    return value


def _encode_dataclass(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    return {field.name: encode(getattr(value, field.name)) for field in _plan(kind)}


@cache
def keys(kind: type) -> Mapping[str, Any]:
    """Returns the keys of a dataclass in JSON in their order, with the types of their values."""
    return types.MappingProxyType({field.name: field.hint for field in _plan(kind)})


def decode(kind: type[T], data: Any, where: str) -> T:
    """Returns the dataclass ``kind`` from plain JSON data.

    Unknown keys are ignored, because a later version may have added them. A ``kind`` with the attribute ``EXACT`` is
    written by users and refuses them. Keys with a default may be missing. ``where``: the place of the data, for the
    message (``results.jsonl line 3``). Raises DamagedData: a key is missing or a value has the wrong type.
    """
    result: T = _decode(kind, data, where)
    return result


def check_fields(kind: Any, data: Mapping[str, Any], where: str) -> None:
    """Checks those values of plain data that are fields of a dataclass. Raises DamagedData for a wrong type."""
    for name, hint in keys(kind).items():
        if name in data:
            _decode(hint, data[name], _below(where, name))


def from_json(text: str | bytes, where: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Returns the data of a JSON text. Raises DamagedData with one sentence, whatever the text is.

    ``hook``: makes an object of its keys and values, as ``object_pairs_hook`` of ``json.loads``.
    """
    try:
        data = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=hook)
        if _SURROGATE.search(text if isinstance(text, str) else text.decode()):
            json.dumps(data, ensure_ascii=False).encode()  # half a character cannot be written anywhere
    except ValueError as error:
        raise DamagedData(f"{where}: not valid JSON ({error})") from None
    except RecursionError:
        raise DamagedData(f"{where}: nested too deeply") from None
    return data


def refuse_constant(name: str) -> float:
    """Raises ValueError for NaN and Infinity, which are no JSON; an argument for ``json.loads``."""
    raise ValueError(f"{name} is no JSON number")


def check_schema(data: Any, latest: int, where: str, otherwise: str) -> None:
    """Refuses data of another version, and data without a version.

    Args:
        latest: the version that can be read.
        otherwise: end of the message for data without a version (``this is no result of pytest-icbench``).

    Raises DamagedData: the version is missing or another one; one sentence.
    """
    schema = data.get("schema") if isinstance(data, dict) else None
    if type(schema) is not int or schema < 1:
        raise DamagedData(f"{where}: schema is {schema!r}; {otherwise}")
    if schema > latest:
        raise DamagedData(
            f"{where}: written with schema {schema}, but this version reads {latest}; update pytest-icbench"
        )
    if schema < latest:
        raise DamagedData(
            f"{where}: written by an earlier version (schema {schema}, this one reads {latest}); measure and save again"
        )


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _wrong(where: str, expected: str, data: Any) -> DamagedData:
    try:
        shown = repr(data)
    except (RecursionError, ValueError):  # an integer of thousands of digits has no text
        shown = "what cannot be shown"
    return DamagedData(f"{where}: expected {expected}, found {shown[:60]}{'…' if len(shown) > 60 else ''}")


def _decode(kind: Any, data: Any, where: str) -> Any:
    return _decoder(kind)(kind, data, where)


@cache
def _decoder(kind: Any) -> Callable[[Any, Any, str], Any]:
    """Returns what decodes data of a type; it is asked for every value of a file."""
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass
    if kind is Estimate:
        return _decode_estimate
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union
    if origin is tuple:
        return _decode_tuple
    if origin is Literal:
        return _decode_literal
    if origin in (dict, Mapping):
        return _decode_mapping
    return _decode_enum if isinstance(kind, type) and issubclass(kind, StrEnum) else _decode_scalar


def _decode_literal(kind: Any, data: Any, where: str) -> Any:
    if data in get_args(kind) and not isinstance(data, bool):
        return data
    raise _wrong(where, " or ".join(map(str, get_args(kind))), data)


def _decode_enum(kind: Any, data: Any, where: str) -> Any:
    if isinstance(data, str) and data in list(kind):
        return kind(data)
    raise _wrong(where, " or ".join(kind), data)


def _decode_mapping(kind: Any, data: Any, where: str) -> dict[Any, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise _wrong(where, "an object", data)
    of_keys, of_values = get_args(kind)
    if of_keys is str and of_values is Any:
        _check_plain(data, where)
        return dict(data)
    if of_keys is str and _is_plain(of_values, data.values()):
        return dict(data)
    return {_decode_key(of_keys, key, where): _decode(of_values, item, f"{where}: {key}") for key, item in data.items()}


def _decode_key(kind: Any, key: str, where: str) -> str | int:
    if kind is str:
        return key
    if kind is not int:
        raise TypeError(f"codec does not know keys of {kind}")
    try:
        if len(key) <= _LONGEST_KEY:
            return int(key)
    except ValueError:
        pass
    raise _wrong(where, "integers for keys", key)


def _decode_scalar(kind: Any, data: Any, where: str) -> Any:
    if kind is Any:
        _check_plain(data, where)
        return data
    if kind not in _SCALARS:
        raise TypeError(f"codec does not know {kind}")
    accepted, expected = _SCALARS[kind]
    # A truth value is an integer to Python, and none to JSON.
    right = isinstance(data, accepted) and (kind is bool or not isinstance(data, bool))
    if not right or (isinstance(data, int | float) and not _is_number(data)):
        raise _wrong(where, expected, data)
    return float(data) if kind is float else data


def _decode_union(kind: Any, data: Any, where: str) -> Any:
    options = get_args(kind)
    if data is None:
        if type(None) in options:
            return None
        raise _wrong(where, "a value", data)
    options = tuple(option for option in options if option is not type(None))
    if len(options) == 1:
        return _decode(options[0], data, where)
    if not isinstance(data, dict):
        raise _wrong(where, "an object", data)
    for option in options:
        if data.get("kind") in get_args(_hints(option)["kind"]):
            return _decode_dataclass(option, data, where)
    raise _wrong(
        f"{where}: kind", " or ".join(get_args(_hints(option)["kind"])[0] for option in options), data.get("kind")
    )


def _is_number(data: float) -> bool:
    """Whether a number is finite, and an integer one that a counter can hold."""
    return -_GREATEST <= data <= _GREATEST if isinstance(data, int) else math.isfinite(data)


def _check_plain(data: Any, where: str, depth: int = 0) -> None:
    """Checks data without a type. Raises DamagedData if it is nested deeply or has a number that is none."""
    if depth > _DEEPEST:
        raise DamagedData(f"{where}: nested too deeply")
    if isinstance(data, int | float) and not _is_number(data):
        raise _wrong(where, "a number", data)
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ():
        plain = type(item) in _ALWAYS_PLAIN or (type(item) in (int, float) and _is_number(item))
        if not plain or depth == _DEEPEST:
            _check_plain(item, where, depth + 1)


def _is_pair_of_ints(item: Any) -> bool:
    return type(item) is list and len(item) == 2 and type(item[0]) is int and type(item[1]) is int


def _decode_tuple(kind: Any, data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise _wrong(where, "a list", data)
    items = get_args(kind)
    if items == _PAIRS and all(map(_is_pair_of_ints, data)):  # histograms: thousands of them a result
        return tuple(map(tuple, data))
    if len(items) == 2 and items[1] is ...:
        if _is_plain(items[0], data):
            return tuple(data)
        return tuple(_decode(items[0], item, f"{where}[{number}]") for number, item in enumerate(data))
    if len(data) != len(items):
        raise _wrong(where, f"a list of {len(items)}", data)
    return tuple(_decode(each, item, where) for each, item in zip(items, data, strict=True))


def _below(where: str, name: str) -> str:
    """Returns the place of a key: ``results.jsonl line 3: windows``, in an element of a list ``windows[3].begin``."""
    return f"{where}.{name}" if where.endswith("]") else f"{where}: {name}"


def _decode_dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(where, "an object", data)
    arguments: dict[str, Any] = {}
    if getattr(kind, "EXACT", False):
        known = list(keys(kind))
        for name in data:
            if name not in known:
                raise DamagedData(f"{where}: there is no key '{name}'{suggestion(name, known)}")
    for field in _plan(kind):
        name = field.name
        if name in data:
            value = data[name]
            # Most values need no decoding. The slow path decodes the others, and has the messages.
            arguments[name] = (
                value if _needs_none(value, field.plain) else _decode(field.hint, value, _below(where, name))
            )
        elif field.required:
            raise DamagedData(f"{where}: {name} is missing")
    return kind(**arguments)


def _decode_estimate(_kind: Any, data: Any, where: str) -> Estimate:
    if not isinstance(data, dict):
        raise _wrong(where, "an object", data)
    if data.get("value") is None:
        raise DamagedData(f"{_below(where, 'value')} is missing")
    low, high = (
        None if data.get(key) is None else _decode_scalar(float, data[key], _below(where, key))
        for key in ("low", "high")
    )
    return Estimate(_decode_scalar(float, data["value"], _below(where, "value")), low, high)


class _Field(NamedTuple):
    """A field of a dataclass. ``plain``: types of values that need no decoding. ``required``: it has no default."""

    name: str
    hint: Any
    plain: frozenset[type]
    required: bool


@cache
def _plan(kind: Any) -> tuple[_Field, ...]:
    """Returns the fields that are written to files."""
    hints = _hints(kind)
    return tuple(
        _Field(
            field.name,
            hints[field.name],
            _plain(hints[field.name]),
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
        if field.metadata.get("written", True)
    )


@cache
def _plain(hint: Any) -> frozenset[type]:
    """Returns the types of values of a hint that need no decoding."""
    if hint in (bool, int, float, str):
        return frozenset({hint})
    if get_origin(hint) in (Union, types.UnionType):
        return frozenset().union(*(_plain(option) for option in get_args(hint)))
    return frozenset({type(None)}) if hint is type(None) else frozenset()


def _needs_none(value: Any, plain: frozenset[type]) -> bool:
    """Whether a value is of a type that needs no decoding, and right."""
    kind = type(value)
    if kind is float:
        return kind in plain and math.isfinite(value)
    return kind in plain and (kind is not int or _is_number(value))


def _is_plain(hint: Any, values: Iterable[Any]) -> bool:
    """Whether none of the values needs decoding."""
    plain = _plain(hint)
    return bool(plain) and all(_needs_none(value, plain) for value in values)
