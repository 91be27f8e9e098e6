# SPDX-License-Identifier: BSD-3-Clause
"""A run in the OpenMetrics text format (1.0.0), for Prometheus and GitLab's metrics reports. Pure.

Latencies are in seconds, as the format asks for base units. Of several results of a case the last one is written, since
the format has no place for two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pytest_icbench.display.axes import number
from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.model.result import Result
from pytest_icbench.report.between_sessions import with_sessions
from pytest_icbench.report.remarks import round_trips
from pytest_icbench.report.versions import candidates
from pytest_icbench.stats.quantiles import Estimate

Sample = tuple[dict[str, str], float]
#: Returns one number of an estimate.
_Of = Callable[[Estimate | None], float | None]

#: The family of the decisions about candidates.
_CANDIDATES = "icbench_contender"
#: An estimate and its ends: the part of a family's name, the function that returns it, the part of the help.
_ENDS: tuple[tuple[str, _Of, str], ...] = (
    ("", lambda estimate: None if estimate is None else estimate.value, ""),
    ("_low", lambda estimate: None if estimate is None else estimate.low, ", lower end of the interval"),
    ("_high", lambda estimate: None if estimate is None else estimate.high, ", upper end of the interval"),
)
_QUANTILES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p99.9": "0.999", "p99.99": "0.9999"}


def text(results: Sequence[Result], skipped: int = 0) -> str:
    """Returns the text of a run's results. ``skipped``: number of cases that did not run."""
    last = {(result.dimension, result.metric, result.case): result for result in with_sessions(results)}
    kept = [last[key] for key in sorted(last)]
    lines: list[str] = []
    for name, unit, help_text, samples in _families(kept, results, skipped):
        known = list(samples)
        if not known:
            continue
        kind = "info" if name in ("icbench_case", _CANDIDATES) else "gauge"
        lines += [f"# TYPE {name} {kind}"]
        lines += [f"# UNIT {name} {unit}"] if unit else []
        lines += [f"# HELP {name} {_escape(help_text)}"]
        suffix = "_info" if kind == "info" else ""
        lines += [f"{name}{suffix}{{{_labels(labels)}}} {_number(value)}" for labels, value in known]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _families(
    results: Sequence[Result], every: Sequence[Result], skipped: int
) -> Iterator[tuple[str, str, str, Iterator[Sample]]]:
    """Yields name, unit, help and samples of each family. ``every``: with earlier results of a case."""
    yield "icbench_case", "", "A case of the run, its verdict and what limited it.", _cases(results)
    yield "icbench_cases", "", "Cases by verdict; skipped ones did not run.", _counts(results, skipped)
    yield _CANDIDATES, "", "Decision for a version side by side with another.", _candidates(every)
    text = "Greatest share of sessions without a change in which any candidate is called worse."
    yield "icbench_side_by_side_error_ratio", "ratio", text, _error_rate(every)
    for end, of, end_text in _ENDS:
        rate = _plain(
            (result for result in results if not result.figures.LESS_IS_BETTER), _figure(of, "throughput_pps")
        )
        yield f"icbench_throughput{end}_pps", "pps", f"Frames received per second over all pairs{end_text}.", rate
        operations = _plain(results, _figure(of, "operations_per_second"))
        text = f"Operations of an application per second over all pairs; of a stream megabits{end_text}."
        yield f"icbench_operations{end}_per_second", "", text, operations
        yield f"icbench_rtt{end}_seconds", "seconds", f"Round-trip time{end_text}.", _rtt(results, of)
        ratio = _plain(results, _figure(of, "ratio_to_baseline"))
        yield f"icbench_baseline{end}_ratio", "ratio", f"Main value over the baseline's{end_text}.", ratio
        change = _to_base(results, of)
        yield f"icbench_side_by_side{end}_ratio", "ratio", f"Value over that of its base{end_text}.", change
    loss = _plain(results, lambda result: result.frames.frame_loss_ratio)
    yield "icbench_frame_loss_ratio", "ratio", "Frames lost over frames sent.", loss
    created = _plain(results, lambda result: None if result.startup.birth_ns is None else result.startup.birth_ns / 1e9)
    yield "icbench_birth_seconds", "seconds", "Time to create a container, median over those of a case.", created
    launches = _plain(results, lambda result: result.launches)
    yield "icbench_launches", "", "Launches behind the values.", launches
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
            "variant": result.variant or "",
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


def _figure(of: _Of, name: str) -> Callable[[Result], float | None]:
    """Returns the figure of a name, or an end of its interval, as a function of results."""
    return lambda result: of(result.value(name))


def _to_base(results: Sequence[Result], of: _Of) -> Iterator[Sample]:
    for result in results:
        comparison = result.side_by_side
        if comparison is not None:
            value = of(Estimate(comparison.ratio, comparison.ratio_low, comparison.ratio_high))
            if value is not None:
                yield _base(result), value


def _plain(results: Iterable[Result], figure: Callable[[Result], float | None]) -> Iterator[Sample]:
    for result in results:
        value = number(result, figure(result))
        if value is not None:
            yield _base(result), float(value)


def _rtt(results: Sequence[Result], of: _Of) -> Iterator[Sample]:
    for result in results:
        for name, estimate in round_trips(result).items():
            value = number(result, of(estimate))
            if value is not None:
                yield {**_base(result), "quantile": _QUANTILES[name]}, value / 1e9


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items() if value)


def _escape(value: str) -> str:
    """Escapes a text as the format asks for, and replaces lone surrogates, which UTF-8 cannot encode."""
    safe = value.encode("utf-8", "replace").decode()
    return safe.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("\r", " ")


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)
