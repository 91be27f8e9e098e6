# SPDX-License-Identifier: BSD-3-Clause
"""testpmd, basicfwd and direct: what they start, in which words, and what becomes of processes that fail."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.dpdk.basicfwd import BasicFwd
from pytest_icbench.driver.switch.dpdk.direct import DirectLink
from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
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
def test_probe_reports_the_version_of_dpdk(session: Any, driver: Any) -> None:
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
    with pytest.raises(Unsupported, match=f"is not {driver.name}") as caught:
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


def test_a_memif_is_served_by_the_switch(session: Any) -> None:
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
def test_death_at_start_is_reported_with_the_log(session: Any, driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_start_that_someone_has_stopped_says_so_first(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session.spawner.serves = False
    start = session.spawner.start

    def stopped(*args: Any, **more: Any) -> Any:
        process = start(*args, **more)
        process.is_stopped = True
        return process

    monkeypatch.setattr(session.spawner, "start", stopped)
    monkeypatch.setattr(dpdk_process, "START_S", 0.05)
    said = (
        r"^testpmd \(process 4711\) was stopped by a signal, as SIGSTOP does; testpmd has not opened .* within 0.05 s"
    )
    with pytest.raises(ProvisionError, match=said):
        TestPmd().start(session, spec_of(session.dir), attachments_of(session.dir))


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd])
def test_a_pause_stops_the_process_and_its_end_is_an_error(session: Any, driver: Any) -> None:
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


@pytest.mark.parametrize("driver", [TestPmd, BasicFwd, DirectLink])
def test_a_switch_that_was_never_started_can_be_stopped(driver: Any) -> None:
    switch = driver()
    switch.pause()
    switch.resume()
    switch.stop()


def test_testpmd_refuses_cores_without_streams() -> None:
    assert TestPmd().needs(2, 4).pollers == 4
    with pytest.raises(Unsupported, match="at most 2 switch cores"):
        TestPmd().needs(1, 3)
    assert TestPmd().needs_with_queues(1, 4, 2).pollers == 4
    with pytest.raises(Unsupported, match=r"^testpmd cannot use 5 cores for 1 pair of 2 queues, which are 4 streams"):
        TestPmd().needs_with_queues(1, 5, 2)


def test_a_socket_path_too_long_is_refused(session: Any, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(ProvisionError, match="holds 107"):
        TestPmd().start(session, spec_of(deep), attachments_of(deep))
    assert session.spawner.started == []
