# SPDX-License-Identifier: BSD-3-Clause
"""Says in one sentence how a result was disturbed. Decides whether that is too much for REGRESSED. Pure."""

from __future__ import annotations

from typing import Any

from pytest_icbench.model.measurement import Measurement
from pytest_icbench.wording import counted

#: With a greater share of disturbed launches no REGRESSED is claimed.
MOST_DISTURBED = 0.25
TOO_DISTURBED = "others disturbed more than a quarter of its launches; measure again on a quiet host"


def too_disturbed(result: Measurement) -> bool:
    """Whether so many launches of the figures were disturbed that REGRESSED is not claimed; False if not known."""
    return (result.disturbed_launches or 0) > MOST_DISTURBED * result.launches


def share(result: Measurement) -> str:
    """Returns ``5 of 6 launches``: how many of the figures' launches were disturbed; empty for none."""
    return f"{result.disturbed_launches} of {counted(result.launches, 'launch')}" if result.disturbed_launches else ""


def disturbance(result: Measurement) -> str:
    """Returns ``disturbed: 5 of 6 launches, other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)``; empty if
    nothing did.
    """
    again = result.disturbed_repeated
    repeated = f"{again} disturbed launch{'' if again == 1 else 'es'} repeated" if again else ""
    if result.disturbed_launches:
        worst = "in the worst " if result.disturbed_launches > 1 else ""
        parts = [f"disturbed: {share(result)}"]
        parts += [f"{worst}{result.disturbance}"] if result.disturbance else []
        return ", ".join([*parts, *([repeated] if repeated else [])])
    return f"{repeated}: {result.disturbance}" if repeated and result.disturbance else repeated


def unfit(result: Measurement) -> str:
    """Returns what hindered comparisons when the run began; empty for a quiet host, or if it is not known."""
    fitness: Any = result.conditions.get("fitness")
    if not isinstance(fitness, dict) or fitness.get("fit") is not False:
        return ""
    return f"when the run began {fitness.get('sentence') or 'the host was busy'}"
