# SPDX-License-Identifier: BSD-3-Clause
"""How launches of a kind of measurement are run, summarized and recomputed: what a kind's row says. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_icbench.measure.estimate import Extent, launches_s
from pytest_icbench.measure.repetition import Strategy
from pytest_icbench.measure.summary.recorded import Recorded
from pytest_icbench.measure.summary.summarize import Summary
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings


def _repeat(_case: Case) -> type[Strategy]:
    return Strategy


def _nothing(_case: Case, _settings: Settings) -> None:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """How a kind whose cases have launches is measured.

    Attributes:
        summary: how launches become a measurement.
        strategy_of: returns how the launches of a case follow each other.
        check: raises UsageError if a case of the kind cannot be measured with the settings.
        estimate: returns the least seconds of a case at a rate.
        recompute_parts: returns the measurement of recorded parts; None: the launches have one load.
    """

    summary: Summary
    strategy_of: Callable[[Case], type[Strategy]] = _repeat
    check: Callable[[Case, Settings], None] = _nothing
    estimate: Callable[[Settings, Rate, Extent], float] = launches_s
    recompute_parts: Callable[[Recorded], Measurement] | None = None

    def recompute(self, recorded: Recorded) -> Measurement:
        """Returns the measurement of recorded parts. Raises DamagedData if some are missing."""
        return recorded.summarized(self.summary) if self.recompute_parts is None else self.recompute_parts(recorded)
