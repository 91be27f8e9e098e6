# SPDX-License-Identifier: BSD-3-Clause
"""``sockperf``: round trips of one datagram at a time."""

from __future__ import annotations

import re
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, count, number
from pytest_icbench.model.application import Bounds, ClientFigures

_SOCKPERF = Program("sockperf", "sockperf", version_pattern=r"version (\d+\.\d+)")
_SHARES = {"p50_ns": "50.000", "p90_ns": "90.000", "p99_ns": "99.000", "p99_9_ns": "99.900"}


class Sockperf(Application):
    """sockperf's ping-pong over UDP."""

    name: ClassVar[str] = "sockperf"
    summary: ClassVar[str] = "sockperf ping-pong: one datagram at a time"
    server: ClassVar[Program] = _SOCKPERF
    client: ClassVar[Program] = _SOCKPERF
    port: ClassVar[int] = 11111
    transport: ClassVar[str] = "udp"
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 14, 65507)

    def serve(self, address: str) -> ProcessSpec:
        return ProcessSpec(("sockperf", "server", "-i", address, "-p", str(self.port)))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = ("sockperf", "ping-pong", "-i", address, "-p", str(self.port), "-t", f"{seconds:.0f}")
        return ProcessSpec((*argv, "-m", str(self.load.message_bytes), "--full-rtt"))

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        return ("sockperf checks the number of each message",)

    def parse(self, output: str, operations: int) -> ClientFigures:
        valid = re.search(r"\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=\d+; ReceivedMessages=(\d+)", output)
        mean = re.search(r"avg-rtt=([\d.]+)", output)
        faults = re.search(
            r"dropped messages = (\d+); # duplicated messages = (\d+); # out-of-order messages = (\d+)", output
        )
        shares = dict(re.findall(r"percentile (\d+\.\d+) = +([\d.]+)", output))
        most = re.search(r"<MAX> observation = +([\d.]+)", output)
        if not (valid and mean and faults and most and set(_SHARES.values()) <= shares.keys()):
            raise self.client.unreadable("summary", output)
        parts = {"mean_ns": mean[1], "max_ns": most[1], **{name: shares[share] for name, share in _SHARES.items()}}
        times = {name: number(text, f"{name[:-3]} round trip", self.client) * 1e3 for name, text in parts.items()}
        return ClientFigures(
            operations=count(valid[2], "received messages", self.client),
            seconds=number(valid[1], "run time", self.client),
            errors=sum(count(text, "faults", self.client) for text in faults.groups()),
            mean_ns=times["mean_ns"],
            p50_ns=times["p50_ns"],
            p90_ns=times["p90_ns"],
            p99_ns=times["p99_ns"],
            p99_9_ns=times["p99_9_ns"],
            max_ns=times["max_ns"],
        )
