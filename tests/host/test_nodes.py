# SPDX-License-Identifier: BSD-3-Clause
"""Containers and bare namespaces, for real: what every kind of node does."""

from __future__ import annotations

import signal
import statistics
import time
from pathlib import Path

import pytest

from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import (
    CPU,
    ECHO,
    assert_streams_pass,
    clean,
    cpu_ticks,
    kind,
    output,
    session,
    spawn,
    started,
)

__all__ = ["clean", "kind", "session"]  # fixtures


def test_eight_nodes_have_a_network_each_and_nothing_in_it(session: HostSession, kind: str) -> None:
    took, nodes = [], []
    for number in range(8):
        begin = time.monotonic()
        nodes.append(started(session, kind, f"n{number}"))
        took.append(time.monotonic() - begin)
    # Tens of milliseconds, but for emulated machines; the commands of an engine take ten times as long.
    assert statistics.median(took) < (5 if kind in ("docker", "podman") else 1)
    networks = {output(session, node, "readlink /proc/self/ns/net") for node in nodes}
    assert len(networks) == 8
    assert str(Path("/proc/self/ns/net").readlink()) not in networks
    for node in nodes:
        devices = output(session, node, "tail -n +3 /proc/net/dev").splitlines()
        assert [line.split(":")[0].strip() for line in devices] == ["lo"]


def test_the_facts_name_the_network_namespace(session: HostSession, kind: str) -> None:
    node = make_node(kind, session, NodeSpec(session.name("a"), [CPU]))
    facts = node.start()
    assert facts.name == node.spec.name
    assert str(Path(facts.netns).readlink()) == output(session, node, "readlink /proc/self/ns/net")


def test_a_process_has_pipes_a_log_and_an_exit_code(session: HostSession, kind: str, tmp_path: Path) -> None:
    node = started(session, kind)
    log = tmp_path / "log"
    process = node.spawn(["/bin/sh", "-c", ECHO], cpus=[CPU], log=log)
    assert_streams_pass(process, log)


def test_a_killed_process_has_the_signal_as_its_exit_code(session: HostSession, kind: str) -> None:
    process = spawn(session, started(session, kind), "sleep 60 & wait")
    process.signal(signal.SIGKILL)
    assert process.wait(5) == -signal.SIGKILL


#: Signals 32 and 33 are the C library's own: its calls neither show nor change what an ancestor did to them, and it
#: sets them itself before it uses them.
C_LIBRARY_SIGNALS = 1 << 31 | 1 << 32


def test_signals_have_their_default_effect_again(session: HostSession, kind: str) -> None:
    masks = output(session, started(session, kind), "grep -E 'SigBlk|SigIgn' /proc/self/status")
    for line in masks.splitlines():
        assert int(line.split()[1], 16) & ~C_LIBRARY_SIGNALS == 0, masks


def test_processes_are_pinned_and_marked(session: HostSession, kind: str) -> None:
    node = started(session, kind)
    said = output(session, node, "grep Cpus_allowed_list /proc/self/status; echo $ICBENCH_SESSION; nproc")
    assert said.split() == ["Cpus_allowed_list:", str(CPU), session.id, "1"]


def test_processes_of_all_nodes_share_one_cpu_group(session: HostSession, kind: str) -> None:
    cpu_groups = set()
    for suffix in ("a", "b"):
        process = spawn(session, started(session, kind, suffix), "sleep 60")
        for line in Path(f"/proc/{process.pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "cpu" in controllers.split(","):
                cpu_groups.add(path)
    layout = Layout.read(session.root)
    if layout.unified:  # they stay in their nodes' groups, which are none to the scheduler
        assert "cpu" in layout.hierarchies[0].controllers
        control = Path(layout.hierarchies[0].path(f"icb{session.id}")) / "cgroup.subtree_control"
        assert "cpu" not in control.read_text().split()
        return
    assert len(cpu_groups) == 1
    assert cpu_groups.pop().endswith(f"icb{session.id}")


def test_pause_stops_a_spinning_process_and_resume_lets_it_go_on(session: HostSession, kind: str) -> None:
    node = started(session, kind)
    process = spawn(session, node, "while :; do :; done")
    time.sleep(0.1)
    node.pause()
    before = cpu_ticks(process.pid)
    assert before > 0
    time.sleep(0.3)
    assert cpu_ticks(process.pid) == before
    with pytest.raises(ProvisionError, match="it is paused"):
        spawn(session, node, "true")
    node.resume()
    time.sleep(0.3)
    assert cpu_ticks(process.pid) > before


def test_stop_ends_a_process_that_ignores_it_and_can_be_called_again(session: HostSession, kind: str) -> None:
    node = started(session, kind)
    process = spawn(session, node, "trap '' TERM INT HUP; echo up; while :; do :; done")
    assert process.stdout is not None
    assert process.stdout.read(3) == b"up\n"
    begin = time.monotonic()
    node.stop()
    assert time.monotonic() - begin < 2
    assert process.poll() == -signal.SIGKILL
    node.stop()
    with pytest.raises(ProvisionError, match="it is not running"):
        spawn(session, node, "true")


def test_a_paused_node_can_be_stopped(session: HostSession, kind: str) -> None:
    node = started(session, kind)
    process = spawn(session, node, "while :; do :; done")
    node.pause()
    node.stop()
    assert process.poll() is not None


def test_a_stopped_node_leaves_nothing_while_the_session_goes_on(session: HostSession, kind: str) -> None:
    started(session, kind, "first").stop()  # what belongs to the session is there from now on
    before = snapshot.take()
    node = make_node(kind, session, NodeSpec(session.name("a"), [CPU]))
    node.start()
    spawn(session, node, "sleep 60 & sleep 60")
    node.stop()
    assert snapshot.left_since(before, but=".log is new") == []


def test_a_session_ends_nodes_that_nobody_stopped(clean: None, kind: str) -> None:
    with HostSession(UNDO_KINDS) as session:
        processes = [spawn(session, started(session, kind, name), "while :; do :; done") for name in ("a", "b")]
        paused = started(session, kind, "c")
        processes.append(spawn(session, paused, "sleep 60"))
        paused.pause()
    assert all(process.poll() is not None for process in processes)


def test_an_unknown_kind_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no kind of node 'jail'; known are lxc, netns, oci, podman, docker, vm"):
        make_node("jail", HostSession.probing(), NodeSpec("x", [0]))
