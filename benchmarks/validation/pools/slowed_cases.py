# SPDX-License-Identifier: BSD-3-Clause
"""The cases of `slowed.py`: one switch each, as many frames as it takes.

pytest collects this file only where it is named.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench

_RATE = {"packet_size": 64, "burst": 32}


@pytest.mark.icbench(switch="ovs", api="dpdk", **_RATE)
def test_ovs(icbench: Icbench) -> None:
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="testpmd", api="dpdk", **_RATE)
def test_testpmd(icbench: Icbench) -> None:
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="basicfwd", api="dpdk", **_RATE)
def test_basicfwd(icbench: Icbench) -> None:
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="filtered-bridge", api="udp-mmsg", **_RATE)
def test_bridge(icbench: Icbench) -> None:
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="direct", api="dpdk", **_RATE)
def test_endpoint(icbench: Icbench) -> None:
    icbench.gate(icbench.throughput())
