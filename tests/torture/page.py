# SPDX-License-Identifier: BSD-3-Clause
"""Writes the page docs/explanation/torture.md from the table of faults: python -m tests.torture.page."""

from __future__ import annotations

from pathlib import Path

from tests.torture.fault_table import FAULTS, Fault

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "torture.md"
_HEAD = """# Torture

`make torture` does to a host in an hour what happens to it in years. `ARGS="--only kills --count 20"`
runs a part, `--match TEXT` only faults and sessions with this text in their name. The summary has the seed, which
repeats the same moments and inputs. The exit status is 1 if anything was not as required.

* **Kills**: sessions get a SIGKILL at random moments of their whole life: over every switch of this host in every kind
  of node, over two hosts with an uplink, and with versions side by side. Every fourth recovery is killed, too.
  After the next `icbench recover`, processes, namespaces, mounts, cgroups, huge pages, files in `/run`, sockets and
  kernel settings are as before, and each passed test has its result and its windows on the disk.
  Sessions of others may run meanwhile: the summary names what is not counted for their sake.
* **Faults**: those below, each in a session of two cases. The first meets the fault; the second passes, unless the
  fault stays.
* **Inputs**, during all of these: sanitizers (address, undefined behaviour) watch the workload's parsers, and mutation
  tests readers in Python and the subcommands of `icbench`: 10⁷ inputs a parser, 10⁵ a reader, 10³ calls a subcommand.
  A minute for one input is a failure.

The short form, `--short`, is part of `make test-all`: two kills, the faults that
`SHORT` in `tests/torture/fault_table.py` names, and, among its unit tests, a five-hundredth of the inputs.

## Faults

The session's output matches the regular expression in the last column.
"""
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


def text() -> str:
    """Returns the page. Faults that differ in the switch, or in the moment, alone share a row."""
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
    table = "\n".join(lines)
    return f"{_HEAD}\n<!-- faults -->\n\n{table}\n\n{len(FAULTS)} faults.\n\n<!-- end faults -->\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
