# SPDX-License-Identifier: BSD-3-Clause
"""What reports say of a load that changed. Pure."""

from __future__ import annotations

from statistics import median

from pytest_icbench.display.axes import short
from pytest_icbench.model.result import Result
from pytest_icbench.wording import counted

#: The most changes that were not followed of which a sentence says where they are.
_FEW = 3


def sentence(result: Result) -> str:
    """Returns when the changes of a load arrived; empty for a load that stays."""
    changes = result.frames.followed
    if not changes or not result.is_number:
        return ""
    times = [change.follow_s for change in changes if change.follow_s is not None]
    text = f"{len(times)} of {counted(len(changes), 'change')} of the load arrived to 95 % before the next one"
    if times:
        text += f", after {short(median(times))} s (median; at most {short(max(times))} s)"
    late = [change for change in changes if change.follow_s is None]
    named = [
        f"pair {change.pair} second {change.second}, {short(change.received_pps)} of {short(change.to_pps)} frames/s"
        for change in late[:_FEW]
    ]
    return text + (f"; not so: {'; '.join(named)}" if named else "") + ("; …" if len(late) > _FEW else "")
