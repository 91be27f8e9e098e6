# SPDX-License-Identifier: BSD-3-Clause
"""Cases over several workers: every test once, a rig's together, nobody idle while something waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model.case import Case, is_case, rig_group
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate, named_rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.plugin.plan import count_hosts
from pytest_icbench.plugin.xdist_workers import HostScheduling, host_key, make_worker_input, replaces_workers


def item(case: Case, test: str = "test_x.py::test_rate") -> str:
    return f"{test}[{case.id}]"


def test_groups_follow_the_rig() -> None:
    first = Case("ovs", Frames(traffic=Traffic(64), rate=Rate(1_000_000)), port="vhost-user-packed", mode="xconnect")
    same = Case("ovs", Frames(Traffic(512), 1), port="vhost-user-packed", mode="xconnect", check_payload=True)
    assert rig_group(item(first)) == rig_group(item(same, "test_y.py::test_other"))
    others = [
        Case("ovs", mode="xconnect"),
        Case("ovs", port="vhost-user-packed", mode="xconnect", pairs=2),
        Case("ovs", Frames(Traffic(9000)), port="vhost-user-packed", mode="xconnect"),
        Case("ovs", port="vhost-user-packed", mode="xconnect", switch_cores=2),
        Case("ovs", port="vhost-user-packed", mode="xconnect", remote=True),
        Case("ovs", port="vhost-user-packed", mode="xconnect", api="af_xdp"),
        Case("ovs", port="vhost-user-packed", mode="xconnect", node="podman"),
        Case("ovs", port="vhost-user-packed", mode="xconnect", node="podman", remote=True),
    ]
    groups = [rig_group(item(case)) for case in others]
    assert rig_group(item(first)) not in groups
    assert len(set(groups)) == len(groups)


@given(
    st.lists(
        st.builds(
            Case,
            switch=st.sampled_from(["veth", "linux-bridge", "forward"]),
            api=st.sampled_from([None, "udp", "udp-mmsg", "raw", "raw-mmsg", "af_packet"]),
            pairs=st.integers(1, 12),
            load=st.builds(
                Frames,
                traffic=st.builds(Traffic, st.sampled_from([64, 1518, 1519, 9000])),
                rate=st.sampled_from([Rate(), Rate(500), *map(named_rate, ("ndr", "pdr:0.5%", "mfr"))]),
            ),
            blocking=st.booleans(),
            check_payload=st.booleans(),
            remote=st.booleans(),
            node=st.sampled_from([None, "vm", "lxc+vm"]),
        ),
        min_size=2,
        max_size=2,
    )
)
def test_groups_are_rigs(cases: list[Case]) -> None:
    first, second = cases
    assert is_case(item(first))
    assert (rig_group(item(first)) == rig_group(item(second))) == (first.rig_key == second.rig_key)


def test_other_tests_have_no_group() -> None:
    assert rig_group("test_x.py::test_plain") is None
    assert rig_group("test_x.py::test_plain[64B]") is None


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        (SimpleNamespace(popen=True), "here"),
        (SimpleNamespace(ssh="root@a"), "ssh=root@a"),
        (SimpleNamespace(popen=True, via="gate"), "via=gate"),
    ],
)
def test_which_host_a_worker_is_on(spec: Any, key: str) -> None:
    assert host_key(spec) == key


@pytest.mark.parametrize(("dist", "hosts"), [("load", 10), ("each", 1)])
def test_a_worker_is_reported_how_many_share_the_cases(dist: str, hosts: int) -> None:
    config = SimpleNamespace(getoption={"dist": dist}.get)
    gateway = SimpleNamespace(spec=SimpleNamespace(ssh="root@a", chdir="x"))
    node = SimpleNamespace(config=config, gateway=gateway, workerinput={"workercount": 10})
    said = make_worker_input(node, "run", [gateway.spec])
    assert (said["icbench_hosts"], said["icbench_sends"], said["icbench_run"]) == (hosts, True, "run")
    assert not said["icbench_shares"]
    assert make_worker_input(node, "run", [gateway.spec, SimpleNamespace(ssh="root@b"), gateway.spec])["icbench_shares"]
    assert count_hosts(SimpleNamespace(workerinput=said)) == hosts  # type: ignore[arg-type]
    assert count_hosts(SimpleNamespace()) == 1  # type: ignore[arg-type]


@dataclass(eq=False)
class Worker:
    """As much of xdist's controller of a worker as a scheduler sees."""

    name: str
    speed: float = 1.0
    queue: list[int] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    busy_until: float = 0.0
    shutting_down: bool = False

    @property
    def gateway(self) -> Any:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        """A worker runs a test when it knows the next one, or that there is none."""
        return len(self.queue) > 1 or (bool(self.queue) and self.shutting_down)


def scheduling(count: int, said: list[str], *, replaces: bool = True) -> HostScheduling:
    options = SimpleNamespace(
        getoption=lambda name: None,
        getvalue=lambda name: ["popen"] * count,
        hook=None,
        pluginmanager=SimpleNamespace(get_plugin=lambda name: SimpleNamespace(write_line=said.append)),
    )
    return HostScheduling(options, replaces=replaces)


def distribute(nodeids: list[str], speeds: list[float]) -> list[Worker]:
    """Runs a session in which a test takes a worker's speed, in seconds."""
    scheduler = scheduling(len(speeds), [])
    workers = [Worker(f"gw{number}", speed) for number, speed in enumerate(speeds)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, list(nodeids))
    scheduler.schedule()
    while any(worker.can_run for worker in workers):
        worker = min((w for w in workers if w.can_run), key=lambda w: w.busy_until + w.speed)
        worker.busy_until += worker.speed
        index = worker.queue.pop(0)
        worker.ran.append(index)
        scheduler.mark_test_complete(worker, index, worker.speed)
    assert scheduler.tests_finished
    assert not any(worker.queue for worker in workers)
    assert all(worker.shutting_down for worker in workers)
    return workers


@given(
    st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from([1.0, 1.5, 4.0]), min_size=1, max_size=5)
)
def test_every_test_runs_once_and_hosts_end_together(letters: list[str], speeds: list[float]) -> None:
    nodeids = [item(Case(f"switch-{letter}"), f"t.py::test_{number}") for number, letter in enumerate(letters)]
    workers = distribute(nodeids, speeds) if nodeids else []
    assert sorted(index for worker in workers for index in worker.ran) == list(range(len(nodeids)))
    ends = [worker.busy_until for worker in workers if worker.ran]
    if len(nodeids) > 2 * len(speeds):
        # The slowest has at most its current test and the next one left when nothing waits any more.
        assert max(ends) - min(ends) <= 2 * max(speeds)


def test_a_rig_stays_with_its_host() -> None:
    nodeids = [item(Case(name), f"t.py::test_{number}") for name in ("ovs", "vpp", "veth") for number in range(6)]
    workers = distribute(nodeids, [1.0, 1.0, 1.0])
    assert [{rig_group(nodeids[index]) for index in worker.ran} for worker in workers] == [
        {rig_group(nodeids[0])},
        {rig_group(nodeids[6])},
        {rig_group(nodeids[12])},
    ]


def test_one_rig_is_built_on_every_host_rather_than_leave_one_idle() -> None:
    nodeids = [item(Case("veth"), f"t.py::test_{number}") for number in range(20)]
    assert [len(worker.ran) for worker in distribute(nodeids, [1.0, 1.0])] == [10, 10]


def test_plain_tests_are_left_to_xdist() -> None:
    workers = distribute([f"t.py::test_{number}" for number in range(20)], [1.0, 1.0])
    assert sorted(index for worker in workers for index in worker.ran) == list(range(20))


def begun(nodeids: list[str], count: int, said: list[str], *, replaces: bool) -> tuple[HostScheduling, list[Worker]]:
    """A session in which every worker has its first tests."""
    scheduler = scheduling(count, said, replaces=replaces)
    workers = [Worker(f"gw{number}") for number in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, list(nodeids))
    scheduler.schedule()
    return scheduler, workers


@given(st.integers(8, 40), st.integers(2, 4))
def test_the_tests_of_a_lost_worker_are_the_others_at_once(count: int, hosts: int) -> None:
    """xdist ends the session with the loss: what the others have not been given by then would never run."""
    nodeids = [item(Case("veth"), f"t.py::test_{number}") for number in range(count)]
    said: list[str] = []
    scheduler, (lost, *others) = begun(nodeids, hosts, said, replaces=False)
    running = lost.queue[0]
    assert scheduler.remove_node(lost) == nodeids[running]
    assert sorted(index for worker in others for index in worker.queue) == [n for n in range(count) if n != running]
    longest, shortest = (end(len(worker.queue) for worker in others) for end in (max, min))
    assert longest - shortest <= 1
    assert scheduler.pending == []
    assert said == ["\nworker gw0 is lost and not replaced: the other hosts have its tests"]


def test_what_is_lost_with_a_second_worker_is_said() -> None:
    said: list[str] = []
    scheduler, (first, second, third) = begun(
        [item(Case("veth"), f"t.py::test_{number}") for number in range(12)], 3, said, replaces=False
    )
    scheduler.remove_node(first)
    for worker in (second, third):
        worker.shutdown()  # as xdist does after a loss
    scheduler.remove_node(second)
    assert said[1] == "\nworker gw1 is lost and not replaced: 5 of its tests will not run, the other hosts are done"
    assert len(third.queue) == 5


def test_a_worker_that_is_lost_before_it_had_a_test_ends_the_run() -> None:
    scheduler = scheduling(2, [], replaces=False)
    worker = Worker("gw0")
    scheduler.add_node(worker)
    with pytest.raises(pytest.exit.Exception, match="worker gw0 was lost before the cases were handed out"):
        scheduler.remove_node(worker)


def test_a_worker_that_is_replaced_leaves_its_tests_to_whoever_comes_first() -> None:
    said: list[str] = []
    scheduler, (lost, other) = begun(
        [item(Case("veth"), f"t.py::test_{number}") for number in range(12)], 2, said, replaces=True
    )
    scheduler.remove_node(lost)
    assert len(other.queue) == 2
    assert len(scheduler.pending) == 9
    assert said == []


@pytest.mark.parametrize(
    ("tx", "dist", "asked", "given", "replaces"),
    [
        (["ssh=root@a", "ssh=root@b"], "load", None, True, False),
        (["2*ssh=root@a"], "load", None, True, False),
        (["ssh=root@a"], "load", None, True, True),
        (["ssh=root@a", "ssh=root@b"], "load", "3", True, True),
        (["ssh=root@a", "ssh=root@b"], "each", None, True, True),
        (["ssh=root@a", "ssh=root@b"], "load", None, False, True),
        (["popen", "popen"], "load", None, True, True),
    ],
)
def test_who_is_replaced(tx: list[str], dist: str, asked: str | None, given: bool, replaces: bool) -> None:
    option = SimpleNamespace(maxworkerrestart=asked, dist=dist)
    config: Any = SimpleNamespace(option=option, args=["nowhere.py"], getvalue=lambda name: tx)
    assert replaces_workers(config, given=given) == replaces
    assert option.maxworkerrestart == (asked if replaces else "0")
