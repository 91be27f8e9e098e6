# SPDX-License-Identifier: BSD-3-Clause
"""How fast does one container more appear, and what do idle ones cost?

Containers are created one after the other by the code that makes the nodes of every rig, until there are many. Each
answers a frame from outside before the next one is begun. The floor is a process without any container.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(startup=["fork:300", "netns:300", "lxc:150", "oci:100"])
def test_startup(icbench: Icbench) -> None:
    """How long does it take to create the n-th container?

    Reproduces: E1, E2
    """
    icbench.gate(icbench.measure())


@pytest.mark.published
@pytest.mark.icbench(startup=["netns:200:100ms", "netns:200:25ms", "netns:200:10ms", "lxc:100:100ms", "lxc:100:25ms"])
def test_startup_just_in_time(icbench: Icbench) -> None:
    """How long does a new client wait whose first frame creates its container?

    Reproduces: E14
    """
    icbench.gate(icbench.measure())


@pytest.mark.published
@pytest.mark.icbench(startup=["fork:1000", "netns:1000", "lxc:300", "oci:300"])
def test_startup_of_a_thousand(icbench: Icbench) -> None:
    """The same up to the published number of containers, or as many as two CPUs start within a minute.

    Reproduces: E1, E2
    """
    icbench.gate(icbench.measure())
