# SPDX-License-Identifier: BSD-3-Clause
"""What can be asked of a rig wherever it is, and the records that are exchanged with it.

A new call is a method here and a method of ``HostRig``, which does it on one host. Rigs, the second host and tests'
rigs forward it as it is declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_icbench.model.calls import Forwarding, call
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.endpoint_spec import EndpointSpec
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters, SwitchFacts
from pytest_icbench.model.uplink import Uplink

#: Stands in a command line for the workload, whose place each host knows itself.
LOCAL_WORKLOAD = "@workload"
#: How long a stage may take to open its sockets, in seconds, where the plan says nothing.
HELLO_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RigSpec:
    """What is to be built.

    Attributes:
        name: unique in the session, at most 4 characters.
        node: kind of nodes.
        binary: path of the user's own switch.
        config: the user's own configuration of the switch.
        endpoint_specs: who and where the endpoints are, by index; empty: the default ones.
        here: indexes of the endpoints on this host; None: all.
        uplink: the NIC that leads to the others.
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


@dataclass(frozen=True, slots=True)
class RigFacts:
    """What was built.

    Attributes:
        endpoints: those on this host, in their order; of two hosts all of them, by index.
        nodes: names of the endpoints' nodes.
        files: directory that all nodes share with the host, at the same path.
        remote_switch: the second host's.
    """

    endpoints: tuple[Endpoint, ...]
    nodes: tuple[str, ...]
    switch: SwitchFacts
    files: str
    remote_switch: SwitchFacts | None = None


@dataclass(frozen=True, slots=True)
class PlannedProcess:
    """A process of a launch.

    Attributes:
        index: of its endpoint.
        stage: a later stage starts once each process of the earlier ones that has a ``socket`` serves it.
        socket: path.
    """

    index: int
    argv: tuple[str, ...]
    stage: int = 0
    socket: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The processes of a launch; ``hello_timeout_s``: how long a stage may take to open its sockets."""

    processes: tuple[PlannedProcess, ...] = ()
    hello_timeout_s: float = HELLO_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Polled:
    """What was said, each line with its endpoint's index, and the exit codes of who has ended, by index."""

    lines: tuple[tuple[int, str], ...] = ()
    exited: Mapping[int, int] = field(default_factory=dict)


def _busy_path(here: Busy | None, there: Busy | None) -> Busy | None:
    """A path is as busy as its busier half; None where one does not tell: half a path is no witness of the whole."""
    return None if here is None or there is None else replace(here, far=there)


def _all_ports(
    here: tuple[PortCounters, ...] | None, there: tuple[PortCounters, ...] | None
) -> tuple[PortCounters, ...] | None:
    """By endpoint index; None where one has none."""
    return None if here is None or there is None else tuple(sorted((*here, *there), key=lambda port: port.index))


def _either_fault(here: str | None, there: str | None) -> str | None:
    return here if here is not None or there is None else f"on the remote host: {there}"


class RigCalls(Forwarding):
    """The calls of a built rig. Those of a launch have ``launch_id`` as their first argument."""

    @call("special")
    def launch(self, plan: LaunchPlan) -> str:
        """Starts the processes of one launch, stage by stage, each in its endpoint's node and on its endpoint's CPU.

        Returns its id. Raises WorkloadError with the log's tail if one dies or serves nothing in time.
        """
        raise NotImplementedError

    @call("special")
    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        """Tells every process to begin ``delay_s`` seconds from now; returns the moment, CLOCK_MONOTONIC in ns."""
        raise NotImplementedError

    @call("endpoint")
    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        """Writes to one process' standard input, or to all."""

    @call("special")
    def poll(self, launch_id: str, timeout_s: float) -> Polled:
        """What was said since the last call, and who has ended; returns as soon as there is something."""
        raise NotImplementedError

    @call("endpoint")
    def log_tail(self, launch_id: str, index: int) -> str:
        """The last lines of a process' log."""
        raise NotImplementedError

    @call("both", lambda here, there: {**here, **there})
    def pids(self, launch_id: str) -> dict[int, int]:
        """Process ids by endpoint index, each by the numbers of its own host."""
        raise NotImplementedError

    @call("special")
    def end(self, launch_id: str) -> None:
        """Ends what still runs of a launch. Idempotent."""

    @call("both", _all_ports)
    def counters(self) -> tuple[PortCounters, ...] | None:
        """The switch's own counters, a port each, by index; None where it has none."""
        raise NotImplementedError

    @call("both", _busy_path)
    def busy(self) -> Busy | None:
        """Work of the switch since it exists; None where it does not tell."""
        raise NotImplementedError

    @call("this")
    def hardware(self, launch_id: str) -> dict[str, dict[str, int]] | None:
        """Hardware events of the switch's worker CPUs and of a launch's processes since the first call for it.

        By event, of ``endpoints`` and, where there are workers, of ``switch``; None where the kernel gives none.
        Counting ends with the launch. Over two hosts this one's.
        """
        raise NotImplementedError

    @call("this")
    def batches(self) -> Batches | None:
        """Frames and calls of the switch's workers since it exists; None where it does not tell.

        Over two hosts of this one's.
        """
        raise NotImplementedError

    @call("this")
    def assignment(self) -> dict[str, int] | None:
        """CPU that polls each port, by its index as a text; None where the switch does not tell.

        Over two hosts of this one's: CPU numbers of two are not to be mixed.
        """
        raise NotImplementedError

    @call("both")
    def set_ageing(self, seconds: float) -> None:
        """Makes the switch forget addresses that it has not seen for so many seconds. Raises ProvisionError."""

    @call("both")
    def check(self) -> None:
        """Raises ProvisionError with the log's tail if the switch is dead, or the other host is out of reach."""

    @call("both", _either_fault)
    def uplink_fault(self) -> str | None:
        """What is wrong with the cable between two hosts, in one sentence; None if nothing."""
        raise NotImplementedError

    @call("both")
    def pause(self) -> None:
        """Takes everything of the rig off the CPUs. Idempotent."""

    @call("both")
    def resume(self) -> None:
        """Lets everything go on. Idempotent."""
