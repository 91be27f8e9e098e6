# SPDX-License-Identifier: BSD-3-Clause
"""Creates containers one after the other, by the code that makes the nodes of a rig, and removes them again.

Every container gets a veth pair. The far ends of all pairs are in one separate network namespace. So no link is in the
host's namespace, and all links vanish with the namespaces.
"""

from __future__ import annotations

import ipaddress
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pytest_icbench.driver.guard import make_node, node_treatment
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.node.protocol import Node, NodeSpec
from pytest_icbench.driver.switch.protocol import NODE_INTERFACE
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import links
from pytest_icbench.host.net.sockets import Echo
from pytest_icbench.host.process import Process, cpu_clock_ns, raise_files
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.signals import shield_signals
from pytest_icbench.kinds.startup.on_demand import Clients, Gate, serve
from pytest_icbench.kinds.startup.startup_summary import Course, summarize_startup
from pytest_icbench.measure.case_progress import OnProgress, Progress
from pytest_icbench.measure.estimate import RIG_OVERHEAD_S
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Veth
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import FORK, Crowd, Idle, Retirement, Startups
from pytest_icbench.model.traffic import MTU_ETHERNET

#: Time for creating and removing a container, and a process, in seconds.
CONTAINER_S, FORK_S = 0.06, 0.006
#: How often containers that are being created are looked at while all are idle, and for how many seconds.
IDLE_SAMPLES, IDLE_S = 10, 0.2
#: No further container is created if less than this share of the memory is free.
LEAST_MEMORY = 0.05
#: The most open files of the harness without those of containers, and of one container.
_FILES, _FILES_EACH = 200, 2
_FIRST_ADDRESS = ipaddress.IPv4Address("198.18.0.0")
_SHOW_EVERY_S = 0.5
_LONGEST_FAILURE = 400


@dataclass(frozen=True, slots=True)
class Startup:
    """The times of one container in ns, by phase; see ``model.startup.Startups``."""

    prepared_ns: int
    process_ns: int
    network_ns: int = 0
    answered_ns: int = 0

    @property
    def total_ns(self) -> int:
        """The sum of the phases."""
        return self.prepared_ns + self.process_ns + self.network_ns + self.answered_ns


class Maker(Protocol):
    """A maker of containers, or of processes in their place."""

    #: Path of the network namespace from which the containers are reached; None without one.
    outside: str | None
    #: Why times of the containers are none; None: they are.
    untimed: str | None

    def create(self, number: int, *, ask: bool = True) -> Startup:
        """Creates a container by its number, from 1. Raises ProvisionError, and then keeps what was created.

        ``ask``: whether to wait for its first answer.
        """

    def pids(self) -> set[int]:
        """Returns the processes of all containers."""

    def retire(self, number: int) -> int:
        """Removes a container by its number, and returns the duration in ns. Raises ProvisionError."""

    def remove(self) -> Iterator[int]:
        """Removes the remaining containers, the last first. Yields each duration in ns. Raises ProvisionError."""


class NodeMaker:
    """Creates nodes of a kind, each with a veth pair whose far end is in the namespace ``outside``."""

    def __init__(self, session: HostSession, kind: str, cpus: Sequence[int]) -> None:
        self._session, self._kind, self._cpus = session, kind, cpus
        self._nodes: dict[int, Node] = {}
        self._inits: dict[int, tuple[str, int]] = {}
        self.outside: str | None = links.create_netns(session, "outside")
        self.untimed: str | None = None
        self._echo = Echo(self.outside)

    def create(self, number: int, *, ask: bool = True) -> Startup:
        """See ``Maker``."""
        here, there = addresses(number)
        begun = time.perf_counter_ns()
        node = make_node(self._kind, self._session, NodeSpec(self._session.name(f"b{number}"), self._cpus))
        self._nodes[number] = node
        facts = node.start()
        started = time.perf_counter_ns()
        self._inits[number] = (facts.name, facts.init_pid)
        outer = links.End(f"b{number}", self.outside, here, (there,))
        if facts.link is None:
            links.create_pair(self._session, outer, links.End(NODE_INTERFACE, facts.netns, there, (here,)))
        else:
            with enter_netns(facts.netns):
                links.move(facts.link, outer)
        if facts.plug is not None:
            facts.plug(Veth(there, NODE_INTERFACE, outer.name), MTU_ETHERNET, (here,))
        self.untimed = self.untimed or facts.untimed
        linked = time.perf_counter_ns()
        if ask:
            self._echo.ask(there.ip)
        answered = time.perf_counter_ns()
        prepared = begun if facts.prepared_ns is None else facts.prepared_ns
        return Startup(prepared - begun, started - prepared, linked - started, answered - linked if ask else 0)

    def pids(self) -> set[int]:
        """See ``Maker``. A container's monitor is one of them."""
        group = SessionGroup.get(self._session)
        pids = {pid for _, pid in self._inits.values()}
        for name, _ in self._inits.values():
            pids |= group.pids(group.member(name)) | group.pids(group.member(f"{name}.monitor"))
        return pids

    def retire(self, number: int) -> int:
        """See ``Maker``."""
        node = self._nodes.pop(number)
        self._inits.pop(number, None)  # none has one that did not come up
        begun = time.perf_counter_ns()
        node.stop()
        return time.perf_counter_ns() - begun

    def remove(self) -> Iterator[int]:
        """See ``Maker``."""
        failures: list[IcbenchError] = []
        while self._nodes:
            number = next(reversed(self._nodes))
            begun = time.perf_counter_ns()
            try:
                self.retire(number)
            except IcbenchError as error:  # the rest is removed all the same; the journal keeps this one
                failures.append(error)
            yield time.perf_counter_ns() - begun
        self._echo.close()
        if self.outside is not None:
            links.delete_netns(self._session, self.outside)
        if failures:
            raise failures[0]


class ProcessMaker:
    """Starts processes without any container: the floor of all kinds."""

    def __init__(self, session: HostSession, cpus: Sequence[int]) -> None:
        self._session, self._cpus = session, cpus
        self._processes: dict[int, Process] = {}
        self.outside: str | None = None
        self.untimed: str | None = None

    def create(self, number: int, *, ask: bool = True) -> Startup:  # noqa: ARG002 - as ``Maker``
        """See ``Maker``."""
        command = [str(workload_path()), "pause"]
        begun = time.perf_counter_ns()
        process = self._session.spawner.start(command, log=self._session.logs / "start-ups.log", cpus=self._cpus)
        ended = time.perf_counter_ns()
        self._processes[number] = process
        return Startup(0, ended - begun)

    def pids(self) -> set[int]:
        """See ``Maker``."""
        return {process.pid for process in self._processes.values()}

    def retire(self, number: int) -> int:
        """See ``Maker``."""
        process = self._processes.pop(number)
        begun = time.perf_counter_ns()
        process.stop(term_s=0)
        return time.perf_counter_ns() - begun

    def remove(self) -> Iterator[int]:
        """See ``Maker``."""
        while self._processes:
            yield self.retire(next(reversed(self._processes)))


def addresses(number: int) -> tuple[Address, Address]:
    """Returns the addresses of the far end and the container: each pair is a /30 network in RFC 2544's range."""
    first = _FIRST_ADDRESS + 4 * number
    macs = (f"02:00:{number >> 8:02x}:{number & 0xFF:02x}:00:{side:02x}" for side in (1, 2))
    here, there = (Address(str(first + side), mac, 30) for side, mac in zip((1, 2), macs, strict=True))
    return here, there


class Place(Protocol):
    """The part of a rig that start-up uses: its case, and the CPUs and paths of its containers."""

    @property
    def case(self) -> Case: ...
    @property
    def session(self) -> HostSession: ...
    @property
    def placement(self) -> Placement: ...


def measure_startup(
    rig: Place, settings: Settings, around: Environment, on_progress: OnProgress | None = None
) -> Measurement:
    """Creates the containers of a case, measures them while idle, and removes them.

    Raises:
        Unsupported: this host allows fewer open files than they need.
        ProvisionError: not all of them could be removed.
    """
    case = rig.case
    crowd = case.load.crowd
    assert crowd is not None  # such cases always have one
    started_at, began = time.time(), time.monotonic()

    def show(created: int) -> None:
        if on_progress is not None:
            elapsed_s = time.monotonic() - began
            left_s = elapsed_s / max(created, 1) * (crowd.count - created)
            text = f"container {created:,}/{crowd.count:,}"
            on_progress(Progress(case.id, "case", 1, 1, None, elapsed_s, left_s, detail=text))

    with open_files(_FILES + _FILES_EACH * crowd.count):
        startups, failure = bear(
            crowd, lambda: maker_of(rig.session, crowd.kind, rig.placement.endpoints), rig.session, show
        )
    return summarize_startup(
        case,
        settings,
        startups,
        replace(around, treatment={**around.treatment, **_of_kind(crowd.kind), "node": crowd.kind}),
        Course(started_at, time.monotonic() - began, failure, len(startups.total_ns) == crowd.count),
    )


def _of_kind(kind: str) -> Mapping[str, Any]:
    """Returns the facts about a kind that results keep, such as versions."""
    return {} if kind == FORK else node_treatment(kind)


def maker_of(session: HostSession, kind: str, cpus: Sequence[int]) -> Maker:
    every = tuple(sorted(set(cpus)))
    return ProcessMaker(session, every) if kind == FORK else NodeMaker(session, kind, every)


def bear(
    crowd: Crowd, make: Callable[[], Maker], session: HostSession, show: Callable[[int], None]
) -> tuple[Startups, str | None]:
    """Creates all containers and removes them. Returns their times, and why some are missing; None if none is.

    ``show``: called with the number of containers, twice a second. Raises ProvisionError if not all could be removed.
    """
    looks = {-(-crowd.count * tenth // IDLE_SAMPLES) for tenth in range(1, IDLE_SAMPLES + 1)}
    started: list[Startup] = []
    idle: list[Idle] = []
    removed: list[int] = []
    retired: tuple[Retirement, ...] = ()
    failure: str | None = None
    maker = make()
    before = _kernel_bytes(session)
    clients = Clients([], 0)
    shown = 0.0

    def create(number: int) -> None:
        nonlocal shown
        _check_memory(session)
        started.append(maker.create(number, ask=crowd.every_ms is None))
        if number in looks and crowd.every_ms is None:
            idle.append(_look(maker, number, before, session))
        if time.monotonic() - shown > _SHOW_EVERY_S:
            show(number)
            shown = time.monotonic()

    try:
        if crowd.every_ms is None or maker.outside is None:
            for number in range(1, crowd.count + 1):
                create(number)
        else:
            ends = map(addresses, range(1, crowd.count + 1))
            clients = Clients([(here.ip, there.ip) for here, there in ends], crowd.every_ms * 10**6)
            with Gate(maker.outside, clients) as gate:
                retired = serve(gate, clients, create, maker.retire)
            if left := crowd.count - len(retired):
                idle.append(_look(maker, left, before, session))
    except IcbenchError as error:
        failure = one_line(error)
    finally:
        with shield_signals():
            removed.extend(maker.remove())
    startups = Startups(
        kind=crowd.kind,
        asked=crowd.count,
        total_ns=tuple(startup.total_ns for startup in started),
        prepared_ns=tuple(startup.prepared_ns for startup in started),
        process_ns=tuple(startup.process_ns for startup in started),
        network_ns=tuple(startup.network_ns for startup in started),
        answered_ns=tuple(startup.answered_ns for startup in started),
        removed_ns=tuple(removed),
        first_trip_ns=clients.first_trips(len(started)) if clients.addresses else (),
        idle=tuple(idle),
        retired=retired,
    )
    return startups, failure or maker.untimed


def _look(maker: Maker, containers: int, before: int, session: HostSession) -> Idle:
    """Returns the cost of the containers while none is created."""
    pids = maker.pids()
    began, used_ns = time.monotonic_ns(), _used_ns(pids)
    time.sleep(IDLE_S)
    share = (_used_ns(pids) - used_ns) / (time.monotonic_ns() - began)
    return Idle(containers, _kernel_bytes(session) - before + sum(map(_proportional_bytes, pids)), max(share, 0.0))


def _used_ns(pids: Iterable[int]) -> int:
    """Returns the CPU time that processes have used; ended ones do not count."""
    return sum(cpu_clock_ns(pid) or 0 for pid in pids)


def _kernel_bytes(session: HostSession) -> int:
    """Returns the memory that the kernel uses and cannot reclaim for processes."""
    memory = memory_kib(session.root)
    return sum(memory.get(name, 0) for name in ("SUnreclaim", "KernelStack", "PageTables", "Percpu")) * 1024


def _proportional_bytes(pid: int) -> int:
    """Returns a process' proportional set size; 0 after it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _check_memory(session: HostSession) -> None:
    """Raises ProvisionError if memory is short, before the kernel would kill processes."""
    memory = memory_kib(session.root)
    left, total = memory.get("MemAvailable"), memory.get("MemTotal")
    if left is not None and total is not None and left < LEAST_MEMORY * total:
        raise ProvisionError(
            f"only {left // 1024:,} of {total // 1024:,} MiB of memory are left: free some, or ask for fewer containers"
        )


def one_line(error: BaseException) -> str:
    """Returns an error's message on one line, without the middle of a long one."""
    text = " ".join(str(error).split())
    half = _LONGEST_FAILURE // 2
    return text if len(text) <= _LONGEST_FAILURE else f"{text[:half]} … {text[-half:]}"


@contextmanager
def open_files(needed: int) -> Iterator[None]:
    """Raises this process' limit of open files within the block. Raises Unsupported if the host forbids it."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if (allowed := raise_files(needed)) is not None:
        raise Unsupported(
            f"these containers need {needed:,} open files, but only {allowed:,} are allowed here: raise the limit"
            f" (ulimit -Hn {needed}), or ask for fewer containers"
        )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def startup_estimate_s(crowd: Crowd) -> float:
    """Returns the seconds of a case that creates containers, and removes them again."""
    one_s = FORK_S if crowd.kind == FORK else max(CONTAINER_S, (crowd.every_ms or 0) / 1e3)
    return crowd.count * one_s + IDLE_SAMPLES * IDLE_S + RIG_OVERHEAD_S
