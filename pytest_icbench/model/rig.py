# SPDX-License-Identifier: BSD-3-Clause
"""The calls of a rig on any host, and the records that are exchanged with it.

A new call takes a method here and a method of ``HostRig``, which implements it on one host. Rigs, the second host and
the rigs of tests forward it as it is declared.
"""

# The body of a declared call never runs.
# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pytest_icbench.model.calls import Forwarding, call
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Endpoint, EndpointSpec
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts, FunctionTerms
from pytest_icbench.model.interference import Interference, joined
from pytest_icbench.model.placement import CpuState, Placement
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters, SwitchFacts
from pytest_icbench.model.uplink import Uplink

#: The placeholder of the workload's path in a command line; each host knows its own path.
LOCAL_WORKLOAD = "@workload"
#: The placeholder of the directory with a process' files, in its command line and in the files.
FILES = "@files"
#: How long a stage may take to open its sockets, in seconds, where the plan says nothing.
HELLO_TIMEOUT_S = 10.0


def node_directory(files: Path, index: int) -> Path:
    """Returns the directory that the node of an endpoint can write, at the same path there.

    ``files``: directory of a rig (``RigFacts.files``).
    """
    return files / f"n{index}"


@dataclass(frozen=True, slots=True)
class RigSpec:
    """The specification of a rig that is to be built.

    Attributes:
        name: unique in the session, at most 4 characters.
        node: kind of the nodes.
        binary: path of a switch that the user gave.
        config: configuration of the switch that the user gave.
        endpoint_specs: specifications of the endpoints by index; empty for the default ones.
        here: indexes of the endpoints on this host; None for all.
        uplink: the NIC that leads to the other host.
        env: variables of the switch's environment.
        sysctl: kernel options that hold while the rig runs.
        image: root directory of the nodes' programs and libraries; None: this host's.
        ring: descriptors of an endpoint's ring.
    """

    name: str
    case: Case
    placement: Placement
    node: str
    binary: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    endpoint_specs: tuple[EndpointSpec, ...] = ()
    here: tuple[int, ...] | None = None
    uplink: Uplink | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    sysctl: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    ring: int = 256


@dataclass(frozen=True, slots=True)
class RigFacts:
    """The facts of a rig that was built.

    Attributes:
        endpoints: the endpoints on this host, in their order; for a rig over two hosts all endpoints, by index.
        nodes: names of the endpoints' nodes.
        files: directory with a directory for each node, at the same path there (``node_directory``).
        remote_switch: facts of the second host's switch.
        peers: addresses at which endpoints see their peers, by index; empty without network functions between them.
        functions: facts of the network functions, by pair.
        terms: what launches have to show of the function of each pair.
        untimed: why times of the endpoints are none, in one sentence; None: they are.
    """

    endpoints: tuple[Endpoint, ...]
    nodes: tuple[str, ...]
    switch: SwitchFacts
    files: str
    remote_switch: SwitchFacts | None = None
    peers: tuple[Address, ...] = ()
    functions: tuple[FunctionFacts, ...] = ()
    terms: tuple[FunctionTerms, ...] = ()
    untimed: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedProcess:
    """A process of a launch.

    Attributes:
        index: index of its endpoint.
        stage: a later stage starts once all processes of the earlier stages serve their sockets.
        socket: path of the socket that the process serves; None if it serves none.
        listens: protocol and port at which it listens in its node (``tcp:6379``); None if it listens at none.
        files: names and contents of its files, in a directory that its node can write; None without such a directory.
    """

    index: int
    argv: tuple[str, ...]
    stage: int = 0
    socket: str | None = None
    listens: str | None = None
    files: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The processes of a launch. A stage may take ``hello_timeout_s`` to open its sockets."""

    processes: tuple[PlannedProcess, ...] = ()
    hello_timeout_s: float = HELLO_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Polled:
    """The new lines of processes, each with its endpoint's index, and the exit codes of ended ones, by index."""

    lines: tuple[tuple[int, str], ...] = ()
    exited: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """Bytes for a server and the end of its answer, as latin-1 texts.

    Attributes:
        port: the server's.
        request: what is sent.
        length: bytes of the answer; 0: all until the server closes, or a single datagram.
        via: ``tcp``, ``udp``, or ``tls`` without a check of the certificate.
        timeout_s: the longest wait for the answer.
    """

    port: int
    request: str
    length: int = 0
    via: Literal["tcp", "udp", "tls"] = "tcp"
    timeout_s: float = 3.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process used, and what its node's interfaces received since they were made.

    Attributes:
        cpu_ns: CPU time of all its threads; None if that is no longer known.
    """

    cpu_ns: int | None
    rx_bytes: int
    rx_packets: int


def _busy_path(here: Busy | None, there: Busy | None) -> Busy | None:
    """Joins the work of a path's halves, which is as busy as the busier one; None where one half is not known."""
    return None if here is None or there is None else replace(here, far=there)


def _all_ports(
    here: tuple[PortCounters, ...] | None, there: tuple[PortCounters, ...] | None
) -> tuple[PortCounters, ...] | None:
    """Returns the counters of both hosts by endpoint index; None where one host has none."""
    return None if here is None or there is None else tuple(sorted((*here, *there), key=lambda port: port.index))


def _either_fault(here: str | None, there: str | None) -> str | None:
    """Returns the fault of this host, else that of the second one."""
    return here if here is not None or there is None else f"on the remote host: {there}"


class RigCalls(Forwarding):
    """The calls of a built rig. Those of a launch have ``launch_id`` as their first argument."""

    @call("special")
    def launch(self, plan: LaunchPlan) -> str:
        """Starts the processes of one launch, stage by stage, each in its endpoint's node and on its endpoint's CPU.

        Returns the launch's id. Raises WorkloadError with the log's tail if a process dies, or does not serve in time.
        """

    @call("special")
    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        """Makes every process begin ``delay_s`` seconds from now; returns that moment, CLOCK_MONOTONIC in ns."""

    @call("endpoint")
    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        """Writes to the standard input of one process, or of all."""

    @call("special")
    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        """Returns the lines since the last call and the processes that ended, as soon as there are any.

        A ``quiet`` call waits for the end of a process only, or ``timeout_s`` seconds: no line wakes the host.
        """

    @call("endpoint")
    def log_tail(self, launch_id: str, index: int) -> str:
        """Returns the last lines of a process' log."""

    @call("both", lambda here, there: {**here, **there})
    def pids(self, launch_id: str) -> dict[int, int]:
        """Returns process ids by endpoint index, as each process' host numbers them."""

    @call("this")
    def usage(self, launch_id: str) -> dict[int, Usage]:
        """Returns CPU time of a launch's processes and the counters of their nodes' interfaces, by endpoint index.

        Of two hosts they are those of this one.
        """

    @call("endpoint")
    def ask(self, index: int, address: str, question: Question) -> str:
        """Asks a server at ``address`` from an endpoint's node; returns its answer.

        Raises WorkloadError if it does not answer in time.
        """

    @call("special")
    def end(self, launch_id: str) -> None:
        """Ends the processes of a launch that still run. Idempotent."""

    @call("both", _all_ports)
    def counters(self) -> tuple[PortCounters, ...] | None:
        """Returns the switch's own counters of each port, by index; None where it has none."""

    @call("both", _busy_path)
    def busy(self) -> Busy | None:
        """Returns the work of the switch since it started; None where it does not report any."""

    @call("this")
    def hardware(self, launch_id: str) -> dict[str, dict[str, int]] | None:
        """Returns hardware events of the switch's worker CPUs and of a launch's processes since the first call for it.

        They are counted by event, for ``endpoints`` and, if there are workers, for ``switch``; ``packages`` has the
        energy of all CPU packages in µJ. None where the host reports none of these. Counting ends with the launch. Of
        two hosts only this one is counted.
        """

    @call("both", joined)
    def interference(self, launch_id: str) -> Interference | None:
        """Returns what other processes took from the CPUs of a launch since its start; None where that is not
        watched.
        """

    @call("this")
    def cpu_state(self) -> CpuState:
        """Returns the state of the CPUs that pass frames to each other; they work for some 0.2 ms a pair meanwhile.

        Of two hosts only this one is asked.
        """

    @call("this")
    def batches(self) -> Batches | None:
        """Returns frames and calls of the switch's workers since it started; None where it does not count them.

        Of two hosts it is the switch of this one.
        """

    @call("this")
    def assignment(self) -> dict[str, int] | None:
        """Returns the CPU that polls each port, by port index as a text; None where the switch does not report it.

        Of two hosts it is the switch of this one, because CPU numbers of two hosts must not be mixed.
        """

    @call("this")
    def functions(self) -> tuple[FunctionCounters, ...]:
        """Returns the counters of each network function since its start, by pair."""

    @call("this")
    def prove(self) -> str | None:
        """Sends frames through each function, or a router; returns a sentence on the first without its work.

        Raises WorkloadError or ProvisionError if something has died.
        """

    @call("this")
    def freeze(self, pairs: tuple[int, ...]) -> None:
        """Freezes the network functions of these pairs and lets all others run. Raises ProvisionError."""

    @call("both")
    def set_ageing(self, seconds: float) -> None:
        """Makes the switch forget addresses that it has not seen for ``seconds``. Raises ProvisionError."""

    @call("both")
    def check(self) -> None:
        """Raises ProvisionError with the log's tail if the switch is dead, or the other host is out of reach."""

    @call("both", _either_fault)
    def path_fault(self) -> str | None:
        """Returns a known fault of the path in one sentence; None if there is none.

        It is that of the cable between two hosts, or of a switch that is configured to lose frames, or that someone
        has stopped.
        """

    @call("both")
    def pause(self) -> None:
        """Takes everything of the rig off the CPUs. Idempotent."""

    @call("both")
    def resume(self) -> None:
        """Lets everything of the rig run again. Idempotent."""
