# SPDX-License-Identifier: BSD-3-Clause
"""Compares what a test measures with what its marker says."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.estimate import SOAK_S
from pytest_icbench.plugin.items import Benchmark


class MarkerCheck:
    """Warns if a test does not measure what its marker says: its figures are right, but its planned time is not.

    It also warns of queues that no flow can be in.

    Args:
        soak_s: the user's length of a long run in seconds; None: the test says it.
    """

    def __init__(self, item: pytest.Item, benchmark: Benchmark, soak_s: float | None) -> None:
        self._item = item
        self._benchmark = benchmark
        self._soak_s = soak_s
        self._warnings: set[str] = set()

    def launches(self, method: str) -> None:
        """Checks a call of ``measure``, ``throughput`` or ``latency``."""
        self._of_frames(method)
        measure = self._benchmark.request.measure
        if measure is not None:
            self._warn(method, f"leave out measure='{measure}'")

    def other(self, method: str) -> None:
        """Checks a call of ``search``, ``sweep`` or ``back_to_back``."""
        self._of_frames(method)
        if self._benchmark.measures != method:
            self._warn(method, f"say measure='{method}'")

    def soak(self, duration: float | None) -> float:
        """Checks a call of ``soak``. Returns the seconds that the test asks for."""
        self._of_frames("soak")
        planned_s = self._benchmark.request.soak_duration or SOAK_S
        asked_s = planned_s if duration is None else duration
        as_long = asked_s == planned_s or self._soak_s is not None
        if self._benchmark.measures != "soak" or not as_long:
            self._warn("soak", "say measure='soak'" + ("" if as_long else f", soak_duration={asked_s:g}"))
        return asked_s

    def _of_frames(self, method: str) -> None:
        """Raises UsageError for a method that measures frames where the marker names an application or containers."""
        case = self._benchmark.case
        named = case.load.NAMED
        if named is not None and method != "measure":
            raise UsageError(
                f"{self._benchmark.where}: the marker names {named}, which icbench.{method}() cannot measure: call"
                " icbench.measure()"
            )
        if case.traffic.idle_queues:
            self._say(f"{self._benchmark.where}: {case.id}: {case.traffic.few_flows}")

    def _warn(self, method: str, remedy: str) -> None:
        sentence = (
            f"{self._benchmark.where}: icbench.{method}() is not what the marker says, so that plan and budget have a"
            f" wrong time for it; in the marker, {remedy}"
        )
        self._say(sentence)

    def _say(self, sentence: str) -> None:
        if sentence not in self._warnings:
            self._warnings.add(sentence)
            self._item.warn(pytest.PytestWarning(sentence))
