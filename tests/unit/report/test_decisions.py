# SPDX-License-Identifier: BSD-3-Clause
"""Sentences on what comparisons find: before a session, after it, and of a baseline that was saved."""

from __future__ import annotations

from pytest_icbench.gate.baseline_comparison import compute_power_before
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.decisions import explain_powers, explain_saved, is_weak, power
from tests.baselines import ALIKE, measured, with_sessions
from tests.unit.gate.test_session_judgement import SPREAD_OUT, found, linked

SPREADS = ((1.001, 1 / 1.001, 1.001, 1 / 1.001), (1.1, 1 / 1.1, 1.05, 1 / 1.05))


def test_power_and_weakness_of_all_cases_are_a_sentence_each() -> None:
    (allowed,) = Margins().of("throughput")
    steady, apart = (
        compute_power_before(with_sessions(linked(), spread), allowed, 2) for spread in (ALIKE, SPREAD_OUT)
    )
    (only,) = explain_powers([("a", steady)])
    assert only.startswith("this session would have found nine times of ten: a loss of 3.")
    both, weak = explain_powers([("a", steady), ("b", apart)], before=True)
    assert both.endswith("in b")
    assert weak.startswith("weak session: 1 case of 2")
    assert explain_powers([]) == []


def test_cases_that_a_baseline_cannot_judge_are_reported_when_it_is_saved() -> None:
    assert explain_saved([with_sessions(linked())]) == []
    (line,) = explain_saved([with_sessions(linked()), linked()])
    assert "cannot judge 1 case of 2 yet (fewest sessions: 1)" in line


def test_what_a_session_would_have_found_is_one_sentence() -> None:
    results = [Result.of(measured(findings=(found(linked(), with_sessions(linked(), apart)),))) for apart in SPREADS]
    reported, weak = power(results)
    assert reported.startswith("this session would have found nine times of ten: a loss of 3.")
    assert weak.startswith("weak session: 1 case of 2")
    assert is_weak(results)
    assert not is_weak(results[:1])
    assert power([Result.of(measured())]) == []
    (few,) = power([Result.of(measured(findings=(found(linked(), linked()),)))])
    assert few.startswith("weak session: 1 case of 1")
