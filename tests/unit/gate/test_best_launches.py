# SPDX-License-Identifier: BSD-3-Clause
"""Sessions whose medians lie apart and whose best launches do not: these decide, on both sides of a comparison."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.best_launches import BEST
from pytest_icbench.gate.entry import Baseline, Entry, entry_of
from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.over_sessions import SUSPECT, finds
from pytest_icbench.gate.session_values import SessionValues, best_against, best_of
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.baseline_file import read, write
from tests.baselines import launch, measured, with_cycles

#: Shares of the launches of a session that a neighbour slows by two fifths: the medians of these sessions lie apart.
MOODS = (0.1, 0.7, 0.3, 0.8, 0.2, 0.6, 0.7, 0.1)
DAY_S = 86_400.0


def in_a_mood(share: float, factor: float = 1.0, count: int = 15, seed: int = 1) -> list[float]:
    """Launches of about 5 Mpps, a share of which is slower."""
    random = Random(f"{share} {seed}")
    slow = round(share * count)
    values = [5e6 * factor * random.uniform(0.99, 1.01) * (0.6 if place < slow else 1.0) for place in range(count)]
    random.shuffle(values)
    return values


def session(rates: Sequence[float], day: int = 40, control: float = 1e7, **changed: Any) -> Entry:
    """A session of those launches, beside a control that is as it always is."""
    random = Random(day)
    beside = tuple(launch(control * random.uniform(0.99, 1.01), number) for number in range(len(rates)))
    facts: dict[str, Any] = {"per_reference_launch": beside, "started_at": 1.7e9 + day * DAY_S}
    found = entry_of(measured(launches=rates, **(facts | changed)))
    assert found is not None
    return found


def baseline(moods: Sequence[float] = MOODS, **changed: Any) -> Entry:
    kept, *later = [session(in_a_mood(mood), day, **changed) for day, mood in enumerate(moods)]
    for entry in later:
        kept = entry.after(kept)
    return kept


def found(now: Entry, before: Entry | None = None, *, first: bool = False) -> Finding:
    comparer = Comparer(Baseline("main", (before or baseline(),)), cases=1)
    return comparer.compare_entry(now, Margins(), first=first).findings[0]


def test_unchanged_software_passes_in_whatever_mood() -> None:
    for mood in MOODS:
        finding = found(session(in_a_mood(mood, seed=2)))
        assert finding.verdict == "PASS"
        assert finding.note is not None
        assert finding.note.startswith(BEST)


def test_what_is_slower_is_a_suspect_and_then_accused() -> None:
    for mood in (0.1, 0.7):
        slower = session(in_a_mood(mood, 0.9, seed=2))
        first = found(slower, first=True)
        assert (first.verdict, first.suspect, first.note) == ("INCONCLUSIVE", True, f"{BEST}: {SUSPECT}")
        second = found(slower)
        assert (second.verdict, second.note) == ("REGRESSED", BEST)
        assert second.ratio == pytest.approx(0.9, abs=0.02)


def test_values_and_change_are_of_the_best_launches_and_the_medians_stand_beside() -> None:
    finding = found(session(in_a_mood(0.7, seed=2)))
    assert finding.ratio == pytest.approx(1.0, abs=0.02)
    assert (finding.value, finding.baseline_value) == pytest.approx((5.03e6, 5.03e6), rel=0.01)
    assert finding.value_low is not None
    assert 4.8e6 < finding.value_low < 5.03e6
    assert finding.medians is not None
    assert finding.medians.value < 0.85  # the launches of this session are slow, most of them
    assert finding.medians.low is not None
    assert finding.medians.low < 0.6


def test_the_ratio_to_the_baseline_stays_that_of_the_main_value() -> None:
    rates = in_a_mood(0.7, seed=2)
    comparison = Comparer(Baseline("main", (baseline(),))).compare_entry(session(rates), Margins())
    judged = measured(launches=rates)
    (finding,) = comparison.findings
    assert judge(judged, against=comparison).fields()["ratio_to_baseline"] == finding.medians


@pytest.mark.parametrize(
    ("disturbed", "verdict", "why"),
    [(1, "REGRESSED", ""), (2, "INCONCLUSIVE", "more than a tenth"), (4, "INCONCLUSIVE", "more than a quarter")],
)
def test_the_best_launches_of_a_disturbed_session_accuse_nothing(disturbed: int, verdict: str, why: str) -> None:
    rates = in_a_mood(0.3, 0.9, seed=2)
    comparison = Comparer(Baseline("main", (baseline(),))).compare_entry(session(rates), Margins())
    judgement = judge(replace(measured(launches=rates), disturbed_launches=disturbed), against=comparison)
    assert judgement.verdict == verdict
    assert why in judgement.reason


def test_a_verdict_says_by_what_it_was_reached() -> None:
    comparison = Comparer(Baseline("main", (baseline(),))).compare_entry(session(in_a_mood(0.1, 0.9)), Margins())
    judgement = judge(measured(launches=in_a_mood(0.1, 0.9)), against=comparison)
    assert re.match(rf"throughput_pps {BEST} 4\.5\S*M 1\d\S* % lower than 5\.0\S*M of main", judgement.reason)


def test_medians_that_are_worse_too_accuse_beside_a_few_disturbed_launches() -> None:
    rates = in_a_mood(0.1, 0.9, seed=2)
    steady = baseline((0.0, 0.3, 0.1, 0.2, 0.4, 0.1, 0.45, 0.0))
    comparison = Comparer(Baseline("main", (steady,))).compare_entry(session(rates), Margins())
    (finding,) = comparison.findings
    beyond = replace(finding, medians=Estimate(0.9, 0.88, 0.92))
    for medians, verdict in (
        (beyond, "REGRESSED"),
        (replace(finding, medians=Estimate(0.9, 0.7, 1.1)), "INCONCLUSIVE"),
    ):
        changed = replace(comparison, findings=(medians,))
        assert judge(replace(measured(launches=rates), disturbed_launches=2), against=changed).verdict == verdict


def test_few_sessions_and_those_that_know_no_best_are_judged_by_their_medians() -> None:
    few = found(session(in_a_mood(0.2, seed=2)), baseline(MOODS[:4]))
    assert (few.verdict, few.note) == ("INCONCLUSIVE", None)
    kept = baseline()
    plain = {time: replace(values, best={}, control_best=None) for time, values in kept.earlier.items()}
    old = found(session(in_a_mood(0.2, seed=2)), replace(kept, earlier=plain))
    assert not (old.note or "").startswith(BEST)


def test_without_a_control_the_medians_decide() -> None:
    alone = baseline(per_reference_launch=())
    finding = found(session(in_a_mood(0.2, 0.9), per_reference_launch=()), alone)
    assert finding.verdict != "REGRESSED"
    assert not (finding.note or "").startswith(BEST)


def test_sessions_that_agree_by_their_medians_are_judged_by_these() -> None:
    alike = [4e6, *[5e6] * 13, 6e6]

    def peaks(day: int, peak: float) -> Entry:
        return session([*alike[:-3], *[peak] * 3], day)

    kept, *later = [peaks(day, 5e6 * (1.5 + 0.3 * (day % 3))) for day in range(8)]
    for entry in later:
        kept = entry.after(kept)
    finding = found(peaks(40, 7e6), kept)
    assert finding.verdict == "PASS"
    assert finding.note is None


def test_a_host_that_slows_both_accuses_nothing() -> None:
    finding = found(session(in_a_mood(0.2, 0.85), control=0.85e7))
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.note is not None
    assert "host-changed: the control changed by -1" in finding.note


def test_what_slows_most_launches_and_not_the_best_does_not_pass() -> None:
    rates = [*[1.5e6] * 20, *[5e6] * 4]
    finding = found(session(rates), baseline((0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.55)))
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.note is not None
    assert finding.note.startswith(f"{BEST} it is not worse, but by its median: -67.7%")


def test_a_median_that_lost_more_than_may_be_normal_does_not_pass_however_far_sessions_lie_apart() -> None:
    apart = baseline((0.8, 0.1, 0.8, 0.1, 0.7, 0.1, 0.8, 0.1, 0.1))
    finding = found(session(in_a_mood(0.8, seed=2)), apart)
    assert finding.medians is not None
    assert finding.medians.high is not None
    assert finding.medians.high > 1  # it may be chance
    lost = session([*[2.4e6] * 20, *[5e6] * 4])
    assert found(lost, apart).verdict == "INCONCLUSIVE"


def test_a_lower_peak_of_what_became_steadier_is_not_accused() -> None:
    moods = (0.7, 0.8, 0.7, 0.6, 0.7, 0.7, 0.8, 0.7)
    kept = baseline(moods)
    lower = [{"throughput_pps": 2e6 * (1 + 0.2 * (place % 2))} for place in range(len(moods) - 1)]
    earlier = {time: replace(one, values=value) for (time, one), value in zip(kept.earlier.items(), lower, strict=True)}
    kept = replace(kept, earlier=earlier)
    finding = found(session([4.5e6] * 15), kept)
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.note is not None
    assert finding.note.startswith(f"{BEST} it is worse, but by its median better: +")


def test_what_was_accepted_is_right_from_then_on() -> None:
    slower = session(in_a_mood(0.2, 0.8), 20).after(baseline(), accepted=True)
    for factor, verdict in ((0.8, "PASS"), (0.7, "REGRESSED")):
        finding = found(session(in_a_mood(0.3, factor, seed=2)), slower)
        assert (finding.verdict, finding.sessions) == (verdict, 1)
        assert finding.value is not None
        assert finding.baseline_value is not None
        assert finding.ratio == pytest.approx(finding.value / finding.baseline_value)
    without = session(in_a_mood(0.2, 0.8), 20, per_reference_launch=()).after(baseline(), accepted=True)
    finding = found(session(in_a_mood(0.3, 0.8, seed=2)), without)
    assert finding.medians is None  # the best launches know but the level that was given up
    assert finding.verdict != "REGRESSED"


def test_a_rate_that_is_at_least_says_that_the_path_fell_and_by_what() -> None:
    slower = session(in_a_mood(0.2, 0.8, seed=2), lower_bound=True)
    finding = found(slower, baseline(lower_bound=True))
    assert finding.verdict == "REGRESSED"
    assert finding.note == f"the switch was not the limit, and the path carries less all the same; {BEST}"


def test_sessions_that_agree_about_as_well_by_their_medians_are_judged_by_these() -> None:
    kept, *later = [session([5e6 * (1 + 0.01 * (-1) ** day)] * 15, day) for day in range(8)]
    for entry in later:
        kept = entry.after(kept)
    assert found(session([5e6] * 15), kept).medians is None


def test_launches_that_others_disturbed_are_no_witness() -> None:
    rates = in_a_mood(0.0, count=12)
    told = [replace(launch(rate, number), disturbed="others took 1 CPU") for number, rate in enumerate(rates)]
    best = 1.2 * max(rates)

    def entry(undisturbed: int) -> Entry:
        launches: list[Launch] = [launch(rates[number], number) for number in range(undisturbed)]
        odd = [replace(told[-1], throughput_pps=best)]  # however quick it was
        return session(rates, per_launch=(*launches, *told[undisturbed:-1], *odd))

    assert entry(7).values.best == {}
    eight = entry(8).values.best["throughput_pps"]
    assert max(rates[:8]) * 0.98 < eight <= max(rates[:8])


def test_costs_are_best_where_they_are_least_and_count_against_the_controls_rate() -> None:
    cycles = [200.0] * 3 + [340.0] * 12
    entry = entry_of(
        replace(
            with_cycles([5e6] * 15, cycles), per_reference_launch=tuple(launch(1e7, number) for number in range(15))
        )
    )
    assert entry is not None
    assert entry.values.best["cycles_per_packet"] == 200.0
    assert best_against("cycles_per_packet", entry.values) == pytest.approx(200.0 * 1e7)
    assert best_against("throughput_pps", entry.values) == pytest.approx(0.5)
    assert best_against("throughput_pps", SessionValues()) is None


def test_a_verdict_on_cycles_says_both_what_it_rests_on() -> None:
    def costly(day: int, factor: float = 1.0) -> Entry:
        mood = MOODS[day % len(MOODS)]
        cycles = [240 * 5e6 / rate * factor for rate in in_a_mood(mood, seed=day)]
        beside = tuple(launch(1e7, number) for number in range(15))
        plain = with_cycles(in_a_mood(mood, seed=day), cycles, started_at=1.7e9 + day * DAY_S)
        entry = entry_of(replace(plain, per_reference_launch=beside, lower_bound=True))
        assert entry is not None
        return entry

    kept, *later = map(costly, range(8))
    for entry in later:
        kept = entry.after(kept)
    finding = found(costly(40), kept)
    assert (finding.name, finding.verdict) == ("cycles_per_packet", "PASS")
    assert finding.note is not None
    assert finding.note.startswith(f"it decides: the rate is only 'at least'; {BEST}")


def test_a_gate_says_that_it_finds_what_the_best_launches_show() -> None:
    (allowed,) = Margins().of("throughput")
    kept = baseline()
    plain = {time: replace(values, best={}) for time, values in kept.earlier.items()}
    by_best, by_medians = finds(kept, allowed, 1), finds(replace(kept, earlier=plain), allowed, 1)
    assert by_best is not None
    assert by_best < 0.12
    assert by_medians is None or by_medians > 3 * by_best


def test_a_baselines_file_keeps_them_and_one_of_before_reads() -> None:
    kept = baseline()
    text = write([kept])
    (again,) = read(text, "main.json")
    assert again.sessions == kept.sessions
    assert all(values.best and values.control_best for values in again.sessions)
    data = json.loads(text)
    (case,) = data["cases"].values()
    for values in (case["throughput_pps"], case["control"]):
        del values["best"]
    for values in case["earlier"].values():
        del values["best"], values["control_best"]
    (old,) = read(json.dumps(data) + "\n", "main.json")
    assert not any(values.best or values.control_best for values in old.sessions)


@given(st.lists(st.floats(1e-3, 1e9), min_size=8, max_size=40), st.floats(0.01, 100))
def test_the_best_is_among_the_launches_and_scales_with_them(launches: list[float], factor: float) -> None:
    for better in ("higher", "lower"):
        best = best_of(launches, better)
        assert best is not None
        assert min(launches) * 0.999 <= best <= max(launches) * 1.001
        scaled = best_of([value * factor for value in launches], better)
        assert scaled == pytest.approx(best * factor)
    low, high = best_of(launches, "lower"), best_of(launches, "higher")
    assert low is not None
    assert high is not None
    assert low <= high * 1.001


def test_too_few_launches_and_those_without_a_frame_have_no_best() -> None:
    assert best_of([1.0] * 7, "higher") is None
    assert best_of([0.0, *[1.0] * 9], "higher") is None
