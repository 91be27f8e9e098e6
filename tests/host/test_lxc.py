# SPDX-License-Identifier: BSD-3-Clause
"""What a container shuts out, what it lets in, and what happens when one of LXC does not start."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.guard import make_node, probe_node
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.lxc import LxcNode
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.root import Root, format_cpu_list
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.node_tools import CPU, ENGINES, clean, marked, output, require, session, spawn, started

__all__ = ["clean", "session"]  # fixtures

CPUS = tuple(sorted(os.sched_getaffinity(0)))


@pytest.fixture(autouse=True)
def _lxc(request: pytest.FixtureRequest) -> None:
    require("lxc")


@pytest.fixture(params=marked("lxc", "oci", *ENGINES))
def container(request: pytest.FixtureRequest) -> str:
    """A kind of node that shuts the host out."""
    require(request.param)
    return str(request.param)


@pytest.fixture
def device() -> Iterator[Path]:
    """A device of the host that no container has by itself, and that root may open without more capabilities."""
    for path in map(Path, ("/dev/kvm", "/dev/fuse", "/dev/vhost-net", "/dev/net/tun", "/dev/cpu_dma_latency")):
        if path.exists():
            yield path
            return
    pytest.skip("this host has none of the devices to try with")


def test_the_kernel_grants_exactly_the_cpus_asked_for(session: HostSession, container: str) -> None:
    node = started(session, container, cpus=CPUS[-1:])
    assert output(session, node, "nproc") == "1"
    layout = Layout.read(session.root)
    assert layout.effective_cpus(session.root, SessionGroup.get(session).member(node.spec.name)) == CPUS[-1:]
    # A process cannot get out of it by its affinity.
    if len(CPUS) == 1:
        pytest.skip("one CPU: there is no other to try")
    assert "Invalid argument" in output(
        session, node, f"/usr/bin/python3 -c 'import os; os.sched_setaffinity(0, [{CPUS[0]}])'"
    )


def test_a_container_sees_its_own_sockets_only(session: HostSession, container: str) -> None:
    one, other = started(session, container, "a"), started(session, container, "b")
    assert output(session, one, f"ls {session.dir}") == "sockets-a"
    assert output(session, other, f"ls {session.dir}") == "sockets-b"
    assert output(session, one, f"touch {session.dir}/sockets-a/x") == ""
    assert (session.dir / "sockets-a/x").exists()


def test_a_container_sees_no_process_and_no_file_of_the_host(session: HostSession, container: str) -> None:
    node = started(session, container)
    pids = output(session, node, "ls /proc | grep -E '^[0-9]+$' | wc -l")
    assert int(pids) <= 5  # its init, the shell, the pipeline
    # Of these only the way to the workload's directory is there, if it lies below one of them.
    way = {str(path) for path in (workload_path().parent, *workload_path().parents)}
    listed = output(
        session, node, f"find /root /home /var -path '{workload_path().parent}' -prune -o -print 2>/dev/null"
    )
    assert set(listed.splitlines()) <= {"/root", "/home", "/var"} | way
    for path in ("/", "/usr", "/etc", "/sys"):
        assert "ead-only" in output(session, node, f"touch {path}/x")
    assert "ead-only" in output(session, node, "echo 1 > /proc/sys/kernel/panic")
    assert output(session, node, "echo x > /tmp/x; cat /tmp/x; hostname").split() == ["x", node.spec.name]


def test_a_device_is_there_for_the_container_that_got_it(session: HostSession, container: str, device: Path) -> None:
    node = make_node(container, session, NodeSpec(session.name("a"), [CPU], devices=[device]))
    node.start()
    assert output(session, node, f"exec 3< {device} && echo opened") == "opened"
    assert "No such file" in output(session, started(session, container, "b"), f"exec 3< {device} && echo opened")


def test_a_device_smuggled_in_cannot_be_opened(session: HostSession, container: str, device: Path) -> None:
    node = started(session, container)
    smuggled = session.dir / "sockets-a/device"
    os.mknod(smuggled, stat.S_IFCHR | 0o666, device.stat().st_rdev)
    said = output(session, node, f"exec 3< {smuggled} && echo opened")
    assert "denied" in said or "not permitted" in said  # by the mount or by the device group
    assert "not permitted" in output(session, node, "mknod /tmp/null c 1 3")
    assert (
        output(session, node, "head -c 4 /dev/urandom | wc -c; echo x > /dev/null; head -c 2 /dev/zero | wc -c")
        == "4\n2"
    )


def test_capabilities_are_those_documented(session: HostSession, container: str) -> None:
    from pytest_icbench.driver.node.container import CAPABILITIES

    numbers = {"net_bind_service": 10, "net_admin": 12, "net_raw": 13, "ipc_lock": 14, "sys_nice": 23, "bpf": 39}
    said = output(session, started(session, container), "grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status")
    expected = sum(1 << numbers[name] for name in CAPABILITIES)
    assert [int(line.split()[1], 16) for line in said.splitlines()] == [expected] * 3


def test_packet_sockets_and_locked_memory_work(session: HostSession, container: str) -> None:
    script = """
import ctypes, mmap, resource, socket
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
size = 64 << 20
memory = mmap.mmap(-1, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mlock(ctypes.c_void_p(address), ctypes.c_size_t(size)) == 0
print(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < size or 'limit is large')
"""
    said = output(session, started(session, container), f"/usr/bin/python3 - <<'END'\n{script}\nEND")
    assert said in ("True", "limit is large")


@pytest.mark.parametrize("granted", [True, False])
def test_huge_pages_are_for_the_container_that_got_them(session: HostSession, granted: bool) -> None:
    if Layout.read(session.root).holding("hugetlb") is None:
        pytest.skip("this host has no hugetlb controller: huge pages cannot be barred")
    hugepages.reserve(session, 0, 4)
    node = make_node("lxc", session, NodeSpec(session.name("a"), [CPU], hugepages=granted))
    node.start()
    flags = "mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000"
    script = f"import mmap; m = mmap.mmap(-1, 2 << 20, flags={flags}); m[0] = 1; print(m[0])"
    process = spawn(session, node, f"exec /usr/bin/python3 -c '{script}'")
    assert process.wait(20) == (0 if granted else -signal.SIGBUS)


def test_a_program_that_is_not_there_says_so_in_the_log(session: HostSession, container: str) -> None:
    node = started(session, container)
    log = session.dir / "missing.log"
    process = node.spawn(["/opt/missing/program"], cpus=[CPU], log=log)
    assert process.wait(5) == 127
    assert "/opt/missing/program" in log.read_text()


def test_this_process_stays_in_its_own_cgroups(session: HostSession) -> None:
    """liblxc moves whoever starts a container into the monitor's."""
    before = Path("/proc/self/cgroup").read_text()
    affinity = os.sched_getaffinity(0)
    started(session, "lxc")
    assert Path("/proc/self/cgroup").read_text() == before
    assert os.sched_getaffinity(0) == affinity


def test_controllers_enabled_for_containers_are_taken_back(clean: None) -> None:
    layout = Layout.read(Root())
    if not layout.unified:
        pytest.skip("cgroup v1 has no controllers to enable")
    control = Path(layout.hierarchies[0].top) / "cgroup.subtree_control"
    before = control.read_text()
    with HostSession(UNDO_KINDS) as session:
        started(session, "lxc")
        assert "cpuset" in control.read_text().split()
    assert control.read_text() == before


def test_the_monitor_keeps_none_of_our_files(session: HostSession) -> None:
    node = started(session, "lxc")
    groups = Layout.read(session.root).hierarchies
    procs = Path(groups[0].path(f"icb{session.id}/{node.spec.name}.monitor")) / "cgroup.procs"
    (monitor,) = procs.read_text().split()
    targets = [str(path.readlink()) for path in Path(f"/proc/{monitor}/fd").iterdir()]
    assert not [target for target in targets if target.endswith(("/lock", "/journal"))]


@pytest.mark.slow
def test_containers_start_while_other_threads_run(session: HostSession) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sorted(range(1000))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        node = started(session, "lxc")
        assert [output(session, node, "echo up") for _ in range(10)] == ["up"] * 10
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_one_that_is_killed_while_it_starts_has_ended_whatever_it_then_lacks(
    session: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group without a process has no CPUs."""
    create = LxcNode.create

    def killed(self: LxcNode, *arguments: Any) -> tuple[int, int]:
        init, prepared_ns = create(self, *arguments)
        os.kill(init, signal.SIGKILL)
        while process_start_time(init) is not None:
            time.sleep(0.001)
        return init, prepared_ns

    monkeypatch.setattr(LxcNode, "create", killed)
    with pytest.raises(ProvisionError, match=r"^container icb\S+ ended at once$"):
        started(session, "lxc", "killed")


def test_cpus_that_do_not_exist_are_refused_with_liblxcs_words(session: HostSession) -> None:
    absent = max(CPUS) + 500
    node = make_node("lxc", session, NodeSpec(session.name("a"), [absent]))
    with pytest.raises(ProvisionError) as failure:
        node.start()
    message = str(failure.value)
    assert message.startswith(f"container {session.name('a')} did not start; end of liblxc's log:\n") or (
        f"asked for CPUs {format_cpu_list([absent])}" in message
    )
    assert started(session, "lxc", "b")  # the next one does


@pytest.mark.parametrize(("path", "reason"), [("/dev/absent", "No such file"), ("/etc/passwd", "it is not a device")])
def test_a_bad_device_is_refused_before_anything_starts(session: HostSession, path: str, reason: str) -> None:
    node = make_node("lxc", session, NodeSpec(session.name("a"), [CPU], devices=[Path(path)]))
    with pytest.raises(ProvisionError, match=f"{path} cannot be given to a container: {reason}"):
        node.start()
    assert not [entry for entry in session.journal.pending() if entry.kind == "container"]


def test_without_python_lxc_the_reason_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxc", None)
    with pytest.raises(Unsupported, match=r"pip install 'pytest-icbench\[lxc\]'.*--icbench-node netns"):
        probe_node("lxc", HostSession.probing())
