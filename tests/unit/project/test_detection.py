# SPDX-License-Identifier: BSD-3-Clause
"""The claim about false alarms and power: a pool of launches, and what is concluded from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest


@pytest.fixture
def pools(load: Callable[[str], Any]) -> Any:
    return load("validation.pools.detection")


def pool(pools: Any, slow10: float = 0.9, units: int = 60) -> Any:
    random = Random(3)
    levels = {"a": 1.0, "b": 1.0, "slow5": 0.95, "slow10": slow10}

    def unit(number: int) -> Any:
        pps = {name: [5e5 * level * random.gauss(1, 0.004) for _ in range(6)] for name, level in levels.items()}
        return pools.Unit(0.0, number // 7, 22.0, 0.0, 0.1, 0, pps)

    return pools.Pool({"CPUs": 2}, [unit(number) for number in range(units)])


def rows(load: Callable[[str], Any], found: Any) -> dict[str, Any]:
    claim, model = load("validation.claims.detection"), load("validation.model")
    return {row.what: row for row in claim.assemble(found, model.Settings(quick=True)).rows}


def test_a_quiet_pool_keeps_every_bound(load: Callable[[str], Any], pools: Any) -> None:
    found = rows(load, pool(pools))
    assert all(row.held for row in found.values())
    assert found["REGRESSED of 60 comparisons at 0 %"].value == 0
    assert found["REGRESSED of 60 comparisons at 10 %"].value == 60


def test_a_slow_down_that_was_none_is_no_power(load: Callable[[str], Any], pools: Any) -> None:
    found = rows(load, pool(pools, slow10=1.0))
    assert not found["REGRESSED of 60 comparisons at 10 %"].held
    assert not next(row for what, row in found.items() if what.startswith("rate at 10 %")).held


def test_a_base_that_drifts_away_from_its_twin_is_a_false_alarm(load: Callable[[str], Any], pools: Any) -> None:
    found = pool(pools)
    slow = found.units[5]
    found.units[5] = replace(slow, pps={**slow.pps, "b": [0.9 * value for value in slow.pps["a"]]})
    row = rows(load, found)["REGRESSED of 60 comparisons at 0 %"]
    assert (row.value, row.held) == (1, False)


def test_a_pool_is_read_as_it_was_written(pools: Any, tmp_path: Path) -> None:
    file = tmp_path / "pool.jsonl"
    assert pools.Pool.read(file) is None
    unit = pool(pools, units=1).units[0]
    rounded = replace(unit, pps={name: [round(value) for value in values] for name, values in unit.pps.items()})
    file.write_text('{"CPUs": 2}\n' + unit.to_json() + "\n")
    assert pools.Pool.read(file) == pools.Pool({"CPUs": 2}, [rounded])


def test_the_costs_make_the_slow_downs(pools: Any) -> None:
    whole = pools.COST + pools.FORWARDING
    assert pools.cost_of(0.0) == pools.COST
    for slower in (0.05, 0.1):
        assert whole / (pools.cost_of(slower) + pools.FORWARDING) == pytest.approx(1 - slower, abs=1e-4)


def test_a_rig_that_is_slower_throughout_is_seen_among_the_drawn_comparisons(
    load: Callable[[str], Any], pools: Any
) -> None:
    """With the sign of each pair drawn at random, a rig that is 4 % slower would cancel."""
    claim, model = load("validation.claims.detection"), load("validation.model")
    units = [
        replace(unit, pps={**unit.pps, "b": [value * 0.96 for value in unit.pps["b"]]}) for unit in pool(pools).units
    ]
    bound = [row for row in claim.drawn(units, model.Settings(quick=True)) if row.bound]
    assert bound
    assert not any(row.held for row in bound)
