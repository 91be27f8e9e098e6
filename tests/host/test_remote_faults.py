# SPDX-License-Identifier: BSD-3-Clause
"""Whatever goes wrong with the second host: one clear sentence, both hosts clean, and the other cases run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.host.host_session import RUN_DIR
from pytest_icbench.host.net import links
from tests.host.remote_runs import SCENARIO, Run, clean_on_both, files_with_names
from tests.second_host import SecondHost, other, unsupported_reason

__all__ = ["other"]  # a fixture

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason())),
]

#: What is wrong within the block; gives pytest's further arguments.
Fault = Callable[[SecondHost, Path], AbstractContextManager[list[str]]]
#: Longer than any of the faults takes to be made.
LONG_S = 30.0
ALL_PASS = {"test_first": "PASSED", "test_here": "PASSED", "test_second": "PASSED"}
#: More frames than a preflight has.
UNDER_WAY = 2500
#: The Python of the package's own environment, at the other end of a connection.
SERVER = "sys.stdin.readline"


@pytest.fixture(autouse=True)
def nobody_is_named(other: SecondHost, tmp_path: Path) -> Iterator[None]:
    """Fails if a file of the reports has a name, an address or a key of a host."""
    yield
    assert files_with_names(tmp_path, [other]) == []


@contextmanager
def changed(other: SecondHost, name: str, text: str) -> Iterator[None]:
    """One of its files is another for a while."""
    old = other.read(name)
    other.write(name, text)
    try:
        yield
    finally:
        other.write(name, old)


@contextmanager
def unknown_host_key(other: SecondHost, directory: Path) -> Iterator[list[str]]:
    with changed(other, "known_hosts", ""):
        yield []


@contextmanager
def refused_key(other: SecondHost, directory: Path) -> Iterator[list[str]]:
    with changed(other, "ssh_config", other.read("ssh_config").replace("client_key", "other_key")):
        yield []


@contextmanager
def no_package(other: SecondHost, directory: Path) -> Iterator[list[str]]:
    wrapper = directory / "bare-python"
    wrapper.write_text(f'#!/bin/sh\nexec {Path(sys.executable).resolve()} -S "$@"\n')
    wrapper.chmod(0o755)
    yield [f"--icbench-remote-python={wrapper}"]


@contextmanager
def other_version(other: SecondHost, directory: Path) -> Iterator[list[str]]:
    (directory / "old/pytest_icbench-0.0.9.dist-info").mkdir(parents=True)
    (directory / "old/pytest_icbench-0.0.9.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: pytest-icbench\nVersion: 0.0.9\n"
    )
    wrapper = directory / "old-python"
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH={directory}/old exec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    yield [f"--icbench-remote-python={wrapper}"]


@contextmanager
def lock_held(other: SecondHost, directory: Path) -> Iterator[list[str]]:
    source = (
        "import sys; from pytest_icbench.host.host_session import HostSession\n"
        "from pytest_icbench.testbed.undo_kinds import UNDO_KINDS\n"
        "with HostSession(UNDO_KINDS): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        other.enter([sys.executable, "-P", "-c", source]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        yield []
    finally:
        holder.stdin.close()
        holder.wait(20)
        holder.stdout.close()


@contextmanager
def disk_full(other: SecondHost, directory: Path) -> Iterator[list[str]]:
    other.run("dd", "if=/dev/zero", "of=/run/filler", "bs=64k", check=False)
    try:
        yield []
    finally:
        other.run("rm", "-f", "/run/filler")


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (unknown_host_key, "no connection to the remote host: its host key is not known here: connect once by hand"),
        (refused_key, "no connection to the remote host: it accepts none of the keys that ssh offers"),
        (no_package, "has no pytest-icbench (ModuleNotFoundError: No module named 'pytest_icbench'): install version"),
        (other_version, "the remote host has pytest-icbench 0.0.9, this one "),
        (lock_held, "on the remote host: another icbench session runs on this host (process "),
        (disk_full, f"on the remote host: {RUN_DIR}, where sessions record what they change, cannot be written"),
    ],
)
def test_a_host_that_cannot_be_had(other: SecondHost, tmp_path: Path, fault: Fault, sentence: str) -> None:
    with fault(other, tmp_path) as arguments, clean_on_both(other):
        run = Run(tmp_path, other, *arguments)
        assert run.wait() == 1, run.output
    bad = "FAILED" if sentence.startswith("on the remote host") else "ERROR"
    assert run.outcomes == {"test_first": bad, "test_here": "PASSED", "test_second": bad}, run.output
    assert sentence in run.output


def test_nothing_is_done_if_no_case_can_do_without(other: SecondHost, tmp_path: Path) -> None:
    with lock_held(other, tmp_path), clean_on_both(other):
        run = Run(tmp_path, other, "-k", "not here")
        assert run.wait() == 4, run.output
    assert len([line for line in run.output.splitlines() if line.startswith("ERROR: ")]) == 1, run.output
    assert not (tmp_path / "reports").exists()


def test_sshd_is_killed(other: SecondHost, tmp_path: Path) -> None:
    with clean_on_both(other):
        run = Run(tmp_path, other, first_s=LONG_S)
        run.until_measuring()
        other.kill_sshd()
        other.start_sshd()
        assert run.wait() == 1, run.output
    assert run.outcomes == {**ALL_PASS, "test_first": "FAILED"}, run.output
    assert "the connection to the remote host was lost" in run.output


def test_the_other_end_is_killed(other: SecondHost, tmp_path: Path) -> None:
    with clean_on_both(other):
        run = Run(tmp_path, other, first_s=LONG_S)
        run.until_measuring()
        for pid in other.processes(SERVER):
            os.kill(pid, signal.SIGKILL)
        assert run.wait() == 1, run.output
    assert run.outcomes == {**ALL_PASS, "test_first": "FAILED"}, run.output
    assert "the connection to the remote host was lost" in run.output


@pytest.mark.parametrize(
    ("switch", "namespace", "link", "passed"),
    [("linux-bridge", "br", "uplink0", {"test_here", "test_second"}), ("veth", "up0", "eth0", {"test_here"})],
)
def test_the_cable_goes_down(
    other: SecondHost, tmp_path: Path, switch: str, namespace: str, link: str, passed: set[str]
) -> None:
    """Behind a switch, and as the sender's own interface. A bare cable carries one pair."""
    with clean_on_both(other):
        run = Run(tmp_path, other, first_s=2.5, scenario=SCENARIO.replace("linux-bridge", switch))
        run.until_measuring()
        (netns,) = Path("/run/netns").glob(f"icb*-{namespace}")
        run.until(lambda: links.read_statistics(link, str(netns))["tx_packets"] > UNDER_WAY)
        subprocess.run(["nsenter", f"--net={netns}", "ip", "link", "set", link, "down"], check=True)
        assert run.wait() == 1, run.output
    assert run.outcomes == {"test_first": "FAILED", **dict.fromkeys(passed, "PASSED")}, run.output
    assert f"the uplink {other.here_nic} has no carrier after 3 s: connect its cable" in run.output


def test_the_management_network_goes_down(other: SecondHost, tmp_path: Path) -> None:
    """A connection that is dead and has not been closed. ssh's patience is cut short for the test."""
    impatient = "exec " + other.read("bin/ssh").split("exec ")[1].replace(
        '"$@"', '-o ServerAliveInterval=1 -o ServerAliveCountMax=2 "$@"'
    )
    with changed(other, "bin/ssh", "#!/bin/sh\n" + impatient), clean_on_both(other, timeout_s=40):
        run = Run(tmp_path, other, first_s=LONG_S)
        run.until_measuring()
        subprocess.run(["ip", "link", "set", other.management_nic, "down"], check=True)
        try:
            run.until(lambda: "test_first" in run.output and "FAILED" in run.output)
        finally:
            subprocess.run(["ip", "link", "set", other.management_nic, "up"], check=True)
        assert run.wait() == 1, run.output
    assert run.outcomes == {**ALL_PASS, "test_first": "FAILED"}, run.output
    assert "the connection to the remote host was lost" in run.output


def test_this_end_is_killed(other: SecondHost, tmp_path: Path) -> None:
    """The other host becomes clean by itself; this one by ``icbench recover``, as ever."""
    with clean_on_both(other):
        there = other.snapshot()
        run = Run(tmp_path, other, first_s=LONG_S)
        run.until_measuring()
        assert other.run("ls", RUN_DIR).stdout.split()
        run.process.send_signal(signal.SIGKILL)
        run.wait()
        environment = {**os.environ, "PYTHONPATH": str(Path(pytest_icbench.__file__).parents[1])}
        recovery = subprocess.run(
            [sys.executable, "-m", "pytest_icbench.cli.main", "recover"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=environment,
        )
    assert "changes undone" in recovery.stdout
    assert other.snapshot() == there
