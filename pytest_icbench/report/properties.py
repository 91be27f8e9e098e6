# SPDX-License-Identifier: BSD-3-Clause
"""Results as JUnit properties. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.model.measurement import Measurement
from pytest_icbench.report import longruns

#: Prefix of JUnit properties.
PREFIX = "icbench."

#: A result's nested parts; they stand in the JSON line, not among the properties.
_NESTED = (dict, list, tuple)


def _shown(value: Any) -> Any:
    """Returns a value with at most seven digits; the JSON line has all of them."""
    if isinstance(value, bool):
        return str(value).lower()
    return float(f"{value:.7g}") if isinstance(value, float) else value


def properties(result: Measurement) -> list[tuple[str, Any]]:
    """Returns a result's flat values as JUnit properties: the names of the JSON line with a prefix, without nulls.

    Loss events and trains without loss, whose parts are nested in the line, are flattened.
    """
    return [
        (PREFIX + name, _shown(value))
        for name, value in {**result.flat(), **longruns.flat(result)}.items()
        if value is not None and not isinstance(value, _NESTED)
    ]
