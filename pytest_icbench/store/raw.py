# SPDX-License-Identifier: BSD-3-Clause
"""The raw tree: every window of every measurement.

The layout is the thesis': ``raw/burst/switch/packet-size/rate/dimension-api-pairs-cores/``, one file a test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.case import MODE_KEY
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.store import hdr
from pytest_icbench.store.run_files import path_part, unwritten

#: The kinds of launches by the fields of a measurement, as lines name them.
LAUNCHES = {
    "per_launch": "case",
    "per_reference_launch": "reference",
    "per_repeated_launch": "repeated",
    "per_other_launch": "other",
}


def raw_directory(measurement: Measurement, api: str, cores: int) -> Path:
    """Returns the directory of a measurement's windows, relative to the run.

    Args:
        api, cores: the resolved values, since a case leaves out a switch's natural choice.
    """
    axes = measurement.axes
    switch = str(axes["switch"])
    if axes.get("port"):
        switch += f"+{axes['port']}"
    if axes.get(MODE_KEY):
        switch += f"={axes[MODE_KEY]}"
    rate = "max" if axes["rate"] is None else str(axes["rate"]).removesuffix("%").replace(":", "=")
    how = [measurement.dimension, str(axes.get("app") or axes.get("birth") or api)]
    how += [flag for flag in ("blocking", "touch", "remote") if axes.get(flag)]
    how += [f"{axes['pairs']}vs{axes['pairs']}", f"c{cores}"]
    parts = (f"b{axes['burst']}", switch, Traffic.from_axes(axes).label, f"R{rate}", "-".join(how))
    return Path("raw", *(path_part(part) for part in parts))


def write_raw(run: Path, directory: Path, test: str, measurement: Measurement) -> Path:
    """Writes a measurement's windows as JSON lines to a file with the test's name, and returns its path.

    The first line is the measurement without its windows. A launch has a line of figures and a line for each window.

    Args:
        run: the run's directory.
        directory: the result of ``raw_directory``.

    Raises ProvisionError if the file cannot be written, or if the run's directory has vanished.
    """
    if not run.is_dir():  # made anew, it would hide that results are lost
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
            path.unlink(missing_ok=True)  # half of the windows are none
            raise
    except OSError as error:
        raise unwritten("raw windows", error) from None
    return path


def write_hlog(raw: Path, measurement: Measurement) -> None:
    """Writes a measurement's latencies next to its windows, if the extra ``hdr`` is installed.

    Raises ProvisionError if the file cannot be written.
    """
    if not hdr.available():
        return
    path = raw.with_suffix(".hlog")
    try:
        hdr.write_log(path, [measurement])
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
