# SPDX-License-Identifier: BSD-3-Clause
"""Recomputes a measurement from its windows and histograms. Pure.

The counters of pairs and the rates of launches follow from windows. The figures follow from launches, with their
latency histograms and the switch's counters. The verdict follows from the limits of the run: ``gate.judge``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pytest_icbench.kinds.runs import METHODS, OWN_METHODS
from pytest_icbench.measure.noisy_neighbours import with_effect
from pytest_icbench.measure.side_by_side import with_comparison
from pytest_icbench.measure.soak import with_losses
from pytest_icbench.measure.summary.recorded import Recorded
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect, NoisyNeighbourUse
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES


def recomputed(whole: Measurement) -> Measurement:
    """Returns the recomputed measurement before it is judged: its verdict is None or INVALID.

    Raises:
        DamagedData: parts are missing, as in a result of an earlier version.
    """
    if whole.dependence is None and whole.precision and whole.launches >= FEWEST_LAUNCHES:
        raise DamagedData(f"{whole.case}: its intervals are of an earlier version that assumed independent launches")
    recorded = Recorded.of(whole)
    kind = whole.figures.kind
    measurement = (METHODS.get(kind) or OWN_METHODS[kind]).recompute(recorded)
    # Its launches were valid by the rules of their version. No window has the counters of functions.
    measurement = replace(measurement, rules=whole.rules, functions=whole.functions)
    measurement = with_effect(measurement, recorded.case, recorded.reference, _use(whole.frames.noisy_neighbour))
    if whole.frames.loss_events is not None:
        measurement = with_losses(measurement)
    # The base is another result, so the recorded comparison is copied.
    return with_comparison(measurement, whole.side_by_side)


def _use(recorded: NoisyNeighbourEffect | None) -> NoisyNeighbourUse | None:
    """Returns the use of the CPU by a noisy neighbour, which no window has."""
    if recorded is None or recorded.busy is None:
        return None
    return NoisyNeighbourUse(recorded.busy, recorded.cache_bytes)


def differences(recorded: Measurement, anew: Measurement, names: Collection[str]) -> list[str]:
    """Returns the names whose values differ, to the last digit.

    Args:
        names: names that were recorded; an earlier version had fewer. Windows are compared by the figures from them.
    """
    before, now = (data.pop("figures") | data for data in (recorded.to_dict(), anew.to_dict()))
    return [name for name in before if name in names and before[name] != now.get(name)]
