# SPDX-License-Identifier: BSD-3-Clause
"""One session at a time: the message, a killed holder, a child that outlives the holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.host import lock as module
from pytest_icbench.host.lock import (
    SEVERAL_HOSTS_VARIABLE,
    HostLock,
    SessionBusyError,
    lock_kernel,
    unlock_kernel,
)

_HOLD = """
import os, sys, time
from pathlib import Path
from pytest_icbench.host.lock import HostLock
lock = HostLock(Path(sys.argv[1]))
if sys.argv[2] == "child" and os.fork() == 0:
    time.sleep(60)
print(os.getpid(), flush=True)
time.sleep(60)
"""


def holder(path: Path, *, child: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), child], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == str(process.pid)
    return process


def end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "run" / "lock"
    lock = HostLock(path)
    assert path.exists()
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("obstacle", ["directory", "link"])
def test_what_is_no_file_is_named_with_the_remedy(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / "run" / "lock"
    path.parent.mkdir(mode=0o700)
    path.mkdir() if obstacle == "directory" else path.symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match=rf"^the lock of sessions, {path}, cannot be opened \(.+\): .* remove it$"):
        HostLock(path)
    assert path.is_dir() or path.is_symlink()


def test_a_second_one_in_this_process(tmp_path: Path) -> None:
    lock = HostLock(tmp_path / "lock")
    with pytest.raises(SessionBusyError, match="this process already has a session"):
        HostLock(tmp_path / "lock")
    lock.release()
    HostLock(tmp_path / "lock").release()


def test_another_process_is_named_with_its_time(tmp_path: Path) -> None:
    other = holder(tmp_path / "lock")
    try:
        with pytest.raises(UsageError) as caught:
            HostLock(tmp_path / "lock")
        sentence = str(caught.value)
        assert f"(process {other.pid}, since {time.strftime('%Y-%m-%dT', time.gmtime())}" in sentence
        assert "\n" not in sentence
        assert (tmp_path / "lock").exists()
    finally:
        end(other)
    HostLock(tmp_path / "lock").release()


def test_a_forked_child_does_not_keep_it(tmp_path: Path) -> None:
    other = holder(tmp_path / "lock", child="child")
    os.kill(other.pid, signal.SIGKILL)
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    try:
        HostLock(tmp_path / "lock").release()
    finally:
        end(other)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user: run pytest as root")
def test_an_ordinary_user_cannot_open_the_lock(tmp_path: Path) -> None:
    lock = HostLock(tmp_path / "run" / "lock")
    lock.path.parent.chmod(0o755)  # whatever becomes of the directory
    control = lock.path.with_name("control")
    control.touch(0o644)
    script = "import os, sys; os.setresuid(65534, 65534, 65534); open(sys.argv[1])"
    opened = {
        path: subprocess.run(
            [sys.executable, "-c", script, path.name], cwd=path.parent, capture_output=True, text=True, check=False
        ).stderr
        for path in (control, lock.path)
    }
    control.unlink()
    lock.release()
    assert opened[control] == ""
    assert "PermissionError" in opened[lock.path]


_CONTAINER = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child"]
_LOCK_KERNEL = """
import os, sys, time
from pytest_icbench.host.lock import lock_kernel, unlock_kernel
fd = lock_kernel(["debugfs"])  # sessions on this host use another one
if os.fork() == 0:  # as LXC's monitor
    time.sleep(60)
print(fd is not None, flush=True)
sys.stdin.readline()
unlock_kernel(fd)
print("released", flush=True)
time.sleep(60)
"""


def _mounts_of_debugfs() -> list[str]:
    """Of the file system that is locked alone: other tests name namespaces meanwhile, which are mounts too."""
    return [line for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "debugfs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and file systems need root: run pytest as root")
def test_containers_of_a_host_share_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEVERAL_HOSTS_VARIABLE, raising=False)
    mounted = _mounts_of_debugfs()
    other = subprocess.Popen(
        [*_CONTAINER, sys.executable, "-c", _LOCK_KERNEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with pytest.raises(SessionBusyError, match=r"another icbench session .* with another /run \(process \d+\)"):
            lock_kernel(["debugfs"])
        hidden = subprocess.run(
            [*_CONTAINER, "--mount-proc", sys.executable, "-c", _LOCK_KERNEL],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "its process is not visible here" in hidden.stderr
        monkeypatch.setenv(SEVERAL_HOSTS_VARIABLE, "1")
        assert lock_kernel(["debugfs"]) is None
        monkeypatch.delenv(SEVERAL_HOSTS_VARIABLE)
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "released\n"
        unlock_kernel(lock_kernel(["debugfs"]))  # although a forked child keeps the descriptor
    finally:
        other.kill()
        other.communicate()
    assert _mounts_of_debugfs() == mounted


@pytest.mark.skipif(os.geteuid() != 0, reason="capabilities are dropped: run pytest as root")
def test_without_the_right_to_mount_there_is_no_lock_and_no_error() -> None:
    script = "from pytest_icbench.host.lock import lock_kernel; print(lock_kernel(['debugfs']))"
    dropped = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", script]
    assert subprocess.run(dropped, capture_output=True, text=True, check=True).stdout == "None\n"


def test_many_processes_get_it_one_by_one(tmp_path: Path) -> None:
    """The file is removed with each release; still two never hold it together."""
    script = """
import os, sys
from pathlib import Path
from pytest_icbench.host.lock import HostLock, SessionBusyError
path, inside = Path(sys.argv[1]), Path(sys.argv[2])
got = 0
while got < 30:
    try:
        lock = HostLock(path)
    except SessionBusyError:
        continue
    os.mkdir(inside)
    os.rmdir(inside)
    lock.release()
    got += 1
"""
    arguments = [sys.executable, "-c", script, str(tmp_path / "run" / "lock"), str(tmp_path / "inside")]
    processes = [subprocess.Popen(arguments) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]


def test_a_lock_that_is_another_file_at_each_look_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_VANISHES_S", 0.1)
    monkeypatch.setattr(HostLock, "_try", lambda _self: None)
    with pytest.raises(UsageError, match=r"lock, is another file at each look, .*: mount a tmpfs"):
        HostLock(tmp_path / "run" / "lock")
