# SPDX-License-Identifier: BSD-3-Clause
"""The object behind the fixture ``icbench``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_icbench import values
from pytest_icbench.case import Case, Dimension
from pytest_icbench.errors import IcbenchError, Invalid, Unsupported, UsageError
from pytest_icbench.gate import Judgement, enforce, judge
from pytest_icbench.items import Benchmark, check_rate
from pytest_icbench.overrides import as_text, parse_overrides, settings_for
from pytest_icbench.rate import Rate, named_rate
from pytest_icbench.report.names import properties
from pytest_icbench.result import Measurement
from pytest_icbench.run import Run, judged


@dataclass(slots=True)
class _Record:
    case: Case
    measurement: Measurement
    judgement: Judgement | None = None


class Icbench:
    """Measures the case of a test, and judges what was measured.

    Attributes:
        case: the point of the benchmark that this test is about.
    """

    def __init__(self, item: pytest.Item, benchmark: Benchmark, run: Run) -> None:
        self.case = benchmark.case
        self._item = item
        self._benchmark = benchmark
        self._run = run
        self._records: list[_Record] = []
        self.results: list[dict[str, Any]] = []

    def measure(self, **overrides: Any) -> Measurement:
        """Measures in the dimension of the marker: ``throughput`` unless it says otherwise. See ``throughput``."""
        __tracebackhide__ = True
        return self._measure(self.case.dimension, overrides)

    def throughput(self, **overrides: Any) -> Measurement:
        """Measures how many frames pass per second.

        Args:
            overrides: settings of this call, named as the options are: ``precision max_duration duration window repeats
                skip keep warmup drain protocol``; what the user set on the command line or in the ini file wins.

        Returns:
            The measurement; its figures are plain numbers (``measurement.throughput_pps > 5e6``). It can be INVALID:
            ``gate`` then raises, and a test that ends without having judged it fails.

        Raises:
            WorkloadError, ProvisionError: with the tail of the log of what failed.
            UsageError: an unknown or bad override.
        """
        __tracebackhide__ = True
        return self._measure("throughput", overrides)

    def latency(self, **overrides: Any) -> Measurement:
        """Measures round-trip times at the case's rate. Arguments and errors as in ``throughput``."""
        __tracebackhide__ = True
        return self._measure("latency", overrides)

    def search(self, rate: str, **overrides: Any) -> Measurement:
        """Searches for a rate of this case, whatever the case's own is: ``ndr``, or ``pdr:0.5%`` and the like.

        Args:
            overrides: also ``search_preset search_width search_trial search_sum``; ``max_duration`` limits the search.

        Returns:
            The measurement with its relevant bounds (``search_lower_pps``, ``search_upper_pps``) and all trials
            (``search``). ``throughput_pps`` is the conditional throughput; with ``lower_bound`` it is "at least".

        Raises as ``throughput``, and UsageError for a rate that is none of these.
        """
        __tracebackhide__ = True
        found = named_rate(rate)
        if found is None or not found.is_search:
            raise UsageError(f"{self._benchmark.where}: '{rate}' is nothing to search for; give ndr or pdr:0.5%")
        return self._measure("throughput", overrides, found)

    def sweep(self, loads: Any = None, **overrides: Any) -> Measurement:
        """Measures the maximum forwarding rate over several offered loads (``mfr``, RFC 2285).

        One launch at each load; the figure is from fresh launches at the load with which most arrived.

        Args:
            loads: frames per second and pair, a list or a text in the syntax of ``--icbench-rate``
                (``1M..1M..20M``); by default ten loads up to what the reference link takes.

        Returns:
            The measurement; ``sweep`` has the point of each load.

        Raises as ``throughput``.
        """
        __tracebackhide__ = True
        where = f"{self._benchmark.where}: sweep"
        parsed = () if loads is None else values.loads(as_text(loads, where), where)
        return self._measure("throughput", overrides, Rate(loads=parsed))

    def judge(self, measurement: Measurement) -> Judgement:
        """The verdict against the limits of ``thresholds.toml``, never raised. False if it would fail a test."""
        limits = self._benchmark.thresholds.for_case(measurement.case)
        judgement = judge(measurement, limits, strict=self._run.options.strict)
        for record in self._records:
            if record.measurement is measurement:
                record.judgement = judgement
        return judgement

    def gate(self, measurement: Measurement) -> Judgement:
        """The verdict, if it does not fail the test: PASS, NO_BASELINE (no limit), INCONCLUSIVE.

        Raises:
            Regression: a limit is missed, by the whole interval; with ``--icbench-strict`` also what is neither PASS
                nor IMPROVED. The first line of the message has at most 100 characters.
            Invalid: the measurement is no number.
        """
        __tracebackhide__ = True
        return enforce(self.judge(measurement))

    def _measure(self, dimension: Dimension, overrides: dict[str, Any], rate: Rate | None = None) -> Measurement:
        __tracebackhide__ = True
        where = self._benchmark.where
        case = replace(self.case, dimension=dimension, rate=rate or self.case.rate)
        try:
            call = parse_overrides(overrides, where)
            settings = settings_for(self._run.options, self._benchmark.request.settings, call, where)
            check_rate(case, settings, where)
            measurement = self._run.measure(case, settings)
        except Unsupported as error:
            skip(str(error), strict=self._run.options.strict)
        except IcbenchError as error:
            # The message says it all; a traceback through the harness would only bury it.
            raise error.with_traceback(None) from None
        self._records.append(_Record(case, measurement))
        return measurement

    def finish(self) -> None:
        """Writes what was measured. Called once, when the test has ended in whatever way. Raises ProvisionError."""
        records, self._records = self._records, []
        for record in records:
            measurement = record.measurement
            if record.judgement is not None:
                measurement = replace(measurement, **judged(measurement, record.judgement))
            self._run.record(self._item.name.partition("[")[0], record.case, measurement)
            result = measurement.to_dict()
            self.results.append(result)
            self._item.user_properties.extend(properties(result))

    def unjudged(self) -> Invalid | None:
        """An INVALID measurement that nobody has looked at."""
        for record in self._records:
            if record.measurement.verdict == "INVALID" and record.judgement is None:
                return Invalid(record.measurement.reason or "unknown", record.measurement.evidence or "no evidence")
        return None


def skip(reason: str, *, strict: bool) -> Any:
    """Skips the test; fails it when strict."""
    __tracebackhide__ = True
    if strict:
        pytest.fail(f"would be skipped, and --icbench-strict is on: {reason}", pytrace=False)
    pytest.skip(reason)
