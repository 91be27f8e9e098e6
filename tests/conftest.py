# SPDX-License-Identifier: BSD-3-Clause
"""Lets tests import each other's tools (``tests.host.snapshot``), and gives them signals as a terminal does.

No property is bound to a time: a busy machine would fail it.

Last in the path: the installed package is the one tested.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Fixtures that look at what is left on the host say what it is.
pytest.register_assert_rewrite("tests.host.node_tools", "tests.host.rig_tools", "tests.host.remote_runs")

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_CHECKOUT = str(Path(__file__).parent.parent)
if _CHECKOUT not in sys.path:
    sys.path.append(_CHECKOUT)

# Of every pytest that a test starts: pollers that run before all others would starve what else runs beside the tests.
os.environ["PYTEST_ADDOPTS"] = "-o icbench_precedence=none"

# A shell starts its background jobs with SIGINT ignored, and so would everything be that tests start.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end: the collector need not look through them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


#: What each lane in a guest proves.
_LANES = {"sriov": "sriov is", "paths": "netkit, ipvlan and ovs-kernel are"}


def pytest_report_header() -> list[str]:
    """When the lanes last ran that need minutes and a guest, so that nobody takes their tests for part of these."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [_last_run(cache / f"icbench/{lane}.stamp", lane) for lane in _LANES]


def _last_run(stamp: Path, lane: str) -> str:
    try:
        verdict, when, took, version = stamp.read_text(encoding="utf-8").strip().split("|")
    except (OSError, ValueError):
        return f"test-{lane}: has not run here; {_LANES[lane]} proved by `make test-{lane}`"
    return f"test-{lane}: {verdict} at {when} on {version}, in {took} s"
