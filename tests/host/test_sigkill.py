# SPDX-License-Identifier: BSD-3-Clause
"""pytest is killed at 20 random moments of real benchmarks; ``icbench recover`` leaves the host as it was."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.driver.guard import probe_node
from pytest_icbench.driver.node.registry import NODE_KINDS
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.session import HostSession
from tests.host import snapshot
from tests.plugin.conftest import LOAD

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="containers and switches need root")]

MOMENTS = 20
SWITCHES = ("linux-bridge", "ovs", "testpmd")
#: Another one can be tried: ICBENCH_TEST_SEED=7 pytest tests/host/test_sigkill.py
SEED = int(os.environ.get("ICBENCH_TEST_SEED", "20240518"))
#: A run of one case takes two to four seconds; a kill after its end has nothing to do, and is counted.
LONGEST_S = 3.5

SCENARIO = """
import pytest

@pytest.mark.icbench(switch={switch!r}, packet_size=64, repeats=2, warmup=0.05, duration=0.15, drain=0.1)
def test_rate(icbench):
    icbench.throughput()
"""


def available() -> list[tuple[str, str]]:
    """Pairs of switch and node kind that this host can run."""
    session = HostSession.probing()
    kinds, switches = [], []
    for kind in NODE_KINDS:
        try:
            probe_node(kind, session)
            kinds.append(kind)
        except Unsupported:
            continue
    for name in SWITCHES:
        try:
            builtin_switches()[name]().probe(session, None)
            switches.append(name)
        except Unsupported:
            continue
    return list(product(switches, kinds))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def test_nothing_is_left(tmp_path: Path) -> None:
    pairs = available()
    if not pairs:
        pytest.skip("this host can run none of the switches and nodes; see icbench doctor")
    choice = random.Random(SEED)
    package = str(Path(pytest_icbench.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    before = snapshot.take()
    undone = []
    for number in range(MOMENTS):
        switch, kind = pairs[number % len(pairs)]
        # One moment in each twentieth of the time: early and late ones are sure to be among them.
        moment = (number * 7 % MOMENTS + choice.random()) * LONGEST_S / MOMENTS
        (tmp_path / "test_x.py").write_text(SCENARIO.format(switch=switch))
        with (tmp_path / "output").open("w") as output:  # no pipe: what outlives pytest could hold it open
            process = subprocess.Popen(
                command("pytest", *LOAD, "-q", f"--icbench-node={kind}", "test_x.py"),
                cwd=tmp_path,
                stdout=output,
                stderr=output,
                env=environment,
            )
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        recovery = subprocess.run(
            command("pytest_icbench.cli.main", "recover"),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
        where = f"{switch} in {kind}, killed after {moment:.2f} s (seed {SEED}):\n"
        where += (tmp_path / "output").read_text() + recovery.stdout + recovery.stderr
        assert recovery.returncode == 0, where
        assert snapshot.left_since(before) == [], where
        assert process.returncode in (-signal.SIGKILL, 0), where
        print(f"{switch} {kind} {moment:.2f} s: {recovery.stdout.strip()}")
        if (found := re.search(r"(\d+) changes undone", recovery.stdout)) and int(found.group(1)) > 1:
            undone.append((switch, kind))
    # Most kills have to come while there is something to undo, or this proves nothing.
    assert len(undone) >= MOMENTS // 2, f"{len(undone)} of {MOMENTS} kills came in time"
    assert {switch for switch, _ in undone} == {switch for switch, _ in pairs}
