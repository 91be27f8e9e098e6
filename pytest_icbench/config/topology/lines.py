# SPDX-License-Identifier: BSD-3-Clause
"""On which line of a TOML file a key stands, which ``tomllib`` does not tell. Pure.

The beginning of a TOML document, cut between two statements, is itself a document. So a key begins on the line behind
the last such cut that does not have it. That takes a parsing for each line, but only when there is a mistake to tell.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

Path = Sequence[str | int]


def line_of(text: str, path: Path) -> int:
    """The line, from 1 on, on which a key or an array's element begins; that of the nearest parent that is there.

    Args:
        path: keys and indexes from the top: ``("container", 2, "mac")``.
    """
    while path and not _holds(_parsed(text), path):
        path = path[:-1]
    if not path:
        return 1
    lines, begin = text.split("\n"), 1
    for count in range(len(lines)):
        document = _parsed("\n".join(lines[:count]))
        if document is None:  # within a value of several lines
            continue
        if _holds(document, path):
            break
        begin = count + 1
    return begin


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _holds(document: Any, path: Path) -> bool:
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return False
    return document is not None
