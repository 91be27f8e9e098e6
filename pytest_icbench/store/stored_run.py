# SPDX-License-Identifier: BSD-3-Clause
"""Reads a run from its directory: its information, its tests, and its results with their windows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import DamagedData, decode, from_json
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.text_files import MOST_STORED_BYTES, open_regular
from pytest_icbench.store.raw import LAUNCHES
from pytest_icbench.store.run_directory import FILE_NAME, ResultPlace, TestRecord, read_tests, read_text, whole_lines
from pytest_icbench.store.run_json import RunInfo, read_info


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A line of ``results.jsonl``.

    Attributes:
        names: the keys of the line and of its figures.
        raw: path of its windows below the run; None without windows.
    """

    measurement: Measurement
    names: frozenset[str]
    test: str
    raw: Path | None
    place: ResultPlace | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run on disk."""

    directory: Path
    info: RunInfo | None
    tests: tuple[TestRecord, ...]
    results: tuple[StoredResult, ...]

    @property
    def name(self) -> str:
        """The name of the run's directory."""
        return self.directory.resolve().name


def read_run(directory: Path) -> StoredRun:
    """Reads a run. An incomplete last line, left by a crash, is skipped.

    ``directory``: the run's, or its ``results.jsonl``.

    Raises:
        UsageError: the directory is no run, or a file cannot be read.
        DamagedData: a file is damaged; the sentence names file and line.
    """
    if directory.name == FILE_NAME and directory.is_file():
        directory = directory.parent
    info, tests = read_info(directory), tuple(read_tests(directory))
    measurements = _read_lines(directory, is_run=info is not None or bool(tests))
    results: dict[int, StoredResult] = {}
    for test in tests:
        for place in test.results:
            if place.line not in measurements:
                where = directory / FILE_NAME
                raise DamagedData(f"{where}: line {place.line}, a result of {test.nodeid}, is missing")
            raw = _below(directory, place.raw)
            results[place.line] = StoredResult(*measurements[place.line], test.nodeid, raw, place)
    # A killed run can have results of an unfinished test.
    if left := {line: stored for line, stored in measurements.items() if line not in results}:
        results |= _named_by_raw(directory, left)
    return StoredRun(directory, info, tests, tuple(results[line] for line in sorted(results)))


def _read_lines(directory: Path, *, is_run: bool) -> dict[int, tuple[Measurement, frozenset[str]]]:
    """Returns the measurement and the keys of each line of ``results.jsonl`` by line number.

    ``is_run``: whether the directory is a run even without that file. Raises as ``read_run`` does.
    """
    path = directory / FILE_NAME
    text = read_text(path)
    if text is None and not is_run:
        raise UsageError(f"{directory} is not a run: it has no {FILE_NAME}; name a directory below reports/")
    measurements = {}
    for where, line in whole_lines(text or "", path):
        data = from_json(line, where)
        measurement = Measurement.from_dict(data, where)
        measurements[int(where.rsplit(" ", 1)[1])] = measurement, frozenset((*data, *data["figures"]))
    return measurements


def _below(directory: Path, name: str) -> Path | None:
    path = directory / name
    try:
        if not path.resolve().is_relative_to(directory.resolve()):
            raise DamagedData(f"{directory}: {name} lies outside of the run")
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, a zero byte, a loop of links
        raise DamagedData(f"{directory}: {name[:100]} is no name of a file ({error})") from None


def _named_by_raw(
    directory: Path, measurements: dict[int, tuple[Measurement, frozenset[str]]]
) -> dict[int, StoredResult]:
    """Returns the results that no line of ``tests.jsonl`` names; the first line of a raw file identifies its result."""
    raws: dict[tuple[str, str, float], Path] = {}
    for path in sorted(directory.glob("raw/**/*.jsonl")):
        try:
            with open_regular(path) as file:
                head = from_json(file.readline(MOST_STORED_BYTES).decode(errors="replace"), f"{path} line 1")
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror})") from None
        with suppress(KeyError, TypeError):  # a foreign file belongs to no result
            raws[(head["case"], head["dimension"], head["started_at"])] = path
    results = {}
    for line, (measurement, names) in measurements.items():
        raw = raws.get((measurement.case, measurement.dimension, measurement.started_at))
        test = f"{raw.stem if raw else measurement.dimension}[{measurement.case}]"
        results[line] = StoredResult(measurement, names, test, raw)
    return results


def read_with_windows(result: StoredResult) -> Measurement:
    """Reads the measurement with its windows from its raw file.

    Raises DamagedData for a file that is damaged or that belongs to another result, UsageError if it is missing.
    """
    if result.raw is None:
        raise UsageError(f"{result.test}: the file with its windows is missing")
    whole = read_raw(result.raw)
    line = result.measurement
    if (whole.case, whole.dimension, whole.started_at) != (line.case, line.dimension, line.started_at):
        raise DamagedData(f"{result.raw}: holds {whole.case}, not the windows of {line.case}")
    return whole


def read_raw(path: Path) -> Measurement:
    """Reads a raw file: the measurement, its launches and their windows. Raises DamagedData, UsageError."""
    text = read_text(path)
    if text is None:
        raise UsageError(f"{path} cannot be read: it does not exist")
    return parse_raw(text, path)


def parse_raw(text: str, path: Path) -> Measurement:
    """Parses the text of a raw file. The path is for messages. Raises DamagedData."""
    head: dict[str, Any] | None = None
    launches: dict[tuple[str, int], dict[str, Any]] = {}
    for where, line in whole_lines(text, path):
        try:
            data = from_json(line, where)
            kind = data.pop("type")
            if kind == "measurement":
                head = data
            elif kind == "launch":
                launches[(data.pop("of"), data["index"])] = {**data, "windows": []}
            elif kind == "window":
                launches[(data.pop("of"), data.pop("launch"))]["windows"].append(data)
        except (KeyError, AttributeError, TypeError):
            raise DamagedData(f"{where}: not what a run writes") from None
    if head is None:
        raise DamagedData(f"{path}: the line of type measurement is missing")
    whole = Measurement.from_dict(head, str(path))
    by_kind: dict[str, Any] = {
        kind: tuple(decode(Launch, data, str(path)) for (of, _), data in launches.items() if of == name)
        for kind, name in LAUNCHES.items()
    }
    return replace(whole, **by_kind)
