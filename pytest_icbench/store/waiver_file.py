# SPDX-License-Identifier: BSD-3-Clause
"""The file of waivers: ``DIR/waivers.json``, readable and sorted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.waivers import Waiver, parse_day
from pytest_icbench.model.codec import DamagedData, check_schema, decode, encode, from_json
from pytest_icbench.store.baselines import replace_file

FILE_NAME = "waivers.json"
FORMAT = "pytest-icbench waivers"
#: Version of the format. A reader refuses newer ones.
SCHEMA = 1


def load(directory: Path) -> tuple[Waiver, ...]:
    """Reads the waivers of a directory of baselines; none without a file. Raises UsageError, DamagedData naming it."""
    path = directory / FILE_NAME
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    return read(text, str(path))


def read(text: str, where: str) -> tuple[Waiver, ...]:
    """Parses a file's waivers. Raises DamagedData with one sentence that begins with ``where``."""
    try:
        data = from_json(text, where)
    except DamagedData as error:
        why = str(error).removeprefix(f"{where}: ")
        raise DamagedData(f"{where}: damaged or cut off ({why}); restore it") from None
    if not text.endswith("}\n"):
        raise DamagedData(f"{where}: cut off, its last line has no end; restore it")
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("waivers"), list):
        raise DamagedData(f"{where}: these are no waivers of pytest-icbench")
    check_schema(data, SCHEMA, where, "these are no waivers of pytest-icbench")
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
