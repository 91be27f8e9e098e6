# SPDX-License-Identifier: BSD-3-Clause
"""The files of a run: its directory, its results and its tests. ``run.json`` is in ``store.run_json``.

``results.jsonl`` has a line for each case, which is on the disk before the next case begins. ``tests.jsonl`` has a line
for each test, written when the test is over: its outcome, and the places of its results.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.model import text_files
from pytest_icbench.model.codec import DamagedData, check_schema, decode, encode, from_json
from pytest_icbench.model.text_files import MOST_STORED_BYTES, open_regular

T = TypeVar("T")
FILE_NAME = "results.jsonl"
#: The link in the directory of runs that points to the newest one.
LATEST = "latest"


def run_name(now: datetime | None = None, pid: int | None = None) -> str:
    """Returns the name of a run's directory: UTC time and process id, as ``20190131T235959Z-1234``."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{os.getpid() if pid is None else pid}"


def new_run_name(reports: Path) -> str:
    """Returns an unused name, since one process can make several runs within a second."""
    name = run_name()
    number = 2
    while (reports / name).exists():
        name = f"{run_name()}-{number}"
        number += 1
    return name


def unwritten(subject: str, error: OSError) -> ProvisionError:
    """Returns the error for a file that a run cannot write."""
    return ProvisionError(f"{subject} cannot be written: {error}; make room or name another --icbench-reports")


def create_run(reports: Path, name: str) -> Path:
    """Makes a run's directory and points ``latest`` to it. Raises ProvisionError if it cannot be written."""
    run = reports / name
    try:
        run.mkdir(parents=True, exist_ok=True)
        _point(reports / LATEST, name)
    except OSError as error:
        raise ProvisionError(
            f"the reports cannot be written: {error}; name another directory: --icbench-reports"
        ) from None
    return run


def explain_stale_latest(reports: Path) -> str | None:
    """Returns why ``latest`` does not point to the newest run, None if it does: copied, the link became a directory."""
    latest = reports / LATEST
    if latest.is_symlink() or not latest.is_dir():
        return None
    return f"{latest} is a directory, so it is not this run, and commands that take it show an older one: remove it"


def drop_run(run: Path) -> None:
    """Removes an empty directory of a run, and the link to it."""
    with suppress(OSError):
        run.rmdir()
        latest = run.parent / LATEST
        if latest.is_symlink() and str(latest.readlink()) == run.name:
            latest.unlink()


def _point(link: Path, target: str) -> None:
    """Replaces the link atomically, so that it always exists."""
    fresh = link.with_name(f".{LATEST}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    if link.is_dir() and not link.is_symlink():
        fresh.unlink()
        return  # a directory of the user: leave it alone
    fresh.replace(link)


def append_line(path: Path, line: str) -> None:
    """Appends a line and syncs it to disk. A line that cannot be written completely is removed again.

    Raises ProvisionError with the system's reason.
    """
    data = line.encode() + b"\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        before = os.fstat(fd).st_size
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, before)
                if not before:
                    path.unlink()
            raise
        finally:
            os.close(fd)
    except OSError as error:
        raise unwritten("a result", error) from None


def replace_file(path: Path, text: str) -> None:
    """Replaces a file atomically: after a crash it has the old or the new text. Raises ProvisionError."""
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


def count_lines(path: Path) -> int:
    """Returns the number of whole lines of a file that ``append_line`` writes, and cuts off what a crash has left.

    Raises ProvisionError if the file cannot be read or written.
    """
    if not path.exists():
        return 0
    try:
        with open_regular(path, append=True) as file:
            size, lines = 0, 0
            file.seek(0)
            for line in file:
                if line.endswith(b"\n"):
                    size, lines = size + len(line), lines + 1
            file.truncate(size)
            return lines
    except OSError as error:
        raise unwritten("a result", error) from None


_UNSAFE = re.compile(r"[^A-Za-z0-9_+.=-]", re.ASCII)


def path_part(text: str) -> str:
    """Escapes text as one component of a path, of 200 bytes at most and never empty, ``.`` or ``..``.

    All characters but ``A-Z a-z 0-9 _ + . = -`` are percent-escaped (UTF-8).
    """
    safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text)
    if safe.strip(".") == "":
        safe = safe.replace(".", "%2E") or "%"
    return safe[:200]


TESTS_FILE = "tests.jsonl"
BASELINES = "baselines"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """The place of one result of a test, and the limits by which it was judged.

    Attributes:
        line: number of the line in ``results.jsonl``, from 1.
        raw: path of its windows, relative to the run.
        limits: the limits that judged it, each ``name kind value source``; null if there are none.
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


def parse_record(kind: type[T], text: str, where: str) -> T:
    """Parses a record of a run. Raises DamagedData with one sentence that begins with ``where``."""
    data = from_json(text, where)
    check_schema(data, SCHEMA, where, "this was not written by pytest-icbench")
    record: T = decode(kind, data, where)
    return record


def append_test(run: Path, record: TestRecord) -> None:
    """Appends a test and syncs it to disk. Raises ProvisionError if it cannot be written."""
    append_line(run / TESTS_FILE, json.dumps({"schema": SCHEMA, **encode(record)}, allow_nan=False))


def read_tests(run: Path) -> list[TestRecord]:
    """Reads the finished tests. Skips a last line that a crash cut off. Raises DamagedData for other damage."""
    path = run / TESTS_FILE
    text = read_text(path)
    return [] if text is None else [parse_record(TestRecord, line, where) for where, line in whole_lines(text, path)]


def whole_lines(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yields complete lines, each with its name for messages before it."""
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        if line:
            yield f"{path} line {number}", line


def read_text(path: Path, remedy: str = "") -> str | None:
    """Returns the text of a file, None if there is none. ``remedy``: end of the message.

    Raises UsageError if it cannot be read.
    """
    try:
        return text_files.read_text(path, MOST_STORED_BYTES, remedy=remedy)
    except UsageError as error:
        if isinstance(error.__context__, FileNotFoundError):
            return None
        raise


@dataclass(frozen=True, slots=True)
class Document:
    """A kind of JSON file that users keep.

    Attributes:
        format: the value of its key ``format``.
        schema: version of the format. A reader refuses all others.
        stranger: the clause for messages about a file of another kind.
        remedy: the remedy for a damaged file.
    """

    format: str
    schema: int
    stranger: str
    remedy: str

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Parses a file's text. Raises DamagedData with one sentence that begins with ``where``."""
        try:
            data = from_json(text, where, _reject_duplicates)
        except DamagedData as error:
            why = str(error).removeprefix(f"{where}: ")
            raise DamagedData(f"{where}: damaged or cut off ({why}); {self.remedy}") from None
        if not text.endswith("}\n"):
            raise DamagedData(f"{where}: cut off, its last line has no end; {self.remedy}")
        if not isinstance(data, dict) or data.get("format") != self.format:
            raise DamagedData(f"{where}: {self.stranger}")
        check_schema(data, self.schema, where, self.stranger)
        return data


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' occurs twice")
    return data
