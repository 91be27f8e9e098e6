# SPDX-License-Identifier: BSD-3-Clause
"""Baselines on disk: ``DIR/NAME/HOST/SWITCH.json``. A file is read completely or not at all, and replaced atomically.

A comparison takes a baseline by name, or a run by its path; see ``read_source``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.entry import Baseline, CaseFacts, Entry, Figure, SessionValues, make_entry
from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.model.candidate import OldVersion
from pytest_icbench.model.codec import DamagedData, decode, encode
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store.run_directory import FILE_NAME, Document, read_text, replace_file
from pytest_icbench.wording import suggestion

FORMAT = "pytest-icbench baseline"
#: Version of the format.
SCHEMA = 2
_DOCUMENT = Document(FORMAT, SCHEMA, "this is no baseline of pytest-icbench", "restore it, or save the baseline again")


@dataclass(frozen=True, slots=True)
class _File:
    format: str
    schema: int
    identity: dict[str, Any]
    comparability: dict[str, Any]
    cases: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Case(CaseFacts):
    """An entry without the facts that its file stores once for several cases."""

    comparability: str
    control: Figure | None = None
    earlier: dict[str, SessionValues] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Comparability:
    """The facts of an entry that a file stores once."""

    treatment: dict[str, Any]
    settings: dict[str, Any]
    conditions: dict[str, Any]
    old: OldVersion | None = None


_CASE_FACTS = tuple(fact.name for fact in fields(CaseFacts))
_SHARED = tuple(fact.name for fact in fields(_Comparability))


def format_baseline(entries: Iterable[Entry]) -> str:
    """Returns the text of a file. All entries are of one host. The last of several entries with a key is kept."""
    comparability: dict[str, Any] = {}
    cases: dict[str, Any] = {}
    identity: Mapping[str, Any] = {}
    for entry in entries:
        identity = entry.identity
        shared = {name: _sorted(encode(getattr(entry, name))) for name in _SHARED}
        digest = _digest(shared)
        comparability[digest] = shared
        plain = {name: getattr(entry, name) for name in _CASE_FACTS}
        cases[entry.key] = {
            **plain,
            "comparability": digest,
            **{name: encode(figure) for name, figure in entry.figures.items()},
            **({} if entry.control is None else {"control": encode(entry.control)}),
            **({"earlier": encode(dict(sorted(entry.earlier.items())))} if entry.earlier else {}),
        }
    used = {case["comparability"] for case in cases.values()}
    data = {
        "format": FORMAT,
        "schema": SCHEMA,
        "identity": _sorted(encode(identity)),
        "comparability": {digest: shared for digest, shared in sorted(comparability.items()) if digest in used},
        "cases": dict(sorted(cases.items())),
    }
    return "\n".join(_lines(data, 0)) + "\n"


def _sorted(data: Any) -> Any:
    if isinstance(data, list):
        return [_sorted(item) for item in data]
    return {name: _sorted(data[name]) for name in sorted(data)} if isinstance(data, dict) else data


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, allow_nan=False).encode()).hexdigest()[:8]


#: Depth to which each key has a separate line: a figure of a case takes one line, and so does a fact.
_SPREAD = {"comparability": 3, "cases": 2}


def _lines(value: Any, depth: int, spread: int = 1) -> list[str]:
    """Returns JSON text. Objects down to depth ``spread`` have a line for each key, deeper ones are on one line."""
    if not isinstance(value, dict) or depth > spread or not value:
        return [json.dumps(value, allow_nan=False)]
    pad = " " * (depth + 1)
    parts = []
    for name, item in value.items():
        deeper = _SPREAD.get(name, spread) if depth == 0 else spread + (depth == 2 and name == "earlier")
        first, *rest = _lines(item, depth + 1, deeper)
        parts.append("\n".join([f"{pad}{json.dumps(name)}: {first}", *rest]))
    return ["{", *",\n".join(parts).split("\n"), " " * depth + "}"]


def parse_baseline(text: str, where: str) -> list[Entry]:
    """Parses a file's entries: all of them or none.

    Raises DamagedData with one sentence that begins with ``where``: damaged, cut off, or written by a newer version.
    """
    data = _DOCUMENT.parse(text, where)
    file = decode(_File, data, where)
    comparability = {
        digest: decode(_Comparability, facts, f"{where}: facts {digest}")
        for digest, facts in file.comparability.items()
    }
    return [_entry(key, case, file, comparability, f"{where}: {key}") for key, case in file.cases.items()]


def _entry(key: str, data: Any, file: _File, comparability: Mapping[str, _Comparability], where: str) -> Entry:
    case = decode(_Case, data, where)
    case_comparability = comparability.get(case.comparability)
    if case_comparability is None:
        raise DamagedData(f"{where}: its facts {case.comparability} are not in the file; merge them too")
    figures = {name: decode(Figure, data[name], f"{where}: {name}") for name in COMPARED if name in data}
    plain = {name: getattr(case, name) for name in _CASE_FACTS}
    shared = {name: getattr(case_comparability, name) for name in _SHARED}
    earlier = dict(sorted(case.earlier.items()))
    entry = Entry(**plain, **shared, figures=figures, identity=file.identity, control=case.control, earlier=earlier)
    if entry.key != key:
        raise DamagedData(f"{where}: holds the case '{entry.key}'")
    return entry


def host_name(identity: Mapping[str, Any]) -> str:
    """Returns the name of a host's directory: its CPU in readable form, and a digest of its whole identity."""
    model = re.sub(r"[^a-z0-9]+", "-", str(identity.get("cpu_model", "")).lower()).strip("-")[:40]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
    return f"{model or 'host'}-{digest}"


def load(directory: Path, name: str) -> Baseline:
    """Reads a baseline of all hosts.

    Raises:
        UsageError: no baseline has this name, or one of its files cannot be read; the message names the file.
        DamagedData: a file is damaged, cut off, or newer than this version; the message names the file.
    """
    root = directory / name
    if not root.is_dir():
        known = known_names(directory)
        hint = suggestion(name, known) if known else "; --icbench-save makes one"
        raise UsageError(f"there is no baseline '{name}' in {directory}{hint}")
    return Baseline(name, tuple(entry for path in _files(root) for entry in load_file(path)))


def known_names(directory: Path) -> tuple[str, ...]:
    """Returns the names of the baselines in a directory; none if there is no such directory."""
    return tuple(sorted(path.name for path in directory.glob("*/"))) if directory.is_dir() else ()


def put(directory: Path, name: str, before: Iterable[Entry], entries: Iterable[Entry]) -> list[Path]:
    """Replaces entries. Returns the changed files; a file without entries is removed.

    ``before``: the entries of the baseline so far. Raises ProvisionError: a file cannot be written.
    """
    by_file: dict[Path, list[Entry]] = {_file_of(directory, name, entry): [] for entry in before}
    for entry in entries:
        by_file[_file_of(directory, name, entry)].append(entry)
    written = []
    for path, kept in sorted(by_file.items()):
        text = format_baseline(kept)
        if kept and path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        written.append(path)
        if kept:
            replace_file(path, text)
        else:
            path.unlink(missing_ok=True)
    return written


def _file_of(directory: Path, name: str, entry: Entry) -> Path:
    switch = re.sub(r"[^A-Za-z0-9_+-]", "_", entry.switch) or "_"
    return directory / name / host_name(entry.identity) / f"{switch}.json"


def _files(root: Path) -> list[Path]:
    return sorted(root.glob("*/*.json"))


def load_file(path: Path) -> list[Entry]:
    """Reads the entries of one file. Raises UsageError, DamagedData naming the file."""
    text = read_text(path, f"; {_DOCUMENT.remedy}")
    if text is None:
        raise UsageError(f"{path} cannot be read: it does not exist; {_DOCUMENT.remedy}")
    return parse_baseline(text, str(path))


def save(directory: Path, name: str, entries: Iterable[Entry], *, accepted: bool = False) -> list[Path]:
    """Adds entries to a baseline: each becomes the newest session of its case on its host. Other cases are kept.

    Returns the files that were written. Each is replaced in one step, so it is never half-written. ``accepted``:
    whether the entries begin a new level; see ``Entry.after``.

    Raises:
        DamagedData: a file to be changed is damaged or newer; nothing is written.
        ProvisionError: a file cannot be written.
    """
    by_file: dict[Path, dict[str, Entry]] = {}
    for entry in entries:
        path = _file_of(directory, name, entry)
        if path not in by_file:
            by_file[path] = {old.key: old for old in load_file(path)} if path.exists() else {}
        before = by_file[path].get(entry.key)
        by_file[path][entry.key] = entry if before is None else entry.after(before, accepted=accepted)
    for path, cases in sorted(by_file.items()):
        replace_file(path, format_baseline(cases.values()))
    return sorted(by_file)


def read_measurements(source: Path) -> list[Measurement]:
    """Reads the results of a run. ``source``: its directory or its ``results.jsonl``.

    Raises:
        UsageError: the file cannot be read or has no result.
        DamagedData: a line is damaged, cut off or newer; the message names file and line.
    """
    path = source / FILE_NAME if source.is_dir() else source
    remedy = f"; name a run's directory or its {FILE_NAME}"
    text = read_text(path, remedy)
    if text is None:
        raise UsageError(f"{path} cannot be read: it does not exist{remedy}")
    lines = enumerate(text.split("\n"), 1)
    measured = [Measurement.from_json(line, f"{path} line {number}") for number, line in lines if line]
    if not measured:
        raise UsageError(f"{path} has no result")
    return measured


def read_source(text: str, baselines: Path) -> Baseline:
    """Reads a run if the text is a file or a directory with results, else the baseline of this name.

    ``baselines``: the directory of baselines.

    Raises:
        UsageError: there is neither.
        DamagedData: a file is damaged.
    """
    path = Path(text)
    if path.is_file() or (path / FILE_NAME).is_file():
        measured = read_measurements(path)
        # The last of several results of a case counts, as in a baseline.
        entries = [entry for measurement in measured if (entry := make_entry(measurement)) is not None]
        last = {(str(entry.identity), entry.key): entry for entry in entries}
        return Baseline(text, tuple(last.values()), is_run=True)
    if path.is_dir() and path.parent != path and any(path.glob("*/*.json")):
        return replace(load(path.parent, path.name), name=text)
    try:
        return load(baselines, text)
    except UsageError as error:
        if (baselines / text).is_dir():
            raise
        raise UsageError(f"'{text}' is not a run (a directory with {FILE_NAME}), and {error}") from None
