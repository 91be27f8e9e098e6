# SPDX-License-Identifier: BSD-3-Clause
"""Two rigs as one, and the other host over lost connections, without any host."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ConnectionLost, ProvisionError, UsageError
from pytest_icbench.host.host_session import SessionOptions
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.endpoint import Address, Veth
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import LOCAL_WORKLOAD, LaunchPlan, PlannedProcess, Polled, RigFacts, RigSpec
from pytest_icbench.model.switch_facts import Busy, SwitchFacts
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import join_placements
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.remote import remote_host as host_module
from pytest_icbench.testbed.remote.connection import Reply
from pytest_icbench.testbed.remote.host_calls import BuildAnswer
from pytest_icbench.testbed.remote.remote_host import RemoteHost
from pytest_icbench.testbed.remote.remote_rig import RemoteRig, TwoHostRig


class FakeConnection:
    """Answers calls at once, out of a table; writes them down."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[Any, ...]] = []
        self.live = True
        self.wake = -1

    def begin(self, name: str, *arguments: Any) -> Reply:
        if not self.live:
            raise ConnectionLost("the connection to the remote host was lost")
        self.calls.append((name, *arguments))
        reply = Reply()
        answer = self.answers.get(name)
        reply.data = {"result": answer(*arguments) if callable(answer) else answer}
        reply.arrived.set()
        return reply

    def result(self, reply: Reply, timeout_s: float = 0) -> Any:
        if isinstance(reply.data["result"], Exception):
            raise reply.data["result"]
        return reply.data["result"]

    def call(self, name: str, *arguments: Any) -> Any:
        return self.result(self.begin(name, *arguments))

    def quiet(self) -> None:
        pass

    def close(self) -> None:
        self.calls.append(("close",))
        self.live = False

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


class FakeRig:
    """The part of HostRig on this host."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append(name)
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments, **keywords) if callable(answer) else answer

        return call


def made(*names: str) -> RigFacts:
    endpoints = tuple(Veth(Address.of(1, "a"), name, None) for name in names)
    return RigFacts(endpoints, names, SwitchFacts(version=names[0]), "/f")


def made_there(*names: str) -> dict[str, Any]:
    """The same, as it comes over a connection."""
    answer: dict[str, Any] = json.loads(json.dumps(encode(BuildAnswer("x7", made(*names)))))
    return answer


def specification(*away: int) -> RigSpec:
    """Of a case with two pairs, whose endpoints with these indexes are on the second host."""
    here = Placement("dedicated", (5,), (1, 2, 3, 4)[: 4 - len(away)], (0,), 0, 0)
    there = Placement("dedicated", (6,), (7, 8, 9, 10)[: len(away)], (0,), 1, 0)
    return RigSpec("r1", Case("ovs", pairs=2, remote=True), join_placements(here, there, away), "netns")


def twin(here: FakeRig, connection: FakeConnection) -> TwoHostRig:
    there = RemoteRig(cast("Any", connection))
    return TwoHostRig(cast("HostRig", here), there, Uplink("eth1"), Uplink("eth2"))


def built(**answers: Any) -> tuple[TwoHostRig, FakeRig, FakeConnection]:
    here = FakeRig(prepare=made("a0", "a1"), launch="l1", **answers)
    connection = FakeConnection(build=made_there("b0", "b1"), launch="l4")
    rig = twin(here, connection)
    facts = rig.prepare(specification(1, 3))
    assert [cast("Veth", endpoint).interface for endpoint in facts.endpoints] == ["a0", "b0", "a1", "b1"]
    assert facts.remote_switch == SwitchFacts(version="b0")
    return rig, here, connection


def test_endpoints_are_by_index_wherever_they_are() -> None:
    built()
    here, connection = FakeRig(prepare=made("a", "b", "c")), FakeConnection(build=made_there("d"))
    assert twin(here, connection).prepare(specification(2)).nodes == ("a", "b", "d", "c")


def test_each_host_is_reported_its_own_part() -> None:
    reported: list[RigSpec] = []

    def prepare(spec: RigSpec) -> RigFacts:
        reported.append(spec)
        return made("a0", "a1")

    connection = FakeConnection(build=made_there("b0", "b1"))
    asked = specification(1, 3)
    twin(FakeRig(prepare=prepare), connection).prepare(asked)
    reported.append(decode(RigSpec, json.loads(json.dumps(connection.calls[-1][1])), "spec"))
    assert [(spec.here, str(spec.uplink)) for spec in reported] == [((0, 2), "eth1"), ((1, 3), "eth2")]
    assert [spec.placement for spec in reported] == [asked.placement, asked.placement.there]
    assert [spec.case for spec in reported] == [asked.case] * 2


def test_a_half_that_fails_takes_the_other_along() -> None:
    here = FakeRig(prepare=ProvisionError("no veth"))
    connection = FakeConnection(build=made_there("b"))
    with pytest.raises(ProvisionError, match="no veth"):
        twin(here, connection).prepare(specification(1))
    assert connection.names() == ["build", "undo"]
    here, connection = FakeRig(prepare=made("a")), FakeConnection(build=ProvisionError("no veth there"))
    with pytest.raises(ProvisionError, match="no veth there"):
        twin(here, connection).prepare(specification(1))
    assert here.calls == ["prepare", "undo"]


def test_processes_start_where_their_endpoint_is() -> None:
    rig, here, connection = built()
    seen: list[Any] = []

    def launch(plan: Any) -> str:
        seen.append(plan)
        return "l1"

    here.answers["launch"] = launch
    program = str(workload_path())
    plan = LaunchPlan(tuple(PlannedProcess(index, (program, "send")) for index in range(4)), hello_timeout_s=3)
    assert rig.launch(plan) == "l1+l4"
    assert [process.index for process in seen[0].processes] == [0, 2]
    sent = connection.calls[-1][2]
    assert [each["index"] for each in sent["processes"]] == [1, 3]
    # Its place is that host's own.
    assert [each["argv"][0] for each in sent["processes"]] == [LOCAL_WORKLOAD, LOCAL_WORKLOAD]
    assert sent["hello_timeout_s"] == 3


def test_receivers_are_reported_first() -> None:
    rig, here, connection = built()
    order: list[str] = []

    def start(where: str, moment: int) -> Callable[..., int]:
        def reported(*_: Any) -> int:
            order.append(where)
            return moment

        return reported

    here.answers["start"], connection.answers["start"] = start("here", 5), start("there", 99)
    launch = rig.launch(LaunchPlan())
    assert rig.start(launch, 0.02) == 5  # by this host's clock
    assert order == ["there", "here"]


def test_what_both_say_is_heard_once() -> None:
    rig, here, connection = built()
    launch = rig.launch(LaunchPlan())
    here.answers["poll"] = lambda *_: Polled(((0, "a"),))
    connection.answers["poll"] = {"lines": [[1, "b"]], "exited": {"3": 0}}
    assert rig.poll(launch, 1.0) == Polled(((0, "a"), (1, "b")), {3: 0})


def test_a_late_answer_is_kept_for_the_next_poll() -> None:
    rig, here, connection = built()
    launch = rig.launch(LaunchPlan())
    here.answers["poll"] = lambda *_: Polled()
    late = Reply()
    late.data = {"result": {"lines": [[1, "b"]], "exited": {}}}
    begin = connection.begin
    connection.begin = lambda name, *rest: late if name == "poll" else begin(name, *rest)  # type: ignore[method-assign]
    assert rig.poll(launch, 0.0).lines == ()
    rig.tell(launch, "stop\n", 1)  # which ends the poll over there; its answer is not lost
    late.arrived.set()
    assert rig.poll(launch, 0.0).lines == ((1, "b"),)


def test_a_path_has_two_halves_that_work() -> None:
    rig, here, connection = built()
    here.answers["busy"], connection.answers["busy"] = Busy(5), {"busy_cycles": 7}
    assert rig.busy() == Busy(5, far=Busy(7))
    connection.answers["busy"] = None
    assert rig.busy() is None


def test_a_cable_has_two_ends() -> None:
    rig, here, connection = built()
    assert rig.path_fault() is None
    connection.answers["path_fault"] = "the uplink eth2 has no carrier"
    assert rig.path_fault() == "on the remote host: the uplink eth2 has no carrier"
    here.answers["path_fault"] = "the uplink eth1 has no carrier"
    assert rig.path_fault() == "the uplink eth1 has no carrier"


def test_undoing_goes_on_without_a_connection() -> None:
    rig, here, connection = built()
    connection.live = False
    rig.undo()
    assert here.calls[-1] == "undo"
    rig.undo()


HERE = Placement("dedicated", (5,), (1, 2), (0,), 0, 0)
THERE = Placement("dedicated", (6,), (3, 4), (7,), 1, 0)


def test_a_placement_of_two_hosts() -> None:
    found = join_placements(HERE, THERE, (1, 3))
    assert (found.policy, found.endpoints, found.local, found.switch) == ("dedicated", (1, 3, 2, 4), (1, 2), (5,))
    assert found.there is not None
    assert (found.there.endpoints, found.there.switch, found.there.numa_node) == ((1, 3, 2, 4), (6,), 1)
    shared = Placement("cooperative", (), (3, 3), (), 0, 128)
    assert (join_placements(HERE, shared, (1, 3)).policy, join_placements(HERE, shared, (1, 3)).yield_every) == (
        "cooperative",
        128,
    )


def remote(*connections: FakeConnection | UsageError) -> RemoteHost:
    waiting = list(connections)

    def connect() -> Any:
        found = waiting.pop(0)
        if isinstance(found, UsageError):
            raise found
        return found

    return RemoteHost(connect, SessionOptions())


def test_a_refusal_is_said_again_without_asking_again() -> None:
    host = remote(UsageError("no connection to the remote host: x"))
    for _ in range(3):
        with pytest.raises(ProvisionError, match="no connection to the remote host: x"):
            host.plan(0, 2, "auto")
    with pytest.raises(UsageError):
        host.check()
    host.close()


def test_a_lost_connection_is_made_anew_and_the_host_held_again() -> None:
    first, second = FakeConnection(hold=[]), FakeConnection(hold=["session abc: 3 changes undone"])
    host = remote(first, second)
    host.hold()
    first.live = False
    host.hold()
    assert second.names() == ["hold"]
    host.close()
    assert second.names() == ["hold", "give_back", "close"]


def test_the_end_of_a_lost_connection_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "_CLEANING_POLL_S", 0.0)
    answers = iter([UsageError("another icbench session runs"), UsageError("another icbench session runs"), []])
    first, second = FakeConnection(hold=[]), FakeConnection(hold=lambda *_: next(answers))
    host = remote(first, second)
    host.hold()
    first.live = False
    host.hold()
    assert second.names() == ["hold"] * 3


def test_a_busy_host_is_not_waited_for() -> None:
    host = remote(FakeConnection(hold=UsageError("another icbench session runs")))
    with pytest.raises(UsageError, match="another icbench session"):
        host.hold()
    with pytest.raises(ProvisionError, match="another icbench session"):
        host.rig()


def test_what_may_be_left_is_said() -> None:
    first = FakeConnection(hold=[])
    host = remote(first, UsageError("no connection to the remote host: gone"))
    host.hold()
    first.live = False
    with pytest.raises(ProvisionError, match=r"may not be as before \(.*gone\): run `icbench recover` there"):
        host.close()
    host.close()


def test_plans_cross_as_json() -> None:
    data = {"policy": "dedicated", "switch": [6], "endpoints": [3, 4], "service": [7], "numa_node": 1, "yield_every": 0}
    connection = FakeConnection(plan={**data, "away": [], "there": None})
    host = remote(connection)
    assert host.plan(1, 2, "auto") == host.plan(1, 2, "auto") == THERE
    assert connection.names() == ["plan"]


def test_a_rig_in_turn_exists_only_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(Case("direct", remote=True), HERE, cast("Any", None), "netns")
    built: list[str] = []
    monkeypatch.setattr(rig, "build", lambda: built.append("built"))
    rig.check()  # nothing of it can be dead
    rig.pause()
    rig.resume()
    assert built == ["built"]


@pytest.mark.parametrize(
    ("call", "answer", "why"),
    [("end", 0, "end: expected null, found 0"), ("plan", {"policy": 1}, "plan: "), ("identity", [], "identity: ")],
)
def test_an_odd_answer_names_the_host_and_the_remedy(call: str, answer: Any, why: str) -> None:
    from pytest_icbench.model.codec import DamagedData
    from pytest_icbench.testbed.remote.connection import decode_answer
    from pytest_icbench.testbed.remote.host_calls import HOST_CALLS, RIG_CALLS

    with pytest.raises(DamagedData) as caught:
        decode_answer({**HOST_CALLS, **RIG_CALLS}[call], answer)
    assert str(caught.value).startswith(f"on the remote host: {why}")
    assert "install the same pytest-icbench there" in str(caught.value)
