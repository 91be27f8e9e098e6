# SPDX-License-Identifier: BSD-3-Clause
"""A session is judged by one prediction interval over earlier ones, of the value and relative to the reference link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pytest_icbench.gate.baseline_comparison import Comparer, compute_power_before
from pytest_icbench.gate.entry import Baseline, Entry, SessionValues, make_entry
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.finding import Finding
from pytest_icbench.stats.verdict_rule import ENOUGH_SESSIONS, FEWEST_SESSIONS, SESSION_ERROR
from pytest_icbench.store.baselines import format_baseline, parse_baseline
from tests.baselines import ALIKE, LAUNCHES, control, entry, launch, measured, scaled, with_cycles, with_sessions

#: Sessions with a large spread; with the newest one their geometric mean is 1.
SPREAD_OUT = (1.1, 1 / 1.1, 1.05, 1 / 1.05, 1.0)


def linked(factor: float = 1.0, link: float = 1.0, **changed: Any) -> Entry:
    """An entry with a reference link, both changed by factors."""
    return entry(launches=scaled(factor), per_reference_launch=control(factor=link), **changed)


def unlinked(factor: float = 1.0) -> Entry:
    """An entry without a reference link."""
    return entry(launches=scaled(factor), per_reference_launch=())


def found(now: Entry, before: Entry, cases: int = 1, *, retest: bool = True) -> Finding:
    comparer = Comparer(Baseline("main", (before,)), cases=cases)
    return comparer.compare_entry(now, Margins(), retest=retest).findings[0]


def decision(finding: Finding) -> tuple[str, str | None]:
    return finding.verdict, finding.reason


def test_a_fall_in_the_value_and_its_ratio_regresses() -> None:
    finding = found(linked(0.9), with_sessions(linked()))
    assert decision(finding) == ("REGRESSED", None)
    assert finding.ratio == pytest.approx(0.9)
    assert finding.relative_to_control == pytest.approx(0.9)
    assert (finding.unit, finding.units) == ("session", 6)
    assert finding.value is not None
    assert finding.baseline_value == pytest.approx(finding.value / 0.9)


def test_a_first_loss_is_retested_and_inconclusive() -> None:
    finding = found(linked(0.9), with_sessions(linked()), retest=False)
    assert (decision(finding), finding.retest) == (("INCONCLUSIVE", "few"), True)
    assert found(linked(), with_sessions(linked()), retest=False).retest is False
    assert found(linked(0.8, 0.8), with_sessions(linked()), retest=False).retest is False


@pytest.mark.parametrize(("factor", "link"), [(0.8, 0.8), (0.8, 0.7), (1.0, 1.2), (1.3, 1.5)])
def test_a_change_of_the_reference_link_is_inconclusive(factor: float, link: float) -> None:
    assert decision(found(linked(factor, link), with_sessions(linked()))) == ("INCONCLUSIVE", "host")


def test_without_a_reference_link_a_loss_is_inconclusive() -> None:
    assert decision(found(unlinked(0.8), with_sessions(unlinked()))) == ("INCONCLUSIVE", "host")
    assert decision(found(unlinked(0.8), with_sessions(linked()))) == ("INCONCLUSIVE", "host")
    assert decision(found(linked(0.8), with_sessions(unlinked()))) == ("INCONCLUSIVE", "host")
    assert decision(found(unlinked(), with_sessions(unlinked()))) == ("PASS", None)
    assert decision(found(unlinked(1.2), with_sessions(unlinked()))) == ("PASS", None)


def test_a_faster_host_makes_no_improvement() -> None:
    assert found(linked(1.2, 1.2), with_sessions(linked())).verdict == "PASS"
    assert found(linked(1.2), with_sessions(linked())).verdict == "IMPROVED"
    assert found(linked(1.02), with_sessions(linked())).verdict == "PASS"


def test_a_significant_loss_below_the_allowance_passes() -> None:
    finding = found(linked(0.98), with_sessions(linked()))
    assert finding.verdict == "PASS"
    assert finding.finds is not None
    assert 0.03 < finding.finds < 0.04
    assert "a loss of 3." in finding.sentence()


@pytest.mark.parametrize("sessions", [1, 2])
def test_few_sessions_decide_nothing(sessions: int) -> None:
    before = with_sessions(linked(), ALIKE[: sessions - 1])
    finding = found(linked(0.5), before)
    assert (decision(finding), finding.weak) == (("INCONCLUSIVE", "few"), True)
    assert (finding.units, finding.more) == (sessions, ENOUGH_SESSIONS - sessions)
    assert finding.ratio == pytest.approx(0.5)
    assert finding.ratio_low is not None
    assert found(linked(0.5), with_sessions(linked(), ALIKE[:2])).verdict == "REGRESSED"
    assert FEWEST_SESSIONS == 3


def test_a_large_spread_is_inconclusive_and_names_the_sessions_needed() -> None:
    finding = found(linked(), with_sessions(linked(), [factor**0.4 for factor in SPREAD_OUT]))
    assert (decision(finding), finding.weak) == (("INCONCLUSIVE", "spread"), True)
    assert finding.more is not None
    assert "more sessions would tell (--icbench-save)" in finding.outlook()
    hopeless = found(linked(), with_sessions(linked(), [factor**3 for factor in SPREAD_OUT]))
    assert (decision(hopeless), hopeless.more) == (("INCONCLUSIVE", "spread"), None)
    assert found(linked(0.3), with_sessions(linked(), SPREAD_OUT)).verdict == "REGRESSED"


def near(before: Entry, distances: Sequence[float | None]) -> Entry:
    earlier = zip(before.earlier.items(), distances, strict=True)
    return replace(before, earlier={at: replace(values, distance_ns=ns) for (at, values), ns in earlier})


def test_only_sessions_of_the_same_state_of_the_host_count() -> None:
    before = near(with_sessions(linked(distance_ns=60.0)), [60.0, 60.0, 400.0, 400.0, 400.0])
    assert found(linked(0.9, distance_ns=60.0), before).units == 3
    assert decision(found(linked(0.9, distance_ns=60.0), before)) == ("REGRESSED", None)
    elsewhere = near(with_sessions(linked(distance_ns=60.0)), [60.0, 60.0, 60.0, 400.0, 400.0])
    assert decision(found(linked(0.5, distance_ns=400.0), elsewhere)) == ("INCONCLUSIVE", "state")
    assert found(linked(distance_ns=400.0), elsewhere).more is None


def test_after_an_accepted_change_only_later_sessions_give_the_mean() -> None:
    before = replace(linked(0.8), measured="2026-01-31T12:00:00Z").after(with_sessions(linked()), accepted=True)
    assert found(linked(0.8), before).verdict == "PASS"
    assert found(linked(1.0), before).verdict == "IMPROVED"
    assert found(linked(0.8), before).units == 1  # how far sessions lie apart, earlier ones tell, too


def test_more_cases_share_the_error_of_a_session() -> None:
    before = with_sessions(linked(), [factor**4 for factor in ALIKE], [1.0] * len(ALIKE))
    assert found(linked(0.96), before).verdict == "REGRESSED"
    many = found(linked(0.96), before, cases=3000)
    assert many.verdict == "PASS"
    assert (many.finds or 0.0) > (found(linked(), before).finds or 1.0)


def test_cycles_relative_to_the_reference_link_are_a_product() -> None:
    cycles = (200.0,) * len(LAUNCHES)
    before = make_entry(with_cycles(LAUNCHES, cycles, lower_bound=True))
    slow = [250.0] * len(LAUNCHES)
    host = make_entry(with_cycles(LAUNCHES, slow, lower_bound=True, per_reference_launch=control(factor=0.8)))
    switch = make_entry(with_cycles(LAUNCHES, slow, lower_bound=True))
    assert before is not None
    assert host is not None
    assert switch is not None
    assert decision(found(host, with_sessions(before))) == ("INCONCLUSIVE", "host")
    finding = found(switch, with_sessions(before))
    assert (finding.name, finding.verdict) == ("cycles_per_packet", "REGRESSED")


def test_false_alarms_of_unchanged_sessions_are_rare() -> None:
    """Of the value and the link beside it, by one look alone; a retest makes them rarer."""
    random, alarms, sessions = Random(35), 0, 600

    def drawn() -> SessionValues:
        host, own, of_link = (random.gauss(0, deviation) for deviation in (0.03, 0.02, 0.02))
        value, link = 5e6 * math.exp(host + own), 1e7 * math.exp(host + of_link)
        return SessionValues({"throughput_pps": value}, link, {"throughput_pps": value / link})

    plain = linked()
    for _ in range(sessions):
        earlier = {f"2026-01-{day:02}": drawn() for day in range(1, 7)}
        now = drawn().values["throughput_pps"] / 5e6
        link = random.gauss(1, 0.02) * now
        before = replace(plain, earlier=earlier)
        alarms += found(linked(now, link), before, cases=5).verdict == "REGRESSED"
    assert alarms / sessions <= SESSION_ERROR


# -- what would be found


def test_the_power_of_a_session_follows_from_the_baseline_alone() -> None:
    (allowed,) = Margins().of("throughput")
    before = with_sessions(linked(), [factor**4 for factor in ALIKE])
    power = compute_power_before(before, allowed, 5)
    assert not power.weak
    assert power.finds == found(linked(), before, cases=5).finds
    assert found(linked(1 - (power.finds or 0.0) - 0.001), before, cases=5).verdict == "REGRESSED"
    assert compute_power_before(linked(), allowed, 1).weak
    assert compute_power_before(with_sessions(linked(), SPREAD_OUT), allowed, 1).weak


def test_a_file_keeps_what_decides() -> None:
    before = near(with_sessions(linked(), SPREAD_OUT), [60.0, None, 60.0, 400.0, 60.0])
    (again,) = parse_baseline(format_baseline([before]), "x")
    assert again == before
    assert found(linked(0.7), again) == found(linked(0.7), before)


def test_every_sentence_is_short() -> None:
    apart, few = with_sessions(linked(), SPREAD_OUT), linked()
    cases = [
        found(linked(0.9), with_sessions(linked())),
        found(linked(0.9), with_sessions(linked()), retest=False),
        found(linked(), with_sessions(linked())),
        found(linked(1.2), with_sessions(linked())),
        found(linked(0.8, 0.8), with_sessions(linked())),
        found(unlinked(0.8), with_sessions(unlinked())),
        found(linked(), apart),
        found(linked(), few),
        found(entry(launches=[launch(5e6).throughput_pps]), with_sessions(linked())),
        found(linked(lower_bound=True), with_sessions(linked())),
        found(linked(distance_ns=400.0), near(with_sessions(linked(distance_ns=60.0)), [60.0] * 5)),
    ]
    assert {finding.reason for finding in cases} == {None, "few", "spread", "state", "host", "bound"}
    for finding in cases:
        sentence = f"{finding.verdict}: {measured().case}: {finding.sentence()}"
        words = [word for word in sentence.split() if any(char.isalnum() for char in word)]
        assert len(words) <= 25, sentence
