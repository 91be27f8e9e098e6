# SPDX-License-Identifier: BSD-3-Clause
"""What does a new session cost a stateful function, and what happens when its table is full?

A frame of `new` flows is a session of its own. The same frames in 16,000 flows are of known ones from the second frame
of each on. Every launch of new flows begins with an empty table.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(
    switch=["linux-bridge", "ovs"],
    functions="firewall+table2M",
    flows=["16k", "new"],
    api=["raw-mmsg", "dpdk"],
    protocol="quick",
)
def test_new_sessions_in_short(icbench: Icbench) -> None:
    """The rate of frames of known sessions, and that of new ones."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch=["linux-bridge", "ovs"],
    functions="firewall+table10k",
    flows="new",
    api=["raw-mmsg", "dpdk"],
    rate="50k",
    protocol="quick",
    duration=0.5,
)
def test_full_table_in_short(icbench: Icbench) -> None:
    """What passes once a table of 10,000 sessions is full."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "ovs"],
    functions=["firewall+table2M", "nat+table2M"],
    flows=["16k", "new"],
    api=["raw-mmsg", "dpdk"],
    rate="max",
)
def test_new_and_known_sessions(icbench: Icbench) -> None:
    """The rate of frames of known sessions, and that of new ones: room for a second of 2M new ones."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["linux-bridge", "ovs"],
    functions=["firewall+table10k", "firewall+table100k"],
    flows="new",
    api=["raw-mmsg", "dpdk"],
    rate="50k",
)
def test_full_table(icbench: Icbench) -> None:
    """What passes once the table is full, and how many frames its function says to have dropped for that."""
    icbench.gate(icbench.throughput())
