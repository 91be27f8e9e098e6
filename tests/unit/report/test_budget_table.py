# SPDX-License-Identifier: BSD-3-Clause
"""Latency budgets: which functional split fits on which path, by its round trips; and as limits by name."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.budget_table import budget_table
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.thresholds import BUDGETS, SPLITS, parse
from tests.measurements import result


def trips(switch: str, p99: Estimate, **more: Estimate | None) -> Result:
    case = Case(switch, Frames(rate=Rate(1000)), dimension="latency")
    others = {"rtt_p99_9_ns": None, "rtt_p99_99_ns": None, **more}
    return result(case, rtt_p99_ns=p99, throughput_gbps=Estimate(0.5), **others)


def row(results: list[Result], name: str, width: int = 200) -> list[str]:
    return next(line for line in budget_table(results, width) if line.startswith(name)).split("  ")


def test_a_path_fits_where_half_of_its_round_trip_is_within_the_budget() -> None:
    found = [each.strip() for each in row([trips("ovs", Estimate(240e3, 230e3, 250e3))], "ovs") if each.strip()]
    # 120 µs one way: not within 100 µs of splits 4 and 5, but within 250 µs, 1.5 ms and 10 ms.
    assert found[1:] == ["0.500", "p99 120", "no, 120 %", "48.0 %", "8.00 %", "1.20 %"]


def test_what_its_interval_does_not_decide_is_marked() -> None:
    assert "100.0 % ?" not in " ".join(row([trips("ovs", Estimate(200e3, 150e3, 199e3))], "ovs"))
    assert "?" in " ".join(row([trips("ovs", Estimate(200e3, 190e3, 210e3))], "ovs"))
    assert " ".join(row([trips("ovs", Estimate(20e3))], "ovs")).count("?") == 4


def test_the_highest_percentile_that_is_known_decides() -> None:
    known = trips("vpp", Estimate(10e3, 9e3, 11e3), rtt_p99_9_ns=Estimate(400e3, 390e3, 410e3))
    assert "p99.9 200" in " ".join(row([known], "vpp"))


def test_rates_have_no_budget_and_a_narrow_terminal_has_all() -> None:
    assert budget_table([result()], 100) == []
    results = [trips("ovs", Estimate(240e3, 230e3, 250e3)), trips("vpp", Estimate(24e3, 23e3, 25e3))]
    for width in (40, 80, 200):
        lines = budget_table(results, width)
        assert max(map(len, lines)) <= width
        assert "48.0 %" in " ".join(lines)
    assert all(f"{budget.name[6:]} {budget.gbps[0]:g}" in " ".join(budget_table(results, 200)) for budget in SPLITS)


def test_a_limit_can_be_a_budget_by_name() -> None:
    limits = parse('["*"]\nmax_rtt_p99_ns = "split-7a"', "t.toml").for_case("ovs-64B-b32-1vs1-R1k")
    assert [(limit.name, limit.kind, limit.value) for limit in limits] == [("rtt_p99_ns", "max", 500e3)]
    assert BUDGETS["split-2"].round_trip_ns == 3e6


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('max_rtt_p99_ns = "split-9"', "there is no latency budget 'split-9'"),
        ('min_rtt_p99_ns = "split-8"', "is no finite number"),
        ('max_rtt_samples = "split-8"', "is no finite number"),
    ],
)
def test_only_a_greatest_round_trip_has_a_budget(key: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(f'["*"]\n{key}', "t.toml")
