# SPDX-License-Identifier: BSD-3-Clause
"""The same case in every kind of container; sessions that are killed; containers that others remove meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_icbench.cli import main
from pytest_icbench.host.cpu_usage import read_process
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import run
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.host import snapshot
from tests.host.node_tools import ENGINES, clean, output, require, session, started, tidy_snapshot
from tests.host.rig_tools import built
from tests.plugin.conftest import LOAD

__all__ = ["clean", "session"]  # fixtures

CONTAINERS = ("lxc", "oci", *ENGINES)


def of_the_user() -> list[str]:
    """What Docker has for its user: containers, images and volumes. Podman's are files, at which a snapshot looks."""
    if not shutil.which("docker"):
        return []
    asked = (("ps", "-aq"), ("images", "-aq"), ("volume", "ls", "-q"))
    return [run(["docker", *words], timeout_s=20, check=False).stdout for words in asked]


@pytest.fixture
def untouched() -> Iterator[None]:
    """Fails a test after which the user's Docker has other containers, images or volumes."""
    before = of_the_user()
    yield
    assert of_the_user() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engines_container_is_entered_and_leaves_nothing(session: HostSession, engine: str) -> None:
    require(engine)
    node = started(session, engine)
    assert output(session, node, "hostname; cat /proc/1/comm").split() == [node.spec.name, "icbench-workloa"]
    node.stop()


def launched(session: HostSession, kind: str, pps: int) -> Launch:
    settings = Settings(warmup_s=0.1, duration_s=0.5, window_s=0.1, drain_s=0.2)
    case = Case("veth", Frames(rate=Rate(pps)))
    with built(session, case, node=kind) as rig:
        return run_launch(rig, case, settings)


@pytest.mark.slow
@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_accounts_are_exact_in_every_kind(session: HostSession, kind: str) -> None:
    launch = launched(session, kind, 20_000)
    # A host that others use may stop the sender for longer than a launch bears; frames pass all the same.
    assert launch.invalid in (None, "clock"), launch.evidence
    (pair,) = launch.pairs
    assert pair.received == pair.sent > 0


TEST = """
import pytest

@pytest.mark.icbench(switch="veth", packet_size=64, rate=["20k"], repeats=1, warmup=0.1, duration={duration}, drain=0.3,
                     max_duration=1)
def test_rate(icbench):
    icbench.throughput()
"""


def begun(directory: Path, kind: str, duration: float) -> subprocess.Popen[str]:
    """A session of pytest with one case."""
    (directory / "test_x.py").write_text(TEST.format(duration=duration))
    argv = [sys.executable, "-m", "pytest", *LOAD, "-p", "no:randomly", f"--icbench-node={kind}", "-rA", "-q"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.Popen(
        [*argv, "test_x.py"],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def init_of(process: subprocess.Popen[str]) -> int:
    """Waits for a workload of this session that sends or receives in a container. Returns that one's first process."""
    while process.poll() is None:
        for pid, words in command_lines():
            namespace = None
            mine = (found := read_process(Path(f"/proc/{pid}/stat"))) is not None and found.parent == process.pid
            if mine and words[0].endswith(b"icbench-workload") and words[1:2] != [b"pause"]:
                namespace = pid_namespace(pid)
            for other, its_words in command_lines() if namespace else ():
                if b"pause" in its_words and pid_namespace(other) == namespace:
                    return other
    raise AssertionError(process.communicate()[0])


def command_lines() -> Iterator[tuple[int, list[bytes]]]:
    """Yields the processes of this machine with the words of their command lines."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            yield int(entry.parent.name), entry.read_bytes().split(b"\0")


def pid_namespace(pid: int) -> Path | None:
    """Returns the namespace of process ids; None for a process that has ended or is of another host."""
    with suppress(OSError):
        return None if snapshot.elsewhere(pid) else Path(f"/proc/{pid}/ns/pid").readlink()
    return None


@pytest.mark.slow
@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_killed_session_is_recovered(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    require(kind)
    before = tidy_snapshot()
    process = begun(tmp_path, kind, 30)
    init_of(process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    assert main.main(["recover"]) == 0
    assert "undone" in capsys.readouterr().out
    assert snapshot.left_since(before) == []


@pytest.mark.slow
@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_container_that_is_gone_in_mid_run_is_named(tmp_path: Path, kind: str) -> None:
    require(kind)
    before = tidy_snapshot()
    process = begun(tmp_path, kind, 5)
    init = init_of(process)
    if kind == "docker":
        names = run(["docker", "ps", "--format", "{{.Names}}"], timeout_s=20).stdout.split()
        run(["docker", "rm", "--force", next(name for name in names if name.startswith("icb"))], timeout_s=20)
    else:
        os.kill(init, signal.SIGKILL)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    # Between two launches no process runs in it: then the next one that is to enter it finds it gone.
    assert re.search(r"(^|\s)node icb\S+ is gone: something outside this session has ended it", said)
    assert snapshot.left_since(before) == []
