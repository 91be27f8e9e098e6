# SPDX-License-Identifier: BSD-3-Clause
"""Who had the CPUs: real processes beside this one, and hosts that do not tell everything."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.host import cpu_usage as watch_module
from pytest_icbench.host.cpu_usage import (
    NO_CPU_TIME,
    NO_RUN_DELAY,
    CpuTime,
    CpuWatch,
    OwnProcesses,
    ProcessTime,
    ThreadTime,
    find_takers,
    read_cpu_time,
    read_cpu_use,
    read_process_times,
    read_thread_times,
)
from pytest_icbench.host.process import SESSION_VARIABLE

SPIN = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"


#: No other process of the host is called so.
SPINNER = f"spin{os.getpid()}"


@pytest.fixture
def spinner(tmp_path: Path) -> Iterator[Any]:
    """Starts processes that spin, by the name of ``SPINNER``; with a session's id they are its own."""
    started: list[subprocess.Popen[bytes]] = []
    program = tmp_path / SPINNER
    program.symlink_to(Path(sys.executable).resolve())

    def start(session: str | None = None) -> subprocess.Popen[bytes]:
        marked = {} if session is None else {SESSION_VARIABLE: session}
        started.append(subprocess.Popen([str(program), "-ISc", SPIN], env={**os.environ, **marked}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_foreign_process_is_named_and_an_own_one_is_not(spinner: Any) -> None:
    foreign, mine = spinner(), spinner("abc123")
    deadline = time.monotonic() + 10
    while not {foreign.pid, mine.pid} <= read_process_times().keys() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    own = OwnProcesses("abc123")
    begin = read_process_times()
    assert {mine.pid, os.getpid()} <= own.of(begin)
    assert foreign.pid not in own.of(begin)
    seen = CpuWatch(own, os.sched_getaffinity(0))
    time.sleep(0.6)
    found = seen.read()
    assert found.cpus == len(os.sched_getaffinity(0))
    assert found.taken is not None
    assert found.taken > 0.02
    end = read_process_times()
    spun = (end[foreign.pid].ticks - begin[foreign.pid].ticks) / os.sysconf("SC_CLK_TCK")
    mine_spun = (end[mine.pid].ticks - begin[mine.pid].ticks) / os.sysconf("SC_CLK_TCK")
    assert spun > 0
    assert mine_spun > 0
    named = {taker.name: taker.share for taker in found.takers}
    # Both have the same name: only the foreign one's time is under it.
    assert named.get(SPINNER, 0.0) <= (spun + 0.05) / found.seconds


def test_a_thread_has_its_run_time_and_its_wait() -> None:
    times = read_thread_times(os.getpid())
    assert times[os.getpid()].run_ns > 0
    assert times[os.getpid()].cpus <= set(range(os.cpu_count() or 1))
    assert read_thread_times(2**30) == {}


def recorded(tmp_path: Path, text: str) -> Path:
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/stat").write_text(text)
    return tmp_path


def test_idle_and_stolen_time_of_cpus_are_read(tmp_path: Path) -> None:
    base = recorded(tmp_path, "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 2 3 50 0 6 7 1 0 0\n")
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert read_cpu_time({0, 1}, base) == CpuTime(95 * tick, 9 * tick)
    assert read_cpu_time({1}, base) == CpuTime(50 * tick, 1 * tick)
    assert read_cpu_time({2}, base) is None
    assert read_cpu_time({0}, tmp_path / "nowhere") is None


@pytest.mark.parametrize("stat", ["", "17 (half", "17 (a) b) S 1 2"])
def test_what_is_no_process_is_left_out(tmp_path: Path, stat: str) -> None:
    (tmp_path / "proc/17").mkdir(parents=True)
    (tmp_path / "proc/17/stat").write_text(stat)
    assert read_process_times(tmp_path) == {}


def test_a_process_name_with_brackets_is_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "proc/17").mkdir(parents=True)
    fields = " ".join(["S", "2", *["0"] * 9, "30", "4", *["0"] * 6, "77", *["0"] * 16, "1", "0"])
    (tmp_path / "proc/17/stat").write_text(f"17 (ksoftirqd/0) x) {fields}")
    process = read_process_times(tmp_path)[17]
    assert (process.name, process.ticks, process.started, process.parent) == ("ksoftirqd/0) x", 34, 77, 2)
    assert process.is_path


def process(name: str, ticks: int, started: int = 1, parent: int = 1, cpu: int = 0) -> ProcessTime:
    return ProcessTime(name, ticks, started, parent, cpu)


def test_takers_are_ranked_and_none_is_the_rigs() -> None:
    before = {1: process("make", 10), 2: process("own", 0), 3: process("away", 0, cpu=7), 4: process("old", 100, 1)}
    after = {
        1: process("make", 40),
        2: process("own", 100),
        3: process("away", 100, cpu=7),
        4: process("new", 50, 2),  # another process with the same pid
        5: process("make", 40, 2),
        6: process("idle", 1, 2),
    }
    rate = os.sysconf("SC_CLK_TCK")
    found = find_takers(before, after, {2}, {0, 1}, 100 / rate)
    assert [(taker.name, taker.share) for taker in found] == [("make", 0.7), ("new", 0.5)]


class Reported(CpuWatch):
    """A watch with two prepared readings."""

    def __init__(self, first: dict[str, Any], last: dict[str, Any], **arguments: Any) -> None:
        self._readings = iter((first, last))
        super().__init__(OwnProcesses("none"), arguments.pop("cpus", {0, 1}), **arguments)

    def _reading(self) -> Any:
        plain = {"at_ns": 0, "cpus": CpuTime(0, 0), "processes": {}, "threads": {}, "ended_ns": 0}
        return watch_module._Reading(**{**plain, **next(self._readings)})


def thread(run_ms: int, waited_ms: int | None, cpu: int) -> ThreadTime:
    return ThreadTime(run_ms * 10**6, None if waited_ms is None else waited_ms * 10**6, frozenset({cpu}))


def test_others_took_what_is_left_of_the_work() -> None:
    # Two CPUs for a second: 0.3 idle, 0.1 stolen, 1.2 of the rig's.
    end = {"at_ns": 10**9, "cpus": CpuTime(3 * 10**8, 10**8), "threads": {7: {7: thread(1200, 0, 0)}}}
    found = Reported({"threads": {7: {7: thread(0, 0, 0)}}}, end, endpoints={0: 7}).read()
    assert (found.taken, found.stolen, found.waited, found.missing) == (0.4, 0.1, 0.0, ())


def test_an_endpoint_that_has_ended_is_still_the_rigs() -> None:
    begin = {"threads": {7: {7: thread(100, 0, 0)}}, "ended_ns": 5 * 10**8}
    end = {"at_ns": 10**9, "cpus": CpuTime(10**9, 0), "ended_ns": 5 * 10**8 + 10**8 + 10**9}
    assert Reported(begin, end, endpoints={0: 7}).read().taken == 0.0


def test_threads_of_the_rig_on_one_cpu_wait_for_each_other_by_design() -> None:
    own = {7: {7: thread(0, 0, 0)}, 8: {8: thread(0, 0, 0)}, 9: {9: thread(0, 0, 1), 10: thread(0, 0, 1)}}
    ran = {7: {7: thread(500, 480, 0)}, 8: {8: thread(480, 500, 0)}, 9: {9: thread(700, 250, 1), 10: thread(50, 0, 1)}}
    arguments: dict[str, Any] = {"endpoints": {0: 7, 1: 8}, "workers": {1}}
    found = Reported({"threads": own}, {"at_ns": 10**9, "threads": ran}, **arguments).read()
    assert (found.waited, found.waited_by) == (0.2, "switch")


def test_an_endpoint_that_has_ended_had_the_cpu_that_another_waited_for() -> None:
    own = {7: {7: thread(10, 0, 0)}, 8: {8: thread(0, 0, 0)}, 9: {9: thread(0, 0, 1)}}
    ran = {8: {8: thread(600, 380, 0)}, 9: {9: thread(700, 290, 1)}}
    first: dict[str, Any] = {"threads": own, "ended_ns": 10**9}
    last = {"at_ns": 10**9, "threads": ran, "ended_ns": 10**9 + 380 * 10**6}
    found = Reported(first, last, endpoints={0: 7, 1: 8}).read()
    assert (found.waited, found.waited_by) == (0.01, "endpoint 1")
    found = Reported(first, last, endpoints={0: 7, 1: 8}, workers={1}).read()
    assert (found.waited, found.waited_by) == (0.29, "switch")  # on another CPU than the one that has ended


def test_a_kernel_without_run_delay_says_what_is_not_claimed() -> None:
    own = {7: {7: thread(0, None, 0)}}
    found = Reported(
        {"threads": own}, {"at_ns": 10**9, "threads": {7: {7: thread(900, None, 0)}}}, endpoints={0: 7}
    ).read()
    assert (found.waited, found.missing) == (None, (NO_RUN_DELAY,))
    assert found.taken is not None


def test_a_host_without_cpu_times_says_what_is_not_claimed() -> None:
    found = Reported({"cpus": None}, {"at_ns": 10**9, "cpus": None}).read()
    assert (found.taken, found.stolen, found.missing) == (None, None, (NO_CPU_TIME,))
    assert found.words == ""


def test_times_that_run_backwards_take_nothing() -> None:
    found = Reported({"cpus": CpuTime(10**9, 10**9)}, {"at_ns": 10**9, "cpus": CpuTime(0, 0)}, cpus={0}).read()
    assert (found.taken, found.stolen) == (1.0, 0.0)
    stood = Reported({}, {"at_ns": 0}).read()
    assert (stood.taken, stood.seconds) == (None, 0.0)


@pytest.mark.parametrize("hidden", [None, "schedstat"])
def test_the_cpu_time_of_processes_is_counted_with_and_without_the_schedulers_own_figures(
    monkeypatch: pytest.MonkeyPatch, hidden: str | None
) -> None:
    module = sys.modules[read_cpu_use.__module__]
    read = vars(module)["_read"]
    monkeypatch.setattr(module, "_read", lambda path: None if path.name == hidden else read(path))
    begun_ns = time.process_time_ns()
    while time.process_time_ns() - begun_ns < 30_000_000:
        pass
    use = read_cpu_use([os.getpid(), 2**30])
    # A tick may be missing of each thread.
    assert use["cpu_ns"] == pytest.approx(time.process_time_ns(), rel=0.1, abs=0.1e9)
    assert use["involuntary_switches"] + use["voluntary_switches"] > 0


def test_a_wait_is_never_longer_than_the_time_that_was_watched() -> None:
    """The kernel counts a wait at its end, with what lies before the first reading."""
    own, ran = {7: {7: thread(0, 0, 0)}}, {7: {7: thread(100, 1232, 0)}}
    found = Reported({"threads": own}, {"at_ns": 10**9, "threads": ran}, endpoints={0: 7}).read()
    assert (found.waited, found.waited_by) == (1.0, "endpoint 0")
