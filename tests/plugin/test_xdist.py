# SPDX-License-Identifier: BSD-3-Clause
"""The scheduler in xdist itself: what it does when a worker is lost is made of when xdist calls what."""

from __future__ import annotations

from pytest_icbench.store.stored_run import read_run, read_with_windows
from tests.plugin.conftest import Runner

#: The loss is known before anybody's second test ends.
SCHEDULER = """
from pathlib import Path

def pytest_testnodedown(node, error):
    if error:
        Path("lost").touch()

def pytest_xdist_make_scheduler(config, log):
    from pytest_icbench.plugin.xdist_workers import HostScheduling

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


BENCHMARKS = """
import os
from pathlib import Path

@pytest.mark.icbench(switch="ovs", packet_size=[64, 128, 256, 512])
def test_a(icbench):
    icbench.throughput()
    if {lost} == icbench.case.traffic.packet_size and not Path("lost").exists():
        Path("lost").touch()
        os._exit(7)
"""


def test_a_replaced_worker_goes_on_in_the_same_run(inner: Runner) -> None:
    inner.write(test_x=BENCHMARKS.format(lost=128))
    result = inner.spawn_with_bench("-p", "xdist.plugin", "-n", "1", "--max-worker-restart", "1")
    result.assert_outcomes(passed=3, failed=1)
    run = read_run(inner.path / "reports" / "latest")
    assert run.info is not None
    assert [stored.test for stored in run.results] == [
        f"test_x.py::test_a[{stored.measurement.case}]" for stored in run.results
    ]
    assert {stored.measurement.axes["packet_size"] for stored in run.results} == {64, 256, 512}
    for stored in run.results:
        assert read_with_windows(stored).case == stored.measurement.case
