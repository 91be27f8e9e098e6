# SPDX-License-Identifier: BSD-3-Clause
"""Latency and effort of a measurement: the fields that begin with ``rtt_ pdv_ floor_``, and cycles. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_icbench.measure.summary.bottleneck import role_busy_share
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.intervals import median_over_launches
from pytest_icbench.stats.quantiles import Estimate, Histogram, median, merge

#: Names of the percentiles in a result.
PERCENTILES: Mapping[str, float] = MappingProxyType(
    {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
)


def kept(estimate: Estimate | None, factor: float = 1.0) -> Estimate | None:
    """An estimate in another unit as a measurement keeps it: the measurement says the confidence."""
    if estimate is None:
        return None
    scaled = estimate.scaled(factor)
    return Estimate(scaled.value, scaled.low, scaled.high)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of some launches, their intervals at one confidence."""

    launches: Sequence[Launch]
    confidence: float

    def latency(self, reference: Sequence[Launch]) -> dict[str, Any]:
        """Of all launches' histograms merged; nothing where no latency was measured. ``reference``: its launches."""
        every = [launch.rtt for launch in self.launches if launch.rtt is not None]
        merged = merge(every)
        if merged is None:
            return {}
        found: dict[str, Any] = {"rtt_samples": merged.count, "rtt_lost": merged.lost}
        found["rtt_max_ns"] = _float(merged.maximum)
        found["rtt_mean_ns"] = self._figure(merged.mean, [histogram.mean for histogram in every])
        for name, q in PERCENTILES.items():
            found[f"rtt_{name}_ns"] = self._percentile(q, every)
        return found | self._variation() | self._first() | _floor(reference)

    def _variation(self) -> dict[str, Any]:
        """Packet delay variation: each pair of each launch is a stream of its own, and its least delay the reference
        (RFC 5481).
        """
        shifted = [launch.pdv or launch.rtt.less_minimum() for launch in self.launches if launch.rtt is not None]
        merged = merge(shifted)
        found: dict[str, Any] = {"pdv_max_ns": _float(merged.maximum) if merged else None}
        for name, q in PERCENTILES.items():
            found[f"pdv_{name}_ns"] = self._percentile(q, shifted)
        return found

    def _first(self) -> dict[str, Any]:
        """Of the first frames of bursts: they found the path as it was, and did not wait for their own fellows."""
        every = [launch.rtt_first for launch in self.launches if launch.rtt_first is not None]
        found: dict[str, Any] = {"rtt_first_samples": sum(histogram.count for histogram in every)}
        for name in ("p50", "p99"):
            found[f"rtt_first_{name}_ns"] = self._percentile(PERCENTILES[name], every)
        return found

    def _percentile(self, q: float, every: Sequence[Histogram]) -> Estimate | None:
        merged = merge(every)
        return self._figure(merged.percentile(q) if merged else None, [histogram.percentile(q) for histogram in every])

    def _figure(self, merged: float | None, by_launch: Sequence[float | None]) -> Estimate | None:
        """The point from the merged histogram; the interval from launches, if each of them has the figure.

        What few launches do moves the merged figure and not the median over launches: so the interval reaches to it.
        """
        known = [float(value) for value in by_launch if value is not None]
        if merged is None:
            return None
        point = float(merged)
        if len(known) < len(by_launch):
            return Estimate(point)
        interval = median_over_launches(known, self.confidence)
        if interval.low is None or interval.high is None:
            return Estimate(point)
        return Estimate(point, min(interval.low, point), max(interval.high, point))

    def effort(self) -> dict[str, Any]:
        """Busy cycles per frame of the switch, the senders and the receivers, and hardware events per frame."""
        found: dict[str, Any] = {
            "cycles_per_packet": self._median([launch.cycles_per_packet for launch in self.launches])
        }
        for role, counter in (("sender", "sent"), ("receiver", "received")):
            busy = [launch.total_known(f"{role}_busy_cycles") for launch in self.launches]
            frames = [launch.total(counter) for launch in self.launches]
            each = [cycles / n if cycles is not None and n else None for cycles, n in zip(busy, frames, strict=True)]
            found[f"{role}_cycles_per_packet"] = self._median(each)
            found[f"{role}_busy_share"] = role_busy_share(self.launches, role)
        batches = [launch.vectors_per_call for launch in self.launches if launch.vectors_per_call is not None]
        return {**found, "hardware": self._hardware(), "vectors_per_call": median(batches) if batches else None}

    def _median(self, values: Sequence[float | None]) -> Estimate | None:
        known = [value for value in values if value is not None]
        return kept(median_over_launches(known, self.confidence)) if known else None

    def _hardware(self) -> dict[str, Any]:
        """Medians of what every launch counted."""
        counted = [launch.hardware for launch in self.launches if launch.hardware]
        if not counted or len(counted) < len(self.launches):
            return {}
        return {
            who: {event: median([each[who][event] for each in counted]) for event in counted[0][who]}
            for who in counted[0]
            if all(who in each for each in counted)
        }


def _floor(reference: Sequence[Launch]) -> dict[str, Any]:
    """What the tool and the machine take with no switch between: the round-trip times of the reference link."""
    merged = merge([launch.rtt for launch in reference if launch.rtt is not None])
    if merged is None:
        return {}
    found = {f"floor_{name}_ns": _float(merged.percentile(PERCENTILES[name])) for name in ("p50", "p90", "p99")}
    return {**found, "floor_samples": merged.count}


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
