# SPDX-License-Identifier: BSD-3-Clause
"""Reads the state of the CPUs around a launch: a reading takes the CPUs of the path, so none while frames are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.model.cpu_state import of_readings
from pytest_icbench.model.launch import Launch


def beside_cpu_states(rig: MeasuredRig, run: Callable[[], Launch]) -> Launch:
    """Runs a launch; returns it with the state of its CPUs before and after it. Raises what ``run`` raises."""
    began = monotonic()
    before, before_s = rig.cpu_state(), monotonic() - began
    launch = run()
    began = monotonic()
    distances_ns, state = of_readings((before, rig.cpu_state()))
    return replace(
        launch,
        distances_ns=distances_ns,
        distance_ns=state.distance_ns,
        work_ns=state.work_ns,
        overhead_s=launch.overhead_s + before_s + monotonic() - began,
    )
