# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and times as messages show them."""

from __future__ import annotations

import pytest

from pytest_icbench.wording import clock, counted


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (750, "12:30"), (3723, "1:02:03"), (-5, "0:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [(1, "case", "1 case"), (0, "case", "0 cases"), (5000, "case", "5,000 cases"), (2, "launch", "2 launches")],
)
def test_things_are_counted(number: int, thing: str, text: str) -> None:
    assert counted(number, thing) == text
