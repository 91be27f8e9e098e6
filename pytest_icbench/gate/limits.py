# SPDX-License-Identifier: BSD-3-Clause
"""Limits on results, and one measurement against one limit. Pure.

A limit is the worst value that is still allowed. It is missed (REGRESSED) only if the whole interval lies beyond it,
held (PASS) only if the whole interval lies within, and otherwise the measurement does not tell (INCONCLUSIVE).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from types import NoneType
from typing import Literal, get_args, get_type_hints

from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import launches_until_told
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES, SAMPLES_BEYOND, Estimate

#: Numbers about how it was measured, about the load that was asked for, or about other results: no limit names them.
BOOKKEEPING = frozenset(
    {
        *("launches", "windows", "confidence", "rules", "started_at", "duration_s", "drift"),
        *("load", "load_of_pps", "ratio_to_baseline", "ratio_to_base"),
    }
)
#: How the names of results begin that one dimension alone has; others are of both.
_OWNERS = (
    (("throughput_", "search_", "fairness", "cycles_per_packet"), "throughput"),
    (("rtt_", "pdv_", "floor_"), "latency"),
)


def _numbers() -> Iterator[str]:
    """Names of a measurement's numbers, without the ends of intervals."""
    for name, kind in get_type_hints(Measurement).items():
        if {*(get_args(kind) or (kind,))} - {NoneType} <= {int, float, Estimate}:
            yield name


def _dimensions(name: str) -> tuple[str, ...]:
    owners = tuple(dimension for begins, dimension in _OWNERS if name.startswith(begins))
    return owners or ("throughput", "latency")


#: Results that a limit can name, by the dimensions that have them. Estimates bring an interval, the others none.
LIMITABLE = {
    **{name: _dimensions(name) for name in _numbers() if name not in BOOKKEEPING},
    "back_to_back_frames": ("throughput",),
}

#: Of one kind of measurement only: a limit on them says nothing about the others, whose value is None.
_OF_A_KIND = ("back_to_back_frames", "loss_event_count")

#: What a path does to frames that nobody offered is not known.
LOSSES = ("frame_loss_ratio", "trial_loss_ratio", "lost", "refused", "loss_event_count")
_NOT_OFFERED = "the sender could not offer the rate"
TOO_FEW = "too few launches"
AT_LIMIT = "the figure lies at the limit: no number of launches would tell"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit.

    Attributes:
        name: of a result, one of ``LIMITABLE``.
        kind: ``min`` or ``max``.
        value: the worst value allowed, in the result's unit.
        source: where it is written: file, table and key.
    """

    name: str
    kind: Literal["min", "max"]
    value: float
    source: str


def applies(limit: Limit, measurement: Measurement) -> bool:
    """Whether the measurement's dimension has the result, and its kind: a search, a long run, trains."""
    if limit.name.startswith("search_") and measurement.search is None:
        return False
    if limit.name in _OF_A_KIND and getattr(measurement, limit.name) is None:
        return False
    return measurement.dimension in LIMITABLE.get(limit.name, ())


def find(measurement: Measurement, limit: Limit) -> Finding:
    """A measurement against a limit."""
    value = getattr(measurement, limit.name)
    if value is None:
        none = Finding(limit.name, limit.kind, limit.value, limit.source, Verdict.INCONCLUSIVE)
        if limit.name == "ratio_to_reference":
            return replace(none, note=measurement.reference_evidence)
        return too_few_samples(none, measurement) or none
    is_estimate = isinstance(value, Estimate)
    low, high = (value.low, value.high) if is_estimate else (value, value)
    found = measurement.search is not None and limit.name.startswith(("throughput_", "search_"))
    at_least = found and measurement.lower_bound
    if limit.name == "back_to_back_frames" and measurement.back_to_back is not None:
        at_least = measurement.back_to_back.at_least
    if at_least:
        high = inf  # what the device can do may lie anywhere above
    plain = Finding(
        limit.name,
        limit.kind,
        limit.value,
        limit.source,
        Verdict.INCONCLUSIVE,
        value=value.value if is_estimate else value,
        value_low=low,
        value_high=None if high == inf else high,
        at_least=at_least,
    )
    if low is None or high is None:
        # An estimate without an interval can neither hold nor miss a limit.
        return too_few_samples(plain, measurement) or further(plain, Effort.of(measurement), None)
    if limit.kind == "min":
        held, missed = low >= limit.value, high < limit.value
    else:
        held, missed = high <= limit.value, low > limit.value
    if limit.name in LOSSES and measurement.generator_bound and measurement.metric == "fixed":
        return replace(plain, note=_NOT_OFFERED)
    if held or missed:
        return replace(plain, verdict=Verdict.PASS if held else Verdict.REGRESSED)
    if not is_estimate and measurement.search is None:
        return replace(plain, note="the longest trains that were sent lost nothing") if at_least else plain
    return further(plain, Effort.of(measurement), Estimate(value, low, high), limit.value)


@dataclass(frozen=True, slots=True)
class Effort:
    """What a figure took: by it follows how much longer an answer takes.

    ``each_s``: seconds of a launch with all around it, 0 if unknown. ``searched``: the figure is from a search.
    """

    launches: int
    each_s: float = 0.0
    searched: bool = False

    @classmethod
    def of(cls, measurement: Measurement) -> Effort:
        each_s = measurement.duration_s / measurement.launches if measurement.launches else 0.0
        return cls(measurement.launches, each_s, measurement.search is not None)


def further(
    plain: Finding, effort: Effort, found: Estimate | None, limit: float = 0.0, fixed_share: float = 0.0
) -> Finding:
    """An INCONCLUSIVE finding with how much longer it would take; arguments as in ``launches_until_told``."""
    if effort.searched:
        if plain.at_least:
            return replace(plain, note="the search ended at what the senders can offer")
        return replace(plain, note="the search's bounds are too far apart: --icbench-search-width")
    note = None
    if found is None:
        more: int | None = max(FEWEST_LAUNCHES - effort.launches, 0) or None
        note = TOO_FEW if more else "no interval"
    else:
        more = launches_until_told(found, limit, effort.launches, fixed_share)
        if more is None:
            both = launches_until_told(found, limit, effort.launches) if fixed_share > 0 else None
            note = AT_LIMIT
            if both is not None:
                note = f"about {effort.launches + both} launches would tell, if the baseline had as many too"
    return replace(
        plain, more_launches=more, more_s=more * effort.each_s if more and effort.each_s else None, note=note
    )


_PERCENTILE = re.compile(r"(rtt|rtt_first|pdv|floor)_p(\d+(?:_\d+)?)_ns")


def too_few_samples(plain: Finding, measurement: Measurement) -> Finding | None:
    """The finding about a percentile whose launches have too few round trips for it; None if that is not the reason.

    A launch needs ten beyond the percentile, and the interval is over launches; the floor has none and is of them all.
    """
    match = _PERCENTILE.fullmatch(plain.name)
    if match is None or not measurement.launches:
        return None
    beyond = 1 - float(match[2].replace("_", ".")) / 100
    needed = math.ceil(round(SAMPLES_BEYOND / beyond, 6))
    samples = {"rtt_first": measurement.rtt_first_samples, "floor": measurement.floor_samples}.get(
        match[1], measurement.rtt_samples + measurement.rtt_lost
    )
    each = samples if match[1] == "floor" else samples / measurement.launches
    if each >= needed:
        reached = plain.value is None and measurement.rtt_lost > 0
        return replace(plain, note="requests that were never answered reach into it") if reached else None
    if not samples:
        return None
    longer, effort = needed / each, Effort.of(measurement)
    launches = max(measurement.launches, FEWEST_LAUNCHES)
    seconds = measurement.settings.get("duration_s")
    remedy = f"launches {longer:.2g} times as long would tell"
    if seconds:
        remedy = f"--icbench-duration {math.ceil(10 * seconds * longer) / 10:g}"
    return replace(
        plain,
        more_launches=launches - measurement.launches or None,
        more_s=(launches * longer - measurement.launches) * effort.each_s or None,
        note=f"{'it' if match[1] == 'floor' else 'a launch'} takes {needed} round trips and had {each:.0f}: {remedy}",
    )
