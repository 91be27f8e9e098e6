# SPDX-License-Identifier: BSD-3-Clause
"""A search is held against how far the searches of other sessions lie apart: its bounds are no interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Baseline, Entry, make_entry
from pytest_icbench.gate.judge import Judgement, Policy, judge
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.trials import SearchLog
from pytest_icbench.store.baselines import format_baseline, parse_baseline
from tests.baselines import measured


def judged(now: Measurement, before: Entry) -> Judgement:
    against = Comparer(Baseline("main", (before,))).compare(now, Margins(), retest=True)
    return judge(now, [], against=against, policy=Policy())


# Five searches of one forwarder, in kpps, with bounds 0.5 % apart: by these alone four of twenty pairs regressed.
SEARCHES = (544e3, 542e3, 520e3, 549e3, 544e3)


def searched(pps: float, **changed: Any) -> Measurement:
    bounds = {"throughput_pps": pps, "throughput_pps_low": pps, "throughput_pps_high": pps * 1.005}
    case = Case("ovs", Frames(rate=Rate(loss_ratio=0.0)))
    return measured(case, per_launch=(), **{"metric": "ndr", **bounds, **changed})


@pytest.mark.parametrize("now", SEARCHES)
@pytest.mark.parametrize("before", SEARCHES)
def test_the_bounds_of_a_search_decide_nothing_about_another_one(now: float, before: float) -> None:
    old = make_entry(searched(before))
    assert old is not None
    judgement = judged(searched(now), old)
    assert judgement.verdict == "INCONCLUSIVE"
    assert judgement.findings[0].reason == "few"


def searches(*pps: float, **changed: Any) -> Entry:
    """A baseline with a session for each search; the reference link sustained 2 Mpps beside each."""
    kept = [make_entry(searched(rate, **{"search": calibrated(), **changed})) for rate in pps]
    first, *rest = [replace(one, measured=f"2026-01-0{day}T00:00:00Z") for day, one in enumerate(kept, 1) if one]
    for one in rest:
        first = one.after(first)
    return first


def calibrated(greatest_pps: float | None = 2e6, on: str | None = "reference") -> SearchLog:
    return SearchLog("csit", 0.0, 0.5, 0.005, 0.2, 1.0, 21.0, 1e3, greatest_pps, on, True, None)


@pytest.mark.parametrize("place", [0, 1, 3, 4])
def test_a_search_is_judged_by_the_spread_of_earlier_searches(place: int) -> None:
    """The one left out lies far from four that agree by chance: a possible regression, which a retest clears."""
    now, others = SEARCHES[place], searches(*SEARCHES[:place], *SEARCHES[place + 1 :])
    judgement = judged(searched(now, search=calibrated()), others)
    assert judgement.verdict in ("PASS", "INCONCLUSIVE")
    assert judgement.findings[0].ratio_high is not None
    slow = judged(searched(now / 2, search=calibrated()), others)
    assert slow.verdict == "REGRESSED"


def test_a_loss_that_the_reference_link_shares_is_inconclusive() -> None:
    judgement = judged(searched(270e3, search=calibrated(1e6)), searches(*SEARCHES))
    assert judgement.verdict == "INCONCLUSIVE"
    assert judgement.findings[0].reason == "host"


def test_a_search_within_the_spread_passes() -> None:
    alike = searches(5.00e6, 5.01e6, 4.99e6, 5.00e6, 5.01e6, 4.99e6)
    assert judged(searched(5e6, search=calibrated()), alike).verdict == "PASS"
    assert judged(searched(4.2e6, search=calibrated()), alike).verdict == "REGRESSED"


def test_a_search_that_was_calibrated_on_the_case_has_no_control() -> None:
    for search in (calibrated(on="case"), calibrated(greatest_pps=None)):
        kept = make_entry(searched(5e6, search=search))
        assert kept is not None
        assert kept.control is None
    kept = make_entry(searched(5e6, search=calibrated()))
    assert kept is not None
    assert kept.values.against == {"throughput_pps": pytest.approx(2.5)}


def test_a_file_keeps_searches() -> None:
    kept = searches(*SEARCHES)
    (again,) = parse_baseline(format_baseline([kept]), "file")
    assert again == kept
    assert len(again.sessions) == 5
