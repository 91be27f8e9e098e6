# SPDX-License-Identifier: BSD-3-Clause
"""A rig on another host, and two rigs as one: the calls of ``HostRig``, each to the host that has the endpoint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ConnectionLost, IcbenchError, ProvisionError, WorkloadError
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.remote.connection import Connection, Reply
from pytest_icbench.testbed.remote.end import WORKLOAD

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.host.session import HostSession
    from pytest_icbench.model.placement import Placement
    from pytest_icbench.model.uplink import Uplink

#: What a poll over there may take longer than asked for.
_POLL_MARGIN_S = 10.0


class RemoteRig:
    """``HostRig`` at the other end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._id: str | None = None

    def begin_prepare(self, spec: Mapping[str, Any]) -> Reply:
        """``prepare`` without waiting for it: ``prepared`` does."""
        return self.connection.begin("build", dict(spec))

    def prepared(self, reply: Reply) -> dict[str, Any]:
        """What ``HostRig.prepare`` returns."""
        made: dict[str, Any] = self.connection.result(reply)
        self._id = str(made.pop("rig"))
        return made

    def begin(self, name: str, *arguments: Any) -> Reply:
        """A call to the rig over there. Raises ProvisionError without one."""
        if self._id is None:
            raise ProvisionError("the rig is not built")
        return self.connection.begin(name, self._id, *arguments)

    def call(self, name: str, *arguments: Any) -> Any:
        """A call and its result."""
        return self.connection.result(self.begin(name, *arguments))

    def undo(self) -> None:
        """Unmakes it. Idempotent. Without a connection there is nothing to do: the other end does it by itself."""
        rig_id, self._id = self._id, None
        if rig_id is None or not self.connection.live:
            return
        with suppress(ConnectionLost):
            self.connection.call("undo", rig_id)


@dataclass(slots=True)
class _TwinLaunch:
    here: str
    there: str
    #: A poll over there whose answer has not been fetched yet. It ends early when there is another call.
    pending: Reply | None = None


@dataclass(frozen=True, slots=True)
class SecondHost:
    """The second host's part in a case.

    Attributes:
        rig: takes the host, where it is not held yet, and gives a rig there that is not built yet.
        uplink_here, uplink_there: the NIC of each that leads to the other.
    """

    rig: Callable[[], RemoteRig]
    uplink_here: Uplink
    uplink_there: Uplink

    def twin(
        self,
        session: HostSession,
        switches: Mapping[str, type[Switch]],
        placement: Placement,
        spec: Mapping[str, Any],
    ) -> tuple[TwoHostRig, dict[str, Any]]:
        """Two rigs as one, not yet built, and what its ``prepare`` takes. Raises ProvisionError.

        Args:
            spec: what both are told, as ``HostRig.prepare`` takes it.
        """
        assert placement.there is not None
        there = self.rig()
        others = placement.away
        own = [index for index in range(len(placement.endpoints)) if index not in others]
        specs = {
            "here": {**spec, "here": own, "uplink": self.uplink_here.to_dict()},
            "there": {
                **spec,
                "placement": asdict(placement.there),
                "here": list(others),
                "uplink": self.uplink_there.to_dict(),
            },
        }
        return TwoHostRig(HostRig(session, switches, wake=there.connection.wake), there, others), specs


class TwoHostRig:
    """Two rigs of one case, each with the endpoints of its host. Has the calls of ``HostRig``.

    Args:
        away: indexes of the endpoints on the other host.
    """

    def __init__(self, here: HostRig, there: RemoteRig, away: Collection[int]) -> None:
        self.here = here
        self.there = there
        self.away = frozenset(away)
        self._launches: dict[str, _TwinLaunch] = {}

    def prepare(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Both at once. ``spec`` has ``here`` and ``there``, the specifications of the two.

        Returns what ``HostRig.prepare`` does, endpoints and nodes by index; ``remote_switch`` is the other host's.
        Raises ProvisionError; what was made by then is undone on both.
        """
        reply = self.there.begin_prepare(spec["there"])
        try:
            made = self.here.prepare(spec["here"])
        except BaseException:
            with suppress(IcbenchError):
                self.there.prepared(reply)
            with suppress(IcbenchError):
                self.there.undo()
            raise
        try:
            other = self.there.prepared(reply)
        except BaseException:
            with suppress(IcbenchError):
                self.here.undo()
            raise
        return {
            **made,
            "endpoints": self._by_index(made["endpoints"], other["endpoints"]),
            "nodes": self._by_index(made["nodes"], other["nodes"]),
            "remote_switch": other["switch"],
        }

    def _by_index(self, here: Sequence[Any], there: Sequence[Any]) -> list[Any]:
        own, others = iter(here), iter(there)
        return [next(others) if index in self.away else next(own) for index in range(len(here) + len(there))]

    def launch(self, plan: Mapping[str, Any]) -> str:
        """Starts the processes of both hosts; see ``HostRig.launch``."""
        program = str(workload_path())
        processes: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for process in plan["processes"]:
            away = int(process["index"]) in self.away
            words = [WORKLOAD if away and word == program else word for word in process["argv"]]
            processes[away].append({**process, "argv": words})
        reply = self.there.begin("launch", {**plan, "processes": processes[True]})
        try:
            here = self.here.launch({**plan, "processes": processes[False]})
        except BaseException:
            with suppress(IcbenchError):
                self.there.call("end", self.there.connection.result(reply))
            raise
        try:
            there = str(self.there.connection.result(reply))
        except BaseException:
            self.here.end(here)
            raise
        launch_id = f"{here}+{there}"
        self._launches = {launch_id: _TwinLaunch(here, there)}
        return launch_id

    def start(self, launch_id: str, delay_s: float) -> int:
        """Tells all processes to begin, receivers first: the others are told when those have been.

        Each host counts the delay by its own clock. Returns this host's moment.
        """
        launch = self._launches[launch_id]
        self.there.call("start", launch.there, delay_s)
        return self.here.start(launch.here, delay_s)

    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        launch = self._launches[launch_id]
        if index is None or index not in self.away:
            self.here.tell(launch.here, text, index)
        if index is None or index in self.away:
            self.there.call("tell", launch.there, text, index)

    def poll(self, launch_id: str, timeout_s: float) -> dict[str, Any]:
        """As ``HostRig.poll``, of both hosts: returns as soon as one has something."""
        launch = self._launches[launch_id]
        connection = self.there.connection
        connection.quiet()  # before the reply is looked at: whatever comes from now on ends the poll here
        if launch.pending is None:
            launch.pending = self.there.begin("poll", launch.there, timeout_s)
        told = self.here.poll(launch.here, 0.0 if launch.pending.arrived.is_set() else timeout_s)
        if launch.pending.arrived.is_set():
            reply, launch.pending = launch.pending, None
            other = connection.result(reply, _POLL_MARGIN_S)
            told["lines"] += other["lines"]
            told["exited"].update({int(index): code for index, code in other["exited"].items()})
        return told

    def log_tail(self, launch_id: str, index: int) -> str:
        launch = self._launches[launch_id]
        if index not in self.away:
            return self.here.log_tail(launch.here, index)
        try:
            return str(self.there.call("log_tail", launch.there, index))
        except ConnectionLost as error:
            return str(error)

    def pids(self, launch_id: str) -> dict[int, int]:
        """By endpoint index, each by the numbers of its own host."""
        launch = self._launches[launch_id]
        there = self.there.call("pids", launch.there)
        return {**self.here.pids(launch.here), **{int(index): pid for index, pid in there.items()}}

    def end(self, launch_id: str) -> None:
        """Ends what still runs. Idempotent."""
        launch = self._launches.pop(launch_id, None)
        if launch is None:
            return
        try:
            self.here.end(launch.here)
        finally:
            if self.there.connection.live:
                with suppress(ConnectionLost):
                    self.there.call("end", launch.there)

    def counters(self) -> list[dict[str, Any]] | None:
        """Of both hosts' switches, by endpoint index; null where one has none."""
        here, there = self.here.counters(), self.there.call("counters")
        if here is None or there is None:
            return None
        return sorted([*here, *there], key=lambda port: int(port["index"]))

    def busy(self) -> dict[str, Any] | None:
        """Of this host's switch, with the other's as ``far``: a path is as busy as its busier half.

        Null where one of them does not tell: half a path is no witness of the whole.
        """
        reply = self.there.begin("busy")
        here = self.here.busy()
        there = self.there.connection.result(reply)
        return None if here is None or there is None else {**here, "far": there}

    def hardware(self, launch_id: str) -> dict[str, dict[str, int]] | None:
        """Of this host's switch and processes."""
        launch = self._launches.get(launch_id)
        return None if launch is None else self.here.hardware(launch.here)

    def batches(self) -> dict[str, int] | None:
        """Of this host's switch."""
        return self.here.batches()

    def assignment(self) -> dict[str, int] | None:
        """Of this host's switch: CPU numbers of two hosts are not to be mixed."""
        return self.here.assignment()

    def set_ageing(self, seconds: float) -> None:
        self.here.set_ageing(seconds)
        self.there.call("set_ageing", seconds)

    def check(self) -> None:
        """Raises ProvisionError if a switch is dead, or the other host is out of reach."""
        self.here.check()
        self.there.call("check")

    def uplink_fault(self) -> str | None:
        """Of this host's uplink, or else of the other's."""
        reply = self.there.begin("uplink_fault")
        here = self.here.uplink_fault()
        there = self.there.connection.result(reply)
        return here if here is not None or there is None else f"on the remote host: {there}"

    def pause(self) -> None:
        self.here.pause()
        self.there.call("pause")

    def resume(self) -> None:
        self.there.call("resume")
        self.here.resume()

    def undo(self) -> None:
        """Unmakes both. Idempotent. Raises ProvisionError with what remains."""
        failures = []
        for undo in (self.there.undo, self.here.undo):
            try:
                undo()
            except (ProvisionError, WorkloadError) as error:
                failures.append(str(error))
        self._launches.clear()
        if failures:
            raise ProvisionError("\n".join(failures))
