# SPDX-License-Identifier: BSD-3-Clause
"""What a container may do and use, whatever makes it: capabilities, devices, the environment of its processes."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.process import SESSION_VARIABLE

#: The capabilities that a workload needs. NET_BIND_SERVICE: UDP port 9, discard. NET_RAW: packet
#: sockets (``raw``, ``net_af_packet``). NET_ADMIN: promiscuous mode, AF_XDP. BPF: loading AF_XDP's program. IPC_LOCK:
#: locked and pinned memory (DPDK, VFIO, AF_XDP's frames) beyond the memlock limit. SYS_NICE: placing memory on a NUMA
#: node.
CAPABILITIES = ("net_bind_service", "net_raw", "net_admin", "bpf", "ipc_lock", "sys_nice")
#: The numbers of the capabilities that nodes have, or can be given (linux/capability.h).
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


@dataclass(frozen=True, slots=True)
class Device:
    """A device node of the host; ``kind`` is ``c`` for a character device, ``b`` for a block device."""

    path: Path
    kind: str
    major: int
    minor: int

    @classmethod
    def at(cls, path: Path) -> Device:
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


def kept(spec: NodeSpec) -> tuple[str, ...]:
    """Returns the names of a node's capabilities. Raises ValueError for one that is not known."""
    names = (*CAPABILITIES, *spec.capabilities)
    unknown = [name for name in names if name not in NUMBERS]
    if unknown:
        raise ValueError(f"capability {unknown[0]} is not known")
    return names


def environment(session: str) -> Mapping[str, str]:
    """Returns all variables of a process in a container. Args: session: the session's id, by which it is known."""
    return {
        SESSION_VARIABLE: session,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "LC_ALL": "C",
    }


def page_size(kib: int) -> str:
    """Returns a huge page's size as cgroups name it: ``2MB``."""
    return next(f"{kib // unit}{name}" for unit, name in ((1 << 20, "GB"), (1 << 10, "MB"), (1, "KB")) if kib >= unit)
