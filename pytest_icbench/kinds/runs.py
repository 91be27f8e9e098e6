# SPDX-License-Identifier: BSD-3-Clause
"""How to measure loads that make their own nodes, so that their rigs are empty. A new one has a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pytest_icbench.kinds.startup.startup_run import Place, measure_startup
from pytest_icbench.measure.progress import OnProgress
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.load import Startup
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings

#: The function that measures the case of an empty rig, by the type of its load.
RUNS: Mapping[type, Callable[[Place, Settings, Environment, OnProgress | None], Measurement]] = MappingProxyType(
    {Startup: measure_startup}
)
