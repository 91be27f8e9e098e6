# SPDX-License-Identifier: BSD-3-Clause
"""Summarizes containers that were created one after the other as a Measurement. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.measure.launch.validity import RULES
from pytest_icbench.measure.summary.recorded import Recorded
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.figures import Startup
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import Startups
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import Estimate, median

#: The metric of the times.
CREATION = "creation"
#: The fewest containers for which the first and the last tenth are compared.
FEWEST_FOR_GROWTH = 20


def growth(times: Sequence[int]) -> float | None:
    """Returns the median of the last tenth over that of the first; None below 20 times."""
    tenth = len(times) // 10
    return None if len(times) < FEWEST_FOR_GROWTH else median(times[-tenth:]) / median(times[:tenth])


@dataclass(frozen=True, slots=True)
class Course:
    """The time in which containers were created.

    Attributes:
        started_at: seconds since the epoch.
        duration_s: how long the case took.
        failure: why the next one did not come up, or why the times of all are none (``NodeFacts.untimed``); else None.
        complete: whether all came up, so that only their times can be at fault.
    """

    started_at: float
    duration_s: float
    failure: str | None = None
    complete: bool = False


def summarize_startup(
    case: Case, settings: Settings, startups: Startups, around: Environment, course: Course
) -> Measurement:
    """Returns the containers' measurement; INVALID with those created before, if one did not come up."""
    failure = course.failure
    times, last = startups.total_ns, startups.idle[-1] if startups.idle else None
    half_ns = startups.first_trip_quantile_ns(0.5)
    evidence = failure
    if failure is not None and not course.complete:
        evidence = f"container {len(times) + 1:,} of {startups.asked:,} did not come up: {failure}"
    return Measurement(
        case=case.id,
        dimension=case.dimension,
        metric=CREATION,
        switch=case.switch,
        port=case.port,
        mode=case.mode_label,
        placement=around.placement,
        verdict=None if failure is None else Verdict.INVALID,
        reason=None if failure is None else "emulated" if course.complete else "start-failed",
        evidence=evidence,
        bottleneck="unknown",
        generator_bound=False,
        figures=Startup(
            startup_ns=Estimate(median(times)) if times else None,
            startup_growth=growth(times),
            startup_memory_bytes=None if last is None else last.memory_bytes / last.containers,
            startup_cpu_share=None if last is None else last.cpu_share / last.containers,
            startup_first_p50_ns=None if half_ns is None else Estimate(half_ns),
            startups=startups,
        ),
        launches=1,
        rules=RULES,
        started_at=course.started_at,
        duration_s=course.duration_s,
        axes=case.to_dict(),
        settings=settings.to_dict(),
        identity=dict(around.identity),
        treatment=dict(around.treatment),
        conditions=dict(around.conditions),
        software=around.software,
    )


def recompute_startup(recorded: Recorded) -> Measurement:
    """Recomputes a measurement from the time of each container. Raises DamagedData without these times."""
    whole = recorded.whole
    startups = whole.containers.startups
    if startups is None:
        raise DamagedData(f"{whole.case}: the result has no containers")
    measurement = summarize_startup(
        recorded.case,
        recorded.settings,
        startups,
        recorded.around,
        Course(whole.started_at, whole.duration_s, "" if whole.verdict == Verdict.INVALID else None),
    )
    if measurement.evidence is None:
        return measurement
    return replace(measurement, reason=whole.reason, evidence=whole.evidence)
