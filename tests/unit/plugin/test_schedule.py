# SPDX-License-Identifier: BSD-3-Clause
"""What is left of a session."""

from __future__ import annotations

from pytest_icbench.plugin.progress import Schedule


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


def test_parts_that_are_measured_before_their_turn_are_no_longer_left() -> None:
    schedule = Schedule([10.0, 20.0, 30.0])
    schedule.begin_part(1)
    assert (schedule.current, schedule.left_s(None)) == (2, 60.0)
    schedule.finish_part(0.5, 20.0)
    assert (schedule.current, schedule.left_s(None)) == (1, 100.0)  # half of the second is done, in twice its time
    schedule.begin_part(1)
    schedule.finish_part(0.5, 0.0)
    assert schedule.left_s(None) == 40.0
    schedule.finish(40.0)
    schedule.finish(0.0)  # its test takes no time any more
    assert (schedule.current, schedule.left_s(None)) == (3, 60.0)


def test_three_thirds_are_the_whole() -> None:
    schedule = Schedule([7.0, 0.1])
    for _ in range(4):
        schedule.begin_part(0)
        schedule.finish_part(1 / 3, 7 / 3)
    assert 0.0 <= schedule.left_s(None) <= 0.2
