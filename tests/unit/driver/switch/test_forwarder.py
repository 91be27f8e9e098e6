# SPDX-License-Identifier: BSD-3-Clause
"""The forwarder's driver: modes, the command line, and a conversation with a process that answers or does not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.switch import forward as forwarder
from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.forward import Forwarder, ForwardRawSwitch, ForwardSwitch, mode_options
from pytest_icbench.driver.workload.workload_version import WorkloadVersion
from pytest_icbench.errors import ProvisionError, Unsupported, WorkloadError
from pytest_icbench.host.net import links
from pytest_icbench.host.process import Process
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Memif, VhostUser
from tests.unit.recording_host import RecordingSession, attachments_of, spec_of


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        (None, []),
        ("swap", ["--swap"]),
        ("delay10us", ["--delay", "10"]),
        ("delay3ms", ["--delay", "3000"]),
        ("delay10000ms", ["--delay", "10000000"]),
        ("drop100", ["--drop", "100"]),
        ("dup1", ["--duplicate", "1"]),
        ("reorder2", ["--reorder", "2"]),
        ("cost2000", ["--cost", "2000"]),
        ("cost999999999+drop1", ["--cost", "999999999", "--drop", "1"]),
        ("drop7+ba", ["--drop", "7", "--only", "2"]),
        ("ab+dup3", ["--only", "1", "--duplicate", "3"]),
        ("interrupt", ["--wait", "interrupt"]),
        ("cost5+adaptive", ["--cost", "5", "--wait", "adaptive"]),
        ("drop7+swap+delay1us", ["--drop", "7", "--swap", "--delay", "1"]),
    ],
)
def test_a_mode_has_its_options(mode: str | None, options: list[str]) -> None:
    assert mode_options(mode) == options
    if mode is not None:
        assert ForwardSwitch.has_mode(mode)
        assert Case("forward", mode=mode).id == f"forward:{mode}-64B-b32-1vs1-Rmax"


@pytest.mark.parametrize(
    "mode",
    [
        *("", "+", "drop", "drop0", "drop-1", "drop1.5", "dropx", "drop1us", "drop01", "drop1234567890"),
        *("delay10", "delay10s", "delayus", "delay10001ms", "delay10000001us", "reorder1", "swap1", "Swap", "xconnect"),
        *(
            "drop1+drop2",
            "swap+swap",
            "drop2+",
            "ab",
            "drop2+ab+ba",
            "swap+ba",
            "interrupt+adaptive",
            " drop2",
            "drop2 swap",
            "drop²",
            "delay1us+delay1ms",
        ),
    ],
)
def test_an_invalid_mode_has_no_options(mode: str) -> None:
    assert mode_options(mode) is None
    assert not ForwardSwitch.has_mode(mode)


@given(st.text("delaydropupswcost0123456789us+m", max_size=20))
def test_options_of_any_text_are_whole(mode: str) -> None:
    options = mode_options(mode)
    if options is not None:
        assert sum(word.startswith("--") for word in options) == len(mode.split("+"))


#: A forwarder as its driver hears it; {0} is what it does on a line of standard input.
_ANSWERING = """
import json, sys
def say(**line):
    print(json.dumps(dict(schema=1, **line)), flush=True)
say(type="hello", version="0.1.0", dpdk="DPDK 22.11.11")
say(type="ready", link_up=False)
for asked in sys.stdin:
    {0}
"""
_PORT = dict.fromkeys(forwarder.ForwarderPort.__slots__, 0)
_COUNTERS = {name: 5 for name in forwarder.ForwarderCounters.__slots__ if name != "ports"}
_LINE = {
    "type": "counters",
    **_COUNTERS,
    "busy_cycles": 30,
    "idle_cycles": 70,
    "ports": [
        {**_PORT, "rx": 100, "dropped": 3, "missed": 2, "overflow": 1, "tx": 7, "control": None},
        {**_PORT, "port": 1, "rx": 8, "tx": 90, "refused": 4},
    ],
}


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Its spawner starts a Python program in the forwarder's place."""
    directory = tmp_path_factory.mktemp("h")
    found: Any = RecordingSession(directory)
    found.program = _ANSWERING.format(f"say(**{_LINE!r})")
    record = found.spawner.start
    started: list[Process] = []

    def start(argv: Any, *, log: Path, **more: Any) -> Process:
        record(argv, log=log, **more)
        with log.open("wb") as sink:
            popen = subprocess.Popen(
                [sys.executable, "-c", found.program],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                process_group=0,
            )
        started.append(Process.of_popen(popen, argv, log))
        return started[-1]

    monkeypatch.setattr(found.spawner, "start", start)
    monkeypatch.setattr(forwarder, "workload_path", lambda: Path("/where/icbench-workload"))
    yield found
    for process in started:
        process.stop(term_s=1)
    found.spawner.close()


def started_words(session: Any) -> tuple[list[str], list[str]]:
    """The forwarder's own words, and EAL's."""
    (started,) = session.spawner.started
    assert started.argv[:3] == ["/where/icbench-workload", "dpdk-forward", "--supervised"]
    assert started.pipes  # at the end of its input it ends
    at = started.argv.index("--")
    return started.argv[3:at], started.argv[at + 1 :]


def test_it_serves_the_ports_of_all_pairs(session: Any) -> None:
    switch = ForwardSwitch()
    spec = spec_of(session.dir, mode="drop100+swap")
    endpoints = switch.start(session, spec, attachments_of(session.dir, pairs=2))
    words, eal = started_words(session)
    assert words == ["--drop", "100", "--swap"]
    assert eal[eal.index("--lcores") + 1] == "0@(2)"
    assert int(eal[eal.index("-m") + 1]) == switch.needs(2, 1).hugepages_mib
    assert [word for word in eal if word.startswith("--vdev")] == [
        f"--vdev=net_vhost{index},iface={session.dir}/s/p{index},queues=1" for index in range(4)
    ]
    assert endpoints[3] == VhostUser(Address.of(2, "b"), f"{session.dir}/s/p3")
    assert switch.facts().version == "0.1.0, DPDK 22.11.11"
    assert "--swap" in switch.facts().config["argv"]
    switch.stop()
    switch.stop()


def test_delays_have_room_and_jumbo_frames_too(session: Any) -> None:
    spec = spec_of(session.dir, mode="delay10us", mtu=9198, port="memif")
    endpoints = ForwardSwitch().start(session, spec, attachments_of(session.dir))
    words, eal = started_words(session)
    assert words == ["--delay", "10", "--delay-queue", "4096", "--packet-size", "9216"]
    assert all(word.endswith(",bsize=16384") for word in eal if word.startswith("--vdev"))
    assert endpoints[0] == Memif(Address.of(1, "a"), f"{session.dir}/s/p0", role="client")


def test_the_raw_one_polls_in_a_namespace_of_its_own(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []
    monkeypatch.setattr(forwarder, "workload_path", lambda: Path("/where/icbench-workload"))
    monkeypatch.setattr(links, "create_netns", lambda _, suffix: f"/run/netns/{suffix}")
    monkeypatch.setattr(links, "create_pair", lambda _, a, b, *, mtu: made.append((a.netns, b.name, b.netns)))
    monkeypatch.setattr(links, "delete_netns", lambda _, path: made.append((path,)))
    monkeypatch.setattr(kernel, "remove_ends", lambda ends: made.append(tuple(str(end.index) for end in ends)))
    switch = ForwardRawSwitch()
    places = attachments_of(session.dir)
    spec = spec_of(session.dir, port="veth", mode="delay1ms")
    endpoints = switch.start(session, spec, places)
    (started,) = session.spawner.started
    words = [
        "/where/icbench-workload",
        "forward",
        "--supervised",
        "--mmsg",
        "--delay",
        "1000",
        "--delay-queue",
        "16384",
    ]
    assert started.argv == [*words, "-R", "p0", "-R", "p1"]
    assert (started.cpus, started.netns, started.pipes) == ([2], "/run/netns/r1-fw", True)
    assert [endpoint.kind for endpoint in endpoints] == ["veth", "veth"]
    assert made == [(place.node.netns, f"p{place.index}", "/run/netns/r1-fw") for place in places]
    assert [port.rx_packets for port in switch.counters() or []] == [100, 8]
    del made[:]
    switch.stop()
    switch.stop()
    assert made == [("0", "1"), ("/run/netns/r1-fw",), ()]
    assert (ForwardRawSwitch().needs(4, 1).pollers, ForwardRawSwitch().needs(4, 1).hugepages_mib) == (1, 0)


def test_counters_and_busy_share_are_its_own(session: Any) -> None:
    switch = ForwardSwitch()
    switch.start(session, spec_of(session.dir), attachments_of(session.dir))
    first, second = switch.counters() or []
    assert (first.index, first.rx_packets, first.tx_packets, first.rx_dropped, first.tx_dropped) == (0, 100, 7, 6, 0)
    assert (second.rx_packets, second.tx_packets, second.rx_dropped, second.tx_dropped) == (8, 90, 0, 4)
    busy = switch.busy()
    assert busy is not None
    assert (busy.busy_cycles, busy.idle_cycles) == (30, 70)
    switch.check()


@pytest.mark.parametrize(
    ("reaction", "complaint"),
    [
        ("pass", r"forward did not say counters within 0.2 s; its log is empty"),
        ("sys.exit('last words')", r"(?s)forward ended with exit code 1; .*last words"),
        ("import os, time; os.close(1); time.sleep(60)", r"closed its output and did not end within 1 s"),
    ],
)
def test_no_answer_is_an_error(session: Any, monkeypatch: pytest.MonkeyPatch, reaction: str, complaint: str) -> None:
    monkeypatch.setattr(forwarder, "ANSWER_S", 0.2)
    session.program = _ANSWERING.format(reaction)
    switch = ForwardSwitch()
    switch.start(session, spec_of(session.dir), attachments_of(session.dir))
    if "exit" in reaction or "close" in reaction:
        monkeypatch.setattr(forwarder, "ANSWER_S", 5.0)
    with pytest.raises(ProvisionError, match=complaint):
        switch.counters()


def test_one_that_someone_has_stopped_is_reported_where_its_answer_lacks(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = ForwardSwitch()
    switch.start(session, spec_of(session.dir), attachments_of(session.dir))
    pid = switch.live().process.pid
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    monkeypatch.setattr(forwarder, "ANSWER_S", 0.05)
    with pytest.raises(ProvisionError) as caught:
        switch.counters()
    os.kill(pid, signal.SIGCONT)
    said = (
        rf"forward \(process {pid}\) was stopped by a signal, as SIGSTOP does; forward did not say counters within .*"
    )
    assert re.fullmatch(said, str(caught.value))


def test_an_answer_in_pieces_and_lines_of_others() -> None:
    text = json.dumps({"schema": 1, "type": "window"}) + "\n" + json.dumps({"schema": 1, **_LINE}) + "\n"
    code = (
        "import sys, time\nsys.stdin.readline()\n"
        f"for part in {[text[:30], text[30:200], text[200:]]!r}:\n"
        "    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.02)"
    )
    pipe = subprocess.PIPE
    popen = subprocess.Popen([sys.executable, "-c", code], bufsize=0, stdin=pipe, stdout=pipe)
    process = Process.of_popen(popen, ["forward"], None)
    try:
        assert Forwarder(Daemon("forward", process)).counters().ports[0].rx == 100
    finally:
        process.stop(term_s=1)


def test_death_at_start_is_reported_with_the_log(session: Any) -> None:
    session.program = "import sys; sys.exit('EAL found no port')"
    with pytest.raises(ProvisionError, match=r"(?s)forward ended with exit code 1; .*EAL found no port"):
        ForwardSwitch().start(session, spec_of(session.dir), attachments_of(session.dir))


def test_a_wrong_mode_starts_nothing(session: Any) -> None:
    with pytest.raises(ProvisionError, match=r"forward has no mode 'drop'; it takes parts joined by \+"):
        ForwardSwitch().start(session, spec_of(session.dir, mode="drop"), attachments_of(session.dir))
    assert session.spawner.started == []


def test_a_workload_without_dpdk_is_refused(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarder, "workload_version", lambda: WorkloadVersion("0.1.0", "22.11.11"))
    assert ForwardSwitch().probe(session, None).version == "0.1.0, DPDK 22.11.11"
    monkeypatch.setattr(forwarder, "workload_version", lambda: WorkloadVersion("0.1.0", None))
    with pytest.raises(Unsupported, match="built without it: apt install libdpdk-dev"):
        ForwardSwitch().probe(session, None)

    def missing() -> WorkloadVersion:
        raise WorkloadError("the executable is missing")

    monkeypatch.setattr(forwarder, "workload_version", missing)
    with pytest.raises(Unsupported, match="executable is missing"):
        ForwardSwitch().probe(session, None)


def test_a_switch_that_was_never_started() -> None:
    switch = ForwardSwitch()
    switch.pause()
    switch.resume()
    switch.stop()
    with pytest.raises(ProvisionError, match="was not started"):
        switch.check()
