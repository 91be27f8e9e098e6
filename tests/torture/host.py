# SPDX-License-Identifier: BSD-3-Clause
"""Compares exactly what sessions may have made on a host, without processes that other programs have started."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from tests.host import snapshot

#: What other sessions on this machine had or did meanwhile, which is not counted as left.
NOT_COUNTED: dict[str, None] = {}
_SESSION = re.compile(rb"ICBENCH_SESSION=(\w+)")
_OF_A_SESSION = re.compile(r"\bicb[a-z0-9]{6}\b|/run/icbench/[a-z0-9]{6}\b")
#: Sessions that were seen at work and that no process of ours has started.
_strangers: set[str] = set()

#: Settings of the kernel that sessions change, where the thing that they are about stays.
_SYSCTLS = ("net/ipv6/conf", "vm/nr_hugepages", "vm/overcommit_memory", "kernel/sched_rt_runtime_us")
_OF_IPV6 = ("disable_ipv6", "accept_ra", "autoconf")
#: Files of tests beside, of DPDK programs beside, which have a prefix of their own, and of a VPP beside: that of a
#: session has a separate /dev/shm.
_OTHERS = re.compile(r"/tmp/icbench-|(/var)?/run/dpdk/(?!rte\b|icb)|/dev/shm/(global_vm|vpe-api)\b")
_NEW_PROCESS = re.compile(r"process (\d+) is new \((.*)\)")
_OURS = re.compile(r"/run/icbench/|\bicb?[a-z0-9]{6}|/run/vpp|/var/run/openvswitch")


def take() -> snapshot.Snapshot:
    """Returns everything that a session may leave: kind -> name -> state."""
    _strangers.update(_sessions_of_others())
    taken = snapshot.take()
    files = {name: "" for name in taken["file"] if not _OTHERS.match(name)}
    return {
        **taken,
        "file": files,
        "namespace": _namespaces(),
        "socket": _sockets(),
        "sysctl": _sysctls(),
    }


def left_since(before: snapshot.Snapshot, timeout_s: float = 5.0) -> list[str]:
    """Returns the differences to now, one line each, after some time for the kernel's work in the background.

    What belongs to sessions that others run meanwhile is added to ``NOT_COUNTED`` instead.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = snapshot.difference(before, take())
        others = [line for line in left if _is_of_others(line)]
        left = [line for line in left if line not in others]
        if not left or time.monotonic() > deadline:
            NOT_COUNTED.update(dict.fromkeys(others))
            return left
        time.sleep(0.05)


def _is_of_others(line: str) -> bool:
    """Whether a difference has the name of another's session, or is about what all sessions of a machine share."""
    named = any(stranger in line for stranger in _strangers)
    # What was there before a session of ours began is somebody's who has ended since.
    passing = line.startswith(("process ", "namespace ")) or _OF_A_SESSION.search(line) is not None
    ended = line.endswith(" is gone") and passing
    apart = snapshot.own_host(os.getpid()) is not None
    shared = line.startswith("huge pages ") or "/vm/nr_hugepages" in line
    # Mounts of the machine come and go on a host of its own, too.
    passed_on = apart and line.startswith(("mount /run/netns/icb", "mount /run/icbench/"))
    return named or ended or passed_on or _is_unmarked(line) or (shared and (bool(_strangers) or apart))


def _is_unmarked(line: str) -> bool:
    """Whether a difference is a process without the mark of a session. A monitor's title hides its mark."""
    if (match := _NEW_PROCESS.match(line)) is None or "lxc monitor" in match[2]:
        return False
    try:
        return b"ICBENCH_SESSION=" not in Path(f"/proc/{match[1]}/environ").read_bytes()
    except OSError:
        return False


def _sessions_of_others() -> set[str]:
    """Returns the ids of sessions that a running pytest of somebody else has started, on this host or another here."""
    found, own = set(), {os.getpid(), os.getppid()}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (match := _SESSION.search((entry / "environ").read_bytes())):
                pid = int(entry.name)
                if snapshot.elsewhere(pid) or snapshot.is_of_another_run(pid, own):
                    found.add(match[1].decode())
    return found


def _namespaces() -> dict[str, str]:
    """Returns named network namespaces, and those of other kinds in which a process of a session is."""
    names = {f"net {path.name}": "" for path in Path("/run/netns").glob("*")}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                pid = int(entry.name)
                if (
                    b"ICBENCH_SESSION=" in (entry / "environ").read_bytes()
                    and pid != os.getpid()
                    and not snapshot.elsewhere(pid)
                ):
                    for kind in ("net", "mnt", "pid", "uts"):
                        here, its = Path(f"/proc/self/ns/{kind}").readlink(), (entry / f"ns/{kind}").readlink()
                        if its != here:
                            names[str(its)] = ""
    return names


def _sockets() -> dict[str, str]:
    """Returns unix sockets with a name that a session or its switches give."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    return {fields[7]: "" for line in lines if len(fields := line.split()) >= 8 and _OURS.search(fields[7])}


def _sysctls() -> dict[str, str]:
    states = {}
    for name in _SYSCTLS:
        top = Path("/proc/sys", name)
        paths = [top] if top.is_file() else [path for kind in _OF_IPV6 for path in top.glob(f"*/{kind}")]
        for path in paths:
            with suppress(OSError):
                states[str(path)] = path.read_text(encoding="ascii").strip()
    return states
