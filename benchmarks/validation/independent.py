# SPDX-License-Identifier: BSD-3-Clause
"""The rule that takes launches as independent, which the plugin had before, to be compared with: interval and stop."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.measure.stopping import why_stop_after
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.stats.quantiles import Estimate

#: Confidence, at a fixed number, of an interval whose width decides when to stop, where few looks would be enough:
#: repeated looks cost up to three points of coverage.
LOOKED_CONFIDENCE = 0.966


def interval(values: Sequence[float]) -> Estimate:
    """The interval of the median of independent launches whose number is decided by looks at it."""
    return interpolated(values, LOOKED_CONFIDENCE)


def why_stop(values: Sequence[float], settings: Lengths, elapsed_s: float, next_s: float) -> str | None:
    """Why no further launch is needed: six are enough if the interval is narrow at two looks in a row."""

    def narrow_after(launches: int) -> bool:
        width = interval(values[:launches]).relative_half_width
        return width is not None and width <= settings.precision

    return why_stop_after(len(values), narrow_after, settings, elapsed_s, next_s)
