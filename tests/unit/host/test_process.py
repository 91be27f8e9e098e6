# SPDX-License-Identifier: BSD-3-Clause
"""Processes: pipes, ends, groups, marks, bounds. Real processes; no root needed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from pytest_icbench.errors import NotStarted, ProvisionError
from pytest_icbench.host import answers
from pytest_icbench.host import process as module
from pytest_icbench.host.process import Process, ProcessPlace, Spawner, run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def spawner() -> Spawner:
    return Spawner("unitab")


def wait_for(path: Path, timeout_s: float = 5.0) -> str:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.005)
    raise AssertionError(f"{path} stays empty")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_pipes_carry_text_and_the_exit_code_is_kept(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sh", "-c", "read line; echo got $line; echo prose >&2; exit 7"], log=log, pipes=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.poll() is None
    process.stdin.write(b"go\n")
    assert process.stdout.read(100) == b"got go\n"
    assert process.wait(5) == 7
    assert process.poll() == 7
    assert process.tail() == "prose"
    assert process.stop() == 7
    assert process.stdout.closed


def test_without_pipes_all_goes_to_the_log(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sh", "-c", "cat; echo out; echo err >&2"], log=log)
    assert process.wait(5) == 0
    assert sorted(log.read_text().split()) == ["err", "out"]


@pytest.mark.parametrize("pipes", [True, False])
def test_a_program_begins_once_it_has_joined_its_groups(
    spawner: Spawner, log: Path, tmp_path: Path, pipes: bool
) -> None:
    def join(pid: int) -> None:
        time.sleep(0.1)
        (tmp_path / "joined").write_text(str(pid))

    script = f"echo $$ $(cat {tmp_path}/joined) $(cat) >&2; exit 3"
    process = spawner.start(["sh", "-c", script], log=log, place=ProcessPlace(join=join), pipes=pipes)
    if process.stdin is not None:
        process.stdin.write(b"given")
        process.stdin.close()
    assert (process.stdin is not None) is pipes
    assert process.wait(5) == 3
    assert log.read_text().split() == [str(process.pid)] * 2 + ["given"] * pipes


def test_a_program_that_cannot_join_its_groups_never_begins(spawner: Spawner, log: Path, tmp_path: Path) -> None:
    pids: list[int] = []

    def refuse(pid: int) -> None:
        pids.append(pid)
        raise ProvisionError("no such group")

    with pytest.raises(ProvisionError, match="no such group"):
        spawner.start(["touch", str(tmp_path / "begun")], log=log, place=ProcessPlace(join=refuse))
    assert not alive(*pids)
    assert not (tmp_path / "begun").exists()


def test_a_program_that_is_killed_before_it_begins_has_the_signal_as_its_end(spawner: Spawner, log: Path) -> None:
    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    process = spawner.start(["true"], log=log, place=ProcessPlace(join=kill))
    assert process.wait(5) == -signal.SIGKILL


def test_a_program_that_is_missing_is_named_before_its_groups_are_joined(spawner: Spawner, log: Path) -> None:
    with pytest.raises(NotStarted, match="no-such-program cannot be started"):
        spawner.start(["no-such-program"], log=log, place=ProcessPlace(join=lambda pid: pytest.fail(f"{pid} joined")))


def test_the_signal_that_ended_it(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sleep", "60"], log=log)
    process.signal(signal.SIGKILL)
    assert process.wait(5) == -signal.SIGKILL
    process.signal(signal.SIGKILL)


def test_a_bounded_wait_names_it_and_shows_its_log(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sh", "-c", "echo why >&2; exec sleep 60"], log=log)
    try:
        wait_for(log)
        with pytest.raises(ProvisionError, match=r"^sh \(pid \d+\) has not ended within 0.05 s; end of .*\nwhy$"):
            process.wait(0.05)
    finally:
        assert process.stop() == -signal.SIGTERM


def test_stop_kills_what_ignores_sigterm_and_its_group(spawner: Spawner, log: Path, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"trap '' TERM; sleep 60 & echo $! > {child}; while :; do sleep 60; done"
    process = spawner.start(["sh", "-c", script], log=log)
    pid = int(wait_for(child))
    begin = time.monotonic()
    assert process.stop(term_s=0.1) == -signal.SIGKILL
    assert time.monotonic() - begin < 2
    deadline = time.monotonic() + 2
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)
    assert process.stop() == -signal.SIGKILL


def test_children_that_outlive_their_leader_go_with_stop(spawner: Spawner, log: Path, tmp_path: Path) -> None:
    child = tmp_path / "child"
    process = spawner.start(["sh", "-c", f"sleep 60 & echo $! > {child}"], log=log)
    pid = int(wait_for(child))
    while process._ended() is False:
        time.sleep(0.005)
    assert alive(pid)
    assert process.stop() == 0
    deadline = time.monotonic() + 2
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


def test_a_stopped_process_can_be_stopped(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sleep", "60"], log=log)
    process.signal(signal.SIGSTOP)
    assert process.stop() == -signal.SIGTERM


def test_a_process_reports_that_it_is_stopped(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sleep", "60"], log=log)
    for number, stopped in ((signal.SIGSTOP, True), (signal.SIGCONT, False), (signal.SIGSTOP, True)):
        process.signal(number)
        deadline = time.monotonic() + 5
        while process.is_stopped is not stopped and time.monotonic() < deadline:
            time.sleep(0.005)
        assert process.is_stopped is stopped
        assert process.poll() is None
    assert process.stop() == -signal.SIGTERM
    assert not process.is_stopped


def test_it_carries_the_session_and_its_own_environment(spawner: Spawner, log: Path) -> None:
    process = spawner.start(["sh", "-c", "echo $ICBENCH_SESSION $EXTRA $LC_ALL"], log=log, env={"EXTRA": "1"})
    assert process.wait(5) == 0
    assert log.read_text() == "unitab 1 C\n"
    assert spawner.run(["sh", "-c", "echo $ICBENCH_SESSION"], timeout_s=5).stdout == "unitab\n"


def test_dpdk_keeps_its_files_with_the_session(log: Path, tmp_path: Path) -> None:
    process = Spawner("unitab", tmp_path).start(["sh", "-c", "echo $RUNTIME_DIRECTORY"], log=log)
    assert process.wait(5) == 0
    assert log.read_text() == f"{tmp_path}\n"


def test_pinning_leaves_the_caller_where_it_was(spawner: Spawner, log: Path) -> None:
    allowed = os.sched_getaffinity(0)
    chosen = max(allowed)
    process = spawner.start(["sleep", "60"], log=log, cpus=[chosen])
    try:
        assert os.sched_getaffinity(process.pid) == {chosen}
        assert os.sched_getaffinity(0) == allowed
        assert os.getpgid(process.pid) == process.pid
        assert os.getsid(process.pid) == os.getsid(0)
    finally:
        process.stop()


def test_a_cpu_that_is_not_there(spawner: Spawner, log: Path) -> None:
    with pytest.raises(ProvisionError, match="CPUs 1000 cannot be used"):
        spawner.start(["sleep", "60"], log=log, cpus=[1000])


def test_a_missing_program_is_named(spawner: Spawner, log: Path) -> None:
    with pytest.raises(ProvisionError, match=r"^no-such-program cannot be started .*: install it or give its path$"):
        spawner.start(["no-such-program"], log=log)
    with pytest.raises(ProvisionError, match=r"^no-such-program cannot be started"):
        run(["no-such-program"], timeout_s=1)


def test_a_missing_namespace_is_named(spawner: Spawner, log: Path) -> None:
    with pytest.raises(ProvisionError, match="/proc/0/ns/net cannot be entered"):
        spawner.start(["true"], log=log, place=ProcessPlace("/proc/0/ns/net"))


def test_run_gives_output_and_refuses_failures() -> None:
    assert run(["cat"], timeout_s=5, input="hello").stdout == "hello"
    assert run(["sh", "-c", "exit 3"], timeout_s=5, check=False).returncode == 3
    with pytest.raises(ProvisionError) as caught:
        run(["sh", "-c", "echo reason >&2; exit 3"], timeout_s=5)
    assert str(caught.value) == "`sh -c echo reason >&2; exit 3` failed with exit code 3:\nreason"


def test_run_refuses_an_end_by_a_signal_whatever_exit_codes_it_takes() -> None:
    with pytest.raises(ProvisionError, match=r"^`sh -c kill -9 \$\$` was killed by signal 9 \(Killed\)$"):
        run(["sh", "-c", "kill -9 $$"], timeout_s=5, check=False)


def test_run_is_bounded_and_kills_the_whole_group(tmp_path: Path) -> None:
    child = tmp_path / "child"
    begin = time.monotonic()
    with pytest.raises(ProvisionError, match=r"has not ended within 0.3 s and was killed"):
        run(["sh", "-c", f"sleep 60 & echo $! > {child}; wait"], timeout_s=0.3)
    assert time.monotonic() - begin < 3
    deadline = time.monotonic() + 2
    while alive(int(child.read_text())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(int(child.read_text()))


def test_a_child_of_other_code_is_waited_for(log: Path) -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "raise SystemExit(5)"], os.environ)
    process = Process(pid, ["python"], log)
    assert process.wait(10) == 5
    assert process.name == "python"
    assert process.tail() == ""


def test_an_adopted_child_in_our_group_is_stopped_alone() -> None:
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)
    process = Process(pid, ["sleep"])
    assert process.stop() == -signal.SIGTERM


def test_a_child_that_somebody_else_reaped() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], os.environ)
    process = Process(pid, ["true"])
    os.waitpid(pid, 0)
    assert process.wait(1) == 255
    assert process.stop() == 255


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_command_that_prints_without_end_is_killed_at_a_bound(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(answers, "ANSWER_MAX_BYTES", 2**20)
    began = time.monotonic()
    with pytest.raises(
        ProvisionError, match=rf"^`sh -c exec yes >&{stream}` was killed: it has written more than 1 MiB$"
    ):
        run(["sh", "-c", f"exec yes >&{stream}"], timeout_s=60)
    assert time.monotonic() - began < 10


def test_the_time_limit_holds_for_a_command_that_goes_on_printing() -> None:
    began = time.monotonic()
    with pytest.raises(ProvisionError, match=r"has not ended within 0\.3 s and was killed$"):
        run(["sh", "-c", "while :; do echo x; done"], timeout_s=0.3)
    assert time.monotonic() - began < 3


def test_a_command_gets_its_input_and_an_end_of_it() -> None:
    assert run(["cat"], timeout_s=5, input="a\nb" * 100_000).stdout == "a\nb" * 100_000
    assert run(["cat"], timeout_s=5).stdout == run(["cat"], timeout_s=5, input="").stdout == ""


def test_a_command_that_cannot_be_killed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in uninterruptible sleep, or in a frozen group."""
    pids: list[int] = []
    monkeypatch.setattr(module, "_KILLED_S", 0.1)
    monkeypatch.setattr(os, "killpg", lambda pid, _signal: pids.append(pid))
    began = time.monotonic()
    with pytest.raises(ProvisionError, match=r"has not ended within 0\.2 s"):
        run(["sleep", "10"], timeout_s=0.2)
    assert time.monotonic() - began < 5
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)


def test_the_end_of_a_log_is_bounded_however_its_writer_changes_its_length(log: Path) -> None:
    """A process has its log open for writing, and can cut it and make it longer at any moment."""
    script = "import os, sys\nwhile True: os.truncate(sys.argv[1], 0); os.truncate(sys.argv[1], 1 << 24)"
    log.touch()
    process = Process(os.posix_spawn(sys.executable, [sys.executable, "-c", script, str(log)], os.environ), ["x"], log)
    try:
        deadline, longest = time.monotonic() + 1.0, 0
        while time.monotonic() < deadline:
            longest = max(longest, len(process.tail(1)))
        assert 0 < longest <= 65536
    finally:
        process.stop(term_s=0)
