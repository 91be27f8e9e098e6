# SPDX-License-Identifier: BSD-3-Clause
"""The raw tree with every window of every measurement, and logs of latencies for other tools.

The layout is that of the thesis: ``raw/burst/switch/packet-size/rate/dimension-api-pairs-cores/``, one file a test.

Histograms are in HdrHistogram's compressed V2 encoding, in its log format (``.hlog``). The workload's buckets are
HdrHistogram's (lowest value 1 ns, the same significant digits), so nothing is rounded. Lost requests have no value, so
they are not encoded; results carry their number. This needs the extra ``hdr``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.model.case import MODE_KEY
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.quantiles import Histogram
from pytest_icbench.store.run_directory import path_part, unwritten

#: The greatest value of the workload's histogram (rtt.h). Greater values count in the last bucket.
GREATEST_NS = 2**41 - 1
LOG_VERSION = "1.3"
_HISTOGRAMS = ("rtt", "rtt_actual", "rtt_first")


def has_hdr_library() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("hdrh") is not None


def _import_hdr() -> ModuleType:
    try:
        return importlib.import_module("hdrh.histogram")
    except ImportError:
        raise UsageError(
            "HdrHistogram's encoding needs the library hdrhistogram: pip install 'pytest-icbench[hdr]'"
        ) from None


def encode_histogram(histogram: Histogram) -> str:
    """Returns the compressed V2 encoding in base64 (begins with ``HIST``). Raises UsageError without the library."""
    encoder = _import_hdr().HdrHistogram(1, GREATEST_NS, histogram.significant_digits)
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
                yield f"Tag={tag}/{name},{times},{encode_histogram(histogram)}"


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


#: The names of launches in the lines, by the field of a measurement that has them.
LAUNCHES = {
    "per_launch": "case",
    "per_reference_launch": "reference",
    "per_repeated_launch": "repeated",
    "per_other_launch": "other",
}


def raw_directory(measurement: Measurement, api: str, cores: int) -> Path:
    """Returns the directory of a measurement's windows, relative to the run.

    ``api`` and ``cores``: the resolved values, since a case leaves out a switch's natural choice.
    """
    axes = measurement.axes
    switch = str(axes["switch"])
    if axes.get("port"):
        switch += f"+{axes['port']}"
    if axes.get(MODE_KEY):
        switch += f"={axes[MODE_KEY]}"
    rate = "max" if axes["rate"] is None else str(axes["rate"]).removesuffix("%").replace(":", "=")
    how = [measurement.dimension, str(axes.get("app") or axes.get("startup") or api)]
    how += [flag for flag in ("blocking", "check_payload", "remote") if axes.get(flag)]
    how += [axes["wait"]] if axes.get("wait") else []
    how += [f"{axes['pairs']}vs{axes['pairs']}", f"c{cores}"]
    parts = (f"b{axes['burst']}", switch, Traffic.from_axes(axes).label, f"R{rate}", "-".join(how))
    return Path("raw", *(path_part(part) for part in parts))


def write_raw(run: Path, directory: Path, test: str, measurement: Measurement) -> Path:
    """Writes a measurement's windows as JSON lines to a file with the test's name, and returns its path.

    The first line is the measurement without its windows. A launch has a line of figures and a line for each window.
    ``directory``: the result of ``raw_directory``. Raises ProvisionError if the file cannot be written, or if the run's
    directory has vanished.
    """
    if not run.is_dir():  # a new directory would hide the loss of results
        raise ProvisionError(
            f"{run} has vanished with the results in it: find out what removes it, or name another --icbench-reports"
        )
    stem = path_part(test)
    path = run / directory / f"{stem}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number = 1
        while path.exists():
            number += 1
            path = path.with_name(f"{stem}-{number}.jsonl")
        try:
            with path.open("x", encoding="utf-8") as file:
                for line in _lines(measurement):
                    file.write(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)  # an incomplete file is worth nothing
            raise
    except OSError as error:
        raise unwritten("raw windows", error) from None
    return path


def write_hlog(raw: Path, measurement: Measurement) -> None:
    """Writes a measurement's latencies next to its windows, if the extra ``hdr`` is installed.

    Raises ProvisionError if the file cannot be written.
    """
    if not has_hdr_library():
        return
    path = raw.with_suffix(".hlog")
    try:
        write_log(path, [measurement])
    except ProvisionError:
        path.unlink(missing_ok=True)
        raise


def _lines(measurement: Measurement) -> Iterator[dict[str, Any]]:
    whole = measurement.to_dict(windows=True)
    launches = {kind: whole.pop(kind) for kind in LAUNCHES}
    yield {"type": "measurement", **whole}
    for kind, name in LAUNCHES.items():
        for launch in launches[kind]:
            windows = launch.pop("windows")
            yield {"type": "launch", "of": name, **launch}
            for window in windows:
                yield {"type": "window", "of": name, "launch": launch["index"], **window}
