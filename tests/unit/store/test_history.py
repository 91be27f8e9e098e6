# SPDX-License-Identifier: BSD-3-Clause
"""The history file, trends and change points."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.cli import main
from pytest_icbench.cli.history import render
from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.report.trends import trends
from pytest_icbench.stats.change_points import FEWEST, levels
from pytest_icbench.store import history_file
from pytest_icbench.store.history_file import Entry, append, host_key, make_entry, newest_at, read
from tests.measurements import measurement

ENTRY = Entry(
    at=1000.0,
    run="r1",
    case="ovs-64B-b32-1vs1-Rmax",
    dimension="throughput",
    metric="frmol",
    host="0123456789ab",
    machine="a processor",
    verdict="PASS",
    figures={"throughput_pps": {"value": 5e6, "low": 4.9e6, "high": 5.1e6}},
    version="3.1.0",
)


def series(values: list[float], figure: str = "throughput_pps", **changes: object) -> list[Entry]:
    return [
        replace(ENTRY, at=1000.0 + number, figures={figure: {"value": value}}, **changes)  # type: ignore[arg-type]
        for number, value in enumerate(values)
    ]


def noisy(*parts: tuple[int, float], deviation: float = 0.01, seed: int = 1) -> list[float]:
    random = Random(seed)
    return [level * (1 + random.gauss(0, deviation)) for count, level in parts for _ in range(count)]


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history.jsonl"
    assert append(file, [ENTRY]) == 1
    assert append(file, [replace(ENTRY, at=2000.0), replace(ENTRY, at=3000.0)]) == 2
    found, troubles = read(file)
    assert troubles == []
    assert [entry.at for entry in found] == [1000.0, 2000.0, 3000.0]
    assert found[0] == ENTRY


@pytest.mark.parametrize("kind", ["fifo", "/dev/full", "/dev/zero"])
def test_what_is_no_file_is_refused_before_a_run_and_by_its_end(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "history"
    os.mkfifo(file) if kind == "fifo" else file.symlink_to(kind)
    for use in (newest_at, read):
        with pytest.raises(UsageError, match=f"history {file} cannot be read .not a regular file"):
            use(file)
    with pytest.raises(ProvisionError, match=f"history {file} cannot be written .not a regular file"):
        append(file, [ENTRY])


def test_a_history_that_another_process_has_locked_is_waited_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "LOCK_S", 0.1)
    file = tmp_path / "history"
    with file.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ProvisionError, match=r"cannot be written .another process has locked it for 0\.1 s"):
            append(file, [ENTRY])
    assert append(file, [ENTRY]) == 1


def test_an_unfinished_line_costs_itself_alone(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    append(file, [ENTRY, ENTRY])
    file.write_bytes(file.read_bytes()[:-20])  # killed while it wrote
    append(file, [replace(ENTRY, at=3000.0)])
    found, troubles = read(file)
    assert [entry.at for entry in found] == [1000.0, 3000.0]
    assert troubles == [f"{file} line 2: damaged, not valid JSON; the line is left out"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"schema":2}', "written with schema 2, but this version reads 1; update pytest-icbench"),
        ("[]", "schema is None; damaged, not a line of a history"),
        ('{"schema":true}', "schema is True; damaged, not a line of a history"),
        ('{"schema":1}', "at is missing"),
        ("\x00\xff", "damaged, not valid JSON"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    file = tmp_path / "history.jsonl"
    append(file, [ENTRY])
    file.write_bytes(file.read_bytes() + line.encode("latin-1") + b"\n")
    found, troubles = read(file)
    assert found == [ENTRY]
    assert troubles == [f"{file} line 2: {sentence}; the line is left out"]


def test_the_newest_result_is_that_of_the_last_lines(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    assert newest_at(file) is None
    file.write_text("nonsense\n")
    assert newest_at(file) is None
    append(file, [replace(ENTRY, at=9e9), *[replace(ENTRY, at=float(at)) for at in range(1000)], replace(ENTRY, at=7)])
    assert file.stat().st_size > 1 << 17
    assert newest_at(file) == 999
    with pytest.raises(UsageError, match="cannot be read"):
        newest_at(tmp_path)


def test_a_figure_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    append(file, [ENTRY])
    data = json.loads(file.read_text())
    data["figures"]["throughput_pps"]["value"] = "fast"
    file.write_text(json.dumps(data) + "\n")
    assert read(file) == (
        [],
        [f"{file} line 1: throughput_pps: value: expected a number, found 'fast'; the line is left out"],
    )


def test_a_history_that_cannot_be_written_or_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProvisionError, match=r"the history .* cannot be written"):
        append(tmp_path / "file" / "history.jsonl", [ENTRY])
    with pytest.raises(UsageError, match=r"the history .* cannot be read \(No such file or directory\)"):
        read(tmp_path / "none")


def test_an_entry_holds_the_figures_of_its_dimension() -> None:
    result = measurement(throughput_pps=5e6, throughput_pps_low=4e6, throughput_pps_high=6e6, cycles_per_packet=None)
    entry = make_entry(result, "run")
    assert entry is not None
    assert entry.figures == {"throughput_pps": {"value": 5e6, "low": 4e6, "high": 6e6}}
    assert make_entry(replace(result, verdict="INVALID"), "run") is None
    assert make_entry(result.with_figures(throughput_pps=None), "run") is None


def test_hosts_are_reported_apart_by_what_must_match() -> None:
    here = measurement(identity={"cpu_model": "a", "cores": 2})
    assert host_key(here) == host_key(replace(here, conditions={"load_1min": 3}, treatment={"kernel": "6.1"}))
    assert host_key(here) != host_key(replace(here, identity={"cpu_model": "b", "cores": 2}))
    assert host_key(here) != host_key(replace(here, placement="cooperative"))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("deviation", [0.002, 0.01, 0.03])
def test_a_steady_series_has_one_level(seed: int, deviation: float) -> None:
    assert len(levels(noisy((300, 5e6), deviation=deviation, seed=seed))) == 1


@pytest.mark.parametrize("seed", range(5))
def test_steps_are_found_where_they_are(seed: int) -> None:
    found = levels(noisy((200, 100.0), (40, 90.0), (300, 97.0), seed=seed))
    assert [round(level.value / 100, 2) for level in found] == [1.0, 0.9, 0.97]
    assert [level.first for level in found] == pytest.approx([0, 200, 240], abs=2)
    assert found[-1].last == 539


def test_the_newest_points_can_be_a_new_level() -> None:
    assert len(levels(noisy((60, 100.0), (FEWEST, 80.0)))) == 2
    assert len(levels(noisy((60, 100.0), (FEWEST - 1, 80.0)))) == 1


def test_an_outlier_is_no_change() -> None:
    values = noisy((120, 100.0))
    for place in (20, 50, 51, 90):
        values[place] = 60.0
    assert len(levels(values)) == 1


def test_a_change_below_the_least_effect_is_none() -> None:
    values = noisy((100, 100.0), (100, 98.0), deviation=0.001)
    assert len(levels(values)) == 1
    assert len(levels(values, least_effect=0.01)) == 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1.0, 1e9), max_size=60), st.floats(0.001, 0.5))
def test_levels_cover_the_series_once_and_differ(values: list[float], least: float) -> None:
    found = levels(values, least)
    assert [place for level in found for place in range(level.first, level.last + 1)] == list(range(len(values)))
    for before, after in pairwise(found):
        assert abs(after.value - before.value) >= least * min(before.value, after.value) * (1 - 1e-9)
        assert min(before.last - before.first, after.last - after.first) + 1 >= FEWEST


def test_trends_are_by_case_metric_and_host_in_the_order_of_time() -> None:
    entries = [
        *reversed(series([100.0, 101.0])),
        replace(ENTRY, host="ffff"),
        replace(ENTRY, metric="ndr"),
        replace(ENTRY, case="vpp-64B"),
    ]
    found = trends(entries)
    assert len(found) == 4
    own = next(t for t in found if t.host == ENTRY.host and t.metric == "frmol" and t.case == ENTRY.case)
    assert [point.value for point in own.points] == [100.0, 101.0]


def test_less_of_a_rate_is_worse() -> None:
    (trend,) = trends(series(noisy((20, 100.0), (20, 80.0))))
    assert [change.better for change in trend.changes] == [False]


def test_less_latency_is_better_and_the_versions_are_reported() -> None:
    values = noisy((20, 100.0), (20, 80.0))
    entries = series(values, "rtt_p50_ns", dimension="latency")
    entries = [replace(entry, version="1" if place < 20 else "2") for place, entry in enumerate(entries)]
    (trend,) = trends(entries)
    (change,) = trend.changes
    assert trend.less_is_better
    assert change.better
    assert change.index == 20
    assert change.relative == pytest.approx(-0.2, abs=0.02)
    assert (change.version_before, change.version_after) == ("1", "2")
    assert "(better)" in render([trend])[2]
    assert "version 1 to 2" in render([trend])[2]


def test_the_command_prints_trends_names_bad_lines_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "history.jsonl"
    append(file, series(noisy((20, 5e6), (20, 4e6))))
    assert main.main(["history", str(file)]) == 0
    said = capsys.readouterr().out
    assert "throughput_pps (frmol)" in said
    assert "(worse)" in said
    assert main.main(["history", str(file), "--case", "vpp*"]) == 0
    assert capsys.readouterr().out == "no result\n"
    with file.open("a") as stream:
        stream.write("nonsense\n")
    assert main.main(["history", str(file), "--json"]) == 1
    reported = capsys.readouterr()
    data = json.loads(reported.out)
    assert len(data["trends"][0]["points"]) == 40
    assert len(data["trends"][0]["changes"]) == 1
    assert "line 41: damaged" in reported.err


def test_the_command_refuses_a_bad_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["history", str(tmp_path), "--least-effect", "much"]) == 2
    assert "--least-effect: 'much' is not a precision" in capsys.readouterr().err


def test_a_change_lies_between_two_runs_and_a_gap_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, day = tmp_path / "h.jsonl", 86400.0
    kept = [
        replace(
            ENTRY,
            run=f"run-{number}",
            at=day * (number + (40 if number >= 10 else 0)),
            figures={"throughput_pps": {"value": pps}},
        )
        for number, pps in enumerate([5e6] * 10 + [4e6] * 10)
    ]
    append(file, kept)
    assert main.main(["history", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "; between runs run-9 and run-10, 41 days apart" in out
    assert err == ""


def test_a_clock_that_went_back_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "h.jsonl"
    append(file, [replace(ENTRY, run="a", at=1e9), replace(ENTRY, run="b", at=0.9e9)])
    main.main(["history", str(file)])
    assert "went back between runs a and b: results stand in the order of their times" in capsys.readouterr().err
