# SPDX-License-Identifier: BSD-3-Clause
"""Names of results in files, properties and tables, and how foreign text is made safe in them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_icbench.report import longruns

#: Prefix of JUnit properties.
PREFIX = "icbench."

#: A result's nested parts; they stand in the JSON line, not among the properties.
_NESTED = (dict, list, tuple)

_UNSAFE = re.compile(r"[^A-Za-z0-9_+.=-]", re.ASCII)


def properties(result: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """A result's flat values as JUnit properties: the names of the JSON line with a prefix. None is left out.

    Loss events and trains without loss, whose parts are nested in the line, are made flat.
    """
    return [
        (PREFIX + name, str(value).lower() if isinstance(value, bool) else value)
        for name, value in {**result, **longruns.flat(result)}.items()
        if value is not None and not isinstance(value, _NESTED)
    ]


def path_part(text: str) -> str:
    """Text as one component of a path: all but ``A-Z a-z 0-9 _ + . = -`` is percent-escaped (UTF-8), 200 bytes at most.

    Never empty, ``.`` or ``..``.
    """
    safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text)
    if safe.strip(".") == "":
        safe = safe.replace(".", "%2E") or "%"
    return safe[:200]


def printable(text: str) -> str:
    """Text without control characters, for a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)
