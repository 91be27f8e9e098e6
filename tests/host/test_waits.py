# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints of rigs that wait for interrupts: DPDK over vhost-user at both ends of the socket, and what is refused."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pytest_icbench.errors import WorkloadError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built
from tests.host.test_switches import BRIEF, assert_heard, there_and_back

__all__ = ["clean", "session"]  # fixtures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="rigs need root: run pytest with sudo"),
]


@pytest.mark.parametrize("case", [Case("direct", wait="interrupt"), Case("testpmd", wait="interrupt")], ids=str)
def test_dpdk_endpoints_sleep_until_their_ports_interrupt(session: HostSession, case: Case) -> None:
    with built(session, case, node="netns") as rig:
        launch = there_and_back(rig, case)
        assert_heard(launch)
        (pair,) = launch.pairs
        assert pair.received == pair.sent == pair.scheduled
        for cpu_ns in (pair.sender_cpu_ns, pair.receiver_cpu_ns):
            assert cpu_ns is not None
            assert cpu_ns < launch.duration_s * 1e9 / 2


def test_a_port_without_receive_interrupts_is_named(session: HostSession) -> None:
    """The plan refuses memif; a driver that is not known beforehand says so itself."""
    case = Case("direct", port="memif", wait="interrupt")
    with built(session, replace(case, wait=None), node="netns") as rig, pytest.raises(WorkloadError) as failed:
        run_launch(rig, case, BRIEF)
    assert "net_memif has no receive interrupts: leave out --wait" in str(failed.value)
