# SPDX-License-Identifier: BSD-3-Clause
"""What makes a comparison inconclusive is reported before anything is measured, in one sentence each."""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.gate.entry import Baseline, Entry
from pytest_icbench.plugin.fitness_check import PlannedCase, explain_history, foresee
from tests.baselines import HOST, entry, with_sessions
from tests.unit.gate.test_session_judgement import linked, unlinked

CASE = PlannedCase("throughput", "ovs-64B-b32-1vs1-Rmax", "dedicated", controlled=True)
NOW = "2023-11-20T12:00:00Z"


def sentences(*entries: Entry, case: PlannedCase = CASE, patterns: tuple[str, ...] = ("identity.*",)) -> list[str]:
    """The sentences other than the one on the power of the session."""
    reported = foresee(Baseline("main", entries), [case], HOST, NOW, patterns)
    return [sentence for sentence in reported if not sentence.startswith("this session finds")]


def test_a_sufficient_baseline_is_not_mentioned() -> None:
    assert sentences(with_sessions(linked())) == []
    assert sentences() == []  # there is no such case: the verdict says it
    assert sentences(with_sessions(entry()), case=replace(CASE, controlled=False)) == []
    assert sentences(with_sessions(linked()), case=replace(CASE, placement=None)) == []


def test_a_single_session_is_reported_as_weak() -> None:
    (reported,) = sentences(linked())
    assert reported.startswith("weak session: 1 case of 1 cannot show a loss of 10 %")


def test_the_loss_that_a_session_finds_is_reported() -> None:
    (reported,) = foresee(Baseline("main", (with_sessions(linked()),)), [CASE], HOST, NOW)
    assert reported.startswith("this session finds nine times of ten: a loss of 3.")


def test_another_host_or_layout_of_cpus_is_named() -> None:
    for changed in ({"machine": "other"}, {"cores": 4}):
        (reported,) = sentences(with_sessions(linked(identity={**HOST, **changed})))
        (name,) = changed
        assert (
            f"of another host, layout or placement ({name} is {HOST[name]} here and {changed[name]} there)" in reported
        )
        loose = ("identity.*", f"!identity.{name}")
        assert sentences(with_sessions(linked(identity={**HOST, **changed})), patterns=loose) == []


def test_another_placement_is_named() -> None:
    (reported,) = sentences(with_sessions(linked(placement="cooperative")))
    assert "of another host, layout or placement (placement is dedicated here and cooperative there)" in reported


def test_a_missing_reference_link_is_reported() -> None:
    (reported,) = sentences(with_sessions(unlinked()))
    assert "1 case without a reference link" in reported


def test_sessions_ahead_of_the_clock_are_reported() -> None:
    (reported,) = sentences(with_sessions(linked(started_at=2e9)))
    assert "a session of 2033-05-18T03:33:20Z lies ahead of the clock, which went back" in reported
    kept = with_sessions(linked())
    (reported,) = sentences(replace(kept, earlier={**kept.earlier, "2033-05-18T03:33:20Z": kept.values}))
    assert "a session of 2033-05-18T03:33:20Z lies ahead" in reported  # saved before the clock was set right


def test_a_baseline_that_is_two_weeks_old_is_reported() -> None:
    day = 86400.0
    assert sentences(with_sessions(linked(started_at=1.7e9 - 8 * day))) == []
    (reported,) = sentences(with_sessions(linked(started_at=1.7e9 - 9 * day)))
    assert "1 case last saved more than 14 days ago (2023-11-05), and the host may have changed since" in reported


def test_a_history_with_a_gap_or_ahead_of_the_clock_is_reported() -> None:
    day = 86400.0
    assert explain_history("h", 1.7e9, 1.7e9) is explain_history("h", 1.7e9, 1.7e9 + 14 * day) is None
    gap, ahead = (str(explain_history("h", 1.7e9, 1.7e9 + later)) for later in (15 * day, -3 * 3600))
    assert gap.startswith("history h: 15 days without a result, so a change that this run shows may lie anywhere in")
    assert ahead.startswith("history h: a result lies 3 h ahead of the clock, which went back: set it right")
