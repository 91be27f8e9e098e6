# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of kind ``vm`` with a program in QEMU's place: what is started, asked and passed on, and its faults."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node.protocol import Node, NodeFacts, NodeSpec
from pytest_icbench.driver.node.vm import node as vm
from pytest_icbench.driver.node.vm import qemu
from pytest_icbench.driver.node.vm.node import KERNEL, VmNode
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import RUN_DIR, HostSession, SessionOptions
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.process import Process
from pytest_icbench.host.recover import recover
from pytest_icbench.model.endpoint import Address, Memif, Pci, Veth, VhostUser
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests import fake_qemu
from tests.host import snapshot
from tests.host.node_tools import CPU, ECHO, assert_streams_pass, clean, tidy_snapshot
from tests.unit.driver.node.test_vm import bzimage

__all__ = ["clean"]  # fixture

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

A, B = Address.of(1, "a"), Address.of(1, "b")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel, and QEMU's stand-in on PATH."""
    program = tmp_path / qemu.PROGRAM
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {fake_qemu.__file__} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "vmlinuz").write_bytes(bzimage())
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def session(clean: None, programs: Path) -> Iterator[HostSession]:
    options = SessionOptions(binaries={KERNEL: str(programs / "vmlinuz")})
    with HostSession(UNDO_KINDS, options) as session:
        yield session


Started = tuple[VmNode, NodeFacts]


@pytest.fixture
def start(session: HostSession) -> Iterator[Callable[[], Started]]:
    nodes: list[VmNode] = []

    def make() -> Started:
        node = VmNode(session, NodeSpec(session.name(f"n{len(nodes)}"), [CPU]))
        nodes.append(node)
        return node, node.start()

    yield make
    for node in nodes:
        node.stop()


def calls(session: HostSession, node: VmNode) -> list[str]:
    path = session.dir / f"{node.spec.name}.vm/calls"
    return path.read_text().splitlines() if path.exists() else []


def test_a_machine_boots_once_it_has_its_device(session: HostSession, start: Callable[[], Started]) -> None:
    node, facts = start()
    assert calls(session, node) == []
    assert facts.link == qemu.TAP
    assert Path(f"/proc/{facts.init_pid}/cmdline").read_bytes().count(b"icbench.") == qemu.CHANNELS
    assert facts.netns == f"/proc/{facts.init_pid}/ns/net"


def test_a_kernel_s_port_becomes_an_interface_with_its_neighbours(
    session: HostSession, start: Callable[[], Started]
) -> None:
    node, facts = start()
    assert facts.plug is not None
    assert facts.plug(Veth(A, "eth0", "p0"), 1500, [B]) == Veth(A, "eth0", "p0")
    device, *commands = calls(session, node)
    assert (f'"mac": "{A.mac}"' in device, '"host_mtu": 1500' in device) == (True, True)
    assert commands == ["ready", f"link {A.ip} 16 1500", f"neighbour {B.mac} {B.ip}"]


def test_a_vhost_user_port_becomes_a_device_of_dpdk(session: HostSession, start: Callable[[], Started]) -> None:
    node, facts = start()
    assert facts.plug is not None
    assert facts.plug(VhostUser(A, "/s/p0", packed=True), 1500, [B]) == Pci(A, qemu.PCI_ADDRESS)
    backend, net, device, *commands = calls(session, node)
    assert '"path": "/s/p0"' in backend
    assert '"type": "vhost-user"' in net
    assert '"packed": true' in device
    assert commands == ["ready", "pages 40", f"driver {qemu.PCI_ADDRESS} uio_pci_generic"]


@pytest.mark.parametrize(
    "endpoint", [Memif(A, "/s"), VhostUser(A, "/s", role="back-end"), VhostUser(A, "/s", serves=True)]
)
def test_a_port_that_no_machine_takes_is_an_error(start: Callable[[], Started], endpoint: Memif | VhostUser) -> None:
    _, facts = start()
    assert facts.plug is not None
    with pytest.raises(ProvisionError, match=endpoint.kind):
        facts.plug(endpoint, 1500, [B])


def plugged(node: Node) -> None:
    facts = node.start()
    assert facts.plug is not None
    facts.plug(Veth(A, "eth0", "p0"), 1500, [B])


@pytest.mark.parametrize(
    ("fault", "culprit"), [("dies", "Kernel panic"), ("mute", "has not answered 'ready'"), ("ready", "it failed")]
)
def test_a_machine_that_does_not_start_is_told_with_its_last_words(
    session: HostSession, monkeypatch: pytest.MonkeyPatch, fault: str, culprit: str
) -> None:
    monkeypatch.setenv("FAKE_QEMU", fault)
    monkeypatch.setattr(vm, "BOOT_S", 0.2)
    node = make_node("vm", session, NodeSpec(session.name("n"), [CPU]))
    with pytest.raises(ProvisionError, match=culprit):
        plugged(node)
    node.stop()
    assert not (session.dir / f"{node.spec.name}.vm").exists()
    assert not list(Path("/run/netns").glob(f"icb{session.id}*"))


@pytest.mark.parametrize(("fault", "culprit"), [("refuses", "no room on the bus"), ("link", "it failed")])
def test_a_device_that_is_refused_is_told(
    monkeypatch: pytest.MonkeyPatch, start: Callable[[], Started], fault: str, culprit: str
) -> None:
    monkeypatch.setenv("FAKE_QEMU", fault)
    _, facts = start()
    assert facts.plug is not None
    with pytest.raises(ProvisionError, match=culprit):
        facts.plug(Veth(A, "eth0", "p0"), 1500, [B])


@pytest.fixture
def started(start: Callable[[], Started]) -> Started:
    return start()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, started: Started, tmp_path: Path) -> Callable[[str], Process]:
    """Runs a script in a machine, whose only program is a shell here."""
    relay = workload_path()
    node, _ = started
    begin = node._begin
    monkeypatch.setattr(vm, "workload_path", lambda: Path("/bin/sh"))
    monkeypatch.setattr(node, "_begin", lambda argv, *rest, **more: begin([str(relay), *argv[1:]], *rest, **more))
    return lambda script: node.spawn(["/bin/sh", "-c", script], cpus=[CPU], log=tmp_path / "log")


def test_a_process_has_pipes_a_log_and_an_exit_code(shell: Callable[[str], Process], tmp_path: Path) -> None:
    assert_streams_pass(shell(ECHO), tmp_path / "log")


def test_all_output_comes_before_the_end(shell: Callable[[str], Process]) -> None:
    process = shell("head -c 3000000 /dev/zero")
    assert process.stdout is not None
    total = 0
    while data := process.stdout.read(65536):
        total += len(data)
    assert total == 3_000_000
    assert process.wait(5) == 0


def test_signals_reach_the_process_and_its_end_by_one_is_seen(shell: Callable[[str], Process]) -> None:
    process = shell("trap 'echo caught; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.read(3) == b"up\n"
    process.signal(signal.SIGTERM)
    assert process.wait(5) == 3
    assert process.stdout.read(10) == b"caught\n"
    assert shell("kill -KILL $$").wait(5) == -signal.SIGKILL


def test_a_killed_relay_takes_its_process_with_it(shell: Callable[[str], Process], tmp_path: Path) -> None:
    process = shell(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    process.stop(term_s=0)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_only_so_many_processes_run_at_a_time(shell: Callable[[str], Process]) -> None:
    first, *_ = [shell("sleep 60") for _ in range(qemu.CHANNELS)]
    with pytest.raises(ProvisionError, match=str(qemu.CHANNELS)):
        shell("true")
    first.stop(term_s=0)
    assert shell("exit 0").wait(5) == 0


def test_a_process_ends_with_its_machine(shell: Callable[[str], Process], started: Started) -> None:
    process = shell("echo up; sleep 60")
    assert process.stdout is not None
    assert process.stdout.read(3) == b"up\n"
    os.kill(started[1].init_pid, signal.SIGKILL)
    assert process.wait(5) == -signal.SIGKILL


def test_another_program_than_the_workload_is_refused(start: Callable[[], Started], tmp_path: Path) -> None:
    node, _ = start()
    with pytest.raises(ProvisionError, match="stress-ng"):
        node.spawn(["/usr/bin/stress-ng"], cpus=[CPU], log=tmp_path / "log")


HARNESS = """
import sys, time
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.node.vm.node import KERNEL, VmNode
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
session = HostSession(UNDO_KINDS, SessionOptions(binaries={KERNEL: sys.argv[1]}))
print(VmNode(session, NodeSpec(session.name("n"), [int(sys.argv[2])])).start().init_pid, flush=True)
time.sleep(60)
"""


def test_a_killed_session_s_machine_is_ended_by_recovery(programs: Path) -> None:
    before = tidy_snapshot()
    root = Path(pytest_icbench.__file__).parents[1]
    command = [sys.executable, "-c", HARNESS, str(programs / "vmlinuz"), str(CPU)]
    harness = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert harness.stdout is not None
    pid = int(harness.stdout.readline())
    harness.kill()
    harness.wait(10)
    assert Path(f"/proc/{pid}").exists(), "nothing else ends it"
    assert recover(RUN_DIR, UNDO_KINDS).failures == []
    assert process_start_time(pid) is None
    assert snapshot.left_since(before) == []
