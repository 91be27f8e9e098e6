# SPDX-License-Identifier: BSD-3-Clause
"""A rig whose processes follow a script, for tests of launches and of pauses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Endpoint, Veth
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import CpuState, Placement, Policy
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.rig import LaunchPlan, Polled
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters

EXECUTABLE = Path("/w")
FAST = Settings(warmup_s=0.0, duration_s=0.06, window_s=0.02, drain_s=0.02, repeats=3)
MAX = Case("veth", api="udp")
PACED = Case("veth", Frames(rate=Rate(1000)), api="udp")
RTT = Case("veth", Frames(rate=Rate(1000)), api="udp", dimension="latency")
FRAMES = 1000


def place(policy: Policy = "dedicated", endpoints: tuple[int, ...] = (0, 1, 2, 3), yield_every: int = 0) -> Placement:
    """Returns the endpoints' CPUs; there is no switch."""
    return Placement(policy, (), endpoints, (), 0, yield_every)


@dataclass
class ScriptedRig(MeasuredRig):
    """A rig whose processes print what they would over a path.

    Attributes:
        path: frames sent to frames received, for each window; the ways there and back of a client are two of these.
        back: the way back of a client, and of ends that both send the direction from b to a.
        edit: changes a line before it is said, or drops it (None).
        exits: index to exit code, instead of a summary.
        log: the calls that change what runs, in order.
    """

    path: Callable[[int], int] = lambda sent: sent
    back: Callable[[int], int] = lambda sent: sent
    edit: Callable[[int, dict[str, Any]], dict[str, Any] | None] = lambda index, line: line
    exits: dict[int, int] = field(default_factory=dict)
    endpoints: list[Endpoint] = field(
        default_factory=lambda: [Veth(Address.of(p, s), "eth0", None) for p in (1, 2) for s in ("a", "b")]
    )
    placement: Placement = field(default_factory=place)
    preflighted: bool = True
    name: str = "rig"
    log: list[str] = field(default_factory=list)
    dead: str = ""
    fault: str | None = None
    cycles: Iterator[Busy | None] = field(default_factory=lambda: iter(()))
    events: Iterator[dict[str, dict[str, int]] | None] = field(default_factory=lambda: iter(()))
    counted: Iterator[Batches | None] = field(default_factory=lambda: iter(()))
    ports: Iterator[tuple[PortCounters, ...] | None] = field(default_factory=lambda: iter(()))
    interferences: Iterator[Interference | None] = field(default_factory=lambda: iter(()))
    states: Iterator[CpuState] = field(default_factory=lambda: iter(()))
    _queue: list[tuple[int, str]] = field(default_factory=list)
    plan: LaunchPlan = field(default_factory=LaunchPlan)

    def launch(self, plan: LaunchPlan) -> str:
        self.plan = plan
        self.log.append(f"{self.name} launch")
        for process in plan.processes:
            self._say(process.index, {"type": "ready", "link_up": True, "announced": True, "monotonic_ns": 1})
        return "l1"

    def _say(self, index: int, line: dict[str, Any]) -> None:
        edited = self.edit(index, {"schema": 1, **line})
        if edited is not None:
            self._queue.append((index, json.dumps(edited)))

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        begin = time.monotonic_ns()
        argv = self.plan.processes[0].argv
        window_s = self._option(argv, "--window")
        windows = round(self._option(argv, "--duration") / window_s)
        for process in self.plan.processes:
            application = process.argv[1].removeprefix("dpdk-")
            self._speak(process.index, application, windows, int(window_s * 1e9), begin)
        return begin

    @staticmethod
    def _option(argv: tuple[str, ...], name: str) -> float:
        return float(argv[argv.index(name) + 1])

    def _mean_bytes(self) -> float:
        argv = self.plan.processes[0].argv
        option = next((name for name in ("--sizes", "-p") if name in argv), None)
        sizes = [64] if option is None else [int(size) for size in argv[argv.index(option) + 1].split(",")]
        return sum(sizes) / len(sizes)

    def _speak(self, index: int, application: str, windows: int, window_ns: int, begin: int) -> None:
        there, both = self.path(FRAMES), self.back(self.path(FRAMES))
        role = {"send": "sender", "recv": "receiver"}.get(application, application)
        arrived = both if role == "client" else there
        if role == "duplex" and index % 2 == 0:
            arrived = self.back(FRAMES)
        sent = {
            "duration_ns": window_ns,
            "scheduled": FRAMES,
            "sent": FRAMES,
            "refused": 0,
            "not_offered": 0,
            "tx_full": 0,
            "catch_up_max": 1,
            "lateness_p99_ns": 1,
            "lateness_max_ns": 1,
            "yields": 0,
        }
        received = {
            "received": arrived,
            "bytes": round(arrived * self._mean_bytes()),
            "duplicated": 0,
            "reordered": 0,
            "polls": 100,
            "empty_polls": 50,
        }
        if role == "sender":
            received = {}
        if role in ("receiver", "server"):
            sent = {}
        head = {"role": role, "stream": index // 2 + 1, "involuntary_switches": 0}
        for number in range(1, windows + 1):
            at = begin + (number - 1) * window_ns
            times = {"start_ns": at, "first_ns": at + 5 if arrived else None, "last_ns": at + 9 if arrived else None}
            self._say(
                index, {"type": "window", "window": number, "provisional": False, **head, **times, **sent, **received}
            )
        if index in self.exits:
            return
        total = {name: value * windows for name, value in (sent | received).items()}
        highest = FRAMES * windows - 1 if arrived else -1
        gaps = (FRAMES - arrived) * windows if arrived else 0
        summary = {
            "type": "summary",
            "reason": "duration" if role in ("sender", "client", "duplex") else "end",
            "windows": windows,
            "cpu_ns": 1,
            "voluntary_switches": 0,
            "sequences": FRAMES * windows,
            "highest_sequence": highest,
            "gaps": gaps,
            "late": 0,
            "foreign": 0,
            "corrupted": 0,
        }
        rtt = {"count": arrived, "min": 9, "mean": 10.0, "max": 11, "significant_digits": 3, "counts": [[10, arrived]]}
        unanswered = {"rtt_ns": rtt, "rtt_actual_ns": rtt, "unanswered": (FRAMES - arrived) * windows}
        self._say(index, {**head, **total, **summary, **(unanswered if role == "client" else {})})

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        lines, self._queue = self._queue, []
        if not lines:
            time.sleep(min(timeout_s, 0.01))
        ended = bool(self.exits) and not lines
        return Polled(tuple(lines), self.exits if ended else {})

    def log_tail(self, launch_id: str, index: int) -> str:
        return f"tail of {index}"

    def end(self, launch_id: str) -> None:
        self.log.append(f"{self.name} end")

    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        self.log.append(f"{self.name} told {text.strip()}")

    def busy(self) -> Busy | None:
        return next(self.cycles, None)

    def hardware(self, launch_id: str) -> dict[str, dict[str, int]] | None:
        return next(self.events, None)

    def interference(self, launch_id: str) -> Interference | None:
        return next(self.interferences, None)

    def cpu_state(self) -> CpuState:
        return next(self.states, CpuState())

    def batches(self) -> Batches | None:
        return next(self.counted, None)

    def counters(self) -> tuple[PortCounters, ...] | None:
        return next(self.ports, None)

    def check(self) -> None:
        if self.dead:
            raise ProvisionError(self.dead)

    def path_fault(self) -> str | None:
        return self.fault

    def build(self) -> None:
        self.log.append(f"{self.name} build")

    def close(self) -> None:
        self.preflighted = False
        self.log.append(f"{self.name} close")

    def pause(self) -> None:
        self.log.append(f"{self.name} pause")

    def resume(self) -> None:
        self.preflighted = False
        self.log.append(f"{self.name} resume")


def one(rig: ScriptedRig, case: Case = MAX, settings: Settings = FAST) -> Any:
    return run_launch(rig, case, settings, executable=EXECUTABLE)


def hold(rig: ScriptedRig, index: int, line: dict[str, Any]) -> None:
    """Holds a summary back until the second sample has been taken."""

    def later(launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        time.sleep(0.18)
        rig.poll = type(rig).poll.__get__(rig)  # type: ignore[method-assign]
        return Polled()

    rig._queue.append((index, json.dumps(line)))
    rig.poll = later  # type: ignore[method-assign]


def spoil(kind: str, index: int = 1, **changes: Any) -> Callable[[int, dict[str, Any]], dict[str, Any] | None]:
    """Changes the lines of a kind that one process prints."""
    return lambda who, line: {**line, **changes} if who == index and line["type"] == kind else line


def silent_from(window: int) -> Callable[[int, dict[str, Any]], dict[str, Any] | None]:
    """Lets nothing arrive from a window on; the accounts are right."""

    def edit(index: int, line: dict[str, Any]) -> dict[str, Any] | None:
        if index == 1 and line["type"] == "window" and line["window"] >= window:
            return {**line, "received": 0, "first_ns": None, "last_ns": None}
        if index == 1 and line["type"] == "summary":
            arrived = FRAMES * (window - 1)
            return {**line, "received": arrived, "highest_sequence": arrived - 1, "gaps": 0}
        return line

    return edit


def scripted(rig: ScriptedRig, case: Case = MAX) -> Side:
    """Returns a case on a rig whose workload is a script, too."""
    return Side(rig, case, executable=EXECUTABLE)


def run(rig: ScriptedRig, reference: ScriptedRig | None = None, case: Case = MAX, **changes: Any) -> Any:
    settings = Settings(**{**FAST.to_dict(), **changes})
    return measure(scripted(rig, case), settings, None if reference is None else scripted(reference, case))
