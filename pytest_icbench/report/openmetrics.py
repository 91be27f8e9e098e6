# SPDX-License-Identifier: BSD-3-Clause
"""A run in the OpenMetrics text format (1.0.0), for Prometheus and GitLab's metrics reports. Pure.

Latencies are in seconds, as the format asks for base units. Of several results of one case the last one stands there:
the format has no place for two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_icbench.model.case import CANDIDATE_KEY
from pytest_icbench.report.versions import candidates

Result = Mapping[str, Any]
Sample = tuple[dict[str, str], float]

#: The family that has what is decided of candidates.
_CANDIDATES = "icbench_contender"
_QUANTILES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p99_9": "0.999", "p99_99": "0.9999"}


def text(results: Sequence[Result], skipped: int = 0) -> str:
    """All results of a run. ``skipped``: cases that did not run."""
    last = {(str(one.get("dimension")), str(one.get("metric")), str(one.get("case"))): one for one in results}
    kept = [last[key] for key in sorted(last)]
    lines: list[str] = []
    for name, unit, help_text, samples in _families(kept, results, skipped):
        found = list(samples)
        if not found:
            continue
        kind = "info" if name in ("icbench_case", _CANDIDATES) else "gauge"
        lines += [f"# TYPE {name} {kind}"]
        lines += [f"# UNIT {name} {unit}"] if unit else []
        lines += [f"# HELP {name} {_escape(help_text)}"]
        suffix = "_info" if kind == "info" else ""
        lines += [f"{name}{suffix}{{{_labels(labels)}}} {_number(value)}" for labels, value in found]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _families(
    results: Sequence[Result], every: Sequence[Result], skipped: int
) -> Iterator[tuple[str, str, str, Iterator[Sample]]]:
    """Name, unit, help and samples of each family. ``every``: earlier results of a case too."""
    yield "icbench_case", "", "A case of the run, its verdict and what limited it.", _cases(results)
    yield "icbench_cases", "", "Cases by verdict; skipped ones did not run.", _counts(results, skipped)
    yield _CANDIDATES, "", "Decision for a version side by side with another.", _candidates(every)
    said = "Greatest part of sessions that accuse a version as good as allowed."
    yield "icbench_side_by_side_error_ratio", "ratio", said, _error_rate(every)
    for end, what in (("", ""), ("_low", ", lower end of the interval"), ("_high", ", upper end of the interval")):
        rate = _plain(f"throughput_pps{end}", lambda one: one.get("dimension") != "latency")
        name = f"icbench_throughput{end}_pps"
        yield name, "pps", f"Frames received per second over all pairs{what}.", rate(results)
        yield f"icbench_rtt{end}_seconds", "seconds", f"Round-trip time{what}.", _rtt(results, end)
        ratio = _plain(f"ratio_to_baseline{end}")
        yield f"icbench_baseline{end}_ratio", "ratio", f"Main figure over the baseline's{what}.", ratio(results)
        ratios = _side_by_side(results, f"ratio{end}")
        yield f"icbench_side_by_side{end}_ratio", "ratio", f"Figure over that of the version beside it{what}.", ratios
    loss = _plain("frame_loss_ratio")
    yield "icbench_frame_loss_ratio", "ratio", "Frames lost over frames sent.", loss(results)
    yield "icbench_launches", "", "Launches that the figures stand on.", _plain("launches")(results)
    duration = _plain("duration_s")
    yield "icbench_duration_seconds", "seconds", "What the case took.", duration(results)


def _base(result: Result) -> dict[str, str]:
    names = ("case", "dimension", "metric", "switch", "placement")
    return {name: str(result.get(name) or "") for name in names}


def _cases(results: Sequence[Result]) -> Iterator[Sample]:
    for result in results:
        names = ("verdict", "bottleneck", "port", "variant", "baseline")
        yield {**_base(result), **{name: str(result.get(name) or "") for name in names}}, 1.0


def _counts(results: Sequence[Result], skipped: int) -> Iterator[Sample]:
    verdicts = [str(result.get("verdict") or "not judged") for result in results]
    for verdict in sorted(set(verdicts)):
        yield {"verdict": verdict}, float(verdicts.count(verdict))
    if skipped:
        yield {"verdict": "skipped"}, float(skipped)


def _candidates(results: Sequence[Result]) -> Iterator[Sample]:
    for each in candidates(results):
        yield {CANDIDATE_KEY: each.candidate, "decision": each.decision}, 1.0


def _error_rate(results: Sequence[Result]) -> Iterator[Sample]:
    stated = [one["side_by_side"]["error_rate"] for one in results if one.get("side_by_side")]
    if stated:
        yield {}, float(max(stated))


def _side_by_side(results: Sequence[Result], name: str) -> Iterator[Sample]:
    for result in results:
        value = (result.get("side_by_side") or {}).get(name)
        if value is not None:
            yield _base(result), float(value)


def _plain(
    name: str, wanted: Callable[[Result], bool] = lambda _: True
) -> Callable[[Sequence[Result]], Iterator[Sample]]:
    def samples(results: Sequence[Result]) -> Iterator[Sample]:
        for result in results:
            value = result.get(name)
            if value is not None and result.get("verdict") != "INVALID" and wanted(result):
                yield _base(result), float(value)

    return samples


def _rtt(results: Sequence[Result], end: str) -> Iterator[Sample]:
    for result in results:
        for name, quantile in _QUANTILES.items():
            value = result.get(f"rtt_{name}_ns{end}")
            if value is not None and result.get("verdict") != "INVALID":
                yield {**_base(result), "quantile": quantile}, float(value) / 1e9


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items() if value)


def _escape(value: str) -> str:
    """The escapes of the format; lone surrogates cannot be written in UTF-8."""
    safe = value.encode("utf-8", "replace").decode()
    return safe.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("\r", " ")


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)
