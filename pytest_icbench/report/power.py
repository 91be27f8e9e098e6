# SPDX-License-Identifier: BSD-3-Clause
"""What a gate would have told: the worsening that its comparisons accuse in half of all sessions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.model.finding import Finding
from pytest_icbench.model.result import Result
from pytest_icbench.wording import counted, percent, printable


def power(results: Sequence[Result]) -> str:
    """Returns the sentence about all cases that were compared with sessions of a baseline; empty without one."""
    told = sorted(
        (finding.finds, result.case, finding)
        for result in results
        for finding in result.findings[:1]
        if finding.finds is not None
    )
    compared = [result.findings[0] for result in results if result.findings and result.findings[0].sessions]
    silent = len(compared) - len(told)
    alone = f"; nothing of {counted(silent, 'case')}, with a single session or sessions far apart" if silent else ""
    if not told:
        return f"this gate accuses{alone.removeprefix(';')}" if silent else ""
    (_, first, clearest), (_, last, vaguest) = told[0], told[-1]
    text = f"this gate accuses in half of all sessions: {_worse(clearest)} of {first}"
    if len(told) > 1:
        text += f", up to {_worse(vaguest)} of {last}"
    return printable(text + alone)


def _worse(finding: Finding) -> str:
    way = "less" if finding.kind == "drop" else "more"
    return f"{percent(finding.finds or 0.0)} {way}"
