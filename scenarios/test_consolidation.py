# SPDX-License-Identifier: BSD-3-Clause
"""How many network functions fit on a core, and what is left of its rate when each has an equal part of it?

All functions are on one CPU that nothing else of the case has, each with the same share of it. Together they are
offered the same whatever their number, more than the CPU can do. A core that loses nothing to their number passes as
much through 24 as through six. The warm-up is as long as it takes to fill the queues of all functions, and the drain as
long as it takes to empty them. Their senders share the other CPU, so the functions are dear.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


def parts(functions: int) -> str:
    """Returns equal shares of a CPU, in per cent, of so many functions."""
    return ":".join([str(100 // functions)] * functions)


def on_one_core(functions: int, rate: str) -> pytest.MarkDecorator:
    """Returns the marker of so many functions, each offered this rate."""
    return pytest.mark.icbench(
        switch="veth",
        functions="cost10000",
        cpu_share=parts(functions),
        api="raw-mmsg",
        packet_size=256,
        burst=8,
        rate=rate,
        repeats=3,
        warmup=4,
        duration=1,
        drain=4,
        reference=False,
    )


@on_one_core(6, "36k")
def test_six_functions_on_one_core(icbench: Icbench) -> None:
    """Six functions that are as dear as a long list of rules; they and the next two take three minutes.

    Reproduces: E4
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@on_one_core(12, "18k")
def test_twelve_functions_on_one_core(icbench: Icbench) -> None:
    """Twelve of them.

    Reproduces: E4
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@on_one_core(24, "9k")
def test_24_functions_on_one_core(icbench: Icbench) -> None:
    """24 of them.

    Reproduces: E4
    """
    icbench.gate(icbench.throughput())


@pytest.mark.published
@pytest.mark.icbench(
    switch=["vpp", "ovs", "linux-bridge"],
    functions="acl10",
    function_count=[6, 12, 18, 24, 30, 36],
    packet_size=256,
)
def test_firewalls_as_published(icbench: Icbench) -> None:
    """Firewalls of ten rules behind a switch, as many as published on six cores: 18 Mpps with six, 13 with 36.

    Reproduces: E4
    """
    icbench.gate(icbench.throughput())
