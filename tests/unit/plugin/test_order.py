# SPDX-License-Identifier: BSD-3-Clause
"""Cases run at random, those of one rig together, and again in the same order by the same seed."""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.plugin.items import MOST_SEED, choose_seed, shuffle_items

Item = tuple[str | None, int]
ITEMS: list[Item] = [(None, 0), *((rig, number) for rig in "abcd" for number in range(4))]


def rig_of(item: Item) -> str | None:
    return item[0]


@given(st.integers(0, MOST_SEED))
def test_every_case_runs_once_beside_those_of_its_rig(seed: int) -> None:
    order = shuffle_items(ITEMS, rig_of, seed)
    assert sorted(order[1:]) == ITEMS[1:]
    assert order[0] == (None, 0)
    assert len([rig for rig, _ in groupby(order, rig_of)]) == 5
    assert order == shuffle_items(ITEMS, rig_of, seed)


def test_every_case_is_the_first_and_the_last_now_and_then() -> None:
    orders = [shuffle_items(ITEMS, rig_of, seed)[1:] for seed in range(400)]
    assert {order[0] for order in orders} == {order[-1] for order in orders} == set(ITEMS[1:])


def config(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


def test_hosts_of_a_session_draw_the_same_seed_and_sessions_different_ones() -> None:
    workers = [config(workerinput={"testrunuid": "abc", "workerid": f"gw{number}"}) for number in range(3)]
    assert len({choose_seed("random", worker) for worker in workers}) == 1
    assert len({choose_seed("random", config()) for _ in range(20)}) > 10
    assert choose_seed("17", config()) == 17


@pytest.mark.parametrize("worker", [{}, {"workerinput": {"testrunuid": "abc"}}])
def test_the_order_of_the_files_has_no_seed(worker: dict[str, Any]) -> None:
    assert choose_seed("given", config(**worker)) is None
