# SPDX-License-Identifier: BSD-3-Clause
"""Where a chain of functions lost frames, by the functions' own counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.measure.launch import hops
from pytest_icbench.model.function_facts import ChainAccount, FunctionCounters


def chain(flow: Sequence[int], pair: int = 1, control: int = 0) -> list[FunctionCounters]:
    """Counters of functions of which each took in and gave out so many data frames: [taken, given, taken, …]."""
    couples = zip(flow[::2], flow[1::2], strict=True)
    return [
        FunctionCounters(pair, taken + control, given + control, hop=hop, control_taken=control, control_given=control)
        for hop, (taken, given) in enumerate(couples, start=1)
    ]


def test_a_frame_is_lost_at_the_hop_that_did_not_give_it_out() -> None:
    after = chain([100, 100, 97, 90])
    accounts, fault = hops.accounts(chain([0] * 4), after, {1: (100, 88)})
    assert (accounts, fault) == ((ChainAccount(1, 100, 88, (0, 10, 2), (0, 3, 2)),), None)
    assert accounts is not None
    assert accounts[0].lost == 12


def test_control_frames_are_no_data_and_counters_are_differences() -> None:
    accounts, fault = hops.accounts(chain([7, 5], control=2), chain([17, 14], control=5), {1: (10, 9)})
    assert (accounts, fault) == ((ChainAccount(1, 10, 9, (1, 0), (0, 0)),), None)


def test_counters_that_contradict_each_other_are_named() -> None:
    _, fault = hops.accounts(chain([0] * 4), chain([10, 10, 11, 11]), {1: (10, 11)})
    assert fault == "pair 1: function 1's output counted 10 frames, and function 2's input 11"
    _, fault = hops.accounts(chain([0] * 2), chain([9, 9]), {1: (9, 10)})
    assert fault == "pair 1: function 1's output counted 9 frames, and the receiver 10"
    _, fault = hops.accounts(chain([0] * 2), chain([9, 9]), {1: (8, 8)})
    assert fault == "pair 1: the sender counted 8 frames, and function 1's input 9"


def test_what_a_full_table_cost_is_reported_without_control_frames() -> None:
    before = [FunctionCounters(1, 5, 5, control_taken=1, control_given=1, table_full=2)]
    after = [FunctionCounters(1, 109, 94, control_taken=5, control_given=3, table_full=16)]
    accounts, fault = hops.accounts(before, after, {1: (100, 87)})
    assert (accounts, fault) == ((ChainAccount(1, 100, 87, (13, 0), (0, 0), 12),), None)
    assert accounts is not None
    assert accounts[0].plus(accounts[0]).table_full == 24
    _, fault = hops.accounts(before, [replace(after[0], table_full=18)], {1: (100, 87)})
    assert fault == "pair 1: full tables cost 14 frames by their counters, and only 13 were lost"


def test_full_tables_explain_frames_that_they_cost_and_no_others() -> None:
    before, after = ([FunctionCounters(1, table_full=full)] for full in (5, 15))
    assert [hops.full_tables_explain(before, after, lost) for lost in (0, 9, 10, 11)] == [False, True, True, False]
    assert not hops.full_tables_explain([FunctionCounters(1)], [FunctionCounters(1)], 5)


def test_a_function_that_does_not_tell_control_frames_has_no_account() -> None:
    assert hops.accounts([FunctionCounters(1, 0, 0)], [FunctionCounters(1, 5, 5)], {1: (5, 5)}) == (None, None)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 1000), min_size=2, max_size=200).filter(lambda d: len(d) % 2))
def test_what_was_sent_is_what_arrived_and_what_was_lost(last: int, drops: list[int]) -> None:
    flow = [last]
    for lost in drops:
        flow.insert(0, flow[0] + lost)
    sent, *between, received = flow
    accounts, fault = hops.accounts(chain([0] * len(between)), chain(between), {1: (sent, received)})
    assert fault is None
    assert accounts is not None
    (account,) = accounts
    assert account.sent == account.received + sum(account.lost_by_hop)
    assert len(account.lost_by_hop) == len(between) // 2 + 1
    assert all(0 <= b <= a for a, b in zip(account.lost_by_hop, account.lost_before_hop, strict=True))
    assert account.plus(account).lost == 2 * account.lost


def test_counters_are_read_until_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "_LOOK_S", 0.001)
    readings = [chain([5, 1]), chain([5, 4]), chain([5, 5]), chain([5, 5]), chain([6, 6])]
    assert hops.at_rest(lambda: readings.pop(0)) == chain([5, 5])
    assert len(readings) == 1
