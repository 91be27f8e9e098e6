# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a recomputed measurement, by the limits and the baseline that were in force. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.limits import Limit
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.versions import against_base
from pytest_icbench.model.codec import decode
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict


def rejudged(
    measurement: Measurement,
    limits: Iterable[Mapping[str, Any]],
    recorded_margins: Mapping[str, Sequence[Any]],
    comparer: Comparer | None,
    base: Measurement | None = None,
    *,
    retest: bool = False,
) -> Measurement:
    """Returns the measurement with its verdict; unchanged if it is INVALID.

    A waiver depends on the day, so none is applied here.

    Args:
        limits: the fields of ``Limit`` as plain data.
        recorded_margins: ``Margins.values`` as plain data.
        base: the measurement that ran side by side with it, if any.
        retest: whether it was measured again, since it was worse.
    """
    if measurement.verdict == Verdict.INVALID:
        return measurement
    margins = Margins({key: (float(value), str(source)) for key, (value, source) in recorded_margins.items()})
    against = None if comparer is None else comparer.compare(measurement, margins, retest=retest)
    if measurement.side_by_side is not None:  # the base stands in for the baseline
        of = comparer.baseline.name if retest and comparer is not None else None
        against = against_base(measurement, base, margins, of)
    judgement = judge(measurement, [decode(Limit, limit, "limits") for limit in limits], against=against)
    return replace(measurement, **judgement.fields())
