# SPDX-License-Identifier: BSD-3-Clause
"""A run's directory, its result lines and its raw tree."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.gate.entry import make_entry
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import encode
from pytest_icbench.model.launch import Launch, PairCounts, Window
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.store import baselines
from pytest_icbench.store.baselines import host_name
from pytest_icbench.store.raw import raw_directory, write_raw
from pytest_icbench.store.run_directory import append_line, create_run, explain_stale_latest, run_name
from pytest_icbench.store.run_json import RunInfo
from pytest_icbench.store.transfer import RunMerger
from tests.measurements import measurement

WINDOW = Window(1, 1, 0, 10**8, 100, 100, 0, 99, 6336, 0, 0, 0, 0, 10, 1, 0, 5, 9, 0)
PAIR = PairCounts(1, 100, 100, 0, 0, 0, 99, 1, 0, 0, 0, 0, 0, 10, 1, 990.0, 1000.0)
LAUNCH = Launch(0, 1.5, 0.1, 0.2, 990.0, 1000.0, 0.0, False, (PAIR,), windows=(WINDOW, replace(WINDOW, number=2)))


def test_a_run_has_utc_time_and_process_in_its_name() -> None:
    moment = datetime(2019, 1, 31, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    assert run_name(moment, 77) == "20190130T230203Z-77"
    assert run_name() > run_name(datetime(2020, 1, 1, tzinfo=UTC))


def test_latest_points_to_the_newest(tmp_path: Path) -> None:
    first = create_run(tmp_path / "reports", "a")
    assert explain_stale_latest(tmp_path / "reports") is None
    assert (tmp_path / "reports" / "latest").resolve() == first
    second = create_run(tmp_path / "reports", "b")
    assert (tmp_path / "reports" / "latest").resolve() == second
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == ["a", "b", "latest"]


def test_somebodys_own_directory_named_latest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    create_run(tmp_path, "a")
    assert f"{tmp_path / 'latest'} is a directory" in str(explain_stale_latest(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "latest"]
    assert not (tmp_path / "latest").is_symlink()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProvisionError, match="cannot be written"):
        create_run(tmp_path / "file", "a")
    with pytest.raises(ProvisionError, match="cannot be written"):
        append_line(tmp_path / "file" / "results.jsonl", "{}")


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for verdict in ("PASS", "INVALID"):
        append_line(path, measurement(verdict=verdict).to_json())
    lines = path.read_text().splitlines()
    assert [Measurement.from_json(text).verdict for text in lines] == ["PASS", "INVALID"]


@pytest.mark.parametrize(
    ("case", "path"),
    [
        (Case("ovs"), "raw/b32/ovs/64B/Rmax/throughput-dpdk-1vs1-c1"),
        (
            Case(
                "x",
                Frames(rate=Rate(1000)),
                port="memif",
                mode="a/../b",
                pairs=2,
                dimension="latency",
                blocking=True,
            ),
            "raw/b32/x+memif=a%2F..%2Fb/64B/R1000/latency-dpdk-blocking-2vs2-c1",
        ),
        (Case("ovs", wait="interrupt"), "raw/b32/ovs/64B/Rmax/throughput-dpdk-interrupt-1vs1-c1"),
    ],
)
def test_the_raw_tree_has_a_directory_for_each_axis(case: Case, path: str) -> None:
    assert str(raw_directory(measurement(case), "dpdk", 1)) == path


def test_every_window_is_in_the_raw_file(tmp_path: Path) -> None:
    found = measurement(per_launch=(LAUNCH,), per_reference_launch=(LAUNCH,))
    path = write_raw(tmp_path, Path("raw/b32"), "test_a", found)
    assert path == tmp_path / "raw" / "b32" / "test_a.jsonl"
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert [(each["type"], each.get("of"), each.get("number")) for each in lines] == [
        ("measurement", None, None),
        ("launch", "case", None),
        ("window", "case", 1),
        ("window", "case", 2),
        ("launch", "reference", None),
        ("window", "reference", 1),
        ("window", "reference", 2),
    ]
    assert lines[2]["received"] == 99
    assert lines[1]["pairs"][0]["lost"] == 1


def info_of(**identity: str) -> str:
    info = RunInfo("r", 1.0, ("there",), "/d", "/r", identity=dict(identity))
    return json.dumps({"schema": 1, **encode(info)})


def baseline_of(pps: float) -> str:
    entry = make_entry(measurement(throughput_pps=pps))
    assert entry is not None
    return baselines.format_baseline([entry])


def test_of_several_baselines_the_hosts_own_stands(tmp_path: Path) -> None:
    merge = RunMerger(tmp_path / "run", [])
    own, stale = baseline_of(5e6), baseline_of(4e6)
    identities = [{"cpu_model": "A"}, {"cpu_model": "B"}]
    names = [f"baselines/main/{host_name(identity)}/ovs.json" for identity in identities]
    for identity, texts in zip(identities, ((own, stale), (stale, own)), strict=True):
        sent = {"run": info_of(**identity), "baseline": dict(zip(names, texts, strict=True)), "places": []}
        merge.add("t", [], sent)
    assert [(tmp_path / "run" / name).read_text() for name in names] == [own, own]


def test_the_same_case_twice_is_two_files(tmp_path: Path) -> None:
    names = [write_raw(tmp_path, Path("raw"), "test/../a", measurement()).name for _ in range(2)]
    assert names == ["test%2F..%2Fa.jsonl", "test%2F..%2Fa-2.jsonl"]
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
