# SPDX-License-Identifier: BSD-3-Clause
"""Finds options that change nothing for the selected cases."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pytest_icbench.config.axis import rows
from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import GROUPS, Case

_Cases = Sequence[Case]


def check_candidates(options: Options, cases: _Cases) -> None:
    """Raises UsageError for a candidate that no selected case is compared with: the run would decide nothing on it."""
    switches = dict.fromkeys(case.switch for case in cases)
    for candidate in options.candidate:
        if not cases or any(map(candidate.concerns, cases)):
            continue
        remedy = f"is of {candidate.target} (they are of {', '.join(switches)}): select one (--icbench-switch"
        remedy += f" {candidate.target})"
        if candidate.everywhere:
            remedy = "sends frames of the workload: select one that does"
        if candidate.component is not None:
            remedy = "has a network function: give --icbench-function"
        raise UsageError(f"--icbench-candidate: no selected case {remedy}, or leave {candidate.key} out")


def find_unused(options: Options, cases: _Cases, components: Collection[str] = ()) -> list[str]:
    """Returns a sentence for each option that changes nothing for the selected cases.

    Args:
        components: names of the components that have a network function of the cases.
    """
    if not cases:
        return []
    switches = {case.switch for case in cases}
    found = [
        f"{row.option} has no effect: {row.applies.reason}"
        for row in rows(Options)
        if row.applies is not None and getattr(options, row.field) and not any(map(row.applies.to, cases))
    ]
    names = [word.partition(":")[0] for word in options.switch]
    for option, given, known, more in (
        ("switch", names, switches, ": it selects among tests' switches"),
        ("binary", options.binaries, {*switches, *components}, ""),
        ("switch-config", options.switch_config, switches, ""),
    ):
        for name in given:
            if name not in GROUPS and name not in known:
                found.append(f"--icbench-{option} {name} has no effect: no selected case is of {name}{more}")
    return found
