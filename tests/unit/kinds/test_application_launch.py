# SPDX-License-Identifier: BSD-3-Clause
"""A launch of an application: what is started, what counts, and each way in which it can go wrong."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.driver.application.protocol import SendRequest
from pytest_icbench.driver.application.redis import Redis
from pytest_icbench.driver.application.registry import application
from pytest_icbench.errors import WorkloadError
from pytest_icbench.kinds.application import application_launch as launch_module
from pytest_icbench.kinds.application.application_launch import run_application, why_wrong
from pytest_icbench.kinds.runs import METHODS
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.measure.summary.summarize import Environment, summarize
from pytest_icbench.model.application import ApplicationLoad, ApplicationRun, ClientFigures
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Application
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rig import LaunchPlan, Polled, Question, Usage
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.switch_facts import Busy
from tests.unit.scripted_rig import ScriptedRig

CASE = Case("veth", Application("redis"), dimension="application")
SETTINGS = Settings(duration_s=1.0)
HEAD = (
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"'
)


class Rig(ScriptedRig):
    """A rig on which redis-server and redis-benchmark say what a test wants."""

    def __init__(self, rps: float = 10_000.0) -> None:
        super().__init__()
        self.rps = rps
        self.calls = 0
        self.plans: dict[str, LaunchPlan] = {}
        self.ended: list[str] = []
        self.answer: str | None = None
        self.missed = 0
        self.client_lines: Sequence[str] | None = None
        self.client_exit: int | None = 0
        self.server_exit: int | None = None
        self.tsc_hz = 2_000_000_000

    def launch(self, plan: LaunchPlan) -> str:
        launch_id = f"l{len(self.plans)}"
        self.plans[launch_id] = plan
        return launch_id

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        return 0

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        process = self.plans[launch_id].processes[0]
        if "redis-server" in process.argv[0]:
            exited = self.server_exit is not None and len(self.plans) > 1
            return Polled(exited={process.index: self.server_exit or 0} if exited else {})
        asked = int(process.argv[process.argv.index("-n") + 1])
        self.calls += asked - self.missed
        lines = self.client_lines or (HEAD, f'"GET x","{self.rps}","0.1","0.05","0.09","0.2","0.3","1.5"')
        exited_with = {} if self.client_exit is None else {process.index: self.client_exit}
        return Polled(tuple((process.index, line) for line in lines), exited_with)

    def ask(self, index: int, address: str, question: Question) -> str:
        if self.answer is not None:
            return self.answer
        if question.request.startswith("SET"):
            return "+OK\r\n"
        if question.request.startswith("INFO"):
            return f"# Commandstats\r\ncmdstat_get:calls={self.calls},usec=1\r\n"
        self.calls += 1
        return "$3\r\nxxx\r\n"

    def usage(self, launch_id: str) -> dict[int, Usage]:
        cpu_ns = 500_000_000 if len(self.plans) > 2 else 100_000_000
        return {process.index: Usage(cpu_ns, 0, 0) for process in self.plans[launch_id].processes}

    def busy(self) -> Busy | None:
        return Busy(busy_ns=len(self.plans) * 10_000_000)

    def interference(self, launch_id: str) -> None:
        return None

    def end(self, launch_id: str) -> None:
        self.ended.append(launch_id)

    def log_tail(self, launch_id: str, index: int) -> str:
        return "the last words"


def launched(rig: Rig, **changes: Any) -> Launch:
    chosen = application("redis", {"redis-benchmark": "7.0.15", "redis-server": "7.0.15"})
    return run_application(chosen, rig, replace(CASE, **changes), SETTINGS)


def test_a_first_run_reports_how_many_requests_fill_the_time() -> None:
    rig = Rig(rps=12_345.0)
    launch = launched(rig)
    server, first, measured = (plan.processes[0] for plan in rig.plans.values())
    assert server.listens == "tcp:6379"
    assert server.index == 1
    assert first.argv[first.argv.index("-n") + 1] == "2000"
    assert measured.argv[measured.argv.index("-n") + 1] == "12345"
    assert launch.invalid is None
    assert launch.application is not None
    run = launch.application.runs[0]
    assert run.client.operations == 12345
    assert run.server_operations == 12345
    assert run.server_cpu_ns == 400_000_000
    assert run.client_cpu_ns == 500_000_000
    assert run.proofs == ("the value read back is the one written",)
    assert set(rig.ended) == set(rig.plans)


def test_a_server_that_counts_less_than_its_client_is_invalid() -> None:
    rig = Rig()
    rig.missed = 3
    launch = launched(rig)
    assert launch.invalid == "accounts"
    assert launch.evidence == ("redis-server of pair 1 counted 9,997 requests, its client redis-benchmark 10,000")


def test_the_count_that_a_client_has_from_its_server_is_the_server_s() -> None:
    class Relaying(Redis):
        def count_served(self, ask: SendRequest) -> float | None:
            return None

        def read_relayed_count(self, output: str) -> float | None:
            return 9_000.0 if HEAD in output else None

    launch = run_application(Relaying(ApplicationLoad("redis", "get", 1, 3)), Rig(), CASE, SETTINGS)
    assert launch.invalid == "accounts"
    assert launch.evidence == "redis-server of pair 1 counted 9,000 requests, its client redis-benchmark 10,000"


def test_a_server_of_another_protocol_is_reported_and_nothing_stays() -> None:
    rig = Rig()
    rig.answer = "220 mail ESMTP\r\n"
    with pytest.raises(WorkloadError, match="it is not redis-server"):
        launched(rig)
    assert rig.ended == ["l0"]


def test_a_server_that_leaves_is_reported_before_its_client() -> None:
    rig = Rig()
    rig.server_exit = -9
    rig.client_exit = 1
    with pytest.raises(WorkloadError, match=r"redis-server 7\.0\.15 of pair 1 ended during the run, by signal 9"):
        launched(rig)
    assert set(rig.ended) == set(rig.plans)


def test_a_client_that_fails_is_reported_with_its_log() -> None:
    rig = Rig()
    rig.client_exit = 1
    with pytest.raises(WorkloadError, match=r"redis-benchmark 7\.0\.15 of pair 1 ended with exit code 1") as error:
        launched(rig)
    assert "the last words" in str(error.value)


def test_output_that_no_longer_parses_names_the_version() -> None:
    rig = Rig()
    rig.client_lines = ("Summary: 12 kreq/s",)
    with pytest.raises(WorkloadError) as error:
        launched(rig)
    assert str(error.value) == (
        "the output of redis-benchmark has no line of figures in CSV; its last line is 'Summary: 12 kreq/s'"
        " (redis-benchmark 7.0.15)"
    )


def test_a_client_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_module, "END_S", -1.0)
    monkeypatch.setattr(launch_module, "END_FACTOR", 0.0)
    rig = Rig()
    rig.client_exit = None
    with pytest.raises(WorkloadError, match="has not ended within 0 s; it hangs"):
        launched(rig)
    assert set(rig.ended) == set(rig.plans)


def measured(*launches: Launch) -> Measurement:
    log = LaunchLog(launches=list(launches))
    return summarize(METHODS[CASE.kind].summary, CASE, SETTINGS, log, Environment("dedicated", ()))


def test_the_measurement_has_operations_times_and_costs() -> None:
    rigs = [Rig(rps=10_000.0 + 10 * number) for number in range(6)]
    result = measured(*map(launched, rigs))
    assert result.metric == "closed-loop"
    assert result.frames.throughput_pps is None
    assert result.application.operations_per_second == pytest.approx(10_025, abs=1)
    assert result.application.operations_per_second is not None
    assert result.application.operations_per_second.low is not None
    assert result.application.operations_per_second.low < 10_025
    assert result.application.response_p99_ns == pytest.approx(300_000)
    assert result.application.server_cpu_ns_per_operation == pytest.approx(400_000_000 / 10_025, rel=0.01)
    assert result.application.server_cycles_per_operation == pytest.approx(800_000_000 / 10_025, rel=0.01)
    again = Measurement.from_json(result.to_json())
    assert again == result
    assert repr(result).startswith("<Measurement veth-app:redis-1vs1-Rmax: operations_per_second 10.03k")


def stream(payload: int, received: int, frames: int, retransmits: int = 0) -> ApplicationRun:
    figures = ClientFigures(payload * 8 / 1e6, 1.0, payload_bytes=payload, retransmits=retransmits)
    return ApplicationRun(1, "megabits", figures, None, received_bytes=received, received_frames=frames)


def test_the_bytes_of_a_stream_are_those_of_the_interface_less_headers() -> None:
    payload, frames = 1_000_000_000, 40_000
    whole = payload + 66 * frames
    tcp, udp = application("iperf3"), application("iperf3:udp")
    assert why_wrong(tcp, stream(payload, whole, frames)) is None
    assert "1,000,000,000 bytes of payload" in str(why_wrong(tcp, stream(payload, whole // 2, frames)))
    assert why_wrong(tcp, stream(payload, 2 * whole, frames)) is not None
    assert why_wrong(tcp, stream(payload, 2 * whole, frames, retransmits=9)) is None
    assert why_wrong(udp, stream(payload, 2 * whole, frames)) is None
    assert why_wrong(udp, stream(payload, whole // 2, frames)) is not None


def test_each_stream_may_have_a_window_under_way_at_its_end() -> None:
    payload, received, frames = 2_429_288_448, 2_465_977_773, 0
    assert why_wrong(application("iperf3:c16"), stream(payload, received, frames)) is None
    assert why_wrong(application("iperf3"), stream(payload, received, frames)) is not None
    assert why_wrong(application("iperf3:c16"), stream(payload, received + payload // 20, frames)) is not None


def test_the_two_counts_of_a_stream_may_differ_by_what_the_end_cut_short() -> None:
    def run(here: float, there: float) -> ApplicationRun:
        return ApplicationRun(1, "megabits", ClientFigures(here, 1.0), there)

    netperf, iperf3 = application("netperf_stream"), application("iperf3")
    assert why_wrong(netperf, run(10.0, 10.5)) is None
    assert why_wrong(iperf3, run(10.0, 10.5)) == "iperf3 of pair 1 counted 10 megabits, its client iperf3 10"
    assert why_wrong(netperf, run(10.0, 11.0)) == "netserver of pair 1 counted 11 megabits, its client netperf 10"
    assert why_wrong(netperf, run(10_000.0, 10_010.0)) is None
    assert why_wrong(netperf, run(10_000.0, 9_980.0)) is not None


def test_errors_of_a_client_are_no_figures() -> None:
    run = ApplicationRun(1, "requests", ClientFigures(1000, 1.0, errors=5))
    assert why_wrong(application("nginx"), run) == "wrk of pair 1 had 5 errors among 1,000 requests"
