# SPDX-License-Identifier: BSD-3-Clause
"""Waivers: the last day, and which of several counts."""

from __future__ import annotations

from datetime import date

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.waivers import Waiver, find, parse_day

ONE = Waiver("ovs-*", "known: tracker", "2026-06-15")


def test_the_last_day_counts() -> None:
    for day, holds in ((date(2026, 6, 14), True), (date(2026, 6, 15), True), (date(2026, 6, 16), False)):
        assert ONE.holds(day) is holds
        assert find([ONE], "ovs-64B", day) == ((ONE, None) if holds else (None, ONE))
    assert find([ONE], "veth-64B", date(2026, 6, 1)) == (None, None)


def test_of_several_the_one_that_lasts_longest_counts() -> None:
    longer = Waiver("*", "later", "2026-07-01")
    assert find([longer, ONE], "ovs-64B", date(2026, 6, 1)) == (longer, None)
    assert find([longer, ONE], "ovs-64B", date(2026, 6, 20)) == (longer, ONE)
    assert find([longer, ONE], "ovs-64B", date(2026, 8, 1)) == (None, longer)


@pytest.mark.parametrize("text", ["2026-13-01", "2026-1-1", "20260101", "tomorrow", "2026-W01-1", ""])
def test_a_text_that_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no day; write it as 2026-01-31"):
        parse_day(text, "--until")
