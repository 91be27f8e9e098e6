# SPDX-License-Identifier: BSD-3-Clause
"""``netpipe``: NetPIPE over TCP, round trips of messages of one size. NetPIPE decides on their number."""

from __future__ import annotations

import re
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, count, number
from pytest_icbench.model.application import Bounds, ClientFigures

_PACKAGE = "netpipe-tcp"
#: It does not print its version.
_VERSION = ("dpkg-query", "--show", "--showformat=${Version}", _PACKAGE)
_NETPIPE = Program("NPtcp", _PACKAGE, version_command=_VERSION)
#: NetPIPE repeats each measurement and reports the best one.
_TRIALS = 3
_LINE = re.compile(r"^ *0: +(\d+) bytes +(\d+) times --> +[\d.]+ Mbps in +([\d.]+) usec", re.MULTILINE)


class NetPipe(Application):
    """NPtcp at one message size.

    The receiver listens on every address of its node and ends with the transmitter. NetPIPE decides on the run time.
    """

    name: ClassVar[str] = "netpipe"
    summary: ClassVar[str] = "NetPIPE over TCP: a message there and back"
    server: ClassVar[Program] = _NETPIPE
    client: ClassVar[Program] = _NETPIPE
    port: ClassVar[int] = 5002
    serves_once: ClassVar[bool] = True
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 1, 1_000_000)

    @property
    def _common(self) -> tuple[str, ...]:
        """The options of both ends: one message size without perturbation."""
        size = str(self.load.message_bytes)
        return ("-P", str(self.port), "-l", size, "-u", size, "-p", "0", "-o", "/dev/null")

    def serve(self, address: str) -> ProcessSpec:
        return ProcessSpec(("NPtcp", *self._common))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        # Results are on its standard error.
        return ProcessSpec(("sh", "-c", 'exec NPtcp "$@" 2>&1', "sh", "-h", address, *self._common))

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        return ("NetPIPE's two ends agreed on sizes and repeats, and waited for each message whole",)

    def parse(self, output: str, operations: int) -> ClientFigures:
        line = _LINE.search(output)
        size, half_us = self.load.message_bytes, 0.0
        if line is not None and count(line[1], "size", self.client) == size:
            half_us = number(line[3], "time", self.client)
        if line is None or not half_us:
            raise self.client.unreadable(f"line of {size} bytes with its time", output)
        round_trip_ns = 2e3 * half_us  # it prints half of it
        round_trips = _TRIALS * count(line[2], "times", self.client)
        return ClientFigures(round_trips, round_trips * round_trip_ns / 1e9, mean_ns=round_trip_ns)
