# SPDX-License-Identifier: BSD-3-Clause
"""A connection to a second host: calls and errors cross it, rigs are made there, and its end is the end of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from pytest_icbench.errors import ConnectionLost, ProvisionError, Unsupported, UsageError
from pytest_icbench.host.host_session import RUN_DIR, SessionOptions
from pytest_icbench.model.case import Case
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import LOCAL_WORKLOAD, LaunchPlan, PlannedProcess, RigSpec
from pytest_icbench.testbed.remote.connection import Connection
from pytest_icbench.testbed.remote.host_calls import RIG_CALLS, SwitchQuestion
from pytest_icbench.testbed.remote.remote_host import RemoteCalls
from pytest_icbench.testbed.remote.remote_rig import RemoteRig
from tests.host import snapshot
from tests.second_host import SecondHost, other, unsupported_reason

__all__ = ["other"]  # a fixture

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason())),
]

CPU = min(os.sched_getaffinity(0))
PLACEMENT = Placement("cooperative", (), (CPU, CPU), (CPU,), 0, 1)
HOLD = SessionOptions()
CASE = Case("veth", api="udp")
SPEC = RigSpec("r1", CASE, PLACEMENT, "netns")


@pytest.fixture
def connection(other: SecondHost, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("PATH", other.environment["PATH"])
    found = Connection(other.address)
    try:
        yield found
    finally:
        found.close()


def test_a_rig_over_there(connection: Connection, other: SecondHost) -> None:
    before = other.snapshot()
    here = snapshot.take()
    host, rig = RemoteCalls(connection), RemoteRig(connection)
    assert host.hold(HOLD, "none") == ()
    a, b = rig.prepared(rig.begin_prepare(SPEC)).endpoints
    argv = (LOCAL_WORKLOAD, "recv", b.address.ip, b.address.mac, a.address.ip, a.address.mac, "--supervised")
    launch = rig.launch(LaunchPlan((PlannedProcess(1, argv),)))
    began = time.monotonic()
    while '"ready"' not in str(rig.poll(launch, 20.0).lines):
        pass
    poll = RIG_CALLS["poll"]
    waiting = rig.begin(poll, {"launch_id": launch, "timeout_s": 20.0})
    rig.tell(launch, "stop\n")  # which ends the poll before
    rig.result(poll, waiting)
    while not (reported := rig.poll(launch, 20.0)).exited:
        pass
    assert reported.exited == {1: 0}
    assert time.monotonic() - began < 15
    rig.end(launch)
    rig.undo()
    host.give_back()
    assert snapshot.difference(before, other.snapshot()) == []
    assert {line for line in snapshot.left_since(here) if not line.startswith("process")} == set()


def test_errors_keep_their_kind(connection: Connection) -> None:
    with pytest.raises(Unsupported, match=r"^on the remote host: cooperative placement needs 1001 CPUs"):
        connection.call("plan", 1000, 2, "cooperative")
    with pytest.raises(ProvisionError, match=r"^on the remote host: the rig is not built"):
        connection.call("check", "x1")
    with pytest.raises(UsageError, match="there is no call 'nonsense'"):
        connection.call("nonsense")
    host = RemoteCalls(connection)
    reason = host.unsupported_reason(SwitchQuestion("mine", "veth", "udp", "netns", 2048))
    assert "another package" in (reason or "")
    assert host.unsupported_reason(SwitchQuestion("linux-bridge", "veth", "udp", "netns", 2048)) is None


def test_the_end_of_the_connection_is_the_end_of_all(connection: Connection, other: SecondHost) -> None:
    before = other.snapshot()
    RemoteCalls(connection).hold(HOLD, "none")
    RemoteCalls(connection).build(SPEC)
    assert other.run("ls", RUN_DIR).stdout
    connection._kill_ssh()
    deadline = time.monotonic() + 20
    while connection.live and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ConnectionLost, match=r"^the connection to the remote host was lost"):
        connection.call("identity")
    while other.processes("sys.stdin.readline") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert snapshot.difference(before, other.snapshot()) == []
