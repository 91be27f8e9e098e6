# SPDX-License-Identifier: BSD-3-Clause
"""What ``--icbench-plan`` prints. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_icbench.report.names import printable
from pytest_icbench.schedule import clock


@dataclass(frozen=True, slots=True)
class Planned:
    """One case: where it comes from, how long it takes at least, why it would be skipped (None: it runs)."""

    nodeid: str
    seconds: float
    skipped: str | None


def plan_lines(planned: Sequence[Planned], policy: str) -> list[str]:
    """A line a case, and the sums."""
    lines = []
    for entry in planned:
        name = printable(entry.nodeid)
        if entry.skipped is None:
            lines.append(f"{clock(entry.seconds):>8}  {name}")
        else:
            lines.append(f"{'skip':>8}  {name}: {printable(entry.skipped.splitlines()[0])}")
    run = [entry for entry in planned if entry.skipped is None]
    lines.append(
        f"{len(run)} of {len(planned)} cases, at least {clock(sum(entry.seconds for entry in run))}"
        f" (h:mm:ss or m:ss), placement {policy}; {len(planned) - len(run)} would be skipped"
    )
    return lines
