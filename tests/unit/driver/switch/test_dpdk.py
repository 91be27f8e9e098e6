# SPDX-License-Identifier: BSD-3-Clause
"""testpmd, basicfwd and direct: what they start, in which words, and what becomes of processes that fail."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.dpdk import dpdk_process, testpmd
from pytest_icbench.driver.switch.dpdk.basicfwd import BasicFwd
from pytest_icbench.driver.switch.dpdk.direct import Direct
from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
from pytest_icbench.driver.switch.protocol import Busy
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.model.endpoint import Address, Memif, VhostUser
from tests.unit.recording_host import RecordingSession, attachments_of, program, spec_of

A, B = Address.of(1, "a"), Address.of(1, "b")


def answer(words: list[str], text: str | None) -> str:
    if words[1:] == ["-v", "--help"]:
        return "EAL: RTE Version: 'DPDK 22.11.11'\nUsage: …"
    raise AssertionError(words)


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("h")
    found = RecordingSession(directory, answer)
    for name in ("testpmd", "basicfwd"):
        found.binaries[name] = program(directory, name)
    yield found
    found.spawner.close()


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def devices(argv: list[str]) -> list[str]:
    return [word.removeprefix("--vdev=") for word in argv if word.startswith("--vdev=")]


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_probe_tells_the_version_of_dpdk(session: Any, driver: Any) -> None:
    found = driver().probe(session, None)
    assert (found.version, found.program) == ("DPDK 22.11.11", str(session.binaries[driver.name]))
    assert session.spawner.started == []


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_a_binary_that_is_missing_is_named_with_its_remedy(
    session: Any, driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.binaries.clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(Unsupported, match=rf"{driver.name} is not installed: .*--icbench-binary {driver.name}=PATH"):
        driver().probe(session, None)
    with pytest.raises(Unsupported, match=rf"/no/where is not .* --icbench-binary {driver.name}=PATH"):
        driver().probe(session, Path("/no/where"))


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_a_binary_that_is_something_else_is_refused_in_one_sentence(tmp_path: Path, driver: Any) -> None:
    other: Any = RecordingSession(tmp_path, lambda words, text: "ls: invalid option -- 'w'")
    with pytest.raises(Unsupported, match="is not a DPDK program") as caught:
        driver().probe(other, program(tmp_path, "ls"))
    assert "\n" not in str(caught.value)


def test_testpmd_forwards_between_ports_it_serves(session: Any) -> None:
    switch = TestPmd()
    places = attachments_of(session.dir, pairs=2)
    endpoints = switch.start(session, spec_of(session.dir, worker_cpus=(2, 5)), places)
    (started,) = session.spawner.started
    sockets = session.dir / "s"
    assert started.argv[1:3] == ["-oL", str(session.binaries["testpmd"])]  # behind stdbuf
    assert option(started.argv, "--lcores") == "0@(0,1),1@2,2@5"
    assert option(started.argv, "--main-lcore") == "0"
    assert {"--no-pci", "--in-memory", "--single-file-segments"} <= set(started.argv)
    assert devices(started.argv) == [f"net_vhost{index},iface={sockets}/p{index},queues=1" for index in range(4)]
    after = started.argv[started.argv.index("--") :]
    assert {
        "--forward-mode=io",
        "--port-topology=paired",
        "--nb-cores=2",
        "--auto-start",
        "--record-core-cycles",
    } <= set(after)
    assert started.cpus == [0, 1, 2, 5]
    assert started.pipes  # at the end of its input it ends
    assert started.env["RUNTIME_DIRECTORY"] == str(session.dir / "eal")
    assert endpoints[0] == VhostUser(A, str(sockets / "p0"))
    assert endpoints[3] == VhostUser(Address.of(2, "b"), str(sockets / "p3"))
    assert switch.facts().version == "DPDK 22.11.11"
    assert switch.assignment() == {0: 2, 1: 2, 2: 5, 3: 5}


def test_testpmd_takes_the_users_rings_and_arguments(session: Any) -> None:
    spec = spec_of(session.dir, config={"burst": 64, "arguments": ["--no-flush-rx"]})
    TestPmd().start(session, spec, attachments_of(session.dir))
    (started,) = session.spawner.started
    assert started.argv[-2:] == ["--burst=64", "--no-flush-rx"]


def test_testpmd_of_jumbo_frames_has_buffers_for_them(session: Any) -> None:
    TestPmd().start(session, spec_of(session.dir, mtu=9198), attachments_of(session.dir))
    (started,) = session.spawner.started
    (size,) = [int(word.partition("=")[2]) for word in started.argv if word.startswith("--mbuf-size=")]
    assert size >= 9198 + 18 + 128


def test_ports_of_other_kinds(session: Any) -> None:
    spec = spec_of(session.dir, port="memif")
    endpoints = TestPmd().start(session, spec, attachments_of(session.dir))
    path = session.dir / "s" / "p0"
    (started,) = session.spawner.started
    assert devices(started.argv)[0] == f"net_memif0,role=server,id=0,socket={path},socket-abstract=no"
    assert endpoints[0] == Memif(A, str(path), role="client")


def test_packed_rings_are_the_endpoints_choice(session: Any) -> None:
    spec = spec_of(session.dir, port="vhost-user-packed")
    endpoints = BasicFwd().start(session, spec, attachments_of(session.dir))
    assert [endpoint.packed for endpoint in endpoints if isinstance(endpoint, VhostUser)] == [True, True]


def test_basicfwd_polls_on_its_main_core(session: Any) -> None:
    BasicFwd().start(session, spec_of(session.dir), attachments_of(session.dir))
    (started,) = session.spawner.started
    assert option(started.argv, "--lcores") == "0@(2)"
    assert started.cpus == [0, 1, 2]
    assert int(option(started.argv, "-m")) == BasicFwd().needs(1, 1).hugepages_mib


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_death_at_start_is_told_with_the_log(session: Any, driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session.spawner.serves = False
    start = session.spawner.start

    def dies(*args: Any, **more: Any) -> Any:
        process = start(*args, **more)
        process.code = 1
        return process

    monkeypatch.setattr(session.spawner, "start", dies)
    with pytest.raises(ProvisionError, match=rf"(?s)^{driver.name} ended with exit code 1; .*last words"):
        driver().start(session, spec_of(session.dir), attachments_of(session.dir))


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_a_start_that_hangs_ends(session: Any, driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session.spawner.serves = False
    monkeypatch.setattr(dpdk_process, "START_S", 0.05)
    with pytest.raises(ProvisionError, match=rf"(?s){driver.name} has not opened .*/p0.* within 0.05 s.*last words"):
        driver().start(session, spec_of(session.dir), attachments_of(session.dir))


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_life_and_death(session: Any, driver: Any) -> None:
    switch = driver()
    switch.start(session, spec_of(session.dir), attachments_of(session.dir))
    (process,) = session.spawner.processes
    switch.check()
    switch.pause()
    switch.pause()
    switch.resume()
    assert process.signals == [signal.SIGSTOP, signal.SIGCONT]
    assert switch.fault() is None
    process.is_stopped = True
    assert switch.fault() == f"{driver.name} (process 4711) was stopped by a signal, as SIGSTOP does"
    switch.pause()
    assert switch.fault() is None  # by us
    switch.resume()
    process.code = -signal.SIGSEGV
    with pytest.raises(ProvisionError, match=r"(?s)was killed by signal 11 \(Segmentation fault\).*last words"):
        switch.check()
    switch.stop()
    switch.stop()
    assert process.stopped == 1


def test_stopping_a_paused_switch_wakes_it_first(session: Any) -> None:
    switch = TestPmd()
    switch.start(session, spec_of(session.dir), attachments_of(session.dir))
    switch.pause()
    switch.stop()
    assert session.spawner.processes[0].signals == [signal.SIGSTOP, signal.SIGCONT]


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd, Direct])
def test_a_switch_that_was_never_started_can_be_stopped(driver: Any) -> None:
    switch = driver()
    switch.pause()
    switch.resume()
    switch.stop()


def test_testpmd_refuses_cores_without_streams() -> None:
    assert TestPmd().needs(2, 4).pollers == 4
    with pytest.raises(Unsupported, match="at most 2 switch cores"):
        TestPmd().needs(1, 3)
    assert TestPmd().needs_of_queues(1, 4, 2).pollers == 4
    with pytest.raises(Unsupported, match=r"^testpmd cannot use 5 cores for 1 pair of 2 queues, which are 4 streams"):
        TestPmd().needs_of_queues(1, 5, 2)


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


def test_a_socket_path_too_long_is_refused(session: Any, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(ProvisionError, match="holds 107"):
        TestPmd().start(session, spec_of(deep), attachments_of(deep))
    assert session.spawner.started == []


class TestCounters:
    """testpmd's counters come from EAL's telemetry."""

    @pytest.fixture
    def telemetry(self, session: Any) -> Iterator[dict[str, Any]]:
        """A telemetry socket that answers from a dictionary."""
        import json
        import threading

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

    def test_a_memif_without_its_peer_tells_nothing(
        self, session: Any, telemetry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fill(telemetry, "DOWN")
        switch = TestPmd()
        switch.start(session, spec_of(session.dir, port="memif"), attachments_of(session.dir))
        prompt_of(switch, monkeypatch, *[STATS.format(7, CYCLES_22)] * 2)
        assert [port.rx_packets for port in switch.counters() or []] == [None, None]
        self.fill(telemetry, "UP")
        assert [port.rx_packets for port in switch.counters() or []] == [7, 2]

    def test_a_damaged_answer_is_an_error(self, session: Any, telemetry: dict[str, Any]) -> None:
        switch = TestPmd()
        switch.start(session, spec_of(session.dir), attachments_of(session.dir))
        self.fill(telemetry)
        telemetry["/ethdev/stats,0"] = None
        with pytest.raises(ProvisionError, match="does not count"):
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
        ((), None),
    ],
    ids=["22.11", "23.11", "in pieces", "nothing forwarded", "no answer"],
)
def test_testpmd_tells_its_busy_cycles(
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
