# SPDX-License-Identifier: BSD-3-Clause
"""A change is held against how far sessions lie apart, and against the control beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.entry import Baseline, Entry, entry_of
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.over_sessions import finds
from pytest_icbench.gate.session_values import middle
from pytest_icbench.model.case import Case
from pytest_icbench.model.finding import Finding
from pytest_icbench.stats.quantiles import Histogram
from pytest_icbench.store.baseline_file import read, write
from tests.baselines import ALIKE, LAUNCHES, entry, launch, measured, scaled, with_cycles, with_sessions

#: Sessions that lie far apart; with the newest one their geometric mean is 1.
APART = (1.1, 1 / 1.1, 1.05, 1 / 1.05, 1.0)


def beside(factor: float = 1.0, control: float = 1.0, **changed: Any) -> Entry:
    """An entry with a reference link beside it."""
    facts: dict[str, Any] = {
        "per_launch": tuple(launch(pps, index) for index, pps in enumerate(scaled(factor))),
        "per_reference_launch": tuple(launch(2 * pps, index) for index, pps in enumerate(scaled(control))),
    }
    kept = entry_of(measured(launches=scaled(factor), **(facts | changed)))
    assert kept is not None
    return kept


def found(now: Entry, before: Entry, cases: int = 1, *, first: bool = False) -> Finding:
    comparer = Comparer(Baseline("main", (before,)), cases=cases)
    return comparer.compare_entry(now, Margins(), first=first).findings[0]


def test_the_values_shown_are_those_of_sessions_though_the_mean_of_rounds_lies_elsewhere() -> None:
    now, before = beside(0.9), with_sessions(beside())
    figures = {name: replace(figure, value=figure.value / 50) for name, figure in now.figures.items()}
    finding, level = found(replace(now, figures=figures), before), middle(before.figures["throughput_pps"])
    assert (finding.value, finding.baseline_value) == pytest.approx((0.9 * level, level), rel=0.02)


def test_what_fell_by_itself_and_against_the_control_is_a_regression() -> None:
    finding = found(beside(0.9), with_sessions(beside()))
    assert finding.verdict == "REGRESSED"
    assert finding.against_control == pytest.approx(0.9)
    assert finding.control_change == pytest.approx(1.0)
    assert finding.sessions == 6
    assert "over 6 sessions" in finding.sentence()
    assert "against the control 0.9" in finding.sentence()


@pytest.mark.parametrize(
    ("factor", "control", "told"),
    [
        (0.8, 0.8, "host-changed: the control changed by -20.0%, this by -20.0%, +0.0% against it"),
        (0.8, 0.7, "host-changed: the control changed by -30.0%, this by -20.0%, +14.3% against it"),
        (1.0, 1.2, "host-changed: the control changed by +20.0%, this by +0.0%, -16.7% against it"),
        (1.3, 1.5, "host-changed: the control changed by +50.0%, this by +30.0%, -13.3% against it"),
    ],
)
def test_what_moved_the_control_is_the_host(factor: float, control: float, told: str) -> None:
    finding = found(beside(factor, control), with_sessions(beside()))
    assert (finding.verdict, finding.note) == ("INCONCLUSIVE", told)


def test_a_faster_host_hides_no_regression_and_makes_no_improvement() -> None:
    assert found(beside(1.2, 1.2), with_sessions(beside())).verdict == "PASS"
    assert found(beside(1.2, 1.0), with_sessions(beside())).verdict == "IMPROVED"


def linked(factor: float, link: float | None, **changed: Any) -> Entry:
    """An entry with a reference link beside it, of a run that began with a link of another kind (in Mpps)."""
    fitness = {"other_link": None if link is None else {"case": "veth-64B", "pps": 1e6 * link}}
    return beside(factor, conditions={"fitness": fitness}, **changed)


LINKS = (1.01, 0.99, 1.02, 0.98, 1.0)


def with_links(newest: Entry, apart: Sequence[float] = LINKS) -> Entry:
    before = with_sessions(newest)
    kept = zip(before.earlier.items(), apart, strict=True)
    return replace(before, earlier={at: replace(values, other_link_pps=1e6 * pps) for (at, values), pps in kept})


def test_a_link_that_shares_no_code_with_the_path_explains_what_the_control_does_not() -> None:
    before = with_links(linked(1.0, 1.0))
    finding = found(linked(0.8, 0.8), before)
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.note == (
        "host-changed: a frame of a link that shares no code with the path takes +25.0% longer, which explains the"
        " change"
    )


@pytest.mark.parametrize(
    ("link", "apart"),
    [
        (1.0, LINKS),  # it is as it was
        (0.95, LINKS),  # it is slower, but by less than the path
        (1.2, LINKS),  # it is faster
        (0.8, (1.3, 0.7, 1.2, 0.8, 1.0)),  # it is as slow as it often is
        (None, LINKS),  # it was not measured
    ],
)
def test_a_link_that_explains_nothing_acquits_nothing(link: float | None, apart: Sequence[float]) -> None:
    assert found(linked(0.8, link), with_links(linked(1.0, 1.0), apart)).verdict == "REGRESSED"


def test_a_single_session_with_such_a_link_is_a_reason_to_doubt_and_none_is_not() -> None:
    assert found(linked(0.8, 0.8), with_sessions(linked(1.0, 1.0))).verdict == "INCONCLUSIVE"
    assert found(linked(0.8, 0.8), with_sessions(beside())).verdict == "REGRESSED"


def test_a_file_keeps_the_link() -> None:
    before = with_links(linked(1.0, 1.0))
    (again,) = read(write([before]), "file")
    assert again == before
    assert [values.other_link_pps for values in again.sessions] == [*(1e6 * pps for pps in LINKS), 1e6]


@pytest.mark.parametrize(("factor", "control"), [(1.0, 1.0), (0.9, 1.0), (0.5, 1.0), (0.5, 0.5), (2.0, 1.0)])
def test_one_session_accuses_nobody_and_the_control_can_acquit(factor: float, control: float) -> None:
    finding = found(beside(factor, control), beside())
    if factor == control == 1:
        assert (finding.verdict, finding.note) == ("PASS", "the control decides: the baseline has one session")
    elif factor == 2:
        assert finding.verdict == "PASS"
    else:
        assert finding.verdict == "INCONCLUSIVE"
        assert "about 4 sessions more in the baseline would tell (--icbench-save)" in finding.outlook()
    alone = found(entry(launches=scaled(factor)), entry())
    assert (alone.verdict, alone.more_sessions) == ("INCONCLUSIVE", 4)


def test_a_change_is_that_of_the_two_values_shown() -> None:
    skewed = [5e6, 5e6, 5e6, 5e6, 5e6, 2e6, 2.1e6, 2.2e6, 2.3e6]
    finding = found(entry(launches=skewed), entry(launches=[4e6, 4.2e6, 4.4e6, 4.5e6, 4.6e6, 4.7e6, 5.2e6]))
    assert finding.value is not None
    assert finding.baseline_value is not None
    assert finding.ratio is not None
    assert finding.ratio == pytest.approx(finding.value / finding.baseline_value)
    assert finding.ratio_low is not None
    assert finding.ratio_high is not None
    assert finding.ratio_low <= finding.ratio <= finding.ratio_high


def test_sessions_that_lie_apart_tell_less_and_say_what_is_normal() -> None:
    before = with_sessions(entry(), APART)
    finding = found(entry(launches=scaled(0.9)), before)
    assert finding.verdict == "PASS"
    assert finding.note is not None
    assert finding.note.startswith("within what is normal here over 6 sessions, -2")
    assert finding.finds is not None
    assert 0.2 < finding.finds < 0.5
    assert found(entry(launches=scaled(0.77)), before).verdict == "INCONCLUSIVE"
    assert found(entry(launches=scaled(0.5)), before).verdict == "REGRESSED"
    # Four sessions do not tell what is normal.
    few = with_sessions(entry(), APART[:3])
    assert found(entry(launches=scaled(0.99)), few).verdict == "INCONCLUSIVE"


def test_noise_of_the_host_is_taken_out_by_the_control() -> None:
    before = with_sessions(beside(), APART)
    finding = found(beside(0.95), before)
    assert finding.against_control is not None
    assert finding.against_control.high is not None
    assert finding.against_control.high < 0.97
    acquitted = found(beside(0.99, 0.99), before)
    assert acquitted.verdict == "PASS"
    assert acquitted.note == "the control decides: against it, the change is within the margin"


def test_odd_launches_of_the_control_hide_nothing_that_the_path_shows() -> None:
    odd = {1: 0.9, 4: 0.65}  # as of a link that draws another band now and then
    control = tuple(launch(2 * pps * odd.get(index, 1.0), index) for index, pps in enumerate(scaled(1.0)))
    before = with_sessions(beside())
    assert found(beside(per_reference_launch=control), before).verdict == "PASS"
    finding = found(beside(0.9, per_reference_launch=control), before)
    assert finding.verdict == "REGRESSED"
    assert finding.finds is not None
    assert finding.finds < 0.1  # what it says it finds, it finds


def test_a_control_that_is_disturbed_by_itself_counts_as_it_is_undisturbed() -> None:
    def session(day: int, odd: dict[int, float], factor: float = 1.0) -> Entry:
        control = tuple(launch(2 * pps * odd.get(index, 1.0), index) for index, pps in enumerate(scaled(1.0)))
        return replace(beside(factor, per_reference_launch=control), measured=f"2026-01-{day:02}T12:00:00Z")

    half = {0: 0.8, 1: 0.7, 4: 0.85, 6: 0.8, 7: 0.75}
    before = session(1, {})
    for day, odd in enumerate(({1: 0.9}, half, {}, half, {}), start=2):
        before = session(day, odd).after(before)
    apart = [values.against["throughput_pps"] for values in before.sessions]
    assert max(apart) > 1.1 * min(apart)
    assert found(session(7, {}, 0.9), before).verdict == "REGRESSED"
    assert found(session(7, half, 0.9), before).verdict == "REGRESSED"
    assert found(session(7, half), before).verdict == "PASS"
    # Of fewer sessions nobody knows by which way they agree better.
    few = replace(before, earlier=dict(list(before.earlier.items())[2:]))
    assert found(session(7, {}, 0.9), few).verdict == "INCONCLUSIVE"


def test_a_control_whose_sessions_lie_apart_says_how_many_more_would_tell() -> None:
    before = with_sessions(beside())
    widths = [1.15, 0.87, 1.1, 0.92, 1.03]
    earlier = {
        time: replace(values, against={name: value * factor for name, value in values.against.items()})
        for (time, values), factor in zip(before.earlier.items(), widths, strict=True)
    }
    finding = found(beside(0.75), replace(before, earlier=earlier))
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.note == "against the control, it may lie within the margin"
    assert finding.more_sessions is not None
    assert finding.finds is not None
    assert finding.finds > 0.2


#: Twelve sessions whose figures agree to 1 % while their control moves by 6 %.
STEADY = tuple(1 + 0.01 * (-1) ** number for number in range(12))
MOODS = (1.06, 1.06, 0.94, 0.94) * 3


def of_session(now: Entry, before: Entry, *others: tuple[str, float]) -> Finding:
    """The second look at a case of a session, whose cases of other switches changed by these factors."""
    kept = [before, *(replace(before, case=f"{switch}-64B", switch=switch) for switch, _ in others)]
    comparer = Comparer(Baseline("main", tuple(kept)), cases=len(kept))
    for switch, factor in others:
        entry = replace(beside(factor), case=f"{switch}-64B", switch=switch)
        comparer.compare_entry(entry, Margins(), first=True)
    return comparer.compare_entry(now, Margins()).findings[0]


def test_a_figure_that_is_steadier_than_its_control_stands_alone_on_a_host_that_did_not_change() -> None:
    many = with_sessions(beside(), STEADY, MOODS)
    slower = beside(0.9)
    assert of_session(slower, many, ("testpmd", 1.0), ("vpp", 1.0)).verdict == "REGRESSED"
    assert found(slower, many, first=True).suspect  # the other cases come when all have had their first look
    finds = of_session(slower, many, ("testpmd", 1.0)).finds
    assert finds is not None
    assert finds < 0.1


@pytest.mark.parametrize(
    ("control", "others"),
    [
        (1.0, ()),  # there is no other case to show that the host is as it was
        (1.0, (("ovs", 1.0),)),  # nor one of another switch
        (1.0, (("testpmd", 0.9), ("vpp", 0.9))),  # all fell
        (0.92, (("testpmd", 1.0),)),  # the control's value explains the change
        (0.8, (("testpmd", 1.0),)),  # the control changed
    ],
)
def test_it_does_not_where_the_host_may_have_changed(control: float, others: tuple[tuple[str, float], ...]) -> None:
    many = with_sessions(beside(), STEADY, MOODS)
    assert of_session(beside(0.9, control), many, *others).verdict == "INCONCLUSIVE"


def test_few_sessions_do_not_tell_that_a_figure_is_steadier() -> None:
    few = with_sessions(beside(), STEADY[:8], MOODS[:8])
    finding = of_session(beside(0.9), few, ("testpmd", 1.0))
    assert (finding.verdict, finding.note) == ("INCONCLUSIVE", "against the control, it may lie within the margin")


def test_on_a_host_that_changed_only_what_shows_against_the_control_is_sure() -> None:
    before = with_sessions(beside(), APART, tuple(1 / factor for factor in APART))
    assert of_session(beside(0.35, 0.9), before, ("testpmd", 1.0)).verdict == "REGRESSED"
    steady = with_sessions(beside(), ALIKE, APART)
    slower = beside(0.7)
    assert of_session(slower, steady, ("testpmd", 1.0)).verdict == "REGRESSED"
    finding = of_session(slower, steady, ("testpmd", 0.7))
    assert finding.verdict == "INCONCLUSIVE"
    assert "not surely enough" in (finding.note or "")


def test_what_is_beyond_the_margin_need_only_be_surely_worse_than_before() -> None:
    before = with_sessions(beside(), [factor**3 for factor in ALIKE], [1.0] * len(ALIKE))
    finding = found(beside(0.95), before, cases=10)
    assert finding.ratio_high is not None
    assert finding.ratio_high < 0.97
    assert finding.verdict == "REGRESSED"
    assert found(beside(0.95), before, cases=100).verdict == "INCONCLUSIVE"


def test_more_cases_share_the_error_of_a_session() -> None:
    before = with_sessions(entry(), [factor**4 for factor in ALIKE])
    now = entry(launches=[0.95 * 5e6] * 8)
    assert found(now, before).verdict == "REGRESSED"
    finding = found(now, before, cases=200)
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.more_sessions is not None
    assert "not surely enough for 1 % of false alarms a session" in finding.outlook()
    assert found(entry(launches=scaled(0.5)), before, cases=200).verdict == "REGRESSED"


def test_a_first_look_makes_a_suspect_and_accuses_nobody() -> None:
    finding = found(beside(0.5), with_sessions(beside()), first=True)
    assert (finding.verdict, finding.suspect) == ("INCONCLUSIVE", True)
    assert "nothing is accused before a second look" in (finding.note or "")
    assert found(beside(), with_sessions(beside()), first=True).verdict == "PASS"


@pytest.mark.parametrize(
    ("now", "before", "suspect"),
    [
        (beside(0.8, 0.8), with_sessions(beside()), True),  # the control fell, too
        (linked(0.8, 0.8), with_links(linked(1.0, 1.0)), True),  # the other link did
        (beside(1.0, 1.2), with_sessions(beside()), False),
    ],
)
def test_what_the_host_may_explain_is_a_suspect_too_and_is_not_accused_while_it_does(
    now: Entry, before: Entry, suspect: bool
) -> None:
    first, second = found(now, before, first=True), found(now, before)
    assert (first.verdict, second.verdict) == ("INCONCLUSIVE", "INCONCLUSIVE")
    assert (first.suspect, second.suspect) == (suspect, False)
    assert first.note == second.note
    assert "host-changed" in (first.note or "")


def test_cycles_against_the_control_are_a_product() -> None:
    cycles = (200.0,) * len(LAUNCHES)
    control = tuple(launch(2 * pps, index) for index, pps in enumerate(LAUNCHES))
    slow = tuple(launch(1.6 * pps, index) for index, pps in enumerate(LAUNCHES))
    before = entry_of(with_cycles(LAUNCHES, cycles, lower_bound=True, per_reference_launch=control))
    now = entry_of(with_cycles(scaled(0.99), [250.0] * len(LAUNCHES), lower_bound=True, per_reference_launch=slow))
    assert before is not None
    assert now is not None
    finding = found(now, with_sessions(before))
    assert finding.name == "cycles_per_packet"
    assert (finding.note or "").startswith("host-changed: the control changed by -20.0%, this by +25.0%")


def test_round_trips_have_the_reference_links_beside_them() -> None:
    def times(p50: float) -> Sequence[Any]:
        histogram = Histogram(((int(p50), 5000),), int(p50), int(p50), p50, 3)
        return tuple(replace(launch(1e3, index), rtt=histogram) for index in range(8))

    def latency(p50: float, floor: float) -> Entry:
        kept = entry_of(
            measured(
                Case("ovs", dimension="latency"),
                rtt_p50_ns=p50,
                rtt_p50_ns_low=p50,
                rtt_p50_ns_high=p50,
                metric="fixed",
                per_launch=times(p50),
                per_reference_launch=times(floor),
            )
        )
        assert kept is not None
        return kept

    before = with_sessions(latency(20_000, 10_000))
    assert found(latency(30_000, 10_000), before).verdict == "REGRESSED"
    assert (found(latency(30_000, 15_000), before).note or "").startswith("host-changed")


def test_what_a_file_keeps_and_what_one_of_before_has() -> None:
    before = with_sessions(beside(), APART)
    (again,) = read(write([before]), "x")
    assert again == before
    assert found(beside(0.7), again) == found(beside(0.7), before)
    lines = write([before]).splitlines()
    assert sum('"2023-11-0' in line for line in lines) == len(APART)  # a line a session
    assert finds(again, Margins().of("throughput")[0], 10) == finds(before, Margins().of("throughput")[0], 10)


def test_a_control_that_one_side_lacks_leaves_the_figure_alone() -> None:
    assert found(beside(0.8), with_sessions(entry())).verdict == "REGRESSED"
    assert found(entry(launches=scaled(0.8)), with_sessions(beside())).verdict == "REGRESSED"
