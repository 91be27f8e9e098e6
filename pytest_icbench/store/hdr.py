# SPDX-License-Identifier: BSD-3-Clause
"""Latency histograms for other tools: HdrHistogram's compressed V2 encoding, and its log format (``.hlog``).

The workload's buckets are HdrHistogram's (lowest value 1 ns, the same significant digits), so nothing is rounded. Lost
requests have no value, so they are not encoded; results carry their number. This module needs the extra ``hdr``.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.stats.quantiles import Histogram

#: The greatest value of the workload's histogram (rtt.h): greater ones count in its last bucket.
GREATEST_NS = 2**41 - 1
LOG_VERSION = "1.3"
_HISTOGRAMS = ("rtt", "rtt_actual", "rtt_first")


def available() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("hdrh") is not None


def _library() -> ModuleType:
    try:
        return importlib.import_module("hdrh.histogram")
    except ImportError:
        raise UsageError(
            "HdrHistogram's encoding needs the library hdrhistogram: pip install 'pytest-icbench[hdr]'"
        ) from None


def encode(histogram: Histogram) -> str:
    """Returns the compressed V2 encoding in base64 (begins with ``HIST``). Raises UsageError without the library."""
    encoder = _library().HdrHistogram(1, GREATEST_NS, histogram.significant_digits)
    for value, number in histogram.counts:
        encoder.record_value(min(value, GREATEST_NS), number)
    text: bytes = encoder.encode()
    return text.decode("ascii")


def log_lines(measurements: Iterable[Measurement]) -> Iterator[str]:
    """Yields a log of all launches in the order in which they ran; nothing if no latency was measured.

    A tag names the subject of an interval: the case's id, ``/reference`` for its reference link, and ``/rtt``,
    ``/rtt_actual`` or ``/rtt_first`` as in a launch. Values are nanoseconds; times are relative to the base time.
    """
    launches: list[tuple[str, Launch]] = []
    for measurement in measurements:
        launches += [(measurement.case, launch) for launch in measurement.per_launch]
        launches += [(f"{measurement.case}/reference", launch) for launch in measurement.per_reference_launch]
    launches = sorted(
        ((tag, launch) for tag, launch in launches if launch.rtt), key=lambda tagged: tagged[1].started_at
    )
    if not launches:
        return
    base = launches[0][1].started_at
    yield "#[pytest-icbench: round-trip times in nanoseconds]"
    yield f"#[Histogram log format version {LOG_VERSION}]"
    yield f"#[BaseTime: {base:.3f} (seconds since epoch)]"
    yield '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    for tag, launch in launches:
        for name in _HISTOGRAMS:
            histogram: Histogram | None = getattr(launch, name)
            if histogram is not None:
                most_ms = (histogram.maximum or 0) / 1e6
                times = f"{launch.started_at - base:.3f},{launch.duration_s:.3f},{most_ms:.6f}"
                yield f"Tag={tag}/{name},{times},{encode(histogram)}"


def write_log(path: Path, measurements: Iterable[Measurement]) -> bool:
    """Writes ``log_lines`` to a file; without lines it writes no file and returns False.

    Raises UsageError without the library, ProvisionError if the file cannot be written.
    """
    lines = list(log_lines(measurements))
    if not lines:
        return False
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ProvisionError(f"{path} cannot be written ({error.strerror}): name another place") from None
    return True
