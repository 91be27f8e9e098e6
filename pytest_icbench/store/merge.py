# SPDX-License-Identifier: BSD-3-Clause
"""A run whose tests ran on several hosts: the parcels of their workers become one run's files, test by test.

A worker on another host writes its files there. It sends results, windows and ``run.json`` as texts with a test's
report, and its baseline with the first report. Only the controller writes the history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.model import circumstances
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.store.baselines import host_name
from pytest_icbench.store.history import append, entry_of
from pytest_icbench.store.results import FILE_NAME, append_line, create_run
from pytest_icbench.store.run import BASELINES, RUN_FILE, ResultPlace, TestRecord, append_test


def parcel(run: Path, places: Sequence[ResultPlace], *, first: bool = False) -> dict[str, Any]:
    """Returns what a worker sends with a test's report: the places of its results and the texts of files.

    Args:
        first: with the first report of a worker the baseline is sent too.
    """
    baseline = sorted((run / BASELINES).rglob("*.json")) if first else []
    return {
        "run": _text(run / RUN_FILE),
        "baseline": {str(path.relative_to(run)): _text(path) for path in baseline},
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


def _write(path: Path, text: str, subject: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProvisionError(
            f"{subject} cannot be written: {error}; make room or name another --icbench-reports"
        ) from None


class Merge:
    """Writes a run's directory from parcels.

    Args:
        directory: the run's directory.
        argv: pytest's arguments on the controller.
        history: the file to which results are appended; None for no history.
        patterns: facts that have to be the same in a comparison.
    """

    def __init__(
        self,
        directory: Path,
        argv: Sequence[str],
        history: Path | None = None,
        patterns: Sequence[str] = circumstances.DEFAULT,
    ) -> None:
        self._history = history
        self._patterns = patterns
        self._directory = directory
        self._argv = list(argv)
        self._lines = 0
        self._info: dict[str, Any] | None = None
        self._hosts: dict[str | None, dict[str, Any]] = {}
        self._places: dict[str, list[ResultPlace]] = {}

    def add(self, nodeid: str, results: Sequence[Mapping[str, Any]], sent: Mapping[str, Any]) -> None:
        """Writes a test's results; they are on the disk when it returns. Raises ProvisionError.

        Args:
            results: as lines of ``results.jsonl``.
            sent: the worker's ``parcel``.
        """
        create_run(self._directory.parent, self._directory.name)
        if sent["run"] is not None:
            self._note_host(json.loads(sent["run"]))
        if sent["run"] is not None and sent.get("baseline"):
            self._keep_baseline(sent["baseline"], host_name(json.loads(sent["run"])["identity"]))
        for result, place in zip(results, sent["places"], strict=True):
            raw = self._raw(place["raw"], place["text"])
            append_line(self._directory / FILE_NAME, json.dumps(result, allow_nan=False))
            self._lines += 1
            limits = None if place["limits"] is None else tuple(place["limits"])
            here = ResultPlace(self._lines, raw, limits, dict(place["margins"]), place["taken_from"])
            self._places.setdefault(nodeid, []).append(here)
            if self._history is not None and place["taken_from"] is None:
                entry = entry_of(Measurement.from_dict(result), self._directory.name, self._patterns)
                append(self._history, [entry] if entry is not None else [])

    def _keep_baseline(self, files: Mapping[str, str | None], host: str) -> None:
        """Writes a worker's baseline; for a host's figures its own worker's copy wins over the others'."""
        for name, text in files.items():
            path = self._directory / name
            if text is not None and (path.parent.name == host or not path.exists()):
                _write(path, text, "the baseline")

    def _note_host(self, info: Mapping[str, Any]) -> None:
        """Writes ``run.json``: the first worker's, with the facts of every host as soon as there are several."""
        machine = info["identity"].get("machine")
        if machine in self._hosts:
            return
        self._hosts[machine] = {name: info[name] for name in ("identity", "treatment", "versions", "binaries")}
        self._info = self._info or {**info, "argv": self._argv}
        hosts = list(self._hosts.values()) if len(self._hosts) > 1 else []
        fresh = self._directory / f".{RUN_FILE}"
        append_line(fresh, json.dumps({**self._info, "hosts": hosts}, indent=1))
        fresh.replace(self._directory / RUN_FILE)

    def _raw(self, name: str, text: str | None) -> str:
        """Writes windows under a free name, since two hosts can send the same, and returns that name."""
        path = self._directory / name
        number = 1
        while path.exists():
            number += 1
            path = (self._directory / name).with_name(f"{Path(name).stem}-{number}.jsonl")
        if text is not None:
            _write(path, text, "raw windows")
        return str(path.relative_to(self._directory))

    def note(self, record: TestRecord) -> None:
        """Records that a test is over. Raises ProvisionError."""
        create_run(self._directory.parent, self._directory.name)
        places = tuple(self._places.pop(record.nodeid, ()))
        append_test(self._directory, replace(record, results=places))
