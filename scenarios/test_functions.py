# SPDX-License-Identifier: BSD-3-Clause
"""What do network functions cost, one by one and side by side behind one switch?

In the manner of rows D1, D4, E3 and E9 of the published experiments, in short. On a machine with fewer cores than
pollers every number of functions above one is oversubscribed.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(switch="linux-bridge", functions=["route", "nat+acl10+deny30"], function_count=[1, 2, 3, 4])
def test_side_by_side(icbench: Icbench) -> None:
    """Total rate of one to four routers, plain and with features: D1, D4."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="ovs", functions=["wire", "nat"], function_count=[1, 2, 3, 4])
def test_side_by_side_in_user_space(icbench: Icbench) -> None:
    """Total rate of one to four functions behind a switch with poll-mode workers: D1, D4."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="linux-bridge", functions=["wire", "route", "acl10"], packet_size=[64, 512, 1518])
def test_one_function(icbench: Icbench) -> None:
    """Rate through one function against packet size: E3."""
    icbench.gate(icbench.throughput())


@pytest.mark.icbench(switch="ovs", functions=["firewall"])
def test_connection_tracking(icbench: Icbench) -> None:
    """A stateful firewall against plain switching, which is its reference: E9."""
    icbench.gate(icbench.throughput())
