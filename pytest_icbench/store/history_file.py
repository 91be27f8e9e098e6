# SPDX-License-Identifier: BSD-3-Clause
"""The history file: one result a line, appended and never rewritten."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.model import comparability
from pytest_icbench.model.codec import DamagedData, check_schema, decode, encode, from_json
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.text_files import MOST_STORED_BYTES, open_regular, read_bytes
from pytest_icbench.model.verdict import Verdict

#: Seconds without a session after which the host may have changed: a change that shows later may lie anywhere between.
GAP_S = 14 * 86400.0

#: Version of a line. Readers report newer lines and skip them.
SCHEMA = 1

#: Size of the end of a file in which its newest result is searched, in bytes.
_END = 1 << 16
#: How long the lock of a file is waited for, in seconds: a run holds it for as long as it writes.
LOCK_S = 10.0

#: Figures that a line keeps, by dimension: name, and whether less is better. The first one is shown by default.
FIGURES: Mapping[str, tuple[tuple[str, bool], ...]] = {
    "throughput": (("throughput_pps", False), ("cycles_per_packet", True)),
    "application": (("operations_per_second", False), ("response_p99_ns", True)),
    "startup": (("startup_ns", True),),
    "latency": (("rtt_p50_ns", True), ("rtt_p99_ns", True)),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % interval; None without an interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One result in the history.

    Attributes:
        at: when it was measured, seconds since the epoch.
        run: name of the run's directory.
        case, dimension, metric, verdict: as in a result.
        host: digest of the facts that must match in a comparison.
        machine: the processor.
        version: of the switch; null if it is unknown.
        figures: by name (``throughput_pps cycles_per_packet``, or ``rtt_p50_ns rtt_p99_ns``): ``value``, ``low`` and
            ``high``.
    """

    at: float
    run: str
    case: str
    dimension: str
    metric: str
    host: str
    machine: str
    verdict: str | None
    figures: dict[str, Any]
    version: str | None = None

    def figure(self, name: str) -> Figure | None:
        """Returns one of ``figures``; None if the line does not have it."""
        fields = self.figures.get(name)
        return None if fields is None else Figure(fields["value"], fields.get("low"), fields.get("high"))


def host_key(result: Measurement, patterns: Sequence[str] = comparability.DEFAULT) -> str:
    """Returns a digest of the facts that must match, of twelve hexadecimal digits. Comparable results share it."""
    kept = {
        name: value
        for name, value in comparability.facts(result).items()
        if name != "metric" and comparability.matches(name, patterns)
    }
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def make_entry(result: Measurement, run: str, patterns: Sequence[str] = comparability.DEFAULT) -> Entry | None:
    """Returns the line of a result; None if it is INVALID or has none of the figures."""
    if result.verdict == Verdict.INVALID:
        return None
    figures = {}
    for name, _ in FIGURES.get(result.dimension, ()):
        estimate = result.estimate(name)
        if estimate is not None:
            figures[name] = encode(Figure(estimate.value, estimate.low, estimate.high))
    if not figures:
        return None
    return Entry(
        at=result.started_at,
        run=run,
        case=result.case,
        dimension=result.dimension,
        metric=result.metric,
        host=host_key(result, patterns),
        machine=str(result.identity.get("cpu_model") or "unknown"),
        verdict=result.verdict,
        figures=figures,
        version=(result.treatment.get("switch") or {}).get("version"),
    )


def append(file: Path, entries: Iterable[Entry]) -> int:
    """Appends and syncs lines; returns their number. An unfinished line of a killed run stays a separate line.

    Raises ProvisionError if the file cannot be written.
    """
    lines = [
        json.dumps({"schema": SCHEMA, **encode(entry)}, allow_nan=False, separators=(",", ":")) for entry in entries
    ]
    if not lines:
        return 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open_regular(file, append=True) as stream:
            _lock(stream)  # several runs can append at once
            size = stream.seek(0, os.SEEK_END)
            if size:
                stream.seek(size - 1)
                unfinished = stream.read(1) != b"\n"
            else:
                unfinished = False
            stream.write(("\n" * unfinished + "\n".join(lines) + "\n").encode())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise ProvisionError(f"the history {file} cannot be written ({error.strerror})") from None
    return len(lines)


def _lock(stream: BinaryIO) -> None:
    """Locks a file, for which it waits a while. Raises OSError."""
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise OSError(errno.EBUSY, f"another process has locked it for {LOCK_S:g} s") from None
        time.sleep(0.01)


def newest_at(file: Path) -> float | None:
    """Returns the time of the newest of the last results in seconds since the epoch; None without results.

    Raises UsageError if the file cannot be read.
    """
    if not file.exists():
        return None
    try:
        with open_regular(file) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - _END, 0))
            lines = stream.read().split(b"\n")
    except OSError as error:
        raise UsageError(f"the history {file} cannot be read ({error.strerror})") from None
    times = []
    for line in lines[size > _END :]:
        with suppress(DamagedData):
            times.append(_entry(line, str(file)).at)
    return max(times, default=None)


def read(file: Path) -> tuple[list[Entry], list[str]]:
    """Returns the readable lines in the file's order, and a sentence for each unreadable one.

    Raises UsageError if the file cannot be read at all.
    """
    try:
        lines = read_bytes(file, MOST_STORED_BYTES).split(b"\n")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"the history {file} cannot be read ({why})") from None
    entries, troubles = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(_entry(line, f"{file} line {number}"))
        except DamagedData as error:
            troubles.append(f"{error}; the line is left out")
    return entries, troubles


def _entry(line: bytes, where: str) -> Entry:
    try:
        data = from_json(line, where)
    except DamagedData:
        raise DamagedData(f"{where}: damaged, not valid JSON") from None
    check_schema(data, SCHEMA, where, "damaged, not a line of a history")
    entry = decode(Entry, data, where)
    for name, figure in entry.figures.items():
        decode(Figure, figure, f"{where}: {name}")
    return entry
