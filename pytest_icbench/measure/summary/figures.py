# SPDX-License-Identifier: BSD-3-Clause
"""Computes latency and effort of a measurement: the fields ``rtt_… pdv_… floor_…``, and cycles. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_icbench.measure.summary.bottleneck import role_busy_share
from pytest_icbench.measure.summary.rounds import by_round, over
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.quantiles import Estimate, Histogram, median, merge
from pytest_icbench.stats.student import over_merged, over_units

#: Names of the percentiles in a result.
PERCENTILES: Mapping[str, float] = MappingProxyType(
    {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
)


def kept(estimate: Estimate | None, factor: float = 1.0) -> Estimate | None:
    """Returns an estimate in another unit as a measurement keeps it: without a coverage of its own."""
    if estimate is None:
        return None
    scaled = estimate.scaled(factor)
    return Estimate(scaled.value, scaled.low, scaled.high)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of some launches."""

    launches: Sequence[Launch]

    def latency(self, reference: Sequence[Launch]) -> dict[str, Any]:
        """Returns the latency of all launches' merged histograms; empty if none was measured.

        Args:
            reference: launches of the reference link.
        """
        together = self._together([launch.rtt for launch in self.launches])
        if together is None:
            return {}
        merged = together.whole
        figures: dict[str, Any] = {"rtt_samples": merged.count, "rtt_lost": merged.lost}
        figures["rtt_max_ns"] = _float(merged.maximum)
        figures["rtt_mean_ns"] = together.estimate(lambda histogram: histogram.mean)
        return figures | together.percentiles("rtt") | self._variation() | self._first() | _floor(reference)

    def _together(self, histograms: Sequence[Histogram | None]) -> _Together | None:
        known = [histogram for histogram in histograms if histogram is not None]
        by_rounds = by_round(self.launches, histograms)
        rounds = (merge([histogram for histogram in of_round if histogram is not None]) for of_round in by_rounds)
        return _Together.of(known, [histogram for histogram in rounds if histogram is not None])

    def _variation(self) -> dict[str, Any]:
        """Returns the packet delay variation (RFC 5481).

        Each pair of each launch is a stream by itself, with its least delay as the reference.
        """
        together = self._together(
            [launch.pdv or (launch.rtt and launch.rtt.less_minimum()) for launch in self.launches]
        )
        if together is None:
            return {}
        return {"pdv_max_ns": _float(together.whole.maximum), **together.percentiles("pdv")}

    def _first(self) -> dict[str, Any]:
        """Returns the latency of the first frames of bursts, which do not wait for other frames of their burst."""
        together = self._together([launch.rtt_first for launch in self.launches])
        if together is None:
            return {"rtt_first_samples": 0}
        return {"rtt_first_samples": together.whole.count, **together.percentiles("rtt_first", ("p50", "p99"))}

    def effort(self) -> dict[str, Any]:
        """Returns busy cycles per frame of the switch, the senders and the receivers, and hardware events per frame."""
        figures: dict[str, Any] = {
            "cycles_per_packet": self._median([launch.cycles_per_packet for launch in self.launches])
        }
        for role, counter in (("sender", "sent"), ("receiver", "received")):
            busy = [launch.total_known(f"{role}_busy_cycles") for launch in self.launches]
            frames = [launch.total(counter) for launch in self.launches]
            by_launch = [
                cycles / n if cycles is not None and n else None for cycles, n in zip(busy, frames, strict=True)
            ]
            figures[f"{role}_cycles_per_packet"] = self._median(by_launch)
            figures[f"{role}_busy_share"] = role_busy_share(self.launches, role)
        batches = [launch.vectors_per_call for launch in self.launches if launch.vectors_per_call is not None]
        figures |= {"hardware": self._hardware(), "vectors_per_call": median(batches) if batches else None}
        return figures | self._by_core()

    def _by_core(self) -> dict[str, Any]:
        """Returns how evenly the switch's workers shared the frames, where it tells."""
        known = [launch.frames_by_core for launch in self.launches if launch.frames_by_core]
        ratios = [max(frames.values()) * len(frames) / total for frames in known if (total := sum(frames.values())) > 0]
        if not ratios:
            return {}
        together = Counter[str]()
        for frames in known:
            together.update(frames)
        return {"frames_by_core": dict(together), "core_imbalance": median(ratios)}

    def _median(self, values: Sequence[float | None]) -> Estimate | None:
        known = [(launch, value) for launch, value in zip(self.launches, values, strict=True) if value is not None]
        if not known:
            return None
        return kept(over([launch for launch, _ in known], [value for _, value in known]))

    def _hardware(self) -> dict[str, Any]:
        """Returns the medians of the hardware events that every launch counted."""
        counted = [launch.hardware for launch in self.launches if launch.hardware]
        if not counted or len(counted) < len(self.launches):
            return {}
        return {
            part: {event: median([events[part][event] for events in counted]) for event in counted[0][part]}
            for part in counted[0]
            if all(part in events for events in counted)
        }


@dataclass(frozen=True, slots=True)
class _Together:
    """The histograms of all launches as one, those of all launches but one, for each, and those of each round."""

    whole: Histogram
    without: Sequence[Histogram]
    rounds: Sequence[Histogram]

    @classmethod
    def of(cls, histograms: Sequence[Histogram], rounds: Sequence[Histogram]) -> _Together | None:
        whole = merge(histograms)
        if whole is None:
            return None
        rests = (merge([*histograms[:place], *histograms[place + 1 :]]) for place in range(len(histograms)))
        return cls(whole, [rest for rest in rests if rest is not None], rounds)

    def estimate(self, figure: Callable[[Histogram], float | None]) -> Estimate | None:
        """Returns a figure of all samples, with an interval if it is also one of those of all launches but any one."""
        value = figure(self.whole)
        if value is None:
            return None
        if len(self.rounds) > 1:
            return kept(self._over_rounds(float(value), [figure(histogram) for histogram in self.rounds]))
        without = [figure(rest) for rest in self.without]
        known = [float(rest) for rest in without if rest is not None]
        samples = float(self.whole.minimum or 0), float(self.whole.maximum or 0)
        return kept(over_merged(float(value), known if len(known) == len(without) else (), samples))

    def _over_rounds(self, value: float, of_rounds: Sequence[float | None]) -> Estimate:
        """Returns the figure with the interval that the rounds' own figures have, around it."""
        known = [float(figure) for figure in of_rounds if figure]
        if len(known) < len(of_rounds) or value <= 0:
            return Estimate(value)
        over = over_units(known)
        if over.low is None or over.high is None:
            return Estimate(value)
        return Estimate(value, value * over.low / over.value, value * over.high / over.value, over.coverage)

    def percentiles(self, prefix: str, names: Iterable[str] = PERCENTILES) -> dict[str, Estimate | None]:
        """Returns the percentiles of these names as ``PREFIX_p50_ns``."""
        return {f"{prefix}_{name}_ns": self.estimate(_at(PERCENTILES[name])) for name in names}


def _at(q: float) -> Callable[[Histogram], float | None]:
    return lambda histogram: histogram.percentile(q)


def _floor(reference: Sequence[Launch]) -> dict[str, Any]:
    """Returns the round-trip times of the reference link: those of the tool and the machine without a switch."""
    merged = merge([launch.rtt for launch in reference if launch.rtt is not None])
    if merged is None:
        return {}
    figures = {f"floor_{name}_ns": _float(merged.percentile(PERCENTILES[name])) for name in ("p50", "p90", "p99")}
    return {**figures, "floor_samples": merged.count}


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
