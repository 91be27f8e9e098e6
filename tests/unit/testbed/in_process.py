# SPDX-License-Identifier: BSD-3-Clause
"""A connection whose other end is in this process: every call and every answer makes its trip as JSON."""

from __future__ import annotations

import json
from typing import Any, cast

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.remote.connection import Connection, Reply
from pytest_icbench.testbed.remote.remote_rig import RemoteRig, TwoHostRig
from pytest_icbench.testbed.remote.server import HostEnd


class InProcess:
    """What a ``Connection`` is to whoever calls."""

    def __init__(self) -> None:
        self.end = HostEnd()
        self.live = True
        self.wake = -1

    def begin(self, name: str, *arguments: Any) -> Reply:
        sent = json.loads(json.dumps([name, *arguments]))
        reply = Reply()
        reply.data = json.loads(json.dumps({"result": self.end.answer(sent[0], sent[1:])}))
        reply.arrived.set()
        return reply

    def result(self, reply: Reply, timeout_s: float = 0.0) -> Any:
        return reply.data["result"]

    def call(self, name: str, *arguments: Any) -> Any:
        return self.result(self.begin(name, *arguments))


class Running:
    """A launch whose processes have these ids."""

    def __init__(self, pids: dict[int, int]) -> None:
        self._pids = pids

    def pids(self) -> dict[int, int]:
        return self._pids


def host_rig(pids: dict[int, int]) -> HostRig:
    """The part of a rig that was built on one host, with a launch ``l1``."""
    rig = HostRig(HostSession.probing(), builtin_switches())
    rig._launches["l1"] = cast("Any", Running(pids))
    return rig


def rigs(here: dict[int, int], there: dict[int, int]) -> tuple[HostRig, RemoteRig, TwoHostRig]:
    """One on this host, one on the second, and both as one. Its launch is ``l1+l1``."""
    connection = InProcess()
    connection.end._rigs["x1"] = host_rig(there)
    remote = RemoteRig(cast("Connection", connection))
    remote._id = "x1"
    near = host_rig(here)
    both = TwoHostRig(near, remote, Uplink("eth1"), Uplink("eth2"))
    both.away = tuple(there)
    return near, remote, both
