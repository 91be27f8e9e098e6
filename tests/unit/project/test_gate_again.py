# SPDX-License-Identifier: BSD-3-Clause
"""Recorded sessions of the gate that are judged again by the rule of now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.model.measurement import Measurement
from tests.baselines import launch, measured, scaled

CASE = "ovs-64B-b32-1vs1-Rmax"
HOUR_S = 3600.0


@pytest.fixture
def again(load: Callable[[str], Any]) -> Any:
    load("validation.pools.gate_sessions")
    return load("validation.pools.gate_again")


def rates(number: int, factor: float = 1.0) -> Measurement:
    """A session's rate, beside a control that changes by a little from session to session, as the rate does."""
    mood = 1 + 0.004 * (number % 3)
    control = tuple(map(launch, scaled(2.0 * mood)))
    return measured(launches=scaled(factor * mood), per_reference_launch=control, started_at=1.7e9 + number * HOUR_S)


@pytest.fixture
def record(again: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Six sessions of a baseline and one of a kind, whose run has these looks; None for a run that is gone."""

    def made(kind: str, *factors: float) -> Any:
        judged = again.Judged("REGRESSED", "by the rule of then", [5e6, 4.9e6, 5.1e6], [0.9, 0.8, 1.0], [5e6] * 8, 0)
        kinds = ["baseline"] * 6 + [kind]
        each = [
            again.Session(name, 1.7e9 + number * HOUR_S, 250.0, [0.1, 1.0], 0, 0.0, 0.0, "abc", {CASE: judged})
            for number, name in enumerate(kinds)
        ]
        held: list[Sequence[Measurement]] = [[rates(number)] for number in range(6)]
        held.append([rates(6, factor) for factor in factors])
        monkeypatch.setattr(again, "run_of", lambda record, session: record.sessions.index(session))
        monkeypatch.setattr(again, "looks", lambda place: {CASE: list(held[place])})
        return again.Record(tmp_path / "x-1.jsonl", {"CPUs": 2}, each)

    return made


def last(again: Any, record: Any) -> Any:
    sessions = again.again(record)
    assert [session.commit for session in sessions[:6]] == ["abc"] * 6
    return sessions[-1]


def test_what_did_not_change_passes_whatever_was_said_then(again: Any, record: Callable[..., Any]) -> None:
    session = last(again, record("same", 1.0))
    judged = session.cases[CASE]
    assert judged.verdict == "PASS"
    assert judged.change[0] == pytest.approx(1.0, abs=0.01)
    assert (judged.launches, judged.value) == ([5e6] * 8, [5e6, 4.9e6, 5.1e6])
    assert session.commit == f"abc, again by {again.commit()}"
    twice = last(again, replace_last(record("same", 1.0), session))
    assert twice.commit == session.commit


def replace_last(record: Any, session: Any) -> Any:
    return replace(record, sessions=[*record.sessions[:-1], session])


def test_a_suspect_is_found_by_the_second_look_that_it_had_then(again: Any, record: Callable[..., Any]) -> None:
    assert last(again, record("slower-10", 0.8, 0.8)).cases[CASE].verdict == "REGRESSED"
    assert last(again, record("slower-10", 0.8, 1.0)).cases[CASE].verdict == "PASS"
    alone = last(again, record("slower-10", 0.8)).cases[CASE]
    assert alone.verdict == "INCONCLUSIVE"
    assert "a suspect" in alone.reason


def test_a_record_whose_runs_are_elsewhere_stays_as_it_is(
    again: Any, record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = record("same", 1.0)
    monkeypatch.setattr(again, "run_of", lambda record, session: None)
    monkeypatch.setattr(again, "records", lambda directory: [made])
    assert again.main(["--records", str(made.file.parent)]) == 0
    assert "left as it is" in capsys.readouterr().out
    assert not made.file.exists()


def test_verdicts_are_written_and_the_run_of_a_session_is_known_by_its_time(
    again: Any, record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, load: Callable[[str], Any]
) -> None:
    made = record("same", 1.0)
    monkeypatch.setattr(again, "records", lambda directory: [made])
    again.main([])
    assert again.Record.read(made.file).sessions == again.again(made)
    runs = made.work / "runs"
    for name in ("20231114T221322Z-1", "20231114T230000Z-2"):
        (runs / name).mkdir(parents=True)
    (runs / "2-latest").symlink_to("20231114T221322Z-1")
    monkeypatch.undo()
    assert again.run_of(made, made.sessions[0]) == runs / "20231114T221322Z-1"  # it began two seconds before
    assert again.run_of(made, made.sessions[3]) is None
