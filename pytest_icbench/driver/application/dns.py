# SPDX-License-Identifier: BSD-3-Clause
"""``dns``: dnsperf requests one address from dnsmasq."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, count, number
from pytest_icbench.model.application import ApplicationLoad, Bounds, ClientFigures
from pytest_icbench.model.rig import FILES, Question

#: The queried name and its address at the server (RFC 5737).
_NAME, _ADDRESS = "a.test", "192.0.2.53"
_HEADER = struct.Struct("!6H")
_ID, _RECURSION_DESIRED, _A, _TXT, _IN, _CHAOS = 7, 0x100, 1, 16, 1, 3
#: dnsmasq's answer ends with the TXT record: a length byte and the data.
_COUNT = re.compile(rb"([\x01-\x14])(\d+)\Z", re.DOTALL)


class Dns(Application):
    """dnsmasq at its own address, and dnsperf with one thread over UDP.

    dnsperf 2.10 sleeps 30 ms after each answer if only one query is outstanding, so at least two are.
    """

    name: ClassVar[str] = "dns"
    summary: ClassVar[str] = "dnsmasq with dnsperf, queries over UDP"
    server: ClassVar[Program] = Program("dnsmasq", "dnsmasq-base")
    client: ClassVar[Program] = Program(
        "dnsperf", "dnsperf", version_argv=("-h",), version_pattern=r"Version (\d+\.\d+\S*)"
    )
    port: ClassVar[int] = 5300
    transport: ClassVar[str] = "udp"
    connections: ClassVar[Bounds | None] = Bounds(20, 2, 512)

    def __init__(self, load: ApplicationLoad, versions: Mapping[str, str] | None = None) -> None:
        super().__init__(load, versions)
        self._own = 0

    def serve(self, address: str) -> ProcessSpec:
        self._own = 0
        # With any user, even root, it calls setgroups(2), which nodes may not, and reports the failure to syslog only.
        identity = ("--keep-in-foreground", "--user=", "--group=", "--log-facility=-")
        files = ("--conf-file=/dev/null", "--pid-file=")
        names = ("--no-resolv", "--no-hosts", f"--address=/test/{_ADDRESS}")
        where = (f"--port={self.port}", f"--listen-address={address}", "--bind-interfaces")
        return ProcessSpec(("dnsmasq", *identity, *files, *names, *where))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        many = str(self.load.connections)
        argv = ("dnsperf", "-s", address, "-p", str(self.port), "-d", f"{FILES}/queries", "-l", f"{seconds:.0f}")
        return ProcessSpec((*argv, "-c", many, "-q", many, "-T", "1"), {"queries": f"{_NAME} A\n"})

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        self._own += 1
        answer = ask(Question(self.port, _query(_NAME, _A, _IN), via="udp")).encode("latin-1")
        address = bytes(map(int, _ADDRESS.split(".")))
        if answer[:2] != _ID.to_bytes(2, "big") or not answer.endswith(b"\x00\x04" + address):
            raise self.wrong_answer(f"the query for {_NAME}", answer, _ADDRESS)
        return (f"the address of {_NAME} is the one configured", "dnsperf found no other answer code than NOERROR")

    def count_served(self, ask: SendRequest) -> float | None:
        answer = ask(Question(self.port, _query("hits.bind", _TXT, _CHAOS), via="udp")).encode("latin-1")
        match = _COUNT.search(answer)
        if match is None or match[1][0] != len(match[2]):
            raise self.wrong_answer("the query for hits.bind", answer)
        hits = count(match[2].decode(), "count", self.server) - self._own
        self._own += 1  # this query is counted after its answer
        return float(hits)

    def parse(self, output: str, operations: int) -> ClientFigures:
        sent = re.search(r"Queries sent: +(\d+)", output)
        completed = re.search(r"Queries completed: +(\d+)", output)
        codes = re.search(r"Response codes: +(.*)", output)
        seconds = re.search(r"Run time \(s\): +(\d+\.\d+)", output)
        times = re.search(r"Average Latency \(s\): +(\d+\.\d+) \(min \d+\.\d+, max (\d+\.\d+)\)", output)
        if not (sent and completed and codes and seconds and times) or not float(seconds[1]):
            raise self.client.unreadable("line 'Queries completed', or its time,", output)
        right = re.search(r"NOERROR (\d+)", codes[1])
        good = count(right[1], "answers without an error", self.client) if right else 0
        return ClientFigures(
            operations=count(completed[1], "completed queries", self.client),
            seconds=number(seconds[1], "run time", self.client),
            errors=count(count(sent[1], "sent queries", self.client) - good, "queries without an answer", self.client),
            mean_ns=number(times[1], "average latency", self.client) * 1e9,
            max_ns=number(times[2], "maximum latency", self.client) * 1e9,
        )


def _query(name: str, kind: int, area: int) -> str:
    """Returns a query (RFC 1035) as the text of a ``Question``."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    header = _HEADER.pack(_ID, _RECURSION_DESIRED, 1, 0, 0, 0)
    return (header + labels + b"\0" + struct.pack("!2H", kind, area)).decode("latin-1")
