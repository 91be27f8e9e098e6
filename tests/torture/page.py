# SPDX-License-Identifier: BSD-3-Clause
"""Makes the table of docs/explanation/torture.md from the table of faults."""

from __future__ import annotations

from tests.torture.fault_table import FAULTS, Fault

_ENDS = {
    "fails": "its case fails",
    "passes": "its case passes",
    "refused": "no test runs, exit status 4",
    "either": "its case fails or passes",
    "ended": "the session ends, exit status 2",
}


def _row(fault: Fault) -> tuple[str, str, str, str, str]:
    where = fault.switch if fault.node == "netns" else f"{fault.switch}, {fault.node}"
    says = fault.says.replace("|", "\\|")
    return f"{fault.subject} {fault.what}", fault.when, where, _ENDS[fault.end], f"`{says}`"


def table() -> str:
    """Returns the table. Faults that differ in the switch, or in the moment, alone share a row."""
    places: dict[tuple[str, str, str, str], list[str]] = {}
    for fault in FAULTS:
        what, when, where, end, says = _row(fault)
        places.setdefault((what, end, says, when), []).append(where)
    moments: dict[tuple[str, str, str, str], list[str]] = {}
    for (what, end, says, when), where_all in places.items():
        moments.setdefault((what, "; ".join(where_all), end, says), []).append(when)
    # The faults of which all but the name is the same share a row, too.
    names: dict[tuple[str, str, str, str], list[str]] = {}
    for (what, where, end, says), times in moments.items():
        names.setdefault((", ".join(times), where, end, says), []).append(what)
    lines = ["| broken | when | over | what becomes of it | what the session says |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {'; '.join(what)} | {' | '.join(rest)} |" for rest, what in names.items()]
    return "\n".join([*lines, "", f"{len(FAULTS)} faults."])
