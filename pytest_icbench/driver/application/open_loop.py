# SPDX-License-Identifier: BSD-3-Clause
"""Open-loop load of the workload at a fixed rate: echo requests, and GETs for redis, memcached and nginx.

The client sends each request when it is due, whether or not the server has answered, and measures latency from that
time. So a server that stalls delays all requests that were due meanwhile, as it would delay its users.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pytest_icbench.driver.application.memcached import Memcached
from pytest_icbench.driver.application.nginx import Nginx
from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, count
from pytest_icbench.driver.application.redis import Redis
from pytest_icbench.driver.workload.executable import NAME, REBUILD
from pytest_icbench.driver.workload.output import parse_request_summary
from pytest_icbench.model.application import Bounds, ClientFigures
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.rig import LOCAL_WORKLOAD, Question

_WORKLOAD = Program(NAME, "pytest-icbench", remedy=REBUILD)
#: Seconds for which the client waits for answers after its last request.
_DRAIN_S = 2


class OpenLoop(Application):
    """A client that sends at a fixed rate over its connections in turn."""

    client: ClassVar[Program] = _WORKLOAD
    connections: ClassVar[Bounds | None] = Bounds(1, 1, 512)
    rate: ClassVar[Bounds | None] = Bounds(2000, 1, 1_000_000)
    counted: bool = False
    whole_seconds: ClassVar[bool] = False
    open_loop: ClassVar[bool] = True
    #: The workload's name of the protocol, and the requested key.
    protocol: ClassVar[str]
    key: ClassVar[str] = "icbench"

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = [LOCAL_WORKLOAD, "ask", address, "--port", str(self.port), "--protocol", self.protocol]
        argv += ["--key", self.key, "--message", str(self.load.message_bytes), "--rate", str(self.load.rate)]
        argv += ["--connections", str(self.load.connections), "--duration", f"{seconds:g}", "--drain", str(_DRAIN_S)]
        return ProcessSpec(tuple(argv))

    def parse(self, output: str, operations: int) -> ClientFigures:
        line = next((line for line in output.splitlines() if '"role":"ask"' in line), "")
        try:
            summary = parse_request_summary(line)
        except DamagedData:
            raise self.client.unreadable("summary", output) from None
        counts, times = summary.counts, summary.rtt
        return ClientFigures(
            operations=counts.answered,
            seconds=counts.duration_ns / 1e9,
            errors=counts.wrong,
            payload_bytes=counts.payload_bytes,
            mean_ns=times.mean,
            p50_ns=times.percentile(0.5),
            p90_ns=times.percentile(0.9),
            p99_ns=times.percentile(0.99),
            p99_9_ns=times.percentile(0.999),
            max_ns=None if counts.unanswered else times.maximum,
            unanswered=counts.unanswered,
            cpu_ns=counts.cpu_ns,
        )


class _Echo(OpenLoop):
    """The workload's echo server, which counts its answers."""

    server: ClassVar[Program] = _WORKLOAD
    port: ClassVar[int] = 7007

    def serve(self, address: str) -> ProcessSpec:
        argv = (LOCAL_WORKLOAD, "echo", address, "--port", str(self.port), "--protocol", self.protocol)
        return ProcessSpec((*argv, "--message", str(self.load.message_bytes)))

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        self.count_served(ask)
        return ("the answer is the request, byte by byte",)

    def count_served(self, ask: SendRequest) -> float | None:
        answer = ask(Question(self.port, "stats\n", via="udp" if self.transport == "udp" else "tcp"))
        match = re.fullmatch(r"answered (\d+)\n", answer)
        if match is None:
            raise self.wrong_answer("stats", answer)
        return float(count(match[1], "count", self.server))


class TcpRr(_Echo):
    """Requests and answers of the same size over TCP."""

    name: ClassVar[str] = "tcp_rr"
    summary: ClassVar[str] = "requests and answers over TCP at a fixed rate, with the workload as server"
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 16, 1_000_000)
    protocol: ClassVar[str] = "tcp"


class UdpRr(_Echo):
    """Requests and answers of the same size over UDP, where a lost request gets no answer."""

    name: ClassVar[str] = "udp_rr"
    summary: ClassVar[str] = "requests and answers over UDP at a fixed rate, with the workload as server"
    transport: ClassVar[str] = "udp"
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 16, 65507)
    protocol: ClassVar[str] = "udp"


class RedisOpen(OpenLoop, Redis):
    """redis-server with GET requests."""

    name: ClassVar[str] = "redis_open"
    summary: ClassVar[str] = "redis-server with the workload: GET requests at a fixed rate"
    modes: ClassVar[tuple[str, ...]] = ("get",)
    protocol: ClassVar[str] = "resp"


class MemcachedOpen(OpenLoop, Memcached):
    """memcached with get requests."""

    name: ClassVar[str] = "memcached_open"
    summary: ClassVar[str] = "memcached with the workload: get requests at a fixed rate"
    protocol: ClassVar[str] = "memcached"

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        self.write_and_read_back(ask, "x" * self.load.message_bytes)
        return ("the value read back is the one written",)

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns 0: every get is answered or counted as unanswered."""
        return 0.0


class HttpOpen(OpenLoop, Nginx):
    """nginx with GET requests over HTTP/1.1."""

    name: ClassVar[str] = "http_open"
    summary: ClassVar[str] = "nginx with the workload: GET requests over HTTP/1.1 at a fixed rate"
    protocol: ClassVar[str] = "http"
    key: ClassVar[str] = "body"

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns 1: the status request itself."""
        return 1.0
