# SPDX-License-Identifier: BSD-3-Clause
"""Switches that die, hang or never start, and an Open vSwitch that was there before ours."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.driver.switch import snabb
from pytest_icbench.driver.switch.dpdk import basicfwd, dpdk_process, testpmd
from pytest_icbench.driver.switch.ovs import userspace_datapath as ovs
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.switch.vpp import vpp_switch as vpp
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cleanup import session_processes
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.process import Process, Spawner, run
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import clean, session, tidy_snapshot
from tests.host.rig_tools import built
from tests.host.rig_tools import driver as driver_of
from tests.host.test_switches import assert_heard, there_and_back, userspace_pids

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["basicfwd", "testpmd", "ovs"])
def test_a_switch_that_was_killed_is_reported_with_the_end_of_its_log(session: HostSession, name: str) -> None:
    with built(session, Case(name)) as rig:
        rig.check()
        (pid,) = userspace_pids(rig)
        os.kill(pid, signal.SIGKILL)
        for _ in range(100):
            try:
                rig.check()
            except ProvisionError as error:
                text = str(error)
                break
            run(["sleep", "0.02"], timeout_s=1)
        else:
            pytest.fail("nobody noticed")
    first, *tail = text.splitlines()
    assert first.endswith("was killed by signal 9 (Killed); the end of its log:")
    assert any("vhost" in line.lower() for line in tail)


@pytest.mark.parametrize("name", ["vpp", "snabb"])
def test_a_switch_that_is_killed_in_mid_run_is_the_one_that_is_named(session: HostSession, name: str) -> None:
    case = Case(name, Frames(rate=Rate(1000)))
    with built(session, case) as rig:
        there_and_back(rig, case)
        (pid,) = userspace_pids(rig)
        timer = threading.Timer(0.8, os.kill, (pid, signal.SIGKILL))
        timer.start()
        with pytest.raises(ProvisionError, match=rf"^{name} was killed by signal 9 \(Killed\)"):
            run_launch(rig, case, Settings(warmup_s=0.1, duration_s=3.0, drain_s=0.2, repeats=1))
        timer.join()


def test_a_vpp_that_is_paused_right_after_a_message_lives_on_beside_other_work(session: HostSession) -> None:
    """VPP aborts if it is stopped for a second while it holds its workers back, as it does after each message."""
    with built(session, Case("vpp")) as rig:
        switch = driver_of(rig)
        assert isinstance(switch, vpp.Vpp)
        (worker,) = switch._worker_cpus
        spin = f"import os; os.sched_setaffinity(0, [{worker}])\nwhile True: pass"
        spinners = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2)]
        try:
            for _ in range(20):
                for interface in switch._all_interfaces():
                    switch._live().call("sw_interface_set_flags", sw_if_index=interface, flags=1)
                rig.pause()
                time.sleep(1.2)
                rig.resume()
                time.sleep(0.05)
                rig.check()
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()
        there_and_back(rig, Case("vpp"))


#: How a pretender introduces itself as each switch.
INTRODUCTION = {
    "basicfwd": "EAL: RTE Version: 'DPDK 22.11.11'",
    "testpmd": "EAL: RTE Version: 'DPDK 22.11.11'",
    "ovs": "ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.11",
    "snabb": "snabb 2024.06\nCopyright (C) Snabb",
    "vpp": "libvlib.so.26.06",  # for vpp it is read from the file
}
#: What messages call it, where that is not its name.
PROGRAM = {"ovs": "ovs-vswitchd"}


def pretender(path: Path, name: str, script: str) -> Path:
    """Says it is the switch, then does something else. Skips where it takes more than a program to have that."""
    path.write_text(
        f"""#!/bin/sh
case "$*" in *--help|*--version) echo "{INTRODUCTION[name]}"; exit 0;; esac
{script}
"""
    )
    path.chmod(0o755)
    try:
        builtin_switches()[name]().probe(HostSession.probing(), path)
    except Unsupported as reason:
        pytest.skip(str(reason))
    return path


@pytest.mark.parametrize("name", INTRODUCTION)
def test_a_switch_that_ends_at_once(clean: None, tmp_path: Path, name: str) -> None:
    binary = pretender(tmp_path / name, name, "echo 'EAL: no such thing' >&2; exit 7")
    reported = rf"(?s)^{PROGRAM.get(name, name)} ended with exit code 7; .*EAL: no such thing"
    with HostSession(UNDO_KINDS, SessionOptions(binaries={name: str(binary)})) as session:
        with pytest.raises(ProvisionError, match=reported), built(session, Case(name)):
            pytest.fail("it was built")
        assert_no_rig(session)


def assert_no_rig(session: HostSession) -> None:
    """Neither a process of the session's nor a rig's directory is left."""
    assert session_processes(session.id) == []
    assert [path.name for path in session.dir.iterdir() if path.name.startswith("r") and path.name[1:].isdigit()] == []


@pytest.mark.parametrize("name", INTRODUCTION)
def test_a_switch_that_hangs_at_start(clean: None, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, constant in ((dpdk_process, "START_S"), (ovs, "START_S"), (snabb, "_START_S"), (vpp, "_START_S")):
        monkeypatch.setattr(place, constant, 0.3)
    binary = pretender(tmp_path / name, name, "echo waiting >&2; exec sleep 1000")
    reported = rf"(?s)^{PROGRAM.get(name, name)} .* within 0.3 s; .*waiting"
    with HostSession(UNDO_KINDS, SessionOptions(binaries={name: str(binary)})) as session:
        with pytest.raises(ProvisionError, match=reported), built(session, Case(name)):
            pytest.fail("it was built")
        assert_no_rig(session)


def test_what_is_not_the_switch_is_not_started(clean: None) -> None:
    ls = Path(shutil.which("ls") or "/bin/ls")
    probing = HostSession.probing(SessionOptions(binaries=dict.fromkeys(("testpmd", "basicfwd", "ovs"), str(ls))))
    for driver in (testpmd.TestPmd, basicfwd.BasicFwd):
        with pytest.raises(Exception, match=f"{ls} is not "):
            driver().probe(probing, None)


class OtherSwitch:
    """An Open vSwitch without DPDK, started as an administrator would, with a bridge of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.env = {f"OVS_{name}": str(directory) for name in ("RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR")}
        spawner = Spawner("other0")
        db = directory / "conf.db"
        run(["ovsdb-tool", "create", str(db), "/usr/share/openvswitch/vswitch.ovsschema"], timeout_s=10)
        server = ["ovsdb-server", str(db), f"--remote=punix:{directory}/db.sock", f"--unixctl={directory}/a.ctl"]
        daemon = ["ovs-vswitchd", f"unix:{directory}/db.sock", f"--unixctl={directory}/b.ctl", "--disable-system"]
        log = directory / "log"
        self.processes: list[Process] = [spawner.start([*server, "--no-chdir"], log=log, env=self.env)]
        while not (directory / "db.sock").is_socket():
            assert self.processes[0].poll() is None, log.read_text()
        self.processes.append(spawner.start([*daemon, "--no-chdir"], log=log, env=self.env))
        self.vsctl("add-br", "mine", "--", "set", "bridge", "mine", "datapath_type=netdev")

    def vsctl(self, *words: str) -> str:
        argv = ["ovs-vsctl", "--timeout=10", f"--db=unix:{self.directory}/db.sock", *words]
        return run(argv, timeout_s=11, env=self.env).stdout

    def state(self) -> tuple[str, str, list[int | None]]:
        flows = run(
            ["ovs-ofctl", "--timeout=5", "dump-flows", f"unix:{self.directory}/mine.mgmt"], timeout_s=6, env=self.env
        ).stdout
        alive = [process.poll() for process in self.processes]
        return self.vsctl("show"), "".join(line.partition("actions")[2] for line in flows.splitlines()), alive

    def stop(self) -> None:
        run(
            ["ovs-appctl", "--timeout=5", f"--target={self.directory}/b.ctl", "exit", "--cleanup"],
            timeout_s=6,
            check=False,
        )
        self.processes[1].wait(5)  # it removes its taps before it ends
        for process in reversed(self.processes):
            process.stop()


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherSwitch]:
    if not all(shutil.which(name) for name in ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl")):
        pytest.skip("Open vSwitch is not installed")
    before = tidy_snapshot()
    found = OtherSwitch(tmp_path_factory.mktemp("ovs"))
    yield found
    found.stop()
    assert snapshot.left_since(before) == []


def test_an_open_vswitch_that_runs_already_is_untouched(other: OtherSwitch) -> None:
    before, state = tidy_snapshot(), other.state()
    with HostSession(UNDO_KINDS) as session, built(session, Case("ovs")) as rig:
        assert_heard(there_and_back(rig, Case("ovs")))
        assert other.state() == state
    assert other.state() == state
    assert state[2] == [None, None]
    assert snapshot.left_since(before) == []


def test_two_of_ours_stand_side_by_side(session: HostSession) -> None:
    with built(session, Case("ovs")) as first:
        first.pause()
        with built(session, Case("ovs")) as second:
            assert_heard(there_and_back(second, Case("ovs")))
        first.resume()
        assert_heard(there_and_back(first, Case("ovs")))
