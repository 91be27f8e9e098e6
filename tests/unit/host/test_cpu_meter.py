# SPDX-License-Identifier: BSD-3-Clause
"""The meter of CPUs with programs that answer, lie, hang and die. Real processes; no root needed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.host.process import Spawner
from pytest_icbench.host.resource import cpu_meter
from pytest_icbench.host.resource.cpu_meter import CpuMeter, format_question, parse_answer
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.placement import CpuState

Program = Callable[[str], Path]
_TIMES = st.floats(0.1, 1e6)
ANSWER = '{"pairs":[{"ns":63.5,"work_ns":[2000.0,2000.0]}]}'


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Makes a program of shell commands."""

    def make(commands: str) -> Path:
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{commands}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def meter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CpuMeter]:
    monkeypatch.setattr(cpu_meter, "ANSWER_S", 0.4)
    meter = CpuMeter(Spawner("unitab"), tmp_path / "log")
    yield meter
    meter.close()


def test_one_process_answers_all_questions(meter: CpuMeter, program: Program, tmp_path: Path) -> None:
    path = program(
        f"echo $1 >>{tmp_path}/starts\nwhile read line; do echo \"$line\" >>{tmp_path}/asked; echo '{ANSWER}'; done"
    )
    for _ in range(3):
        state = meter.read(path, [(0, 1)])
        assert state.distance_ns == pytest.approx(63.5)
        assert state.work_ns == pytest.approx(2000.0)
        assert meter.fault is None
    assert (tmp_path / "starts").read_text() == "distance\n"
    assert (tmp_path / "asked").read_text() == "0 1\n" * 3


def test_without_pairs_nothing_is_started(meter: CpuMeter, tmp_path: Path) -> None:
    assert meter.read(tmp_path / "missing", []) == CpuState()
    assert meter.fault is None


@pytest.mark.parametrize(
    ("commands", "sentence"),
    [
        ("exec sleep 60", "no answer within 0.46 s"),
        ("printf '{'; exec sleep 60", "no answer within 0.46 s"),
        ("echo no thread >&2; exit 3", "no thread"),
        ("read line; kill -9 $$", "has ended"),
        ("read line; echo prose; exec sleep 60", "not valid JSON"),
        ("read line; echo '{\"pairs\":[]}'; exec sleep 60", "expected 1 pairs, found 0"),
    ],
)
def test_a_bad_program_costs_no_more_than_its_deadline(
    meter: CpuMeter, program: Program, commands: str, sentence: str
) -> None:
    began = time.monotonic()
    assert meter.read(program(commands), [(0, 1)]) == CpuState()
    assert time.monotonic() - began < 5
    assert meter.fault is not None
    assert sentence in meter.fault
    assert "\n" not in meter.fault


def test_a_missing_program_is_a_fault(meter: CpuMeter, tmp_path: Path) -> None:
    assert meter.read(tmp_path / "missing", [(0, 1)]) == CpuState()
    assert meter.fault is not None
    assert "missing" in meter.fault


def test_after_a_failure_it_is_started_anew(meter: CpuMeter, program: Program) -> None:
    assert meter.read(program("exit 1"), [(0, 1)]) == CpuState()
    assert meter.read(program(f"while read line; do echo '{ANSWER}'; done"), [(0, 1)]).distance_ns is not None
    assert meter.fault is None


def test_who_fails_again_and_again_is_asked_no_more(meter: CpuMeter, program: Program, tmp_path: Path) -> None:
    path = program(f"echo >>{tmp_path}/starts; exit 1")
    for _ in range(5):
        assert meter.read(path, [(0, 1)]) == CpuState()
    assert (tmp_path / "starts").read_text() == "\n" * cpu_meter.MOST_FAILURES
    assert meter.fault is not None


def test_a_pair_that_cannot_be_measured_is_no_failure(meter: CpuMeter, program: Program) -> None:
    path = program("while read line; do echo '{\"pairs\":[null]}'; done")
    for _ in range(cpu_meter.MOST_FAILURES + 1):
        assert meter.read(path, [(3, 4)]) == CpuState()
        assert meter.fault == "CPUs 3 and 4 cannot be measured: one is offline, not allowed, or kept busy"


def test_the_process_ends_with_the_meter(meter: CpuMeter, program: Program, tmp_path: Path) -> None:
    path = program(f"echo $$ >{tmp_path}/pid\nwhile read line; do echo '{ANSWER}'; done")
    meter.read(path, [(0, 1)])
    meter.close()
    meter.close()
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_question_is_a_line() -> None:
    assert format_question([(0, 1), (1, 12)]) == "0 1, 1 12\n"


@given(st.lists(st.tuples(_TIMES, _TIMES, _TIMES), min_size=1, max_size=4))
def test_a_state_lies_between_its_pairs(times: list[tuple[float, float, float]]) -> None:
    reported = [{"ns": ns, "work_ns": [first, second]} for ns, first, second in times]
    state, fault = parse_answer(json.dumps({"pairs": reported}), [(0, number + 1) for number in range(len(reported))])
    assert fault is None
    assert state.distance_ns is not None
    assert state.work_ns is not None
    distances, work = [ns for ns, _, _ in times], [time_ns for _, *both in times for time_ns in both]
    assert min(distances) * 0.999 <= state.distance_ns <= max(distances) * 1.001
    assert min(work) * 0.999 <= state.work_ns <= max(work) * 1.001


def test_a_cpu_in_several_pairs_counts_once_at_its_best() -> None:
    reported = '{"pairs":[{"ns":50,"work_ns":[1000,4000]},{"ns":50,"work_ns":[2000,4000]}]}'
    assert parse_answer(reported, [(0, 1), (0, 2)])[0].work_ns == pytest.approx((1000 * 4000 * 4000) ** (1 / 3))


@pytest.mark.parametrize("pair", ['{"ns":0,"work_ns":[1,1]}', '{"ns":1,"work_ns":[1]}', '{"ns":"x"}', "[]"])
def test_nonsense_is_refused(pair: str) -> None:
    with pytest.raises(DamagedData):
        parse_answer(f'{{"pairs":[{pair}]}}', [(0, 1)])
