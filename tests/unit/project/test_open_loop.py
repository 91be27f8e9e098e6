# SPDX-License-Identifier: BSD-3-Clause
"""The open loop of the validation: rebuilt from a schedule and from arrivals, it has the stall that was put in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.measurements import launch

ROOT = Path(__file__).parents[3]
#: Of a launch of 1 s at 1000 requests per second: everybody answers in 1 ms, nobody from 0.4 s to 0.7 s.
LEFT = {number: 5_000_000_000 + number * 1_000_000 for number in range(1000)}
STALLED = {
    number: max(at + 1_000_000, 5_700_000_000) if 400 <= number < 700 else at + 1_000_000 for number, at in LEFT.items()
}


@pytest.fixture
def open_loop() -> Iterator[Any]:
    if not (ROOT / "benchmarks" / "validation").exists():
        pytest.skip("the benchmarks are part of the source tree only")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield import_module("validation.open_loop")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_a_stall_of_three_tenths_of_a_second(open_loop: Any) -> None:
    found = open_loop.of_capture(LEFT, STALLED, 1000, 1, range(1000))
    assert found.percentile(0.5) == 1_000_000
    # 300 requests waited up to 300 ms; 100 of them for more than 200 ms.
    assert found.percentile(0.9) == pytest.approx(200e6, abs=1.1e6)
    assert found.percentile(0.99) == pytest.approx(290e6, abs=1.1e6)
    assert found.percentile(0.999) is None


def test_requests_that_left_late_were_due_all_the_same(open_loop: Any) -> None:
    late = {number: max(at, 5_700_000_000) if 400 <= number < 700 else at for number, at in LEFT.items()}
    came = {number: at + 1_000_000 for number, at in late.items()}
    found = open_loop.of_capture(late, came, 1000, 1, range(1000))
    assert found.percentile(0.99) == pytest.approx(291e6, abs=1.1e6)


def test_what_never_came_is_slower_than_all_that_did(open_loop: Any) -> None:
    came = {number: at for number, at in STALLED.items() if number not in range(400, 415)}
    found = open_loop.of_capture(LEFT, came, 1000, 1, range(1000))
    assert found.percentile(0.9) == pytest.approx(200e6, abs=15e6)
    assert found.percentile(0.99) is None


def test_windows_have_the_same_stall(open_loop: Any) -> None:
    plain = launch(windows=10).windows[0]
    windows = []
    for number in range(10):
        arrivals = [STALLED[100 * number + place] for place in range(100)]
        windows.append(
            replace(
                plain,
                number=number + 1,
                start_ns=LEFT[100 * number],
                received=100,
                first_ns=arrivals[0],
                last_ns=arrivals[-1],
            )
        )
    found = open_loop.of_windows(windows, 1000)
    assert (found.requests, len(found.answered)) == (1000, 1000)
    assert found.percentile(0.99) == pytest.approx(290e6, rel=0.01)
    gone = replace(windows[4], received=0, first_ns=None, last_ns=None)
    assert open_loop.of_windows([*windows[:4], gone, *windows[5:]], 1000).percentile(0.9) is not None
    assert open_loop.of_windows([*windows[:4], gone, *windows[5:]], 1000).percentile(0.99) is None


def test_percentiles_agree_within_one_in_a_hundred_or_the_resolution(open_loop: Any) -> None:
    assert open_loop.agree(252.0, 250.0, 0)
    assert not open_loop.agree(253.0, 250.0, 0)
    assert open_loop.agree(3.0, 2.0, 1.0)
    assert open_loop.agree(None, None, 1.0)
    assert not open_loop.agree(None, 250.0, 1e9)
    assert not open_loop.agree(2.7e6, 250e6, 1e7)
