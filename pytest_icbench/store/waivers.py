# SPDX-License-Identifier: BSD-3-Clause
"""Waivers on the disk: ``DIR/waivers.json``, readable and sorted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.waivers import Waiver, parse_day
from pytest_icbench.model.codec import DamagedData, check_schema, decode, encode
from pytest_icbench.store.baselines import replace_file

FILE_NAME = "waivers.json"
FORMAT = "pytest-icbench waivers"
#: Version of the form. A reader refuses newer ones.
SCHEMA = 1


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
    check_schema(data, SCHEMA, where, "these are no waivers of pytest-icbench")
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
