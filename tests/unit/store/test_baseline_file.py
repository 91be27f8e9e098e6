# SPDX-License-Identifier: BSD-3-Clause
"""Baselines on the disk: what was written is read, in a form for people; anything else is refused whole, by name."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.gate.entry import Entry, Figure, make_entry
from pytest_icbench.gate.margins import COMPARED
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.quantiles import Estimate, Histogram
from pytest_icbench.store import baselines
from pytest_icbench.store.baselines import SCHEMA, format_baseline, parse_baseline
from pytest_icbench.store.run_directory import replace_file
from tests.baselines import HOST, entry, launch, measured

_NUMBER = st.floats(allow_nan=False, allow_infinity=False)
_FIGURE = st.builds(Figure, _NUMBER, st.none() | _NUMBER, st.none() | _NUMBER, st.lists(_NUMBER, max_size=4).map(tuple))
_JSON = st.dictionaries(st.text(max_size=8), st.none() | st.booleans() | _NUMBER | st.text(max_size=8), max_size=3)
_ENTRY = st.builds(
    Entry,
    case=st.text(max_size=20),
    dimension=st.sampled_from(["throughput", "latency"]),
    metric=st.sampled_from(["frmol", "ndr"]),
    switch=st.text(max_size=8),
    placement=st.sampled_from(["dedicated", "cooperative"]),
    rules=st.integers(1, 9),
    measured=st.just("2026-01-31T12:00:00Z"),
    lower_bound=st.booleans(),
    launches=st.integers(0, 99),
    figures=st.dictionaries(st.sampled_from(sorted(COMPARED)), _FIGURE, max_size=3),
    identity=st.just(HOST),
    treatment=_JSON,
    conditions=_JSON,
    settings=_JSON,
)


@settings(deadline=None)
@given(st.lists(_ENTRY, max_size=4))
def test_what_is_written_is_read(entries: list[Entry]) -> None:
    kept = {each.key: each for each in entries}
    assert {each.key: each for each in parse_baseline(format_baseline(entries), "x")} == kept


@settings(deadline=None)
@given(st.lists(_ENTRY, max_size=4), st.randoms())
def test_the_text_depends_on_the_content_alone(entries: list[Entry], order: object) -> None:
    kept = list({each.key: each for each in entries}.values())
    assert format_baseline(kept) == format_baseline(list(reversed(kept)))


TEXT = format_baseline([entry(), entry(Case("ovs", Frames(Traffic(1500)), dimension="throughput"))])


def test_every_truncation_is_refused() -> None:
    for length in range(len(TEXT)):
        with pytest.raises(DamagedData, match=r"^baseline\.json: "):
            parse_baseline(TEXT[:length], "baseline.json")


@given(st.text(max_size=200))
def test_no_other_text_is_half_read(text: str) -> None:
    with pytest.raises(DamagedData, match=r"^x: "):
        parse_baseline(text, "x")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(TEXT) - 1), st.characters())
def test_a_changed_character_is_read_or_refused_but_never_crashes(place: int, char: str) -> None:
    try:
        reported = f"x: {len(parse_baseline(TEXT[:place] + char + TEXT[place + 1 :], 'x'))} read"
    except DamagedData as error:
        reported = str(error)
    assert reported.startswith("x: ")


def changed(**values: object) -> str:
    return json.dumps({**json.loads(TEXT), **values}) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(schema=SCHEMA + 1), f"schema {SCHEMA + 1}, but this version reads {SCHEMA}; update"),
        (changed(schema=SCHEMA - 1), "written by an earlier version .schema 1, this one reads 2.; measure and save"),
        (changed(schema=0), "schema is 0"),
        (changed(schema=True), "schema"),
        (changed(format="something"), "no baseline of pytest-icbench"),
        (changed(comparability={}), "facts .* are not in the file"),
        (changed(cases={"x": 1}), "expected an object"),
        (TEXT.replace('"frmol"', "1"), "metric: expected a string"),
        (TEXT.replace('"launches": 8', '"launches": NaN', 1), "NaN is no JSON number"),
        (TEXT.replace('"metric":', '"metric": "a", "metric":', 1), "'metric' occurs twice"),
        ("<<<<<<< HEAD\n" + TEXT, "damaged or cut off"),
        (TEXT.replace('"ovs-64B-b32-1vs1-Rmax",', '"veth",'), "holds the case"),
        ("[" * 10**5, "damaged or cut off"),
    ],
)
def test_damage_is_named(text: str, message: str) -> None:
    with pytest.raises(DamagedData, match=f"^b.json: .*{message}"):
        parse_baseline(text, "b.json")


def test_the_form_is_for_people_and_merges() -> None:
    lines = TEXT.splitlines()
    assert max(len(line) for line in lines) < 300
    assert sum("Example(R) CPU" in line for line in lines) == 1
    assert sum('"version": "3.1"' in line for line in lines) == 1
    # Another figure changes one line.
    new = format_baseline([entry(launches=[5.1e6] * 8), entry(Case("ovs", Frames(Traffic(1500))))]).splitlines()
    differing = [one for one, other in zip(lines, new, strict=True) if one != other]
    assert len(differing) == 1
    assert differing[0].lstrip().startswith('"throughput_pps": {')


def test_entries_have_what_their_measurement_has() -> None:
    one = entry()
    assert one.measured == "2023-11-14T22:13:20Z"
    assert one.figures["throughput_pps"].launches == tuple(each.throughput_pps for each in measured().per_launch)
    assert one.conditions == {"frequency_driver": None, "governors": ["performance"], "turbo": False}
    assert set(one.figures) == {"throughput_pps"}
    histogram = Histogram(((100, 50),), 100, 100, 100.0, 3)
    launches = tuple(replace(launch(5e6, index), rtt=histogram) for index in range(6))
    found = replace(measured(Case("ovs", dimension="latency")), per_launch=launches, launches=6).with_figures(
        rtt_p99_ns=Estimate(100.0)
    )
    latency = make_entry(found)
    assert latency is not None
    assert latency.figures["rtt_p50_ns"].launches == (100.0,) * 6
    assert latency.figures["rtt_p99_ns"].launches == ()  # 50 samples have no p99


def test_a_baseline_does_not_hold_results_without_a_value() -> None:
    assert make_entry(measured(verdict="INVALID", reason="died")) is None
    assert make_entry(measured(loss_events=())) is None
    assert make_entry(measured(throughput_pps=None)) is None


def test_saving_replaces_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    other = entry(Case("ovs", Frames(Traffic(1500))))
    elsewhere = entry(identity={**HOST, "machine": "other"})
    veth = entry(Case("veth"))
    files = baselines.save(tmp_path, "main", [entry(), other, elsewhere, veth])
    assert len(files) == 3
    assert {path.relative_to(tmp_path / "main").parts[1] for path in files} == {"ovs.json", "veth.json"}
    again = entry(launches=[4e6] * 6)
    baselines.save(tmp_path, "main", [again])
    found = baselines.load(tmp_path, "main")
    assert len(found.entries) == 4
    assert all(each in found.entries for each in (again, other, elsewhere, veth))
    assert len(found.about(entry().about)) == 2


def test_placements_do_not_overwrite_each_other(tmp_path: Path) -> None:
    baselines.save(tmp_path, "main", [entry(), entry(placement="cooperative")])
    assert len(baselines.load(tmp_path, "main").entries) == 2


def test_a_missing_baseline_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no baseline 'main' in .*; --icbench-save makes one"):
        baselines.load(tmp_path / "none", "main")
    baselines.save(tmp_path, "main", [entry()])
    with pytest.raises(UsageError, match="did you mean main"):
        baselines.load(tmp_path, "mian")


def test_a_damaged_file_is_neither_read_nor_overwritten(tmp_path: Path) -> None:
    (path,) = baselines.save(tmp_path, "main", [entry()])
    path.write_text(path.read_text()[:-20])
    before = path.read_bytes()
    for action in (lambda: baselines.load(tmp_path, "main"), lambda: baselines.save(tmp_path, "main", [entry()])):
        with pytest.raises(DamagedData, match=str(path)):
            action()
    assert path.read_bytes() == before
    path.write_bytes(b"\xfe")
    with pytest.raises(UsageError, match=f"{path} cannot be read"):
        baselines.load(tmp_path, "main")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = baselines.save(tmp_path, "main", [entry()])
    before = path.read_bytes()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ProvisionError, match=f"{path} cannot be written .*No space left"):
        baselines.save(tmp_path, "main", [entry(launches=[1e6] * 6)])
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_the_new_file_is_on_the_disk_before_it_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def noted_fsync(fd: int) -> None:
        done.append("fsync")
        fsync(fd)

    def noted_rename(self: Path, target: Path) -> Path:
        done.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_rename)
    replace_file(tmp_path / "a", "text")
    assert done == ["fsync", "rename", "fsync"]


def test_hosts_have_readable_names_and_switches_safe_ones(tmp_path: Path) -> None:
    assert baselines.host_name(HOST).startswith("example-r-cpu-9000-")
    assert baselines.host_name({}).startswith("host-")
    assert baselines.host_name(HOST) != baselines.host_name({**HOST, "cores": 9})
    hostile = entry(switch="../../x", identity={"cpu_model": "../..\x00/é"})
    (path,) = baselines.save(tmp_path, "main", [hostile])
    assert path.resolve().is_relative_to(tmp_path / "main")


def test_a_search_is_one_launch_in_a_baseline() -> None:
    from pytest_icbench.model.trials import SearchLog

    search = SearchLog("csit", 0.0, 0.5, 0.005, 1, 1, 21, 1e4, 5e6, "reference", True, None)
    found = entry(Case("ovs", Frames(rate=Rate(loss_ratio=0.0))), search=search)
    figure = found.figures["throughput_pps"]
    assert figure.launches == (figure.value,)
