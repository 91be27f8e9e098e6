# SPDX-License-Identifier: BSD-3-Clause
"""Limits on results, and the finding of a measurement against one limit. Pure.

A limit is the worst value allowed. It is missed (REGRESSED) if the whole interval is worse, and met (PASS) if no part
of the interval is. Otherwise the measurement is INCONCLUSIVE.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from types import NoneType
from typing import Literal, get_args

from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import FLAT_FIELDS, Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, SAMPLES_BEYOND, Estimate
from pytest_icbench.stats.verdict_rule import MOST_MORE

#: Numbers about the measurement process, the requested load or other results: they have no limits.
BOOKKEEPING = frozenset(
    {
        *("launches", "windows", "confidence", "rules", "started_at", "duration_s", "drift"),
        *("load", "load_of_pps", "ratio_to_baseline", "ratio_to_base"),
    }
)
#: Prefixes of results that only one dimension has. Throughput and latency have all other results.
_OWNERS = (
    (("throughput_", "search_", "fairness", "cycles_per_packet"), "throughput"),
    (("rtt_", "pdv_", "floor_"), "latency"),
    (("operations", "goodput_", "response_", "client_", "server_", "softirq_"), "application"),
    (("startup_",), "startup"),
)
#: Results of throughput and latency that applications have, too.
_OF_ALL = ("ratio_to_reference", "disturbed_launches", "disturbed_repeated", "repeated")


def _numbers() -> Iterator[str]:
    """Yields the names of a measurement's numbers, without the ends of intervals."""
    for name, kind in FLAT_FIELDS.items():
        if {*(get_args(kind) or (kind,))} - {NoneType} <= {int, float, Estimate}:
            yield name


def _dimensions(name: str) -> tuple[str, ...]:
    owners = tuple(dimension for prefixes, dimension in _OWNERS if name.startswith(prefixes))
    shared = ("application",) if name in _OF_ALL else ()
    return owners or ("throughput", "latency", *shared)


#: Results that can have a limit, with the dimensions that have them. Only estimates have an interval.
LIMITABLE = {
    **{name: _dimensions(name) for name in _numbers() if name not in BOOKKEEPING},
    "back_to_back_frames": ("throughput",),
}

#: Results that only one kind of measurement has. A limit on them applies only if the value is not None.
_OF_A_KIND = ("back_to_back_frames", "loss_event_count")

#: Results about lost frames: unknown for frames that the sender did not offer.
LOSSES = ("frame_loss_ratio", "trial_loss_ratio", "lost", "refused", "loss_event_count")
_NOT_OFFERED = "the sender could not offer the rate"
_SEARCH_ENDED = "the search ended at what the senders can offer"
_WIDE_SEARCH = "the search's bounds are too far apart: --icbench-search-width"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one result.

    Attributes:
        name: the result's name, one of ``LIMITABLE``.
        kind: ``min`` or ``max``.
        value: the worst value allowed, in the result's unit.
        source: file, table and key that set it.
    """

    name: str
    kind: Literal["min", "max"]
    value: float
    source: str


def applies(limit: Limit, measurement: Measurement) -> bool:
    """Whether the measurement has the result, by its dimension and by its kind (search, long run, trains)."""
    if limit.name.startswith("search_") and not measurement.figures.BRACKETED:
        return False
    if limit.name in _OF_A_KIND and measurement.value(limit.name) is None:
        return False
    return measurement.dimension in LIMITABLE.get(limit.name, ())


def find(measurement: Measurement, limit: Limit) -> Finding:
    """Compares a measurement with a limit."""
    value = measurement.value(limit.name)
    no_value = Finding(limit.name, limit.kind, limit.value, limit.source, Verdict.INCONCLUSIVE, reason="few")
    if value is None:
        if limit.name == "ratio_to_reference":
            return replace(no_value, note=measurement.reference_evidence)
        return explain_few_samples(no_value, measurement) or no_value
    exact = not isinstance(value, Estimate)
    estimate = Estimate(value, value, value) if exact else value
    at_least = _is_lower_bound(measurement, limit.name)
    # The capacity may lie anywhere above a lower bound.
    low, high = estimate.low, inf if at_least else estimate.high
    plain = replace(
        no_value,
        reason=None,
        value=estimate.value,
        at_least=at_least,
        value_low=low,
        value_high=None if high == inf else high,
    )
    if low is None or high is None:
        # An estimate without an interval can neither meet nor miss a limit.
        return explain_few_samples(plain, measurement) or estimate_effort(plain, measurement)
    if limit.name in LOSSES and measurement.generator_bound and measurement.metric == "fixed":
        return replace(plain, reason="bound", note=_NOT_OFFERED)
    if (verdict := _verdict(limit, low, high)) is not None:
        return replace(plain, verdict=verdict)
    if exact and not measurement.figures.BRACKETED:
        return replace(plain, reason="bound", note="the longest trains that were sent lost nothing")
    return estimate_effort(plain, measurement, Estimate(estimate.value, low, high), limit.value)


def _is_lower_bound(measurement: Measurement, name: str) -> bool:
    """Whether the true value of a result may be greater than the measured one."""
    if name == "back_to_back_frames" and measurement.rates.back_to_back is not None:
        return measurement.rates.back_to_back.at_least
    is_bracketed = measurement.figures.BRACKETED and name.startswith(("throughput_", "search_"))
    return is_bracketed and measurement.lower_bound


def _verdict(limit: Limit, low: float, high: float) -> Verdict | None:
    """Returns the verdict on an interval; None if it contains the limit."""
    if limit.kind == "min":
        met, missed = low >= limit.value, high < limit.value
    else:
        met, missed = high <= limit.value, low > limit.value
    return Verdict.PASS if met else Verdict.REGRESSED if missed else None


def estimate_effort(
    plain: Finding, measurement: Measurement, estimate: Estimate | None = None, limit: float = 0.0
) -> Finding:
    """Returns an INCONCLUSIVE finding with its reason, and the launches and time that a decision would take.

    Args:
        estimate: the figure with its interval; None without one.
        limit: in the unit of the estimate.
    """
    launches = measurement.launches
    plain = replace(plain, unit="launch", units=launches)
    if measurement.figures.BRACKETED and plain.at_least:
        return replace(plain, reason="bound", note=_SEARCH_ENDED)
    if measurement.figures.BRACKETED:
        return replace(plain, reason="spread", note=_WIDE_SEARCH)
    few = max(FEWEST_LAUNCHES - launches, 0) or None
    more = few if estimate is None else _count_more_launches(estimate, limit, launches)
    seconds = more * measurement.duration_s / launches if more and launches else 0.0
    return replace(plain, reason="few" if estimate is None else "spread", more=more, more_s=seconds or None)


def _count_more_launches(estimate: Estimate, limit: float, launches: int) -> int | None:
    """Returns how many more launches narrow an interval until it no longer contains the limit.

    Assumes that the width shrinks with 1 / sqrt(launches) and that the estimate stays the same.

    Returns:
        At least 1; None for more than ``MOST_MORE``.
    """
    if estimate.low is None or estimate.high is None or launches < 1:
        return None
    distance = abs(estimate.value - limit)
    reach = estimate.value - estimate.low if estimate.value >= limit else estimate.high - estimate.value
    if not 0 < reach < math.inf or (distance / reach) ** 2 * (launches + MOST_MORE) < launches:
        return None
    return max(math.ceil(launches * (reach / distance) ** 2) - launches, 1)


_PERCENTILE = re.compile(r"(rtt|rtt_first|pdv|floor)_p(\d+(?:_\d+)?)_ns")


def explain_few_samples(plain: Finding, measurement: Measurement) -> Finding | None:
    """Returns the finding on a percentile with too few round trips; None if there are enough.

    A launch needs ten round trips above the percentile. The floor is of all launches, which need ten in all.
    """
    match = _PERCENTILE.fullmatch(plain.name)
    if match is None or not measurement.launches:
        return None
    above = 1 - float(match[2].replace("_", ".")) / 100
    needed = math.ceil(round(SAMPLES_BEYOND / above, 6))
    trips = measurement.round_trips
    samples = {"rtt_first": trips.rtt_first_samples, "floor": trips.floor_samples}.get(
        match[1], trips.rtt_samples + trips.rtt_lost
    )
    round_trips = samples if match[1] == "floor" else samples / measurement.launches
    if round_trips >= needed:
        reached = plain.value is None and measurement.round_trips.rtt_lost > 0
        unanswered = "requests that were never answered reach into it"
        return replace(plain, reason="few", note=unanswered) if reached else None
    if not samples:
        return None
    longer, launches = needed / round_trips, max(measurement.launches, FEWEST_LAUNCHES)
    launch_s = measurement.duration_s / measurement.launches
    remedy = f"launches {longer:.2g} times as long would tell"
    if seconds := measurement.settings.get("duration_s"):
        remedy = f"--icbench-duration {math.ceil(10 * seconds * longer) / 10:g}"
    subject = "it" if match[1] == "floor" else "a launch"
    return replace(
        plain,
        reason="few",
        unit="launch",
        units=measurement.launches,
        more=launches - measurement.launches or None,
        more_s=(launches * longer - measurement.launches) * launch_s or None,
        note=f"{subject} takes {needed} round trips and had {round_trips:.0f}: {remedy}",
    )
