# SPDX-License-Identifier: BSD-3-Clause
"""The round trips of a launch: the samples of its pairs together, and how they vary. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.launch import PairCounts
from pytest_icbench.stats.quantiles import Histogram, merge


class RoundTrips(NamedTuple):
    """The histograms of a launch as in ``Launch``; None where no pair has samples."""

    rtt: Histogram | None
    rtt_actual: Histogram | None
    rtt_first: Histogram | None
    pdv: Histogram | None


def together(
    couples: Sequence[tuple[ProcessOutput, ProcessOutput]], pairs: Sequence[PairCounts], burst: int
) -> RoundTrips:
    """Returns the round trips of all pairs.

    Args:
        couples: client and server of each pair.
        burst: requests of a burst.
    """
    trips = _samples(couples, pairs, burst, "rtt")
    actual = _samples(couples, pairs, burst, "rtt_actual")
    first = _samples(couples, pairs, burst, "rtt_first")
    return RoundTrips(merge(trips), merge(actual), merge(first), variation(trips))


def _samples(
    couples: Sequence[tuple[ProcessOutput, ProcessOutput]],
    pairs: Sequence[PairCounts],
    burst: int,
    name: Literal["rtt", "rtt_actual", "rtt_first"],
) -> list[Histogram]:
    """Returns the pairs' samples. Requests without an answer are counted from the windows, without the warm-up.

    A request that was due and never left is as slow as a lost one: who waits for its answer waits as long. From the
    actual send time only those count that left.
    """
    histograms = []
    for (client, _), counts in zip(couples, pairs, strict=True):
        histogram: Histogram | None = getattr(client.summary, name) if client.summary else None
        if histogram is not None:
            unsent = counts.unanswered - counts.lost
            lost = {
                "rtt": counts.unanswered,
                "rtt_actual": counts.lost,
                "rtt_first": max(counts.bursts - histogram.count, 0) + math.ceil(unsent / burst),
            }
            histograms.append(replace(histogram, lost=lost[name]))
    return histograms


def variation(by_pair: Sequence[Histogram]) -> Histogram | None:
    """Returns the delay variation of all pairs, each a stream by itself (RFC 5481); None for one pair."""
    return merge(histogram.less_minimum() for histogram in by_pair) if len(by_pair) > 1 else None
