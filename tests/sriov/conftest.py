# SPDX-License-Identifier: BSD-3-Clause
"""Tests for the guest of ``make test-sriov``: elsewhere there is nothing to collect."""

from __future__ import annotations

import os

if "ICBENCH_GUEST" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
else:
    from pytest_icbench.measure.launch import launcher
    from pytest_icbench.testbed import exchange

    # Emulated, four DPDK applications take their time to start, more so on a busy host.
    launcher.READY_TIMEOUT_S = exchange.READY_S = exchange.TIMEOUT_S = 120.0
