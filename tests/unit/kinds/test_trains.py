# SPDX-License-Identifier: BSD-3-Clause
"""Back-to-back frames: climbs through trains, against a device with a buffer of known size."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pytest_icbench.kinds.throughput.throughput_run import (
    COARSE,
    FINE_STEPS,
    LONGEST,
    Climb,
    Ladder,
    back_to_back,
    burst_rate,
    climbs,
    fine_ladder,
    fine_window_s,
    train_settings,
)
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.settings import Settings

RATE, DRAINED = 5e6, 2e6


def window(number: int, length: int, lost: int = 0, **changed: Any) -> Window:
    plain = dict.fromkeys(Window.__dataclass_fields__, 0)
    named = {"first_ns": None, "last_ns": None, "kept": True, "disturbed": False, "pair": 1, "number": number}
    for name in Window.__dataclass_fields__:
        if name.startswith(("rtt_", "sender_", "receiver_")) and name != "rtt_samples":
            named[name] = None
    counts = {"scheduled": length, "sent": length, "received": length - lost, "duration_ns": 1}
    return Window(**{**plain, **named, **counts, **changed})


def device(ladder: Ladder, repetitions: int, buffers: Any) -> list[Window]:
    """A buffer of frames that fills at the rate of trains less what is drained meanwhile."""
    found = []
    for repetition in range(repetitions):
        holds = buffers() / (1 - DRAINED / RATE)
        for place, length in enumerate(ladder.lengths):
            number = repetition * ladder.steps + place + 1
            found.append(window(number, length, max(0, round(length - holds))))
    return found


def test_lengths_are_in_equal_ratios() -> None:
    assert Ladder(50, 200, 3).lengths == (50, 100, 200)
    assert Ladder(7, 9, 1).lengths == (7,)
    assert COARSE.lengths[0] == 32
    assert COARSE.lengths == tuple(2**power for power in range(5, 19))
    assert str(Ladder(1, 32, 17)) == "1:32:17"


@pytest.mark.parametrize("buffer", [20, 256, 1000, 20_000])
def test_a_buffer_of_known_size_is_found(buffer: int) -> None:
    coarse = climbs(device(COARSE, 1, lambda: buffer), COARSE)
    ladder = fine_ladder(coarse)
    assert ladder is not None
    generator = random.Random(1)
    found = climbs(device(ladder, 50, lambda: buffer * generator.uniform(0.98, 1.02)), ladder)
    result = back_to_back(found, RATE, DRAINED)
    assert (result.repetitions, result.at_least) == (50, False)
    assert result.frames == pytest.approx(buffer / (1 - DRAINED / RATE), rel=0.07, abs=3)
    assert result.corrected_buffer_time_s == pytest.approx(buffer / RATE, rel=0.07, abs=3 / RATE)
    assert result.frames_min <= result.frames <= result.frames_max


def test_a_device_without_losses_gives_a_lower_bound() -> None:
    found = climbs(device(COARSE, 1, lambda: 1e9), COARSE)
    assert found == [Climb(LONGEST, True)]
    assert fine_ladder(found) is None
    result = back_to_back(found, RATE, None)
    assert (result.at_least, result.corrected_buffer_time_s, result.frames_stddev) == (True, None, None)


def test_a_full_port_is_a_loss_and_a_cut_train_proves_nothing() -> None:
    ladder = Ladder(10, 40, 3)
    full = [window(1, 10), window(2, 20, tx_full=1), window(3, 40)]
    assert climbs(full, ladder) == [Climb(10, False)]
    cut = [window(1, 10), window(2, 19), window(3, 40)]
    assert climbs(cut, ladder) == [Climb(10, True)]
    assert climbs([window(1, 10), window(2, 20)], ladder) == []
    assert climbs([], ladder) == []
    assert climbs([window(1, 10, lost=1), window(2, 20), window(3, 40)], ladder) == [Climb(0, False)]
    assert fine_ladder([Climb(0, False)]) == Ladder(1, 32, FINE_STEPS)
    assert fine_ladder([]) is None


def test_the_buffer_time_is_never_below_zero() -> None:
    assert back_to_back([Climb(100, False)], RATE, 2 * RATE).corrected_buffer_time_s == 0


def test_the_rate_is_that_within_trains() -> None:
    windows = tuple(window(number, 1000, sender_busy_cycles=400_000) for number in range(1, 4))
    launch = Launch(0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, False, (), windows=windows, tsc_hz=2_000_000_000)
    assert burst_rate(launch) == pytest.approx(5e6)
    blocking = Launch(0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, False, (), windows=(window(1, 1000),), tsc_hz=2_000_000_000)
    assert burst_rate(blocking) is None


def test_a_launch_holds_all_climbs() -> None:
    ladder = Ladder(512, 1024, FINE_STEPS)
    assert fine_window_s(ladder, RATE) == 0.02
    assert fine_window_s(Ladder(2**17, 2**18, 17), RATE) == pytest.approx(4 * 2**18 / RATE)
    settings = train_settings(Settings(skip_s=0.5, max_warmup_s=2.0), ladder, 0.02, 50)
    assert settings.duration_s == pytest.approx(33.0)
    assert (settings.train, settings.repeats, settings.settles, settings.reference) == ("512:1024:33", 1, False, False)
