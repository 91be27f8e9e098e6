# SPDX-License-Identifier: BSD-3-Clause
"""The file of waivers, ``DIR/waivers.json``: sorted, and easy to read and edit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.judge import Waiver
from pytest_icbench.model.codec import DamagedData, decode, encode
from pytest_icbench.store.run_directory import Document, read_text, replace_file

FILE_NAME = "waivers.json"
FORMAT = "pytest-icbench waivers"
#: Version of the format.
SCHEMA = 1
_DOCUMENT = Document(FORMAT, SCHEMA, "these are no waivers of pytest-icbench", "restore it")


def load(directory: Path) -> tuple[Waiver, ...]:
    """Reads the waivers of a directory of baselines; none without a file. Raises UsageError, DamagedData naming it."""
    path = directory / FILE_NAME
    text = read_text(path)
    return () if text is None else read(text, str(path))


def read(text: str, where: str) -> tuple[Waiver, ...]:
    """Parses a file's waivers. Raises DamagedData with one sentence that begins with ``where``."""
    data = _DOCUMENT.parse(text, where)
    if not isinstance(data.get("waivers"), list):
        raise DamagedData(f"{where}: {_DOCUMENT.stranger}")
    waivers = []
    for number, fields in enumerate(data["waivers"], 1):
        waiver = decode(Waiver, fields, f"{where}: waiver {number}")
        try:
            parse_day(waiver.until, f"{where}: waiver {number}: until")
        except UsageError as error:
            raise DamagedData(str(error)) from None
        waivers.append(waiver)
    return tuple(waivers)


def write(waivers: Sequence[Waiver]) -> str:
    """Returns the text of a file: sorted, one value a line."""
    ordered = sorted(set(waivers), key=lambda waiver: (waiver.case, waiver.until, waiver.reason))
    data = {"format": FORMAT, "schema": SCHEMA, "waivers": [encode(waiver) for waiver in ordered]}
    return json.dumps(data, indent=1) + "\n"


def save(directory: Path, waivers: Sequence[Waiver]) -> Path:
    """Replaces the file and returns its path. Raises ProvisionError."""
    path = directory / FILE_NAME
    replace_file(path, write(waivers))
    return path


def parse_day(text: str, where: str) -> date:
    """Parses ``YYYY-MM-DD``. Raises UsageError that begins with ``where``."""
    try:
        day = date.fromisoformat(text)
        if day.isoformat() != text:  # fromisoformat reads other notations too
            raise ValueError
        return day
    except ValueError:
        raise UsageError(f"{where}: '{text}' is no day; write it as 2026-01-31") from None
