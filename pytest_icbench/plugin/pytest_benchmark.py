# SPDX-License-Identifier: BSD-3-Clause
"""The pytest-benchmark adapter: what was measured, replayed into its fixture. Nothing else depends on it.

Its table, ``--benchmark-json``, ``-compare``, ``-histogram``, ``-only`` and ``-skip`` then work on our cases. A launch
is a round, of throughput with the seconds of one packet, so that its OPS are packets per second; of latency with the
launch's median round trip. It never imports pytest-benchmark, which may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pytest_icbench.gate.entry import entry_of
from pytest_icbench.gate.margins import MAIN
from pytest_icbench.model.measurement import Measurement

FIXTURE = "benchmark"
_GROUPS = {
    "throughput": "throughput: seconds per packet, OPS are packets per second",
    "latency": "latency: median round-trip time",
}
_CLOCK = pytest.StashKey["Clock"]()
#: Of a result, what goes into ``extra_info``.
_EXTRA = ("case", "dimension", "metric", "placement", "verdict", "bottleneck", "lower_bound", "ratio_to_reference")


class Clock:
    """A timer by which each round takes as long as the next launch's value says.

    pytest-benchmark reads it before and after each round; the first is 0, so that the difference is exact.
    """

    #: How pytest-benchmark names a timer.
    __name__ = "launches"

    def __init__(self) -> None:
        self.values: Sequence[float] = (0.0,)
        self._round = -1
        self._begun = False

    def next_round(self) -> None:
        self._round += 1
        self._begun = False

    def __call__(self) -> float:
        self._begun = not self._begun
        # Profiling makes rounds of its own.
        return 0.0 if self._begun else self.values[max(self._round, 0) % len(self.values)]


def is_loaded(config: pytest.Config) -> bool:
    """Whether pytest-benchmark takes part in this session."""
    return any(
        getattr(each, "__name__", "") == "pytest_benchmark.plugin" for each in config.pluginmanager.get_plugins()
    )


def adopt(item: pytest.Item) -> None:
    """Gives a case the fixture and a marker with our timer; of several markers only the closest counts there."""
    names: list[str] = getattr(item, "fixturenames", [])
    if "icbench" not in names:
        return
    if FIXTURE not in names:
        names.append(FIXTURE)
    own = item.get_closest_marker(FIXTURE)
    clock = item.stash[_CLOCK] = Clock()
    given: Mapping[str, Any] = own.kwargs if own is not None else {}
    item.add_marker(pytest.mark.benchmark(**{**given, "timer": clock}), append=False)


def replay(item: pytest.Item, results: Sequence[Measurement]) -> None:
    """Puts the test's last result into its table; nothing where it measured nothing or nothing that is a number."""
    clock = item.stash.get(_CLOCK, None)
    fixture: Any = getattr(item, "funcargs", {}).get(FIXTURE)
    if clock is None or fixture is None or getattr(fixture, "_mode", None):
        return
    values: Sequence[float] = ()
    if results:
        measurement = results[-1]
        values = seconds(measurement)
    if not values:
        fixture._mode = "icbench: no figure"  # else it warns that nobody used it
        return
    clock.values = values
    line = measurement.to_dict()
    fixture.params = {"case": measurement.case, **measurement.axes}
    fixture.group = fixture.group or _GROUPS[measurement.dimension]
    fixture.extra_info.update({f"icbench.{name}": line[name] for name in _EXTRA})
    run: Callable[..., Any] = fixture.pedantic
    run(_nothing, setup=clock.next_round, rounds=len(values), iterations=1)


def _nothing() -> None:
    """What is measured there has been measured already."""


def seconds(measurement: Measurement) -> tuple[float, ...]:
    """One value a launch; one in all for a search, whose launches are trials. Empty for what is no number."""
    entry = entry_of(measurement)
    figure = entry.figures.get(MAIN[measurement.dimension]) if entry is not None else None
    if figure is None:
        return ()
    values = figure.launches or (figure.value,)
    if min(values) <= 0:
        return ()
    return tuple(value / 1e9 if measurement.dimension == "latency" else 1 / value for value in values)
