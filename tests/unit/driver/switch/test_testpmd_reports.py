# SPDX-License-Identifier: BSD-3-Clause
"""What a running testpmd tells: counters and links by EAL's telemetry, its work by its prompt."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_icbench.driver.switch.dpdk import dpdk_process, testpmd
from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
from pytest_icbench.driver.switch.protocol import Busy
from pytest_icbench.errors import ProvisionError
from tests.unit.driver.switch.test_dpdk import session
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["session"]  # a fixture


class TestCounters:
    """testpmd's counters come from EAL's telemetry."""

    @pytest.fixture
    def telemetry(self, session: Any) -> Iterator[dict[str, Any]]:
        """A telemetry socket that answers from a dictionary."""
        directory = session.dir / "eal" / "dpdk" / "rte"
        directory.mkdir(parents=True)
        answers: dict[str, Any] = {}
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(str(directory / "dpdk_telemetry.v2"))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(json.dumps({"version": "x", "pid": 1, "max_output_len": 16384}).encode())
                    while command := client.recv(1024).decode():
                        client.sendall(json.dumps({command.partition(",")[0]: answers[command]}).encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield answers
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(2)

    def fill(self, answers: dict[str, Any], status: str = "UP") -> None:
        for port, (received, sent) in enumerate([(7, 2), (2, 5)]):
            answers[f"/ethdev/stats,{port}"] = {
                "ipackets": received,
                "opackets": sent,
                "oerrors": 0,
                "imissed": 0,
                "ierrors": 0,
                "rx_nombuf": 0,
            }
            answers[f"/ethdev/link_status,{port}"] = {"status": status}

    def test_of_vhost_ports(self, session: Any, telemetry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.fill(telemetry, "DOWN")
        switch = TestPmd()
        switch.start(session, spec_of(session.dir), attachments_of(session.dir))
        prompt_of(switch, monkeypatch, STATS.format(7, CYCLES_22))
        first, second = switch.counters() or []
        assert (first.rx_packets, first.tx_packets, first.tx_dropped) == (7, 2, 0)
        assert (second.index, second.rx_packets, second.tx_packets, second.tx_dropped) == (1, 2, 5, 2)

    def test_without_an_answer_nobody_knows_what_was_dropped(
        self, session: Any, telemetry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fill(telemetry)
        switch = TestPmd()
        switch.start(session, spec_of(session.dir), attachments_of(session.dir))
        prompt = prompt_of(switch, monkeypatch)
        assert [(port.tx_packets, port.tx_dropped) for port in switch.counters() or []] == [(2, None), (5, None)]
        prompt.said.append(STATS.format(1, CYCLES_22).encode())  # late, and no answer to what is asked next
        assert switch.busy() is None
        assert prompt.asked == b"show fwd stats all\n"

    def test_a_memif_without_its_peer_reports_nothing(
        self, session: Any, telemetry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fill(telemetry, "DOWN")
        switch = TestPmd()
        switch.start(session, spec_of(session.dir, port="memif"), attachments_of(session.dir))
        prompt_of(switch, monkeypatch, *[STATS.format(7, CYCLES_22)] * 2)
        assert [port.rx_packets for port in switch.counters() or []] == [None, None]
        self.fill(telemetry, "UP")
        assert [port.rx_packets for port in switch.counters() or []] == [7, 2]

    @pytest.mark.parametrize("port", ["vhost-user", "memif"])
    def test_frames_wait_for_the_link_of_every_port(
        self, session: Any, telemetry: dict[str, Any], port: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """testpmd drops frames for a port whose rings it has not taken over."""
        switch = TestPmd()
        switch.start(session, spec_of(session.dir, port=port), attachments_of(session.dir))
        self.fill(telemetry)
        switch.prepare_traffic()
        telemetry["/ethdev/link_status,1"] = {"status": "DOWN"}
        monkeypatch.setattr(dpdk_process, "START_S", 0.1)
        with pytest.raises(ProvisionError, match=r"testpmd does not see the link of every port within 0.1 s"):
            switch.prepare_traffic()
        comes = threading.Timer(0.1, self.fill, [telemetry])
        monkeypatch.setattr(dpdk_process, "START_S", 10)
        comes.start()
        switch.prepare_traffic()
        assert telemetry["/ethdev/link_status,1"] == {"status": "UP"}

    def test_a_damaged_answer_is_an_error(self, session: Any, telemetry: dict[str, Any]) -> None:
        switch = TestPmd()
        switch.start(session, spec_of(session.dir), attachments_of(session.dir))
        self.fill(telemetry)
        telemetry["/ethdev/stats,0"] = None
        with pytest.raises(ProvisionError, match="has no counters"):
            switch.counters()


#: Frames of the ports in ``STATS``, where both are on the first of two cores.
TAKEN = {"2": 3, "5": 0}
STATS = """
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: {0}              RX-dropped: 0             RX-total: {0}
  TX-packets: 2              TX-dropped: 0             TX-total: 2
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 2              RX-dropped: 0             RX-total: 2
  TX-packets: 5              TX-dropped: 2             TX-total: {0}
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: {0}       RX-dropped: 0             RX-total: {0}
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
{1}testpmd> """
CYCLES_22 = "\n  CPU cycles/packet=105.83 (total cycles=5021518070 / total io packets=47446784) at 2300 MHz Clock\n"
CYCLES_23 = "\n  CPU cycles/packet=105.83 (busy cycles=5021518070 / total io packets=47446784) at 2300 MHz Clock\n"


class Prompt:
    """A pipe to a testpmd: what is asked, and what it says to it, in pieces."""

    def __init__(self, *pieces: str) -> None:
        self.asked = b""
        self.pieces = [piece.encode() for piece in pieces]
        self.said = [b"old news\n"]
        self.closed = False

    def write(self, text: bytes) -> None:
        self.asked += text
        while self.pieces:
            self.said.append(self.pieces.pop(0))
            if self.said[-1].endswith(b"testpmd> "):
                break

    def flush(self) -> None: ...

    def fileno(self) -> int:
        raise AssertionError("set_blocking is patched")

    def read(self, size: int) -> bytes | None:
        return self.said.pop(0) if self.said else None


def prompt_of(switch: TestPmd, monkeypatch: pytest.MonkeyPatch, *pieces: str) -> Prompt:
    """What a started testpmd's pipe has become."""
    monkeypatch.setattr(testpmd, "_ANSWER_S", 0.05)
    monkeypatch.setattr("os.set_blocking", lambda descriptor, blocking: None)
    monkeypatch.setattr(Prompt, "fileno", lambda self: 0)
    assert switch.daemon is not None
    process: Any = switch.daemon.process
    process.stdin = process.stdout = prompt = Prompt(*pieces)
    return prompt


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((STATS.format(1, CYCLES_22),), Busy(5021518070, workers=2, frames=TAKEN)),
        ((STATS.format(1, CYCLES_23),), Busy(5021518070, workers=2, frames=TAKEN)),
        (
            (STATS.format(1, CYCLES_22)[:-60], STATS.format(1, CYCLES_22)[-60:]),
            Busy(5021518070, workers=2, frames=TAKEN),
        ),
        ((STATS.format(0, ""),), Busy(0, workers=2, frames={"2": 2, "5": 0})),
        ((STATS.format(1, CYCLES_22.replace("5021518070", "0")),), None),
        ((), None),
    ],
    ids=["22.11", "23.11", "in pieces", "nothing forwarded", "a mode that counts none", "no answer"],
)
def test_testpmd_reports_its_busy_cycles(
    session: Any, monkeypatch: pytest.MonkeyPatch, pieces: tuple[str, ...], expected: Busy | None
) -> None:
    switch = TestPmd()
    switch.start(session, spec_of(session.dir, worker_cpus=(2, 5)), attachments_of(session.dir, pairs=2))
    prompt = prompt_of(switch, monkeypatch, *pieces)
    assert switch.busy() == expected
    assert prompt.asked == b"show fwd stats all\n"


def test_testpmd_without_stdbuf_is_not_asked(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda name: None if name == "stdbuf" else which(name))
    switch = TestPmd()
    switch.start(session, spec_of(session.dir), attachments_of(session.dir))
    (started,) = session.spawner.started
    assert started.argv[0] == str(session.binaries["testpmd"])
    prompt = prompt_of(switch, monkeypatch, STATS.format(1, CYCLES_22))
    assert switch.busy() is None
    assert prompt.asked == b""


#: As testpmd 22.11 shows streams where a port has several queues; one without any frame is left out.
STREAMS = """
  ------- Forward Stats for RX Port= 0/Queue= 0 -> TX Port= 1/Queue= 0 -------
  RX-packets: 600            TX-packets: 600            TX-dropped: 0

  ------- Forward Stats for RX Port= 0/Queue= 1 -> TX Port= 1/Queue= 1 -------
  RX-packets: 400            TX-packets: 400            TX-dropped: 0

  ------- Forward Stats for RX Port= 1/Queue= 1 -> TX Port= 0/Queue= 1 -------
  RX-packets: 3              TX-packets: 3              TX-dropped: 0
"""


def test_testpmd_spreads_streams_queue_by_queue(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = TestPmd()
    switch.start(session, spec_of(session.dir, worker_cpus=(2, 5), queues=2), attachments_of(session.dir))
    argv = session.spawner.started[-1].argv
    assert {"--rxq=2", "--txq=2", "--nb-cores=2"} <= set(argv)
    assert sum("net_vhost" in word and word.endswith("queues=2") for word in argv) == 2
    prompt_of(switch, monkeypatch, STREAMS + STATS.format(1003, CYCLES_22))
    busy = switch.busy()
    assert busy is not None
    assert busy.frames == {"2": 600, "5": 403}
    assert switch.assignment() == {0: 2, 1: 2}
