# SPDX-License-Identifier: BSD-3-Clause
"""What Open vSwitch's tools print, as it is read."""

from __future__ import annotations

import json

import pytest

from pytest_icbench.driver.switch.ovs.daemons import (
    find_disabled_queue,
    parse_cycles,
    parse_drops,
    parse_flows,
    parse_table,
)
from pytest_icbench.driver.switch.protocol import Busy
from tests.unit.driver.switch.ovs_host import CYCLES, FLOWS, PORTS


def test_flows_and_drops_are_read_by_port() -> None:
    assert parse_flows(FLOWS) == {1: 3190915, 2: 1}
    assert parse_drops(PORTS) == {1: 0, 2: 1195}
    assert (parse_flows(""), parse_drops("")) == ({}, {})


def test_cycles_are_those_of_pmd_threads() -> None:
    assert parse_cycles(CYCLES) == Busy(102, 19661965527, frames={"0": 7, "1": 9})
    assert parse_cycles("") == Busy(0, 0, frames={})


def test_a_table_has_sets_maps_and_uuids() -> None:
    data = [["set", ["a", ["uuid", "u"]]], ["map", [["k", "v"]]], ["uuid", "x"], 3, ["set", []]]
    text = json.dumps({"headings": list("abcde"), "data": [data]})
    assert parse_table(text) == [{"a": ["a", "u"], "b": {"k": "v"}, "c": "x", "d": 3, "e": []}]


@pytest.mark.parametrize(("state", "disabled"), [("enabled) ", False), ("disabled)", True)])
def test_a_queue_that_its_endpoint_has_not_enabled(state: str, disabled: bool) -> None:
    """As OVS 3.1 shows it; a second queue that nobody uses never is."""
    text = (
        "Displaying last 60 seconds pmd usage %\npmd thread numa_id 0 core_id 1:\n  isolated : true\n"
        "  port: p0                queue-id:  0 (enabled)   pmd usage: NOT AVAIL\n"
        f"  port: p1                queue-id:  0 ({state}  pmd usage: NOT AVAIL\n"
        "  port: p1                queue-id:  1 (disabled)  pmd usage: NOT AVAIL\n  overhead: NOT AVAIL\n"
    )
    assert find_disabled_queue(text) is disabled
    assert find_disabled_queue(text, 2)  # one is disabled, and another port has none
    more = text.replace(
        "  port: p1 ", "  port: p0                queue-id:  1 (enabled)   pmd usage: 0 %\n  port: p1 ", 1
    )
    assert find_disabled_queue(more, 2)
    assert find_disabled_queue(more.replace("queue-id:  1 (disabled)", "queue-id:  1 (enabled)"), 2) is disabled
