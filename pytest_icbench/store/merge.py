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

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.model import circumstances
from pytest_icbench.model.codec import encode
from pytest_icbench.store.baselines import host_name
from pytest_icbench.store.history import append, entry_of
from pytest_icbench.store.parcel import unpack
from pytest_icbench.store.results import FILE_NAME, append_line, create_run, unwritten
from pytest_icbench.store.run import RUN_FILE, SCHEMA, ResultPlace, RunInfo, TestRecord, append_test

#: The fields of ``RunInfo`` that each host of a run has.
_OF_A_HOST = ("identity", "treatment", "versions", "binaries")


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
        self._argv = tuple(argv)
        self._lines = 0
        self._info: RunInfo | None = None
        self._hosts: dict[str, dict[str, Any]] = {}
        self._places: dict[str, list[ResultPlace]] = {}

    def add(self, nodeid: str, results: Sequence[Mapping[str, Any]], sent: Mapping[str, Any]) -> None:
        """Writes a test's results; they are on the disk when it returns.

        Args:
            results: as lines of ``results.jsonl``.
            sent: the worker's parcel, as ``pack`` made it.

        Raises:
            ProvisionError: the files cannot be written, or the parcel is none of this package: nothing is written.
        """
        try:
            parcel = unpack(sent, results)
        except UsageError as error:
            raise ProvisionError(f"the results of {nodeid} that a worker sent are refused: {error}") from None
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
                entry = entry_of(result.measurement, self._directory.name, self._patterns)
                append(self._history, [entry] if entry is not None else [])

    def _keep_baseline(self, files: Mapping[str, str], host: str) -> None:
        """Writes a worker's baseline; for a host's figures its own worker's copy wins over the others'."""
        for name, text in files.items():
            path = self._directory / name
            if path.parent.name == host or not path.exists():
                self._write(path, text, "the baseline")

    def _note_host(self, info: RunInfo) -> None:
        """Writes ``run.json``: the first worker's, with the facts of every host as soon as there are several."""
        machine = str(info.identity.get("machine"))
        if machine in self._hosts:
            return
        self._hosts[machine] = {name: getattr(info, name) for name in _OF_A_HOST}
        self._info = self._info or replace(info, argv=self._argv)
        hosts = tuple(self._hosts.values()) if len(self._hosts) > 1 else ()
        fresh = self._directory / f".{RUN_FILE}"
        data = {"schema": SCHEMA, **encode(replace(self._info, hosts=hosts))}
        append_line(fresh, json.dumps(data, allow_nan=False, indent=1))
        fresh.replace(self._directory / RUN_FILE)

    def _raw(self, name: str, text: str | None) -> str:
        """Writes windows under a free name, since two hosts can send the same, and returns that name."""
        path = self._directory / name
        number = 1
        while path.exists():
            number += 1
            path = (self._directory / name).with_name(f"{Path(name).stem}-{number}.jsonl")
        if text is not None:
            self._write(path, text, "raw windows")
        return str(path.relative_to(self._directory))

    def _write(self, path: Path, text: str, subject: str) -> None:
        """Writes a file of the run. Raises ProvisionError if it cannot, or if a link leads out of the run."""
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
