# SPDX-License-Identifier: BSD-3-Clause
"""Measuring: a case on a rig becomes a Measurement."""

from pytest_icbench.measure.progress import OnProgress, Progress
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.strategy.repeat import measure
from pytest_icbench.measure.summary.summarize import Surroundings
from pytest_icbench.model.search_goal import PRESETS, goal_of
from pytest_icbench.model.settings import PROTOCOLS, Settings

__all__ = [
    "PRESETS",
    "PROTOCOLS",
    "OnProgress",
    "Progress",
    "Settings",
    "Surroundings",
    "goal_of",
    "measure",
    "reference_case",
]
