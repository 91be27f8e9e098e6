# SPDX-License-Identifier: BSD-3-Clause
"""Containers as nodes: what they may use, their root file system, and their life from start to end."""

from __future__ import annotations

import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.protocol import NodeFacts, NodeSpec
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.nsenter import Bounds, can_enter, start_within
from pytest_icbench.host.process import SESSION_VARIABLE, Process
from pytest_icbench.host.resource.hugepages import sizes_kib
from pytest_icbench.model.candidate import WORKLOAD
from pytest_icbench.model.text_files import MOST_BYTES, open_regular

#: The capabilities that a workload needs. NET_BIND_SERVICE: UDP port 9, discard. NET_RAW: packet sockets (``raw``,
#: ``net_af_packet``). NET_ADMIN: promiscuous mode, AF_XDP. BPF: loading AF_XDP's program. IPC_LOCK: locked and pinned
#: memory (DPDK, VFIO, AF_XDP's frames) above the memlock limit. SYS_NICE: memory on a chosen NUMA node.
CAPABILITIES = ("net_bind_service", "net_raw", "net_admin", "bpf", "ipc_lock", "sys_nice")
#: Numbers of the capabilities that nodes have or can get (linux/capability.h).
NUMBERS: Mapping[str, int] = {
    "chown": 0,
    "dac_override": 1,
    "dac_read_search": 2,
    "fowner": 3,
    "fsetid": 4,
    "kill": 5,
    "setgid": 6,
    "setuid": 7,
    "net_bind_service": 10,
    "net_admin": 12,
    "net_raw": 13,
    "ipc_lock": 14,
    "ipc_owner": 15,
    "sys_module": 16,
    "sys_rawio": 17,
    "sys_chroot": 18,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "sys_nice": 23,
    "sys_resource": 24,
    "sys_time": 25,
    "mknod": 27,
    "perfmon": 38,
    "bpf": 39,
}
#: The mount points of every container.
_DIRECTORIES = ("usr", "proc", "sys", "dev", "etc", "tmp", "run")
#: Symlinks into /usr if /usr is merged, else directories.
_OUTER = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
#: The containers of this process that have not been stopped, by name.
_started: dict[str, ContainerNode] = {}


@dataclass(frozen=True, slots=True)
class Device:
    """A device node of the host; ``kind`` is ``c`` for a character device, ``b`` for a block device."""

    path: Path
    kind: str
    major: int
    minor: int

    @classmethod
    def read(cls, path: Path) -> Device:
        """Returns the device at a path. Raises ProvisionError if there is none."""
        try:
            status = path.stat()
        except OSError as error:
            raise ProvisionError(f"device {path} cannot be given to a container: {error.strerror}") from None
        if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
            raise ProvisionError(f"{path} cannot be given to a container: it is not a device")
        kind = "c" if stat.S_ISCHR(status.st_mode) else "b"
        return cls(path, kind, os.major(status.st_rdev), os.minor(status.st_rdev))


#: The devices of a container's /dev that a workload may open.
DEVICES = tuple(
    Device(Path("/dev", name), "c", 1, minor)
    for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9))
)


def node_capabilities(spec: NodeSpec) -> tuple[str, ...]:
    """Returns the names of a node's capabilities. Raises ValueError for an unknown one."""
    names = (*CAPABILITIES, *spec.capabilities)
    unknown = [name for name in names if name not in NUMBERS]
    if unknown:
        raise ValueError(f"capability {unknown[0]} is not known")
    return names


def container_environment(session: str) -> Mapping[str, str]:
    """Returns the environment of a process in a container; ``session`` is the session's id."""
    return {
        SESSION_VARIABLE: session,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "LC_ALL": "C",
    }


def format_page_size(kib: int) -> str:
    """Returns a huge page's size as cgroups name it: ``2MB``."""
    return next(f"{kib // unit}{name}" for unit, name in ((1 << 20, "GB"), (1 << 10, "MB"), (1, "KB")) if kib >= unit)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A root file system.

    Attributes:
        path: its directory, which is mounted read-only.
        binds: host directories by the path at which every container sees them, read-only.
    """

    path: Path
    binds: Mapping[Path, Path]


@dataclass(frozen=True, slots=True)
class HostAccess:
    """What a container gets of the host.

    Attributes:
        skeleton: its root file system.
        devices: the device nodes that it may open.
        barred_pages_kib: sizes of huge pages that it may not use.
    """

    skeleton: Skeleton
    devices: Sequence[Device] = ()
    barred_pages_kib: Sequence[int] = ()


def build_skeleton(session: HostSession, program: Path, image: Path | None = None) -> Skeleton:
    """Returns the session's root file system of an image, built at the first call and removed with the session.

    Args:
        program: the workload. The directory with its files is bound if it is outside /usr, and so are the directories
            of the workloads that are compared with it.
        image: the root directory of programs and libraries; None: this host's.
    """
    name = "rootfs" if image is None else f"rootfs-{hashlib.sha256(bytes(image)).hexdigest()[:8]}"
    path, root = session.dir / name, image or Path("/")
    binds = {Path("/usr"): root / "usr", **_link_directories(path, root)}
    _write_files(path, root)
    programs = [program, *(path for name, path in session.binaries.items() if name.startswith(f"{WORKLOAD}:"))]
    # The target of a symlink may be in another directory.
    for directory in (parent for file in programs for parent in (file.parent, file.resolve().parent)):
        if image is not None or not directory.is_relative_to("/usr"):
            binds.setdefault(directory, directory)
    for bind in binds:
        if not bind.is_relative_to("/usr") or bind == Path("/usr"):
            make_mount_point(path, bind)
    return Skeleton(path, binds)


def _link_directories(path: Path, root: Path) -> dict[Path, Path]:
    """Creates mount points and symlinks of a root file system; returns the directories of ``root`` to be bound."""
    for name in _DIRECTORIES:
        (path / name).mkdir(parents=True, exist_ok=True)
    binds: dict[Path, Path] = {}
    for name in _OUTER:
        outer, inner = root / name, path / name
        if outer.is_symlink():
            if not inner.is_symlink():
                inner.symlink_to(outer.readlink())
        elif outer.is_dir():
            binds[Path("/", name)] = outer
    return binds


def _write_files(path: Path, root: Path) -> None:
    """Writes the files of /etc that programs read."""
    if not (path / "etc/ld.so.cache").exists():
        # It lists libraries outside the default directories, such as /usr/local/lib.
        with suppress(OSError), open_regular(root / "etc/ld.so.cache") as file:
            (path / "etc/ld.so.cache").write_bytes(file.read(MOST_BYTES))
    # Servers look up their user even if they keep root's rights.
    (path / "etc/passwd").write_text("root:x:0:0:root:/tmp:/usr/sbin/nologin\n", encoding="ascii")
    (path / "etc/group").write_text("root:x:0:\n", encoding="ascii")
    # NetPIPE looks up the number of TCP.
    (path / "etc/protocols").write_text("ip 0 IP\ntcp 6 TCP\nudp 17 UDP\n", encoding="ascii")


def make_mount_point(root: Path, target: Path) -> None:
    """Creates the directory on which ``target`` is mounted, except below /tmp and /run, where liblxc does."""
    if not target.is_relative_to("/tmp") and not target.is_relative_to("/run"):
        (root / target.relative_to("/")).mkdir(parents=True, exist_ok=True)


class ContainerNode(ABC):
    """A node in a container, see ``node.protocol.Node``. Each kind implements its start, its attachment and its end."""

    kind: ClassVar[str]
    #: Whether its programs and libraries can come from ``NodeSpec.image``.
    takes_image: ClassVar[bool] = True

    def __init__(self, session: HostSession, spec: NodeSpec) -> None:
        self.spec = spec
        self.session = session
        self.path = session.dir / self.kind
        self.log = self.path / f"{spec.name}.log"
        self._entry: int | None = None
        self._init = 0
        self._processes: list[Process] = []
        self._paused = False

    @abstractmethod
    def record(self) -> int:
        """Journals the removal of the container before it is created; returns the entry."""

    @abstractmethod
    def create(self, access: HostAccess, command: Sequence[str]) -> tuple[int, int]:
        """Creates the container; returns its init's pid and the time of its start (``time.perf_counter_ns``).

        Raises ProvisionError.
        """

    def attach(self, argv: Sequence[str], cpus: Sequence[int], log: Path) -> Process:
        """Starts a process in the init's namespaces, as a child of this one. Raises ProvisionError."""
        root = self.session.root
        bounds = Bounds(
            cpus,
            container_environment(self.session.id),
            [root.path(hierarchy.mount + path) for hierarchy, path in self.layout.groups_of(root, self._init)],
            [NUMBERS[name] for name in node_capabilities(self.spec)],
        )
        return start_within(self._init, argv, bounds, log=log)

    @abstractmethod
    def end(self) -> None:
        """Ends and removes the container after its processes were reaped. Raises ProvisionError if anything remains."""

    @property
    def layout(self) -> Layout:
        """The control groups of the container."""
        return self.group.layout

    def start(self) -> NodeFacts:
        """Starts the container, whose init then waits.

        Raises ProvisionError with the runtime's message, or if the kernel grants other CPUs than requested.
        """
        session, spec = self.session, self.spec
        program = workload_path()
        frame = build_skeleton(session, program, spec.image)
        for directory in (*spec.sockets, *spec.directories):
            make_mount_point(frame.path, directory)
        barred = () if spec.hugepages else tuple(sizes_kib(session.root))
        access = HostAccess(frame, [Device.read(path) for path in spec.devices], barred)
        self.path.mkdir(exist_ok=True)
        self.group = SessionGroup.get(session)
        self._entry = self.record()
        _started[spec.name] = self
        try:
            self._init, prepared_ns = self.create(access, [str(program), "pause"])
            if spec.cpu is not None:
                self.group.allocate_cpu(spec.name, spec.cpu)
            self.group.unify_cpu()
            self.group.share_cpu(self._init, spec.name)
            self.group.check_cpus(spec.name, spec.cpus, self.layout)
            if process_start_time(self._init) is None:
                raise ProvisionError(f"container {spec.name} ended")
        except ProvisionError:
            ended = self._init and process_start_time(self._init) is None
            self.stop()
            if ended:
                raise ProvisionError(f"container {spec.name} ended at once") from None
            raise
        return NodeFacts(spec.name, self._init, prepared_ns)

    def spawn(self, argv: Sequence[str], *, cpus: Sequence[int], log: Path) -> Process:
        """Raises ProvisionError if the node is not running or cannot be entered."""
        if not self._init or self._paused:
            state = "paused" if self._paused else "not running"
            raise ProvisionError(f"{argv[0]} cannot be started in container {self.spec.name}: it is {state}")
        self.session.spawner.bound(log)
        process = self.attach([str(word) for word in argv], cpus, log)
        self._processes.append(process)
        self.group.share_cpu(process.pid, self.spec.name)
        return process

    def pause(self) -> None:
        """Freezes every process within 2 s. Raises ProvisionError, with the node running, if that fails."""
        self.group.freeze(self.spec.name)
        self._paused = True

    def resume(self) -> None:
        """Lets the processes run again. Raises ProvisionError."""
        self.group.thaw(self.spec.name)
        self._paused = False

    def stop(self) -> None:
        """Kills every process and removes the container with its cgroups.

        Raises ProvisionError if a process or a cgroup remains. Then the journal keeps the container.
        """
        if self._entry is None:
            return
        self._init, self._paused = 0, False
        self.group.thaw(self.spec.name)
        self.reap()
        self.end()
        self.group.forget(self.spec.name)
        _started.pop(self.spec.name, None)
        self.session.journal.done(self._entry)
        self._entry = None

    def reap(self) -> None:
        """Kills and reaps the processes started inside, because the container's init waits for them."""
        for process in self._processes:
            process.stop(term_s=0)
        self._processes.clear()


def reap_container(name: str) -> None:
    """Kills and reaps the processes that this one has started in a container, for the journal's undo."""
    node = _started.pop(name, None)
    if node is not None:
        node.reap()


def probe_finding(topic: str, describe: Callable[[], str], install: str) -> Finding:
    """Returns the doctor's finding about a kind of container: its description, or why it cannot be used."""
    try:
        return Finding(Level.GOOD, topic, describe())
    except (Unsupported, ProvisionError) as error:
        return Finding(Level.NOTE, topic, str(error), install)


def check_host(layout: Layout, what: str) -> None:
    """Raises Unsupported, with reason and remedy, if this host cannot run containers that are entered from outside."""
    if os.geteuid() != 0:
        raise Unsupported(f"{what} containers need root: run pytest as root")
    if not can_enter():
        raise Unsupported(f"{what} containers cannot be entered on this kind of machine: use --icbench-node lxc")
    if layout.holding("cpuset") is None:
        raise Unsupported(f"{what} containers need the cgroup controller cpuset: mount it, or use --icbench-node netns")
