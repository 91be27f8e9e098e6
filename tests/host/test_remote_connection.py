# SPDX-License-Identifier: BSD-3-Clause
"""A connection to a second host: calls and errors cross it, rigs are made there, and its end is the end of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from pytest_icbench.errors import ConnectionLost, ProvisionError, Unsupported, UsageError
from pytest_icbench.host.session import RUN_DIR
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import endpoint_from_dict
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.remote.connection import Connection
from pytest_icbench.testbed.remote.end import WORKLOAD
from tests.host import snapshot
from tests.second_host import SecondHost, other, unsupported_reason

__all__ = ["other"]  # a fixture

pytestmark = pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason()))

CPU = min(os.sched_getaffinity(0))
PLACEMENT = Placement("cooperative", (), (CPU, CPU), (CPU,), 0, 1)
HOLD = {"binaries": {}, "hugepage_size_kib": 2048, "pf": None, "configs": {}}


@pytest.fixture
def connection(other: SecondHost, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("PATH", other.environment["PATH"])
    found = Connection(other.address)
    try:
        yield found
    finally:
        found.close()


def specification(node: str = "netns") -> dict[str, Any]:
    case = Case("veth", api="udp")
    return {"name": "r1", "case": case.to_dict(), "placement": asdict(PLACEMENT), "node": node, "binary": None}


def test_a_rig_over_there(connection: Connection, other: SecondHost) -> None:
    before = other.snapshot()
    here = snapshot.take()
    assert connection.call("hold", HOLD) == []
    made = connection.call("build", specification())
    a, b = (endpoint_from_dict(each) for each in made["endpoints"])
    argv = [WORKLOAD, "recv", b.address.ip, b.address.mac, a.address.ip, a.address.mac, "--supervised"]
    rig = made["rig"]
    launch = connection.call("launch", rig, {"processes": [{"index": 1, "argv": argv}]})
    began = time.monotonic()
    waiting = connection.begin("poll", rig, launch, 20.0)
    said = connection.result(waiting)
    while '"ready"' not in str(said["lines"]):
        waiting = connection.begin("poll", rig, launch, 20.0)
        said = connection.result(waiting)
    waiting = connection.begin("poll", rig, launch, 20.0)
    connection.call("tell", rig, launch, "stop\n")  # which ends the poll before
    connection.result(waiting)
    while not (told := connection.call("poll", rig, launch, 20.0))["exited"]:
        pass
    assert told["exited"] == {"1": 0}
    assert time.monotonic() - began < 15
    connection.call("end", rig, launch)
    connection.call("undo", rig)
    connection.call("give_back")
    assert snapshot.difference(before, other.snapshot()) == []
    assert {line for line in snapshot.left_since(here) if not line.startswith("process")} == set()


def test_errors_keep_their_kind(connection: Connection) -> None:
    with pytest.raises(Unsupported, match=r"^on the remote host: cooperative placement needs 1001 CPUs"):
        connection.call("plan", 1000, 2, "cooperative")
    with pytest.raises(ProvisionError, match=r"^on the remote host: the rig is not built"):
        connection.call("check", "x1")
    with pytest.raises(UsageError, match="there is no call 'nonsense'"):
        connection.call("nonsense")
    assert "another package" in connection.call("unsupported_reason", "mine", "udp", {})
    assert (
        connection.call("unsupported_reason", "linux-bridge", "udp", {"node": "netns", "hugepage_size_kib": 2048})
        is None
    )


def test_the_end_of_the_connection_is_the_end_of_all(connection: Connection, other: SecondHost) -> None:
    before = other.snapshot()
    connection.call("hold", HOLD)
    connection.call("build", specification())
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
