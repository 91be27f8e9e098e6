# SPDX-License-Identifier: BSD-3-Clause
"""What a run prints about a host or a path that lets it claim less: what is missing, and what is not claimed for it.

Measurements are made of the lines of scripted processes, so all but the packets is as in a real run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource import perf
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.testbed.host_fitness import examine
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed
from tests.unit.scripted_rig import FRAMES, ScriptedRig, run

RATE = "@pytest.mark.icbench(switch='veth', api='udp')\ndef test_a(icbench): icbench.gate(icbench.throughput())\n"
ROUND_TRIP = (
    "@pytest.mark.icbench(dimension='latency', switch='veth', api='udp', rate='1k', burst=4)\n"
    "def test_a(icbench): icbench.gate(icbench.latency())\n"
)
Edit = Callable[[int, dict[str, Any]], dict[str, Any]]


def said(inner: Runner, test: str, *outcome: str) -> str:
    """What a run of a test prints, as one line."""
    inner.write(test_x=test)
    result = inner.run()
    result.assert_outcomes(**dict.fromkeys(outcome or ("passed",), 1))
    return " ".join(line.strip() for line in result.stdout.lines)


def scripted(bench: type[FakeTestbed], edit: Edit, **changes: Any) -> None:
    """Makes measuring a launch of processes whose lines are edited."""

    def measured(case: Case) -> Measurement:
        found: Measurement = run(ScriptedRig(edit=edit), case=case, **changes)
        return found

    bench.behaviour = staticmethod(measured)


def test_a_host_without_schedstat_and_perf(
    inner: Runner, bench: type[FakeTestbed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf, "unsupported_reason", lambda: "no permit")
    empty = tmp_path / "host"
    empty.mkdir()
    bench.fitness = examine(HostSession.probing(root=Root(empty)), {0}, 0.01)
    text = said(inner, RATE)
    assert "/proc/stat does not have these CPUs" in text
    assert "counts no run delay (/proc/PID/schedstat): a thread that waits for its CPU is not seen" in text
    assert "gives no hardware events (no permit): results have no instructions and cache misses per frame" in text


def test_a_processor_without_an_invariant_clock(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(lambda case: run(ScriptedRig(exits={0: 6}), case=case))
    text = said(inner, RATE, "failed")
    assert "INVALID: veth-udp-64B-b32-1vs1-Rmax: clock: send of pair 1 ended with exit code 6" in text
    assert "(this machine's TSC is not invariant)" in text
    assert "measure on another machine, or let the hypervisor pass the flag invtsc" in text


def test_a_clock_that_steps(inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch) -> None:
    tell = time.time

    def measured(case: Case) -> Measurement:
        sent: list[int] = []

        def path(frames: int) -> int:
            sent.append(frames)
            return frames

        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: tell() - 3600 * bool(sent))
            found: Measurement = run(ScriptedRig(path=path), case=case)
        return found

    bench.behaviour = staticmethod(measured)
    text = said(inner, RATE)
    assert "the host's clock was set back by 60 min meanwhile: rates and times are measured by another" in text
    assert "the time of day of its launches does not" in text


def test_a_client_that_never_gets_its_cpu(inner: Runner, bench: type[FakeTestbed]) -> None:
    nothing = dict.fromkeys(("scheduled", "sent", "received", "sequences", "gaps", "tx_full"), 0)

    def edit(_index: int, line: dict[str, Any]) -> dict[str, Any]:
        stuck = {**nothing, "highest_sequence": -1}
        return {**line, **{name: value for name, value in stuck.items() if name in line}}

    scripted(bench, edit)
    text = said(inner, ROUND_TRIP, "failed")
    assert "INVALID: veth-udp-64B-b4-1vs1-R1k: clock: client of pair 1 offered none of the 60 frames due" in text
    assert "in 0.06 s: it had no CPU" in text
    assert "p50" not in text


def test_a_server_that_answers_nothing_after_the_first_second(inner: Runner, bench: type[FakeTestbed]) -> None:
    answered = 10 * FRAMES

    def edit(_index: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["type"] == "window" and line["window"] > 10:
            return {**line, "received": 0, "bytes": 0, "first_ns": None, "last_ns": None}
        if line["type"] == "summary":
            return {**line, "received": answered, "highest_sequence": answered - 1, "gaps": 0, "unanswered": answered}
        return line

    scripted(bench, edit, duration_s=2.0, window_s=0.1)
    text = said(inner, ROUND_TRIP, "failed")
    assert "INVALID: veth-udp-64B-b4-1vs1-R1k: stalled: pair 1: nothing arrived in the last 10 of 20 windows" in text
    assert "p50" not in text


def test_fewer_answers_than_a_percentile_wants(inner: Runner, bench: type[FakeTestbed]) -> None:
    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if index == 0 and line["type"] == "summary":
            return {**line, "rtt_ns": {**line["rtt_ns"], "count": 100, "counts": [[10, 100]]}}
        return line

    scripted(bench, edit)
    text = said(inner, ROUND_TRIP)
    assert "p99 needs 1,000 requests, and there were 300" in text
