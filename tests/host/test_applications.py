# SPDX-License-Identifier: BSD-3-Clause
"""Applications for real: servers and clients in two containers, and each way in which one of them can fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.driver.application.registry import application, applications
from pytest_icbench.errors import Unsupported, WorkloadError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.application import application_launch as launch_module
from pytest_icbench.kinds.application.application_launch import run_application
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Application
from pytest_icbench.model.rig import LaunchPlan, PlannedProcess, Question
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.probe import probe_application
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.own_host

SETTINGS = Settings(duration_s=0.5)
CASE = Case("veth", Application("redis"), dimension="application")

#: A server that accepts on redis' port of its node and gives these answers, one for each line that it reads.
ANSWERS = """#!/usr/bin/python3
import socket, sys
server = socket.create_server(("198.18.1.2", 6379))
answers = {answers!r}
while True:
    with server.accept()[0] as client:
        for answer in answers:
            if not client.recv(4096):
                break
            client.sendall(answer.encode())
            if len(answers) > 1:
                break
"""


def run(rig: Rig, label: str = "redis", settings: Settings = SETTINGS) -> Launch:
    versions = {"redis-benchmark": "7.0.15", "redis-server": "7.0.15"}
    return run_application(application(label, versions), rig, CASE, settings)


@pytest.fixture
def rig(session: HostSession) -> Iterator[Rig]:
    with built(session, CASE, node="netns") as made:
        yield made


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory before all others on PATH, for programs that stand in for others."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def put(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(script, encoding="utf-8")
    (directory / name).chmod(0o755)


#: One of each protocol; the others take their time in make test-all.
QUICK = ("iperf3", "redis", "nginx", "tcp_rr")
#: Other modes of those that have some.
MORE = (
    "iperf3:udp:c2",
    "redis:set:c4:100B",
    "netperf:udp_rr:1000B",
    "netperf:tcp_crr",
    "netperf_stream:1000B",
    "netperf_stream:udp",
)


@pytest.mark.parametrize(
    "label",
    [
        *(pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in applications()),
        *(pytest.param(label, marks=pytest.mark.slow) for label in MORE),
    ],
)
def test_both_ends_of_an_application_agree_over_a_bridge(session: HostSession, label: str) -> None:
    try:
        chosen = probe_application(label)
    except Unsupported as reason:
        pytest.skip(str(reason))
    assert all(version[0].isdigit() for version in chosen.versions.values()), chosen.versions
    case = Case("linux-bridge", Application(label), dimension="application")
    with built(session, case) as rig:
        launch = run_application(chosen, rig, case, SETTINGS)
        assert launch.evidence is None
        assert launch.application is not None
        (one,) = launch.application.runs
        assert one.client.operations_per_second > 0
        assert (one.server_operations is None) == (label in ("sockperf", "netpipe"))
        assert one.client_cpu_ns
        assert one.server_cpu_ns
        if one.unit == "requests":
            assert one.proofs
        else:
            assert one.received_bytes is not None
            assert one.received_bytes > (one.client.payload_bytes or 0)
        # The next launch starts a server of its own.
        assert run_application(chosen, rig, case, SETTINGS).invalid is None


def test_a_server_that_never_listens_is_reported(rig: Rig, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_module, "LISTEN_S", 0.5)
    put(programs, "redis-server", "#!/bin/sh\necho not today >&2\nexec sleep 60\n")
    with pytest.raises(WorkloadError, match=r"redis-server of endpoint 1 has not listened at tcp:6379 within 0\.5 s"):
        run(rig)


def test_a_server_that_ends_before_it_listens_is_reported_with_its_log(rig: Rig, programs: Path) -> None:
    put(programs, "redis-server", "#!/bin/sh\necho no such option >&2\nexit 3\n")
    with pytest.raises(WorkloadError, match=r"ended with exit code 3 before it listened at tcp:6379") as error:
        run(rig)
    assert "no such option" in str(error.value)


def test_a_server_of_another_protocol_is_reported(rig: Rig, programs: Path) -> None:
    put(programs, "redis-server", ANSWERS.format(answers=["220 mail ESMTP\r\n"]))
    with pytest.raises(WorkloadError, match=r"answered SET with '220 m.*redis-server"):
        run(rig)


def test_a_server_that_gives_another_value_is_reported(rig: Rig, programs: Path) -> None:
    script = ANSWERS.replace("client.sendall(answer.encode())", "client.sendall(answers.pop(0).encode())")
    put(programs, "redis-server", script.format(answers=["+OK\r\n", "$3\r\nyyy\r\n", "", ""]))
    with pytest.raises(WorkloadError, match=r"answered GET with '\$3\\r\\nyyy\\r\\n', not with '\$3\\r\\nxxx"):
        run(rig)


def test_a_server_that_leaves_in_mid_run_is_reported(rig: Rig, programs: Path) -> None:
    real = shutil.which("redis-server")
    put(programs, "redis-server", f'#!/bin/sh\nexec timeout 1 {real} "$@"\n')
    with pytest.raises(WorkloadError, match=r"redis-server 7\.0\.15 of pair 1 ended during the run"):
        run(rig, settings=Settings(duration_s=5.0))


def test_a_client_whose_output_is_not_known_is_reported_with_its_version(rig: Rig, programs: Path) -> None:
    put(programs, "redis-benchmark", "#!/bin/sh\necho 'Summary: 12 kreq/s'\n")
    with pytest.raises(WorkloadError, match=r"its last line is 'Summary: 12 kreq/s' \(redis-benchmark 7\.0\.15\)"):
        run(rig)


def test_a_port_in_use_is_reported_before_anything_starts(rig: Rig, programs: Path) -> None:
    put(programs, "other", ANSWERS.format(answers=["hello"]))
    squatter = rig.launch(LaunchPlan((PlannedProcess(1, ("other", "x"), listens="tcp:6379", files=()),)))
    try:
        with pytest.raises(WorkloadError, match="tcp:6379 is in use in the node of endpoint 1"):
            run(rig)
        assert rig.ask(0, "198.18.1.2", Question(6379, "x", length=5)) == "hello"
    finally:
        rig.end(squatter)
    assert run(rig).invalid is None
