# SPDX-License-Identifier: BSD-3-Clause
"""The stopping rule holds the coverage it promises, and the settings refuse what has no sense."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.stopping import narrow, telling_precision, why_stop
from pytest_icbench.model.settings import PROTOCOLS, Settings
from pytest_icbench.stats.dependence import FEWEST_DECIDING
from pytest_icbench.stats.intervals import over_launches
from pytest_icbench.stats.verdict_rule import Allowance

SESSIONS = 800
#: Three standard errors of so many sessions.
NOISE = 3 * math.sqrt(0.95 * 0.05 / SESSIONS)
GENERATOR = random.Random(20190101)

Draw = Callable[[int], float]


def bands(_index: int) -> float:
    """A machine whose launches come in two bands, six in ten in the upper one."""
    return GENERATOR.gauss(100, 0.5) if GENERATOR.random() < 0.6 else GENERATOR.gauss(94, 0.5)


def median_of_bands() -> float:
    ordered = sorted(bands(0) for _ in range(100_001))
    return ordered[50_000]


def autocorrelated(correlation: float) -> Draw:
    """A machine whose launches, with a deviation of 2 %, keep a part of what disturbed the one before."""
    level = 0.0

    def draw(index: int) -> float:
        nonlocal level
        fresh = GENERATOR.gauss(0, 2)
        level = fresh if index == 0 else correlation * level + math.sqrt(1 - correlation**2) * fresh
        return 100 + level

    return draw


def coverage(draw: Draw, median: float) -> float:
    """The share of sessions, stopping rule included, whose interval holds the median."""
    settings, hits = Settings(), 0
    for _ in range(SESSIONS):
        values = [draw(0)]
        while len(values) < 40 and why_stop(values, settings, 0, 0) is None:
            values.append(draw(len(values)))
        estimate = over_launches(values)
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= median <= estimate.high
    return hits / SESSIONS


@pytest.mark.parametrize(
    ("draw", "median"),
    [
        (lambda _: GENERATOR.gauss(100, 1), 100.0),
        (lambda _: GENERATOR.gauss(100, 4), 100.0),
        (lambda _: 100 - GENERATOR.expovariate(1 / 3), 100 - 3 * math.log(2)),
        (bands, median_of_bands()),
    ],
    ids=["narrow", "wide", "skewed", "bands"],
)
def test_stopping_by_width_keeps_95_percent_coverage(draw: Draw, median: float) -> None:
    """Neither less nor much more, as ``benchmarks/validation`` shows with more sessions and more machines."""
    assert 0.93 - NOISE <= coverage(draw, median) <= 0.97 + NOISE


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
def test_stopping_keeps_90_percent_coverage_where_launches_depend_on_each_other(correlation: float) -> None:
    assert coverage(autocorrelated(correlation), 100.0) >= 0.9 - NOISE


def test_no_precision_is_claimed_before_dependence_can_be_reported() -> None:
    values = [100.0] * FEWEST_DECIDING
    assert why_stop(values[:-1], Settings(), 1, 1) is None
    assert why_stop(values, Settings(), 1, 1) is None  # two looks in a row
    assert why_stop([*values, 100.0], Settings(), 1, 1) == "precision"


def test_no_precision_is_claimed_while_launches_depend_on_each_other() -> None:
    alternating = [100.0 + place % 2 / 10 + place / 1e6 for place in range(24)]
    staying = [100.0 + place // 6 % 2 / 10 + place / 1e6 for place in range(24)]
    assert why_stop(alternating, Settings(), 1, 1) == "precision"
    assert why_stop(staying, Settings(), 1, 1) is None
    assert why_stop(staying, Settings(max_duration_s=60), 60, 1) == "max-duration"


def test_no_precision_is_claimed_while_the_launches_drift_by_more() -> None:
    climbing = [100.0 + 0.1 * place + place % 2 * 3 for place in range(30)]  # by 2.8 %, level within 1.1 %
    assert not narrow(climbing, 0.02)
    assert narrow(climbing, 0.03)


def test_a_gate_asks_for_the_precision_that_its_allowance_needs() -> None:
    assert telling_precision(Allowance("higher")) == pytest.approx(0.0106, abs=1e-4)
    assert telling_precision(Allowance("lower", 0.08)) == pytest.approx(0.08 / 2 / math.sqrt(2))


def test_the_time_for_a_case_ends_it() -> None:
    assert why_stop([1.0, 2.0], Settings(max_duration_s=10), 8, 1) is None
    assert why_stop([1.0, 2.0], Settings(max_duration_s=10), 9, 2) == "max-duration"
    assert why_stop([], Settings(max_duration_s=1), 9, 2) is None


def test_a_fixed_number_of_launches_is_a_fixed_number() -> None:
    settings = Settings(repeats=3, max_duration_s=0.1)
    assert why_stop([1.0, 1.0], settings, 100, 100) is None
    assert why_stop([1.0, 1.0, 1.0], settings, 100, 100) == "repeats"


@pytest.mark.parametrize(
    ("name", "kept"), [("thesis", list(range(2, 60))), ("paper", list(range(21, 41)))], ids=["thesis", "paper"]
)
def test_published_discarding(name: str, kept: list[int]) -> None:
    settings = Settings().with_protocol(name)
    assert [number for number in range(1, 61) if settings.keeps(number)] == kept
    assert settings.repeats == 1


def test_histograms_are_discarded_by_what_is_sent() -> None:
    paper = Settings().with_protocol("paper").for_histograms
    assert (paper.warmup_s, paper.duration_s) == (20.25, 20)
    plain = Settings(skip_s=0.2).for_histograms
    assert [plain.warmup_s, plain.duration_s] == pytest.approx([0.45, 0.8])
    assert all(plain.keeps(number) for number in range(1, 9))


def test_every_window_is_kept_by_default() -> None:
    settings = Settings(duration_s=1.0, window_s=0.1)
    assert all(settings.keeps(number) for number in range(1, 11))
    assert set(PROTOCOLS) == {"quick", "thesis", "paper"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"precision": 0}, "precision is 0; give a number above 0"),
        ({"duration_s": -1}, "duration_s is -1; give a number above 0"),
        ({"drain_s": -0.1}, r"drain_s is -0\.1; give 0 or more"),
        ({"repeats": 0}, "the number of launches is below 1"),
        ({"keep_s": 0}, "keep_s is 0; give a number above 0, or leave it out"),
        ({"window_s": 2}, "a window of 2 s does not fit into a duration of 1 s"),
        ({"skip_s": 1.0}, "skipping 1 s leaves nothing of 1 s; make the duration longer"),
        ({"skip_s": 0.6, "keep_s": 0.5}, r"skipping 0\.6 s and keeping 0\.5 s leaves nothing of 1 s"),
    ],
)
def test_settings_without_sense_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Settings(**changes)


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown protocol 'x'; known: paper, quick, thesis"):
        Settings().with_protocol("x")
