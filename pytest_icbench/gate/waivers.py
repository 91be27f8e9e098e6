# SPDX-License-Identifier: BSD-3-Clause
"""Waivers: verdicts that fail no test until a day, with a reason. ``DIR/waivers.json``, readable and sorted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import DamagedData, decode, encode
from pytest_icbench.store.baselines import replace_file

FILE_NAME = "waivers.json"
FORMAT = "pytest-icbench waivers"
#: Version of the form. A reader refuses newer ones.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Waiver:
    """What is waived, why, and until when.

    Attributes:
        case: a pattern (``*``, ``?``, ``[...]``) over case ids.
        reason: for people.
        until: the last day on which it holds, ``YYYY-MM-DD``, in UTC.
    """

    case: str
    reason: str
    until: str

    @property
    def last_day(self) -> date:
        return date.fromisoformat(self.until)

    def holds(self, today: date) -> bool:
        return today <= self.last_day


def parse_day(text: str, where: str) -> date:
    """``YYYY-MM-DD``. Raises UsageError."""
    try:
        day = date.fromisoformat(text)
        if day.isoformat() != text:  # it reads other notations too
            raise ValueError
        return day
    except ValueError:
        raise UsageError(f"{where}: '{text}' is no day; write it as 2026-01-31") from None


def find(waivers: Sequence[Waiver], case: str, today: date) -> tuple[Waiver | None, Waiver | None]:
    """The waiver of a case that holds, and one that no longer does; of several the one that lasts longest."""
    own = sorted((each for each in waivers if fnmatchcase(case, each.case)), key=lambda each: each.until)
    holding = [each for each in own if each.holds(today)]
    expired = [each for each in own if not each.holds(today)]
    return (holding[-1] if holding else None), (expired[-1] if expired else None)


def load(directory: Path) -> tuple[Waiver, ...]:
    """The waivers of a directory of baselines; none without a file. Raises UsageError, DamagedData naming the file."""
    path = directory / FILE_NAME
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    return read(text, str(path))


def read(text: str, where: str) -> tuple[Waiver, ...]:
    """All waivers of a file, or DamagedData with one sentence that begins with ``where``."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedData(f"{where}: damaged or cut off ({error}); restore it") from None
    if not text.endswith("}\n"):
        raise DamagedData(f"{where}: cut off, its last line has no end; restore it")
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("waivers"), list):
        raise DamagedData(f"{where}: these are no waivers of pytest-icbench")
    schema = data.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise DamagedData(
            f"{where}: written with schema {schema!r}, but this version reads up to {SCHEMA}; update pytest-icbench"
        )
    found = []
    for number, one in enumerate(data["waivers"], 1):
        waiver = decode(Waiver, one, f"{where}: waiver {number}")
        try:
            parse_day(waiver.until, f"{where}: waiver {number}: until")
        except UsageError as error:
            raise DamagedData(str(error)) from None
        found.append(waiver)
    return tuple(found)


def write(waivers: Sequence[Waiver]) -> str:
    """The text of a file: sorted, one value a line."""
    ordered = sorted(set(waivers), key=lambda each: (each.case, each.until, each.reason))
    return (
        json.dumps({"format": FORMAT, "schema": SCHEMA, "waivers": [encode(each) for each in ordered]}, indent=1) + "\n"
    )


def save(directory: Path, waivers: Sequence[Waiver]) -> Path:
    """Replaces the file. Raises ProvisionError."""
    path = directory / FILE_NAME
    replace_file(path, write(waivers))
    return path
