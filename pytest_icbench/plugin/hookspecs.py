# SPDX-License-Identifier: BSD-3-Clause
"""The hooks that another plugin, or a conftest.py, can implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_icbench.driver.application.protocol import Application
    from pytest_icbench.driver.function.protocol import Function
    from pytest_icbench.driver.node.protocol import Node
    from pytest_icbench.driver.switch.protocol import Switch


@pytest.hookspec
def pytest_icbench_switches(config: pytest.Config) -> list[type[Switch]]:  # type: ignore[empty-body]
    """Returns further switches: driver classes as ``pytest_icbench.driver.switch.protocol.Switch`` describes them.

    Called at collection, on every host; the classes must import without root, without the switch and quickly. They
    take part in the groups ``all``, ``kernel`` and ``dpdk`` by their ``family``. A name that another switch has is an
    error.
    """


@pytest.hookspec
def pytest_icbench_nodes(config: pytest.Config) -> list[type[Node]]:  # type: ignore[empty-body]
    """Returns further kinds of nodes: classes as ``pytest_icbench.driver.node.protocol.Node`` describes them.

    Called at collection, on every host that pytest runs on; the classes must import without root and quickly.
    ``--icbench-node`` takes the ``kind`` of each. A name that another kind has is an error.
    """


@pytest.hookspec
def pytest_icbench_functions(config: pytest.Config) -> list[type[Function]]:  # type: ignore[empty-body]
    """Returns further network functions: classes as ``pytest_icbench.driver.function.protocol.Function`` describes.

    Called at collection, on every host that pytest runs on; the classes must import without root and quickly. A
    function goes to the first component that has it over the switch's ports. A name that another component has is an
    error.
    """


@pytest.hookspec
def pytest_icbench_applications(config: pytest.Config) -> list[type[Application]]:  # type: ignore[empty-body]
    """Returns further applications: classes as ``pytest_icbench.driver.application.protocol.Application`` has them.

    Called at collection, on every host; the classes must import without root and quickly. ``app=`` and
    ``--icbench-app`` take the ``name`` of each. A name that another application has is an error.
    """
