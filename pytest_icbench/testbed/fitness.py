# SPDX-License-Identifier: BSD-3-Clause
"""Finds out in seconds whether a host is fit for measurements now, and waits until it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from pytest_icbench.errors import IcbenchError
from pytest_icbench.host import facts
from pytest_icbench.host.cpu_time import OwnProcesses, counts_run_delay
from pytest_icbench.host.resource import perf
from pytest_icbench.host.session import HostSession
from pytest_icbench.host.watch import NO_RUN_DELAY, HostWatch
from pytest_icbench.measure.launch.launch import run_launch
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.model.case import Case
from pytest_icbench.model.fitness import Fitness, Link
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.rig import Rig

#: How long the CPUs are watched, in seconds.
SAMPLE_S = 0.5
#: A host is quiet once it was so in this many samples in a row, each this long.
QUIET_SAMPLES, WAIT_SAMPLE_S = 3, 1.0
#: Launches of a control link.
CONTROL_LAUNCHES = 3
_CONTROL: dict[str, Any] = {"warmup_s": 0.15, "max_warmup_s": 0.0, "duration_s": 0.3, "drain_s": 0.2, "repeats": 1}

#: Called with what was found last and the seconds that are left.
OnWait = Callable[[Fitness, float], None]


def examine(session: HostSession, cpus: Collection[int], sample_s: float = SAMPLE_S) -> Fitness:
    """Returns what others take from these CPUs now, and how fast the CPUs are."""
    watch = HostWatch(OwnProcesses(session.id, base=session.root.base), cpus, base=session.root.base)
    time.sleep(sample_s)
    seen = watch.read()
    frequencies = facts.frequency_mhz(session.root, cpus)
    slowest = min(frequencies, key=lambda cpu: frequencies[cpu], default=None)
    base_khz = slowest and session.root.read_int(f"/sys/devices/system/cpu/cpu{slowest}/cpufreq/base_frequency")
    least = None if slowest is None else round(frequencies[slowest])
    share = frequencies[slowest] * 1000 / base_khz if slowest is not None and base_khz else None
    missing = [*seen.missing]
    if not counts_run_delay(session.root.base):
        missing.append(NO_RUN_DELAY)
    if (lacked := perf.without_events()) is not None:
        missing.append(lacked)
    return Fitness(seen, least, None if share is None else round(share, 3), missing=tuple(missing))


def wait_quiet(
    session: HostSession,
    cpus: Collection[int],
    limit_s: float,
    on_wait: OnWait | None = None,
    look: Callable[[float], Fitness] | None = None,
) -> Fitness:
    """Waits until others leave these CPUs alone; returns what was found last, also if the time is over.

    Args:
        limit_s: longest wait, in seconds; 0 looks once.
        on_wait: called after each look that found a busy host.
        look: looks for so many seconds; by default at this host.
    """
    look = look or (lambda sample_s: examine(session, cpus, sample_s))
    began = time.monotonic()
    fitness = look(SAMPLE_S)
    if fitness.quiet or limit_s <= 0:
        return fitness
    quiet = 0
    while quiet < QUIET_SAMPLES:
        left_s = limit_s - (time.monotonic() - began)
        if left_s <= 0:
            break
        if on_wait is not None:
            on_wait(fitness, left_s)
        fitness = look(min(WAIT_SAMPLE_S, max(left_s, 0.05)))
        quiet = quiet + 1 if fitness.quiet else 0
    return replace(fitness, waited_s=round(time.monotonic() - began, 1))


@dataclass(frozen=True, slots=True)
class ControlLink:
    """A reference link to be measured, and its rig."""

    case: Case
    rig: Callable[[], Rig]
    api: str
    settings: Settings


def measure_link(link: ControlLink) -> Link | str:
    """Measures a reference link with a few short launches; returns a sentence if that is not possible."""
    case = replace(link.case, api=link.case.api or link.api)
    settings = replace(link.settings, **_CONTROL, window_s=min(link.settings.window_s, 0.1))
    rig = link.rig()
    rates = []
    try:
        rig.build()
        fault = preflight(rig, case, settings)
        if fault is not None:
            return f"control link {case.switch} was not measured: {fault[1]}"
        for number in range(CONTROL_LAUNCHES):
            launch = run_launch(rig, case, settings, index=number)
            if launch.invalid is None:
                rates.append(launch.throughput_pps)
    except IcbenchError as error:
        return f"control link {case.switch} was not measured: {str(error).splitlines()[0]}"
    finally:
        rig.close()
    if not rates:
        return f"control link {case.switch} was not measured: no launch of it is valid"
    return Link(case.id, case.switch, tuple(rates))
