# SPDX-License-Identifier: BSD-3-Clause
"""The lines that ``--icbench-plan`` prints. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.model.case_id import rig_group
from pytest_icbench.wording import clock, printable


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned case.

    Attributes:
        nodeid: the id of its test.
        seconds: the time that it takes at least.
        skipped: why it would be skipped; None: it runs.
        allotted: seconds that a budget gives it, as far as is known before anything is measured.
    """

    nodeid: str
    seconds: float
    skipped: str | None
    allotted: float | None = None


def plan_lines(planned: Sequence[Planned], policy: str, budget_s: float | None = None, hosts: int = 1) -> list[str]:
    """Returns a line per case, and the sums. With a budget the line has the least time and the allotted time.

    Args:
        policy: the placement.
        budget_s: the budget of each host.
        hosts: the number of hosts that share the cases.
    """
    lines = []
    for entry in planned:
        name = printable(entry.nodeid)
        if entry.skipped is None:
            more = "" if entry.allotted is None else f" of {clock(entry.allotted):>7}"
            lines.append(f"{clock(entry.seconds):>8}{more}  {name}")
        else:
            lines.append(f"{'skip':>8}  {name}: {printable(entry.skipped.splitlines()[0])}")
    run = [entry for entry in planned if entry.skipped is None]
    total_s = sum(entry.seconds for entry in run)
    lines.append(
        f"{len(run)} of {len(planned)} cases, at least {clock(total_s)}"
        f" (h:mm:ss or m:ss), placement {policy}; {len(planned) - len(run)} would be skipped"
    )
    if hosts > 1 and run:
        lines.append(_over(run, total_s, hosts))
    if budget_s is not None:
        rest = hosts * budget_s - total_s
        shared = f"{clock(rest)} beyond the least, shared out anew whenever a case begins"
        of = f" of each of {hosts} hosts" if hosts > 1 else ""
        lines.append(f"budget {clock(budget_s)}{of}: " + (shared if rest >= 0 else "too short, nothing would be run"))
    return lines


def _over(run: Sequence[Planned], total_s: float, hosts: int) -> str:
    """Returns the line about several hosts: they share the time, but a case runs on one host."""
    rigs: dict[object, list[Planned]] = {}
    for entry in run:
        rigs.setdefault(rig_group(entry.nodeid), []).append(entry)
    longest = max(rigs.values(), key=lambda entries: sum(entry.seconds for entry in entries))
    least_s = max(total_s / hosts, *(entry.seconds for entry in run))
    return (
        f"over {hosts} hosts like this one at least {clock(least_s)}; the longest rig, of {len(longest)} cases, takes"
        f" {clock(sum(entry.seconds for entry in longest))}: {printable(longest[0].nodeid)}"
    )
