# SPDX-License-Identifier: BSD-3-Clause
"""Measures throughput: the rate received at the maximum or at a given load, over a sweep, of trains."""

from __future__ import annotations

from pytest_icbench.kinds.throughput.sweep import SweepStrategy, recompute_sweep, sweep_s
from pytest_icbench.kinds.throughput.trains import recompute_trains
from pytest_icbench.measure.estimate import Extent, launches_s
from pytest_icbench.measure.method import Method
from pytest_icbench.measure.repetition import Strategy
from pytest_icbench.measure.summary.frame_figures import as_kind, frame_figures
from pytest_icbench.measure.summary.recorded import Recorded
from pytest_icbench.measure.summary.summarize import Summary
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import Throughput
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings

THROUGHPUT = Summary(lambda case, log: as_kind(Throughput, frame_figures(case, log.launches)))


def _strategy_of(case: Case) -> type[Strategy]:
    return SweepStrategy if case.rate.is_sweep else Strategy


def _estimate(settings: Settings, rate: Rate, extent: Extent) -> float:
    return (sweep_s if rate.is_sweep else launches_s)(settings, rate, extent)


def _recompute(recorded: Recorded) -> Measurement:
    whole = recorded.whole
    if whole.rates.sweep or recorded.case.rate.is_sweep:
        return recompute_sweep(THROUGHPUT, recorded)
    measurement = recorded.summarized(THROUGHPUT)
    if whole.rates.back_to_back is not None:
        return recompute_trains(measurement, recorded, whole.rates.back_to_back)
    return measurement


METHOD = Method(THROUGHPUT, _strategy_of, estimate=_estimate, recompute_parts=_recompute)
