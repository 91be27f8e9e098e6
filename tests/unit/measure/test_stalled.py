# SPDX-License-Identifier: BSD-3-Clause
"""A path that ends within a launch, wherever it does: by windows alone."""

from __future__ import annotations

import pytest

from pytest_icbench.measure.launch.validity import stalled
from pytest_icbench.measure.soak import soak_settings
from pytest_icbench.model.launch import Window
from pytest_icbench.model.settings import Settings

PLAIN = Settings()
PAPER = PLAIN.with_protocol("paper")
SOAK = soak_settings(PLAIN, 8 * 3600.0)


def window(
    number: int, length_s: float, received: int, sent: int = 1000, *, kept: bool = True, pair: int = 1
) -> Window:
    return Window(
        pair=pair, number=number, start_ns=round(number * length_s * 1e9), duration_ns=round(length_s * 1e9),
        scheduled=sent, sent=sent, refused=0, received=received, received_bytes=0, duplicated=0, reordered=0,
        not_offered=0, tx_full=0, polls=0, empty_polls=0, catch_up_max=0, lateness_p99_ns=0, lateness_max_ns=0,
        involuntary_switches=0, kept=kept,
    )  # fmt: skip


def launch(settings: Settings, alive: int, received: int = 1000) -> list[Window]:
    """All windows of a launch on a path that is dead from window ``alive`` + 1 on."""
    count = round(settings.duration_s / settings.window_s)
    return [
        window(number, settings.window_s, received if number <= alive else 0, kept=settings.keeps(number))
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("settings", [PLAIN, PAPER, SOAK], ids=["second", "paper", "soak"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_path_that_is_dead_at_the_end_has_stalled(settings: Settings, share: float) -> None:
    count = round(settings.duration_s / settings.window_s)
    alive = round(share * count)
    dead = count - alive
    sentence = f"pair 1: nothing arrived in the last {dead} of {count} windows"
    assert stalled(launch(settings, alive)) == sentence


@pytest.mark.parametrize("settings", [PAPER, SOAK], ids=["paper", "soak"])
def test_nine_tenths_of_a_long_launch_are_no_whole_one(settings: Settings) -> None:
    count = round(settings.duration_s / settings.window_s)
    assert stalled(launch(settings, round(0.9 * count))) is not None


@pytest.mark.parametrize("alive", [8, 9, 10])
def test_two_windows_are_no_silence(alive: int) -> None:
    assert stalled(launch(PLAIN, alive)) is None


def test_what_comes_again_has_not_stalled() -> None:
    windows = launch(PAPER, 35)
    assert stalled([*windows[:58], window(59, 1.0, 1, kept=False), window(60, 1.0, 0, kept=False)]) is None


def test_windows_in_which_no_frame_was_due_say_nothing() -> None:
    windows = launch(PLAIN, 6)
    assert stalled([*windows, window(11, 0.1, 0, sent=0)]) is not None
    assert stalled([*windows[:6], *(window(number, 0.1, 0, sent=0) for number in range(7, 11))]) is None


def test_a_path_that_loses_almost_everything_is_silent_by_chance() -> None:
    assert stalled(launch(PLAIN, 7, received=3)) is None
    assert stalled(launch(PLAIN, 7, received=4)) is not None


def test_short_windows_make_no_stall_of_a_moment() -> None:
    short = Settings(duration_s=1.0, window_s=0.01)
    assert stalled(launch(short, 71)) is None
    assert stalled(launch(short, 70)) is not None


def test_the_pair_that_ends_is_named() -> None:
    other = [window(number, 0.1, 1000, pair=2) for number in range(1, 11)]
    assert str(stalled([*other, *launch(PLAIN, 6)])).startswith("pair 1: ")
