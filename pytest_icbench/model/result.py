# SPDX-License-Identifier: BSD-3-Clause
"""A line of ``results.jsonl`` as reports read it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from pytest_icbench.model.codec import UNWRITTEN
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.stats.quantiles import Estimate


@dataclass(frozen=True, slots=True, repr=False)
class Result(Measurement):
    """A measurement in a report, with its run and its host there; files have neither.

    Attributes:
        run: name of its run in a report of several.
        host: the machine that measured it, if there are several, as the report numbers them: ``host 1``.
        against: the findings against the run before in a report of two runs.
        plain: the main value over that of the same path without its network function, from a case of the same report.
        test: the id of its test.
        apart: in what it differs from others of its path and traffic in a report, in words.
    """

    run: str | None = field(default=None, metadata=UNWRITTEN)
    host: str | None = field(default=None, metadata=UNWRITTEN)
    against: tuple[Finding, ...] = field(default=(), metadata=UNWRITTEN)
    plain: Estimate | None = field(default=None, metadata=UNWRITTEN)
    test: str | None = field(default=None, metadata=UNWRITTEN)
    apart: str | None = field(default=None, metadata=UNWRITTEN)

    @property
    def at_least(self) -> bool:
        """Whether the path may carry more than was measured, since something else was the limit.

        This is what ``≥`` means in every report. It stands before the lower end of the interval: the path carries at
        least that. ``limit by`` names what was the limit: never the switch or the path itself. A round trip has no
        ``≥``.
        """
        return self.lower_bound and not self.figures.LESS_IS_BETTER

    @classmethod
    def of(cls, measurement: Measurement, run: str | None = None, test: str | None = None) -> Result:
        """Returns a measurement as a result of a run and a test."""
        return cls(**{item.name: getattr(measurement, item.name) for item in fields(Measurement)}, run=run, test=test)
