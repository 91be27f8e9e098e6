# SPDX-License-Identifier: BSD-3-Clause
"""Paths that are no paths: each ends as a verdict of its own, with the evidence, never as a number."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.case_rig import Rig
from tests.host.node_tools import clean, session
from tests.host.rig_tools import acting, built
from tests.host.test_measure import switch_pid
from tests.host.test_switches import userspace_pids

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]

CLONE_NEWNET = 0x40000000
QUICK = Settings(max_duration_s=1.0, warmup_s=0.1, duration_s=1.0, drain_s=0.3, repeats=2)
BRIDGE = Case("linux-bridge", Frames(rate=Rate(2000)), api="raw")


def measured(
    rig: Rig,
    case: Case,
    act: Callable[[list[int]], None],
    settings: Settings = QUICK,
    *,
    executable: Path | None = None,
    before: Callable[[], None] | None = None,
) -> Measurement:
    """A measurement during which ``act`` does its work once, as soon as frames of the third window were received.

    ``act`` gets the ids of the processes. With ``before``, which undoes it before each launch, it does so in each.
    """
    phases: list[str] = []
    acted: list[Mapping[int, int]] = []
    launch = rig.launch

    def undo_and_launch(plan: Any) -> str:
        if before is not None:
            before()
        return launch(plan)

    def remember(pids: Mapping[int, int]) -> None:
        acted.append(pids)
        act(list(pids.values()))

    def is_due() -> bool:
        return phases[-1] == "case" and (before is not None or not acted)

    rig.launch = undo_and_launch  # type: ignore[method-assign]
    with acting(rig, remember, windows=3, when=is_due):
        found = measure(Side(rig, case), settings, on_progress=lambda progress: phases.append(progress.phase))
    assert acted
    return found


def invalid(found: Measurement, reason: str) -> str:
    assert (found.verdict, found.reason, found.launches, found.frames.throughput_pps) == ("INVALID", reason, 0, None)
    return str(found.evidence)


def test_a_path_that_stops_half_way_has_stalled(session: HostSession) -> None:
    """A launch that others disturbed is made again, and stops as well."""
    nodes: list[int] = []

    def set_mtu(mtu: int) -> None:
        for node in nodes:
            links.set_mtu("eth0", mtu, netns=f"/proc/{os.getpid()}/fd/{node}")

    def cut(pids: list[int]) -> None:
        nodes[:] = nodes or [os.open(f"/proc/{pids[1]}/ns/net", os.O_RDONLY | os.O_CLOEXEC)]
        set_mtu(68)

    case = BRIDGE.sending(traffic=Traffic(512))
    try:
        with built(session, case, node="netns") as rig:
            found = measured(rig, case, cut, before=lambda: set_mtu(1500))
    finally:
        for node in nodes:
            os.close(node)
    assert "pair 1: nothing arrived in the last" in invalid(found, "stalled")


@pytest.mark.parametrize(
    ("name", "settles"),
    [("testpmd", True), ("ovs", False), ("vpp", False), ("snabb", False)],
)
def test_a_switch_that_hangs_half_way_has_stalled(session: HostSession, name: str, settles: bool) -> None:
    """The sender's ring is full then, and nothing more is scheduled: that is no reason to see no stall. Nor is it that
    the switch does not say how busy it was. A launch that others disturbed is made again, and hangs as well.
    """
    stopped: list[int] = []
    case = Case(name)
    with built(session, case, node="netns") as rig:

        def hang(_pids: list[int]) -> None:
            stopped.extend(userspace_pids(rig))
            os.kill(stopped[0], signal.SIGSTOP)

        def go_on() -> None:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

        settings = replace(QUICK, duration_s=2.0, max_warmup_s=1.0 if settles else 0.0)
        try:
            found = measured(rig, case, hang, settings, before=go_on)
        finally:
            go_on()
    evidence = invalid(found, "stalled")
    assert "nothing arrived in the last" in evidence
    assert f"(process {stopped[0]}) was stopped by a signal" in evidence


def test_a_switch_that_dies_half_way_is_a_verdict_with_the_end_of_its_log(session: HostSession) -> None:
    case = Case("testpmd")
    with built(session, case, node="netns") as rig:
        found = measured(rig, case, lambda _pids: os.kill(switch_pid(rig), signal.SIGKILL))
    first, *log = invalid(found, "died").splitlines()
    assert first.startswith("testpmd was killed by signal 9")
    assert log
    assert found.repeated == 0


def frame(source: Endpoint, target: Endpoint, stream: int) -> bytes:
    """One of the workload's frames of 64 bytes, window 1, with a padding that nobody generated."""
    mac = [bytes.fromhex(each.address.mac.replace(":", "")) for each in (target, source)]
    stamp = struct.pack(">HH6sQ", stream, 1, b"\0\0\0\0\0\1", 1)
    udp = struct.pack(">HHHH", 9, 9, 8 + 210, 0) + stamp + b"\xff" * 192
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *(
        socket.inet_aton(each.address.ip) for each in (source, target)
    ))  # fmt: skip
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + ip[12:]
    return mac[0] + mac[1] + b"\x08\x00" + ip + udp


def inject(pid: int, content: bytes, times: int) -> None:
    """Sends frames out of the interface of a process' network namespace, from a thread that enters it."""

    def send() -> None:
        with Path(f"/proc/{pid}/ns/net").open() as there:
            assert ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) == 0
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("eth0", 0))
            for _ in range(times):
                out.send(content)

    thread = threading.Thread(target=send)
    thread.start()
    thread.join(10)


def stream_of(pid: int) -> int:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return int(words[words.index(b"--stream-id") + 1])


@pytest.mark.parametrize(
    ("another", "reason", "sentence"),
    [
        (1, "flooded", "received 400 frames of others beside"),
        (0, "corrupted", "received 400 damaged frames beside"),
    ],
)
def test_frames_of_another_pair_and_damaged_ones(
    session: HostSession, another: int, reason: str, sentence: str
) -> None:
    case = replace(BRIDGE, check_payload=True).sending(traffic=Traffic(256))
    with built(session, case, node="netns") as rig:

        def send(pids: list[int]) -> None:
            inject(pids[0], frame(rig.endpoints[0], rig.endpoints[1], stream_of(pids[0]) + another), 400)

        found = measured(rig, case, send, replace(QUICK, repeats=1))
    assert sentence in invalid(found, reason)


def test_a_machine_whose_clock_is_not_invariant(session: HostSession, tmp_path: Path) -> None:
    """A workload that finds no invariant TSC says so by its exit code; nothing is measured."""
    pretender = tmp_path / "workload"
    pretender.write_text("#!/bin/sh\necho 'no invariant TSC' >&2\nexit 6\n")
    pretender.chmod(0o755)
    case = Case("veth", api="udp")
    with built(session, case, node="netns") as rig:
        found = measure(Side(rig, case, executable=pretender), QUICK)
    assert "TSC is not invariant" in invalid(found, "clock")
    assert found.repeated == 0


def test_a_rate_that_the_machine_cannot_offer(session: HostSession) -> None:
    case = Case("veth", Frames(rate=Rate(50_000_000)), api="udp")
    with built(session, case, node="netns") as rig:
        sweep = measure(Side(rig, case), replace(QUICK, duration_s=0.3))
        trips = measure(Side(rig, replace(case, dimension="latency")), replace(QUICK, duration_s=0.3))
    assert (sweep.verdict, sweep.generator_bound, sweep.launches) == (None, True, 2)
    assert "of 50,000,000 frames per second" in str(trips.evidence)
    assert (trips.verdict, trips.reason) == ("INVALID", "generator-bound")
