# SPDX-License-Identifier: BSD-3-Clause
"""What a run's directory holds beside its results, so that it can be judged, repeated and resumed elsewhere. Pure data.

``run.json`` is written once, before anything is measured: how pytest was called, on which host, with which files.
``tests.jsonl`` has a line a test, written when the test is over: its outcome, and the places of its results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import DamagedData, check_schema, decode, encode
from pytest_icbench.store.results import append_line

RUN_FILE = "run.json"
TESTS_FILE = "tests.jsonl"
BASELINES = "baselines"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunInfo:
    """How a run was made.

    Attributes:
        run: its name.
        started_at: seconds since the epoch.
        argv: pytest's arguments, as they were given.
        directory, rootdir: where pytest was called, and what node ids are relative to.
        options: options and ini values that were set, by the name under which the user wrote them.
        versions: of pytest, Python and this package.
        files: text of every file that bears on results and verdicts (limits, configurations of switches, ini file), by
            the path that it had.
        binaries: of the workload, and of each switch and candidate: path, SHA-256 and version; None for what lacks.
        identity, treatment: of the host and of what is tested, as in results; without what only a running switch tells.
        hosts: of a run on several machines, for each its identity, treatment, versions and binaries; empty for one.
        baseline: name of the baseline that was compared with, a copy of which is in ``baselines/``.
        incomparable: facts that have to be the same in a comparison.
        resumed: name of the run from which results were taken, None for none.
    """

    run: str
    started_at: float
    argv: tuple[str, ...]
    directory: str
    rootdir: str
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    binaries: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    treatment: dict[str, Any] = field(default_factory=dict)
    hosts: tuple[dict[str, Any], ...] = ()
    resumed: str | None = None
    baseline: str | None = None
    incomparable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """Where one result of a test is, and by what it was judged.

    Attributes:
        line: in ``results.jsonl``, from 1.
        raw: path of its windows, relative to the run.
        limits: as ``Limit`` has them; None if nobody judged it. margins: as ``Margins`` has them.
        taken_from: the run that measured it, if not this one.
    """

    line: int
    raw: str
    limits: tuple[dict[str, Any], ...] | None = None
    margins: dict[str, Any] = field(default_factory=dict)
    taken_from: str | None = None


@dataclass(frozen=True, slots=True)
class TestRecord:
    """One test that is over. ``outcome``: ``passed failed skipped error``; ``reason``: of a failure or a skip."""

    __test__ = False  # pytest

    nodeid: str
    outcome: str
    duration_s: float
    reason: str | None = None
    repeat: str | None = None
    results: tuple[ResultPlace, ...] = ()


def write_info(run: Path, info: RunInfo) -> None:
    """Raises ProvisionError if it cannot be written."""
    append_line(run / RUN_FILE, json.dumps({"schema": SCHEMA, **encode(info)}, allow_nan=False, indent=1))


def read_info(run: Path) -> RunInfo | None:
    """None for a run without one: it is older than this file. Raises DamagedData."""
    path = run / RUN_FILE
    text = _text(path)
    return None if text is None else _decoded(RunInfo, text, str(path))


def append_test(run: Path, record: TestRecord) -> None:
    """On the disk when it returns. Raises ProvisionError if it cannot be written."""
    append_line(run / TESTS_FILE, json.dumps({"schema": SCHEMA, **encode(record)}, allow_nan=False))


def read_tests(run: Path) -> list[TestRecord]:
    """A last line that was cut off, as by a crash, is left out. Raises DamagedData for any other damage."""
    path = run / TESTS_FILE
    text = _text(path)
    return [] if text is None else [_decoded(TestRecord, line, where) for where, line in whole_lines(text, path)]


def whole_lines(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Lines that end as lines do, each with its name for messages."""
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        if line:
            yield f"{path} line {number}", line


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _decoded(kind: Any, text: str, where: str) -> Any:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise DamagedData(f"{where}: not valid JSON ({error})") from None
    check_schema(data, SCHEMA, where, "this was not written by pytest-icbench")
    return decode(kind, data, where)
