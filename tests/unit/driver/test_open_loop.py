# SPDX-License-Identifier: BSD-3-Clause
"""Applications at a fixed rate: what the workload is reported, what its summary says, and servers that fail, for
real.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_icbench.driver.application.protocol import ProofFailed
from pytest_icbench.driver.application.registry import application, labels
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.output import RequestSummary, parse_request_summary
from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.rig import LOCAL_WORKLOAD, Question

ADDRESS = "127.0.0.1"


def summary(**changes: Any) -> str:
    times = {
        "count": 9990,
        "min": 40,
        "mean": 50.0,
        "max": 90,
        "significant_digits": 3,
        "counts": [[50, 9900], [90, 90]],
    }
    data = {
        "schema": 1, "type": "summary", "role": "ask", "reason": "duration", "protocol": "resp", "connections": 1,
        "duration_ns": 5_000_000_000, "scheduled": 10000, "not_offered": 0, "sent": 10000, "answered": 9990, "wrong": 0,
        "late": 0, "unanswered": 10, "payload_bytes": 29970, "rtt_ns": times, "rtt_actual_ns": times,
        "lateness_ns": times, "cpu_ns": 400_000_000, "voluntary_switches": 1, "involuntary_switches": 0,
    }  # fmt: skip
    return json.dumps({**data, **changes}, separators=(",", ":"))


def test_the_summary_is_the_client_s_figures() -> None:
    figures = application("redis_open").parse(f"noise\n{summary()}\n", 0)
    assert (figures.operations, figures.errors, figures.unanswered, figures.cpu_ns) == (9990, 0, 10, 400_000_000)
    assert figures.operations_per_second == pytest.approx(1998)
    assert (figures.p50_ns, figures.p90_ns, figures.p99_ns) == (50, 50, 50)
    # The ten without an answer are slower than all others.
    assert (figures.p99_9_ns, figures.max_ns) == (90, None)
    assert application("redis_open").parse(summary(unanswered=11), 0).p99_9_ns is None


@pytest.mark.parametrize("changes", [{"role": "echo"}, {"schema": 2}, {"answered": "x"}, {"rtt_ns": {"count": 1}}])
def test_another_summary_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedData):
        parse_request_summary(summary(**changes))


def test_the_client_is_reported_the_load() -> None:
    start = application("http_open:c4:128B:r5000").drive(ADDRESS, seconds=0.5, operations=0)
    assert start.argv[:3] == (LOCAL_WORKLOAD, "ask", ADDRESS)
    options = dict(zip(start.argv[3::2], start.argv[4::2], strict=True))
    assert options == {
        "--port": "8080", "--protocol": "http", "--key": "body", "--message": "128", "--rate": "5000",
        "--connections": "4", "--duration": "0.5", "--drain": "2",
    }  # fmt: skip


def test_a_rate_is_part_of_a_load() -> None:
    assert labels(["tcp_rr:r2000", "tcp_rr:16B:c2:r500"], "x") == ("tcp_rr", "tcp_rr:c2:16B:r500")
    with pytest.raises(UsageError, match="redis has no choice of requests per second; leave 'r5' out"):
        labels(["redis:r5"], "x")
    with pytest.raises(UsageError, match="tcp_rr takes 1 to 1000000 requests per second, not 0"):
        labels(["tcp_rr:r0"], "x")


def test_an_echo_that_is_another_server_is_refused() -> None:
    def ask(question: Question) -> str:
        return "-ERR unknown command 'stats'\r\n"

    with pytest.raises(ProofFailed, match="answered stats with"):
        application("tcp_rr").prepare(ask)


def free_port() -> int:
    with socket.create_server((ADDRESS, 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def echo(protocol: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yields an echo server of the workload, and its port."""
    port = free_port()
    argv = [str(workload_path()), "echo", ADDRESS, "--port", str(port), "--protocol", protocol]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
        try:
            time.sleep(0.2)
            yield server, port
        finally:
            server.send_signal(signal.SIGCONT)
            server.terminate()
            reported, _ = server.communicate(timeout=10)
        assert json.loads(reported)["reason"] == "signal"


def ask(
    port: int, protocol: str, *words: str, seconds: float = 0.4, drain: float = 5.0
) -> subprocess.CompletedProcess[str]:
    """A client that has all its answers ends at once; on a busy host ``drain`` is what it may be late by."""
    argv = [str(workload_path()), "ask", ADDRESS, "--port", str(port), "--protocol", protocol]
    argv += ["--duration", str(seconds), "--drain", str(drain), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


def asked(port: int, protocol: str, *words: str, seconds: float = 0.4, drain: float = 5.0) -> RequestSummary:
    done = ask(port, protocol, *words, seconds=seconds, drain=drain)
    assert done.returncode == 0, done.stderr
    return parse_request_summary(done.stdout)


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_every_request_has_its_answer_and_both_ends_count_them(protocol: str) -> None:
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    with echo(protocol) as (_, port):
        counts = asked(port, protocol, "-r", "1000", "--connections", "3").counts
        with socket.socket(socket.AF_INET, kind) as stats:
            stats.connect((ADDRESS, port))
            stats.send(b"stats\n")
            reported = stats.recv(100)
    assert 400 <= counts.scheduled <= 401
    assert counts.answered == counts.sent == counts.scheduled
    assert (counts.wrong, counts.late, counts.unanswered) == (0, 0, 0)
    assert reported == f"answered {counts.answered}\n".encode()


def test_a_stall_costs_every_request_that_was_due_and_a_closed_loop_one() -> None:
    def stall(server: subprocess.Popen[bytes]) -> None:
        time.sleep(0.3)
        server.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        server.send_signal(signal.SIGCONT)

    slow = []
    with echo("tcp") as (server, port):
        for rate in ("2000", "0"):
            stalling = threading.Thread(target=stall, args=(server,))
            stalling.start()
            times = asked(port, "tcp", "-r", rate, seconds=1.0).rtt
            stalling.join()
            slow.append(sum(number for value, number in times.counts if value > 45_000_000))
    # Half of the 200 requests that were due in the stall waited for more than half of it; the stall may be longer.
    assert slow[0] >= 90
    assert slow[1] <= 10


@contextmanager
def speaker(answer: bytes) -> Iterator[int]:
    """Yields the port of a server that answers each read of its one connection so; without an answer it hangs up."""
    with socket.create_server((ADDRESS, 0)) as listening:

        def speak() -> None:
            connection, _ = listening.accept()
            with connection:
                while connection.recv(4096) and answer:
                    connection.sendall(answer)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(5)


def test_a_value_that_differs_is_a_wrong_answer() -> None:
    with speaker(b"$3\r\nxxx\r\n") as port:
        assert asked(port, "resp", "-r", "100", "--message", "3", drain=0.2).counts.wrong == 0
    with speaker(b"$3\r\nxxx\r\n") as port:
        counts = asked(port, "resp", "-r", "100", "--message", "4", drain=0.2).counts
        assert (counts.answered, counts.wrong + counts.unanswered) == (0, counts.scheduled)
        assert counts.wrong > 0
    with speaker(b"$-1\r\n") as port:
        counts = asked(port, "resp", "-r", "100", "--message", "3", drain=0.2).counts
        assert (counts.answered, counts.wrong + counts.unanswered) == (0, counts.scheduled)
        assert counts.wrong > 0


def test_a_server_of_another_protocol_and_one_that_hangs_up_are_reported() -> None:
    with speaker(b"220 mail ESMTP\r\n") as port:
        done = ask(port, "http", "-r", "100")
        assert done.returncode == 4
        # Several of its lines, where the client was kept from its CPU until the second request was due.
        assert re.search(r"answer is not of the protocol http: '(220 mail ESMTP\.\.)+(220 mail)?'", done.stderr)
    with speaker(b"") as port:
        done = ask(port, "memcached", "-r", "100")
        assert done.returncode == 4
        assert re.search("receive failed: Connection reset by peer|send failed: Broken pipe", done.stderr)
    done = ask(free_port(), "resp", "-r", "100")
    assert done.returncode == 3
    assert "cannot connect to 127.0.0.1, port" in done.stderr
    assert "Connection refused" in done.stderr


def test_a_server_that_never_answers_leaves_all_without() -> None:
    with socket.create_server((ADDRESS, 0)) as silent:
        counts = asked(silent.getsockname()[1], "tcp", "-r", "1000", seconds=0.2, drain=0.2).counts
    assert counts.answered == 0
    assert counts.unanswered == counts.scheduled
