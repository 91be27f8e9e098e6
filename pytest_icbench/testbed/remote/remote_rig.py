# SPDX-License-Identifier: BSD-3-Clause
"""A rig on another host, and two rigs as one. Each call goes to the hosts that its declaration names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ConnectionLost, IcbenchError, ProvisionError, WorkloadError
from pytest_icbench.model.calls import Call
from pytest_icbench.model.rig import LOCAL_WORKLOAD, LaunchPlan, PlannedProcess, Polled, RigCalls, RigFacts, RigSpec
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.host_rig import HostPart, HostRig
from pytest_icbench.testbed.remote.connection import CALL_S, Connection, Reply, decode_answer
from pytest_icbench.testbed.remote.host_calls import HOST_CALLS, RIG_CALLS, BuildAnswer

#: How much longer than its timeout a remote poll may take, in seconds.
_POLL_MARGIN_S = 10.0

T = TypeVar("T")


class RemoteRig(RigCalls):
    """A ``HostRig`` at the other end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._id: str | None = None

    def begin_prepare(self, spec: RigSpec) -> Reply:
        """Begins ``HostRig.prepare``; ``prepared`` waits for its end. Raises ConnectionLost."""
        build = HOST_CALLS["build"]
        return self.connection.begin(build.name, *build.encode_arguments({"spec": spec}))

    def prepared(self, reply: Reply) -> RigFacts:
        """Returns what ``HostRig.prepare`` returns, and raises what it raises."""
        built: BuildAnswer = decode_answer(HOST_CALLS["build"], self.connection.result(reply))
        self._id = built.rig
        return built.facts

    def begin(self, call: Call, arguments: Mapping[str, Any]) -> Reply:
        """Begins a call; ``result`` waits for its end. Raises ProvisionError if the rig is not built."""
        if self._id is None:
            raise ProvisionError("the rig is not built")
        return self.connection.begin(call.name, self._id, *call.encode_arguments(arguments))

    def result(self, call: Call, reply: Reply, timeout_s: float = CALL_S) -> Any:
        """Returns what a call that was begun returns. Raises what it raises."""
        return decode_answer(call, self.connection.result(reply, timeout_s))

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        return self.result(call, self.begin(call, call.bind(arguments, keywords)))

    def undo(self) -> None:
        """Removes the rig. Idempotent. Without a connection the other end does it by itself. Raises ProvisionError."""
        rig_id, self._id = self._id, None
        if rig_id is None or not self.connection.live:
            return
        with suppress(ConnectionLost):
            self.connection.call("undo", rig_id)


class TwoHostRig(HostPart):
    """The two rigs of one case, each with the endpoints of its host.

    A launch's id joins the ids of the two hosts' launches with a plus. ``away``: indexes of the endpoints on the other
    host; once it is built.
    """

    def __init__(self, here: HostRig, there: RemoteRig, uplink_here: Uplink, uplink_there: Uplink) -> None:
        self._here = here
        self.there = there
        self._uplinks = uplink_here, uplink_there
        self.away: tuple[int, ...] = ()
        #: Reply of a remote poll that has not been fetched yet. The poll ends early when there is another call.
        self._pending: Reply | None = None
        self._launch: str | None = None

    @property
    def here(self) -> HostRig:
        return self._here

    def prepare(self, spec: RigSpec) -> RigFacts:
        """Prepares both at once, each by its part of ``spec.placement``.

        Raises ProvisionError, after undoing what was made by then on both.
        """
        placement = spec.placement
        assert placement.there is not None
        self.away = placement.away
        near = tuple(index for index in range(len(placement.endpoints)) if index not in self.away)
        uplink_here, uplink_there = self._uplinks
        far_spec = replace(spec, placement=placement.there, here=self.away, uplink=uplink_there)
        reply = self.there.begin_prepare(far_spec)
        try:
            near_facts = self.here.prepare(replace(spec, here=near, uplink=uplink_here))
        except BaseException:
            with suppress(IcbenchError):
                self.there.prepared(reply)
            with suppress(IcbenchError):
                self.there.undo()
            raise
        try:
            far_facts = self.there.prepared(reply)
        except BaseException:
            with suppress(IcbenchError):
                self.here.undo()
            raise
        return replace(
            near_facts,
            endpoints=self._by_index(near_facts.endpoints, far_facts.endpoints),
            nodes=self._by_index(near_facts.nodes, far_facts.nodes),
            remote_switch=far_facts.switch,
        )

    def _by_index(self, here: Sequence[T], there: Sequence[T]) -> tuple[T, ...]:
        near, far = iter(here), iter(there)
        return tuple(next(far) if index in self.away else next(near) for index in range(len(here) + len(there)))

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Returns the answer of the host that the call is for, or the joined answers of both, called at once."""
        given = call.bind(arguments, keywords)
        near, far = self._halves(given)
        index = given.get("index")
        ask_near = call.hosts != "endpoint" or index is None or index not in self.away
        ask_far = call.hosts == "both" or (call.hosts == "endpoint" and (index is None or index in self.away))
        reply = self.there.begin(call, far) if ask_far else None
        answer = getattr(self.here, call.name)(**near) if ask_near else None
        if reply is None:
            return answer
        other = self.there.result(call, reply)
        if not ask_near:
            return other
        return None if call.join is None else call.join(answer, other)

    @staticmethod
    def _halves(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the arguments for each host, with its part of the launch's id."""
        if "launch_id" not in given:
            return given, given
        here, _, there = given["launch_id"].partition("+")
        return {**given, "launch_id": here}, {**given, "launch_id": there}

    def launch(self, plan: LaunchPlan) -> str:
        """Starts the processes of both hosts."""
        program = str(workload_path())

        def with_place(process: PlannedProcess) -> PlannedProcess:
            return replace(process, argv=tuple(LOCAL_WORKLOAD if word == program else word for word in process.argv))

        near = tuple(process for process in plan.processes if process.index not in self.away)
        far = tuple(with_place(process) for process in plan.processes if process.index in self.away)
        begin = RIG_CALLS["launch"]
        reply = self.there.begin(begin, {"plan": replace(plan, processes=far)})
        try:
            here = self.here.launch(replace(plan, processes=near))
        except BaseException:
            with suppress(IcbenchError):
                self.there.end(self.there.result(begin, reply))
            raise
        try:
            there: str = self.there.result(begin, reply)
        except BaseException:
            self.here.end(here)
            raise
        self._pending = None
        self._launch = f"{here}+{there}"
        return self._launch

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        """Starts the second host first, where the receivers are, then this host; returns this host's moment.

        The moment is CLOCK_MONOTONIC in ns. Each host counts the delay by its own clock.
        """
        here, _, there = launch_id.partition("+")
        self.there.start(there, delay_s)
        return self.here.start(here, delay_s)

    def poll(self, launch_id: str, timeout_s: float, quiet: bool = False) -> Polled:
        """Returns the lines and exits of both hosts, as soon as one has any, or after ``timeout_s`` seconds."""
        here, _, there = launch_id.partition("+")
        call, connection = RIG_CALLS["poll"], self.there.connection
        connection.quiet()  # before the reply is examined: one that comes from now on ends the poll here
        if self._pending is None:
            self._pending = self.there.begin(call, {"launch_id": there, "timeout_s": timeout_s, "quiet": quiet})
        polled = self.here.poll(here, 0.0 if self._pending.arrived.is_set() else timeout_s, quiet)
        if self._pending.arrived.is_set():
            reply, self._pending = self._pending, None
            other: Polled = self.there.result(call, reply, _POLL_MARGIN_S)
            polled = Polled(polled.lines + other.lines, {**polled.exited, **other.exited})
        return polled

    def log_tail(self, launch_id: str, index: int) -> str:
        """Returns the last lines of a process' log, or that the connection to it was lost."""
        try:
            return super().log_tail(launch_id, index)
        except ConnectionLost as error:
            return str(error)

    def end(self, launch_id: str) -> None:
        if launch_id != self._launch:
            return
        self._launch = None
        here, _, there = launch_id.partition("+")
        try:
            self.here.end(here)
        finally:
            if self.there.connection.live:
                with suppress(ConnectionLost):
                    self.there.end(there)

    def undo(self) -> None:
        """Removes both. Idempotent. Raises ProvisionError with what remains."""
        failures = []
        for undo in (self.there.undo, self.here.undo):
            try:
                undo()
            except (ProvisionError, WorkloadError) as error:
                failures.append(str(error))
        self._launch = self._pending = None
        if failures:
            raise ProvisionError("\n".join(failures))
