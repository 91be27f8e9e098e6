# SPDX-License-Identifier: BSD-3-Clause
"""The rows of charts in fewer bytes: by column, with what repeats written once. Pure.

Most columns of a chart repeat: the case and the path of a percentile curve, the source, "at least". ``unpacked`` of
``charts.js`` reverses this.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pytest_icbench.display.chart import Figure

#: What a column holds: its values, or ``{"runs": [value, number, value, number, ...]}``.
Packed = list[Any] | dict[str, list[Any]]


def packed(values: Sequence[Any]) -> Packed:
    """Returns the values, or the runs of equal ones if there are few."""
    # 1, 1.0 and True are equal, but no two of them are the same text.
    runs = [(value, len(list(run))) for (_, value), run in groupby(values, lambda value: (type(value), value))]
    return {"runs": [part for run in runs for part in run]} if 2 * len(runs) < len(values) else list(values)


def packed_rows(chart: Figure) -> list[Packed]:
    """Returns the rows of a chart as its columns; without rows every column is empty."""
    return [packed([row[place] for row in chart.rows]) for place in range(len(chart.columns))]
