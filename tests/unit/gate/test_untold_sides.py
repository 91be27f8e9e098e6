# SPDX-License-Identifier: BSD-3-Clause
"""Where a figure or its control is worse and the other untold, the reason names which one may be within the margin."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.entry import Baseline, Entry, entry_of
from pytest_icbench.gate.margins import Margins
from tests.baselines import ALIKE, entry, launch, measured, scaled, with_sessions

#: Sessions that lie far apart; with the newest one their geometric mean is 1.
APART = (1.1, 1 / 1.1, 1.05, 1 / 1.05, 1.0)


def beside_a_control(factor: float) -> Entry:
    """A rate, and the same reference link beside it in any case."""
    launches, control = scaled(factor), scaled(2.0)
    kept = entry_of(
        measured(
            launches=launches,
            per_launch=tuple(map(launch, launches)),
            per_reference_launch=tuple(map(launch, control)),
        )
    )
    assert kept is not None
    return kept


@pytest.mark.parametrize(
    ("figures", "control", "untold"),
    [
        (APART, APART, "by itself"),  # the control moved with the figure, and against it the sessions agree
        (ALIKE, [1 / factor for factor in APART], "against the control"),
    ],
)
def test_the_reason_is_the_side_that_does_not_tell(
    figures: Sequence[float], control: Sequence[float], untold: str
) -> None:
    before = with_sessions(beside_a_control(1.0), figures, control)
    comparer = Comparer(Baseline("main", (before,)), cases=1)
    finding = comparer.compare_entry(beside_a_control(0.82), Margins()).findings[0]
    assert (finding.verdict, finding.note) == ("INCONCLUSIVE", f"{untold}, it may lie within the margin")
    assert finding.more_sessions is not None


def test_sessions_that_lie_too_far_apart_pass_nothing() -> None:
    kept = with_sessions(entry(), (1.2, 1 / 1.2, 1.15, 1 / 1.15, 1.0))
    finding = Comparer(Baseline("main", (kept,)), cases=1).compare_entry(entry(), Margins()).findings[0]
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.note is not None
    assert finding.note.startswith("what is normal here over 6 sessions tells nothing: -47% to")
