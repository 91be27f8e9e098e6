# SPDX-License-Identifier: BSD-3-Clause
"""Measuring: a case on a rig becomes a Measurement."""

from pytest_icbench.measure.presets import PRESETS, goal_of
from pytest_icbench.measure.progress import OnProgress, Progress
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.session import measure
from pytest_icbench.measure.settings import PROTOCOLS, Settings
from pytest_icbench.measure.summarize import Surroundings

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
