# SPDX-License-Identifier: BSD-3-Clause
"""Runs one launch of an application: fresh servers, their proof, the clients, and what both counted.

Every wait has a bound. No process of the launch survives it, whatever happens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, ProofFailed, SendRequest
from pytest_icbench.measure.launch.culprit import switch_first
from pytest_icbench.measure.launch.disturbance import StealTrack, beside_cpu_states, why_disturbed
from pytest_icbench.measure.launch.processes import workload_error
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.application import ApplicationLaunch, ApplicationRun, ClientFigures
from pytest_icbench.model.case import Case
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.rig import LaunchPlan, PlannedProcess, Usage
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.switch_facts import Busy

#: Bytes of headers in each frame that an interface counts: Ethernet, IPv4, and TCP with time stamps, or UDP.
TCP_HEADERS, UDP_HEADERS = 66, 42
#: Payload that there may be beside what was received: a share for the control connection and segments that were sent
#: again, and bytes of each stream, a window of TCP, that were under way when the client stopped counting.
STREAM_SHARE, STREAM_BYTES = 0.01, 4 << 20
#: Share by which the counts of a stream's two ends may differ.
COUNT_SHARE = 0.001


def why_wrong(application: Application, run: ApplicationRun) -> str | None:
    """Returns why a run's figures do not fit together, in one sentence; None if they do."""
    return _errors(application, run) or _counts(application, run) or _bytes(application, run)


def _errors(application: Application, run: ApplicationRun) -> str | None:
    if not run.client.errors:
        return None
    name, total = application.client.name, run.client.operations
    return f"{name} of pair {run.pair} had {run.client.errors} errors among {total:,.0f} requests"


def _counts(application: Application, run: ApplicationRun) -> str | None:
    there, here = run.server_operations, run.client.operations
    if there is None:
        return None
    allowed = application.tolerance(run.client) + run.client.unanswered
    if application.unit == "megabits":
        allowed += COUNT_SHARE * here
    if abs(there - here) <= allowed:
        return None
    return (
        f"{application.server.name} of pair {run.pair} counted {there:,.0f} {application.unit}, its client"
        f" {application.client.name} {here:,.0f}"
    )


def _bytes(application: Application, run: ApplicationRun) -> str | None:
    """Compares a stream's payload with what the receiving interface counted, less headers."""
    payload, counted = run.client.payload_bytes, run.received_bytes
    if application.unit != "megabits" or payload is None or counted is None:
        return None
    udp = application.load.mode == "udp"
    carried = counted - (UDP_HEADERS if udp else TCP_HEADERS) * (run.received_frames or 0)
    # The last window of a stream may be read after the client has asked for the count.
    slack = STREAM_SHARE * payload + STREAM_BYTES * max(application.load.connections, 1)
    too_few = carried < payload - slack
    # A socket drops datagrams that come too fast; of TCP only what was sent again is beside the payload.
    too_many = not udp and not run.client.retransmits and carried > payload + slack
    if not (too_few or too_many):
        return None
    return (
        f"{application.client.name} of pair {run.pair} reports {payload:,} bytes of payload, but the interface of"
        f" {application.server.name} received {carried:,} without headers"
    )


T = TypeVar("T")
#: Longest time until a server listens, in seconds.
LISTEN_S = 10.0
#: A client that has not ended this long after it should have, or by this factor, hangs.
END_S, END_FACTOR = 10.0, 3.0
#: The fewest operations of a measured run.
FEWEST_OPERATIONS = 50
#: How long a server that ends with its client may take for it, in seconds.
LAST_WORDS_S = 3.0
_TICK_S = 0.25


def run_application(
    application: Application, rig: MeasuredRig, case: Case, settings: Settings, *, index: int = 0, **_others: object
) -> Launch:
    """Runs one launch of an application on every pair of a rig at once. No rate is reported before its end.

    ``index``: number of the launch in its case, from 0. Other arguments of ``run_launch`` have no effect.

    Raises:
        WorkloadError: a server does not listen, speaks another protocol, answers wrongly or leaves; a client fails,
            hangs, or writes what cannot be read. One sentence, and the end of the process' log beneath.
        ProvisionError: the switch is dead; with the tail of its log.
    """
    with switch_first(rig):
        return beside_cpu_states(rig, lambda: _Run(application, rig, case, settings).run(index))


class _Run:
    """A launch in progress."""

    def __init__(self, application: Application, rig: MeasuredRig, case: Case, settings: Settings) -> None:
        self.application = application
        self.rig = rig
        self.case = case
        self.seconds = settings.duration_s
        if application.whole_seconds and not application.counted:
            self.seconds = float(max(1, math.ceil(settings.duration_s)))
        self.servers = ""
        self.output: dict[int, list[str]] = {}
        self.exited: dict[int, int] = {}
        self.steal = StealTrack(sorted(set(rig.placement.endpoints)))
        self.interference: Interference | None = None

    def run(self, index: int) -> Launch:
        began, started_at = time.monotonic(), time.time()
        path, application = self.case.path, self.application
        port = f"{application.transport}:{application.port}"
        starts = {follower: application.serve(self._address(follower)) for follower in path.followers}
        self.servers = self.rig.launch(_plan(starts, port))
        self.output = {follower: [] for follower in path.followers}
        try:
            proofs = [application.prepare(self._ask(leader)) for leader in path.leaders]
            operations = self._enough() if application.counted else 0
            counted = self._served()
            servers, busy = self.rig.usage(self.servers), self.rig.busy()
            self.steal.sample(time.monotonic_ns())
            run_began = time.monotonic()
            texts, clients = self._drive(operations)
            seconds = time.monotonic() - run_began
            self.steal.sample(time.monotonic_ns())
            done, work = self.rig.usage(self.servers), self.rig.busy()
            reported = self._reported() if application.serves_once else self._served()
        finally:
            self.rig.end(self.servers)
        self.rig.check()
        runs = []
        client, relayed = application.client, application.read_relayed_count
        for place, (leader, follower) in enumerate(map(path.ends, path.numbers)):
            figures = self._parsed(texts[leader], operations)
            own = _difference(reported[follower], counted[follower])
            run = ApplicationRun(
                pair=path.pair(leader),
                unit=application.unit,
                client=figures,
                server_operations=self._read(client, relayed, texts[leader]) if own is None else own,
                client_cpu_ns=clients[leader].cpu_ns if figures.cpu_ns is None else figures.cpu_ns,
                server_cpu_ns=_cpu(servers[follower], done[follower]),
                proofs=proofs[place],
                received_bytes=done[follower].rx_bytes - servers[follower].rx_bytes,
                received_frames=done[follower].rx_packets - servers[follower].rx_packets,
                open_loop=application.open_loop,
            )
            runs.append(run)
        softirq = _softirq(busy, work)
        launch = ApplicationLaunch(tuple(runs), seconds, softirq)
        invalid = next((why for run in runs if (why := why_wrong(application, run)) is not None), None)
        return Launch(
            index=index,
            started_at=started_at,
            duration_s=max(run.client.seconds for run in runs),
            overhead_s=time.monotonic() - began - seconds,
            throughput_pps=0.0,
            offered_pps=0.0,
            steal_share=self.steal.share,
            generator_bound=False,
            pairs=(),
            invalid=None if invalid is None else "accounts",
            evidence=invalid,
            tsc_hz=self.rig.tsc_hz,
            interference=self.interference,
            disturbed=why_disturbed(self.interference, shared=self.rig.placement.shared),
            application=launch,
        )

    def _address(self, index: int) -> str:
        return self.rig.endpoints[index].address.ip

    def _ask(self, leader: int) -> SendRequest:
        return partial(self.rig.ask, leader, self._address(self.case.path.peer(leader)))

    def _served(self) -> dict[int, float | None]:
        """Returns each server's own count, by the index of its endpoint."""
        path = self.case.path
        return {follower: self.application.count_served(self._ask(path.peer(follower))) for follower in path.followers}

    def _reported(self) -> dict[int, float | None]:
        """Returns each server's count from its last output. Servers end with their clients."""
        deadline = time.monotonic() + LAST_WORDS_S
        while len(self.exited) < len(self.output) and time.monotonic() < deadline:
            self._hear_servers(_TICK_S)
        server, reported = self.application.server, self.application.read_server_count
        return {index: self._read(server, reported, "\n".join(lines)) for index, lines in self.output.items()}

    def _read(self, program: Program, reader: Callable[[str], T], output: str) -> T:
        """Returns what the application reads in a program's output. Raises ProofFailed with the program's version."""
        try:
            return reader(output)
        except ProofFailed as error:
            raise ProofFailed(f"{error} ({self.application.describe_program(program)})") from None

    def _enough(self) -> int:
        """Returns how many operations fill the time of a run, by a first one, which warms up, too."""
        first = self.application.first_operations
        texts, _ = self._drive(first)
        rates = [self._parsed(text, first).operations_per_second for text in texts.values()]
        return max(FEWEST_OPERATIONS, round(min(rates) * self.seconds))

    def _drive(self, operations: int) -> tuple[dict[int, str], dict[int, Usage]]:
        """Runs a client on every pair; returns their output and what they used, by endpoint index."""
        path, rig = self.case.path, self.rig
        starts = {
            leader: self.application.drive(
                self._address(path.peer(leader)), seconds=self.seconds, operations=operations
            )
            for leader in path.leaders
        }
        launch_id = rig.launch(_plan(starts))
        lines: dict[int, list[str]] = {leader: [] for leader in path.leaders}
        left = dict.fromkeys(path.leaders, True)
        limit_s = max(END_FACTOR * self.seconds, self.seconds + END_S)
        try:
            rig.start(launch_id, 0.0)
            deadline = time.monotonic() + limit_s
            while any(left.values()):
                polled = rig.poll(launch_id, _TICK_S)
                for index, text in polled.lines:
                    lines[index].append(text)
                self._hear_servers(0.0)
                for index, code in polled.exited.items():
                    left[index] = False
                    if code != 0:
                        self._failed(launch_id, index, code, lines[index])
                if time.monotonic() > deadline and any(left.values()):
                    index = next(index for index, runs in left.items() if runs)
                    raise workload_error(
                        f"{self._client(index)} has not ended within {limit_s:g} s; it hangs, or its server does not"
                        " answer",
                        rig.log_tail(launch_id, index),
                    )
            self.interference = rig.interference(launch_id)
            return {index: "\n".join(text) for index, text in lines.items()}, rig.usage(launch_id)
        finally:
            rig.end(launch_id)

    def _client(self, index: int) -> str:
        return f"{self.application.describe_program(self.application.client)} of pair {self.case.path.pair(index)}"

    def _failed(self, launch_id: str, index: int, code: int, lines: list[str]) -> None:
        """Raises WorkloadError for a client that failed, or for the server that left it."""
        self._hear_servers(_TICK_S)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        tail = self.rig.log_tail(launch_id, index) or "\n".join(lines[-15:])
        raise workload_error(f"{self._client(index)} {how}: its server may speak another protocol", tail)

    def _hear_servers(self, timeout_s: float) -> None:
        """Reads the servers' output. Raises WorkloadError for a server that ended too early."""
        polled = self.rig.poll(self.servers, timeout_s)
        for index, text in polled.lines:
            self.output[index].append(text)
        for index, code in polled.exited.items():
            self.exited[index] = code
            if code != 0 or not self.application.serves_once:
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                name = self.application.describe_program(self.application.server)
                raise workload_error(
                    f"{name} of pair {self.case.path.pair(index)} ended during the run, {how}",
                    self.rig.log_tail(self.servers, index) or "\n".join(self.output[index][-15:]),
                )

    def _parsed(self, output: str, operations: int) -> ClientFigures:
        application = self.application
        figures = self._read(application.client, lambda text: application.parse(text, operations), output)
        if not (figures.operations > 0 and figures.seconds > 0):
            raise ProofFailed(f"{application.describe_program(application.client)} had no answer at all")
        return figures


def _plan(starts: Mapping[int, ProcessSpec], listens: str | None = None) -> LaunchPlan:
    return LaunchPlan(
        tuple(
            PlannedProcess(index, start.argv, listens=listens, files=tuple(start.files.items()))
            for index, start in starts.items()
        ),
        LISTEN_S,
    )


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None else now - (before or 0.0)


def _softirq(before: Busy | None, now: Busy | None) -> int | None:
    if before is None or now is None or before.busy_ns is None or now.busy_ns is None:
        return None
    return now.busy_ns - before.busy_ns


def _cpu(before: Usage, now: Usage) -> int | None:
    return None if before.cpu_ns is None or now.cpu_ns is None else now.cpu_ns - before.cpu_ns
