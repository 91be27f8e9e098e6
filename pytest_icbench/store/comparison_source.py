# SPDX-License-Identifier: BSD-3-Clause
"""The source of one side of a comparison: a run, or the baseline of a name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.entry import Baseline, make_entry
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store.baselines import load
from pytest_icbench.store.run_directory import FILE_NAME, read_text


def read_measurements(source: Path) -> list[Measurement]:
    """Reads the results of a run.

    Args:
        source: its directory or its ``results.jsonl``.

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
        raise UsageError(f"{path}: holds no result")
    return measured


def read_source(text: str, baselines: Path) -> Baseline:
    """Reads a run if the text is a file or a directory with results, else the baseline of this name.

    Args:
        baselines: the directory of baselines.

    Raises:
        UsageError: there is neither.
        DamagedData: a file is damaged.
    """
    path = Path(text)
    if path.is_file() or (path / FILE_NAME).is_file():
        measured = read_measurements(path)
        # Of several results of one case the last one stands, as in a baseline.
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
        raise UsageError(f"'{text}' is no run (a directory with {FILE_NAME}), and {error}") from None
