# SPDX-License-Identifier: BSD-3-Clause
"""What a test's own code tells of what it will measure."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from pytest_icbench.measure.estimate import SOAK_S
from pytest_icbench.plugin.test_code import TestCode, read

HOURS = 2


def plain(icbench: Any) -> None:
    icbench.gate(icbench.throughput())


def default(icbench: Any) -> None:
    icbench.gate(icbench.soak())


def none(icbench: Any) -> None:
    icbench.soak(duration=None, warmup=3)


def named(icbench: Any) -> None:
    icbench.soak(warmup=3, duration=90)


def positional(icbench: Any) -> None:
    icbench.gate(icbench.soak(7.5))


def arithmetic(icbench: Any) -> None:
    icbench.gate(icbench.soak(duration=8 * 3600 + 60 / 2 - 1))


def several(icbench: Any) -> None:
    text = """
Lines further left than the code"""
    icbench.soak(duration=30, warmup=len(text))
    icbench.soak(duration=40)
    icbench.soak()


def unknown(icbench: Any) -> None:
    icbench.soak(duration=HOURS * 3600)


def spread(icbench: Any) -> None:
    options = {"duration": 50}
    icbench.soak(**options)


def no_length(icbench: Any) -> None:
    icbench.soak(duration=1 / 0)


def negative(icbench: Any) -> None:
    icbench.soak(duration=3 - 10)


def text(icbench: Any) -> None:
    icbench.soak(duration="60")


def twice(icbench: Any) -> None:
    icbench.gate(icbench.throughput())
    if icbench.case.rate.is_max:
        assert icbench.latency().rtt_p50_ns


def elsewhere(icbench: Any) -> None:
    plain(icbench)


class InAClass:
    def indented(self, icbench: Any) -> None:
        if icbench:
            icbench.gate(icbench.soak(duration=60))


@pytest.mark.parametrize(
    ("function", "seconds"),
    [
        (plain, SOAK_S),
        (default, SOAK_S),
        (none, SOAK_S),
        (named, 90),
        (positional, 7.5),
        (arithmetic, 28829),
        (several, 40),
        (unknown, SOAK_S),
        (spread, SOAK_S),
        (no_length, SOAK_S),
        (negative, SOAK_S),
        (text, SOAK_S),
        (InAClass.indented, 60),
        (InAClass().indented, 60),
    ],
)
def test_how_long_a_run_is_asked_for(function: Any, seconds: float) -> None:
    found = read(function)
    assert found.soak_s == seconds
    assert ("soak" in found.names) == (function is not plain)


@pytest.mark.parametrize(("function", "count"), [(plain, 1), (default, 1), (twice, 2), (elsewhere, 1)])
def test_how_often_it_measures(function: Any, count: int) -> None:
    assert read(function).measurements == count


def test_code_without_source_has_names_alone() -> None:
    made: dict[str, Any] = {}
    exec("def f(icbench): icbench.soak(duration=60)", made)
    assert read(made["f"]) == TestCode(frozenset({"soak"}))


@pytest.mark.parametrize("what", [None, 3, functools.partial(print), len])
def test_what_is_no_function_tells_nothing(what: object) -> None:
    assert read(what) == TestCode()
