# SPDX-License-Identifier: BSD-3-Clause
"""What is left of a session."""

from __future__ import annotations

from pytest_icbench.plugin.schedule.schedule import Schedule


def test_the_schedule_learns_from_what_is_done() -> None:
    schedule = Schedule([10.0, 10.0, 10.0, 10.0])
    assert (schedule.current, schedule.total, schedule.left_s(None)) == (1, 4, 40.0)
    schedule.finish(20.0)
    assert (schedule.current, schedule.left_s(None)) == (2, 60.0)
    schedule.finish(None)  # skipped: says nothing
    assert (schedule.current, schedule.left_s(5.0)) == (3, 25.0)
    schedule.finish(20.0)
    schedule.finish(20.0)
    schedule.finish(20.0)
    assert (schedule.current, schedule.left_s(None)) == (4, 0.0)
