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
        known = tuple(sorted(path.name for path in directory.glob("*/"))) if directory.is_dir() else ()
        hint = suggestion(name, known) if known else "; --icbench-save makes one"
        raise UsageError(f"there is no baseline '{name}' in {directory}{hint}")
    return Baseline(name, tuple(entry for path in _files(root) for entry in load_file(path)))


def _files(root: Path) -> list[Path]:
    return sorted(root.glob("*/*.json"))


def load_file(path: Path) -> list[Entry]:
    """Reads the entries of one file. Raises UsageError, DamagedData naming the file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); restore it, or save the baseline again") from None
    return read(text, str(path))


def save(directory: Path, name: str, entries: Iterable[Entry]) -> list[Path]:
    """Puts entries into a baseline: an entry replaces the one with its key and host, the others stay.

    Returns the files that were written. Each is replaced in one step, so it is never half-written.

    Raises:
        DamagedData: a file that would be changed is damaged or newer; it is left alone, and nothing is written.
        ProvisionError: a file cannot be written.
    """
    by_file: dict[Path, dict[str, Entry]] = {}
    for entry in entries:
        path = directory / name / host_name(entry.identity) / f"{_file_part(entry.switch)}.json"
        if path not in by_file:
            by_file[path] = {old.key: old for old in load_file(path)} if path.exists() else {}
        by_file[path][entry.key] = entry
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
