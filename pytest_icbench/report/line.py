# SPDX-License-Identifier: BSD-3-Clause
"""The line of one finished case: id, value with interval, loss, limit, verdict, change. Pure."""

from __future__ import annotations

from pytest_icbench.display.case_names import label
from pytest_icbench.display.table import In
from pytest_icbench.model.result import Result
from pytest_icbench.report.columns import columns
from pytest_icbench.report.reported_intervals import with_sessions

#: Widths that keep the lines of a run aligned, by the column's name; longer texts push the rest to the right.
_WIDTHS = {"rate": 13, "p50": 13, "interval": 14, "p99": 14, "loss": 14, "limit": 8, "verdict": 4}
#: Columns that keep their width even if a result has no text for them.
_KEPT = {True: ("rate", "interval", "loss", "limit"), False: ("p50", "interval", "p99", "loss")}


def result_line(result: Result, left_out: str = "", width: int = 0) -> str:
    """Returns a result on one line.

    Args:
        left_out: the end of ids that all cases of the run share.
        width: room for the id.
    """
    (result,) = with_sessions([result])
    cells = [label(result.case, left_out).ljust(width)]
    for column in columns(In.LINE):
        text = column.say(result)
        if text or (result.is_number and column.name in _KEPT[result.figures.SAYS_METRIC]):
            right = column.name in ("rate", "p50")
            room = _WIDTHS.get(column.name, 0)
            cells.append(text.rjust(room) if right else text.ljust(room))
    return "  ".join(cells).rstrip()
