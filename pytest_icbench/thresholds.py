# SPDX-License-Identifier: BSD-3-Clause
"""``thresholds.toml``: limits by case.

Tables are keyed by patterns (``*``, ``?``, ``[...]``) over case ids; for each key the last table that matches wins.
A key is ``min_`` or ``max_`` and the name of a result::

    ["*"]
    max_frame_loss_ratio = 0.9

    ["ovs-64B-*"]
    min_throughput_pps = 2_000_000
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from pytest_icbench.errors import UsageError
from pytest_icbench.gate import LIMITABLE, Limit
from pytest_icbench.overrides import suggestion

#: Looked for beside a scenario's file.
FILE_NAME = "thresholds.toml"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The tables of one file, in its order."""

    tables: tuple[tuple[str, tuple[Limit, ...]], ...] = ()

    def for_case(self, case_id: str) -> tuple[Limit, ...]:
        """Limits of a case: for each key those of the last table whose pattern matches."""
        found: dict[tuple[str, str], Limit] = {}
        for pattern, limits in self.tables:
            if fnmatchcase(case_id, pattern):
                found.update({(limit.kind, limit.name): limit for limit in limits})
        return tuple(found.values())


@lru_cache(maxsize=64)
def load(path: Path) -> Thresholds:
    """Reads a file. Raises UsageError with one sentence that names file, table and key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Thresholds:
    """Thresholds out of TOML. Raises UsageError with one sentence that begins with ``where``."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{where}: not valid TOML ({error})") from None
    tables = []
    for pattern, table in data.items():
        if not isinstance(table, dict):
            raise UsageError(f'{where}: {pattern} stands outside a table; put it below a pattern such as ["*"]')
        tables.append((pattern, tuple(_limit(key, value, pattern, where) for key, value in table.items())))
    return Thresholds(tuple(tables))


def _limit(key: str, value: Any, pattern: str, where: str) -> Limit:
    at = f'{where}: ["{pattern}"] {key}'
    kind, _, name = key.partition("_")
    if kind not in ("min", "max") or name not in LIMITABLE:
        known = tuple(f"{kind if kind in ('min', 'max') else 'min'}_{result}" for result in LIMITABLE)
        raise UsageError(f"{at}: there is no such limit{suggestion(key, known)}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise UsageError(f"{at}: {value!r} is no finite number")
    way: Literal["min", "max"] = "min" if kind == "min" else "max"
    return Limit(name, way, float(value), at)
