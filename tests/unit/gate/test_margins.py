# SPDX-License-Identifier: BSD-3-Clause
"""Keys about the baseline in thresholds.toml: which table wins, what is compared, what is refused."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.margins import COMPARED, KEYS, MAIN
from pytest_icbench.gate.thresholds import parse
from pytest_icbench.model.measurement import ESTIMATES
from pytest_icbench.stats.noninferiority import DEFAULT_ALLOWANCE

TOML = """
["ovs-64B-b32-1vs1-Rmax"]
max_drop = 0.1

["*"]
max_drop = 0.05
max_rise = 0.2
allowance = 0.02

["ovs-*"]
max_rise_rtt_p99_ns = 0.5
allowance_rtt_p99_ns = 0.1

["veth-64B-b32-1vs1-Rmax"]
max_drop = 0.3
"""


def test_the_last_table_wins_for_each_key_whether_pattern_or_case() -> None:
    found = parse(TOML, "t.toml")
    (main,) = found.margins("ovs-64B-b32-1vs1-Rmax").of("throughput")
    assert (main.name, main.kind, main.margin.tolerated, main.margin.allowance) == (
        "throughput_pps",
        "drop",
        0.05,
        0.02,
    )
    assert main.source == 't.toml: ["*"] max_drop and ["*"] allowance'
    (main,) = found.margins("veth-64B-b32-1vs1-Rmax").of("throughput")
    assert main.margin.tolerated == 0.3


def test_a_figure_that_is_named_has_its_own_or_the_general_tolerance() -> None:
    found = {each.name: each for each in parse(TOML, "t.toml").margins("ovs-1500B-b32-1vs1-R1k").of("latency")}
    assert set(found) == {"rtt_p50_ns", "rtt_p99_ns"}
    assert (found["rtt_p50_ns"].margin.tolerated, found["rtt_p50_ns"].margin.allowance) == (0.2, 0.02)
    assert (found["rtt_p99_ns"].margin.tolerated, found["rtt_p99_ns"].margin.allowance) == (0.5, 0.1)
    assert found["rtt_p99_ns"].margin.limit == pytest.approx(1.6)
    (only,) = parse('["*"]\nallowance_rtt_p99_ns = 0.1\nmax_rise = 0.3', "t").margins("x").of("latency")[1:]
    assert (only.name, only.margin.tolerated) == ("rtt_p99_ns", 0.3)


def test_without_a_file_the_allowance_alone_holds() -> None:
    (main,) = parse("", "t.toml").margins("x").of("throughput")
    assert (main.margin.tolerated, main.margin.allowance) == (0.0, DEFAULT_ALLOWANCE)
    assert main.source == "the default allowance"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("max_drop = -0.1", "max_drop: -0.1 is negative; give a share such as 0.05"),
        ("max_drop = 5", "max_drop: 5 is no share below 1; give 0.05 for 5 %"),
        ("allowance = 1.0", "allowance: 1.0 is no share below 1"),
        ("max_drop = true", "True is no finite number"),
        ("max_rise = inf", "inf is no finite number"),
        ('max_drop = "5%"', "'5%' is no finite number"),
        ("max_drp = 0.1", "there is no such limit; did you mean max_drop?"),
        (
            "max_drop_rtt_p99_ns = 0.1",
            "there is no such limit: rtt_p99_ns is better when lower; give max_rise_rtt_p99_ns",
        ),
        ("max_rise_throughput_pps = 0.1", "throughput_pps is better when higher; give max_drop_throughput_pps"),
        ("min_allowance = 0.1", "there is no such limit"),
    ],
)
def test_mistakes(line: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(f'["*"]\n{line}\n', "t.toml")
    assert str(caught.value).startswith('t.toml: ["*"] ')
    assert told in str(caught.value)


def test_a_rise_can_be_more_than_double() -> None:
    (main,) = parse('["*"]\nmax_rise = 3', "t.toml").margins("x").of("latency")
    assert main.margin.limit == pytest.approx(4.03)


def test_what_is_compared_is_an_estimate_of_a_result() -> None:
    for name, (dimension, _) in COMPARED.items():
        assert name in ESTIMATES
        assert dimension in MAIN
    assert all(key.startswith(("max_drop", "max_rise", "allowance")) for key in KEYS)
