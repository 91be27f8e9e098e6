# SPDX-License-Identifier: BSD-3-Clause
"""Writes a run in the OpenMetrics text format (1.0.0), for Prometheus and GitLab's metrics reports.

Latencies are in seconds, because the format asks for base units. The format has room for one result of a case, so only
the last one is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from pytest_icbench.display.case_names import number
from pytest_icbench.kinds.latency.latency_columns import round_trips
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.figures import PERCENTILES
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.decisions import candidates
from pytest_icbench.report.reported_intervals import with_sessions
from pytest_icbench.stats.quantiles import Estimate

Sample = tuple[dict[str, str], float]
#: Returns the value of an estimate or an end of its interval.
_Getter = Callable[[Estimate | None], float | None]

#: The family of the decisions about candidates.
_CANDIDATES = "icbench_candidate"
#: The value of an estimate and its ends: the part of a family's name, the getter, the part of the help.
_ENDS: tuple[tuple[str, _Getter, str], ...] = (
    ("", lambda estimate: None if estimate is None else estimate.value, ""),
    ("_low", lambda estimate: None if estimate is None else estimate.low, ", lower end of the interval"),
    ("_high", lambda estimate: None if estimate is None else estimate.high, ", upper end of the interval"),
)


def text(results: Sequence[Result], skipped: int = 0) -> str:
    """Returns the text of a run's results. ``skipped``: number of cases that did not run."""
    last = {(result.dimension, result.metric, result.case): result for result in with_sessions(results)}
    registry = CollectorRegistry()
    registry.register(_Run([last[key] for key in sorted(last)], results, skipped))
    written: bytes = generate_latest(registry)
    return written.decode()


class _Run(Collector):
    """Collects the metrics of a run."""

    def __init__(self, results: Sequence[Result], every: Sequence[Result], skipped: int) -> None:
        self.families = _families(results, every, skipped)

    def collect(self) -> Iterator[Metric]:
        for name, unit, help_text, samples in self.families:
            info = name in ("icbench_case", _CANDIDATES)
            metric = Metric(name, help_text, "info" if info else "gauge", unit)
            for labels, value in samples:
                stated = {label: _encodable(text) for label, text in labels.items() if text}
                metric.add_sample(f"{name}_info" if info else name, stated, value)
            if metric.samples:
                yield metric


def _families(
    results: Sequence[Result], every: Sequence[Result], skipped: int
) -> Iterator[tuple[str, str, str, Iterator[Sample]]]:
    """Yields name, unit, help and samples of each family. ``every``: with earlier results of a case."""
    yield "icbench_case", "", "A case of the run, its verdict and what limited it.", _cases(results)
    yield "icbench_cases", "", "Cases by verdict; skipped ones did not run.", _counts(results, skipped)
    yield _CANDIDATES, "", "Decision for a version side by side with another.", _candidates(every)
    text = "Greatest share of unchanged sessions in which any candidate is called worse."
    yield "icbench_side_by_side_error_ratio", "ratio", text, _error_rate(every)
    for end, get, end_text in _ENDS:
        rate = _plain(
            (result for result in results if not result.figures.LESS_IS_BETTER), _figure(get, "throughput_pps")
        )
        yield f"icbench_throughput{end}_pps", "pps", f"Frames received per second over all pairs{end_text}.", rate
        operations = _plain(results, _figure(get, "operations_per_second"))
        text = f"Operations of an application per second over all pairs; of a stream megabits{end_text}."
        yield f"icbench_operations{end}_per_second", "", text, operations
        yield f"icbench_rtt{end}_seconds", "seconds", f"Round-trip time{end_text}.", _rtt(results, get)
        ratio = _plain(results, _figure(get, "ratio_to_baseline"))
        yield f"icbench_baseline{end}_ratio", "ratio", f"Main value over the baseline's{end_text}.", ratio
        change = _to_base(results, get)
        yield f"icbench_side_by_side{end}_ratio", "ratio", f"Value over that of its base{end_text}.", change
    loss = _plain(results, lambda result: result.frames.frame_loss_ratio)
    yield "icbench_frame_loss_ratio", "ratio", "Frames lost over frames sent.", loss
    created = _plain(results, lambda result: None if result.startup_ns is None else result.startup_ns / 1e9)
    yield "icbench_startup_seconds", "seconds", "Time to create a container, median over those of a case.", created
    launches = _plain(results, lambda result: result.launches)
    yield "icbench_launches", "", "Number of launches of the values.", launches
    duration = _plain(results, lambda result: result.duration_s)
    yield "icbench_duration_seconds", "seconds", "Duration of the case.", duration


def _base(result: Result) -> dict[str, str]:
    return {
        "case": result.case,
        "dimension": result.dimension,
        "metric": result.metric,
        "switch": result.switch,
        "placement": result.placement,
    }


def _cases(results: Sequence[Result]) -> Iterator[Sample]:
    for result in results:
        facts = {
            "verdict": result.verdict or "",
            "bottleneck": result.bottleneck,
            "port": result.port or "",
            "mode": result.mode or "",
            "baseline": result.baseline or "",
        }
        yield {**_base(result), **facts}, 1.0


def _counts(results: Sequence[Result], skipped: int) -> Iterator[Sample]:
    verdicts = [result.verdict or "not judged" for result in results]
    for verdict in sorted(set(verdicts)):
        yield {"verdict": verdict}, float(verdicts.count(verdict))
    if skipped:
        yield {"verdict": "skipped"}, float(skipped)


def _candidates(results: Sequence[Result]) -> Iterator[Sample]:
    for candidate in candidates(results):
        yield {CANDIDATE_KEY: candidate.candidate, "decision": candidate.decision}, 1.0


def _error_rate(results: Sequence[Result]) -> Iterator[Sample]:
    stated = [result.side_by_side.error_rate for result in results if result.side_by_side is not None]
    if stated:
        yield {}, max(stated)


def _figure(get: _Getter, name: str) -> Callable[[Result], float | None]:
    """Returns the figure of a name, or an end of its interval, as a function of results."""
    return lambda result: get(result.value(name))


def _to_base(results: Sequence[Result], get: _Getter) -> Iterator[Sample]:
    for result in results:
        comparison = result.side_by_side
        if comparison is not None:
            value = get(Estimate(comparison.ratio, comparison.ratio_low, comparison.ratio_high))
            if value is not None:
                yield _base(result), value


def _plain(results: Iterable[Result], figure: Callable[[Result], float | None]) -> Iterator[Sample]:
    for result in results:
        value = number(result, figure(result))
        if value is not None:
            yield _base(result), float(value)


def _rtt(results: Sequence[Result], get: _Getter) -> Iterator[Sample]:
    for result in results:
        for name, estimate in round_trips(result).items():
            value = number(result, get(estimate))
            if value is not None:
                yield {**_base(result), "quantile": f"{PERCENTILES[name]:g}"}, value / 1e9


def _encodable(value: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode, and carriage returns, which the format cannot escape."""
    return value.encode("utf-8", "replace").decode().replace("\r", " ")
