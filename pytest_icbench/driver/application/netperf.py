# SPDX-License-Identifier: BSD-3-Clause
"""``netperf``: requests over TCP or UDP, or one connection per request; ``netperf_stream``: a stream of TCP or UDP.

netserver sends its counts to netperf over their control connection, and netperf prints both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, number
from pytest_icbench.model.application import ApplicationLoad, Bounds, ClientFigures, Unit

_REMEDY = "apt install netperf (Debian 12 has it in non-free)"
_VERSION = r"version (\d+\.\d+\S*)"
_NETPERF = Program("netperf", "netperf", ("-V",), _VERSION, _REMEDY)
_BYTES = ("LOCAL_BYTES_SENT", "LOCAL_BYTES_RECVD", "REMOTE_BYTES_SENT", "REMOTE_BYTES_RECVD")
_RETRANSMITS = "LOCAL_TRANSPORT_RETRANS"
#: The last requested line, from ``-f k``. Truncated output lacks it.
_UNITS, _KILOBITS = "THROUGHPUT_UNITS", "THROUGHPUT_UNITS=10^3bits/s"
_LINE = re.compile(r"^([A-Z0-9_]+)=(-?\d{1,20}(?:\.\d{1,20})?)$", re.MULTILINE)
#: Share of a run, netperf's own work included, that may pass without an outstanding request.
_IDLE_SHARE = 0.1
#: Bits of a stream's operation, and of the unit of its rate.
_MEGABIT, _KILOBIT = 1e6, 1e3
#: Payload of the largest datagram.
_LARGEST = 65507
#: iperf3's size, which fits into a frame.
_DATAGRAM = 1448


class _Omni(Application):
    """netperf and netserver. An older netperf omits unknown keys and exits with status 0."""

    server: ClassVar[Program] = Program("netserver", "netperf", ("-V",), _VERSION, _REMEDY)
    client: ClassVar[Program] = _NETPERF
    port: ClassVar[int] = 12865
    #: Keys of the numbers that netperf prints.
    keys: ClassVar[tuple[str, ...]]

    def serve(self, address: str) -> ProcessSpec:
        # Without -f a child process would do the work and use the CPU time.
        return ProcessSpec(("netserver", "-D", "-f", "-L", address, "-p", str(self.port)))

    def _start(self, address: str, test: str, length: str, *options: str) -> ProcessSpec:
        argv = ("netperf", "-H", address, "-p", str(self.port), "-t", test, "-l", length, "-f", "k", "-P", "0", "--")
        # The second -H binds netserver's data socket, which otherwise listens on every address.
        return ProcessSpec((*argv, "-k", ",".join((*self.keys, _UNITS)), "-H", address, *options))

    def _parse_numbers(self, output: str) -> dict[str, float]:
        """Parses the numbers by key. Raises ProofFailed if one is missing."""
        values = {key: float(text) for key, text in _LINE.findall(output)}
        for key in self.keys:
            if key not in values:
                raise _NETPERF.unreadable(key, output)
            number(max(values[key], 0.0) if key == _RETRANSMITS else values[key], key, _NETPERF)  # -1: no connection
        if _KILOBITS not in output.splitlines():
            raise _NETPERF.unreadable(_KILOBITS, output)
        return values


class Netperf(_Omni):
    """Requests and answers of the same size, one at a time.

    ``tcp_crr`` is ``counted``, because with a time limit netserver waits 4 s for one more connection. netperf does not
    detect a lost datagram: it waits for the answer until its time is over.
    """

    name: ClassVar[str] = "netperf"
    summary: ClassVar[str] = "netperf: requests over TCP or UDP, or with a connection each"
    modes: ClassVar[tuple[str, ...]] = ("tcp_rr", "udp_rr", "tcp_crr")
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 1, _LARGEST)
    first_operations: ClassVar[int] = 500
    keys: ClassVar[tuple[str, ...]] = (
        *("ELAPSED_TIME", "TRANSACTION_RATE", *_BYTES, _RETRANSMITS),
        *("MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY"),
    )

    def __init__(self, load: ApplicationLoad, versions: Mapping[str, str] | None = None) -> None:
        super().__init__(load, versions)
        self.counted = load.mode == "tcp_crr"

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        size, length = self.load.message_bytes, f"-{operations}" if self.counted else f"{seconds:.0f}"
        return self._start(address, self.load.mode.upper(), length, "-r", f"{size},{size}")

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        return ("netperf's two ends waited for each message whole",)

    def parse(self, output: str, operations: int) -> ClientFigures:
        values = self._parse_numbers(output)
        answers, rate = self._messages(values, "LOCAL_BYTES_RECVD"), values["TRANSACTION_RATE"]
        mean, p50, p90, p99, most = (values[key] * 1e3 or None for key in self.keys[-5:])
        return ClientFigures(
            operations=answers,
            seconds=answers / rate if rate else 0.0,  # it prints the time with two decimals
            errors=self._lost(values, answers) if self.load.mode == "udp_rr" else None,
            payload_bytes=int(values["LOCAL_BYTES_RECVD"]),
            mean_ns=mean,
            p50_ns=p50,
            p90_ns=p90,
            p99_ns=p99,
            max_ns=most,
            retransmits=_retransmits(values),
        )

    def read_relayed_count(self, output: str) -> float | None:
        """Returns the answers sent by netserver."""
        return float(self._messages(self._parse_numbers(output), "REMOTE_BYTES_SENT"))

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns 1: the answer that was outstanding at the end."""
        return 1.0

    def _messages(self, values: Mapping[str, float], key: str) -> int:
        return int(values[key]) // self.load.message_bytes

    def _lost(self, values: Mapping[str, float], answers: int) -> int:
        """Returns the requests without an answer: lost ones, or one for which netperf waited until the end."""
        lost = self._messages(values, "LOCAL_BYTES_SENT") - self._messages(values, "REMOTE_BYTES_RECVD")
        idle_s = values["ELAPSED_TIME"] - answers * values["MEAN_LATENCY"] / 1e6
        return max(lost, int(idle_s > _IDLE_SHARE * values["ELAPSED_TIME"]))


class NetperfStream(_Omni):
    """A stream. Over TCP both ends count the same bytes, over UDP netserver counts those that arrived."""

    name: ClassVar[str] = "netperf_stream"
    summary: ClassVar[str] = "TCP and UDP streams of netperf"
    unit: ClassVar[Unit] = "megabits"
    modes: ClassVar[tuple[str, ...]] = ("tcp", "udp")
    #: Default: the socket's send buffer as netperf chooses it, or for UDP what fits into a frame.
    message_bytes: ClassVar[Bounds | None] = Bounds(0, 16, _LARGEST)
    keys: ClassVar[tuple[str, ...]] = (
        "LOCAL_BYTES_SENT",
        "REMOTE_BYTES_RECVD",
        "LOCAL_SEND_THROUGHPUT",
        "REMOTE_RECV_THROUGHPUT",
        _RETRANSMITS,
    )

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        size, options = self.load.message_bytes, []
        if self.load.mode == "udp":
            size = size or _DATAGRAM
            options += ["-R", "1"]  # otherwise its datagrams are not routed
        if size:
            options += ["-m", str(size)]
        return self._start(address, f"{self.load.mode}_stream".upper(), f"{seconds:.0f}", *options)

    def parse(self, output: str, operations: int) -> ClientFigures:
        values = self._parse_numbers(output)
        counted, rate = "LOCAL_BYTES_SENT", "LOCAL_SEND_THROUGHPUT"
        if self.load.mode == "udp":
            counted, rate = "REMOTE_BYTES_RECVD", "REMOTE_RECV_THROUGHPUT"
        bits = values[counted] * 8
        return ClientFigures(
            operations=bits / _MEGABIT,
            seconds=bits / (values[rate] * _KILOBIT) if values[rate] else 0.0,
            payload_bytes=int(values["REMOTE_BYTES_RECVD"]),
            retransmits=_retransmits(values),
        )

    def read_relayed_count(self, output: str) -> float | None:
        """Returns the megabits received by netserver."""
        return self._parse_numbers(output)["REMOTE_BYTES_RECVD"] * 8 / _MEGABIT

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns the size of the last send, which the end of the run interrupts and netperf does not count."""
        return _LARGEST * 8 / _MEGABIT


def _retransmits(values: Mapping[str, float]) -> int | None:
    """Returns the retransmitted segments; None without a connection at the end."""
    return int(values[_RETRANSMITS]) if values[_RETRANSMITS] >= 0 else None
