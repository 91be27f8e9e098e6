# SPDX-License-Identifier: BSD-3-Clause
"""Limits on results, and the finding of a measurement against one limit. Pure.

A limit is the worst value that is still allowed. It is missed (REGRESSED) only if the whole interval lies beyond it.
It is held (PASS) only if the whole interval lies within it. Otherwise the measurement is INCONCLUSIVE.
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
from pytest_icbench.stats.decision import MOST_MORE
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, SAMPLES_BEYOND, Estimate

#: Numbers about the measuring, about the requested load, or about other results: no limit names them.
BOOKKEEPING = frozenset(
    {
        *("launches", "windows", "confidence", "rules", "started_at", "duration_s", "drift"),
        *("load", "load_of_pps", "ratio_to_baseline", "ratio_to_base"),
    }
)
#: Prefixes of the names of results that only one dimension has; both dimensions have the others.
_OWNERS = (
    (("throughput_", "search_", "fairness", "cycles_per_packet"), "throughput"),
    (("rtt_", "pdv_", "floor_"), "latency"),
    (("operations", "goodput_", "response_", "client_", "server_", "softirq_"), "application"),
    (("birth_",), "birth"),
)
#: Results that applications have, too.
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


#: Results that a limit can name, with the dimensions that have them. Estimates bring an interval, the others none.
LIMITABLE = {
    **{name: _dimensions(name) for name in _numbers() if name not in BOOKKEEPING},
    "back_to_back_frames": ("throughput",),
}

#: Results that only one kind of measurement has: a limit on them does not apply to others, whose value is None.
_OF_A_KIND = ("back_to_back_frames", "loss_event_count")

#: Results about lost frames: unknown for the frames that the sender did not offer.
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
    if limit.name.startswith("search_") and measurement.searched.search is None:
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
        return too_few_samples(no_value, measurement) or no_value
    is_estimate = isinstance(value, Estimate)
    low, high = (value.low, value.high) if is_estimate else (value, value)
    is_searched = measurement.searched.search is not None and limit.name.startswith(("throughput_", "search_"))
    at_least = is_searched and measurement.lower_bound
    if limit.name == "back_to_back_frames" and measurement.rates.back_to_back is not None:
        at_least = measurement.rates.back_to_back.at_least
    if at_least:
        high = inf  # what the device can do may lie anywhere above
    ends = {"value_low": low, "value_high": None if high == inf else high}
    plain = replace(no_value, reason=None, value=value.value if is_estimate else value, at_least=at_least, **ends)
    if low is None or high is None:
        # An estimate without an interval can neither hold nor miss a limit.
        return too_few_samples(plain, measurement) or further(plain, measurement)
    if limit.kind == "min":
        held, missed = low >= limit.value, high < limit.value
    else:
        held, missed = high <= limit.value, low > limit.value
    if limit.name in LOSSES and measurement.generator_bound and measurement.metric == "fixed":
        return replace(plain, reason="bound", note=_NOT_OFFERED)
    if held or missed:
        return replace(plain, verdict=Verdict.PASS if held else Verdict.REGRESSED)
    if not is_estimate and measurement.searched.search is None:
        return replace(plain, reason="bound", note="the longest trains that were sent lost nothing")
    return further(plain, measurement, Estimate(value, low, high), limit.value)


def further(plain: Finding, measurement: Measurement, estimate: Estimate | None = None, limit: float = 0.0) -> Finding:
    """Returns an INCONCLUSIVE finding with its reason and the effort that a clear answer would take.

    Args:
        estimate: the figure with its interval; None without one.
        limit: in the unit of the estimate.
    """
    launches = measurement.launches
    plain = replace(plain, unit="launch", units=launches)
    if measurement.searched.search is not None and plain.at_least:
        return replace(plain, reason="bound", note=_SEARCH_ENDED)
    if measurement.searched.search is not None:
        return replace(plain, reason="spread", note=_WIDE_SEARCH)
    few = max(FEWEST_LAUNCHES - launches, 0) or None
    more = few if estimate is None else _until_told(estimate, limit, launches)
    seconds = more * measurement.duration_s / launches if more and launches else 0.0
    return replace(plain, reason="few" if estimate is None else "spread", more=more, more_s=seconds or None)


def _until_told(estimate: Estimate, limit: float, launches: int) -> int | None:
    """Returns how many more launches it takes until an interval that contains its limit lies on one side of it.

    The width of an interval is taken to shrink with 1 / sqrt(launches), and its point to stay where it is.

    Returns:
        At least 1; None for more than ``MOST_MORE``, as where the figure is at the limit.
    """
    if estimate.low is None or estimate.high is None or launches < 1:
        return None
    distance = abs(estimate.value - limit)
    reach = estimate.value - estimate.low if estimate.value >= limit else estimate.high - estimate.value
    if not 0 < reach < math.inf or (distance / reach) ** 2 * (launches + MOST_MORE) < launches:
        return None
    return max(math.ceil(launches * (reach / distance) ** 2) - launches, 1)


_PERCENTILE = re.compile(r"(rtt|rtt_first|pdv|floor)_p(\d+(?:_\d+)?)_ns")


def too_few_samples(plain: Finding, measurement: Measurement) -> Finding | None:
    """Returns the finding on a percentile that has too few round trips; None if that is not the reason.

    A launch needs ten round trips beyond the percentile. The floor is over all launches, so together they need ten.
    """
    match = _PERCENTILE.fullmatch(plain.name)
    if match is None or not measurement.launches:
        return None
    beyond = 1 - float(match[2].replace("_", ".")) / 100
    needed = math.ceil(round(SAMPLES_BEYOND / beyond, 6))
    samples = {
        "rtt_first": measurement.round_trips.rtt_first_samples,
        "floor": measurement.round_trips.floor_samples,
    }.get(match[1], measurement.round_trips.rtt_samples + measurement.round_trips.rtt_lost)
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
