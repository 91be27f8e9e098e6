# SPDX-License-Identifier: BSD-3-Clause
"""Runs pytest over two hosts as a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest_icbench
from pytest_icbench.host.process import SESSION_VARIABLE
from pytest_icbench.store.run_directory import FILE_NAME
from tests.host import snapshot
from tests.host.node_tools import tidy_snapshot
from tests.plugin.conftest import LOAD
from tests.second_host import HERE_NAME, THERE_NIC, SecondHost, under_a_name

SCENARIO = """
import pytest

QUICK = dict(switch="linux-bridge", api="raw", rate="5k", burst=1, repeats=1, warmup=0.05, drain=0.2, max_duration=1)

def measured(icbench):
    found = icbench.measure()
    if found.verdict == "INVALID":  # a loaded machine stalls: once more
        icbench.judge(found)
        found = icbench.measure()
    icbench.gate(found)

@pytest.mark.icbench(**QUICK, duration={first_s})
def test_first(icbench):
    icbench.gate(icbench.measure())

@pytest.mark.icbench(**QUICK, remote=False, duration=0.5)
def test_here(icbench):
    measured(icbench)

@pytest.mark.icbench(**QUICK, pairs=2, duration=0.5)
def test_second(icbench):
    measured(icbench)
"""


class Run:
    """A pytest with ``--icbench-remote``; its files are in ``directory``."""

    def __init__(
        self, directory: Path, other: SecondHost, *arguments: str, first_s: float = 0.5, scenario: str = SCENARIO
    ) -> None:
        self.directory = directory
        self.other = other
        (directory / "test_x.py").write_text(scenario.format(first_s=first_s))
        (directory / "pytest.ini").write_text("[pytest]\nicbench_run_files = true\n")
        package = str(Path(pytest_icbench.__file__).parents[1])
        uplink = f"{other.here_nic} {other.address}={THERE_NIC}"
        argv = [sys.executable, "-m", "pytest", *LOAD, "-v", "-rA", "--tb=short"]
        argv += [f"--icbench-remote=root@{other.address}", *arguments, "test_x.py"]
        if not any(word.startswith("--icbench-uplink") for word in arguments):
            argv.append(f"--icbench-uplink={uplink}")
        if not any(word.startswith("--icbench-node") for word in arguments):
            argv.append("--icbench-node=netns")
        self._output = (directory / "output").open("w")  # no pipe: what outlives pytest could hold it open
        self.process = subprocess.Popen(
            under_a_name(argv),
            cwd=directory,
            stdout=self._output,
            stderr=self._output,
            env={**other.environment, "PYTHONPATH": package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )

    @property
    def output(self) -> str:
        return (self.directory / "output").read_text()

    def wait(self, timeout_s: float = 90) -> int:
        """Waits for the end. Returns the exit code."""
        try:
            return self.process.wait(timeout_s)
        finally:
            self.process.kill()
            self._output.close()

    def until(self, reached: Callable[[], object], timeout_s: float = 30) -> None:
        """Waits for a state. Fails if it does not come, or the process ends before."""
        deadline = time.monotonic() + timeout_s
        while not reached():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.01)

    def until_measuring(self) -> None:
        """Waits until the first test's receiver runs on the other host, and its sender here."""
        self.until(
            lambda: self.other.processes("icbench-workload send") or self.other.processes("icbench-workload rec")
        )
        self.until(lambda: _here("icbench-workload send"))

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each test in the summary."""
        found = {}
        for line in self.output.splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in ("PASSED", "FAILED", "ERROR", "SKIPPED") and "::" in words[1]:
                found[words[1].partition("::")[2].partition("[")[0]] = words[0]
        return found

    def results(self) -> list[dict[str, Any]]:
        """Returns the lines of ``results.jsonl``."""
        lines = (self.directory / "reports/latest" / FILE_NAME).read_text().splitlines()
        return [json.loads(line) for line in lines]


def files_with_names(directory: Path, hosts: Iterable[SecondHost]) -> list[str]:
    """Returns the files of the reports below a directory that name a host, its address or a key."""
    names = [name for host in hosts for name in private_names(host) if name]
    files = [path for path in (directory / "reports").rglob("*") if path.is_file()]
    return [str(path) for path in files if any(name in path.read_text(errors="replace") for name in names)]


def _here(word: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if word in command and (entry / "ns/pid").readlink() == Path("/proc/self/ns/pid").readlink():
                return True
    return False


@contextmanager
def clean_on_both(other: SecondHost, timeout_s: float = 20) -> Iterator[None]:
    """Fails if either host has something afterwards that it did not have before."""
    here, there = tidy_snapshot(), other.snapshot()
    yield
    deadline = time.monotonic() + timeout_s
    while (left := [*_different(here, snapshot.take()), *_different(there, other.snapshot())]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.1)
    assert left == [], left


def _different(before: snapshot.Snapshot, now: snapshot.Snapshot) -> list[str]:
    """Returns what is left. Processes that have gone do not count: an earlier test had started them."""
    found = snapshot.difference(before, now)
    return [line for line in found if not (line.startswith("process ") and line.endswith(" is gone"))]


def listening(pid: int) -> set[str]:
    """Returns the listening sockets in this network namespace of a process, its descendants and sessions.

    Each is protocol, address and port; datagrams count, too. Tests that run beside have sockets of their own.
    """
    found = set()
    inodes = {inode for each in _family(pid) for inode in _sockets(each)}
    for protocol, states in (("tcp", {"0A"}), ("tcp6", {"0A"}), ("udp", {"07"}), ("udp6", {"07"})):
        path = Path("/proc/net", protocol)
        if path.exists():
            rows = [line.split() for line in path.read_text().splitlines()[1:]]
            found |= {f"{protocol} {row[1]}" for row in rows if row[3] in states and row[9] in inodes}
    return found


def _family(pid: int) -> set[int]:
    """Returns a process, its descendants, and processes with the mark of a session."""
    parents: dict[int, int] = {}
    found = {pid}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if f"{SESSION_VARIABLE}=".encode() in (entry / "environ").read_bytes():
                found.add(int(entry.name))
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _sockets(pid: int) -> set[str]:
    """Returns the inodes of a process' sockets."""
    found = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found


def private_names(other: SecondHost) -> list[str]:
    """Returns names, addresses and keys of both hosts, which no report of a run ``under_a_name`` may have."""
    keys = [word for name in ("host_key.pub", "client_key.pub") for word in other.read(name).split() if len(word) > 30]
    return [other.address, other.here_address, "icbench-second", HERE_NAME, "SHA256:", "ssh-ed25519", *keys]
