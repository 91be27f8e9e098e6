# SPDX-License-Identifier: BSD-3-Clause
"""A measurement against a baseline, and the verdict that comes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from pytest_icbench.errors import Regression
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Baseline, Entry, make_entry
from pytest_icbench.gate.judge import Judgement, Policy, Waiver, enforce, judge
from pytest_icbench.model.case import Case
from pytest_icbench.model.comparability import DEFAULT
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.quantiles import Histogram
from pytest_icbench.store.thresholds import parse
from tests.baselines import HOST, LAUNCHES, entry, launch, measured, scaled, with_cycles, with_sessions

LATENCY = Case("ovs", dimension="latency")


def judged(
    now: Measurement, *before: Entry, toml: str = "", patterns: tuple[str, ...] = DEFAULT, **policy: Any
) -> Judgement:
    thresholds = parse(toml, "t.toml")
    several = tuple(map(with_sessions, before))
    against = Comparer(Baseline("main", several), patterns).compare(now, thresholds.margins(now.case), retest=True)
    return judge(now, thresholds.for_case(now.case), against=against, policy=Policy(**policy))


@pytest.mark.parametrize(
    ("factor", "toml", "verdict"),
    [
        (1.0, "", "PASS"),
        (0.9, "", "REGRESSED"),
        (1.1, "", "IMPROVED"),
        (0.98, "", "PASS"),
        (0.9, '["*"]\nallowance = 0.15', "PASS"),
        (0.9, '["*"]\nallowance = 0.2\n["ovs-*"]\nallowance = 0.05', "REGRESSED"),
        (0.9, '["*"]\nallowance = 0.2', "PASS"),
        (1.1, '["*"]\nallowance = 0.2', "PASS"),
        (0.9, '["*"]\nallowance_rtt_p50_ns = 0.5', "REGRESSED"),
        (0.9, '["*"]\nallowance_throughput_pps = 0.15', "PASS"),
    ],
)
def test_a_fall_of_the_rate_by_more_than_the_allowance_regresses(factor: float, toml: str, verdict: str) -> None:
    assert judged(measured(launches=scaled(factor)), entry(), toml=toml).verdict == verdict


def latency(p50: float, **changed: Any) -> Measurement:
    figures = {"rtt_p50_ns": p50, "rtt_p50_ns_low": p50 * 0.99, "rtt_p50_ns_high": p50 * 1.01}
    facts = {"per_launch": times(p50), "per_reference_launch": times(1e4), "metric": "fixed"}
    return measured(LATENCY, **{**facts, **figures, **changed})


def times(p50: float) -> tuple[Launch, ...]:
    histogram = Histogram(((int(p50), 5000),), int(p50), int(p50), p50, 3)
    return tuple(replace(launch(1e3, index), rtt=histogram) for index in range(8))


def latency_entry(p50: float, **changed: Any) -> Entry:
    found = make_entry(latency(p50, **changed))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("p50", "toml", "verdict"),
    [
        (20e3, "", "PASS"),
        (22e3, "", "REGRESSED"),
        (18e3, "", "IMPROVED"),
        (22e3, '["*"]\nallowance = 0.15', "PASS"),
    ],
)
def test_latency_is_better_when_lower(p50: float, toml: str, verdict: str) -> None:
    assert judged(latency(p50), latency_entry(20e3), toml=toml).verdict == verdict


def test_further_figures_are_compared_where_they_are_named() -> None:
    tail = {"rtt_p99_ns": 40e3, "rtt_p99_ns_low": 39e3, "rtt_p99_ns_high": 41e3}
    worse = {"rtt_p99_ns": 80e3, "rtt_p99_ns_low": 79e3, "rtt_p99_ns_high": 81e3, "per_launch": times(80e3)}
    now, before = latency(20e3, **worse), latency_entry(20e3, **tail)
    named_figures = ("rtt_p50_ns", "rtt_p99_ns")
    named = judged(now, before, toml='["*"]\nallowance_rtt_p99_ns = 0.5\nallowance_rtt_p50_ns = 0.9')
    assert {each.name: each.verdict for each in named.findings} == dict.fromkeys(named_figures, "REGRESSED")


def test_the_message_has_the_change_its_interval_and_what_was_allowed() -> None:
    treatment = {"switch": {"version": "3.2"}, "node": "lxc"}
    found = judged(measured(launches=scaled(0.8), treatment=treatment), entry(), toml='["*"]\nallowance = 0.02')
    with pytest.raises(Regression) as caught:
        enforce(found)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("REGRESSED: ovs-64B-b32-1vs1-Rmax: 4 Mpps is 20 % lower than main (19.")
    assert first.endswith(" %, 6 sessions); allowed: 2 %")
    assert caught.value.verdict == "REGRESSED"
    assert 'limit from t.toml: ["*"] allowance' in rest[0]
    assert "changed since baseline main: treatment.switch.version is 3.2 here and 3.1 there" in rest


def test_a_case_without_an_entry_has_no_baseline() -> None:
    assert judged(measured()).verdict == "NO_BASELINE"
    assert judged(measured(), entry(Case("ovs", Frames(Traffic(128))))).verdict == "NO_BASELINE"
    assert judged(measured(), latency_entry(20e3)).verdict == "NO_BASELINE"
    # A limit that holds is no comparison; one that is missed is a regression all the same.
    assert judged(measured(), toml='["*"]\nmin_throughput_pps = 1').verdict == "NO_BASELINE"
    assert judged(measured(), toml='["*"]\nmin_throughput_pps = 1e9').verdict == "REGRESSED"


@pytest.mark.parametrize(
    ("changed", "reported"),
    [
        ({"identity": {**HOST, "cores": 4}}, "identity.cores is 8 here and 4 there"),
        ({"metric": "mfr"}, "metric is frmol here and mfr there"),
        ({"placement": "cooperative"}, "placement is dedicated here and cooperative there"),
        ({"rules": 2}, "rules is 1 here and 2 there"),
        ({"treatment": {"node": "netns"}}, "treatment.node is lxc here and netns there"),
    ],
)
def test_facts_that_must_match_and_differ_make_it_incomparable(changed: dict[str, Any], reported: str) -> None:
    found = judged(measured(), entry(**changed))
    assert found.verdict == "INCOMPARABLE"
    assert reported in found.reason
    assert found
    assert not judged(measured(), entry(**changed), failing=("INCOMPARABLE",))


def test_the_entry_of_this_host_is_found_among_others() -> None:
    others = [entry(launches=scaled(9), identity={**HOST, "machine": str(number)}) for number in range(3)]
    assert judged(measured(), *others, entry(), entry(launches=scaled(9), placement="cooperative")).verdict == "PASS"
    assert judged(measured(), *others).verdict == "INCOMPARABLE"


def test_of_several_comparable_entries_the_newest_counts() -> None:
    old, new = (entry(launches=scaled(f), identity={**HOST, "machine": str(f)}, started_at=f * 1e9) for f in (1.0, 2.0))
    loose = (*DEFAULT, "!identity.machine")
    assert judged(measured(launches=scaled(2)), new, old, patterns=loose).verdict == "PASS"


def test_a_lower_bound_is_inconclusive() -> None:
    for factor in (0.99, 1.0, 2.0):
        judgement = judged(measured(launches=scaled(factor), lower_bound=True), entry())
        assert judgement.verdict == "INCONCLUSIVE"
        assert (judgement.findings[0].reason, judgement.findings[0].more) == ("bound", None)
    assert judged(measured(), entry(lower_bound=True)).verdict == "INCONCLUSIVE"
    assert judged(measured(launches=scaled(2)), entry(lower_bound=True)).verdict == "INCONCLUSIVE"
    # A round trip has nothing to do with it.
    assert judged(latency(20e3, lower_bound=True), latency_entry(20e3)).verdict == "PASS"


@pytest.mark.parametrize(("now", "before"), [(True, True), (True, False), (False, True)])
def test_a_lower_bound_below_the_baseline_regresses(now: bool, before: bool) -> None:
    judgement = judged(measured(launches=scaled(0.5), lower_bound=now), entry(lower_bound=before))
    assert judgement.verdict == "REGRESSED"
    assert ("the path carries less" in judgement.details[0]) is now


CYCLES = tuple(200 + value for value in (-2, 0, 1, 2, -1, 3, -3, 0))


@pytest.mark.parametrize(
    ("factor", "toml", "verdict"),
    [
        (1.0, "", "PASS"),
        (1.1, "", "REGRESSED"),
        (0.9, "", "IMPROVED"),
        (1.1, '["*"]\nallowance = 0.15', "PASS"),
        (1.1, '["*"]\nallowance_cycles_per_packet = 0.15', "PASS"),
        (1.1, '["*"]\nallowance = 0.5\nallowance_cycles_per_packet = 0.02', "REGRESSED"),
        (1.02, "", "PASS"),
    ],
)
def test_cycles_decide_if_the_rate_is_a_lower_bound(factor: float, toml: str, verdict: str) -> None:
    before = make_entry(with_cycles(LAUNCHES, CYCLES, lower_bound=True))
    assert before is not None
    now = with_cycles(LAUNCHES, [factor * value for value in CYCLES], lower_bound=True)
    judgement = judged(now, before, toml=toml)
    assert judgement.verdict == verdict
    assert [finding.name for finding in judgement.findings] == ["cycles_per_packet"]
    assert "the rate is a bound" in judgement.details[0]
    # The ratio that reports show is the rate's, whatever decided.
    assert judgement.fields()["ratio_to_baseline"].value == pytest.approx(1)


def test_cycles_do_not_decide_if_an_entry_lacks_them_or_the_rate_decides() -> None:
    slower = [1.5 * value for value in CYCLES]
    before = make_entry(with_cycles(LAUNCHES, CYCLES, lower_bound=True))
    assert before is not None
    assert judged(measured(lower_bound=True), before).verdict == "INCONCLUSIVE"
    assert judged(with_cycles(LAUNCHES, slower, lower_bound=True), entry(lower_bound=True)).verdict == "INCONCLUSIVE"
    firm = make_entry(with_cycles(LAUNCHES, CYCLES))
    assert firm is not None
    assert judged(with_cycles(LAUNCHES, slower), firm).verdict == "PASS"
    fell = judged(with_cycles(scaled(0.5), CYCLES, lower_bound=True), before)
    assert (fell.verdict, fell.findings[0].name) == ("REGRESSED", "throughput_pps")


def test_at_a_fixed_rate_cycles_and_the_rate_decide() -> None:
    before = make_entry(with_cycles(LAUNCHES, CYCLES, metric="fixed"))
    assert before is not None
    slower = judged(with_cycles(LAUNCHES, [1.2 * value for value in CYCLES], metric="fixed"), before)
    # Every link carries a given rate, so that no reference link tells the host from the software.
    assert (slower.findings[0].name, slower.findings[0].reason) == ("cycles_per_packet", "host")
    assert judged(with_cycles(scaled(0.5), CYCLES, metric="fixed"), before).findings[0].reason == "host"
    same = judged(with_cycles(LAUNCHES, CYCLES, metric="fixed"), before)
    assert "the rate was given" in same.details[0]
    assert judged(with_cycles(LAUNCHES, CYCLES, metric="fixed"), before).verdict == "PASS"


def test_too_few_launches_say_how_many_are_missing() -> None:
    (finding,) = judged(measured(launches=[5e6]), entry()).findings
    assert (finding.verdict, finding.reason, finding.unit, finding.more) == ("INCONCLUSIVE", "few", "launch", 5)
    assert finding.more_s == pytest.approx(5 * 1.5)
    (finding,) = judged(measured(launches=[5e6] * 2), entry(launches=[5e6, 5.1e6])).findings
    assert (finding.verdict, finding.reason) == ("INCONCLUSIVE", "few")


def test_a_long_run_is_not_compared() -> None:
    assert Comparer(Baseline("main", (entry(),))).compare(measured(loss_events=()), parse("", "t").margins("x")) is None


def test_a_result_keeps_its_comparison() -> None:
    treatment = {"switch": {"version": "3.2"}, "node": "lxc"}
    fields = judged(measured(launches=scaled(0.9), treatment=treatment), entry()).fields()
    assert fields["verdict"] == "REGRESSED"
    assert fields["baseline"] == "main"
    assert fields["ratio_to_baseline"] == pytest.approx(0.9)
    assert fields["ratio_to_baseline"].low < 0.9 < fields["ratio_to_baseline"].high
    assert fields["treatment_changes"] == {"switch.version": ["3.1", "3.2"]}
    kept = measured(**fields)
    assert Measurement.from_json(kept.to_json()) == kept
    assert judged(measured(verdict="INVALID", reason="died"), entry()).fields() == {}


def test_conditions_that_differ_are_warnings() -> None:
    found = judged(measured(conditions={"governors": ["powersave"], "turbo": False}), entry())
    assert found.verdict == "PASS"
    assert "warning: conditions.governors is ['powersave'] here and ['performance'] there" in found.details


TODAY = date(2026, 6, 15)
SLOW = scaled(0.5)


def waived(until: str, case: str = "ovs-*", **policy: Any) -> Judgement:
    waivers = (Waiver(case, "known: tracker", until),)
    return judged(measured(launches=SLOW), entry(), waivers=waivers, today=TODAY, **policy)


def test_a_waiver_keeps_the_verdict_and_lets_it_pass() -> None:
    found = waived("2026-06-15")
    assert (found.verdict, bool(found), found.waiver) == ("REGRESSED", True, "until 2026-06-15: known: tracker")
    assert "waived until 2026-06-15: known: tracker" in found.details
    assert found.fields()["waiver"] == found.waiver
    assert waived("2026-06-15", strict=True)


def test_an_expired_waiver_is_said_and_does_not_hold() -> None:
    found = waived("2026-06-14")
    assert not found
    assert found.waiver is None
    assert "its waiver expired on 2026-06-14: known: tracker" in found.details


def test_waivers_of_other_cases_and_of_passing_ones_are_ignored() -> None:
    assert not waived("2026-12-31", case="vpp-*")
    good = judged(measured(), entry(), waivers=(Waiver("*", "x", "2026-12-31"),), today=TODAY)
    assert (good.verdict, good.waiver) == ("PASS", None)


def test_of_several_waivers_the_one_that_lasts_longest_counts() -> None:
    kept = Waiver("ovs-*", "known: tracker", "2026-06-15"), Waiver("*", "later", "2026-07-01")
    for day, holding in ((date(2026, 6, 1), "later"), (date(2026, 7, 1), "later"), (date(2026, 8, 1), None)):
        found = judged(measured(launches=SLOW), entry(), waivers=kept, today=day)
        assert found.waiver == (None if holding is None else "until 2026-07-01: later")
        assert bool(found) is (holding is not None)


def test_what_is_invalid_is_never_waived() -> None:
    found = judged(
        measured(verdict="INVALID", reason="died"), entry(), waivers=(Waiver("*", "x", "2026-12-31"),), today=TODAY
    )
    assert not found


@pytest.mark.parametrize(
    ("policy", "fails"),
    [
        (Policy(), {"REGRESSED", "INVALID"}),
        (Policy(failing=()), set()),
        (Policy(failing=("INCONCLUSIVE",)), {"INCONCLUSIVE"}),
        (Policy(failing=(), strict=True), {"REGRESSED", "INVALID", "INCONCLUSIVE", "NO_BASELINE", "INCOMPARABLE"}),
    ],
)
def test_what_fails_is_the_users_choice(policy: Policy, fails: set[str]) -> None:
    found = {
        "REGRESSED": judged(measured(launches=SLOW), entry(), failing=policy.failing, strict=policy.strict),
        "INVALID": judge(measured(verdict="INVALID", reason="died"), policy=policy),
        "INCONCLUSIVE": judged(measured(launches=[5e6]), entry(), failing=policy.failing, strict=policy.strict),
        "NO_BASELINE": judged(measured(), failing=policy.failing, strict=policy.strict),
        "INCOMPARABLE": judged(measured(), entry(rules=9), failing=policy.failing, strict=policy.strict),
        "PASS": judged(measured(), entry(), failing=policy.failing, strict=policy.strict),
        "IMPROVED": judged(measured(launches=scaled(2)), entry(), failing=policy.failing, strict=policy.strict),
    }
    assert {name for name, each in found.items() if each.verdict == name} == set(found)
    assert {name for name, each in found.items() if not each} == fails


@pytest.mark.parametrize("launches", [4, 5])
def test_fewer_than_six_launches_give_no_verdict(launches: int) -> None:
    now, before = measured(launches=scaled(0.5)[:launches]), entry(launches=LAUNCHES[:launches])
    assert judged(now, entry()).verdict == "INCONCLUSIVE"
    assert judged(now, before).verdict == "INCONCLUSIVE"
    # A session of the baseline counts by its median, however many launches it has.
    assert judged(measured(launches=scaled(0.5)), before).verdict == "REGRESSED"
