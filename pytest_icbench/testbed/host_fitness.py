# SPDX-License-Identifier: BSD-3-Clause
"""Examines in seconds whether a host is fit for measurements now, and waits until it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import IcbenchError
from pytest_icbench.host import host_facts
from pytest_icbench.host.cpu_usage import NO_RUN_DELAY, CpuWatch, OwnProcesses, counts_run_delay
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import run
from pytest_icbench.host.resource import perf
from pytest_icbench.host.resource.cpu_meter import format_question, parse_answer
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.model.case import Case
from pytest_icbench.model.fitness import Fitness, Link
from pytest_icbench.model.placement import CpuPair, CpuState
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig

#: How long the CPUs are watched, in seconds.
SAMPLE_S = 0.5
#: A host is quiet once it was so in this many samples in a row, each this long.
QUIET_SAMPLES, WAIT_SAMPLE_S = 3, 1.0
#: Launches of a control link.
CONTROL_LAUNCHES = 3
_CONTROL: dict[str, Any] = {"warmup_s": 0.15, "max_warmup_s": 0.0, "duration_s": 0.3, "drain_s": 0.2, "repeats": 1}

#: Called with the last result and the remaining seconds.
OnWait = Callable[[Fitness, float], None]


def examine(session: HostSession, cpus: Collection[int], sample_s: float = SAMPLE_S) -> Fitness:
    """Returns the load of other processes on these CPUs now, and the CPUs' frequency."""
    watch = CpuWatch(OwnProcesses(session.id, base=session.root.base), cpus, base=session.root.base)
    time.sleep(sample_s)
    seen = watch.read()
    frequencies = host_facts.frequency_mhz(session.root, cpus)
    slowest = min(frequencies, key=lambda cpu: frequencies[cpu], default=None)
    base_khz = slowest and session.root.read_int(f"/sys/devices/system/cpu/cpu{slowest}/cpufreq/base_frequency")
    least = None if slowest is None else round(frequencies[slowest])
    share = frequencies[slowest] * 1000 / base_khz if slowest is not None and base_khz else None
    missing = [*seen.missing]
    if not counts_run_delay(session.root.base):
        missing.append(NO_RUN_DELAY)
    if (lacked := perf.explain_missing_events(session.root)) is not None:
        missing.append(lacked)
    return Fitness(seen, least, None if share is None else round(share, 3), missing=tuple(missing))


def wait_quiet(
    session: HostSession,
    cpus: Collection[int],
    limit_s: float,
    on_wait: OnWait | None = None,
    look: Callable[[float], Fitness] | None = None,
) -> Fitness:
    """Waits until other processes leave these CPUs idle; returns the last result, also after the time limit.

    Args:
        limit_s: longest wait, in seconds; 0 looks once.
        on_wait: called after each look that found a busy host.
        look: examines the host for the given seconds; by default this host.
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


def read_cpu_state(pairs: Sequence[CpuPair]) -> tuple[CpuState, str | None]:
    """Returns the state of the CPUs of these pairs, and the reason if it has no figures. Raises IcbenchError."""
    answer = run([workload_path(), "distance"], timeout_s=10, input=format_question(pairs)).stdout
    return parse_answer(answer, pairs)


def measure_link(case: Case, rig: Rig, api: str, settings: Settings) -> Link | str:
    """Measures a reference link with a few short launches; returns a sentence if that is not possible.

    Args:
        rig: the link's, not yet built.
        api: the technique of a case without one.
    """
    case = replace(case, api=case.api or api)
    settings = replace(settings, **_CONTROL, window_s=min(settings.window_s, 0.1))
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
