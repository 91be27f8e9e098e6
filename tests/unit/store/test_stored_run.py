# SPDX-License-Identifier: BSD-3-Clause
"""A run that version 0.1.0 wrote before its results were objects: it reads back, and comes out as it went in."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.cli.main import main
from pytest_icbench.measure.summary.recorded import recounted
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.store.stored_run import read_run, read_with_windows

RUN = Path(__file__).with_name("stored_run")
LINES = (RUN / "results.jsonl").read_text(encoding="utf-8").splitlines()


def as_known_then(now: Any, then: Any) -> Any:
    """Returns data without the keys that a later version added; of an old line these are empty or unknown."""
    if isinstance(then, dict):
        assert not any(now[key] for key in now.keys() - then.keys())
        return {key: as_known_then(value, then[key]) for key, value in now.items() if key in then}
    if isinstance(then, list) and len(now) == len(then):
        return [as_known_then(*pair) for pair in zip(now, then, strict=True)]
    return now


@pytest.mark.parametrize("kind", [Measurement, Result])
@pytest.mark.parametrize("line", LINES, ids=["throughput", "latency"])
def test_a_line_is_written_as_it_was(line: str, kind: type[Measurement]) -> None:
    # The two whole numbers of a finding were counters; they are read as floats.
    data = as_known_then(json.loads(kind.from_json(line).to_json()), json.loads(line))
    assert list(data) == list(json.loads(line))
    written = json.dumps(data, separators=(",", ":"))
    assert (
        written.replace('"value":0.0,"value_low":0.0,"value_high":0.0', '"value":0,"value_low":0,"value_high":0')
        == line
    )


def test_the_windows_are_written_as_they_were() -> None:
    for result in read_run(RUN).results:
        assert result.raw is not None
        whole = read_with_windows(result).to_dict(windows=True)
        recorded = [json.loads(line) for line in result.raw.read_text(encoding="utf-8").splitlines()]
        windows = [window for launch in whole["per_launch"] for window in launch["windows"]]
        written = [
            {"type": "window", "of": "case", "launch": launch["index"], **window}
            for launch in whole["per_launch"]
            for window in launch["windows"]
        ]
        then = [line for line in recorded if line["type"] == "window"]
        assert as_known_then(written, then) == then
        assert len(windows) in (18, 24)


def test_its_launches_are_counted_anew_to_the_last_digit() -> None:
    """The bytes of frames are of a later version, which counts them from the same windows."""
    for result in read_run(RUN).results:
        launches = read_with_windows(result).per_launch
        assert launches
        for launch in launches:
            anew = recounted(launch)
            assert [pair.received_bytes > 0 for pair in anew.pairs] == [True]
            pairs = tuple(replace(pair, received_bytes=0) for pair in anew.pairs)
            assert replace(anew, pairs=pairs) == launch


def test_its_figures_are_shown_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(RUN)]) == 0
    out, err = capsys.readouterr()
    assert "0 of 2 results recomputed from raw data, identical to what was recorded" in out
    assert re.search(r"^64B  0\.591  0\.527 to 0\.700$", out, re.MULTILINE)
    assert re.search(r"^1500B +1,174  318 to 5,783$", out, re.MULTILINE)
    assert err.count("its intervals are of an earlier version") == 2


def test_a_result_is_kept_though_its_test_did_not_end(tmp_path: Path) -> None:
    """The session was killed after a result's line, while the test's rig was taken down."""
    whole, run = read_run(RUN), Path(shutil.copytree(RUN, tmp_path / "run"))
    tests = (run / "tests.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "tests.jsonl").write_text("".join(tests[:-1]), encoding="utf-8")
    stored = read_run(run)
    assert [result.measurement for result in stored.results] == [result.measurement for result in whole.results]
    assert stored.results[-1].test == "test_round_trip[linux-bridge-1500B-b4-1vs1-R1k]"
    assert read_with_windows(stored.results[-1]).launches
    assert stored.results[-1].place is None
