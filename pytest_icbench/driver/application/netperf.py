# SPDX-License-Identifier: BSD-3-Clause
"""``netperf``: requests over TCP or UDP, or with a connection each; ``netperf_stream``: a stream of TCP or UDP.

netserver tells netperf over their control connection what it counted, and netperf tells both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, unreadable
from pytest_icbench.model.application import ApplicationLoad, Bounds, ClientFigures, Unit

_REMEDY = "apt install netperf (Debian 12 has it in non-free)"
_VERSION = r"version (\d+\.\d+\S*)"
_NETPERF = Program("netperf", "netperf", ("-V",), _VERSION, _REMEDY)
_BYTES = ("LOCAL_BYTES_SENT", "LOCAL_BYTES_RECVD", "REMOTE_BYTES_SENT", "REMOTE_BYTES_RECVD")
_RETRANSMITS = "LOCAL_TRANSPORT_RETRANS"
#: The last line that is asked for, by ``-f k``: output that was cut off has none.
_UNITS, _KILOBITS = "THROUGHPUT_UNITS", "THROUGHPUT_UNITS=10^3bits/s"
_LINE = re.compile(r"^([A-Z0-9_]+)=(-?\d{1,20}(?:\.\d{1,20})?)$", re.MULTILINE)
#: Share of a run that its answers may leave, of which netperf's own work is a part.
_IDLE_SHARE = 0.1
#: Bits of an operation of a stream, and of the units of its rate.
_MEGABIT, _KILOBIT = 1e6, 1e3
#: The greatest datagram's payload.
_LARGEST = 65507
#: As iperf3 has it: it fits a frame.
_DATAGRAM = 1448


class _Omni(Application):
    """netperf and netserver. A version that does not know a key leaves it out, and ends well."""

    server: ClassVar[Program] = Program("netserver", "netperf", ("-V",), _VERSION, _REMEDY)
    client: ClassVar[Program] = _NETPERF
    port: ClassVar[int] = 12865
    #: What netperf is asked for, each a number.
    keys: ClassVar[tuple[str, ...]]

    def serve(self, address: str) -> ProcessSpec:
        # Without -f the work, and its CPU time, would be a child's.
        return ProcessSpec(("netserver", "-D", "-f", "-L", address, "-p", str(self.port)))

    def _start(self, address: str, test: str, length: str, *options: str) -> ProcessSpec:
        argv = ("netperf", "-H", address, "-p", str(self.port), "-t", test, "-l", length, "-f", "k", "-P", "0", "--")
        # The second -H is for netserver's socket of the data, which would be bound to every address.
        return ProcessSpec((*argv, "-k", ",".join((*self.keys, _UNITS)), "-H", address, *options))

    def _parse_numbers(self, output: str) -> dict[str, float]:
        """Returns the numbers by key. Raises Wrong if one is missing."""
        told = {key: float(text) for key, text in _LINE.findall(output)}
        for key in self.keys:
            if key not in told:
                raise unreadable(_NETPERF, key, output)
        if _KILOBITS not in output.splitlines():
            raise unreadable(_NETPERF, _KILOBITS, output)
        return told


class Netperf(_Omni):
    """A request and its answer of the same bytes, one at a time.

    ``tcp_crr`` is ``counted``: after a time, netserver would wait 4 s for one connection more. netperf does not notice
    that a datagram is lost: it waits for the answer to the end of its time.
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
        told = self._parse_numbers(output)
        answers, rate = self._messages(told, "LOCAL_BYTES_RECVD"), told["TRANSACTION_RATE"]
        mean, p50, p90, p99, most = (told[key] * 1e3 or None for key in self.keys[-5:])
        return ClientFigures(
            operations=answers,
            seconds=answers / rate if rate else 0.0,  # it tells the time with two decimals
            errors=self._lost(told, answers) if self.load.mode == "udp_rr" else None,
            payload_bytes=int(told["LOCAL_BYTES_RECVD"]),
            mean_ns=mean,
            p50_ns=p50,
            p90_ns=p90,
            p99_ns=p99,
            max_ns=most,
            retransmits=_retransmits(told),
        )

    def read_relayed_count(self, output: str) -> float | None:
        """Returns the answers that netserver sent."""
        return float(self._messages(self._parse_numbers(output), "REMOTE_BYTES_SENT"))

    def tolerance(self, figures: ClientFigures) -> float:
        """The answer that was under way at the end."""
        return 1.0

    def _messages(self, told: Mapping[str, float], key: str) -> int:
        return int(told[key]) // self.load.message_bytes

    def _lost(self, told: Mapping[str, float], answers: int) -> int:
        """Returns the requests without an answer: those that did not arrive, or one that took the rest of the time."""
        lost = self._messages(told, "LOCAL_BYTES_SENT") - self._messages(told, "REMOTE_BYTES_RECVD")
        idle_s = told["ELAPSED_TIME"] - answers * told["MEAN_LATENCY"] / 1e6
        return max(lost, int(idle_s > _IDLE_SHARE * told["ELAPSED_TIME"]))


class NetperfStream(_Omni):
    """A stream. Over TCP its two ends count the same bytes; over UDP, netserver's are those that arrived."""

    name: ClassVar[str] = "netperf_stream"
    summary: ClassVar[str] = "TCP and UDP streams of netperf"
    unit: ClassVar[Unit] = "megabits"
    modes: ClassVar[tuple[str, ...]] = ("tcp", "udp")
    #: Natural: netperf's own, the send buffer of a socket, or for UDP what fits a frame.
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
            options += ["-R", "1"]  # else its datagrams take no route
        if size:
            options += ["-m", str(size)]
        return self._start(address, f"{self.load.mode}_stream".upper(), f"{seconds:.0f}", *options)

    def parse(self, output: str, operations: int) -> ClientFigures:
        told = self._parse_numbers(output)
        counted, rate = "LOCAL_BYTES_SENT", "LOCAL_SEND_THROUGHPUT"
        if self.load.mode == "udp":
            counted, rate = "REMOTE_BYTES_RECVD", "REMOTE_RECV_THROUGHPUT"
        bits = told[counted] * 8
        return ClientFigures(
            operations=bits / _MEGABIT,
            seconds=bits / (told[rate] * _KILOBIT) if told[rate] else 0.0,
            payload_bytes=int(told["REMOTE_BYTES_RECVD"]),
            retransmits=_retransmits(told),
        )

    def read_relayed_count(self, output: str) -> float | None:
        """Returns the megabits that netserver received."""
        return self._parse_numbers(output)["REMOTE_BYTES_RECVD"] * 8 / _MEGABIT

    def tolerance(self, figures: ClientFigures) -> float:
        """A send that the end of the time cut short, and that netperf does not count."""
        return _LARGEST * 8 / _MEGABIT


def _retransmits(told: Mapping[str, float]) -> int | None:
    """Returns the segments sent again; None where there is no connection, or none at the end."""
    return int(told[_RETRANSMITS]) if told[_RETRANSMITS] >= 0 else None
