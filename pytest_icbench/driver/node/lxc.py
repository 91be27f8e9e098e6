# SPDX-License-Identifier: BSD-3-Clause
"""LXC application containers as nodes: their init is the workload's ``pause``, the other processes are attached.

liblxc is imported when the first container is requested, because python-lxc is an optional dependency.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import resource
import secrets
import select
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from pytest_icbench.driver.node.cgroups import SessionGroup, end_groups, kill_groups
from pytest_icbench.driver.node.container import (
    CAPABILITIES,
    DEVICES,
    ContainerNode,
    HostAccess,
    container_environment,
    format_page_size,
    reap_container,
)
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import entry_checks
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.cpu_usage import read_process
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.process import Process, refused_process
from pytest_icbench.host.root import Root, format_cpu_list

#: The time in seconds that a container may take to end after its init was killed.
STOP_TIMEOUT_S = 5.0
_LOCKS = Path("/run/lxc/lock")
#: The time in seconds that a container may take to start.
START_TIMEOUT_S = 10.0


def container_config(
    spec: NodeSpec, access: HostAccess, *, group: SessionGroup, session: str, log: Path
) -> list[tuple[str, str]]:
    """Returns liblxc's configuration of a container: keys and values in the order in which they have to be set.

    Args:
        group: the session's cgroups.
        session: the session's id, for the environment of the container's init.
        log: liblxc's log.
    """
    return [
        ("lxc.uts.name", spec.hostname or spec.name),
        ("lxc.rootfs.path", str(access.skeleton.path)),
        ("lxc.rootfs.options", "ro"),
        # The container shares no interface of the host, not even the loopback.
        ("lxc.net.0.type", "empty"),
        ("lxc.console.path", "none"),
        ("lxc.tty.max", "0"),
        ("lxc.autodev", "1"),
        # Capabilities and devices confine the container. A profile that is not loaded would prevent its start.
        ("lxc.apparmor.profile", "unconfined"),
        ("lxc.mount.auto", "proc:mixed sys:ro"),
        *(("lxc.mount.entry", entry) for entry in _mounts(spec, access)),
        *(("lxc.cap.keep", name) for name in (*CAPABILITIES, *spec.capabilities)),
        ("lxc.environment", f"ICBENCH_SESSION={session}"),
        ("lxc.log.file", str(log)),
        ("lxc.log.level", "WARN"),
        *_cgroups(spec, group, access),
    ]


def _mounts(spec: NodeSpec, access: HostAccess) -> list[str]:
    """Returns the mount entries in the format of fstab."""
    entries = [
        "tmpfs run tmpfs rw,nosuid,nodev,size=16m,mode=755 0 0",
        "tmpfs tmp tmpfs rw,nosuid,nodev,size=64m,mode=1777 0 0",
    ]
    bound = {**access.skeleton.binds, **{path: path for path in spec.directories}}
    entries += [_bind(source, path, "bind,ro,create=dir") for path, source in bound.items()]
    entries += [_bind(path, path, "bind,rw,create=dir") for path in spec.sockets]
    entries += [_bind(device.path, device.path, "bind,rw,create=file") for device in access.devices]
    return entries


def _bind(source: Path, path: Path, options: str) -> str:
    """Returns the entry that mounts a directory of the host at a path, with fstab's escapes for blanks."""
    there, here = (
        str(each).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011") for each in (source, path)
    )
    return f"{there} {here.lstrip('/')} none {options} 0 0"


def _cgroups(spec: NodeSpec, groups: SessionGroup, access: HostAccess) -> list[tuple[str, str]]:
    layout, group = groups.layout, groups.name
    items = [
        # All three are below the session's group, because liblxc leaves its pivot, which is removed with that group.
        ("lxc.cgroup.dir.container", f"{group}/{spec.name}"),
        ("lxc.cgroup.dir.monitor", f"{group}/{spec.name}.monitor"),
        ("lxc.cgroup.dir.monitor.pivot", group),
    ]
    settings = [(controller, *bound) for controller, bound in groups.bounds.items()]
    settings += [("cpuset", "cpus", format_cpu_list(spec.cpus)), ("devices", "deny", "a")]
    allowed = [*DEVICES, *access.devices]
    settings += [("devices", "allow", f"{device.kind} {device.major}:{device.minor} rw") for device in allowed]
    limit = "max" if layout.unified else "limit_in_bytes"
    settings += [("hugetlb", f"{format_page_size(kib)}.{limit}", "0") for kib in access.barred_pages_kib]
    for controller, item, value in settings:
        key = layout.lxc_key(controller, item)
        if key is not None:
            items.append((key, value))
    return items


def find_monitors(lxcpath: str, name: str, among: Iterable[int] | None = None) -> list[int]:
    """Returns the pids of a container's monitors, which have a title set by liblxc.

    Args:
        among: candidate pids; None: all pids.
    """
    title = f"[lxc monitor] {lxcpath} {name}".encode()
    if among is None:
        among = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    pids = []
    for pid in among:
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ") == title:
                pids.append(pid)
    return pids


def await_end(pid: int, timeout_s: float) -> bool:
    """Waits for the end of a process, a child or not. Returns whether it ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def end_container(lxcpath: str, name: str, group: str, layout: Layout, root: Root, monitor: int | None = None) -> None:
    """Ends a container in any state, and removes its files and cgroups without liblxc. Idempotent.

    Args:
        lxcpath: the directory of liblxc's containers.
        group: the session's cgroup.
        monitor: the pid of its only monitor; None if it has to be searched for.

    Raises ProvisionError if a process or a cgroup remains.
    """
    inside, outside = f"{group}/{name}", f"{group}/{name}.monitor"
    for _ in range(3):  # a monitor that is starting may not have made its init yet
        watching = find_monitors(lxcpath, name, None if monitor is None else [monitor])
        kill_groups(layout, root, [inside], STOP_TIMEOUT_S)
        for pid in watching:
            # A monitor removes its cgroups itself when its container ends.
            if not await_end(pid, 2.0):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                await_end(pid, STOP_TIMEOUT_S)
        if not watching:
            break
    end_groups(layout, root, [inside, outside], STOP_TIMEOUT_S)
    _remove_locks(Path(lxcpath), name)


def _remove_locks(lxcpath: Path, name: str) -> None:
    """Removes liblxc's lock of a container, and the directories above it that are empty."""
    directory = _LOCKS / lxcpath.relative_to("/")
    (directory / f".{name}").unlink(missing_ok=True)
    with suppress(OSError):
        while directory != _LOCKS.parent.parent:
            with suppress(FileNotFoundError):  # liblxc was killed before it created the inner ones
                directory.rmdir()
            directory = directory.parent


def load() -> ModuleType:
    """Imports python-lxc. Raises Unsupported with the remedy if it is not installed."""
    try:
        import lxc

        return lxc  # type: ignore[no-any-return]
    except ImportError as error:
        raise Unsupported(
            f"LXC containers need python-lxc ({error}): pip install 'pytest-icbench[lxc]' (needs lxc-dev),"
            " or use --icbench-node netns"
        ) from None


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


def _start_container(container: Any, command: tuple[str, ...], log: Path) -> str | None:
    """Starts a configured container from a separate process. Returns the failure, None if it runs.

    liblxc moves the caller of ``start`` into the monitor's cgroups, which would take this process out of its groups
    and leave groups that cannot be removed. It also waits without a timeout while it holds Python's lock.

    Args:
        log: liblxc's open log.
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
            # The monitor is a fork too and would keep open files, also the session's lock. liblxc's ``close_fds`` reads
            # the directory of descriptors again for each one, and every container adds one to this process.
            _close_all_but(log)
            if container.start(useinit=False, daemonize=True, close_fds=True, cmd=command):
                code = 0
        finally:
            os._exit(code)
    if not await_end(pid, START_TIMEOUT_S):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return f"did not start within {START_TIMEOUT_S:g} s"
    return None if os.waitpid(pid, 0)[1] == 0 else "did not start"


def _call_forking(function: Callable[..., int], *args: Any, **keywords: Any) -> int:
    """Calls C code that forks, with the calls before and after it that CPython requires in the parent.

    python-lxc makes only the child's call (``PyOS_AfterFork_Child``), which aborts from Python 3.13 on without the
    parent's call before it.
    """
    ctypes.pythonapi.PyOS_BeforeFork()
    try:
        return function(*args, **keywords)
    finally:
        ctypes.pythonapi.PyOS_AfterFork_Parent()


def _execute(job: tuple[Sequence[str], Sequence[int], Any]) -> int:
    """Executes a command in the attached child after the fork. It must not wait for another thread.

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
        load()
        if os.geteuid() != 0:
            raise Unsupported("LXC containers need root: run pytest as root")
        cpuset = Layout.read(session.root).holding("cpuset")
        if cpuset is not None and cpuset.root:
            raise Unsupported(
                f"liblxc looks for {cpuset.root} below {cpuset.mount}, where only that group is mounted: run this"
                " container with --cgroupns private, or use --icbench-node netns"
            )
        if cpuset is None:
            raise Unsupported(
                "LXC containers need the cgroup controller cpuset below /sys/fs/cgroup: mount it, or use --icbench-node"
                " netns"
            )

    @staticmethod
    def findings() -> Iterator[Finding]:
        try:
            yield Finding(Level.GOOD, "LXC", f"version {load().version}")
        except Unsupported as error:
            yield Finding(
                Level.MISSING,
                "LXC",
                f"python-lxc cannot be imported ({error.__context__})",
                "apt install lxc lxc-dev && pip install lxc, or use --icbench-node netns",
            )

    @staticmethod
    def treatment() -> dict[str, Any]:
        return {"lxc": str(load().version)}

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        super().__init__(session, spec)
        self._lxc = load()
        self._container: Any = None
        self._monitor: int | None = None
        #: liblxc names an abstract socket by it, which any user of the host could occupy if he knew it before.
        self._lxcpath = self.path / secrets.token_hex(8)

    def record(self) -> int:
        path, name, group = str(self._lxcpath), self.spec.name, self.group.name
        return self.session.journal.record("container", lxcpath=path, name=name, group=group)

    def create(self, access: HostAccess, command: Sequence[str]) -> tuple[int, int]:
        """Raises ProvisionError with the end of liblxc's log."""
        spec = self.spec
        locks = _LOCKS / self.path.relative_to("/")
        locks.mkdir(mode=0o700, parents=True, exist_ok=True)  # liblxc's path of its lock would show the name
        self._lxcpath.mkdir()
        self._container = container = self._lxc.Container(spec.name, str(self._lxcpath))
        container.clear_config()
        items = container_config(spec, access, group=self.group, session=self.session.id, log=self.log)
        for key, value in items:
            # A liblxc built without AppArmor does not know its key and does not need it.
            if not container.append_config_item(key, value) and not key.startswith("lxc.apparmor."):
                raise ProvisionError(f"container {spec.name} cannot be configured: liblxc refuses {key} = {value}")
        prepared_ns = time.perf_counter_ns()
        failure = _start_container(container, tuple(command), self.log)
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
        """Raises ProvisionError if liblxc fails."""
        in_read, in_write = os.pipe2(os.O_CLOEXEC)
        out_read, out_write = os.pipe2(os.O_CLOEXEC)
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            pid = _call_forking(
                self._container.attach,
                _execute,
                (argv, tuple(cpus), self._lxc.attach_run_command),
                stdin=in_read,
                stdout=out_write,
                stderr=sink,
                initial_cwd="/",
                env_policy=self._lxc.LXC_ATTACH_CLEAR_ENV,
                extra_env_vars=tuple(
                    f"{name}={value}" for name, value in container_environment(self.session.id).items()
                ),
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
        """Waits for liblxc's monitor."""
        self._container = None
        place = str(self._lxcpath), self.spec.name, self.group.name
        end_container(*place, self.layout, self.session.root, self._monitor)
        with suppress(OSError):
            self._lxcpath.rmdir()


def undo_container(lxcpath: str, name: str, group: str) -> None:
    """Ends a container that its session has not ended."""
    reap_container(name)
    root = Root()
    end_container(lxcpath, name, group, Layout.read(root), root)


UNDO_KINDS = {
    "container": UndoKind(
        undo_container,
        checks={"lxcpath": entry_checks.container_path, "name": entry_checks.name, "group": entry_checks.group_name},
    )
}
