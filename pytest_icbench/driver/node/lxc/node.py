# SPDX-License-Identifier: BSD-3-Clause
"""A node as an LXC application container: its init is the workload's ``pause``, its processes are attached.

liblxc is imported only when a container is requested, because python-lxc is an optional dependency.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from pytest_icbench.driver.node.confinement import Device, environment
from pytest_icbench.driver.node.container import ContainerNode, reap
from pytest_icbench.driver.node.lxc.config import config
from pytest_icbench.driver.node.lxc.remains import end_container, ends
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.node.rootfs import Skeleton
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.cpu_usage import read_process
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.process import Process, refused_process
from pytest_icbench.host.resource.hugepages import sizes_kib
from pytest_icbench.host.root import Root
from pytest_icbench.host.session import HostSession

#: The time in seconds that a container may take to start.
START_TIMEOUT_S = 10.0


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


def _close_all_but(file: Path) -> None:
    """Closes all descriptors except the standard ones and those of a file."""
    kept = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if entry.readlink() == file:
                kept.append(int(entry.name))
    bounds = [2, *sorted(number for number in kept if number > 2), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]
    for before, after in itertools.pairwise(bounds):
        os.closerange(before + 1, after)


def _start(container: Any, command: tuple[str, ...], log: Path) -> str | None:
    """Starts a configured container from a separate process. Returns the failure, None if it runs.

    liblxc moves the caller of ``start`` into the monitor's cgroups. It would take this process out of its cgroups and
    leave groups that cannot be removed. It also waits without a bound while it holds Python's lock.

    Args:
        log: liblxc's, which is open and stays so.
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
            # The monitor is a fork too, and would keep open files, the session's lock included. liblxc's ``close_fds``
            # reads the directory of descriptors anew for each of them, and every container adds one to this process.
            _close_all_but(log)
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


def _enter(job: tuple[Sequence[str], Sequence[int], Any]) -> int:
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


class LxcNode(ContainerNode):
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
        super().__init__(session, spec)
        self._lxc = load()
        self._container: Any = None
        self._monitor: int | None = None

    def record(self) -> int:
        """See ``ContainerNode``."""
        path, name, group = str(self.path), self.spec.name, self.group.name
        return self.session.journal.record("container", lxcpath=path, name=name, group=group)

    def facts(self) -> dict[str, str]:
        """Returns the version of liblxc."""
        return {"lxc": str(self._lxc.version)}

    def create(self, frame: Skeleton, devices: Sequence[Device], command: Sequence[str]) -> tuple[int, int]:
        """See ``ContainerNode``. Raises ProvisionError with the end of liblxc's log."""
        spec = self.spec
        self._container = container = self._lxc.Container(spec.name, str(self.path))
        container.clear_config()
        items = config(
            spec,
            layout=self.layout,
            group=self.group.name,
            skeleton=frame,
            devices=devices,
            session=self.session.id,
            log=self.log,
            hugepage_sizes_kib=sizes_kib(self.session.root),
        )
        for key, value in items:
            # A liblxc built without AppArmor does not know its key and does not need it.
            if not container.append_config_item(key, value) and not key.startswith("lxc.apparmor."):
                raise ProvisionError(f"container {spec.name} cannot be configured: liblxc refuses {key} = {value}")
        prepared_ns = time.perf_counter_ns()
        failure = _start(container, tuple(command), self.log)
        init = -1 if failure else int(container.init_pid)
        if init <= 0:
            raise ProvisionError(f"container {spec.name} {failure or 'ended at once'}{self._log_tail()}")
        process = read_process(Path(f"/proc/{init}/stat"))
        self._monitor = None if process is None else process.parent
        return init, prepared_ns

    def _log_tail(self) -> str:
        """Returns the end of liblxc's log for an error message."""
        with suppress(OSError):
            text = self.log.read_text(encoding="utf-8", errors="replace")
            # A line is "lxc NAME DATE LEVEL ...". Warnings only confuse if there are errors.
            lines = text.splitlines()
            errors = [line for line in lines if " ERROR " in line] or lines
            if errors:
                return "; end of liblxc's log:\n" + "\n".join(errors[-15:])
        return f"; liblxc left no log in {self.log}"

    def attach(self, argv: Sequence[str], cpus: Sequence[int], log: Path) -> Process:
        """See ``ContainerNode``. Raises ProvisionError if liblxc fails."""
        in_read, in_write = os.pipe2(os.O_CLOEXEC)
        out_read, out_write = os.pipe2(os.O_CLOEXEC)
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            pid = _forking(
                self._container.attach,
                _enter,
                (argv, tuple(cpus), self._lxc.attach_run_command),
                stdin=in_read,
                stdout=out_write,
                stderr=sink,
                initial_cwd="/",
                env_policy=self._lxc.LXC_ATTACH_CLEAR_ENV,
                extra_env_vars=tuple(f"{name}={value}" for name, value in environment(self.session.id).items()),
            )
        finally:
            for descriptor in (in_read, out_write, sink):
                os.close(descriptor)
        if pid <= 0:
            os.close(in_write)
            os.close(out_read)
            raise ProvisionError(f"{argv[0]} was not attached to container {self.spec.name}{self._log_tail()}")
        return Process(pid, argv, log, os.fdopen(in_write, "wb", buffering=0), os.fdopen(out_read, "rb", buffering=0))

    def end(self) -> None:
        """See ``ContainerNode``. Waits for liblxc's monitor."""
        self._container = None
        place = str(self.path), self.spec.name, self.group.name
        end_container(*place, self.layout, self.session.root, self._monitor)


def undo_container(lxcpath: str, name: str, group: str) -> None:
    """Ends a container that its session has not ended."""
    reap(name)
    root = Root()
    end_container(lxcpath, name, group, Layout.read(root), root)


UNDO_KINDS = {
    "container": UndoKind(
        undo_container,
        checks={"lxcpath": entry_checks.container_path, "name": entry_checks.name, "group": entry_checks.group_name},
    )
}
