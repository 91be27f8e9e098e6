# SPDX-License-Identifier: BSD-3-Clause
"""The sessions of benchmarks that are tortured, as processes: over which switch, node, hosts and versions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest_icbench
from pytest_icbench.driver.guard import make_switch, probe_node
from pytest_icbench.driver.node.registry import NODE_KINDS, has_machine
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import IcbenchError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import ATTACH
from tests.plugin.conftest import LOAD
from tests.second_host import THERE_NIC, SecondHost, under_a_name

#: Two short cases on one rig, and what a life adds to the marker.
TEST = """
import pytest

@pytest.mark.icbench(switch={switch!r}, packet_size=[64, 512], repeats=2, warmup=0.05, duration=0.2, drain=0.1,
                     max_duration=1{more})
def test_rate(icbench):
    icbench.{measure}()
"""


@dataclass(frozen=True)
class Life:
    """A session.

    Attributes:
        more: further arguments of the marker, each after a comma.
        two_hosts: whether the frames go over a cable to a second host, so that each switch has an uplink.
        arguments: options of pytest.
    """

    name: str
    switch: str
    node: str = "netns"
    more: str = ""
    measure: str = "throughput"
    two_hosts: bool = False
    arguments: tuple[str, ...] = field(default=())


def lives() -> list[Life]:
    """Returns the lives that this host can run: every switch in every kind of node, uplinks, versions side by side."""
    session = HostSession.probing()
    nodes = [kind for kind in NODE_KINDS if not has_machine(kind) and _can(lambda kind=kind: probe_node(kind, session))]
    switches = [
        name
        for name, cls in builtin_switches().items()
        # Its cases are skipped without a topology that names somebody's containers.
        if name != ATTACH and _can(lambda cls=cls: make_switch(cls).probe(session, None))
    ]
    modes = {"forward": ", mode='delay100us'", "forward-raw": ", mode='delay100us'"}
    found = [Life(f"{switch} in {node}", switch, node, modes.get(switch, "")) for switch in switches for node in nodes]
    if "linux-bridge" in switches:
        remote = ", api='raw', rate='5k', burst=1"
        found.append(Life("two hosts", "linux-bridge", more=remote, measure="measure", two_hosts=True))
    if "forward-raw" in switches:
        option = "--icbench-candidate=forward-raw:slow=mode:delay200us"
        found.append(Life("versions", "forward-raw", more=modes["forward-raw"], arguments=(option,)))
    return found


def _can(probe: object) -> bool:
    try:
        probe()  # type: ignore[operator]
    except IcbenchError:
        return False
    return True


def environment() -> dict[str, str]:
    """Returns the environment of a session: this package, and no plugins but the named ones."""
    package = str(Path(pytest_icbench.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def start(
    life: Life, directory: Path, other: SecondHost | None = None, *, before: Sequence[str] = (), test: str | None = None
) -> subprocess.Popen[bytes]:
    """Starts a session in a directory; its output is in ``output`` there.

    Args:
        other: the second host of a life over two.
        before: the words of a command that runs pytest.
        test: the file with the tests; None for ``TEST``.
    """
    text = TEST.format(switch=life.switch, more=life.more, measure=life.measure) if test is None else test
    (directory / "test_x.py").write_text(text, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", *LOAD, "-v", "-rA", "--tb=short", f"--icbench-node={life.node}"]
    argv += life.arguments
    env = environment()
    if life.two_hosts:
        assert other is not None
        argv += [f"--icbench-remote=root@{other.address}"]
        argv += [f"--icbench-uplink={other.here_nic} {other.address}={THERE_NIC}"]
        argv = under_a_name(argv)
        env = {**env, **{name: value for name, value in other.environment.items() if name == "PATH"}}
    with (directory / "output").open("wb") as output:  # no pipe: what outlives pytest could hold it open
        return subprocess.Popen(
            [*before, *argv, "test_x.py"],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
        )


def recovery() -> list[str]:
    """Returns the command line of ``icbench recover``."""
    return [sys.executable, "-m", "pytest_icbench.cli", "recover"]


def output(directory: Path) -> str:
    """Returns what a session has written to its terminal."""
    return (directory / "output").read_text(encoding="utf-8", errors="replace")
