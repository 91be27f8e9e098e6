# SPDX-License-Identifier: BSD-3-Clause
"""A session's time: everybody's least, and the rest where it narrows most."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_icbench.model.case import Case
from pytest_icbench.model.settings import Settings
from pytest_icbench.plugin import run
from pytest_icbench.plugin.plan import Budget, Entry, share_out
from pytest_icbench.stats.dependence import FEWEST_DECIDING

PLAIN = Entry(least_s=10.0, launch_s=1.0, launches=7, precision=0.03)
FIXED = replace(PLAIN, adaptive=False)
SKIPPED = replace(PLAIN, least_s=0.0)


def test_equal_cases_share_equally() -> None:
    assert Budget(100, [PLAIN] * 4).allotments() == pytest.approx([25] * 4)


def test_the_wider_case_gets_more() -> None:
    extra = share_out(60, [PLAIN, PLAIN], [0.12, 0.06])
    assert sum(extra) == pytest.approx(60)
    assert extra[0] > 1.3 * extra[1]


def test_a_launch_that_takes_longer_narrows_less_per_second() -> None:
    quick, slow = share_out(60, [PLAIN, replace(PLAIN, launch_s=4.0)], [0.3, 0.3])
    assert quick > slow


def test_who_is_precise_enough_gets_only_what_nobody_needs() -> None:
    assert share_out(20, [PLAIN, PLAIN], [0.01, 0.3]) == pytest.approx([0, 20])
    assert share_out(20, [PLAIN, PLAIN], [0.01, 0.01]) == pytest.approx([10, 10])


def test_a_fixed_number_of_launches_and_a_skip_get_nothing() -> None:
    assert Budget(100, [FIXED, SKIPPED, PLAIN]).allotments() == pytest.approx([10, 0, 90])


def test_what_a_case_does_not_need_is_the_others() -> None:
    budget = Budget(100, [PLAIN] * 3)
    first = budget.allotments()[0]
    budget.finish(10.0, 0.01, 7)
    assert budget.allotments() == pytest.approx([45, 45])
    assert budget.allotments()[0] > first


def test_time_between_cases_is_spent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the session counts: closing rigs after a test, and what passes until the next one begins."""
    now = [1000.0]
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: now[0]))
    session = run.Run.__new__(run.Run)
    session.ended, session.current = (lambda _nodeid: None), ""
    session.opened, session._began, session._width = 1000.0, None, (None, 0)
    session.budget = Budget(100, [PLAIN] * 4)
    session.progress = SimpleNamespace(schedule=SimpleNamespace(finish=lambda _spent: None))  # type: ignore[assignment]
    session.pool = SimpleNamespace(release=lambda _need: now.__setitem__(0, now[0] + 7))  # type: ignore[assignment]
    session.options = SimpleNamespace(settings={})  # type: ignore[assignment]

    def given(began: float) -> float:
        return session._within_budget(Case("veth"), Settings(), began).max_duration_s

    assert given(now[0]) == pytest.approx(25)
    session._began, now[0] = 1000.0, 1020.0  # a case of 20 s, and rigs that take 7 s to close
    session.after(None)
    assert sum(session.budget.allotments()) == pytest.approx(73)
    now[0] += 13  # a test's own set-up
    began, now[0] = now[0], now[0] + 5  # of its own share, rigs took 5 s
    assert given(began) == pytest.approx(session.budget.allotments()[0] - 5)
    assert sum(session.budget.allotments()) == pytest.approx(60)


def test_cases_tell_how_wide_their_like_will_be() -> None:
    kernel, user = replace(PLAIN, group="kernel"), replace(PLAIN, group="user")
    budget = Budget(100, [kernel, user, kernel, user])
    budget.finish(10, 0.2, 7)
    budget.finish(20, 0.02, 7)
    wide, narrow = budget.allotments()
    assert wide > narrow + 30


def test_nobody_gets_less_than_the_least_though_the_time_is_over() -> None:
    budget = Budget(20, [PLAIN] * 3)
    budget.finish(30.0)
    assert budget.allotments() == [10, 10]
    for _ in range(3):
        budget.finish(1.0)
    assert budget.allotments() == []


entries = st.lists(
    st.tuples(
        st.builds(
            Entry,
            least_s=st.floats(0, 100),
            launch_s=st.floats(0.1, 10),
            launches=st.integers(1, 10),
            precision=st.floats(0.001, 0.5),
            adaptive=st.booleans(),
        ),
        st.floats(0, 2),
    ),
    max_size=8,
)


@given(entries, st.floats(-100, 1000))
def test_all_of_the_rest_is_given_and_no_more(found: list[tuple[Entry, float]], rest_s: float) -> None:
    cases = [entry for entry, _ in found]
    extra = share_out(rest_s, cases, [width for _, width in found])
    assert all(more >= 0 for more in extra)
    takers = any(entry.adaptive and entry.least_s > 0 for entry in cases)
    assert sum(extra) == pytest.approx(max(rest_s, 0) if takers else 0, abs=1e-6)
    assert all(more == 0 for entry, more in zip(cases, extra, strict=True) if not entry.adaptive)


def test_a_search_may_take_what_those_after_it_do_not_need_at_least() -> None:
    budget = Budget(100, [FIXED, FIXED, PLAIN])
    assert budget.most_s() == 80
    budget.finish(70.0)
    assert budget.most_s() == 20
    budget.finish(110.0)
    assert budget.most_s() == 10  # its least, though the time is over


def ends(total_s: float, entries: list[Entry], hosts: int) -> list[float]:
    """When each host ends, if whoever is free is given the next case, and takes all that it is allotted."""
    budgets = [Budget(total_s, entries, hosts) for _ in range(hosts)]
    found = [0.0] * hosts
    for place in range(len(entries)):
        host = min(range(hosts), key=found.__getitem__)
        budgets[host].begin(place)
        found[host] += budgets[host].allotments()[0]
        budgets[host].finish(found[host])
    return found


def test_hosts_share_cases_as_one_would_with_all_their_time() -> None:
    assert Budget(100, [PLAIN] * 8, hosts=2).allotments() == pytest.approx([25] * 8)
    assert Budget(100, [PLAIN] * 20, hosts=2).least_s == 100  # which one host would refuse
    assert Budget(100, [PLAIN, replace(PLAIN, least_s=70.0)], hosts=2).least_s == 70
    for hosts, cases in ((2, 20), (3, 100), (10, 100)):
        assert ends(15 * cases / hosts, [PLAIN, FIXED] * (cases // 2), hosts) == pytest.approx(
            [15 * cases / hosts] * hosts, rel=0.1
        )


#: Two hosts that give their time to two adaptive cases early begin the last fixed ones late.
MIXED = [replace(PLAIN, least_s=1.0, adaptive=adaptive) for adaptive in (False, False, True, True, False, False, False)]


@example(2, MIXED, 2.0)
@given(
    st.integers(1, 6),
    st.lists(st.builds(replace, st.just(PLAIN), least_s=st.floats(1, 20), adaptive=st.booleans()), min_size=1),
    st.floats(1, 3),
)
def test_a_host_ends_in_time_but_for_its_last_case(hosts: int, cases: list[Entry], more: float) -> None:
    longest_s = max(entry.least_s for entry in cases)
    total_s = Budget(1, cases, hosts).least_s * more
    assert max(ends(total_s, cases, hosts)) <= total_s + longest_s + 1e-6


def test_a_case_is_finished_that_had_begun() -> None:
    budget = Budget(100, [PLAIN, FIXED, SKIPPED])
    budget.begin(1)
    assert budget.allotments() == pytest.approx([10, 90, 0])  # the current one first
    budget.finish(10.0)
    budget.begin(1)  # over
    assert budget.allotments() == pytest.approx([90, 0])
    assert budget.most_s() == 90


def test_a_search_leaves_the_host_its_part_of_the_others() -> None:
    budget = Budget(100, [FIXED] * 9, hosts=4)
    assert budget.most_s() == 80
    budget.finish(60.0)  # and the other hosts have finished three
    assert budget.most_s() == pytest.approx(40 - 40 / 4)


def test_a_narrow_case_has_time_for_the_launches_that_claim_a_precision() -> None:
    case = Entry(least_s=7.0, launch_s=1.0, launches=7, precision=0.03)
    missing = FEWEST_DECIDING + 1 - case.launches
    assert share_out(2 * missing, [case, case], [0.02, 0.04]) == [missing, missing]
