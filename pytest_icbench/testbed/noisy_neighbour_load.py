# SPDX-License-Identifier: BSD-3-Clause
"""A noisy neighbour: load in a separate node, on separate CPUs, that runs during every other launch of a case.

Launches with and without it use one rig, so that nothing else differs. Between its launches it is frozen: it keeps its
memory, and it is busy again at once. It is busy while its processes run or wait for their CPU. The result keeps the
CPU time that they got, because other processes on the host may take some.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from statistics import median
from typing import Any

from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.protocol import Node, NodeSpec
from pytest_icbench.errors import Invalid, ProvisionError
from pytest_icbench.host.cpu_usage import read_thread_times
from pytest_icbench.host.findings import Finding, note, success
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.node_files import NODE_MIB, make_directory, make_tmpfs
from pytest_icbench.host.process import Process, exit_sentence
from pytest_icbench.host.resource.resctrl import CacheParts, explain_missing_resctrl, explain_refused_ways
from pytest_icbench.host.root import Root
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.calls import Call
from pytest_icbench.model.case import Case
from pytest_icbench.model.noisy_neighbour import KINDS, MEMORY_MIB, NoisyNeighbour, NoisyNeighbourUse, cache_ways
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import LaunchPlan
from pytest_icbench.testbed.case_rig import Rig

#: The least share of its CPUs' time in which a noisy neighbour runs or waits to run: in a launch, and before it.
LEAST_BUSY = 0.5
#: How long it may take to be busy, in seconds, and how long it then runs before its first launch.
BUSY_TIMEOUT_S, SETTLE_S = 10.0, 0.5
_LOOK_S = 0.05
_STRESS_NG = ["stress-ng", "--quiet", "--timeout", "0", "--temp-path", "{dir}"]
#: The command line of one process of each kind, on CPU ``{cpu}``, with its files in ``{dir}``. It has no end.
COMMANDS: Mapping[str, Sequence[str]] = {
    "cpu": [*_STRESS_NG, "--cpu", "1", "--cpu-method", "int64"],
    "cache": [*_STRESS_NG, "--cache", "1"],
    "stream": [*_STRESS_NG, "--stream", "1"],
    "memory": [*_STRESS_NG, "--vm", "1", "--vm-bytes", f"{MEMORY_MIB['memory']}M", "--vm-keep"],
    "memtester": ["memtester", f"{MEMORY_MIB['memtester']}M"],
    # What DPDK's guide calls a noisy neighbour: it looks up and changes memory for each frame of a port without a peer.
    "noisy": [
        *("env", "RUNTIME_DIRECTORY={dir}", "dpdk-testpmd", "--lcores", "0@{cpu},1@{cpu}"),
        *("--no-pci", "--no-huge", "--no-shconf", "--no-telemetry", "-m", str(MEMORY_MIB["noisy"])),
        *("--vdev=net_null0", "--vdev=net_null1"),
        *("--", "--auto-start", "--nb-cores=1", "--total-num-mbufs=4096", "--forward-mode=noisy"),
        *("--noisy-lkup-memory=200", "--noisy-lkup-num-reads=50", "--noisy-lkup-num-writes=50"),
    ],
}


def _program(argv: Sequence[str]) -> str:
    return next(word for word in argv if word != "env" and "=" not in word)


def noisy_neighbour_cpus(case: Case) -> int:
    """Returns the number of CPUs of a case's noisy neighbour; the control's are left idle."""
    noisy_neighbour = None if case.noisy_neighbour is None else NoisyNeighbour.of(case.noisy_neighbour)
    return 0 if noisy_neighbour is None else noisy_neighbour.cpus


def explain_missing_program(noisy_neighbour: str | None) -> str | None:
    """Returns that the program of a noisy neighbour is not installed; None if it is, or there is none."""
    kind = (noisy_neighbour or "").partition(":")[0]
    if kind in COMMANDS and shutil.which(program := _program(COMMANDS[kind])) is None:
        return f"noisy neighbour {noisy_neighbour}: {program} is not installed: apt install {KINDS[kind]}"
    return None


def noisy_neighbour_findings() -> Iterator[Finding]:
    """Returns findings for ``icbench doctor``, one for each program, with what is missing for isolation."""
    kinds = {_program(argv): kind for kind, argv in COMMANDS.items()}
    for program, kind in kinds.items():
        missing = explain_missing_program(kind) is not None
        remedy = f"apt install {KINDS[kind]}" if missing else None
        text = f"{program} is {'not ' * missing}installed"
        yield (note if missing else success)("noisy neighbour", text, remedy)
    reason = explain_missing_resctrl(Root())
    yield success("isolation", "ways of the L3 cache can be given") if reason is None else note("isolation", reason)


def cache_parts(case: Case, placement: Placement) -> dict[str, tuple[int, ...]]:
    """Returns the parts of a case that get ways of the cache, with their CPUs: by the number of ways it names.

    Two are the path and the noisy neighbour. Three are the functions (without any the switch's workers), the rest of
    the path and the noisy neighbour. Four are functions, switch, endpoints and noisy neighbour.
    """
    functions, switch, ends = placement.functions, placement.switch, placement.local
    path: dict[str, tuple[int, ...]] = {"functions": functions, "switch": switch, "endpoints": ends}
    count = len(cache_ways(case.isolation))
    if count == 2:
        path = {"path": (*functions, *switch, *ends)}
    elif count == 3:
        path = {"functions": functions, "rest": (*switch, *ends)} if functions else {"switch": switch, "rest": ends}
    return {**path, "noisy_neighbour": placement.noisy_neighbour}


def explain_no_isolation(case: Case, placement: Placement, root: Root) -> str | None:
    """Returns why a host cannot give a case the ways of the cache that it names; None if it can, or need not."""
    ways = cache_ways(case.isolation)
    if not ways:
        return None
    if (reason := explain_missing_resctrl(root) or explain_refused_ways(root, ways)) is not None:
        return reason
    parts = cache_parts(case, placement)
    cpus = [cpu for part in parts.values() for cpu in set(part)]
    if all(parts.values()) and len(set(cpus)) == len(cpus):
        return None
    named = ", ".join(f"{name.replace('_', ' ')} {'-'.join(map(str, cpus)) or 'none'}" for name, cpus in parts.items())
    return (
        f"{case.isolation} splits the cache by CPUs, and some parts share CPUs or have none (CPUs: {named}): take fewer"
        " parts, or a host with more CPUs"
    )


class RunningNoisyNeighbour:
    """The processes of a noisy neighbour, one a CPU, frozen between launches.

    Attributes:
        busy: CPU time over the time of its CPUs, of each launch so far.
        wanted: the same with the time that it waited for its CPUs, in the newest launch.
    """

    def __init__(self, session: HostSession, case: Case, placement: Placement, node: str) -> None:
        assert case.noisy_neighbour is not None
        self._session, self._case, self._placement, self._kind = session, case, placement, node
        self.label = case.noisy_neighbour
        self.busy: list[float] = []
        self.wanted = 1.0
        self._held: list[dict[str, float]] = []
        self._node: Node | None = None
        self._processes: list[Process] = []
        self._parts: CacheParts | None = None
        self._began = 0.0, 0, 0

    @property
    def use(self) -> NoisyNeighbourUse | None:
        """Its activity in the launches so far; None before the first one, and for the control."""
        if not self.busy:
            return None
        held = {name: median(one[name] for one in self._held) for name in self._held[0]} if self._held else None
        return NoisyNeighbourUse(min(self.busy), held)

    def isolate(self) -> None:
        """Gives each part its ways of the cache, until ``stop``. Raises ProvisionError."""
        if ways := cache_ways(self._case.isolation):
            self._parts = CacheParts(self._session, cache_parts(self._case, self._placement), ways)

    def begin(self) -> None:
        """Lets it run, until ``end``, and waits until it is busy. Raises Invalid, ProvisionError."""
        kind = self.label.partition(":")[0]
        if kind not in COMMANDS:
            return
        if self._node is None:
            self._start(kind)
        else:
            self._node.resume()
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            self._mark()
            time.sleep(_LOOK_S)
            self._check_alive()
            if (wanted := self._share()[1]) >= LEAST_BUSY:
                break
            if time.monotonic() > deadline:
                self._idle(wanted, f"{BUSY_TIMEOUT_S:g} s after its start")
        self._mark()

    def _start(self, kind: str) -> None:
        if (reason := explain_missing_program(self._case.noisy_neighbour)) is not None:
            raise Invalid("noisy-neighbour", reason)
        directory = self._session.dir / "neighbour"
        if not directory.exists():
            make_tmpfs(directory, NODE_MIB)
        spec = NodeSpec(self._session.name("neighbour"), self._placement.noisy_neighbour, sockets=[directory])
        self._node = node = make_node(self._kind, self._session, spec)
        node.start()
        for cpu in self._placement.noisy_neighbour:
            cpu_directory = directory / str(cpu)
            make_directory(directory, cpu_directory.name)
            words = [word.format(cpu=cpu, dir=cpu_directory) for word in COMMANDS[kind]]
            log = self._session.logs / f"noisy neighbour-{cpu}.log"
            self._processes.append(node.spawn(words, cpus=[cpu], log=log))
        time.sleep(SETTLE_S)

    def _times(self) -> tuple[float, int, int]:
        """Returns the time, and the ns so far that its threads ran, and that they ran or waited to."""
        groups = SessionGroup.get(self._session)
        assert self._node is not None
        pids = groups.pids(groups.member(self._node.spec.name))
        threads = [thread for pid in pids for thread in read_thread_times(pid).values()]
        run_ns = sum(thread.run_ns for thread in threads)
        return time.monotonic(), run_ns, run_ns + sum(thread.waited_ns or 0 for thread in threads)

    def _mark(self) -> None:
        self._began = self._times()

    def _share(self) -> tuple[float, float]:
        """Returns the time that it ran since ``_mark``, and the time that it ran or waited to, over its CPUs' time."""
        now, before = self._times(), self._began
        cpu_ns = (now[0] - before[0]) * 1e9 * len(self._processes)
        return (now[1] - before[1]) / cpu_ns, (now[2] - before[2]) / cpu_ns

    def _idle(self, wanted: float, when: str) -> None:
        cpus = "CPU" if len(self._processes) == 1 else f"{len(self._processes)} CPUs"
        share = f"{wanted:.0%} of the time of its {cpus} {when}"
        remedy = "see whether its program works here, or take another noisy neighbour"
        raise Invalid("noisy-neighbour", f"noisy neighbour {self.label} is not busy: {share}; {remedy}")

    def _check_alive(self) -> None:
        for process in self._processes:
            if (code := process.poll()) is not None:
                log = f"; the end of its log:\n{tail}" if (tail := process.tail()) else ""
                end = f"{_program(process.argv)} {exit_sentence(code)}{log}"
                raise Invalid("noisy-neighbour", f"noisy neighbour {self.label} ended early: {end}")

    def end(self) -> None:
        """Freezes it after a launch. Raises ProvisionError."""
        if self._node is None:
            return
        busy, self.wanted = self._share()
        self.busy.append(min(busy, 1.0))
        if self._parts is not None and (held := self._parts.occupancy()) is not None:
            self._held.append(held)
        self._node.pause()

    def check(self) -> None:
        """Raises Invalid if it has ended, or was not busy in the newest launch."""
        if self._node is None:
            return
        self._check_alive()
        if self.wanted < LEAST_BUSY:
            self._idle(self.wanted, "in a launch")

    def stop(self) -> None:
        """Ends it and gives the cache back. Idempotent. Raises ProvisionError."""
        node, self._node = self._node, None
        parts, self._parts = self._parts, None
        try:
            if node is not None:
                node.stop()
        finally:
            if parts is not None:
                parts.remove()


class NoisyNeighbourView(MeasuredRig):
    """A running rig as launches with a noisy neighbour see it, or those without one. Both use the same rig."""

    def __init__(self, rig: Rig, noisy_neighbour: RunningNoisyNeighbour | None = None) -> None:
        self._rig, self._noisy_neighbour = rig, noisy_neighbour
        self.preflighted = rig.preflighted
        self._look()

    def _look(self) -> None:
        """Takes over the rig's present state: the other view may have rebuilt it."""
        rig = self._rig
        self.endpoints, self.placement, self.peers, self.terms = rig.endpoints, rig.placement, rig.peers, rig.terms
        self.untimed = rig.untimed

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        return getattr(self._rig, call.name)(*arguments, **keywords)

    def launch(self, plan: LaunchPlan) -> str:
        if self._noisy_neighbour is not None:
            self._noisy_neighbour.begin()
        return self._rig.launch(plan)

    def end(self, launch_id: str) -> None:
        try:
            self._rig.end(launch_id)
        finally:
            if self._noisy_neighbour is not None:
                self._noisy_neighbour.end()
                self.noisy_neighbour_use = self._noisy_neighbour.use

    def check(self) -> None:
        self._rig.check()
        if self._noisy_neighbour is not None:
            self._noisy_neighbour.check()

    def pause(self) -> None:
        """Leaves the rig running for the other view."""

    def resume(self) -> None:
        """The rig runs; a preflight is due, as after any turn."""
        self._look()
        self.preflighted = False

    def build(self) -> None:
        self._rig.build()
        self._look()
        self.preflighted = False

    def close(self) -> None:
        self._rig.close()
        self._look()


@contextmanager
def open_views(
    rig: Rig, reference: Rig | None, case: Case, node: str
) -> Iterator[tuple[MeasuredRig, MeasuredRig | None]]:
    """Yields views of the rig with its noisy neighbour and without it; for a case without one, the rigs themselves.

    ``node``: the kind of node of the noisy neighbour. Raises ProvisionError: the cache cannot be split.
    """
    if case.noisy_neighbour is None:
        yield rig, reference
        return
    noisy_neighbour = RunningNoisyNeighbour(rig.session, case, rig.placement, node)
    try:
        noisy_neighbour.isolate()
        yield NoisyNeighbourView(rig, noisy_neighbour), NoisyNeighbourView(rig)
    except BaseException:
        with suppress(ProvisionError):  # the first error says more, and the session's end tries again
            noisy_neighbour.stop()
        raise
    noisy_neighbour.stop()
