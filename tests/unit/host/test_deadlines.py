# SPDX-License-Identifier: BSD-3-Clause
"""Deadlines and sizes hold against programs and servers that talk without end."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function import ip_pipeline
from pytest_icbench.driver.node.vm import qemu
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
from pytest_icbench.driver.switch.forward import Forwarder
from pytest_icbench.driver.switch.ovs import daemons
from pytest_icbench.driver.switch.ovs.daemons import send_request
from pytest_icbench.errors import IcbenchError, ProvisionError, WorkloadError
from pytest_icbench.host import answers
from pytest_icbench.host.answers import Unanswered, read_answer
from pytest_icbench.host.net.sockets import ask
from pytest_icbench.host.process import Spawner, run
from pytest_icbench.model.rig import Question

root = pytest.mark.skipif(os.geteuid() != 0, reason="enters a network namespace: run pytest as root")
_LIMIT_S = 0.3


@contextmanager
def talking(server: socket.socket, words: bytes = b"x" * 100) -> Iterator[None]:
    """Serves one connection, and sends to it without end and without pause."""
    stop = threading.Event()

    def talk() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            while not stop.is_set():
                connection.sendall(words)

    server.listen()
    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        server.close()
        thread.join(5)


@root
def test_a_server_that_talks_is_asked_for_no_longer_than_the_limit() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    began = time.monotonic()
    with talking(server), pytest.raises(WorkloadError) as caught:
        ask("/proc/self/ns/net", "127.0.0.1", Question(port, "stats\n", timeout_s=_LIMIT_S))
    assert time.monotonic() - began < 10 * _LIMIT_S
    assert f"port {port}" in str(caught.value)
    assert re.search(r"only \d+ bytes came: b'xxx", str(caught.value))


def test_a_daemon_that_talks_is_asked_for_no_longer_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "ctl"
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    began = time.monotonic()
    with talking(server), pytest.raises(ProvisionError) as caught:
        send_request(path, "version", timeout_s=_LIMIT_S)
    assert time.monotonic() - began < 10 * _LIMIT_S
    assert str(path) in str(caught.value)


def test_a_monitor_that_talks_is_asked_for_no_longer_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "_ANSWER_S", _LIMIT_S)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(tmp_path / "qmp"))
    began = time.monotonic()
    with talking(server, b'{"event": "RTC_CHANGE"}\n' * 5000), pytest.raises(ProvisionError, match=r"within 0\.3 s"):
        qemu.Monitor(tmp_path / "qmp")
    assert time.monotonic() - began < 10 * _LIMIT_S


@contextmanager
def full(server: socket.socket, address: Any) -> Iterator[None]:
    """A server that takes no connection, and whose queue has no room for another."""
    server.listen(0)
    waiting: list[socket.socket] = []
    with suppress(OSError):  # there is no room any more
        while len(waiting) < 5:
            waiting.append(socket.socket(server.family))
            waiting[-1].settimeout(0.2)
            waiting[-1].connect(address)
    assert len(waiting) < 5
    yield
    for client in (*waiting, server):
        client.close()


def test_a_daemon_that_takes_no_connection_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "_TOOL_S", _LIMIT_S)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(tmp_path / "ctl"))
    began = time.monotonic()
    with full(server, str(tmp_path / "ctl")):
        assert not daemons._serves(tmp_path / "ctl")
    assert time.monotonic() - began < 10 * _LIMIT_S


@root
def test_a_command_line_that_takes_no_connection_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    for name, value in (("_PORT", server.getsockname()[1]), ("_ANSWER_S", 0.1), ("_START_S", _LIMIT_S)):
        monkeypatch.setattr(ip_pipeline, name, value)
    process = Spawner("unitab").start(["sleep", "60"], log=tmp_path / "log")
    began = time.monotonic()
    try:
        with full(server, server.getsockname()), pytest.raises(ProvisionError, match="has not opened its command line"):
            ip_pipeline.Console("/proc/self/ns/net", Daemon("pipeline", process))
        assert time.monotonic() - began < 20 * _LIMIT_S
    finally:
        process.stop()


class Endless(io.FileIO):
    """A pipe that is full again before each reading."""

    def read(self, size: int | None = -1, /) -> bytes:
        return b"x" * (size or 0)


def test_a_testpmd_that_writes_without_end_is_not_read_without_end() -> None:
    reader, writer = os.pipe()
    with Endless(reader) as pipe:
        daemon: Any = SimpleNamespace(process=SimpleNamespace(stdout=pipe))
        drain = threading.Thread(target=TestPmd._drain, args=(daemon,), daemon=True)
        drain.start()
        drain.join(10 * _LIMIT_S)
        assert not drain.is_alive()
    os.close(writer)


def test_an_answer_in_two_parts_with_a_brace_between_is_whole(tmp_path: Path) -> None:
    path, answer = tmp_path / "ctl", json.dumps({"result": "{}" * 40_000, "error": None}).encode()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen()

    def reply() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(answer[:15])
            time.sleep(0.05)
            connection.sendall(answer[15:])

    thread = threading.Thread(target=reply)
    thread.start()
    assert send_request(path, "version", timeout_s=5) == "{}" * 40_000
    thread.join()
    server.close()


@pytest.mark.parametrize(
    ("command", "limit_s", "why"),
    [("while :; do echo line; done", _LIMIT_S, "within 0.3 s"), ("exec yes", 60.0, "more than 1 MiB")],
    ids=["time", "size"],
)
def test_a_command_that_prints_without_end_is_killed(
    command: str, limit_s: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "ANSWER_MAX_BYTES", 2**20 if limit_s > 1 else 2**40)
    began = time.monotonic()
    with pytest.raises(ProvisionError) as caught:
        run(["sh", "-c", command], timeout_s=limit_s)
    assert time.monotonic() - began < 10 * _LIMIT_S
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"`sh -c {command}`")


def test_a_command_gets_a_long_input_while_it_prints() -> None:
    text = "line of the input\n" * 50_000  # more than two pipes hold
    assert run(["cat"], timeout_s=20, input=text).stdout == text


def test_what_came_while_this_process_was_stopped_is_read() -> None:
    """After a stop the deadline is over, and the answer lies in the pipe."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as pipe, os.fdopen(writer, "wb", buffering=0) as there:
        there.write(b"answer\n")
        assert read_answer(pipe, lambda came: came.endswith(b"\n"), time.monotonic() - 5) == b"answer\n"
        there.write(b"begun")
        with pytest.raises(Unanswered) as caught:
            read_answer(pipe, lambda came: came.endswith(b"\n"), time.monotonic() - 5)
    assert caught.value.came == b"begun"


@pytest.mark.parametrize("kind", ["lines of another kind", "no line"])
def test_a_forwarder_that_talks_is_asked_for_no_longer_than_the_limit(tmp_path: Path, kind: str) -> None:
    text = '{"type": "other"}' + "\n" * (kind != "no line")
    script = f"import sys\nwhile True: sys.stdout.write({text!r})"
    process = Spawner("unitab").start([sys.executable, "-c", script], log=tmp_path / "log", pipes=True)
    forwarder = Forwarder(Daemon("forward", process))
    began = time.monotonic()
    try:
        with pytest.raises(IcbenchError, match="did not say hello"):
            forwarder._line("hello", _LIMIT_S)
        assert time.monotonic() - began < 10 * _LIMIT_S
    finally:
        process.stop()
