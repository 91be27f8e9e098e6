# SPDX-License-Identifier: BSD-3-Clause
"""The scheduler in xdist itself: what it does when a worker is lost is made of when xdist calls what."""

from __future__ import annotations

from tests.plugin.conftest import Runner

#: The loss is known before anybody's second test ends.
SCHEDULER = """
from pathlib import Path

def pytest_testnodedown(node, error):
    if error:
        Path("lost").touch()

def pytest_xdist_make_scheduler(config, log):
    from pytest_icbench.plugin.xdist.scheduler import HostScheduling

    return HostScheduling(config, log, replaces=False)
"""
TESTS = """
import os, time
from pathlib import Path

@pytest.mark.parametrize("number", range(12), ids=lambda number: f"ovs-{64 + number}B-b32-1vs1-Rmax")
def test_a(number):
    if number == 2:
        os._exit(9)
    deadline = time.monotonic() + 30
    while number > 2 and not Path("lost").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
"""


def test_the_tests_of_a_lost_worker_run_elsewhere(inner: Runner) -> None:
    inner.pytester.makeconftest(SCHEDULER)
    inner.write(test_x=TESTS)
    result = inner.pytester.runpytest_subprocess("-p", "xdist.plugin", "-n", "3", "--max-worker-restart", "0")
    result.assert_outcomes(passed=11, failed=1)
    result.stdout.fnmatch_lines(["worker gw? is lost and not replaced: the other hosts have its tests"])
