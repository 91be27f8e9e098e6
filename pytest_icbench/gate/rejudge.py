# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a measurement that was computed anew, by the limits and the baseline that were in force. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.limits import Limit
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.versions import against_base
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict


def rejudged(
    measurement: Measurement,
    limits: Iterable[Mapping[str, Any]],
    recorded_margins: Mapping[str, Sequence[Any]],
    comparer: Comparer | None,
    base: Measurement | None = None,
) -> Measurement:
    """The measurement with its verdict; unchanged if it is INVALID.

    Args:
        limits: as ``Limit`` has them, and recorded_margins: as ``Margins`` has them, both as plain data.
        base: what was measured side by side with it.

    A waiver depends on the day, so the recorded one is not found again here.
    """
    if measurement.verdict == Verdict.INVALID:
        return measurement
    margins = Margins({key: (float(value), str(source)) for key, (value, source) in recorded_margins.items()})
    against = None if comparer is None else comparer.compare(measurement, margins)
    if measurement.side_by_side is not None:  # what its launches and the base's decided
        against = against_base(measurement, base, margins.of(measurement.dimension)[0])
    judgement = judge(measurement, [Limit(**limit) for limit in limits], against=against)
    return replace(measurement, **judgement.fields())
