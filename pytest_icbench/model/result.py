# SPDX-License-Identifier: BSD-3-Clause
"""A line of ``results.jsonl`` as reports read it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from pytest_icbench.model.codec import UNWRITTEN
from pytest_icbench.model.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Result(Measurement):
    """A measurement in a report, with what tells it from others there; that stands in no file.

    Attributes:
        run: name of its run in a report of several.
        host: which of several machines measured it, as the report numbers them: ``host 1``.
    """

    run: str | None = field(default=None, metadata=UNWRITTEN)
    host: str | None = field(default=None, metadata=UNWRITTEN)

    @classmethod
    def of(cls, measurement: Measurement, run: str | None = None) -> Result:
        return cls(**{each.name: getattr(measurement, each.name) for each in fields(Measurement)}, run=run)
