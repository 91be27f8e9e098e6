# SPDX-License-Identifier: BSD-3-Clause
"""Endpoint processes that come and go over memif. DPDK's driver of it does not bear other work beside.

Of two ends that wait for a CPU one takes the rings away under the other, which ends by SIGSEGV.
"""

from __future__ import annotations

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.case import POLLING, Case
from tests.host.node_tools import clean, session
from tests.host.test_switches import CONNECTING, MEMIF, come_and_go, ids

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Case(name, port=port, rx_mode=None if rx_mode == POLLING else rx_mode)
        for name, cls in CONNECTING.items()
        for port in cls.ports
        if port.startswith(MEMIF)
        for rx_mode in cls.rx_modes(port) or (POLLING,)
    ],
    ids=ids,
)
def test_endpoint_processes_come_and_go(session: HostSession, case: Case) -> None:
    come_and_go(session, case)
