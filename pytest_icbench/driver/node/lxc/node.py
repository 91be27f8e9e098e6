# SPDX-License-Identifier: BSD-3-Clause
"""A node as an LXC application container: its init is the workload's ``pause``, its processes are attached.

liblxc is imported only when a container is requested, because python-lxc is an optional dependency.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from pytest_icbench.driver.node.cgroup_layout import Layout
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.lxc.config import Device, config
from pytest_icbench.driver.node.lxc.remains import end_container, ends
from pytest_icbench.driver.node.lxc.rootfs import mount_point, skeleton
from pytest_icbench.driver.node.protocol import NodeFacts, NodeSpec
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.process import SESSION_VARIABLE, Process, refused_process
from pytest_icbench.host.resource.hugepages import sizes_kib
from pytest_icbench.host.root import Root, format_cpu_list
from pytest_icbench.host.session import HostSession

#: The time in seconds that a container may take to start.
START_TIMEOUT_S = 10.0
#: The containers of this process that have not been stopped. A journal's undo finds their processes here.
_started: dict[tuple[str, str], LxcNode] = {}


def _imported() -> ModuleType:
    """Imports python-lxc. Raises ImportError."""
    import lxc

    return lxc  # type: ignore[no-any-return]


def load() -> ModuleType:
    """Imports python-lxc. Raises Unsupported with the remedy if it is not installed."""
    try:
        return _imported()
    except ImportError as error:
        raise Unsupported(
            f"LXC containers need python-lxc ({error}): pip install 'pytest-icbench[lxc]' (needs lxc-dev),"
            " or use --icbench-node netns"
        ) from None


def version() -> str:
    """Returns the version of liblxc. Raises ImportError if python-lxc is not installed."""
    return str(_imported().version)


def _device(path: Path) -> Device:
    """Returns the device at a path. Raises ProvisionError if there is none."""
    try:
        status = path.stat()
    except OSError as error:
        raise ProvisionError(f"device {path} cannot be given to a container: {error.strerror}") from None
    if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
        raise ProvisionError(f"{path} cannot be given to a container: it is not a device")
    kind = "c" if stat.S_ISCHR(status.st_mode) else "b"
    return Device(path, f"{kind} {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}")


def _start(container: Any, command: tuple[str, ...]) -> str | None:
    """Starts a configured container from a separate process. Returns the failure, None if it runs.

    liblxc moves the caller of ``start`` into the monitor's cgroups. It would take this process out of its cgroups and
    leave groups that cannot be removed. It also waits without a bound while it holds Python's lock.
    """
    with warnings.catch_warnings():
        # The child calls liblxc and ends. It needs no lock that another thread may have held at the fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            pid = os.fork()
        except OSError as error:
            return f"did not start: {refused_process(error)}"
    if pid == 0:
        code = 1
        try:
            os.setsid()
            # close_fds: the monitor is a fork too, and would keep open files, the session's lock included.
            if container.start(useinit=False, daemonize=True, close_fds=True, cmd=command):
                code = 0
        finally:
            os._exit(code)
    if not ends(pid, START_TIMEOUT_S):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return f"did not start within {START_TIMEOUT_S:g} s"
    return None if os.waitpid(pid, 0)[1] == 0 else "did not start"


def _forking(function: Callable[..., int], *args: Any, **keywords: Any) -> int:
    """Calls C code that forks, between the calls that CPython requires of the parent.

    python-lxc makes only the child's call (``PyOS_AfterFork_Child``), which aborts from Python 3.13 on without the
    parent's call before it.
    """
    ctypes.pythonapi.PyOS_BeforeFork()
    try:
        return function(*args, **keywords)
    finally:
        ctypes.pythonapi.PyOS_AfterFork_Parent()


def _enter(job: tuple[list[str], Sequence[int], Any]) -> int:
    """Executes a command in the attached child, after the fork. Nothing here may wait for another thread.

    Args:
        job: command line, CPUs, and liblxc's function that executes a command.
    """
    argv, cpus, run_command = job
    os.setsid()
    # Python ignores these signals, and an ignored signal stays ignored after exec.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.sched_setaffinity(0, cpus)
    code = int(run_command(argv))
    # exec has failed. 126: not executable, 127: not found.
    os.write(2, f"{argv[0]} cannot be executed: a container has only /usr and the workload's directory\n".encode())
    return code


class LxcNode:
    """A node in an LXC container, see ``node.protocol.Node``."""

    kind: ClassVar[str] = "lxc"

    @staticmethod
    def probe(session: HostSession) -> None:
        """Implements ``Node.probe``."""
        load()
        if os.geteuid() != 0:
            raise Unsupported("LXC containers need root: run pytest as root")
        layout = Layout.read(session.root)
        missing = [name for name in ("cpuset",) if layout.holding(name) is None]
        if missing:
            raise Unsupported(
                f"LXC containers need the cgroup controller {missing[0]} below /sys/fs/cgroup: mount it,"
                " or use --icbench-node netns"
            )

    @staticmethod
    def findings() -> Iterator[Finding]:
        """Implements ``Node.findings``."""
        try:
            installed = version()
        except ImportError as error:
            yield Finding(
                Level.MISSING,
                "LXC",
                f"python-lxc cannot be imported ({error})",
                "apt install lxc lxc-dev && pip install lxc, or use --icbench-node netns",
            )
        else:
            yield Finding(Level.GOOD, "LXC", f"version {installed}")

    @staticmethod
    def treatment() -> dict[str, Any]:
        """Implements ``Node.treatment``."""
        return {"lxc": str(load().version)}

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        self.spec = spec
        self._session = session
        self._lxc = load()
        self._path = session.dir / "lxc"
        self._log = self._path / f"{spec.name}.log"
        self._container: Any = None
        self._entry: int | None = None
        self._processes: list[Process] = []
        self._paused = False

    def start(self) -> NodeFacts:
        """Starts the container, whose init then waits.

        Raises ProvisionError with the end of liblxc's log, or if the kernel grants other CPUs than requested.
        """
        session, spec = self._session, self.spec
        program = workload_path()
        frame = skeleton(session, program)
        for directory in spec.sockets:
            mount_point(frame.path, directory)
        devices = [_device(path) for path in spec.devices]
        self._path.mkdir(exist_ok=True)
        self._group = SessionGroup.of(session)
        self._entry = session.journal.record(
            "container", lxcpath=str(self._path), name=spec.name, group=self._group.name
        )
        _started[str(self._path), spec.name] = self
        container = self._lxc.Container(spec.name, str(self._path))
        container.clear_config()
        items = config(
            spec,
            layout=self._group.layout,
            group=self._group.name,
            skeleton=frame,
            devices=devices,
            session=session.id,
            log=self._log,
            hugepage_sizes_kib=sizes_kib(session.root),
        )
        for key, value in items:
            # A liblxc built without AppArmor does not know its key and does not need it.
            if not container.append_config_item(key, value) and not key.startswith("lxc.apparmor."):
                self.stop()
                raise ProvisionError(f"container {spec.name} cannot be configured: liblxc refuses {key} = {value}")
        prepared_ns = time.perf_counter_ns()
        failure = _start(container, (str(program), "pause"))
        init = -1 if failure else int(container.init_pid)
        if init <= 0:
            self.stop()
            raise ProvisionError(f"container {spec.name} {failure or 'ended at once'}{self._log_tail()}")
        self._container = container
        try:
            if spec.cpu is not None:
                self._group.contract(spec.name, spec.cpu)
            self._group.unify_cpu()
            self._check_cpus()
        except ProvisionError:
            self.stop()
            raise
        return NodeFacts(spec.name, init, {"kind": self.kind, "lxc": str(self._lxc.version)}, prepared_ns)

    def _check_cpus(self) -> None:
        """Raises ProvisionError if the kernel grants the container other CPUs than requested."""
        granted = self._group.layout.effective_cpus(self._session.root, self._group.member(self.spec.name))
        if granted is not None and granted != tuple(sorted(self.spec.cpus)):
            raise ProvisionError(
                f"container {self.spec.name} asked for CPUs {format_cpu_list(self.spec.cpus)} and was granted"
                f" {format_cpu_list(granted) or 'none'}: the others are offline or outside the cpuset above it"
            )

    def _log_tail(self) -> str:
        """Returns the end of liblxc's log for an error message."""
        with suppress(OSError):
            text = self._log.read_text(encoding="utf-8", errors="replace")
            # A line is "lxc NAME DATE LEVEL ...". Warnings only confuse if there are errors.
            lines = text.splitlines()
            errors = [line for line in lines if " ERROR " in line] or lines
            if errors:
                return "; end of liblxc's log:\n" + "\n".join(errors[-15:])
        return f"; liblxc left no log in {self._log}"

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Attaches a process: see ``Node.spawn``. Raises ProvisionError if the node is not running or liblxc fails."""
        if self._container is None or self._paused:
            state = "paused" if self._paused else "not running"
            raise ProvisionError(f"{argv[0]} cannot be started in container {self.spec.name}: it is {state}")
        words = [str(word) for word in argv]
        in_read, in_write = os.pipe2(os.O_CLOEXEC)
        out_read, out_write = os.pipe2(os.O_CLOEXEC)
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            pid = _forking(
                self._container.attach,
                _enter,
                (words, tuple(cpus), self._lxc.attach_run_command),
                stdin=in_read,
                stdout=out_write,
                stderr=sink,
                initial_cwd="/",
                env_policy=self._lxc.LXC_ATTACH_CLEAR_ENV,
                extra_env_vars=(
                    f"{SESSION_VARIABLE}={self._session.id}",
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "HOME=/tmp",
                    "LC_ALL=C",
                ),
            )
        finally:
            for descriptor in (in_read, out_write, sink):
                os.close(descriptor)
        if pid <= 0:
            os.close(in_write)
            os.close(out_read)
            raise ProvisionError(f"{words[0]} was not attached to container {self.spec.name}{self._log_tail()}")
        process = Process.adopt(
            pid, words, log, os.fdopen(in_write, "wb", buffering=0), os.fdopen(out_read, "rb", buffering=0)
        )
        self._processes.append(process)
        self._group.share_cpu(pid, self.spec.name)
        return process

    def pause(self) -> None:
        """Freezes every process within 2 s. Raises ProvisionError, with the node running, if that fails."""
        self._group.freeze(self.spec.name)
        self._paused = True

    def resume(self) -> None:
        """Lets the processes run again. Raises ProvisionError."""
        self._group.thaw(self.spec.name)
        self._paused = False

    def stop(self) -> None:
        """Kills every process, waits for liblxc's monitor and removes the cgroups.

        Raises ProvisionError if a process or a cgroup remains. Then the journal keeps the container.
        """
        if self._entry is None:
            return
        self._container = None
        self._paused = False
        name = self.spec.name
        self._group.thaw(name)
        self.reap()
        end_container(str(self._path), name, self._group.name, self._group.layout, self._session.root)
        _started.pop((str(self._path), name), None)
        self._session.journal.done(self._entry)
        self._entry = None

    def reap(self) -> None:
        """Kills and reaps the attached processes, without which a container's init cannot end."""
        for process in self._processes:
            process.stop(term_s=0)
        self._processes.clear()


def undo_container(lxcpath: str, name: str, group: str) -> None:
    """Ends a container that its session has not ended."""
    node = _started.pop((lxcpath, name), None)
    if node is not None:
        node.reap()
    root = Root()
    end_container(lxcpath, name, group, Layout.read(root), root)


UNDO_KINDS = {
    "container": UndoKind(
        undo_container,
        checks={"lxcpath": entry_checks.container_path, "name": entry_checks.name, "group": entry_checks.group_name},
    )
}
