# SPDX-License-Identifier: BSD-3-Clause
"""The claim about real sessions of the gate: their record, and what is concluded from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

CASES = ("linux-bridge-64B", "forward:cost4000-64B")


@pytest.fixture
def pool(load: Callable[[str], Any]) -> Any:
    return load("validation.pools.gate_sessions")


@pytest.fixture
def claim(load: Callable[[str], Any], pool: Any) -> Any:
    return load("validation.claims.gate_sessions")


@pytest.fixture
def sessions(pool: Any) -> list[Any]:
    """A record whose sessions agree, and whose gate finds what is slower and nothing else."""
    random = Random(5)

    def judged(case: str, kind: str) -> Any:
        slower = kind in pool.SLOWER and case.startswith("forward")
        verdict = "REGRESSED" if slower and "10 %" in kind else "PASS"
        level = 1e6 * (1 - (pool.SLOWER[kind] if slower else 0))
        launches = [level * random.gauss(1, 0.01) for _ in range(9)]
        return pool.Judged(verdict, "", [level, 0.98 * level, 1.02 * level], [1.0, 0.97, 1.03], launches, 0)

    return [pool.Session(kind, 0.0, 180.0, [0.1, 2.0], 0, {c: judged(c, kind) for c in CASES}) for kind in pool.order()]


def rows(claim: Any, sessions: list[Any]) -> dict[str, Any]:
    return {row.what: row for row in claim.assemble(sessions).rows}


def with_verdict(sessions: list[Any], kind: str, case: str, verdict: str) -> list[Any]:
    """The same, but for the last session of that kind."""
    place = max(number for number, session in enumerate(sessions) if session.kind == kind)
    session = sessions[place]
    cases = {**session.cases, case: replace(session.cases[case], verdict=verdict)}
    return [*sessions[:place], replace(session, cases=cases), *sessions[place + 1 :]]


def test_sessions_that_agree_keep_every_bound(claim: Any, sessions: list[Any]) -> None:
    found = rows(claim, sessions)
    assert all(row.held for row in found.values())
    assert found["forwarder 10 % slower: verdicts"].value == "15 REGRESSED"
    assert found["forwarder 5 % slower: verdicts"].value == "10 PASS"


@pytest.mark.parametrize("kind", ["same", "same beside cpu", "same beside memory"])
def test_one_accusation_without_a_change_breaks_the_claim(claim: Any, sessions: list[Any], kind: str) -> None:
    row = rows(claim, with_verdict(sessions, kind, CASES[0], "REGRESSED"))[
        "sessions of 30 without a change that accuse anything"
    ]
    assert (row.value, row.held) == (1, False)


def test_an_unchanged_case_beside_a_slower_forwarder_is_not_to_be_accused(claim: Any, sessions: list[Any]) -> None:
    found = rows(claim, with_verdict(sessions, "5 % slower", CASES[0], "REGRESSED"))
    assert not found["unchanged cases that are accused beside a slower forwarder"].held


def test_a_slower_forwarder_that_passes_breaks_the_claim(claim: Any, sessions: list[Any]) -> None:
    found = rows(claim, with_verdict(sessions, "10 % slower", CASES[1], "PASS"))
    assert not found["forwarder 10 % slower: verdicts"].held
    assert rows(claim, with_verdict(sessions, "10 % slower", CASES[1], "INCONCLUSIVE"))[
        "forwarder 10 % slower: verdicts"
    ].held


def test_intervals_that_miss_the_others_are_counted(claim: Any, sessions: list[Any]) -> None:
    def far(session: Any) -> Any:
        value = [2e6, 1.99e6, 2.01e6]
        return replace(session, cases={case: replace(each, value=value) for case, each in session.cases.items()})

    missing = [far(session) if number < 5 else session for number, session in enumerate(sessions)]
    row = rows(claim, missing)["intervals that hold the others' median"]
    assert row.value.startswith("86.1% of 72")
    assert not row.held


def test_an_interval_without_an_end_holds_and_an_invalid_case_counts_for_nothing(
    claim: Any, sessions: list[Any]
) -> None:
    first = sessions[0]
    cases = {
        CASES[0]: replace(first.cases[CASES[0]], value=[2e6, None, None]),
        CASES[1]: replace(first.cases[CASES[1]], value=None),
    }
    found = rows(claim, [replace(first, cases=cases), *sessions[1:]])
    assert found["intervals that hold the others' median"].value.startswith("100.0% of 71")


def test_a_record_is_read_as_it_was_written(pool: Any, sessions: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    assert pool.read(file) is None
    file.write_text("\n".join([json.dumps({"CPUs": 2}), *(json.dumps(asdict(session)) for session in sessions)]) + "\n")
    assert pool.read(file) == ({"CPUs": 2}, sessions)


def test_what_lacks_is_asked_for_in_its_order(pool: Any, sessions: list[Any]) -> None:
    assert pool.lacking([]) == pool.order()
    assert pool.lacking(sessions[:9]) == pool.order()[9:]
    assert pool.lacking(sessions) == []


def test_a_slower_forwarder_is_the_workload_with_another_cost(
    pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICBENCH_WORKLOAD", "/bin/echo")
    program = tmp_path / "forward"
    for slower, cost in ((0.0, 4000), (0.1, 4471)):
        pool.forwarder(program, slower)
        argv = [str(program), "dpdk-forward", "--cost", "4000", "--name", "a b"]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert told == f"dpdk-forward --cost {cost} --name a b\n"


def test_every_figure_is_drawn(claim: Any, sessions: list[Any], tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    for name in claim.FIGURES:
        drawn = figure.Figure(layout="constrained")
        claim.draw(name, drawn, claim.assemble(sessions).data)
        drawn.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
