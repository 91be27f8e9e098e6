# SPDX-License-Identifier: BSD-3-Clause
"""Who is named as the limit, by what the indicators say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.host.root import Root
from pytest_icbench.measure.summary.bottleneck import (
    LoadIndicators,
    find_bottleneck,
    role_busy_share,
    with_full_table,
)
from pytest_icbench.measure.summary.summarize import Environment, line_pps
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch, PairCounts
from pytest_icbench.model.uplink import parse
from pytest_icbench.testbed.treatment import uplink_mbps
from tests.measurements import measurement

QUIET = LoadIndicators(steal_share=0, busy_share=None, refusing_share=0, loss_share=0, empty_share=0.5)
SWITCHED = {"maximum": True, "switched": True, "kernel": False, "shared": False}


def limit(
    indicators: LoadIndicators = QUIET, *, facts: dict[str, Any] | None = None, **changes: Any
) -> tuple[str, bool]:
    found = find_bottleneck(replace(indicators, **changes), **{**SWITCHED, **(facts or {})})
    assert found.evidence
    assert "\n" not in found.evidence
    return found.limit, found.lower_bound


@pytest.mark.parametrize(
    ("changes", "facts", "expected"),
    [
        ({"steal_share": 0.2}, {}, ("host", True)),
        ({"steal_share": 0.2, "line_share": 0.99}, {}, ("link", True)),
        ({"loss_share": 0.3, "busy_share": 0.99, "line_share": 1.0}, {"maximum": False}, ("link", True)),
        ({"refusing_share": 0.9, "line_share": 0.98}, {}, ("switch", False)),
        ({"line_share": 1.0}, {"maximum": False}, ("unknown", False)),
        ({"busy_share": 0.99, "refusing_share": 0.9}, {}, ("switch", False)),
        ({"busy_share": 0.99, "loss_share": 0.3}, {"maximum": False}, ("switch", False)),
        ({"busy_share": 0.6}, {}, ("endpoint", True)),
        ({"busy_share": 0.6, "refusing_share": 0.9}, {}, ("ring", True)),
        ({"busy_share": 0.6, "loss_share": 0.1, "empty_share": 0.0}, {}, ("endpoint", True)),
        ({"busy_share": 0.6, "loss_share": 0.1}, {}, ("ring", True)),
        ({"refusing_share": 0.9}, {}, ("switch", False)),
        ({"refusing_share": 0.9, "loss_share": 0.01}, {}, ("switch", False)),
        ({"refusing_share": 0.3, "loss_share": 0.01}, {}, ("ring", False)),
        ({"refusing_share": 0.3}, {}, ("endpoint", True)),
        ({"dropped_share": 0.01}, {"maximum": False}, ("switch", False)),
        ({"refusing_share": 0.9}, {"switched": False}, ("endpoint", False)),
        ({"refusing_share": 0.9}, {"switched": False, "shared": True}, ("ring", False)),
        ({"refusing_share": 0.9, "empty_share": 0.01}, {}, ("endpoint", True)),
        ({"refusing_share": 0.9, "empty_share": 0.01}, {"switched": False}, ("endpoint", False)),
        ({}, {}, ("endpoint", True)),
        ({}, {"switched": False}, ("endpoint", False)),
        ({}, {"kernel": True}, ("endpoint", False)),
        ({"busy_share": 0.6}, {"kernel": True}, ("endpoint", True)),
        ({"loss_share": 0.1}, {"kernel": True}, ("unknown", False)),
        ({"loss_share": 0.1, "empty_share": None}, {}, ("unknown", False)),
        ({}, {"maximum": False}, ("unknown", False)),
        ({"busy_share": 0.2}, {"maximum": False}, ("unknown", True)),
        ({"loss_share": 0.1, "receiver_busy_share": 0.97}, {}, ("endpoint", True)),
        ({"loss_share": 0.1, "receiver_busy_share": 0.97}, {"kernel": True}, ("endpoint", True)),
        ({"loss_share": 0.1, "receiver_busy_share": 0.97}, {"switched": False}, ("endpoint", False)),
        ({"loss_share": 0.1, "receiver_busy_share": 0.9}, {}, ("ring", False)),
        ({"loss_share": 0.1, "receiver_busy_share": 0.97, "busy_share": 0.6}, {}, ("endpoint", True)),
        ({"receiver_busy_share": 1.0}, {"maximum": False}, ("unknown", False)),
    ],
)
def test_limits(changes: dict[str, Any], facts: dict[str, Any], expected: tuple[str, bool]) -> None:
    assert limit(facts=facts, **changes) == expected


shares = st.floats(min_value=0, max_value=1)


@given(
    st.builds(
        LoadIndicators, shares, st.none() | shares, shares, shares, st.none() | shares, *[st.none() | shares] * 2
    ),
    *[st.booleans()] * 4,
)
def test_a_switch_with_time_left_is_never_the_limit(
    indicators: LoadIndicators, maximum: bool, switched: bool, kernel: bool, shared: bool
) -> None:
    facts = {"maximum": maximum, "switched": switched, "kernel": kernel, "shared": shared}
    what, lower_bound = limit(indicators, facts=facts)
    assert what in ("endpoint", "switch", "ring", "host", "link", "unknown")
    if indicators.busy_share is not None and indicators.busy_share < 0.95:
        assert what != "switch"
        assert lower_bound


def pair(**changes: int) -> PairCounts:
    names = "scheduled sent refused not_offered tx_full received lost duplicated reordered late foreign corrupted"
    counts: dict[str, Any] = {**dict.fromkeys(f"{names} polls empty_polls".split(), 0), **changes}
    return PairCounts(pair=1, throughput_pps=0.0, offered_pps=0.0, **counts)


def test_independent_checks_are_totals_over_launches() -> None:
    def launch(**changes: Any) -> Launch:
        plain = {"index": 0, "started_at": 0.0, "duration_s": 1.0, "overhead_s": 0.0, "throughput_pps": 0.0}
        return Launch(**{**plain, "offered_pps": 0.0, "steal_share": 0.0, "generator_bound": False, **changes})

    launches = [
        launch(pairs=(pair(scheduled=900, sent=900, tx_full=5, full_turns=2, lost=90),), busy_share=0.5),
        launch(
            pairs=(pair(scheduled=1020, sent=900, refused=96, polls=40, empty_polls=10),),
            steal_share=0.1,
            duration_s=4.0,
        ),
    ]
    assert LoadIndicators.of(launches) == LoadIndicators(
        steal_share=0.08,
        busy_share=0.5,
        refusing_share=2 / 15,
        loss_share=0.05,
        empty_share=0.25,
        most_steal_share=0.1,
        dropped_share=0.05,
    )
    assert LoadIndicators.of([]) == LoadIndicators(0.0, None, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("burst", "calls", "turns", "expected"),
    [
        # A forwarder whose frames cost 1,000 cycles, and one whose frames cost nothing, as measured on two CPUs.
        (1, 0.200, 0.893, "switch"),
        (32, 0.897, 0.986, "switch"),
        (256, 0.806, 0.990, "switch"),
        (1, 0.109, 0.074, "endpoint"),
        (32, 0.213, 0.033, "endpoint"),
        (256, 0.928, 0.315, "endpoint"),
    ],
)
def test_a_path_has_the_same_limit_in_small_and_large_bursts(
    burst: int, calls: float, turns: float, expected: str
) -> None:
    """By refused calls no threshold tells the two apart: 20 % are many in bursts of 1, and 93 % few in those of 256."""
    frames = 128 * 10_000
    refused = round(frames / burst * calls / (1 - calls))
    counts = pair(scheduled=frames, sent=frames, received=frames, polls=100, empty_polls=60, tx_full=refused)
    launches = [
        Launch(0, 0.0, 1.0, 0.0, 1e6, 1e6, 0.0, False, (replace(counts, full_turns=round(share * 10_000)),))
        for share in (turns, turns)
    ]
    found = find_bottleneck(LoadIndicators.of(launches), **SWITCHED)
    assert (found.limit, found.lower_bound) == (expected, expected == "endpoint")


def test_older_results_have_refused_calls_alone() -> None:
    counts = pair(scheduled=1280, sent=1280, tx_full=3)
    assert LoadIndicators.of([Launch(0, 0.0, 1.0, 0.0, 1e6, 1e6, 0.0, False, (counts,))]).refusing_share == 0.3
    many = replace(counts, tx_full=5000)
    assert LoadIndicators.of([Launch(0, 0.0, 1.0, 0.0, 1e6, 1e6, 0.0, False, (many,))]).refusing_share == 1.0


@pytest.mark.parametrize(("mbps", "what"), [(10_000, "link"), (25_000, "endpoint"), (None, "endpoint")])
def test_a_saturated_cable_between_two_hosts_is_the_link(mbps: int | None, what: str) -> None:
    """14.88 Mpps of 64 bytes are all that 10 Gbit/s carry, preambles and gaps counted."""
    around = Environment("dedicated", (), treatment={"uplink_mbps": mbps})
    counts = pair(scheduled=150, sent=150, received=149, lost=1, polls=100, empty_polls=0)
    launches = [Launch(0, 0.0, 1.0, 0.0, 14.8e6, 15e6, 0.0, False, (counts,))] * 6
    for remote, expected in ((True, what), (False, "endpoint")):
        indicators = LoadIndicators.of(launches, line_pps(Case("ovs", remote=remote), around))
        found = find_bottleneck(indicators, **SWITCHED)
        assert found.limit == expected
        assert found.lower_bound


@pytest.mark.parametrize(
    ("files", "nic", "speed"),
    [
        ({"class/net/eth1/device/vendor": "0x8086", "class/net/eth1/speed": "25000"}, "eth1", 25_000),
        ({"class/net/eth1/device/vendor": "0x1af4", "class/net/eth1/speed": "-1"}, "eth1", None),
        ({"class/net/eth1/speed": "10000"}, "eth1", None),  # a veth's word
        ({"bus/pci/devices/0000:04:00.0/net/ens4/speed": "40000"}, "0000:04:00.0", 40_000),
        ({"bus/pci/devices/0000:04:00.0/vendor": "0x8086"}, "0000:04:00.0", None),  # no driver of the kernel has it
        ({}, "eth1", None),
    ],
)
def test_the_speed_of_an_uplink(tmp_path: Path, files: dict[str, str], nic: str, speed: int | None) -> None:
    for name, text in files.items():
        path = tmp_path / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert uplink_mbps(Root(tmp_path), parse(nic, "x")) == speed
    assert uplink_mbps(Root(tmp_path), None) is None


def test_one_launch_of_forty_with_stolen_time_decides_nothing() -> None:
    def launch(steal_share: float) -> Launch:
        counts = pair(scheduled=100, sent=100, received=100, polls=100, empty_polls=50)
        return Launch(0, 0.0, 1.0, 0.0, 0.0, 0.0, steal_share, False, (counts,))

    found = find_bottleneck(LoadIndicators.of([launch(0.06)] + [launch(0.0)] * 39), **SWITCHED)
    assert (found.limit, found.lower_bound) == ("endpoint", True)
    found = find_bottleneck(LoadIndicators.of([launch(0.2)] + [launch(0.052)] * 39), **SWITCHED)
    assert (found.limit, found.lower_bound) == ("host", True)
    assert found.evidence == "5.6% of the endpoints' time was stolen, 20.0% in one launch"


def test_the_senders_cycles_stand_in_the_evidence() -> None:
    found = find_bottleneck(replace(QUIET, sender_busy_share=0.991), **SWITCHED)
    assert found.evidence == "the sender was never refused and spent 99.1% of its cycles on frames"
    found = find_bottleneck(replace(QUIET, sender_busy_share=0.991), **{**SWITCHED, "kernel": True})
    assert found.evidence.startswith("the sender was never refused and spent 99.1% of its cycles on frames; the kernel")


def test_busy_shares_of_endpoints_are_known_only_if_every_launch_counted() -> None:
    def launch(busy: int | None, idle: int | None) -> Launch:
        counts = replace(pair(), sender_busy_cycles=busy, sender_idle_cycles=idle)
        return Launch(0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, False, (counts, counts))

    assert role_busy_share([launch(30, 10), launch(10, 30)], "sender") == 0.5
    assert role_busy_share([launch(30, 10), launch(None, None)], "sender") is None
    assert role_busy_share([launch(30, 10)], "receiver") is None
    assert role_busy_share([launch(0, 0)], "sender") is None
    assert role_busy_share([], "sender") is None


@pytest.mark.parametrize(("full", "limit"), [(55_120, "unknown"), (40, "ring"), (0, "ring")])
def test_a_full_table_is_the_limit_where_it_took_most_lost_frames(full: int, limit: str) -> None:
    found = measurement(Case("ovs", function="firewall"), bottleneck="ring", lower_bound=True, lost=56_000)
    seen = with_full_table(replace(found, functions=(FunctionWork(1, table_full=full),)))
    assert (seen.bottleneck, seen.lower_bound) == (limit, limit == "ring")
    assert ("55,120 frames found no room" in seen.bottleneck_evidence) is (limit == "unknown")
    assert with_full_table(found) == found
