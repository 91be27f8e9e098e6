# SPDX-License-Identifier: BSD-3-Clause
"""``iperf3``: TCP in 1 to 16 streams, and UDP at full speed. An operation is a megabit of received payload."""

from __future__ import annotations

from typing import Any, ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, ProofFailed, count, number
from pytest_icbench.model.application import Bounds, ClientFigures, Unit
from pytest_icbench.model.codec import DamagedData, from_json

_PROGRAM = Program("iperf3", "iperf3")
#: Bits of an operation.
_MEGABIT = 1e6


class Iperf3(Application):
    """iperf3, whose server is started for one run and reports what it received."""

    name: ClassVar[str] = "iperf3"
    summary: ClassVar[str] = "TCP and UDP streams of iperf3"
    server: ClassVar[Program] = _PROGRAM
    client: ClassVar[Program] = _PROGRAM
    port: ClassVar[int] = 5201
    serves_once: ClassVar[bool] = True
    unit: ClassVar[Unit] = "megabits"
    modes: ClassVar[tuple[str, ...]] = ("tcp", "udp")
    connections: ClassVar[Bounds | None] = Bounds(1, 1, 16)
    #: Natural: iperf3's own block of 128 KiB, or for UDP what fits a frame.
    message_bytes: ClassVar[Bounds | None] = Bounds(0, 16, 65507)

    def serve(self, address: str) -> ProcessSpec:
        return ProcessSpec((_PROGRAM.name, "-s", "-1", "-J", "-B", address, "-p", str(self.port)))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = [_PROGRAM.name, "-c", address, "-p", str(self.port), "-t", f"{seconds:.0f}", "-J"]
        argv += ["-P", str(self.load.connections)]
        if self.load.mode == "udp":
            argv += ["-u", "-b", "0"]
        if self.load.message_bytes:
            argv += ["-l", str(self.load.message_bytes)]
        return ProcessSpec(tuple(argv))

    def parse(self, output: str, operations: int) -> ClientFigures:
        end = self._end(output)
        sums, sent = self._received(end), end.get("sum_sent")
        received = self._of(sums, "bytes", output)
        again = sent.get("retransmits") if isinstance(sent, dict) and self.load.mode != "udp" else None
        return ClientFigures(
            operations=received * 8 / _MEGABIT,
            seconds=self._of(sums, "seconds", output),
            payload_bytes=round(received),
            retransmits=None if again is None else count(again, "retransmits", _PROGRAM),
        )

    def read_server_count(self, output: str) -> float | None:
        """Returns the megabits received by the server, from its own report."""
        return self._of(self._received(self._end(output)), "bytes", output) * 8 / _MEGABIT

    def _received(self, end: dict[str, Any]) -> Any:
        return end.get("sum_received") or (end.get("sum") if self.load.mode == "udp" else None)

    @staticmethod
    def _of(sums: Any, key: str, output: str) -> float:
        value = sums.get(key) if isinstance(sums, dict) else None
        if value is None:
            raise _PROGRAM.unreadable(f"{key} received", output)
        return number(value, f"{key} received", _PROGRAM)

    @staticmethod
    def _end(output: str) -> dict[str, Any]:
        try:
            data = from_json(output, _PROGRAM.name)
        except DamagedData:
            raise _PROGRAM.unreadable("JSON", output) from None
        if isinstance(data, dict) and data.get("error"):
            raise ProofFailed(f"iperf3 ended with an error: {' '.join(str(data['error'])[:120].split())}")
        end = data.get("end") if isinstance(data, dict) else None
        if not isinstance(end, dict) or not end:
            raise _PROGRAM.unreadable("'end'", output)
        return end
