# SPDX-License-Identifier: BSD-3-Clause
"""The simulations behind the claims on the history and on searches do what the page says of them."""

from __future__ import annotations

from random import Random
from statistics import correlation
from typing import Any

import pytest


def test_only_the_last_results_of_a_series_are_slower_and_a_change_counts_where_it_is(load: Any) -> None:
    history, machines = load("validation.claims.history"), load("validation.machines")
    steady = machines.normal(0.1)
    before = history.Task(steady, 50, 1).drawn(Random(1))
    task = history.Task(steady, 50, 1, 0.1, 10)
    after = task.drawn(Random(1))
    assert after[:40] == before[:40]
    assert after[40:] == pytest.approx([0.9 * value for value in before[40:]])
    assert task.tells(after)
    assert not task.tells(before)
    assert not history.Task(steady, 50, 1, 0.1, 25).tells(after)  # the change lies elsewhere
    assert history.Task(steady, 50, 1).tells(after)  # any is one too many
    with history.cut_once():
        assert task.tells(after)


def test_the_rule_of_before_finds_changes_in_a_mood(load: Any) -> None:
    history, model = load("validation.claims.history"), load("validation.model")
    settings = model.Settings(quick=True)
    place = next(
        place for place, task in enumerate(history.tasks(settings)) if task.machine.name == "correlation 0.9, 5 %"
    )
    now, before = history.told(settings, place)
    assert now < 0.2 < before


@pytest.mark.parametrize("kept", [0.0, 0.9])
def test_disturbances_of_a_simulated_device_last_as_long_as_it_is_told(load: Any, kept: float) -> None:
    device = load("search_simulation").SimulatedDevice(
        1e6, jitter=0.01, stall_share=0.3, correlation=kept, random=Random(1)
    )
    moods, interrupted = [], []
    for _ in range(4000):
        device(1.0, 2e6)
        moods.append(device._mood)
        interrupted.append(float(device._interrupted))
    assert correlation(moods, moods[1:] + moods[:1]) == pytest.approx(kept, abs=0.05)
    assert correlation(interrupted, interrupted[1:] + interrupted[:1]) == pytest.approx(kept, abs=0.05)
    assert sum(interrupted) / len(interrupted) == pytest.approx(0.3, abs=0.08)


def test_sessions_of_searches_are_judged_by_the_gate_and_by_brackets(load: Any) -> None:
    claim, gate = load("validation.claims.search_sessions"), load("validation.claims.gate")
    alike = [claim.Searched(0.997 + 0.0001 * place, 1.002) for place in range(10)]
    accused, before, held = claim.alarms(alike, gate.Machine("sessions alike"), 20, "x")
    assert (accused, before) == (0.0, 0.0)
    assert held > 0.9
    apart = claim.alarms(alike, gate.Machine("own", own=0.05), 20, "x")
    assert apart[1] > 0.5  # a bracket knows nothing of other sessions
    assert apart[0] < 0.2


def test_what_a_gate_finds_is_a_row_a_machine(load: Any) -> None:
    gate = load("validation.claims.gate")
    drops = gate.DROPS
    (row,) = gate.power_rows([{"name": "alike", "now": [0.0] * len(drops), "before": [1.0] * len(drops)}])
    assert row.what == "alike: of cases 3, 5, 10, 20, 30 % slower, accused"
    assert row.value == "0, 0, 0, 0, 0 % (by one session and its launches: 100, 100, 100, 100, 100 %)"
