# SPDX-License-Identifier: BSD-3-Clause
"""A VPP for tests of its driver: what the host starts is written down, and its API answers as VPP does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.driver.switch.vpp import vpp_switch as module
from pytest_icbench.driver.switch.vpp.vpp_switch import Vpp
from pytest_icbench.errors import ProvisionError
from tests.unit.recording_host import RecordingSession, attachments_of, program, spec_of

RUNTIME = """Thread 0 vpp_main (lcore 0)
          Name                 State         Calls          Vectors        Suspends      Clocks       Vectors/Call
bfd-process                   "event wait"            0               0               1          8.24e3            0.00
---------------
Thread 1 vpp_wk_0 (lcore 1)
  vector rates in 1.7508e4, out 1.7382e4, drop 1.2261e-1, punt 0.0000e0
          Name                 State         Calls          Vectors        Suspends      Clocks       Vectors/Call
ethernet-input                   active                 10             320            0          5.08e1           32.00
vhost-user-input                 polling          36019468             640            0          5.08e3             .02
Thread 2 vpp_wk_1 (lcore 2)
ethernet-input                   active                 10             320            0          5.08e1           32.00
"""


class _Nothing:
    def __getitem__(self, place: tuple[slice, int]) -> Any:
        return SimpleNamespace(sum_packets=lambda: 0)


class Statistics(dict[str, Any]):
    """Of interfaces that have brought no frame."""

    def __missing__(self, name: str) -> Any:
        return _Nothing()


class Client:
    """Writes down messages and answers as VPP does."""

    def __init__(self, *sockets: Path) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refuses = self.lacks = ""
        self.workers: dict[int, int] = {}
        self.rx_modes: dict[int, int] = {}
        self.keeps_rx_mode = False
        self.connects_after = 0
        self.queues = 1
        self.closed = 0
        self.commands: list[str] = []

    def call(self, message: str, **arguments: Any) -> Any:
        self.calls.append((message, arguments))
        if message == self.refuses:
            raise ProvisionError(f"vpp refused {message}: No space left on device")
        if message == "show_version":
            return SimpleNamespace(version="26.06-release")
        if message == "sw_interface_rx_placement_dump":
            interface = arguments["sw_if_index"]
            placed, mode = self.workers.get(interface, 0), self.rx_modes.get(interface, 2)
            queues = self.queues if len(self.sent("sw_interface_set_flags")) >= self.connects_after else 0
            return [SimpleNamespace(queue_id=queue, worker_id=placed, mode=mode) for queue in range(queues)]
        if message == "sw_interface_set_rx_mode" and not self.keeps_rx_mode:
            self.rx_modes[arguments["sw_if_index"]] = arguments["mode"]
        made = [
            name for name, _ in self.calls if re.match(r"create_vhost_user|(memif|af_packet|af_xdp|tap)_create", name)
        ]
        return SimpleNamespace(sw_if_index=len(made))

    def knows(self, message: str) -> bool:
        return message != self.lacks

    def command(self, line: str, timeout_s: float = 0.0) -> str:
        if line == self.refuses:
            raise ProvisionError(f"vpp did not answer the command '{line}': [Errno 2] read failed")
        self.commands.append(line)
        return RUNTIME

    def statistics(self) -> Any:
        return nullcontext(Statistics())

    def close(self) -> None:
        self.closed += 1

    def sent(self, message: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == message]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(vpp_client, "VppClient", lambda *sockets: found)
    monkeypatch.setattr(vpp_client, "check_installed", lambda: None)
    monkeypatch.setattr(module, "wait_for_sockets", lambda paths, daemon, timeout_s: daemon.check())
    return found


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory, client: Client) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("v")
    found = RecordingSession(directory)
    found.binaries["vpp"] = binary = program(tmp_path_factory.mktemp("bin"), "vpp")
    binary.write_bytes(b"\x7fELF\0libvnet.so.26.06\0libvlib.so.26.06\0")
    yield found
    found.spawner.close()


def start(session: Any, pairs: int = 1, **changes: Any) -> tuple[Vpp, list[Any]]:
    switch = Vpp()
    return switch, switch.start(session, spec_of(session.dir, **changes), attachments_of(session.dir, pairs))
