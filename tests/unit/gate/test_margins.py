# SPDX-License-Identifier: BSD-3-Clause
"""Keys about the baseline in thresholds.toml: which table wins, what is compared, what is refused."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.margins import COMPARED, KEYS, MAIN
from pytest_icbench.model.measurement import ESTIMATES
from pytest_icbench.stats.verdict_rule import DEFAULT_ALLOWANCE
from pytest_icbench.store.thresholds import parse

TOML = """
["ovs-64B-b32-1vs1-Rmax"]
allowance = 0.1

["*"]
allowance = 0.02

["ovs-*"]
allowance_rtt_p99_ns = 0.1

["veth-64B-b32-1vs1-Rmax"]
allowance = 0.3
"""


def test_the_last_table_wins_for_each_key_whether_pattern_or_case() -> None:
    found = parse(TOML, "t.toml")
    (main,) = found.margins("ovs-64B-b32-1vs1-Rmax").of("throughput")
    assert (main.name, main.kind, main.allowance.share) == ("throughput_pps", "drop", 0.02)
    assert main.source == 't.toml: ["*"] allowance'
    (main,) = found.margins("veth-64B-b32-1vs1-Rmax").of("throughput")
    assert main.allowance.share == 0.3


def test_a_named_figure_has_its_own_allowance() -> None:
    found = {each.name: each for each in parse(TOML, "t.toml").margins("ovs-1500B-b32-1vs1-R1k").of("latency")}
    assert {name: each.allowance.share for name, each in found.items()} == {"rtt_p50_ns": 0.02, "rtt_p99_ns": 0.1}
    assert found["rtt_p99_ns"].kind == "rise"


def test_cycles_may_rise_by_as_much_as_a_rate_may_fall() -> None:
    cycles = parse('["*"]\nallowance = 0.2', "t").margins("x").for_cycles()
    assert cycles.allowance.share == pytest.approx(0.25)
    named = parse('["*"]\nallowance_cycles_per_packet = 0.1', "t").margins("x").for_cycles()
    assert named.allowance.share == 0.1


def test_without_a_file_the_default_allowance_holds() -> None:
    (main,) = parse("", "t.toml").margins("x").of("throughput")
    assert main.allowance.share == DEFAULT_ALLOWANCE
    assert main.source == "the default allowance"


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("allowance = -0.1", "allowance: -0.1 is negative; give a share such as 0.05"),
        ("allowance = 5", "allowance: 5 is no share below 1; give 0.05 for 5 %"),
        ("allowance_throughput_pps = 1.0", "1.0 is no share below 1"),
        ("allowance = true", "True is no finite number"),
        ("allowance = inf", "inf is no finite number"),
        ('allowance = "5%"', "'5%' is no finite number"),
        ("allowence = 0.1", "there is no such limit; did you mean allowance?"),
        ("min_allowance = 0.1", "there is no such limit"),
    ],
)
def test_mistakes_are_named(line: str, reported: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(f'["*"]\n{line}\n', "t.toml")
    assert str(caught.value).startswith('t.toml: ["*"] ')
    assert reported in str(caught.value)


def test_a_rise_can_be_more_than_double() -> None:
    _, tail = parse('["*"]\nallowance_rtt_p99_ns = 3', "t.toml").margins("x").of("latency")
    assert tail.allowance.limit == pytest.approx(4.0)


def test_what_is_compared_is_an_estimate_of_a_result() -> None:
    for name, (dimension, _) in COMPARED.items():
        assert name in ESTIMATES
        assert dimension in MAIN
    assert all(key.startswith("allowance") for key in KEYS)
