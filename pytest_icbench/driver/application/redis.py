# SPDX-License-Identifier: BSD-3-Clause
"""``redis``: redis-server with redis-benchmark, GET or SET."""

from __future__ import annotations

import csv
import re
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, count, number
from pytest_icbench.model.application import Bounds, ClientFigures
from pytest_icbench.model.rig import FILES, Question

_KEY = "icbench"
_COLUMNS = ("avg_latency_ms", "p50_latency_ms", "p99_latency_ms")


class Redis(Application):
    """redis-server without snapshots and without a log of commands."""

    name: ClassVar[str] = "redis"
    summary: ClassVar[str] = "redis-server with redis-benchmark"
    server: ClassVar[Program] = Program("redis-server", "redis-server", version_pattern=r"v=(\S+)")
    client: ClassVar[Program] = Program("redis-benchmark", "redis-tools", version_pattern=r"redis-benchmark (\S+)")
    port: ClassVar[int] = 6379
    modes: ClassVar[tuple[str, ...]] = ("get", "set")
    connections: ClassVar[Bounds | None] = Bounds(1, 1, 512)
    message_bytes: ClassVar[Bounds | None] = Bounds(3, 1, 1_000_000)
    counted: bool = True

    @property
    def _value(self) -> str:
        return "x" * self.load.message_bytes

    def serve(self, address: str) -> ProcessSpec:
        argv = ("redis-server", "--port", str(self.port), "--bind", address, "--protected-mode", "no", "--save", "")
        return ProcessSpec((*argv, "--appendonly", "no", "--daemonize", "no", "--dir", FILES))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = ["redis-benchmark", "-h", address, "-p", str(self.port), "-n", str(operations), "--csv"]
        argv += ["-c", str(self.load.connections)]
        # -t would use another key than the one that was checked.
        command = ["GET", _KEY] if self.load.mode == "get" else ["SET", _KEY, self._value]
        return ProcessSpec((*argv, *command))

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        value = self._value
        self.expect(ask, f"SET {_KEY} {value}\r\n", "+OK\r\n")
        self.expect(ask, f"GET {_KEY}\r\n", f"${len(value)}\r\n{value}\r\n")
        return ("the value read back is the one written",)

    def count_served(self, ask: SendRequest) -> float | None:
        answer = ask(Question(self.port, "INFO commandstats\r\nQUIT\r\n"))
        if "# Commandstats" not in answer:
            raise self.wrong_answer("INFO", answer)
        match = re.search(rf"^cmdstat_{self.load.mode}:calls=(\d+)", answer, re.MULTILINE)
        return float(count(match[1], "count", self.server)) if match else 0.0

    def parse(self, output: str, operations: int) -> ClientFigures:
        rows = list(csv.DictReader(line for line in output.splitlines() if line.startswith('"')))
        if not rows or not {"rps", *_COLUMNS} <= set(rows[0]):
            raise self.client.unreadable("line of figures in CSV", output)
        row = {name: value or "" for name, value in rows[0].items() if name}
        rate = number(row["rps"], "rate", self.client)
        mean, p50, p99 = (number(row[column], column, self.client) * 1e6 for column in _COLUMNS)
        if rate <= 0:
            raise self.client.unreadable("rate above 0", output)
        # redis-benchmark reports no elapsed time and exits only after the last reply.
        return ClientFigures(operations, operations / rate, mean_ns=mean, p50_ns=p50, p99_ns=p99)
