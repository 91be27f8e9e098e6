# SPDX-License-Identifier: BSD-3-Clause
"""Lets tests import each other's tools (``tests.host.snapshot``), and gives them signals as a terminal does.

Hypothesis has no deadline, which a busy machine would miss. The checkout is last in the path, so that the installed
package is tested.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Their fixtures assert that nothing is left on the host; a failure shows what is.
pytest.register_assert_rewrite("tests.host.node_tools", "tests.host.rig_tools", "tests.host.remote_runs")

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_CHECKOUT = str(Path(__file__).parent.parent)
if _CHECKOUT not in sys.path:
    sys.path.append(_CHECKOUT)

# A shell starts background jobs with SIGINT ignored, which the processes of tests would inherit.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Sets options for every pytest that a test starts, and spares the garbage collector thousands of tests.

    Pollers with precedence would starve the other tests that run at the same time. Workers of xdist, which run without
    the plugin, do not know the option, so it is not set before they have started.
    """
    os.environ["PYTEST_ADDOPTS"] = "-o icbench_precedence=none"
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


#: The lanes in a guest or over switches that no distribution has, and what each of them tests.
_LANES = {"sriov": "sriov is", "paths": "netkit, ipvlan and ovs-kernel are", "switches": "vpp and snabb are"}


def pytest_report_header() -> list[str]:
    """Says when these lanes last ran, which are no part of these tests."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [_last_run(cache / f"icbench/{lane}.stamp", lane) for lane in _LANES]


def _last_run(stamp: Path, lane: str) -> str:
    try:
        verdict, when, took, version = stamp.read_text(encoding="utf-8").strip().split("|")
    except (OSError, ValueError):
        return f"test-{lane}: has not run here; {_LANES[lane]} proved by `make test-{lane}`"
    return f"test-{lane}: {verdict} at {when} on {version}, in {took} s"
