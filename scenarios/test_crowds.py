# SPDX-License-Identifier: BSD-3-Clause
"""Who gets the CPU that different network functions share, and how long does a ping wait beside busy ones?

All functions of a case are on one CPU that nothing else of the case has, and yield when a poll brought nothing. So a
single core shows the scheduler's part. Round trips are through the first function, which is idle between them; its
floor is the same function alone on that CPU, in turn with it. The senders of the busy ones share the other CPU with the
ping, so they offer little, and the functions are dear.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(
    switch="veth",
    functions=["wire:cost10000", "wire+noyield:cost10000+noyield"],
    api="raw-mmsg",
    packet_size=128,
    rate="200k",
    repeats=6,
    duration=1,
    reference=False,
)
def test_different_costs(icbench: Icbench) -> None:
    """A cheap function and a dear one on one core that cannot do both: cheap ones got 10 to 20 % in the literature.

    Reproduces: E8
    """
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(
    switch="veth",
    functions="wire:cost100:cost1000:cost10000",
    api="raw-mmsg",
    packet_size=128,
    rate="50k",
    repeats=6,
    duration=1,
    reference=False,
)
def test_four_costs(icbench: Icbench) -> None:
    """Functions of four costs, for which a core just suffices.

    Reproduces: E8
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="direct",
    functions=[f"wire:{others}xcost{cycles}" for others in (4, 9, 29) for cycles in (100, 1_000, 10_000)],
    packet_size=128,
)
def test_costs_as_published(icbench: Icbench) -> None:
    """A cheap function beside 4, 9 and 29 dear ones that poll rings, all offered what their senders can.

    Reproduces: E8
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch="veth",
    functions=["cost20000:cost100000", "cost100000:cost20000"],
    cpu_share=[50, 70],
    api="raw-mmsg",
    burst=8,
    rate="150k",
    repeats=3,
    warmup=0.8,
    duration=1,
    drain=1,
)
def test_different_shares(icbench: Icbench) -> None:
    """Functions of different cost with shares of a core; the error is that of the first, against it alone.

    Reproduces: E5
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    dimension="latency",
    switch="veth",
    functions=["wire:10xcost100000", "wire:25xcost100000"],
    api="raw-mmsg",
    packet_size=128,
    burst=1,
    rate="3k",
    repeats=6,
    warmup=0.5,
    duration=1,
    drain=5,
)
def test_pings(icbench: Icbench) -> None:
    """The round trip beside 0 (its floor), 10 and 25 busy functions: 0.12, 1.3 and 1.8 ms in the literature.

    Reproduces: E8
    """
    icbench.gate(icbench.latency())
