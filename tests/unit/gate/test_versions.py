# SPDX-License-Identifier: BSD-3-Clause
"""What a comparison of two versions means for the gate: one sentence, and what would tell where nothing is decided."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_icbench.gate.baseline_comparison import compare_with_base
from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.case import Case
from pytest_icbench.model.finding import Finding
from tests.plugin.test_versions import gives

CASE = Case("ovs", candidate="new")


def found(decision: str, ratio: float, **facts: Any) -> tuple[Finding, str]:
    now, base = gives(decision, ratio, **facts)(CASE)
    against = compare_with_base(now, base, Margins())
    assert against is not None
    return against.findings[0], judge(now, against=against).reason


@pytest.mark.parametrize(
    ("decision", "ratio", "facts", "sentence"),
    [
        ("REGRESSED", 0.9, {}, "4.5 Mpps is 10 % lower than base (9 to 11 %, 9 pairs); allowed: 3 %"),
        ("IMPROVED", 1.1, {}, "5.5 Mpps is 10 % higher than base (9 to 11 %, 9 pairs)"),
        (
            *("PASS", 0.99, {}),
            ": 1 % lower than base (0 to 2 %, 9 pairs); a loss of 4 % or more would have been found",
        ),
        (
            *("INCONCLUSIVE", 0.96, {}),
            ": 4 % lower (3 to 5 %): pairs lie too far apart; about 27 more pairs",
        ),
        (
            *("INCONCLUSIVE", 0.96, {"reason": "few", "ratio_low": None, "ratio_high": None, "pairs": 4}),
            ": 4 % lower: too few pairs; about 27 more pairs",
        ),
        (
            *(
                "INCONCLUSIVE",
                0.6,
                {"reason": "state", "ratio_low": None, "ratio_high": None, "pairs": 0, "dropped": 7},
            ),
            ": 40 % lower: no pair met the host's CPUs in one state",
        ),
        (
            *("INCONCLUSIVE", 0.96, {"reason": "state", "dropped": 10, "pairs": 4}),
            ": 10 of 14 pairs met the host's CPUs in two states; about 27 more pairs",
        ),
        (
            *("INCONCLUSIVE", 0.96, {"reason": "bound", "more_pairs": None}),
            ": the switch was not the limit: endpoints with more cores, or a search, would tell",
        ),
    ],
)
def test_the_sentence_says_the_change_and_what_it_is_worth(
    decision: str, ratio: float, facts: dict[str, Any], sentence: str
) -> None:
    finding, reason = found(decision, ratio, **facts)
    assert finding.verdict == decision
    assert sentence in reason
    assert len(finding.sentence().split()) <= 25


def test_more_pairs_take_the_time_of_those_before() -> None:
    finding, _ = found("INCONCLUSIVE", 0.96)
    now, _ = gives("INCONCLUSIVE", 0.96)(CASE)
    assert (finding.more, finding.unit, finding.units) == (27, "pair", 9)
    assert finding.more_s == pytest.approx(3 * now.duration_s)


def test_the_reason_why_a_figure_decides_is_reported() -> None:
    finding, reason = found("REGRESSED", 1.1, figure="cycles_per_packet", note="cycles decide", base_value=200.0)
    assert (finding.kind, finding.name) == ("rise", "cycles_per_packet")
    assert "; cycles decide; allowed: 3 %" in reason
