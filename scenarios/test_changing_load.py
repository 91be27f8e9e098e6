# SPDX-License-Identifier: BSD-3-Clause
"""How fast does a path follow a load that changes?

Each pair has another rate each second. A path with room to spare follows within a window; one that is overloaded, or
still has the frames of a greater load in its queues, follows late or not at all.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(
    switch="linux-bridge",
    functions="acl10",
    packet_size=256,
    pairs=2,
    burst=1,
    rate="trace:shift:20k",
    repeats=1,
    reference=False,
)
def test_in_short(icbench: Icbench) -> None:
    """A load that moves from pair to pair through two firewalls."""
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="linux-bridge",
    functions=["none", "acl10"],
    packet_size=256,
    pairs=2,
    burst=1,
    rate=["trace:steps:20k", "trace:shift:20k"],
    repeats=1,
)
def test_changing_load(icbench: Icbench) -> None:
    """A load that rises and falls, and one that moves from pair to pair, in three minutes.

    Reproduces: E6
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="all",
    functions="acl10",
    packet_size=256,
    pairs=30,
    rate=["trace:random:6:100k", "trace:shift:100k", "trace:steps:100k"],
    repeats=6,
)
def test_changing_load_as_published(icbench: Icbench) -> None:
    """Thirty firewalls at loads that change every second; published on six cores.

    Reproduces: E6
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="veth",
    functions="wire",
    function_count=[4, 12],
    api="raw-mmsg",
    packet_size=256,
    burst=1,
    rate="trace:freeze:2k",
    repeats=1,
)
def test_functions_come_and_go(icbench: Icbench) -> None:
    """Half of the functions are frozen and thawed in turn: how soon does a thawed one take its frames?

    Reproduces: E6
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="all",
    functions="wire",
    function_count=30,
    packet_size=256,
    rate="trace:freeze:100k",
    repeats=6,
)
def test_functions_come_and_go_as_published(icbench: Icbench) -> None:
    """Of thirty functions 15, 20, 25, 30, 25, 20 and 15 run for three seconds each; published by threes every 5 s.

    Reproduces: E6
    """
    icbench.gate(icbench.throughput())
