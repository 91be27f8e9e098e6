# SPDX-License-Identifier: BSD-3-Clause
"""Results as a flat table for other programs: CSV, and Parquet with the extra ``parquet``."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.figures import ENDS
from pytest_icbench.model.measurement import ESTIMATES, FLAT_FIELDS, Result
from pytest_icbench.report.plain import plain_ratio
from pytest_icbench.wording import printable

#: Columns before those of a result.
LEADING = ("run", "test")
#: Axes that are no field of a result.
_AXES = (
    "packet_size",
    "mix",
    "flows",
    "header",
    "direction",
    "queues",
    "routes",
    "function",
    "chain",
    "cpu_share",
    "cpu_quota",
    "noisy_neighbour",
    "isolation",
    "app",
    "startup",
    "burst",
    "pairs",
    "rate",
    "switch_cores",
    "rx_mode",
    "api",
    "blocking",
    "wait",
    "check_payload",
    "remote",
    "node",
    CANDIDATE_KEY,
)
#: Types of values that fit a cell; nested parts of a result are in ``results.jsonl`` only.
_PLAIN = (int, float, str, bool)
#: Columns from the nested parts: name to path.
_NESTED = {
    "machine": ("identity", "machine"),
    "cpu_model": ("identity", "cpu_model"),
    "kernel": ("treatment", "kernel"),
    "dpdk": ("treatment", "dpdk"),
    "switch_version": ("treatment", "switch", "version"),
}
#: Columns from other cases of the report: what a network function leaves of the value of its path.
_PLAIN_RATIO = ("ratio_to_plain", "ratio_to_plain_low", "ratio_to_plain_high")

_KEYS: dict[str, Any] = {
    f"{name}{end}": float | None if end else hint
    for name, hint in FLAT_FIELDS.items()
    for end in (ENDS if name in ESTIMATES else ("",))
}


def _kind(name: str) -> type | None:
    """Returns the type of a column's values that are not null; None for values that fit no cell."""
    if name in ("packet_size", "burst", "pairs", "switch_cores", "chain", "queues", "routes"):
        return int
    if name in ("blocking", "check_payload", "remote"):
        return bool
    if name in _PLAIN_RATIO:
        return float
    if name in _AXES:
        return str
    if name in ESTIMATES:
        return float
    return next((kind for kind in _PLAIN if _KEYS.get(name, str) in (kind, kind | None)), None)


COLUMNS: tuple[str, ...] = (
    *LEADING,
    *_AXES,
    *_NESTED,
    *(name for name in _KEYS if name not in _AXES and _kind(name) is not None),
    *_PLAIN_RATIO,
)


def flat(run: str, test: str, result: Result) -> dict[str, Any]:
    """Returns a row: ``COLUMNS`` with plain values. The rate is a text (``max``, ``1000``, ``pdr:0.5%``).

    Texts have no control characters, whoever has written the run.
    """
    fields = result.flat()
    axes = result.axes
    row: dict[str, Any] = {"run": run, "test": test}
    row |= {name: axes.get(name) for name in _AXES}
    row["rate"] = "max" if axes.get("rate") is None else str(axes["rate"])
    for name, path in _NESTED.items():
        value: Any = fields
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        row[name] = value if value is None or isinstance(value, str) else json.dumps(value)
    ratio = plain_ratio(result)
    row |= dict(zip(_PLAIN_RATIO, (None,) * 3 if ratio is None else (float(ratio), ratio.low, ratio.high), strict=True))
    row |= {name: fields.get(name) for name in COLUMNS if name not in row}
    return {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes RFC 4180 in UTF-8 with a line of names; null is empty. Raises UsageError if it cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another place") from None


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the same columns with their types. Raises UsageError without the library, or if it cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError("Parquet needs the library pyarrow: pip install 'pytest-icbench[parquet]'")
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    kinds: dict[Any, Any] = {int: arrow.int64(), float: arrow.float64(), str: arrow.string(), bool: arrow.bool_()}
    schema = arrow.schema([(name, kinds[_kind(name)]) for name in COLUMNS])
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    try:
        parquet.write_table(arrow.table(columns, schema=schema), path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another place") from None
