# SPDX-License-Identifier: BSD-3-Clause
"""``memcached`` with memcaslap: nine GETs for each SET, every tenth value compared with the one that was set."""

from __future__ import annotations

import re
from typing import ClassVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, SendRequest, count
from pytest_icbench.model.application import Bounds, ClientFigures
from pytest_icbench.model.rig import Question

#: memcaslap uses its own keys, and reports windows and preparation separately.
_TOTALS = ("cmd_get", "cmd_set", "get_misses", "verify_misses", "verify_failed")


class Memcached(Application):
    """memcached and memcaslap with one thread each."""

    name: ClassVar[str] = "memcached"
    summary: ClassVar[str] = "memcached with memcaslap, nine GETs for each SET"
    server: ClassVar[Program] = Program("memcached", "memcached")
    client: ClassVar[Program] = Program("memcaslap", "libmemcached-tools", version_pattern=r"v?(\d+\.\d+\S*)")
    port: ClassVar[int] = 11211
    connections: ClassVar[Bounds | None] = Bounds(20, 1, 512)
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 16, 1_000_000)

    def serve(self, address: str) -> ProcessSpec:
        return ProcessSpec(("memcached", "-u", "root", "-l", address, "-p", str(self.port), "-U", "0", "-t", "1"))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = ["memcaslap", "-s", f"{address}:{self.port}", "-T", "1", "-c", str(self.load.connections)]
        return ProcessSpec((*argv, "-X", str(self.load.message_bytes), "-t", f"{seconds:.0f}s", "-v", "0.1"))

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        self.write_and_read_back(ask, "icbench-value")
        return ("the value read back is the one written", "memcaslap compared every tenth value")

    def write_and_read_back(self, ask: SendRequest, value: str) -> None:
        """Sets and gets the key ``icbench``. Raises ProofFailed if the value differs."""
        self.expect(ask, f"set icbench 0 0 {len(value)}\r\n{value}\r\n", "STORED\r\n")
        self.expect(ask, "get icbench\r\n", f"VALUE icbench 0 {len(value)}\r\n{value}\r\nEND\r\n")

    def count_served(self, ask: SendRequest) -> float | None:
        answer = ask(Question(self.port, "stats\r\nquit\r\n"))
        counts = [re.search(rf"^STAT {name} (\d+)", answer, re.MULTILINE) for name in ("cmd_get", "cmd_set")]
        if None in counts:
            raise self.wrong_answer("stats", answer)
        return float(sum(count(match[1], "count", self.server) for match in counts if match is not None))

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns the operations outstanding at the end, and those with which memcaslap fills its windows before."""
        return 2.0 * self.load.connections + 0.001 * figures.operations

    def parse(self, output: str, operations: int) -> ClientFigures:
        totals = {name: re.search(rf"^{name}: (\d+)", output, re.MULTILINE) for name in _TOTALS}
        end = re.search(r"^Run time: (\S+?)s Ops: (\d+) TPS: (\d+)", output, re.MULTILINE)
        if end is None or None in totals.values():
            raise self.client.unreadable("line 'Run time'", output)
        counts = {name: count(match[1], name, self.client) for name, match in totals.items() if match is not None}
        asked, rate = counts["cmd_get"] + counts["cmd_set"], count(end[3], "rate", self.client)
        if not rate:
            raise self.client.unreadable("rate above 0", output)
        errors = counts["get_misses"] + counts["verify_misses"] + counts["verify_failed"]
        # It prints the time with one decimal, and a rate that is computed from the exact time.
        return ClientFigures(operations=asked, seconds=count(end[2], "operations", self.client) / rate, errors=errors)
