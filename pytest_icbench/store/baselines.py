# SPDX-License-Identifier: BSD-3-Clause
"""Baselines on the disk: ``DIR/NAME/HOST/SWITCH.json``. Read whole or not at all, written in one step."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.store.baseline_file import read, write
from pytest_icbench.wording import suggestion


def host_name(identity: Mapping[str, Any]) -> str:
    """Returns the name of a host's directory: its CPU in readable form, and a digest of its whole identity."""
    model = re.sub(r"[^a-z0-9]+", "-", str(identity.get("cpu_model", "")).lower()).strip("-")[:40]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
    return f"{model or 'host'}-{digest}"


def load(directory: Path, name: str) -> Baseline:
    """Reads a baseline of all hosts.

    Raises:
        UsageError: there is none of this name, or one of its files cannot be read; the message names the file.
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
    """Writes entries as they are in place of others. Returns the files that changed; one without entries is removed.

    Args:
        before: the entries of the baseline so far.

    Raises:
        ProvisionError: a file cannot be written.
    """
    by_file: dict[Path, list[Entry]] = {_file_of(directory, name, entry): [] for entry in before}
    for entry in entries:
        by_file[_file_of(directory, name, entry)].append(entry)
    written = []
    for path, kept in sorted(by_file.items()):
        text = write(kept)
        if kept and path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        written.append(path)
        if kept:
            replace_file(path, text)
        else:
            path.unlink(missing_ok=True)
    return written


def _file_of(directory: Path, name: str, entry: Entry) -> Path:
    return directory / name / host_name(entry.identity) / f"{_file_part(entry.switch)}.json"


def _files(root: Path) -> list[Path]:
    return sorted(root.glob("*/*.json"))


def load_file(path: Path) -> list[Entry]:
    """Reads the entries of one file. Raises UsageError, DamagedData naming the file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); restore it, or save the baseline again") from None
    return read(text, str(path))


def save(directory: Path, name: str, entries: Iterable[Entry], *, accepted: bool = False) -> list[Path]:
    """Puts entries into a baseline: an entry becomes the newest session of its case on its host, other cases stay.

    Returns the files that were written. Each is replaced in one step, so it is never half-written.

    Args:
        accepted: whether the entries begin a new level; see ``Entry.after``.

    Raises:
        DamagedData: a file that would be changed is damaged or newer; it is left alone, and nothing is written.
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
        replace_file(path, write(cases.values()))
    return sorted(by_file)


def _file_part(switch: str) -> str:
    return re.sub(r"[^A-Za-z0-9_+-]", "_", switch) or "_"


def replace_file(path: Path, text: str) -> None:
    """Writes a file in one step: after a crash it has the old text or the new one. Raises ProvisionError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise ProvisionError(f"{path} cannot be written ({error}); make room, or name another directory") from None
    finally:
        with suppress(OSError):
            fresh.unlink()
