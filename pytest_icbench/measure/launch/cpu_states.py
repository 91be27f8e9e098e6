# SPDX-License-Identifier: BSD-3-Clause
"""Reads the state of the CPUs before and after a launch, because a reading uses the CPUs of the path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.placement import of_readings
from pytest_icbench.stats.states import has_changed


def beside_cpu_states(rig: MeasuredRig, run: Callable[[], Launch]) -> Launch:
    """Runs a launch; returns it with the state of its CPUs before and after it. Raises what ``run`` raises.

    A launch in which the state changed is disturbed, whatever its value.
    """
    began = monotonic()
    before, before_s = rig.cpu_state(), monotonic() - began
    launch = run()
    began = monotonic()
    distances_ns, state = of_readings((before, rig.cpu_state()))
    launch = replace(
        launch,
        distances_ns=distances_ns,
        distance_ns=state.distance_ns,
        work_ns=state.work_ns,
        overhead_s=launch.overhead_s + before_s + monotonic() - began,
    )
    if not has_changed(distances_ns):
        return launch
    moved = f"the CPUs moved from {distances_ns[0]:.0f} to {distances_ns[-1]:.0f} ns apart"
    windows = tuple(replace(window, disturbed=True) for window in launch.windows)
    return replace(launch, disturbed=", ".join(filter(None, (launch.disturbed, moved))), windows=windows)
