# SPDX-License-Identifier: BSD-3-Clause
"""What a comparison of two versions means for the gate: an undecided one says how much longer it would take."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.margins import Margins
from pytest_icbench.gate.versions import against_base
from pytest_icbench.model.case import Case
from pytest_icbench.model.comparison import AT_LEAST
from pytest_icbench.model.finding import Finding
from tests.plugin.test_versions import gives

CASE = Case("ovs", candidate="new")
UNSURE = "the first look said REGRESSED, fresh launches do not say it surely enough"


def undecided(ratio: float, **found: Any) -> tuple[Finding, str]:
    now, base = gives("INCONCLUSIVE", ratio, **found)(CASE)
    against = against_base(now, base, Margins())
    assert against is not None
    return against.findings[0], judge(now, against=against).reason


def test_pairs_that_are_missing() -> None:
    finding, reason = undecided(0.96, ratio_low=0.94, ratio_high=0.98)
    assert finding.more_launches == 27  # the interval has to be half as wide: four times nine pairs
    assert "but the interval reaches beyond the limit, about 27 launches" in reason


def test_the_base_beside_it_has_no_date() -> None:
    finding, _ = undecided(0.96, ratio_low=0.94, ratio_high=0.98)
    told = "throughput_pps: 4.8M, baseline ovs-64B-b32-1vs1-Rmax beside it 5M, ratio 0.96 (interval 0.94 to 0.98), "
    assert finding.sentence().startswith(f"{told}limit at most 3 % lower from the default allowance")


def test_a_suspicion_that_was_not_confirmed() -> None:
    found = {"confirmed": False, "screen": "REGRESSED", "note": UNSURE, "ratio_low": 0.94, "ratio_high": 0.98}
    finding, reason = undecided(0.96, **found)
    # To accuse takes 99 %, as one of two comparisons: (2.576 / 1.96)² as many.
    assert finding.more_launches == 54
    assert f"{UNSURE}; about 54 launches" in reason
    # To acquit takes no more than ever.
    assert undecided(0.98, **{**found, "ratio_low": 0.96, "ratio_high": 1.0})[0].more_launches == 27


@pytest.mark.parametrize(
    ("found", "more", "told"),
    [
        ({"ratio_low": None, "ratio_high": None, "pairs": 4}, 2, "too few rigs for an interval; about 2 launches"),
        ({"ratio": 0.97, "ratio_low": 0.96, "ratio_high": 0.98}, None, "1,000 launches more would not settle it"),
        ({"note": "the switch had idle share"}, None, ": the switch had idle share"),
        ({"note": AT_LEAST, "confirmed": False, "ratio_low": 0.94, "ratio_high": 0.98}, None, f": {AT_LEAST}"),
    ],
)
def test_what_else_stands_in_the_way(found: dict[str, Any], more: int | None, told: str) -> None:
    finding, reason = undecided(**{"ratio": 0.96, **found})
    assert finding.more_launches == more
    assert told in reason
