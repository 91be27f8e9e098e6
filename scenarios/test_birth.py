# SPDX-License-Identifier: BSD-3-Clause
"""How fast does one container more appear, and what do idle ones cost?

Containers are created one after the other by the code that makes the nodes of every rig, until there are many. Each
answers a frame from outside before the next one is begun. The floor is a process without any container.
"""

from __future__ import annotations

import pytest

from pytest_icbench.api import Icbench


@pytest.mark.icbench(birth=["fork:300", "netns:300", "lxc:150"])
def test_birth(icbench: Icbench) -> None:
    """How long does it take to create the n-th container?

    Reproduces: E1, E2
    """
    icbench.gate(icbench.measure())


@pytest.mark.icbench(birth=["fork:1000", "netns:1000", "lxc:300"])
def test_birth_of_a_thousand(icbench: Icbench) -> None:
    """The same up to the published number of containers, or as many as two CPUs start within a minute.

    Reproduces: E1, E2
    """
    icbench.gate(icbench.measure())
