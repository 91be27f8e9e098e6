# SPDX-License-Identifier: BSD-3-Clause
"""The format of a baseline's file: entries of one host and switch to text and back, strictly. Pure.

The format is JSON, since a truncated file is then invalid. It is laid out for readers and for merges: it is sorted, has
one figure a line, and has facts that many cases share (the host, versions and settings) once::

    {
     "format": "pytest-icbench baseline",
     "schema": 2,
     "identity": {...},
     "circumstances": {"1c0a6f2e": {"treatment": {...}, "settings": {...}, "conditions": {...}}},
     "cases": {
      "throughput ovs-64B-b32-1vs1-Rmax dedicated": {
       "throughput_pps": {"value": 5123456.0, "low": ..., "high": ..., "launches": [...]},
       ...
       "earlier": {
        "2026-01-30T12:00:00Z": {"values": {"throughput_pps": 5120000.0}, ...}
       }
      }
     }
    }

A case has its newest session in full, and the values of earlier ones, a line each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pytest_icbench.gate.entry import CaseFacts, Entry, Figure, SessionValues
from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.model.codec import DamagedData, check_schema, decode, encode, from_json
from pytest_icbench.model.old_version import OldVersion

FORMAT = "pytest-icbench baseline"
#: Version of the format. A reader refuses all others.
SCHEMA = 2


@dataclass(frozen=True, slots=True)
class _File:
    format: str
    schema: int
    identity: dict[str, Any]
    circumstances: dict[str, Any]
    cases: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Case(CaseFacts):
    """An entry without the facts that its file shares among cases."""

    circumstances: str
    control: Figure | None = None
    earlier: dict[str, SessionValues] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Circumstances:
    """The facts of an entry that many cases share."""

    treatment: dict[str, Any]
    settings: dict[str, Any]
    conditions: dict[str, Any]
    old: OldVersion | None = None


_CASE_FACTS = tuple(fact.name for fact in fields(CaseFacts))
_SHARED = tuple(fact.name for fact in fields(_Circumstances))


def write(entries: Iterable[Entry]) -> str:
    """Returns the text of a file. All entries are of one host; of several with the same key the last one stays."""
    circumstances: dict[str, Any] = {}
    cases: dict[str, Any] = {}
    identity: Mapping[str, Any] = {}
    for entry in entries:
        identity = entry.identity
        shared = {name: _sorted(encode(getattr(entry, name))) for name in _SHARED}
        digest = _digest(shared)
        circumstances[digest] = shared
        plain = {name: getattr(entry, name) for name in _CASE_FACTS}
        cases[entry.key] = {
            **plain,
            "circumstances": digest,
            **{name: encode(figure) for name, figure in entry.figures.items()},
            **({} if entry.control is None else {"control": encode(entry.control)}),
            **({"earlier": encode(dict(sorted(entry.earlier.items())))} if entry.earlier else {}),
        }
    used = {case["circumstances"] for case in cases.values()}
    data = {
        "format": FORMAT,
        "schema": SCHEMA,
        "identity": _sorted(encode(identity)),
        "circumstances": {digest: shared for digest, shared in sorted(circumstances.items()) if digest in used},
        "cases": dict(sorted(cases.items())),
    }
    return "\n".join(_lines(data, 0)) + "\n"


def _sorted(data: Any) -> Any:
    if isinstance(data, list):
        return [_sorted(item) for item in data]
    return {name: _sorted(data[name]) for name in sorted(data)} if isinstance(data, dict) else data


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, allow_nan=False).encode()).hexdigest()[:8]


#: Depth to which objects are spread over lines: a case's figure has one line, and so has a fact of the circumstances.
_SPREAD = {"circumstances": 3, "cases": 2}


def _lines(value: Any, depth: int, spread: int = 1) -> list[str]:
    """Returns JSON text; objects down to depth ``spread`` are spread over lines, deeper ones stand in one line."""
    if not isinstance(value, dict) or depth > spread or not value:
        return [json.dumps(value, allow_nan=False)]
    pad = " " * (depth + 1)
    parts = []
    for name, item in value.items():
        deeper = _SPREAD.get(name, spread) if depth == 0 else spread + (depth == 2 and name == "earlier")
        first, *rest = _lines(item, depth + 1, deeper)
        parts.append("\n".join([f"{pad}{json.dumps(name)}: {first}", *rest]))
    return ["{", *",\n".join(parts).split("\n"), " " * depth + "}"]


def read(text: str, where: str) -> list[Entry]:
    """Parses a file's entries: all of them or none.

    Raises DamagedData with one sentence that begins with ``where``: damaged, cut off, or written by a newer version.
    """
    try:
        data = from_json(text, where, _unique)
    except DamagedData as error:
        why = str(error).removeprefix(f"{where}: ")
        raise DamagedData(f"{where}: damaged or cut off ({why}); restore it, or save the baseline again") from None
    if not text.endswith("}\n"):
        raise DamagedData(f"{where}: cut off, its last line has no end; restore it, or save the baseline again")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DamagedData(f"{where}: this is no baseline of pytest-icbench")
    check_schema(data, SCHEMA, where, "this is no baseline of pytest-icbench")
    file = decode(_File, data, where)
    circumstances = {
        digest: decode(_Circumstances, facts, f"{where}: circumstances {digest}")
        for digest, facts in file.circumstances.items()
    }
    return [_entry(key, case, file, circumstances, f"{where}: {key}") for key, case in file.cases.items()]


def _entry(key: str, data: Any, file: _File, circumstances: Mapping[str, _Circumstances], where: str) -> Entry:
    case = decode(_Case, data, where)
    case_circumstances = circumstances.get(case.circumstances)
    if case_circumstances is None:
        raise DamagedData(f"{where}: its circumstances {case.circumstances} are not in the file; merge them too")
    figures = {name: decode(Figure, data[name], f"{where}: {name}") for name in COMPARED if name in data}
    plain = {name: getattr(case, name) for name in _CASE_FACTS}
    shared = {name: getattr(case_circumstances, name) for name in _SHARED}
    earlier = dict(sorted(case.earlier.items()))
    entry = Entry(**plain, **shared, figures=figures, identity=file.identity, control=case.control, earlier=earlier)
    if entry.key != key:
        raise DamagedData(f"{where}: holds the case '{entry.key}'")
    return entry


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' stands there twice")
    return data
