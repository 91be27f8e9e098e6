# SPDX-License-Identifier: BSD-3-Clause
"""Starts a process inside the namespaces of another one, as a child of this process.

A process enters a PID namespace with its children alone, so a helper enters all namespaces and makes the child. The
child has the helper's parent as its own (CLONE_PARENT): this process waits for it and gets its exit code.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.answers import read_answer
from pytest_icbench.host.namespaces import check_result, setns
from pytest_icbench.host.process import Process, refused_process

#: The namespaces of a container, in the order in which they are entered. Files are last, because all namespaces are
#: opened by path first. The user namespace is the host's.
_NAMESPACES = ("cgroup", "ipc", "uts", "net", "pid", "mnt")
_CLONE_PARENT = 0x8000
_PR_CAPBSET_DROP = 24
#: The number of the system call clone(2), by machine.
_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
#: Exit codes of a program that cannot be executed, as in shells.
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_PID = struct.Struct("=i")
#: How long the helper may take to make the child, in seconds.
HELPER_S = 10.0
_libc = ctypes.PyDLL(None, use_errno=True)  # keeps Python's lock: the child is a fork of one thread


def can_enter() -> bool:
    """Whether the machine's system calls are known here."""
    return platform.machine() in _CLONE


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a process in a container.

    Attributes:
        env: all variables of its environment.
        cgroups: directories of the groups that it joins.
        capabilities: the numbers of the capabilities that it keeps; root has no others inside.
    """

    cpus: Sequence[int]
    env: Mapping[str, str]
    cgroups: Sequence[Path]
    capabilities: Collection[int]


def start_within(pid: int, argv: Sequence[str], bounds: Bounds, *, log: Path) -> Process:
    """Starts a process in the namespaces of another one, with pipes as standard input and output.

    Args:
        pid: the process whose namespaces are entered.
        log: file to which its standard error is appended.

    Raises ProvisionError if the other process has ended, or the kernel refuses.
    """
    words = [str(word) for word in argv]
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="ascii"))
    dropped = sorted({*range(last + 1)} - {*bounds.capabilities})
    with ExitStack() as stack:
        try:
            names = [_open_until_exit(stack, f"/proc/{pid}/ns/{name}") for name in _NAMESPACES]
            groups = [_open_until_exit(stack, str(group / "cgroup.procs"), os.O_WRONLY) for group in bounds.cgroups]
            sink = _open_until_exit(stack, str(log), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise ProvisionError(f"{words[0]} cannot enter process {pid}: {error.strerror}: {error.filename}") from None
        in_read, in_write = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, in_read)
        out_read, out_write = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, out_write)
        try:
            child = _fork_child(names, groups, _Job(words, bounds, dropped, (in_read, out_write, sink)))
        except ProvisionError:
            os.close(in_write)
            os.close(out_read)
            raise
    return Process(child, words, log, os.fdopen(in_write, "wb", buffering=0), os.fdopen(out_read, "rb", buffering=0))


@dataclass(frozen=True, slots=True)
class _Job:
    """A program that the child executes: its bounds, the capabilities to drop, and descriptors of its streams."""

    argv: Sequence[str]
    bounds: Bounds
    dropped: Sequence[int]
    streams: Sequence[int]


def _open_until_exit(stack: ExitStack, path: str, flags: int = os.O_RDONLY) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    stack.callback(os.close, descriptor)
    return descriptor


def _fork_child(namespaces: Sequence[int], groups: Sequence[int], job: _Job) -> int:
    """Makes the child by a helper and returns its pid. Raises ProvisionError with the helper's message."""
    said_read, said_write = os.pipe2(os.O_CLOEXEC)
    with warnings.catch_warnings():
        # Helper and child need no lock that another thread may have held at the fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            helper = os.fork()
        except OSError as error:
            os.close(said_read)
            os.close(said_write)
            raise ProvisionError(f"{job.argv[0]} cannot be started: {refused_process(error)}") from None
    if helper == 0:
        _run_helper(namespaces, groups, said_write, job)
    os.close(said_write)
    said = b""
    with os.fdopen(said_read, "rb", buffering=0) as reader, suppress(TimeoutError):
        # It writes once. The child has the pipe, too, until it executes its program, and any process of the container
        # can stop it before that.
        said = read_answer(reader, bool, time.monotonic() + HELPER_S)
    if not said:
        os.kill(helper, signal.SIGKILL)
    os.waitpid(helper, 0)
    if len(said) != _PID.size:
        reason = said.decode(errors="replace") or "its helper was killed, or stood still"
        raise ProvisionError(f"{job.argv[0]} cannot be started in the container: {reason}")
    return int(_PID.unpack(said)[0])


def _run_helper(namespaces: Sequence[int], groups: Sequence[int], said: int, job: _Job) -> NoReturn:
    """Enters everything, makes the child, and writes its pid or the error to ``said``. Never returns."""
    try:
        for group in groups:
            os.write(group, b"0")
        for namespace in namespaces:
            setns(namespace, 0)
        os.chdir("/")
        pid = check_result(_libc.syscall(_CLONE[platform.machine()], _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
        if pid == 0:
            _execute(job)
        os.write(said, _PID.pack(pid))
    except OSError as error:
        os.write(said, refused_process(error).encode())
    finally:
        os._exit(0)


def _execute(job: _Job) -> NoReturn:
    """Becomes the program. Never returns."""
    code = _NOT_EXECUTABLE
    try:
        os.setsid()
        # Python ignores these signals, and an ignored signal stays ignored after exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for target, stream in enumerate(job.streams):
            os.dup2(stream, target)
        os.sched_setaffinity(0, job.bounds.cpus)
        for capability in job.dropped:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(job.argv[0], list(job.argv), job.bounds.env)
    except FileNotFoundError:
        code = _NOT_FOUND
        os.write(2, f"{job.argv[0]} cannot be executed: the container does not have it\n".encode())
    except OSError as error:
        os.write(2, f"{job.argv[0]} cannot be executed: {error.strerror}\n".encode())
    finally:
        os._exit(code)
