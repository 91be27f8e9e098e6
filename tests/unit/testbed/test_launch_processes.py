# SPDX-License-Identifier: BSD-3-Clause
"""Launches of real processes on this machine, without nodes around them: stages, lines, exits, ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host.process import Process, Spawner
from pytest_icbench.model.rig import LaunchPlan, PlannedProcess, Polled
from pytest_icbench.testbed.launch_processes import LaunchSite, RunningLaunch, check_switch


class Here:
    """A node that is this machine."""

    def __init__(self) -> None:
        self.spawned: list[Process] = []

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        process = Spawner("test00").start(argv, log=log, cpus=cpus, pipes=True)
        self.spawned.append(process)
        return process


CPU = min(os.sched_getaffinity(0))


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[RunningLaunch]:
    nodes: Any = [Here(), Here()]
    found = RunningLaunch(LaunchSite(nodes, [CPU, CPU], tmp_path), "l1")
    yield found
    found.end()


def python(script: str) -> list[str]:
    return [sys.executable, "-u", "-c", "import sys, time, json, signal, socket\n" + textwrap.dedent(script)]


def process(index: int, script: str, **more: Any) -> PlannedProcess:
    return PlannedProcess(index, tuple(python(script)), **more)


def begin(launch: RunningLaunch, *processes: PlannedProcess, **more: Any) -> None:
    launch.begin(LaunchPlan(processes, **more))


def everything(launch: RunningLaunch, timeout_s: float = 10) -> tuple[list[tuple[int, str]], dict[int, int]]:
    """All lines and exits until nobody is left."""
    lines: list[tuple[int, str]] = []
    exited: dict[int, int] = {}
    deadline = time.monotonic() + timeout_s
    while len(exited) < len(launch.pids()) and time.monotonic() < deadline:
        reported = launch.poll(1)
        lines += reported.lines
        exited |= reported.exited
    return lines, exited


def test_lines_come_in_order_and_each_exit_once(launch: RunningLaunch) -> None:
    script = "for i in range(3): print(json.dumps({'type': 'window', 'i': i}))\nsys.exit(4)"
    begin(launch, process(0, script), process(1, "print('x')"))
    lines, exited = everything(launch)
    assert [json.loads(text)["i"] for index, text in lines if index == 0] == [0, 1, 2]
    assert [text for index, text in lines if index == 1] == ["x"]
    assert exited == {0: 4, 1: 0}
    assert launch.poll(0.01) == Polled()
    assert not launch.live


def test_a_torn_last_line_is_none(launch: RunningLaunch) -> None:
    begin(launch, process(0, "print('whole'); sys.stdout.write('{\"to'); sys.stdout.flush()"))
    assert everything(launch)[0] == [(0, "whole")]


@pytest.mark.parametrize("end", ["", "\n"], ids=["one line", "lines"])
def test_a_process_that_writes_without_end_is_named(launch: RunningLaunch, end: str) -> None:
    begin(launch, process(0, f"while True: sys.stdout.write('x' * 65535 + {end!r})"))
    with pytest.raises(WorkloadError, match=r"python\S* of endpoint 0 writes without end: \d+ MiB so far"):
        everything(launch, timeout_s=20)


def test_poll_returns_when_something_is_said(launch: RunningLaunch) -> None:
    begin(launch, process(0, "time.sleep(0.3); print('a'); time.sleep(60)"))
    began = time.monotonic()
    assert launch.poll(30).lines == ((0, "a"),)
    assert time.monotonic() - began < 10
    began = time.monotonic()
    assert launch.poll(0.1) == Polled()
    assert 0.09 <= time.monotonic() - began < 5


def test_a_quiet_poll_is_woken_by_an_end_and_by_no_line(launch: RunningLaunch) -> None:
    """A long line does not block its writer either: a pipe holds more than the usual 64 KiB."""
    talk = "for i in range(9): print('x' * 20_000); time.sleep(0.02)\n"
    begin(launch, process(0, f"{talk}sys.exit(3)"), process(1, f"{talk}time.sleep(60)"))
    began = time.monotonic()
    reported = launch.poll(30, quiet=True)
    assert {index: len([1 for who, _ in reported.lines if who == index]) for index in (0, 1)}[0] == 9
    exited = dict(reported.exited)
    while not exited and time.monotonic() - began < 20:
        exited |= launch.poll(20, quiet=True).exited
    assert exited == {0: 3}
    assert time.monotonic() - began < 20


def test_a_quiet_poll_takes_its_time_and_reads_what_was_said(launch: RunningLaunch) -> None:
    begin(launch, process(0, "print('a'); time.sleep(60)"))
    assert launch.poll(30).lines == ((0, "a"),)
    began = time.monotonic()
    assert launch.poll(0.1, quiet=True) == Polled()
    assert 0.09 <= time.monotonic() - began < 5


def test_start_is_written_to_all_with_one_moment(launch: RunningLaunch) -> None:
    script = "print(sys.stdin.readline().strip()); print(sys.stdin.readline().strip())"
    begin(launch, process(0, script), process(1, script))
    before = time.monotonic_ns()
    moment = launch.start(0.5)
    assert before + 5e8 <= moment <= time.monotonic_ns() + 5e8
    launch.tell("only one\n", 1)
    launch.tell("last\n", 0)
    lines, _ = everything(launch)
    assert sorted(lines) == [(0, "last"), (0, f"start {moment}"), (1, "only one"), (1, f"start {moment}")]
    launch.tell("nobody hears this\n")


def test_a_later_stage_waits_for_the_socket(launch: RunningLaunch, tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("a stale file of one that was killed")
    serves = f"""
        time.sleep(0.2)
        server = socket.socket(socket.AF_UNIX); server.bind({str(path)!r}); server.listen()
        server.accept(); print('served')
    """
    connects = f"socket.socket(socket.AF_UNIX).connect({str(path)!r}); print('connected')"
    begin(launch, process(1, connects, stage=1), process(0, serves, stage=0, socket=str(path)))
    lines, exited = everything(launch)
    assert sorted(lines) == [(0, "served"), (1, "connected")]
    assert exited == {0: 0, 1: 0}


def test_a_launch_whose_processes_all_serve_has_begun_when_the_switch_can_connect(
    launch: RunningLaunch, tmp_path: Path
) -> None:
    paths = [tmp_path / "s0", tmp_path / "s1"]
    serves = "time.sleep(0.1 * {}); server = socket.socket(socket.AF_UNIX); server.bind({!r}); time.sleep(60)"
    begin(launch, *(process(at, serves.format(at, str(path)), socket=str(path)) for at, path in enumerate(paths)))
    assert all(path.is_socket() for path in paths)


def test_hello_is_as_good_as_a_socket(launch: RunningLaunch, tmp_path: Path) -> None:
    script = "print(json.dumps({'type': 'hello'}))"
    begin(launch, process(0, script, stage=0, socket=str(tmp_path / "never")), process(1, "", stage=1))
    assert everything(launch)[0] == [(0, '{"type": "hello"}')]


def test_one_that_dies_before_it_serves_is_reported_with_its_log(launch: RunningLaunch, tmp_path: Path) -> None:
    script = "print('no memory', file=sys.stderr); sys.exit(3)"
    processes = process(0, script, socket=str(tmp_path / "s")), process(1, "time.sleep(60)", stage=1)
    with pytest.raises(WorkloadError, match=r"(?s)of endpoint 0 ended with exit code 3 before .*\nno memory"):
        begin(launch, *processes)
    assert launch.log_tail(0) == "no memory"
    assert list(launch.pids()) == [0]  # the second was never started


class Refusing(Here):
    """A node that nothing can enter."""

    spec = SimpleNamespace(name="icb-n0")

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        raise ProvisionError("not attached")


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (True, "node icb-n0 is gone: something outside this session has ended it; not attached"),
        (False, "not attached"),
    ],
)
def test_a_node_that_is_gone_before_a_process_enters_it_is_named(tmp_path: Path, *, gone: bool, said: str) -> None:
    init = Here().spawn(python("time.sleep(60)"), cpus=[CPU], log=tmp_path / "init.log")
    nodes: Any = [Refusing()]
    launch = RunningLaunch(LaunchSite(nodes, [CPU], tmp_path, {0: init.pid}), "l1")
    try:
        if gone:
            os.kill(init.pid, signal.SIGKILL)
            init.wait(5)
        with pytest.raises(ProvisionError) as caught:
            begin(launch, process(0, ""))
    finally:
        launch.end()
        init.stop(term_s=0)
    assert str(caught.value) == said


def test_a_node_that_took_its_link_along_is_at_fault_and_not_the_switch(tmp_path: Path) -> None:
    class Broken:
        def check(self) -> None:
            raise ProvisionError("the port p0 is gone")

    init = Here().spawn(python("time.sleep(60)"), cpus=[CPU], log=tmp_path / "init.log")
    arguments: Any = (Broken(), {0: Refusing()}, {0: init.pid})
    try:
        with pytest.raises(ProvisionError, match=r"^the port p0 is gone$"):
            check_switch(*arguments)
    finally:
        init.stop(term_s=0)
    with pytest.raises(ProvisionError, match=r"^node icb-n0 is gone: something outside this session has ended it$"):
        check_switch(*arguments)


def test_one_that_someone_has_stopped_is_reported_before_its_log(launch: RunningLaunch) -> None:
    script = "print('waiting', file=sys.stderr, flush=True); print('here', flush=True); time.sleep(60)"
    begin(launch, process(0, script))
    assert launch.poll(30.0).lines == ((0, "here"),)
    pid = launch.pids()[0]
    assert launch.log_tail(0) == "waiting"
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    assert re.fullmatch(rf"\S+ \(process {pid}\) was stopped by a signal, as SIGSTOP does\nwaiting", launch.log_tail(0))
    os.kill(pid, signal.SIGCONT)


def test_one_that_never_serves_is_reported_in_time(launch: RunningLaunch, tmp_path: Path) -> None:
    processes = process(0, "time.sleep(60)", socket=str(tmp_path / "s")), process(1, "", stage=1)
    with pytest.raises(WorkloadError, match=r"has not opened .*/s within 0.3 s; its log is empty"):
        begin(launch, *processes, hello_timeout_s=0.3)
    assert not launch.live


def test_end_asks_then_kills(launch: RunningLaunch) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up')\nwhile True: time.sleep(60)"
    polite = "print('up')\nsys.stdin.read()"
    begin(launch, process(0, deaf), process(1, polite))
    up = 0
    while up < 2:
        up += len(launch.poll(5).lines)
    assert launch.live
    pids = launch.pids()
    began = time.monotonic()
    launch.end()
    launch.end()
    assert time.monotonic() - began < 5
    assert not launch.live
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())


def test_logs_go_with_the_launch(launch: RunningLaunch, tmp_path: Path) -> None:
    begin(launch, process(0, "print('word', file=sys.stderr)"))
    everything(launch)
    assert (tmp_path / "l1-0.log").read_text() == "word\n"
    assert launch.log_tail(1) == ""
    launch.end()
    launch.remove_logs()
    assert list(tmp_path.iterdir()) == []


def test_a_process_finds_its_files_in_the_directory_of_its_node(tmp_path: Path) -> None:
    nodes: Any = [Here()]
    (tmp_path / "n0/files").mkdir(parents=True)
    (tmp_path / "n0/files/old").touch()
    found = RunningLaunch(LaunchSite(nodes, [CPU], tmp_path, files=tmp_path), "l1")
    script = "import os; print(os.listdir(sys.argv[1]), open(sys.argv[1] + '/a').read())"
    planned = PlannedProcess(0, (*python(script), "@files"), files=(("a", "in @files"),))
    begin(found, planned)
    lines, _ = everything(found)
    found.end()
    assert lines == [(0, f"['a'] in {tmp_path}/n0/files")]


def test_a_process_whose_input_is_full_is_named(launch: RunningLaunch) -> None:
    """Another process of its node can fill it: it opens the pipe anew, by /proc/PID/fd/0."""
    fill = """
        own = os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True: os.write(own, b"x" * 4096)
        except BlockingIOError: print("full")
        time.sleep(60)
    """
    begin(launch, process(0, "import os\n" + textwrap.dedent(fill)))
    assert launch.poll(10).lines == ((0, "full"),)
    with pytest.raises(WorkloadError, match=r"^python\S* of endpoint 0 does not read its input, which is full$"):
        launch.start(0.1)
