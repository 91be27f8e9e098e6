# SPDX-License-Identifier: BSD-3-Clause
"""The files of a run beside its results, by which it can be judged, repeated and resumed elsewhere.

``run.json`` is written once, before the first measurement: how pytest was called, on which host, with which files.
``tests.jsonl`` has a line for each test, written when the test is over: its outcome, and the places of its results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import check_schema, decode, encode, from_json
from pytest_icbench.model.fitness import Fitness
from pytest_icbench.store.results import append_line

RUN_FILE = "run.json"
TESTS_FILE = "tests.jsonl"
BASELINES = "baselines"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The circumstances of a run.

    Attributes:
        run: its name.
        started_at: seconds since the epoch.
        argv: pytest's arguments, as they were given.
        directory: where pytest was called.
        rootdir: the directory that node ids are relative to.
        options: options and ini values that were set, by the names that the user wrote.
        versions: the versions of pytest, Python and this package.
        files: by path the text of every file that affects results and verdicts: scenarios, limits, ini file,
            configurations of switches; above a megabyte its hash.
        binaries: ``path``, ``sha256`` and ``version`` of ``workload`` and of each switch and candidate (``ovs``,
            ``ovs:new``), also from PATH; null for what is missing.
        identity, treatment: as in a result, where the same for all cases, without facts that only a running switch
            provides; on many testbeds those of the first host that measured.
        hosts: list: ``identity``, ``treatment``, ``versions`` and ``binaries`` of each of several machines; empty for
            one.
        baseline: name of the baseline of the comparison; ``baselines/`` has a copy of it.
        incomparable: facts that have to be the same in a comparison.
        resumed: name of the run from which results were taken; null if it resumed no run.
        fitness: whether the host was fit at the start: ``interference`` as in a launch, ``frequency_mhz`` and
            ``frequency_share`` of the slowest CPU, ``controls`` (``case``, ``baseline``, ``ratios``: launches of a
            control link over the baseline's median, ``sessions``: first and ninth decile of its sessions over it),
            ``links`` (``case``, ``switch``, ``launches``: frames per second of links that share no code with paths of
            the other kind), ``waited_s``, ``missing``; null where not examined.
        judged: the number of cases that share the session's error rate.
        order_seed: seed of the random order of the cases; null for that of the files.
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
    fitness: Fitness | None = None
    order_seed: int | None = None
    judged: int = 1


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """The place of one result of a test, and the limits by which it was judged.

    Attributes:
        line: number of the line in ``results.jsonl``, from 1.
        raw: path of its windows, relative to the run.
        limits: the limits that judged it, each ``name kind value source``; null if nobody did.
        margins: keys of ``thresholds.toml`` about baselines, each with value and source.
        taken_from: the run that measured it; null for this run.
    """

    line: int
    raw: str
    limits: tuple[dict[str, Any], ...] | None = None
    margins: dict[str, tuple[float, str]] = field(default_factory=dict)
    taken_from: str | None = None


@dataclass(frozen=True, slots=True)
class TestRecord:
    """A finished test.

    Attributes:
        nodeid: the test.
        outcome: ``passed``, ``failed``, ``skipped`` or ``error``.
        duration_s: how long it took.
        reason: why it failed or was skipped.
        repeat: the command that repeats it.
        results: list of its results.
    """

    __test__ = False  # pytest must not collect it

    nodeid: str
    outcome: str
    duration_s: float
    reason: str | None = None
    repeat: str | None = None
    results: tuple[ResultPlace, ...] = ()


def write_info(run: Path, info: RunInfo) -> None:
    """Writes ``run.json``. Raises ProvisionError if it cannot be written."""
    append_line(run / RUN_FILE, json.dumps({"schema": SCHEMA, **encode(info)}, allow_nan=False, indent=1))


def read_info(run: Path) -> RunInfo | None:
    """Reads ``run.json``; None for a run that is older than this file. Raises UsageError, DamagedData."""
    path = run / RUN_FILE
    text = _text(path)
    return None if text is None else parse_info(text, str(path))


def parse_info(text: str, where: str) -> RunInfo:
    """Parses the text of a ``run.json``. Raises DamagedData with one sentence that begins with ``where``."""
    info: RunInfo = _decoded(RunInfo, text, where)
    return info


def append_test(run: Path, record: TestRecord) -> None:
    """Appends a test; it is on the disk when this returns. Raises ProvisionError if it cannot be written."""
    append_line(run / TESTS_FILE, json.dumps({"schema": SCHEMA, **encode(record)}, allow_nan=False))


def read_tests(run: Path) -> list[TestRecord]:
    """Reads the finished tests; a last line that a crash cut off is left out. Raises DamagedData for other damage."""
    path = run / TESTS_FILE
    text = _text(path)
    return [] if text is None else [_decoded(TestRecord, line, where) for where, line in whole_lines(text, path)]


def whole_lines(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yields the lines that end with a newline, each after its name for messages."""
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
    data = from_json(text, where)
    check_schema(data, SCHEMA, where, "this was not written by pytest-icbench")
    return decode(kind, data, where)
