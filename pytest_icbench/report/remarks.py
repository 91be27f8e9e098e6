# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on a result beside its main value, in words that tables and the page share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_icbench.display.axes import number, short
from pytest_icbench.model import disturbed
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.path import DIRECTION_NAMES
from pytest_icbench.model.result import Result
from pytest_icbench.model.verdict import NOTABLE
from pytest_icbench.stats.quantiles import SAMPLES_BEYOND, Estimate
from pytest_icbench.wording import counted, percent, span

#: Smallest drift that is reported, as a part of the value.
NOTABLE_DRIFT = 0.01
#: Metrics of rates that are searched for.
SEARCHES = ("ndr", "pdr")
_PERCENTILES = ("p50", "p90", "p99", "p99.9", "p99.99")


def is_search(result: Result) -> bool:
    """Whether the rate was searched for: its interval is then a bracket and no confidence interval."""
    return result.metric in SEARCHES


def bounds(result: Result, between: str = " to ") -> str:
    """Returns the relevant bounds of a search in Mpps; empty where none is proven, and for other results.

    RFC 9971 wants the lower bound in every report. An upper bound that is not the device's is left out.
    """
    lower, upper = number(result, result.searched.search_lower_pps), number(result, result.searched.search_upper_pps)
    if not is_search(result) or lower is None:
        return ""
    if upper is None or result.frames.throughput_pps is None or result.frames.throughput_pps.high is None:
        return f"≥{short(lower / 1e6)}"
    return f"{short(lower / 1e6)}{between}{short(upper / 1e6)}"


def relevant_bounds(result: Result) -> str:
    """Returns the relevant bounds as a sentence, including an upper bound that is not the device's."""
    lower, upper = number(result, result.searched.search_lower_pps), number(result, result.searched.search_upper_pps)
    if not is_search(result) or (lower is None and upper is None):
        return ""
    ends = [
        f"no {name} bound proven" if value is None else f"{name} {short(value / 1e6)} Mpps"
        for name, value in (("lower", lower), ("upper", upper))
    ]
    return f"{', '.join(ends)} (offered load over all pairs, RFC 9971)"


def times(result: Measurement, stem: str, *names: str) -> dict[str, Estimate | None]:
    """Returns times (ns) of a result by name: ``p99.9`` of ``rtt`` is its ``rtt_p99_9_ns``."""
    return {name: result.estimate(f"{stem}_{name.replace('.', '_')}_ns") for name in names}


def round_trips(result: Measurement) -> dict[str, Estimate | None]:
    """Returns the percentiles of round trips (ns) by name."""
    return times(result, "rtt", *_PERCENTILES)


def unanswered(result: Measurement) -> str:
    """Returns how many requests have no answer, and which percentiles are not given; empty where nothing is missing.

    Only p50 and p99 are missed for want of requests: the others take more than a short launch has.
    """
    requests = result.round_trips.rtt_samples + result.round_trips.rtt_lost
    among, few = [], ""
    for name, value in round_trips(result).items():
        beyond = 1 - float(name.removeprefix("p")) / 100
        if value is not None:
            continue
        if round(requests * beyond, 6) >= SAMPLES_BEYOND:
            among.append(name)
        elif requests and name in ("p50", "p99") and not few:
            few = f"{name} takes {SAMPLES_BEYOND / beyond:,.0f} requests, there were {requests:,}"
    if not result.round_trips.rtt_lost:
        return few
    text = (
        f"{result.round_trips.rtt_lost:,} of {requests:,} requests have no answer, and are slower than those that have"
    )
    missing = f"{', '.join(among)} would be among them" if among else ""
    return "; ".join(part for part in (text, missing, few) if part)


def first_round_trips(result: Measurement) -> dict[str, Estimate | None]:
    """Returns the percentiles of round trips of frames that were first in their burst (ns)."""
    return times(result, "rtt_first", "p50", "p99")


def variation(result: Measurement) -> dict[str, Estimate | None]:
    """Returns the percentiles of the delay variation (ns)."""
    return times(result, "pdv", *_PERCENTILES)


def floor(result: Measurement) -> dict[str, float | None]:
    """Returns the percentiles of the reference link's round trips (ns)."""
    return {
        "p50": result.round_trips.floor_p50_ns,
        "p90": result.round_trips.floor_p90_ns,
        "p99": result.round_trips.floor_p99_ns,
    }


def percentiles(times: Mapping[str, float | None], greatest: float | None = None) -> str:
    """Returns ``p50 20 µs, p99 31 µs``: the known percentiles and the greatest time. Times are in ns."""
    named = {**times, "max": greatest}
    return ", ".join(f"{name} {short(value / 1e3)} µs" for name, value in named.items() if value is not None)


def shares_cpus(result: Result) -> bool:
    """Whether endpoints of one host shared a CPU and yielded; without its CPUs the name of the placement tells."""
    cpus = result.treatment.get("cpus")
    every = cpus.get("yield_every") if isinstance(cpus, Mapping) else None
    return result.placement == "cooperative" if every is None else bool(every)


def drift(result: Result) -> str:
    """Returns a sentence on the drift of the value if it is notable."""
    change = result.drift or 0.0
    if abs(change) < NOTABLE_DRIFT:
        return ""
    course = f"by {change:+.1%} from the first launch to the last" if abs(change) < 1 else drifted(change)
    return f"drifted {course}, so the level of another time is not known"


def drifted(change: float) -> str:
    """Returns a drift in short: ``+12 %``, or ``from 1.7 to 0.27 times its level``.

    It is relative to the level halfway, so that of a value that falls to a sixth is beyond -100 %.
    """
    if abs(change) < 1:
        return f"{'-' if change < 0 else '+'}{percent(change)}"
    first, last = (max(1 + side * change / 2, 0.0) for side in (-1, 1))
    return f"from {first:.2g} to {last:.2g} times its level"


def each_way(result: Measurement) -> str:
    """Returns the rate and the loss of each direction where both ends send at once; else empty."""
    ways = result.frames.per_direction if result.is_number else ()
    return "; ".join(
        f"{DIRECTION_NAMES[way.direction]} {mpps(way.throughput_pps)} Mpps"
        + (f", {way.lost:,} of {way.sent:,} frames lost" if way.lost else ", nothing lost")
        for way in ways
    )


def dependence(result: Result) -> str:
    """Returns a sentence on launches that depend on each other; empty if they seem not to."""
    reported = result.dependence
    if reported is None or not reported.likely:
        return ""
    depend = f"launches depend on those before them (correlation {reported.correlation:.2f})"
    return f"{depend}, so the interval is {reported.widening:.1f} times as wide"


def disturbance(result: Result) -> str:
    """Returns how many launches others disturbed, and by what; empty where the verdict's sentence says it already."""
    reported = disturbed.disturbance(result)
    return "" if result.verdict in NOTABLE and reported in (result.reason or "") else reported


def rounds(result: Measurement) -> str:
    """Returns over how many rounds of the session the launches were spread; empty for a case measured at once."""
    numbers = {launch.round for launch in result.per_launch if launch.round is not None}
    return f"in {counted(len(numbers), 'round')}" if result.ended_by == "rounds" and numbers else ""


def clock_step(result: Result) -> str:
    """Returns a sentence on a host's clock that was set while the result was measured; empty if it was not."""
    step_s = result.conditions.get("clock_step_s")
    if not isinstance(step_s, int | float):
        return ""
    course = "back" if step_s < 0 else "forward"
    return (
        f"the host's clock was set {course} by {span(abs(step_s))} meanwhile: rates and times are measured by another"
        " clock and hold, the time of day of its launches does not"
    )


def not_known(result: Result) -> str:
    """Returns what the host did not tell when the run began, and what is therefore not claimed; empty if nothing."""
    fitness: Any = result.conditions.get("fitness")
    missing = fitness.get("missing") if isinstance(fitness, Mapping) else None
    return "; ".join(str(sentence) for sentence in missing) if isinstance(missing, list | tuple) else ""


def mpps(pps: float) -> str:
    """Formats a rate in Mpps with two or three decimals, with as many as there are if it is below 10,000 frames/s."""
    if not 0 < pps < 10_000:
        return f"{pps / 1e6:.2f}" if pps >= 1e6 else f"{pps / 1e6:.3f}"
    return f"{max(round(pps), 1) / 1e6:.6f}".rstrip("0")
