# SPDX-License-Identifier: BSD-3-Clause
"""Reads a load that changes from a file: a line a second, ``SECOND,RATE`` or with a rate for each pair."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.trace import MOST_SECONDS, Trace

#: The beginning of a rate that is a trace.
PREFIX = "trace:"
_RATE = re.compile(r"\d{1,9}", re.ASCII)
_MOST_BYTES = 2**20


def trace_rate(token: str, where: str) -> Rate:
    """Returns the rate of ``trace:steps:30k`` or ``trace:FILE``; a relative path begins at the working directory.

    Raises:
        UsageError: the file cannot be read; a second is missing, or a rate is none; with the line.
    """
    text = token.removeprefix(PREFIX)
    trace = Trace.of(text)
    if trace is not None and not trace.columns:
        return Rate(trace=trace)
    path = Path(text)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)  # devices have no size, and some no end
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{where}: {path} is no trace: it has more than {_MOST_BYTES} bytes")
        lines = data.decode().splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{where}: '{token[:80]}' is no trace ({error.strerror if isinstance(error, OSError) else error}): write"
            " trace:steps:30k, trace:shift:30k, trace:freeze:30k, trace:random:SEED:30k with the greatest rate, or"
            " trace:FILE"
        ) from None
    return Rate(trace=_read(lines, path, where))


def _read(lines: list[str], path: Path, where: str) -> Trace:
    rows: list[list[int]] = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        at = f"{where}: {path} line {number}"
        if not words:
            continue
        for word in words:
            if not _RATE.fullmatch(word):
                raise UsageError(
                    f"{at}: '{word[:20]}' is no number of frames per second: write SECOND,RATE (0 to 999999999)"
                )
        second, *rates = map(int, words)
        if second != len(rows):
            raise UsageError(f"{at}: second {second} is where {len(rows)} belongs: a trace has every second, from 0")
        if not rates or (rows and len(rates) != len(rows[0])):
            expected = f"{len(rows[0])}" if rows else "one at least"
            raise UsageError(
                f"{at}: {len(rates)} rates, and each second needs {expected}: one for all pairs, or for each"
            )
        rows.append(rates)
    if not rows or len(rows) > MOST_SECONDS or not any(map(any, rows)):
        raise UsageError(f"{where}: {path} is no trace: it needs 1 to {MOST_SECONDS} seconds, and a rate above 0")
    label = re.sub(r"[^\w.]", "_", path.stem, flags=re.ASCII)[:40]
    return Trace(label, tuple(zip(*rows, strict=True)))
