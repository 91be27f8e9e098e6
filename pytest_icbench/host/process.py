# SPDX-License-Identifier: BSD-3-Clause
"""Processes: their start, their end, and the limits on files and memory.

This module is the only one that starts processes. Every wait is bounded, and its error message has the tail of the
process' log.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_icbench.errors import NotStarted, ProvisionError
from pytest_icbench.host.answers import left_s, read_outputs
from pytest_icbench.host.namespaces import enter_netns


def exit_sentence(code: int) -> str:
    """Returns how a process ended, from its exit code, as a predicate of its name."""
    if code < 0:
        return f"was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with exit code {code}"


def stopped_sentence(name: str, pid: int) -> str:
    """Returns the sentence about a process that others have stopped, and that continues only after SIGCONT."""
    return f"{name} (process {pid}) was stopped by a signal, as SIGSTOP does"


def refused_process(error: OSError) -> str:
    """Returns why the kernel starts no more processes, and the remedy."""
    if error.errno == errno.EAGAIN:
        return "no further process is allowed: raise the pids cgroup's pids.max, kernel.pid_max or kernel.threads-max"
    if error.errno == errno.ENOMEM:
        return "no memory is left for a further process: free some"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "no further file may be opened: raise the limit (ulimit -n), or fs.file-max"
    return error.strerror or str(error)


def not_started(argv: Sequence[str], error: OSError) -> ProvisionError:
    """Returns the error of a program that cannot start: ``NotStarted`` unless the host allows no more processes."""
    if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return ProvisionError(f"{argv[0]} cannot be started: {refused_process(error)}")
    return NotStarted(f"{argv[0]} cannot be started ({error.strerror}): install it or give its path")


#: Upper bounds of the files that a run has open at a time, and of those for each wire between two ports of a switch.
FILES, FILES_A_WIRE = 256, 16


def raise_files(needed: int) -> int | None:
    """Raises the limit on open files to ``needed``. Returns the limit that stands if the host refuses, else None."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))
        except (ValueError, OSError):
            return hard
    return None


def allow_files(wires: int) -> None:
    """Lets this process open the files of a run. Raises ProvisionError if the host allows fewer.

    ``wires``: the most wires of a case: one for each pair, and another for each network function of its chain.
    """
    needed = FILES + FILES_A_WIRE * wires
    if (allowed := raise_files(needed)) is not None:
        raise ProvisionError(
            f"this process may open {allowed:,} files, and the run takes up to {needed:,}: raise the limit"
            f" (ulimit -Hn {needed})"
        )


def refused_memory(log: str) -> str:
    """Returns the clause about the limit that kept memory from a program; empty if its log shows no such refusal."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or "Cannot allocate memory" not in log:
        return ""
    return (
        f": its address space is limited to {soft / 2**30:.1f} GiB, and it was refused memory; raise the limit"
        " (ulimit -v unlimited)"
    )


#: A log that is longer is cut to its end: logs are in memory (a tmpfs).
LOG_MAX_BYTES = 16 * 2**20
_TAIL_BYTES = 65536
#: How long a process may take to end after SIGKILL, in seconds.
_KILLED_S = 5.0
#: The environment variable that marks every process of a session; ``recover`` looks for it.
SESSION_VARIABLE = "ICBENCH_SESSION"


def _tail(path: Path | None, lines: int) -> str:
    """Returns the last lines of a file, of its last 64 KiB at most; empty if it cannot be read."""
    if path is None:
        return ""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            text = log.read(_TAIL_BYTES).decode(errors="replace")  # its writer may make it longer meanwhile
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def cpu_clock_ns(pid: int) -> int | None:
    """Returns the CPU time of all threads of a process; None once it has been reaped."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # clock_getcpuclockid(3): the clock of a process, by its pid
    except OSError:
        return None


def wait_until(condition: Callable[[], object], timeout_s: float, every_s: float = 0.01) -> bool:
    """Waits until a condition is true. Returns whether it is true in time; it is tested at least once."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


class Process:
    """A child of this process, started by a ``Spawner`` or by other code (LXC attach).

    Attributes:
        log: the file of its standard error, and of its output unless that is a pipe; None without one.
        stdin, stdout: unbuffered binary pipes; None without pipes.
    """

    def __init__(
        self,
        pid: int,
        argv: Sequence[str],
        log: Path | None = None,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> None:
        self.pid = pid
        self.argv = tuple(argv)
        self.log = log
        self.stdin = stdin
        self.stdout = stdout
        self._exit: int | None = None
        self._cpu_ns: int | None = None
        self._popen: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        with suppress(OSError):
            self._pidfd = os.pidfd_open(pid)

    @classmethod
    def of_popen(cls, popen: subprocess.Popen[bytes], argv: Sequence[str], log: Path | None) -> Process:
        """Wraps a process that ``subprocess`` has started."""
        process = cls(popen.pid, argv, log, popen.stdin, popen.stdout)
        process._popen = popen
        return process

    @property
    def name(self) -> str:
        """The base name of its program, for messages."""
        return Path(self.argv[0]).name if self.argv else str(self.pid)

    def __repr__(self) -> str:
        return f"<Process {self.name} pid {self.pid}>"

    def _ended(self) -> bool:
        """Returns whether it has ended, without reaping it: until then its pid cannot be reused."""
        if self._exit is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def poll(self) -> int | None:
        """Returns the exit code, None while the process runs.

        The code is negative for the signal that ended it, 255 if other code has reaped it.
        """
        if self._exit is None and self._ended():
            try:
                _, status, used = os.wait4(self.pid, os.WNOHANG)
                self._exit = os.waitstatus_to_exitcode(status)
                self._cpu_ns = round((used.ru_utime + used.ru_stime) * 1e9)
            except ChildProcessError:
                self._exit = 255
            if self._popen is not None:
                self._popen.returncode = self._exit
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
        return self._exit

    @property
    def is_stopped(self) -> bool:
        """Whether a signal such as SIGSTOP has stopped it, so that it runs on only after SIGCONT."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    @property
    def cpu_ns(self) -> int | None:
        """The CPU time of all its threads, also after its end; None if other code has reaped it."""
        if self._exit is None:
            return cpu_clock_ns(self.pid)
        return self._cpu_ns

    def _wait(self, timeout_s: float) -> bool:
        """Returns whether the process ends within ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while not self._ended():
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return False
            if self._pidfd >= 0:
                poller = select.poll()
                poller.register(self._pidfd, select.POLLIN)
                poller.poll(remaining_s * 1000)
            else:
                time.sleep(min(remaining_s, 0.005))
        return True

    def wait(self, timeout_s: float) -> int:
        """Waits for its end and returns the exit code. Raises ProvisionError after ``timeout_s`` seconds."""
        if not self._wait(timeout_s):
            log = f"; end of {self.log}:\n{tail}" if (tail := self.tail()) else ""
            raise ProvisionError(f"{self.name} (pid {self.pid}) has not ended within {timeout_s:g} s{log}")
        code = self.poll()
        assert code is not None
        return code

    def signal(self, number: int) -> None:
        """Sends a signal to its process group if it leads one, else to itself. Does nothing if it has ended."""
        if self._exit is not None:
            return
        with suppress(ProcessLookupError):
            if self._leads_group():
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def _leads_group(self) -> bool:
        try:
            return os.getpgid(self.pid) == self.pid
        except ProcessLookupError:
            return False

    def stop(self, *, term_s: float = 2.0) -> int | None:
        """Ends the process and the rest of its group, with SIGTERM first and SIGKILL at last. Idempotent.

        ``term_s``: seconds between SIGTERM and SIGKILL. Returns the exit code; None if it cannot be killed
        (uninterruptible sleep).
        """
        if self._exit is None:
            if not self._ended():
                self.signal(signal.SIGTERM)
                self.signal(signal.SIGCONT)
                if not self._wait(term_s):
                    self.signal(signal.SIGKILL)
                    self._wait(_KILLED_S)
            self.signal(signal.SIGKILL)  # members that outlive the leader; the zombie still holds the number
            self.poll()
        for pipe in (self.stdin, self.stdout):
            if pipe is not None and not pipe.closed:
                with suppress(OSError):
                    pipe.close()
        return self._exit

    def tail(self, lines: int = 15) -> str:
        """Returns the last lines of its log; empty without one."""
        return _tail(self.log, lines)


@contextmanager
def _pinned(cpus: Sequence[int] | None) -> Iterator[None]:
    """Sets this thread's affinity for the block, which children inherit.

    This is cheaper than a wrapper program, and safe with threads.

    Raises ProvisionError if the CPUs cannot be used.
    """
    if cpus is None:
        yield
        return
    old = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise ProvisionError(
            f"CPUs {','.join(map(str, cpus))} cannot be used ({error.strerror}): they are offline or outside this"
            " process' cpuset"
        ) from None
    try:
        yield
    finally:
        os.sched_setaffinity(0, old)


def _open_input(text: str | None) -> IO[bytes]:
    """Returns a file in memory with the text: a pipe would have to be written while others are read."""
    file = os.memfd_create("icbench-input", os.MFD_CLOEXEC)
    os.write(file, (text or "").encode())
    os.lseek(file, 0, os.SEEK_SET)
    return os.fdopen(file, "rb")


def _as_text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\r\n", "\n")


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    check: bool = True,
    netns: str | None = None,
    input: str | None = None,  # noqa: A002 - the name subprocess uses
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a short command to its end, in the C locale.

    Args:
        timeout_s: seconds until the command is killed.
        check: whether an exit code other than 0 is an error. An end by a signal always is one.
        netns: path of the network namespace to run it in; None for this process'.
        input: text for its standard input.
        env: variables to add to this process' environment.

    Raises NotStarted if it is missing, and ProvisionError if it cannot be started now, takes longer than ``timeout_s``
    seconds, or fails: with the command, how it ended and the end of its standard error.
    """
    words = [str(word) for word in argv]
    line = " ".join(words)
    deadline = time.monotonic() + timeout_s
    with enter_netns(netns), _open_input(input) as given:
        try:
            popen = subprocess.Popen(
                words,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "LC_ALL": "C", **(env or {})},
                process_group=0,
            )
        except OSError as error:
            raise not_started(words, error) from None
    assert popen.stdout is not None
    assert popen.stderr is not None
    with popen.stdout, popen.stderr:
        try:
            out, err = map(_as_text, read_outputs([popen.stdout, popen.stderr], deadline))
            popen.wait(left_s(deadline))
        except BaseException as error:  # Ctrl-C, too: the command must not keep running
            with suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # it cannot be killed: uninterruptible sleep, a frozen group
                popen.wait(_KILLED_S)
            if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
                raise ProvisionError(f"`{line}` has not ended within {timeout_s:g} s and was killed") from None
            if isinstance(error, OSError):
                raise ProvisionError(f"`{line}` was killed: {error.strerror}") from None
            raise
    code = popen.returncode
    if code < 0 or (check and code != 0):
        tail = "\n".join((err or out).strip().splitlines()[-15:])
        how = exit_sentence(code) if code < 0 else f"failed with exit code {code}"
        raise ProvisionError(f"`{line}` {how}" + (f":\n{tail}" if tail else ""))
    return subprocess.CompletedProcess(words, code, out, err)


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """The namespaces and the directory in which a process starts.

    Attributes:
        netns: path of its network namespace; None for this process'.
        cwd: its working directory; None for this process'.
        mount_ns: whether it gets a private mount namespace, so that its mounts end with it.
        join: puts it, by its pid, into its control groups before it executes its program; None for this process'.
    """

    netns: str | None = None
    cwd: Path | None = None
    mount_ns: bool = False
    join: Callable[[int], None] | None = None


#: The namespaces and the directory of this process.
HERE = ProcessPlace()
#: Becomes a program once it has read a line; without pipes, the program's input is empty.
_GATE = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
_GATE_WITHOUT_PIPES = ("/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh")


def _open_gate(process: Process, join: Callable[[int], None], pipes: bool) -> None:
    """Lets a process execute its program once it has joined its groups. Ends it if it cannot."""
    assert process.stdin is not None
    try:
        join(process.pid)
        with suppress(BrokenPipeError):  # it was killed: its exit code says so
            process.stdin.write(b"\n")
        if not pipes:
            process.stdin.close()
            process.stdin = None
    except BaseException:
        process.stop(term_s=0)
        raise


class Spawner:
    """Starts the long-running processes of a session; each carries the session in its environment."""

    def __init__(self, session_id: str, directory: Path | None = None) -> None:
        self.session_id = session_id
        self._logs: set[Path] = set()
        #: DPDK keeps its runtime files below $RUNTIME_DIRECTORY, else it leaves directories in /var/run/dpdk.
        self._defaults = {} if directory is None else {"RUNTIME_DIRECTORY": str(directory)}
        self._added: Mapping[str, str] = {}

    @contextmanager
    def adding(self, env: Mapping[str, str]) -> Iterator[None]:
        """Adds variables to the environment of what is started within the block."""
        before, self._added = self._added, env
        try:
            yield
        finally:
            self._added = before

    def bound(self, log: Path) -> None:
        """Lets ``bound_logs`` cut a log that a process of other code writes."""
        self._logs.add(log)

    def bound_logs(self) -> None:
        """Cuts the logs that have more than ``LOG_MAX_BYTES`` to their last 64 KiB. Those that are gone are dropped."""
        for log in list(self._logs):
            try:
                if log.stat().st_size > LOG_MAX_BYTES:
                    with log.open("r+b") as file:  # their writers append, so they go on at the new end
                        file.seek(-_TAIL_BYTES, os.SEEK_END)
                        tail = file.read(_TAIL_BYTES)
                        file.seek(0)
                        file.truncate()
                        file.write(tail)
            except FileNotFoundError:
                self._logs.discard(log)
            except OSError:
                continue

    def environment(self) -> dict[str, str]:
        """Returns the variables that mark a process as the session's."""
        return {SESSION_VARIABLE: self.session_id}

    def start(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        cpus: Sequence[int] | None = None,
        place: ProcessPlace = HERE,
        env: Mapping[str, str] | None = None,
        pipes: bool = False,
    ) -> Process:
        """Starts a process in a new process group, which Ctrl-C at the terminal does not reach.

        Args:
            log: file to which its standard error is appended, and without ``pipes`` its output too.
            cpus: its CPU affinity; None for this process'.
            place: its namespaces and its working directory.
            env: variables to add to this process' environment.
            pipes: whether standard input and output are pipes. Otherwise the input is empty.

        Raises ProvisionError if it cannot be started.
        """
        words = [str(word) for word in argv]
        command = ["unshare", "--mount", "--propagation", "private", "--", *words] if place.mount_ns else words
        if place.join is not None:
            if shutil.which(words[0]) is None:
                raise not_started(words, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
            command = [*(_GATE if pipes else _GATE_WITHOUT_PIPES), *command]
        pipe = subprocess.PIPE
        self.bound(log)
        with log.open("ab") as sink, enter_netns(place.netns), _pinned(cpus):
            try:
                popen = subprocess.Popen(
                    command,
                    bufsize=0,
                    stdin=pipe if pipes or place.join is not None else subprocess.DEVNULL,
                    stdout=pipe if pipes else sink,
                    stderr=sink,
                    env={
                        **os.environ,
                        "LC_ALL": "C",
                        **self._defaults,
                        **(env or {}),
                        **self._added,
                        **self.environment(),
                    },
                    cwd=place.cwd,
                    process_group=0,
                )
            except OSError as error:
                raise not_started(words, error) from None
        process = Process.of_popen(popen, words, log)
        if place.join is not None:
            _open_gate(process, place.join, pipes)
        return process

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        netns: str | None = None,
        input: str | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Calls the function ``run`` with the session's mark, for commands that may outlive the killed harness."""
        return run(
            argv,
            timeout_s=timeout_s,
            check=check,
            netns=netns,
            input=input,
            env={**(env or {}), **self._added, **self.environment()},
        )


@contextmanager
def realtime() -> Iterator[None]:
    """Gives this thread real-time priority within the block, which takes a few milliseconds.

    Linux 6.18 was observed to keep a runnable thread from its CPU for two seconds, while an endpoint in another control
    group sent and yielded there. Without the right to real-time priority nothing changes.
    """
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    with ExitStack() as undo:
        with suppress(OSError):  # no right to it, or its control group has no time for it
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
            undo.callback(os.sched_setscheduler, 0, policy, parameter)
        yield
