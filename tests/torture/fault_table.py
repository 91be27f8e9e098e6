# SPDX-License-Identifier: BSD-3-Clause
"""The table of faults: what is broken, when, over which switch, and how the session says so.

Each row is a session of two cases. The first one meets the fault; the second passes, unless the fault stays. The page
docs/explanation/torture.md is made of this table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

When = Literal["at the start", "in a launch", "before the session"]
#: What becomes of the first case: it fails with the words, or it is measured anew and passes, or the session refuses.
#: Where the fault comes within milliseconds of what decides, it is either of the first two. Or the session is ended.
End = Literal["fails", "passes", "refused", "either", "ended"]


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        victim: the process by the words of its command line, for a fault of a process.
        action: a signal's name, or a shell command; ``$NETNS`` is the switch's namespace, ``$SESSION`` and ``$VICTIM``
            are processes.
        when: the moment.
        end: what becomes of the first case.
        says: a regular expression that the session's output has to match.
        stays: whether the second case meets the fault as well.
        more: arguments of the marker, each after a comma.
    """

    subject: str
    what: str
    when: When
    switch: str
    end: End
    says: str
    action: str = ""
    victim: str = ""
    node: str = "netns"
    stays: bool = False
    more: str = ""

    @property
    def name(self) -> str:
        """The name, unique in the table."""
        where = "" if self.node == "netns" else f", {self.node}"
        return f"{self.subject} {self.what} {self.when} ({self.switch}{where})"


_SIGNALS = {"killed": "SIGKILL", "crashed": "SIGSEGV", "ended": "SIGTERM", "stopped": "SIGSTOP"}
_MOMENTS: tuple[When, ...] = ("at the start", "in a launch")
_DELAY = ", mode='delay100us'"
#: Switches that are a process: its command line, and further arguments of the marker.
_PROCESSES = {
    "testpmd": ("dpdk-testpmd", ""),
    "basicfwd": ("icbench-basicfwd", ""),
    "ovs": ("ovs-vswitchd", ""),
    "forward": ("icbench-workload dpdk-forward", _DELAY),
    "forward-raw": ("icbench-workload forward", _DELAY),
}
_STALLS = r"\(process \d+\) was stopped by a signal"
_SWITCH_SAYS = {
    "killed": "was killed by signal 9",
    "crashed": "was killed by signal 11",
    "ended": r"was killed by signal 15|has ended|ended with|exited",
    "stopped": _STALLS,
}


def _switches() -> Iterator[Fault]:
    for switch, (victim, more) in _PROCESSES.items():
        for what, signal in _SIGNALS.items():
            for when in _MOMENTS:
                end: End = "fails"
                says = _SWITCH_SAYS[what]
                if (switch, what, when) == ("testpmd", "ended", "at the start"):
                    end, says = "either", f"2 passed|{says}"  # testpmd forgets a SIGTERM that comes before its ports
                yield Fault("switch", what, when, switch, end, says, signal, victim, more=more)
    for what in ("killed", "stopped"):
        for when in _MOMENTS:
            end = "fails" if what == "killed" else "passes"
            says = "ovsdb-server was killed by signal 9" if what == "killed" else "2 passed"
            if (what, when) == ("stopped", "at the start"):  # before it has its socket, or after
                end, says = (
                    "either",
                    "2 passed|ovsdb-server has not opened|ovsdb-server .process .* was stopped by a signal",
                )
            yield Fault("database", what, when, "ovs", end, says, _SIGNALS[what], "ovsdb-server")


def _workloads() -> Iterator[Fault]:
    roles = {"linux-bridge": ("send", "recv"), "testpmd": ("dpdk-send", "dpdk-recv"), "ovs": ("dpdk-send", "dpdk-recv")}
    for switch, (sender, receiver) in roles.items():
        for subject, role in (("sender", sender), ("receiver", receiver)):
            for what in ("killed", "crashed", "stopped"):
                for when in _MOMENTS:
                    end: End = "fails" if what == "stopped" else "passes"
                    says = _STALLS if what == "stopped" else r"2 passed"
                    yield Fault(subject, what, when, switch, end, says, _SIGNALS[what], f"icbench-workload {role}")


def _nodes() -> Iterator[Fault]:
    for switch in ("linux-bridge", "testpmd"):
        for what in ("killed", "stopped"):
            for when in _MOMENTS:
                end: End = "fails" if what == "killed" else "passes"
                says = r"2 passed"
                if what == "killed":  # before it has said that it runs, or after
                    says = (
                        r"container icb\S+ ended at once|node icb\S+ is gone: something outside this session"
                        r"|its node is not running"
                    )
                yield Fault("container", what, when, switch, end, says, _SIGNALS[what], "icbench-workload pause", "lxc")


def _kernel() -> Iterator[Fault]:
    links = "ip -n $NETNS link"
    bridge = "$(ip -n $NETNS -br link show type bridge | cut -d' ' -f1)"
    ports = "ip -n $NETNS -br link show type veth | cut -d@ -f1"
    whose = "of linux-bridge"
    broken = {
        "bridge": ("deleted", f"{links} delete {bridge}", f"the bridge br0 {whose} is gone"),
        "bridge is": ("set down", f"{links} set {bridge} down", f"the bridge br0 {whose} was set down"),
        "port": ("deleted", f"{links} delete $({ports} | head -1)", f"the port p. {whose} is gone"),
        "cable": ("pulled", f"{links} set $({ports} | tail -1) down", f"the port p. {whose} was set down"),
        "port is": (
            "narrowed",
            f"for p in $({ports}); do {links} set $p mtu 68; done",
            f"the port p. {whose} has an MTU of 68, not the 1500 of its start",
        ),
        "namespace": (
            "deleted",
            "ip netns delete $NETNS",
            rf"the network namespace {whose} is gone|network namespace /run/netns/icb\S+-br cannot be entered",
        ),
    }
    for subject, (what, action, says) in broken.items():
        for when in _MOMENTS:
            yield Fault(subject, what, when, "linux-bridge", "fails", says, action)


_OWN_RUN = "mkdir -p /run/icbench && mount -t tmpfs -o mode=700"
_FILL = "{{ head -c 9999 /dev/zero >{}/filling; true; }}"
_DEAD = "mkdir -m 700 /run/icbench/aaaaaa"
_CLOSED_GROUPS = "for d in /sys/fs/cgroup/*; do mount --bind $d $d && mount -o remount,bind,ro $d; done"
_FEW_FILES = 'ulimit -n 28 && exec setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource "$@"'
_AHEAD = 'exec unshare --time --boottime 86400 --monotonic 86400 --fork "$@"'

_FORKS = """echo 'import os
def pytest_runtest_setup(item):
    if not os.fork(): raise SystemExit(3)'"""
_DIES = """echo 'import os
def pytest_runtest_call(item):
    if "meets" in item.name: os._exit(7)'"""
_WINDOWS = r'\357\273\277["*"]\r\nmax_duplicated = 0\r\n'
_POINTER = "version https://git-lfs.github.com/spec/v1"
_CONFLICT = r"<<<<<<< a\n=======\n>>>>>>> b\n"
_TYPED = r'[tool.pytest]\nicbench_ring = 512\nicbench_switch = ["veth"]\n'
#: What a container does in a directory that it can write, each with a word at its end if it was done.
_IN_DIRECTORIES = {
    "nests 1,500 directories": 'cd $0 && perl -e "mkdir q(x) and chdir q(x) or die for 1..1500" && echo done',
    "fills what it shares": "head -c 64M /dev/zero >$0/filling || echo done",
    "puts links in the place of files": 'cd $0 && for f in *; do rm -r "$f"; ln -s /etc/passwd "$f"; done; echo done',
}
_ONE_WORKER = 'exec "$@" -p xdist.plugin -n 1'

#: For the harness alone: the host's clock belongs to others, too.
_SET_BACK = (
    "echo 'import time; real = time.time; time.time = lambda: real() - 3600 * int(time.monotonic() / 2)' >conftest.py"
)


def _comparability() -> Iterator[Fault]:
    before: When = "before the session"
    small = "mkdir -p reports && mount -t tmpfs -o size={} tmpfs reports"
    full = "No space left on device"
    ours = f"{_OWN_RUN},size=1m tmpfs /run/icbench"
    entry = """echo '{"entry":1,"kind":"sundial","data":{}}' >/run/icbench/aaaaaa/journal"""
    pages = "/sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages"
    reports, sessions = "disk of the reports", "disk of the sessions"
    rows: tuple[tuple[str, str, str, End, str, str], ...] = (
        (reports, "is full", "veth", "refused", full, f"{small.format('4k')} && {_FILL.format('reports')}"),
        (reports, "has 24 kB", "veth", "fails", full, small.format("24k")),
        (reports, "is read-only", "veth", "refused", "Read-only file system", small.format("1m,ro")),
        (reports, "is a file", "veth", "refused", "reports is not a directory", ": >reports"),
        (
            sessions,
            "is full",
            "veth",
            "refused",
            full,
            f"{_OWN_RUN},size=4k tmpfs /run/icbench && {_FILL.format('/run/icbench')}",
        ),
        (sessions, "has 12 kB", "linux-bridge", "passes", "2 passed", f"{_OWN_RUN},size=12k tmpfs /run/icbench"),
        (sessions, "is read-only", "veth", "refused", "Read-only file", f"{_OWN_RUN},ro tmpfs /run/icbench"),
        (
            sessions,
            "is open to all",
            "veth",
            "refused",
            "can be written by others",
            f"{ours} && chmod 777 /run/icbench",
        ),
        (sessions, "is another user's", "veth", "refused", "belongs to user", f"{ours} && chown 65534 /run/icbench"),
        (
            "lock",
            "is a directory",
            "veth",
            "refused",
            "lock, cannot be opened .Is a directory",
            f"{ours} && mkdir /run/icbench/lock",
        ),
        (
            "lock",
            "is a link",
            "veth",
            "refused",
            "lock, cannot be opened .Too many levels of symbolic links",
            f"{ours} && ln -s /etc/passwd /run/icbench/lock",
        ),
        (
            "journal",
            "has an unknown entry",
            "veth",
            "passes",
            "this version cannot undo",
            f"{ours} && {_DEAD} && {entry}",
        ),
        ("journal", "is empty", "veth", "passes", "2 passed", f"{ours} && {_DEAD} && : >/run/icbench/aaaaaa/journal"),
        ("open files", "are 28 at most", "linux-bridge", "refused", "may open 28 files", _FEW_FILES),
        ("memory", "is 2 GB at most", "testpmd", "fails", "its address space is limited to", "ulimit -v 2000000"),
        ("huge pages", "cannot be set", "testpmd", "fails", "huge pages", f"mount --bind /dev/null $(echo {pages})"),
        ("switch", "is missing", "testpmd", "passes", "2 skipped", "mount --bind /dev/null $(command -v dpdk-testpmd)"),
        (
            "workload",
            "is no program",
            "veth",
            "refused",
            "is not an executable file",
            "export ICBENCH_WORKLOAD=/etc/passwd",
        ),
        ("control groups", "are read-only", "linux-bridge", "fails", "cgroup|Read-only", _CLOSED_GROUPS),
        ("clock", "is a day ahead", "veth", "passes", "2 passed", _AHEAD),
        ("clock", "is set back all the time", "veth", "passes", "the host's clock was set back by", _SET_BACK),
        ("terminal", "is unknown", "veth", "passes", "2 passed", "export TERM=nonsense COLUMNS=-1"),
    )
    for subject, what, switch, end, says, action in rows:
        yield Fault(subject, what, before, switch, end, says, action, stays=end in ("fails", "passes"))


def _endings() -> Iterator[Fault]:
    """Yields every way in which a session ends or is stopped, but for SIGKILL, and processes that share its state."""
    for name in ("SIGHUP", "SIGTERM", "SIGINT", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGXCPU"):
        for when in _MOMENTS:
            yield Fault("session", f"gets {name}", when, "linux-bridge", "ended", "KeyboardInterrupt", name)
    for what, action in {
        "stands still for 3 s": "kill -STOP $SESSION && sleep 3 && kill -CONT $SESSION",
        "gets SIGHUP twice": "kill -HUP $SESSION && sleep 0.05 && kill -HUP $SESSION",
    }.items():
        end: End = "passes" if "still" in what else "ended"
        says = "2 passed" if end == "passes" else "KeyboardInterrupt"
        yield Fault("session", what, "in a launch", "linux-bridge", end, says, action)
    rows: tuple[tuple[str, str, End, str, str], ...] = (
        ("test", "forks a child that raises", "passes", "2 passed", f"{_FORKS} >conftest.py"),
        ("worker of xdist", "dies", "fails", "crashed while running", f"{_DIES} >conftest.py && {_ONE_WORKER}"),
    )
    for subject, what, end, says, action in rows:
        yield Fault(subject, what, "before the session", "linux-bridge", end, says, action)


def _inherited() -> Iterator[Fault]:
    """Yields what a session inherits from the process that starts it."""
    for what, action in {
        "ignores SIGCHLD": "trap '' CHLD",
        "has a real-time policy": 'exec chrt -f 20 "$@"',
        "has the policy of idle work": 'exec chrt -i 0 "$@"',
        "is nice": 'exec nice -n 19 "$@"',
        "has the umask 0777": "umask 0777",
        "blocks all signals": 'exec env --block-signal "$@"',
    }.items():
        for switch, node in (("linux-bridge", "lxc"), ("testpmd", "netns")):
            before: When = "before the session"
            yield Fault("parent", what, before, switch, "passes", "2 passed", action, node=node, stays=True)


def _environments() -> Iterator[Fault]:
    """Yields what a host, its files and a user's rights are like elsewhere."""
    cpu, limits, ini = "/sys/devices/system/cpu", ">thresholds.toml", ">pyproject.toml"
    siblings, online = f"{cpu}/cpu0/topology/core_cpus_list", f"{cpu}/online"
    without = 'exec setpriv --bounding-set=-{0} --inh-caps=-{0} "$@"'
    two = "2 passed"
    rows: tuple[tuple[str, str, str, End, str, str], ...] = (
        ("root", "has no CAP_NET_ADMIN", "linux-bridge", "passes", "CAP_NET_ADMIN", without.format("net_admin")),
        ("root", "has no CAP_SYS_ADMIN", "linux-bridge", "passes", "CAP_SYS_ADMIN", without.format("sys_admin")),
        ("sysfs", "has siblings that are not present", "linux-bridge", "passes", two, _bound("0,900", siblings)),
        ("sysfs", "has other CPUs than the affinity", "veth", "refused", "numbers them anew", _bound("900", online)),
        ("machine id", "is uninitialized", "veth", "passes", two, _bound("uninitialized", "/etc/machine-id")),
        ("limits", "have a byte order mark and CRLF", "veth", "passes", two, f"printf '{_WINDOWS}' {limits}"),
        ("limits", "are a pointer of git-lfs", "veth", "refused", "git lfs pull", f"echo {_POINTER} {limits}"),
        ("limits", "are in conflict", "veth", "refused", "merge conflict", f"printf '{_CONFLICT}' {limits}"),
        ("ini file", "has numbers and lists", "veth", "passes", two, f"printf '{_TYPED}' {ini}"),
        (
            "trace",
            "has a name with blanks",
            "veth",
            "passes",
            two,
            _option("--icbench-rate=trace:a b", "echo 0,5000 >'a b'"),
        ),
        ("trace", "is a FIFO", "veth", "refused", "not a regular file", _option("--icbench-rate=trace:f", "mkfifo f")),
        ("topology", "has no end", "veth", "refused", "not a regular file", _option("--icbench-topology=/dev/zero")),
    )
    for subject, what, switch, end, says, action in rows:
        yield Fault(subject, what, "before the session", switch, end, says, action, stays=end in ("fails", "passes"))


def _bound(text: str, path: str) -> str:
    return f"echo {text} >bound && mount --bind bound {path}"


def _option(option: str, before: str = "true") -> str:
    return f"{before} && exec \"$@\" '{option}'"


def _containers() -> Iterator[Fault]:
    """Yields what a container does to what it shares with the host."""
    inside = "nsenter --target $VICTIM --mount --pid --net"
    everywhere = f"{inside} find /run/icbench -depth -type d -writable -exec sh -c"  # what is made is not visited
    actions = {what: f"{everywhere} '{action}' {{}} ';'" for what, action in _IN_DIRECTORIES.items()}
    for what, action in actions.items():
        # A link in the place of its sockets ends testpmd's case, as it should.
        switches = ("linux-bridge",) if "links" in what else ("linux-bridge", "testpmd")
        for switch, node in itertools.product(switches, ("lxc", "oci")):
            done = f"({action}) 2>&1 | grep done"
            yield Fault(
                "container",
                what,
                "in a launch",
                switch,
                "passes",
                "2 passed",
                done,
                "icbench-workload pause",
                node,
            )


#: The faults by what they break.
KINDS: dict[str, tuple[Fault, ...]] = {
    "switch": tuple(_switches()),
    "workload": tuple(_workloads()),
    "node": tuple(_nodes()),
    "kernel": tuple(_kernel()),
    "circumstance": tuple(_comparability()),
    "ending": tuple(_endings()),
    "parent": tuple(_inherited()),
    "environment": tuple(_environments()),
    "hostile container": tuple(_containers()),
}
FAULTS: tuple[Fault, ...] = tuple(fault for kind in KINDS.values() for fault in kind)

#: The names of those in the short form: of every kind, the ones that take the least time.
SHORT = (
    "switch killed at the start (testpmd)",
    "switch crashed in a launch (basicfwd)",
    "sender killed in a launch (linux-bridge)",
    "container killed in a launch (linux-bridge, lxc)",
    "bridge deleted in a launch (linux-bridge)",
    "disk of the reports has 24 kB before the session (veth)",
    "disk of the sessions is full before the session (veth)",
    "lock is a link before the session (veth)",
    "journal has an unknown entry before the session (veth)",
    "huge pages cannot be set before the session (testpmd)",
    "workload is no program before the session (veth)",
    "session gets SIGHUP in a launch (linux-bridge)",
    "parent ignores SIGCHLD before the session (linux-bridge, lxc)",
    "limits have a byte order mark and CRLF before the session (veth)",
    "container nests 1,500 directories in a launch (linux-bridge, lxc)",
)
