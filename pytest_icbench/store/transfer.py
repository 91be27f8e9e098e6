# SPDX-License-Identifier: BSD-3-Clause
"""Collects the results of tests on other hosts: the parcels of their workers become the files of one run.

A worker on another host writes its files there. With each test's report it sends a parcel: results, windows and
``run.json`` as texts, in the first report also its baseline. Only the controller writes the history. It does not trust
the worker's host, so it checks a parcel before it writes anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.gate.limits import Limit
from pytest_icbench.model import comparability
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store import baselines
from pytest_icbench.store.baselines import host_name
from pytest_icbench.store.history_file import append, make_entry
from pytest_icbench.store.run_directory import (
    BASELINES,
    FILE_NAME,
    ResultPlace,
    TestRecord,
    append_line,
    append_test,
    create_run,
    parse_record,
    path_part,
    unwritten,
)
from pytest_icbench.store.run_json import RUN_FILE, RunInfo, write_info
from pytest_icbench.store.stored_run import parse_raw

#: The greatest length of a file that a worker sends, in characters: the windows of a long run on many pairs.
LONGEST_TEXT = 1 << 29
#: The greatest number of baseline files, and of results of one test.
MOST_FILES = 10_000

#: A component of a path as ``path_part`` makes it, with an ending and a distinguishing number; never only dots.
_PART = r"(?!\.+(?:/|\Z))[A-Za-z0-9_+.=%-]{1,220}"
_RAW = re.compile(rf"raw(?:/{_PART}){{0,7}}/{_PART}\.jsonl", re.ASCII)
_BASELINE = re.compile(rf"{BASELINES}(?:/{_PART}){{2}}/{_PART}\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class SentResult:
    """A result of a parcel.

    Attributes:
        line: its line in ``results.jsonl``.
        windows: the text of its raw file; None if the worker could not read it.
        place: its place on the worker's host, with 1 for the line.
    """

    line: str
    measurement: Measurement
    windows: str | None
    place: ResultPlace


@dataclass(frozen=True, slots=True)
class Parcel:
    """A checked parcel: a worker of this package can have sent its names and texts.

    Attributes:
        info: the worker's ``run.json``; None if it had none.
        baseline: texts of baseline files by path relative to the run.
    """

    info: RunInfo | None
    baseline: Mapping[str, str] = field(default_factory=dict)
    results: tuple[SentResult, ...] = ()


def pack(run: Path, places: Sequence[ResultPlace], *, first: bool = False) -> dict[str, Any]:
    """Returns the parcel of a test's report: the places of its results and the texts of files.

    ``first``: whether this is the worker's first report, which includes the baseline.
    """
    baseline = sorted((run / BASELINES).rglob("*.json")) if first else []
    return {
        "run": _text(run / RUN_FILE),
        "baseline": {"/".join(map(path_part, path.relative_to(run).parts)): _text(path) for path in baseline},
        "places": [
            {
                "raw": place.raw,
                "text": _text(run / place.raw),
                "limits": place.limits,
                "margins": place.margins,
                "taken_from": place.taken_from,
            }
            for place in places
        ],
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def unpack(sent: Any, results: Any) -> Parcel:
    """Checks a parcel and returns its content. Raises DamagedData if no worker of this package can have sent it.

    Args:
        sent: what ``pack`` returned on the worker's host, as it arrived.
        results: the test's results as lines of ``results.jsonl``.
    """
    if not isinstance(sent, dict) or not isinstance(results, list):
        raise DamagedData("the parcel: no object with a list of results")
    run = _checked_text(sent.get("run"), RUN_FILE)
    places = sent.get("places")
    if not isinstance(places, list) or len(places) != len(results) or len(places) > MOST_FILES:
        raise DamagedData("the parcel: the results do not belong to its places")
    return Parcel(
        info=None if run is None else parse_record(RunInfo, run, f"the parcel: {RUN_FILE}"),
        baseline=_baseline(sent.get("baseline") or {}),
        results=tuple(_result(result, place) for result, place in zip(results, places, strict=True)),
    )


def _checked_text(text: Any, name: str) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise DamagedData(f"the parcel: {name} is not a text of at most {LONGEST_TEXT} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DamagedData(f"the parcel: {name} is not a text: it has half of a character") from None
    return text


def _checked_name(name: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(name, str) or pattern.fullmatch(name) is None:
        raise DamagedData(f"the parcel: {ascii(name)[:100]} is no name that a run gives to a file")
    return name


def _baseline(files: Any) -> dict[str, str]:
    if not isinstance(files, dict) or len(files) > MOST_FILES:
        raise DamagedData("the parcel: its baseline is no object with files")
    texts = {_checked_name(name, _BASELINE): _checked_text(text, "a baseline") for name, text in files.items()}
    for name, text in texts.items():
        if text is not None:
            baselines.parse_baseline(text, f"the parcel: {name}")
    return {name: text for name, text in texts.items() if text is not None}


def _result(result: Any, sent: Any) -> SentResult:
    if not isinstance(sent, dict):
        raise DamagedData("the parcel: the place of a result is no object")
    name = _checked_name(sent.get("raw"), _RAW)
    where = f"the parcel: {name}"
    place = decode(ResultPlace, {**sent, "line": 1}, where)
    for limit in place.limits or ():
        decode(Limit, limit, f"{where}: limits")
    windows = _checked_text(sent.get("text"), name)
    measurement = Measurement.from_dict(result, where)
    if windows is not None:
        whole = parse_raw(windows, Path(name))
        if (whole.case, whole.dimension) != (measurement.case, measurement.dimension):
            raise DamagedData(f"{where}: its windows are not those of its result")
    try:
        line = json.dumps(result, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise DamagedData(f"{where}: the result is no JSON") from None
    return SentResult(line, measurement, windows, place)


#: The fields of ``RunInfo`` that are kept for each host of a run.
_OF_A_HOST = ("identity", "treatment", "versions", "binaries")


class RunMerger:
    """Writes a run's directory from parcels.

    Args:
        argv: pytest's arguments on the controller.
        history: the file to which results are appended; None for no history.
        patterns: facts that must match in a comparison.
    """

    def __init__(
        self,
        directory: Path,
        argv: Sequence[str],
        history: Path | None = None,
        patterns: Sequence[str] = comparability.DEFAULT,
    ) -> None:
        self._history = history
        self._patterns = patterns
        self._directory = directory
        self._argv = tuple(argv)
        self._lines = 0
        self._info: RunInfo | None = None
        self._hosts: dict[str, dict[str, Any]] = {}
        self._places: dict[str, list[ResultPlace]] = {}

    def add(
        self, nodeid: str, results: Sequence[Mapping[str, Any]], sent: Mapping[str, Any], sender: str = "a worker"
    ) -> None:
        """Writes a test's results and syncs them to disk.

        Args:
            results: as lines of ``results.jsonl``.
            sent: the worker's parcel, as ``pack`` made it.
            sender: the worker, for messages.

        Raises ProvisionError: the files cannot be written, or the parcel is refused. Nothing is written then.
        """
        try:
            parcel = unpack(sent, results)
        except UsageError as error:
            raise ProvisionError(
                f"the results of {nodeid} that {sender} sent are refused: {error}: install the same pytest-icbench"
                " there"
            ) from None
        create_run(self._directory.parent, self._directory.name)
        if parcel.info is not None:
            self._note_host(parcel.info)
            self._keep_baseline(parcel.baseline, host_name(parcel.info.identity))
        for result in parcel.results:
            raw = self._raw(result.place.raw, result.windows)
            append_line(self._directory / FILE_NAME, result.line)
            self._lines += 1
            self._places.setdefault(nodeid, []).append(replace(result.place, line=self._lines, raw=raw))
            if self._history is not None and result.place.taken_from is None:
                entry = make_entry(result.measurement, self._directory.name, self._patterns)
                append(self._history, [entry] if entry is not None else [])

    def _keep_baseline(self, files: Mapping[str, str], host: str) -> None:
        """Writes a worker's baseline. The figures of a host come from the worker on it."""
        for name, text in files.items():
            path = self._directory / name
            if path.parent.name == host or not path.exists():
                self._write(path, text, "the baseline")

    def _note_host(self, info: RunInfo) -> None:
        """Writes ``run.json``: that of the first worker, with the facts of every host if there are several."""
        machine = str(info.identity.get("machine"))
        if machine in self._hosts:
            return
        self._hosts[machine] = {name: getattr(info, name) for name in _OF_A_HOST}
        self._info = self._info or replace(info, argv=self._argv)
        hosts = tuple(self._hosts.values()) if len(self._hosts) > 1 else ()
        write_info(self._directory, replace(self._info, hosts=hosts), replaces=True)

    def _raw(self, name: str, text: str | None) -> str:
        """Writes windows and returns their name, which is new even if two hosts send equal names."""
        path = self._directory / name
        number = 1
        while path.exists():
            number += 1
            path = (self._directory / name).with_name(f"{Path(name).stem}-{number}.jsonl")
        if text is not None:
            self._write(path, text, "raw windows")
        return str(path.relative_to(self._directory))

    def _write(self, path: Path, text: str, subject: str) -> None:
        """Writes a file of the run. Raises ProvisionError if that fails or a link leads out of the run."""
        if not path.resolve().is_relative_to(self._directory.resolve()):
            raise ProvisionError(f"{subject} cannot be written: a symbolic link leads out of {self._directory}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise unwritten(subject, error) from None

    def note(self, record: TestRecord) -> None:
        """Records that a test is over. Raises ProvisionError."""
        create_run(self._directory.parent, self._directory.name)
        places = tuple(self._places.pop(record.nodeid, ()))
        append_test(self._directory, replace(record, results=places))
