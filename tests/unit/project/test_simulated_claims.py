# SPDX-License-Identifier: BSD-3-Clause
"""The simulations behind the claims on the history, on searches and on the gate do what the page says of them."""

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
    assert task.reports(after)
    assert not task.reports(before)
    assert not history.Task(steady, 50, 1, 0.1, 25).reports(after)  # the change lies elsewhere
    assert history.Task(steady, 50, 1).reports(after)  # any is one too many


def test_the_rule_of_before_finds_changes_in_a_regime(load: Any) -> None:
    history, model = load("validation.claims.history"), load("validation.model")
    settings = model.Settings(quick=True)
    place = next(
        place for place, task in enumerate(history.tasks(settings)) if task.machine.name == "correlation 0.9, 5 %"
    )
    now, before = history.reported(settings, place)
    assert now < 0.2 < before


@pytest.mark.parametrize("kept", [0.0, 0.9])
def test_disturbances_of_a_simulated_device_last_as_long_as_it_is_reported(load: Any, kept: float) -> None:
    device = load("search_simulation").SimulatedDevice(
        1e6, jitter=0.01, stall_share=0.3, correlation=kept, random=Random(1)
    )
    regimes, interrupted = [], []
    for _ in range(4000):
        device(1.0, 2e6)
        regimes.append(device._regime)
        interrupted.append(float(device._interrupted))
    assert correlation(regimes, regimes[1:] + regimes[:1]) == pytest.approx(kept, abs=0.05)
    assert correlation(interrupted, interrupted[1:] + interrupted[:1]) == pytest.approx(kept, abs=0.05)
    assert sum(interrupted) / len(interrupted) == pytest.approx(0.3, abs=0.08)


def test_a_host_of_the_gates_claim_flags_rarely_and_finds_what_is_much_slower(load: Any) -> None:
    gate, hosts = load("validation.claims.gate"), load("validation.hosts")
    host = hosts.Host("launches 2 %")
    pairs = gate.shares_by_pairs(host, 20, 10, Random(1))
    sessions = gate.shares_over_sessions(host, 20, 10, Random(1))
    assert max(*pairs["alarms"], *sessions["alarms"]) <= 0.1
    assert pairs["power"]["5"][-2:] == [1.0, 1.0]
    assert sessions["power"]["20"][-1] == 1.0


def test_a_pair_that_met_two_states_is_dropped_and_another_one_knows_no_state(load: Any) -> None:
    gate, hosts = load("validation.claims.gate"), load("validation.hosts")
    random, host = Random(2), hosts.Host("two states", launch=0.0, states=True)
    states, noise = hosts.States(random, 1000.0), host.noise(random)
    ratios = [gate.measured_pair(host, random, noise, states, 2.4 * place) for place in range(400)]
    kept = [ratio for ratio in ratios if ratio is not None]
    assert 100 < len(kept) < 400
    assert max(map(abs, kept)) < 0.3  # one that left its state between two readings


def test_what_a_gate_finds_is_a_row_a_method(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = load("validation.claims.gate")
    shares = {str(minutes): [0.0, 0.5, 1.0, 1.0] for minutes in gate.MINUTES}
    monkeypatch.setattr(gate, "BEFORE", {"h": {"pairs": (0, 0.1, 1, 1)}})
    pairs, sessions = gate.power_rows("h", {"pairs": shares, "sessions": shares})
    assert pairs.what == "h: found by pairs of 3, 5, 10, 20 % slower, in 5; 10; 20 minutes"
    assert pairs.value == "0, 50, 100, 100; 0, 50, 100, 100; 0, 50, 100, 100 % (before, 10 minutes: 0, 10, 100, 100)"
    assert "before" not in sessions.value
