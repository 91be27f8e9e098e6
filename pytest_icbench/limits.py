# SPDX-License-Identifier: BSD-3-Clause
"""Limits on results, and one measurement against one limit. Pure.

A limit is the worst value that is still allowed. It is missed (REGRESSED) only if the whole interval lies beyond it,
held (PASS) only if the whole interval lies within, and otherwise the measurement does not tell (INCONCLUSIVE).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from pytest_icbench.judging import launches_until_told
from pytest_icbench.result import Measurement
from pytest_icbench.result_judged import Finding
from pytest_icbench.stats import FEWEST_LAUNCHES, Estimate

#: Results that a limit can name, by the dimensions that have them. Estimates bring an interval, counters none.
LIMITABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "throughput_pps",
            "throughput_per_pair_pps",
            "throughput_gbps",
            "throughput_l1_gbps",
            "fairness",
            "cycles_per_packet",
        ),
        ("throughput",),
    ),
    **dict.fromkeys(
        (
            "rtt_mean_ns",
            "rtt_p50_ns",
            "rtt_p90_ns",
            "rtt_p99_ns",
            "rtt_p99_9_ns",
            "rtt_p99_99_ns",
            "rtt_max_ns",
            "rtt_samples",
            "rtt_lost",
        ),
        ("latency",),
    ),
    **dict.fromkeys(
        (
            "offered_pps",
            "ratio_to_reference",
            "scheduled",
            "sent",
            "refused",
            "received",
            "lost",
            "duplicated",
            "reordered",
            "late",
            "foreign",
            "corrupted",
            "frame_loss_ratio",
            "trial_loss_ratio",
            "disturbed_windows",
        ),
        ("throughput", "latency"),
    ),
}

#: What a path does to frames that nobody offered is not known.
LOSSES = ("frame_loss_ratio", "trial_loss_ratio", "lost", "refused")
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
    """Whether the measurement's dimension has the result."""
    return measurement.dimension in LIMITABLE.get(limit.name, ())


def find(measurement: Measurement, limit: Limit) -> Finding:
    """A measurement against a limit."""
    value = getattr(measurement, limit.name)
    if value is None:
        return Finding(limit.name, limit.kind, limit.value, limit.source, "INCONCLUSIVE", note="no value")
    is_estimate = hasattr(measurement, f"{limit.name}_low")
    low = getattr(measurement, f"{limit.name}_low", value)
    high = getattr(measurement, f"{limit.name}_high", value)
    at_least = measurement.search is not None and measurement.lower_bound and limit.name.startswith("throughput_")
    if at_least:
        high = inf  # what the device can do may lie anywhere above
    plain = Finding(
        limit.name,
        limit.kind,
        limit.value,
        limit.source,
        "INCONCLUSIVE",
        value=value,
        value_low=low,
        value_high=None if high == inf else high,
        at_least=at_least,
    )
    if low is None or high is None:
        # An estimate without an interval can neither hold nor miss a limit.
        return further(plain, measurement, None)
    if limit.kind == "min":
        held, missed = low >= limit.value, high < limit.value
    else:
        held, missed = high <= limit.value, low > limit.value
    if limit.name in LOSSES and measurement.generator_bound and measurement.metric == "fixed":
        return replace(plain, note=_NOT_OFFERED)
    if held or missed:
        return replace(plain, verdict="PASS" if held else "REGRESSED")
    return further(plain, measurement, Estimate(value, low, high), limit.value) if is_estimate else plain


def further(
    plain: Finding, measurement: Measurement, found: Estimate | None, limit: float = 0.0, fixed_share: float = 0.0
) -> Finding:
    """An INCONCLUSIVE finding with how much longer it would take; arguments as in ``launches_until_told``."""
    if measurement.search is not None:
        if plain.at_least:
            return replace(plain, note="the search ended at what the senders can offer")
        return replace(plain, note="the search's bounds are too far apart: --icbench-search-width")
    if found is None:
        more: int | None = max(FEWEST_LAUNCHES - measurement.launches, 0) or None
        note = TOO_FEW if more else "no interval"
    else:
        more = launches_until_told(found, limit, measurement.launches, fixed_share)
        both = launches_until_told(found, limit, measurement.launches) if fixed_share > 0 else None
        note = AT_LIMIT
        if both is not None:
            each = measurement.launches + both
            note = f"about {each} launches would tell, if the baseline had as many too"
    each_s = measurement.duration_s / measurement.launches if measurement.launches else 0.0
    return replace(plain, more_launches=more, more_s=more * each_s if more and each_s else None, note=note)
