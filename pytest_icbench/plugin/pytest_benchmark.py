# SPDX-License-Identifier: BSD-3-Clause
"""The adapter for pytest-benchmark: replays measurements into its fixture. Nothing else depends on it.

Its table, ``--benchmark-json``, ``-compare``, ``-histogram``, ``-only`` and ``-skip`` then work on our cases, if one of
its options or the ini value ``icbench_benchmark`` asks for it. A launch is a round. Its time is the seconds per packet
for throughput, so that OPS are packets per second, and the median round trip for latency. The adapter never imports
pytest-benchmark, which may be missing.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

FIXTURE = "benchmark"
#: The columns of its table unless the user names others: those that agree with our table.
COLUMNS = ["median", "iqr", "min", "max", "rounds"]
#: The timer of a case.
CLOCK = pytest.StashKey["Clock"]()
_ASKED = pytest.StashKey[bool]()


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
        # Profiling adds rounds.
        return 0.0 if self._begun else self.values[max(self._round, 0) % len(self.values)]


def is_loaded(config: pytest.Config) -> bool:
    """Whether pytest-benchmark takes part in this session."""
    return any(
        getattr(plugin, "__name__", "") == "pytest_benchmark.plugin" for plugin in config.pluginmanager.get_plugins()
    )


def is_asked_for(config: pytest.Config, ini: bool) -> bool:
    """Whether the user wants the table: by an option of pytest-benchmark that does more than switch it off.

    ``ini``: the ini value ``icbench_benchmark``.
    """
    if _ASKED not in config.stash:  # asked once for each case
        asked = is_loaded(config) and (ini or any(word != "--benchmark-disable" for word in _typed(config)))
        config.stash[_ASKED] = asked
    return config.stash[_ASKED]


def _typed(config: pytest.Config) -> list[str]:
    """Returns the options of pytest-benchmark on the command line, in the ini file and in the environment."""
    words = [*map(str, config.invocation_params.args), *config.getini("addopts")]
    words += shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    return [word for word in words if word.startswith("--benchmark-")]


def adopt(item: pytest.Item) -> None:
    """Gives a case the fixture and a marker with our timer; pytest-benchmark reads only the closest marker.

    Its table begins with the median, as ours does: the mean of the times, and OPS made of it, is another value.
    """
    session = getattr(item.config, "_benchmarksession", None)
    if session is not None and not any(word.startswith("--benchmark-columns") for word in _typed(item.config)):
        session.columns = COLUMNS
    names: list[str] = getattr(item, "fixturenames", [])
    if "icbench" not in names:
        return
    if FIXTURE not in names:
        names.append(FIXTURE)
    marker = item.get_closest_marker(FIXTURE)
    clock = item.stash[CLOCK] = Clock()
    given: Mapping[str, Any] = marker.kwargs if marker is not None else {}
    item.add_marker(pytest.mark.benchmark(**{**given, "timer": clock}), append=False)
