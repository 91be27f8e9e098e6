# SPDX-License-Identifier: BSD-3-Clause
"""The parcel that a worker on another host sends with a test's report.

The worker's host is not trusted with the files of this one: what it sends is read here before anything is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.gate.limits import Limit
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store import baseline_file
from pytest_icbench.store.paths import path_part
from pytest_icbench.store.read import parse_raw
from pytest_icbench.store.run import BASELINES, RUN_FILE, ResultPlace, RunInfo, parse_info

#: The greatest length of a file that a worker sends, in characters: the windows of a long run on many pairs.
LONGEST_TEXT = 1 << 29
#: The greatest number of baseline files, and of results of one test.
MOST_FILES = 10_000

#: A component as ``path_part`` makes them, with the ending and the number that tell files apart; never dots alone.
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
    """A parcel whose names and texts are what a worker of this package sends.

    Attributes:
        info: the worker's ``run.json``; None if it had none.
        baseline: texts of baseline files by path relative to the run.
    """

    info: RunInfo | None
    baseline: Mapping[str, str] = field(default_factory=dict)
    results: tuple[SentResult, ...] = ()


def pack(run: Path, places: Sequence[ResultPlace], *, first: bool = False) -> dict[str, Any]:
    """Returns what a worker sends with a test's report: the places of its results and the texts of files.

    Args:
        first: with the first report of a worker the baseline is sent too.
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
    """Returns the content of a parcel. Raises DamagedData for one that no worker of this package sends.

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
        info=None if run is None else parse_info(run, f"the parcel: {RUN_FILE}"),
        baseline=_baseline(sent.get("baseline") or {}),
        results=tuple(_result(result, place) for result, place in zip(results, places, strict=True)),
    )


def _checked_text(text: Any, name: str) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise DamagedData(f"the parcel: {name} is no text of at most {LONGEST_TEXT} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DamagedData(f"the parcel: {name} is no text: it has half a character") from None
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
            baseline_file.read(text, f"the parcel: {name}")
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
