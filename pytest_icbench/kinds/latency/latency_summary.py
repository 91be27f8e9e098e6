# SPDX-License-Identifier: BSD-3-Clause
"""Round trips, at the maximum or at a given load: the figures of launches, and what a case needs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.measure.launch.validity import OFFERED_SHARE
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.summary.frame_figures import as_kind, frame_figures
from pytest_icbench.measure.summary.launch_log import by_round
from pytest_icbench.measure.summary.summarize import Summary
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import FrameFigures, Latency, kept
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.intervals import estimate_over_merged, estimate_over_units
from pytest_icbench.stats.quantiles import Estimate, Histogram, median, merge


def latency_figures(frames: FrameFigures, launches: Sequence[Launch], reference: Sequence[Launch]) -> Latency:
    """Returns the latency of all launches' merged histograms; without any if none was measured.

    ``reference``: launches of the reference link.
    """
    latency = as_kind(Latency, frames)
    together = _merged(launches, [launch.rtt for launch in launches])
    if together is None:
        return latency
    # RFC 5481: each pair of each launch is a stream by itself, with its least delay as the reference.
    variation = _merged(launches, [launch.pdv or (launch.rtt and launch.rtt.less_minimum()) for launch in launches])
    # The first frames of bursts do not wait for other frames of their burst.
    first = _merged(launches, [launch.rtt_first for launch in launches])
    floor = merge([launch.rtt for launch in reference if launch.rtt is not None])
    floors: dict[str, Any] = {}
    if floor:
        floors = {name: _float(floor.percentile(share)) for name, share in Latency.percentiles("floor").items()}
    return replace(
        latency,
        rtt_mean_ns=together.estimate(lambda histogram: histogram.mean),
        **_percentiles("rtt", together),
        rtt_max_ns=_float(together.whole.maximum),
        rtt_samples=together.whole.count,
        rtt_lost=together.whole.lost,
        **_percentiles("rtt_first", first),
        rtt_first_samples=first.whole.count if first else 0,
        **_percentiles("pdv", variation),
        pdv_max_ns=_float(variation.whole.maximum) if variation else None,
        **floors,
        floor_samples=floor.count if floor else 0,
    )


def _merged(launches: Sequence[Launch], histograms: Sequence[Histogram | None]) -> _Together | None:
    known = [histogram for histogram in histograms if histogram is not None]
    rounds = (
        merge([histogram for histogram in of_round if histogram is not None])
        for of_round in by_round(launches, histograms)
    )
    return _Together.of(known, [histogram for histogram in rounds if histogram is not None])


@dataclass(frozen=True, slots=True)
class _Together:
    """Merged histograms: of all launches, of all but each single one, and of each round."""

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
        """Returns a figure of all samples, with an interval if the figure exists whichever launch is left out."""
        value = figure(self.whole)
        if value is None:
            return None
        if len(self.rounds) > 1:
            return kept(self._over_rounds(float(value), [figure(histogram) for histogram in self.rounds]))
        without = [figure(rest) for rest in self.without]
        known = [float(rest) for rest in without if rest is not None]
        samples = float(self.whole.minimum or 0), float(self.whole.maximum or 0)
        return kept(estimate_over_merged(float(value), known if len(known) == len(without) else (), samples))

    def percentile(self, share: float) -> Estimate | None:
        """Returns the estimate of a percentile."""
        return self.estimate(lambda histogram: histogram.percentile(share))

    def _over_rounds(self, value: float, of_rounds: Sequence[float | None]) -> Estimate:
        """Returns the figure with the relative interval of the rounds' figures."""
        known = [float(figure) for figure in of_rounds if figure]
        if len(known) < len(of_rounds) or value <= 0:
            return Estimate(value)
        over = estimate_over_units(known)
        if over.low is None or over.high is None:
            return Estimate(value)
        return Estimate(value, value * over.low / over.value, value * over.high / over.value, over.coverage)


def _percentiles(stem: str, together: _Together | None) -> dict[str, Any]:
    """Returns the percentiles of a time by field; none if it was not measured."""
    if together is None:
        return {}
    return {name: together.percentile(share) for name, share in Latency.percentiles(stem).items()}


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def generator_bound(case: Case, launches: Sequence[Launch]) -> tuple[str, str] | None:
    """Returns reason and evidence of INVALID if the client could not keep the rate of its round trips, else None.

    The round trips of a client that is too slow belong to another rate than the case's. A single launch in which the
    host took the client's time does not decide. A received rate, as in a sweep or at the maximum, is valid all the
    same.
    """
    rate_pps = case.rate.pps
    if rate_pps is None or not launches:
        return None
    bound = sum(launch.generator_bound for launch in launches)
    if 2 * bound <= len(launches):
        return None
    offered = median([launch.offered_pps for launch in launches]) / case.senders
    ask = f"{rate_pps:,} frames per second; ask for less"
    if offered >= OFFERED_SHARE * rate_pps:
        return "generator-bound", f"the client sent most of its requests late, it cannot keep {ask}"
    return "generator-bound", f"the client offered {offered:,.0f} of {ask}"


def _check(case: Case, _settings: Settings) -> None:
    if case.rate.varies:
        raise UsageError(
            f"round-trip times are measured at a load, not at rate {case.rate.typed}; give max or frames per second"
        )


METHOD = Method(
    Summary(
        lambda case, log: latency_figures(frame_figures(case, log.launches), log.launches, log.reference),
        fault=generator_bound,
    ),
    check=_check,
)
