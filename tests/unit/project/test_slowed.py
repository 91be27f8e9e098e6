# SPDX-License-Identifier: BSD-3-Clause
"""Sessions over switches that are really slower: what is changed, what is recorded, and what is concluded."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def pool(load: Callable[[str], Any]) -> Any:
    return load("validation.pools.slowed")


@pytest.fixture
def claim(load: Callable[[str], Any]) -> Any:
    return load("validation.claims.slowed")


@pytest.fixture
def session(pool: Any) -> Any:
    return pool.Session(
        "ovs", 0, "pairs", "none", 0.0, 60.0, "PASS", "", [1.0, 0.99, 1.01], 20, [400.0, 400.0], [1e6, 1e6], 0, "abc"
    )


def test_a_frame_passes_as_many_tables_as_the_step_has(pool: Any, tmp_path: Path) -> None:
    for step, tables in enumerate(pool.OVS_TABLES):
        change = pool.change("ovs", step, tmp_path)
        flows = tomllib.loads(Path(change.what.removeprefix("config:")).read_text())["flows"]
        assert len(flows) == 2 * (len(tables) + 1)
        assert flows[-1] == f"table={len(tables)},priority=10,in_port=2,actions=NORMAL"


def test_testpmd_changes_in_its_place(pool: Any, tmp_path: Path) -> None:
    (same, slower) = ((tmp_path / f"{place}-testpmd", step) for place, step in (("old", 0), ("now", 1)))
    for file, step in (same, slower):
        change = pool.change("testpmd", step, tmp_path, place=file.name.partition("-")[0])
        assert change.what == str(file)
        assert change.inplace == (f"--icbench-binary=testpmd={file}",)
    assert same[0].read_text().endswith(" --noisy-lkup-num-reads=0\n")
    assert slower[0].read_text().endswith(f" --noisy-lkup-num-{pool.NOISY[1]}\n")


def test_rules_of_a_bridge_match_no_frame_and_are_its_mode(load: Callable[[str], Any]) -> None:
    bridge = load("validation.pools.filtered_bridge")
    assert bridge.ruleset(3).count(" drop") == 3
    assert bridge.FilteredBridge.has_mode("rules20")
    assert not bridge.FilteredBridge.has_mode("rules")


def test_a_record_comes_back_as_it_was_written(pool: Any, session: Any, tmp_path: Path) -> None:
    record = pool.Record(tmp_path / "records" / "x.jsonl", {"CPUs": 2}, [])
    record.append(session)
    record.append(replace(session, step=1, ratio=None))
    assert pool.records(tmp_path / "records") == [record]


def recorded(pool: Any, session: Any, found: int, false: int = 0) -> Any:
    slower = [
        replace(
            session,
            step=1,
            ratio=[0.9, 0.89, 0.91],
            cycles=[440.0, 400.0],
            decision="REGRESSED" if place < found else "INCONCLUSIVE",
        )
        for place in range(10)
    ]
    unchanged = [replace(session, decision="REGRESSED" if place < false else "PASS") for place in range(60)]
    return pool.Record(Path("x.jsonl"), {"CPUs": 2}, [*slower, *unchanged])


@pytest.mark.parametrize(("found", "false", "held"), [(9, 0, True), (8, 0, False), (10, 1, False)])
def test_the_claim_holds_if_nine_of_ten_are_found_and_nothing_else(
    pool: Any, claim: Any, session: Any, found: int, false: int, held: bool
) -> None:
    result = claim.assemble([recorded(pool, session, found, false)])
    rows = {row.what: row for row in result.rows}
    assert rows["ovs, step 1: slower by, %"].value == 10.0
    assert rows["ovs, step 1: more cycles a frame, %"].value == 10.0
    share = rows["by pairs, on a quiet host: of 10 sessions with a loss of 10 %, those that find it"]
    assert share.value == f"{found * 10}%"
    assert all(row.held for row in result.rows) == held


def test_few_sessions_show_nothing_yet(pool: Any, claim: Any, session: Any) -> None:
    record = recorded(pool, session, 10)
    result = claim.assemble([replace(record, sessions=record.sessions[:20])])
    assert result.notes == ("Not shown yet, sessions without a change: 10 of 60.",)
    assert not any(row.bound for row in result.rows)
