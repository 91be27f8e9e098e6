# SPDX-License-Identifier: BSD-3-Clause
"""What ``--icbench-plan`` prints. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.report.names import printable
from pytest_icbench.schedule import clock


@dataclass(frozen=True, slots=True)
class Planned:
    """One case: where it comes from, how long it takes at least, why it would be skipped (None: it runs).

    ``allotted``: seconds that a budget gives it, as far as is known before anything is measured.
    """

    nodeid: str
    seconds: float
    skipped: str | None
    allotted: float | None = None


def plan_lines(planned: Sequence[Planned], policy: str, budget_s: float | None = None) -> list[str]:
    """A line a case, and the sums. With a budget each case has its least and what it would get."""
    lines = []
    for entry in planned:
        name = printable(entry.nodeid)
        if entry.skipped is None:
            more = "" if entry.allotted is None else f" of {clock(entry.allotted):>7}"
            lines.append(f"{clock(entry.seconds):>8}{more}  {name}")
        else:
            lines.append(f"{'skip':>8}  {name}: {printable(entry.skipped.splitlines()[0])}")
    run = [entry for entry in planned if entry.skipped is None]
    lines.append(
        f"{len(run)} of {len(planned)} cases, at least {clock(sum(entry.seconds for entry in run))}"
        f" (h:mm:ss or m:ss), placement {policy}; {len(planned) - len(run)} would be skipped"
    )
    if budget_s is not None:
        rest = budget_s - sum(entry.seconds for entry in run)
        shared = f"{clock(rest)} beyond the least, shared out anew whenever a case begins"
        lines.append(f"budget {clock(budget_s)}: " + (shared if rest >= 0 else "too short, nothing would be run"))
    return lines
