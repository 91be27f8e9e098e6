# SPDX-License-Identifier: BSD-3-Clause
"""Makes containers like those of other programs: two joined processes with their own namespaces and control groups."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.process import run
from pytest_icbench.host.root import Root

_PROCESS = ("unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sleep", "1000")
#: Settings of the network that count, or are drawn at random at each reading.
_PASSING = re.compile(r"nf_conntrack_(count|buckets)|/random|stable_secret|fib_sync_mem")


@dataclass(frozen=True)
class ByHand:
    """A container.

    Attributes:
        pid: its first process.
        ip: address of its interface, which is called ``eth0``.
    """

    pid: int
    ip: str

    @property
    def netns(self) -> str:
        return f"/proc/{self.pid}/ns/net"

    def run_ip(self, *words: str) -> str:
        """Returns what ip(8) prints in the container."""
        return run(["ip", *words], timeout_s=5, netns=self.netns).stdout

    def neighbours(self) -> set[str]:
        """Returns the addresses of its neighbours in any state."""
        return {line.split()[0] for line in self.run_ip("-4", "neigh", "show", "nud", "all").splitlines()} - _LOCAL

    def state(self) -> dict[str, str]:
        """Returns everything that a measurement could change in it."""
        sysctls = run(
            ["find", "/proc/sys/net", "-type", "f", "-readable"], timeout_s=5, netns=self.netns
        ).stdout.split()
        names = [name for name in sysctls if not _PASSING.search(name)]
        return {
            "addresses": re.sub(r"\d+sec", "", self.run_ip("-d", "address")),
            "routes": self.run_ip("route", "show", "table", "all") + self.run_ip("rule"),
            "neighbours": " ".join(sorted(self.neighbours())),
            "queues": run(["tc", "qdisc"], timeout_s=5, netns=self.netns).stdout,
            "sockets": run(["ss", "-tuw0anH"], timeout_s=5, netns=self.netns).stdout,
            "sysctls": run(["tail", "-n", "+1", *names], timeout_s=5, netns=self.netns, check=False).stdout,
            "namespaces": " ".join(str(path.readlink()) for path in sorted(Path(f"/proc/{self.pid}/ns").iterdir())),
            "processes": " ".join(map(str, sorted(in_netns(self.netns)))),
            "cgroup": Path(f"/proc/{self.pid}/cgroup").read_text(),
            "cgroup members": " ".join(map(str, sorted(_members(self.pid)))),
            "cpus": str(sorted(os.sched_getaffinity(self.pid))),
            "limits": Path(f"/proc/{self.pid}/limits").read_text(),
            "mounts": Path(f"/proc/{self.pid}/mounts").read_text(),
        }


def states(pair: Sequence[ByHand]) -> dict[str, str]:
    """Returns everything that a measurement could change in containers, in one table."""
    return {f"{name} of {number}": text for number, end in enumerate(pair) for name, text in end.state().items()}


def changes(before: dict[str, str], pair: Sequence[ByHand]) -> list[str]:
    """Returns the differences between two states, one line each."""
    return [line for name, text in states(pair).items() for line in _changes(name, before[name], text)]


def _changes(name: str, before: str, after: str) -> list[str]:
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [f"{name}: {line}" for line in lines if line[:3] not in ("---", "+++", "@@ ")]


#: Neighbours of loopback and of multicast, which the kernel makes by itself.
_LOCAL = {"127.0.0.1", "224.0.0.22"}


def in_netns(netns: str) -> set[int]:
    """Returns the processes in a network namespace."""
    inode, found = Path(netns).stat().st_ino, set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if (directory / "ns/net").stat().st_ino == inode:
                found.add(int(directory.name))
        except OSError:
            continue
    return found


def _group(pid: int) -> Path | None:
    """Returns the group in the hierarchy of the freezer."""
    hierarchy = Layout.read(Root()).freezing()
    return None if hierarchy is None else Path(f"{hierarchy.top}/byhand{pid}")


def _members(pid: int) -> set[int]:
    layout = Layout.read(Root())
    paths = [f"{place.mount}{path}" for place, path in layout.groups_of(Root(), pid) if place is layout.freezing()]
    return {int(word) for path in paths for word in Path(path, "cgroup.procs").read_text().split()}


@contextmanager
def _process() -> Iterator[int]:
    group = None
    with subprocess.Popen(_PROCESS) as outer:
        try:
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
            while not (found := children.read_text().split()):
                assert outer.poll() is None
            pid = int(found[0])
            group = _group(pid)
            if group is not None:
                group.mkdir()
                (group / "cgroup.procs").write_text(str(pid))
            yield pid
        finally:
            outer.kill()
            outer.wait()
            if group is not None:
                while group.is_dir():
                    try:
                        group.rmdir()
                    except OSError:
                        continue


@contextmanager
def two(
    *, routed: bool = False, mtu: int = 1500, start: Callable[[], AbstractContextManager[int]] | None = None
) -> Iterator[tuple[ByHand, ByHand]]:
    """Joins two containers by a veth pair or, if ``routed``, by a router, each alone in its subnet as pods may be.

    Args:
        start: starts one and yields its first process.
    """
    with ExitStack() as stack:
        a, b = (stack.enter_context((start or _process)()) for _ in range(2))
        ends = [ByHand(a, "10.78.0.1"), ByHand(b, "10.78.0.2" if not routed else "10.78.1.1")]
        between = [ByHand(stack.enter_context(_process()), "") for _ in range(routed)]
        if not routed:
            _link(ends[0], "eth0", ends[1], "eth0")
        for number, end in enumerate(ends):
            for router in between:
                _link(end, "eth0", router, f"r{number}")
                router.run_ip("address", "add", f"10.78.{number}.254/24", "dev", f"r{number}")
                router.run_ip("link", "set", f"r{number}", "up")
            end.run_ip("address", "add", f"{end.ip}/24", "dev", "eth0")
            # Without an IPv6 address, for which the kernel would first spend seconds looking for a duplicate.
            end.run_ip("link", "set", "eth0", "mtu", str(mtu), "addrgenmode", "none", "up")
            if between:
                end.run_ip("route", "add", "default", "via", f"10.78.{number}.254")
        for router in between:
            run(["sysctl", "-qw", "net.ipv4.ip_forward=1"], timeout_s=5, netns=router.netns)
        for end in ends:
            settle(end, "eth0")
        yield ends[0], ends[1]


def _link(a: ByHand, name: str, b: ByHand, other: str) -> None:
    a.run_ip("link", "add", name, "type", "veth", "peer", "name", other, "netns", b.netns)


def settle(end: ByHand, name: str, state: str = "UP") -> None:
    """Waits until an interface's carrier has come or gone, which takes longer than at its other end."""
    while f" state {state} " not in end.run_ip("link", "show", name):
        continue


def topology(a: str, b: str, more: str = "") -> str:
    """Returns the text of a topology of two containers; ``more`` are further lines of the first."""
    return f"""
[[container]]
name = "a"
container = "{a}"
application = ["send", "client"]
peer = "b"
{more}

[[container]]
name = "b"
container = "{b}"
application = ["recv", "server"]
peer = "a"
"""
