# SPDX-License-Identifier: BSD-3-Clause
"""One side of a comparison between runs and baselines: what a name on the command line stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.entry import Entry, entry_of
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store.baselines import load

_RESULTS = "results.jsonl"


@dataclass(frozen=True, slots=True)
class ComparisonSource:
    """A run's or a baseline's entries."""

    name: str
    entries: tuple[Entry, ...]


def measurements(source: Path) -> list[Measurement]:
    """The results of a run: its directory or its ``results.jsonl``.

    Raises UsageError, DamagedData: the file cannot be read, is damaged or cut off, or newer; with its name and line.
    """
    path = source / _RESULTS if source.is_dir() else source
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); name a run's directory or its {_RESULTS}") from None
    lines = enumerate(text.split("\n"), 1)
    found = [Measurement.from_json(line, f"{path} line {number}") for number, line in lines if line]
    if not found:
        raise UsageError(f"{path}: holds no result")
    return found


def side_of(text: str, baselines: Path) -> ComparisonSource:
    """A run if there is such a file or a directory with results, else a baseline of this name.

    Raises UsageError: neither; DamagedData: damaged.
    """
    path = Path(text)
    if path.is_file() or (path / _RESULTS).is_file():
        measured = measurements(path)
        # Of several results of one case the last one stands, as in a baseline.
        entries = [entry for each in measured if (entry := entry_of(each)) is not None]
        return ComparisonSource(text, tuple({(str(entry.identity), entry.key): entry for entry in entries}.values()))
    if path.is_dir() and path.parent != path and any(path.glob("*/*.json")):
        return ComparisonSource(text, load(path.parent, path.name).entries)
    try:
        return ComparisonSource(text, load(baselines, text).entries)
    except UsageError as error:
        if (baselines / text).is_dir():
            raise
        raise UsageError(f"'{text}' is no run (a directory with {_RESULTS}), and {error}") from None
