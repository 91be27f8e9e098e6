# SPDX-License-Identifier: BSD-3-Clause
"""Functions that do not start, die, hang, flood or answer by ICMP: one sentence, and the host is as before."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from pytest_icbench.driver.function.proof import frame
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.processes import LaunchOutput
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.function_nodes import FunctionNodes
from tests.host.function_tools import SHORT, suricata, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.own_host


@pytest.mark.slow
def test_rules_that_suricata_refuses_are_reported_in_its_words(session: HostSession) -> None:
    session.binaries = suricata()
    session.configs = {"function:suricata": {"rules": "drop nonsense"}}
    with (
        pytest.raises(
            ProvisionError, match=r"(?s)function inspect of pair 1.*error parsing signature \"drop nonsense\""
        ),
        through(session, Case("veth", function="inspect")),
    ):
        pass


def test_rules_that_nft_refuses_are_reported_in_its_words(session: HostSession) -> None:
    session.configs = {"function:linux": {"nft": "table ip x { chain y { nonsense; } }"}}
    with (
        pytest.raises(ProvisionError, match=r"(?s)nft.*syntax error"),
        through(session, Case("veth", function="route")),
    ):
        pass


def test_a_function_that_dies_makes_one_sentence(session: HostSession) -> None:
    case = Case("veth", function="wire")
    with through(session, case) as rig:
        functions = rig.host._functions
        assert functions is not None
        functions._functions[1, 1].stop()
        with pytest.raises(ProvisionError, match="function wire of pair 1 was stopped"):
            rig.check()
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason) == ("INVALID", "died")


#: Long enough for a function to fail in the middle.
LONG = Settings(warmup_s=0.1, duration_s=1.5, window_s=0.05, drain_s=0.3)
WIRE = Case("veth", Frames(rate=Rate(20_000)), function="wire", api="raw-mmsg")


def functions_of(rig: Rig) -> FunctionNodes:
    functions = rig.host._functions
    assert functions is not None
    return functions


def pid_of(rig: Rig) -> int:
    """The process of the function of pair 1."""
    forwarder = functions_of(rig)._functions[1, 1]._forwarder  # type: ignore[attr-defined]
    return int(forwarder.daemon.process.pid)


def in_mid_run(rig: Rig, fails: Callable[[], None]) -> Launch:
    """A launch in which something fails once some windows are over."""
    failed: list[bool] = []

    def look(output: LaunchOutput) -> bool:
        if not failed and len(output.outputs[0].windows) >= 6:
            failed.append(True)
            fails()
        return False

    launch = Run(rig, WIRE, LONG, enough=look).run(0, None)
    assert failed
    return launch


def test_a_function_that_is_killed_in_mid_run_makes_one_sentence(session: HostSession) -> None:
    with through(session, WIRE) as rig:
        assert rig.prove() is None
        with pytest.raises(ProvisionError, match=r"^function wire of pair 1 was killed by signal 9"):
            in_mid_run(rig, lambda: os.kill(pid_of(rig), signal.SIGKILL))


def test_a_function_that_hangs_in_mid_run_makes_one_sentence(session: HostSession) -> None:
    with through(session, WIRE) as rig:
        pid = pid_of(rig)
        try:
            launch = in_mid_run(rig, lambda: os.kill(pid, signal.SIGSTOP))
        finally:
            os.kill(pid, signal.SIGCONT)
    assert launch.invalid == "stalled"
    assert (launch.evidence or "").startswith("pair 1: nothing arrived in the last ")


def test_a_function_that_floods_in_mid_run_makes_one_sentence(session: HostSession) -> None:
    """It gives out frames to side b that nobody sent."""
    with through(session, WIRE) as rig:
        functions = functions_of(rig)
        ends, facts = functions._ends[1, 1], functions._node_facts[1, 1]
        data = frame(ends.leader, ends.follower, 9)
        over = threading.Event()

        def flood() -> None:
            with enter_netns(facts.netns), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
                port.bind(("eth1", 0))
                while not over.is_set():
                    for _ in range(20):
                        with suppress(BlockingIOError):
                            port.send(data)
                    over.wait(0.001)

        thread = threading.Thread(target=flood)
        try:
            launch = in_mid_run(rig, thread.start)
        finally:
            over.set()
            thread.join()
    assert launch.invalid == "flooded"
    assert "recv of pair 1 received" in (launch.evidence or "")


def test_a_function_that_answers_by_icmp_in_mid_run_makes_one_sentence(session: HostSession) -> None:
    """The proof passes it, and then a quota ends, behind which the kernel answers each frame that it is unreachable."""
    quota = "table ip full { chain f { type filter hook forward priority 1; quota over 200 kbytes reject; }; }"
    session.configs = {"function:linux": {"nft": quota}}
    case = Case("veth", Frames(rate=Rate(20_000)), function="route", api="udp-mmsg")
    with through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert found.verdict == "INVALID"
    assert found.reason in ("stalled", "no-forwarding")
    assert "\n" not in (found.evidence or "")
