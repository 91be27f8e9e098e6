# SPDX-License-Identifier: BSD-3-Clause
"""The line of one finished case: id, value with interval, loss, limit, verdict, change. Pure.

Tables and notes shorten ids in the same way: they leave out the parts that all of their cases share.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.display.table import In
from pytest_icbench.model.result import Result
from pytest_icbench.report.columns import columns
from pytest_icbench.report.reported_intervals import with_sessions
from pytest_icbench.wording import printable

#: Widths that keep the lines of a run aligned, by the column's name; longer texts push the rest to the right.
_WIDTHS = {"rate": 13, "p50": 13, "interval": 14, "p99": 14, "loss": 14, "limit": 8, "verdict": 4}
#: Columns that keep their width even if a result has no text for them.
_KEPT = {True: ("rate", "interval", "loss", "limit"), False: ("p50", "interval", "p99", "loss")}


def result_line(result: Result, left_out: Sequence[str] = (), width: int = 0) -> str:
    """Returns a result on one line.

    Args:
        left_out: the parts of ids that all cases of the run share.
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


def shared(cases: Sequence[str]) -> tuple[str, ...]:
    """Returns those of burst, pairs and rate that all ids share; empty for fewer than two ids, and with two hosts."""
    if len(cases) < 2 or any(case.endswith("-remote") for case in cases):
        return ()
    tails = [_tail(case) for case in cases]
    return tuple(part for part in tails[0] if all(part in tail for tail in tails))


def label(case: str, left_out: Sequence[str]) -> str:
    """Returns an id without the given parts of its end."""
    tail = _tail(case)
    if not (tail and left_out):
        return printable(case)
    head = case[: len(case) - len("-".join(tail)) - 1]
    return printable("-".join([head, *(part for part in tail if part not in left_out)]))


def _tail(case: str) -> list[str]:
    """Returns the end of an id: the axes that cases often share."""
    return case.rsplit("-", 3)[1:] if case.count("-") >= 3 else []
