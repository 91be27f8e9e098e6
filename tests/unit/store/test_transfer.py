# SPDX-License-Identifier: BSD-3-Clause
"""A worker's parcel from another host becomes files of the run, or is refused with a sentence and writes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.gate.entry import make_entry
from pytest_icbench.model.codec import encode
from pytest_icbench.store import baselines, transfer
from pytest_icbench.store.raw import write_raw
from pytest_icbench.store.run_directory import BASELINES, ResultPlace, TestRecord
from pytest_icbench.store.run_json import RunInfo, write_info
from pytest_icbench.store.stored_run import read_run
from pytest_icbench.store.transfer import RunMerger
from tests.measurements import measurement

NODEID = "t.py::test[ovs]"
BASELINE = f"{BASELINES}/main/host-1/ovs.json"
MISSING = object()


@pytest.fixture
def sent(tmp_path: Path) -> dict[str, Any]:
    """A parcel as the worker's host makes it."""
    there = tmp_path / "there"
    (there / BASELINE).parent.mkdir(parents=True)
    entry = make_entry(measurement())
    assert entry is not None
    (there / BASELINE).write_text(baselines.format_baseline([entry]))
    write_info(there, RunInfo("r", 1.0, ("there",), "/d", "/r", identity={"machine": "aa"}))
    raw = write_raw(there, Path("raw/b32/x+memif=a%2F..%2Fb"), NODEID, measurement())
    limits = ({"name": "throughput_pps", "kind": "min", "value": 1.0, "source": "t"},)
    return transfer.pack(there, [ResultPlace(7, str(raw.relative_to(there)), limits)], first=True)


def merged(tmp_path: Path, sent: Any, results: Any = MISSING) -> Path:
    run = tmp_path / "reports" / "run"
    merge = RunMerger(run, ["here"])
    merge.add(NODEID, [measurement().to_dict()] if results is MISSING else results, sent)
    merge.note(TestRecord(NODEID, "passed", 1.0))
    return run


def test_a_parcel_becomes_files_of_the_run(tmp_path: Path, sent: dict[str, Any]) -> None:
    stored = read_run(merged(tmp_path, sent))
    (result,) = stored.results
    assert result.raw is not None
    assert result.raw.parent.name == "x+memif=a%2F..%2Fb"
    assert result.place is not None
    assert result.place.limits is not None
    assert result.place.line == 1
    assert stored.info is not None
    assert stored.info.argv == ("here",)
    assert (stored.directory / BASELINE).read_text() == sent["baseline"][BASELINE]


def test_a_directory_of_baselines_with_an_odd_name_arrives(tmp_path: Path) -> None:
    (tmp_path / BASELINES / "main" / "my host").mkdir(parents=True)
    (tmp_path / BASELINES / "main" / "my host" / "ovs.json").write_text("{}")
    assert list(transfer.pack(tmp_path, [], first=True)["baseline"]) == [f"{BASELINES}/main/my%20host/ovs.json"]


NAMES = [
    "../../outside.jsonl",
    "raw/../../../outside.jsonl",
    "raw/./a.jsonl",
    "raw//a.jsonl",
    "/ABSOLUTE/outside.jsonl",
    "run.json",
    "results.jsonl",
    "raw/a",
    "raw/a.jsonl\n",
    "raw/a\0.jsonl",
    "raw/\x1b[31m.jsonl",
    "raw/\ud800.jsonl",
    "raw/" + "a" * 300 + ".jsonl",
    "raw" + "/a" * 5000 + ".jsonl",
    "",
    7,
    None,
    ["raw/a.jsonl"],
]


def refused(tmp_path: Path, sent: Any, results: Any = MISSING) -> str:
    """Returns the sentence by which a parcel is refused; checks that nothing was written."""
    before = sorted(os.walk(tmp_path))
    with pytest.raises(ProvisionError) as caught:
        merged(tmp_path, sent, results)
    assert sorted(os.walk(tmp_path)) == before
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:30])
def test_names_of_raw_files_are_those_of_a_run(tmp_path: Path, sent: dict[str, Any], name: Any) -> None:
    if isinstance(name, str):
        name = name.replace("/ABSOLUTE", str(tmp_path))
    sent["places"][0]["raw"] = name
    assert "is no name that a run gives to a file" in refused(tmp_path, sent)


@pytest.mark.parametrize("name", NAMES[:-1], ids=lambda name: ascii(name)[:30])
def test_names_of_baselines_are_those_of_a_run(tmp_path: Path, sent: dict[str, Any], name: Any) -> None:
    if isinstance(name, str):
        name = name.replace("/ABSOLUTE", str(tmp_path)).replace("jsonl", "json").replace("raw/", f"{BASELINES}/a/b/", 1)
    sent["baseline"] = {name: sent["baseline"][BASELINE]}
    assert "is no name that a run gives to a file" in refused(tmp_path, sent)


@pytest.mark.parametrize(
    "text", ["", "key", 7, "\ud800", "{", "[" * 100_000, '{"type": "measurement"}\n', '{"type": []}\n', "7\n"]
)
def test_windows_are_read_before_they_are_written(tmp_path: Path, sent: dict[str, Any], text: Any) -> None:
    sent["places"][0]["text"] = text
    refused(tmp_path, sent)


@pytest.mark.parametrize("text", ["", "ssh-ed25519 AAAA", 7, "\ud800", "{}\n", "[" * 100_000, "null", "[]"])
@pytest.mark.parametrize("file", ["run", "baseline"])
def test_other_files_are_read_before_they_are_written(
    tmp_path: Path, sent: dict[str, Any], file: str, text: Any
) -> None:
    sent[file] = text if file == "run" else {BASELINE: text}
    refused(tmp_path, sent)


def test_windows_of_another_case_are_refused(tmp_path: Path, sent: dict[str, Any]) -> None:
    other = {**measurement().to_dict(), "case": "vpp"}
    assert "its windows are not those of its result" in refused(tmp_path, sent, [other])


@pytest.mark.parametrize("results", [[], [None], [{}], [{"schema": 1}], 7, None, [7, 7]])
def test_results_are_read_before_they_are_written(tmp_path: Path, sent: dict[str, Any], results: Any) -> None:
    refused(tmp_path, sent, results)


@pytest.mark.parametrize("key", ["limits", "margins", "taken_from"])
@pytest.mark.parametrize("value", [7, [7], [{"name": "lost", "odd": 1}], {"a": float("nan")}, ["a"], 1.5])
def test_places_have_the_types_of_a_run(tmp_path: Path, sent: dict[str, Any], key: str, value: Any) -> None:
    sent["places"][0][key] = value
    refused(tmp_path, sent)


def test_sizes_are_bounded(tmp_path: Path, sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LONGEST_TEXT", 10)
    assert "at most 10 characters" in refused(tmp_path, sent)


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path, sent: dict[str, Any]) -> None:
    run = tmp_path / "reports" / "run"
    run.mkdir(parents=True)
    (run / "raw").symlink_to(tmp_path)
    with pytest.raises(ProvisionError, match="a symbolic link leads out of"):
        merged(tmp_path, sent)


def test_facts_of_the_host_are_kept(tmp_path: Path, sent: dict[str, Any]) -> None:
    info = json.loads(sent["run"])
    info["identity"] = {"machine": ["a", {"b": 1}]}
    sent["run"] = json.dumps(info)
    run = merged(tmp_path, sent)
    assert json.loads((run / "run.json").read_text())["identity"] == encode(info["identity"])


def test_the_worker_whose_parcel_is_refused_is_named(tmp_path: Path) -> None:
    merger = RunMerger(tmp_path / "run", [])
    says = r"of a\[b\] that worker gw1 sent are refused: the parcel: .*: install the same pytest-icbench there$"
    with pytest.raises(ProvisionError, match=says):
        merger.add("a[b]", [], {"places": 7}, "worker gw1")
