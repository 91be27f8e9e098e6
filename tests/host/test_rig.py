# SPDX-License-Identifier: BSD-3-Clause
"""Rigs on the real host: made in order, unmade in reverse, told about in plain JSON."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.kernel.veth import VethLink
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.host.resource import hugepages
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.rig import LaunchPlan, PlannedProcess, RigFacts, RigSpec
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.remote.host_calls import RIG_CALLS
from tests.host.node_tools import CONTAINER_KINDS, clean, require, session
from tests.host.rig_tools import acting, built

__all__ = ["clean", "session"]  # fixtures

CPUS = sorted(os.sched_getaffinity(0))
PLACEMENT = Placement(
    policy="cooperative", switch=(), endpoints=(CPUS[0], CPUS[-1]), service=(CPUS[0],), numa_node=0, yield_every=0
)


def over_json(kind: Any, record: Any) -> Any:
    """The record after a trip over a connection."""
    return decode(kind, json.loads(json.dumps(encode(record))), "record")


def answer(host: HostRig, name: str, *arguments: Any) -> Any:
    """A call whose arguments and result make that trip."""
    call = RIG_CALLS[name]
    data = json.loads(json.dumps([encode(argument) for argument in arguments]))
    return call.decode_result(json.loads(json.dumps(call.answer(host, data))))


@pytest.mark.parametrize("kind", CONTAINER_KINDS)
def test_a_host_rig_speaks_plain_json(session: HostSession, kind: str) -> None:
    require(kind)
    host = HostRig(session, builtin_switches())
    made = over_json(RigFacts, host.prepare(over_json(RigSpec, RigSpec("r900", Case("veth"), PLACEMENT, kind))))
    first, second = made.endpoints
    assert (first.address.ip, second.address.ip) == ("198.18.1.1", "198.18.1.2")
    assert made.nodes == (session.name("r900n0"), session.name("r900n1"))
    assert made.switch.version == os.uname().release
    assert len(answer(host, "counters")) == 2
    busy = answer(host, "busy")
    assert (busy.busy_cycles, busy.workers) == (None, 0)  # the kernel tells its time, not cycles of workers
    assert busy.busy_ns >= 0
    argv = [str(workload_path()), "recv", "198.18.1.2", second.address.mac, "198.18.1.1", first.address.mac]
    plan = LaunchPlan((PlannedProcess(1, (*argv, "--supervised", "--drain", "0")),))
    launch_id = answer(host, "launch", plan)
    said: list[str] = []
    while len(said) < 2:
        reported = answer(host, "poll", launch_id, 5)
        assert reported.exited == {}
        said += [json.loads(text)["type"] for _, text in reported.lines]
    assert said == ["hello", "ready"]
    host.end(launch_id)
    host.end(launch_id)
    host.end("l99")
    host.undo()
    host.undo()
    assert not (session.dir / "r900").exists()


def test_the_harness_keeps_to_the_service_cpus_while_frames_flow(session: HostSession) -> None:
    before, during = os.sched_getaffinity(0), []
    case = Case("veth", Frames(rate=Rate(1000)))
    with built(session, case, node="netns") as rig:
        service = set(rig.placement.service)
        brief = Settings(warmup_s=0.0, duration_s=0.3, window_s=0.05, drain_s=0.1)
        harness = threading.get_native_id()
        with acting(rig, lambda _pids: during.append(os.sched_getaffinity(harness))):
            run_launch(rig, case, brief)
        assert during
        assert all(cpus == before & service for cpus in during)
        assert os.sched_getaffinity(0) == before
        launch_id = rig.launch(LaunchPlan())
        rig.start(launch_id)
        assert os.sched_getaffinity(0) == before & service
    assert os.sched_getaffinity(0) == before  # a rig that is closed meanwhile


def test_a_rig_is_built_once_and_closed_at_will(session: HostSession) -> None:
    with built(session, Case("veth"), node="netns") as rig:
        directory = rig.session.dir
        with pytest.raises(ProvisionError, match="is built already"):
            rig.build()
        rig.preflighted = True
        rig.pause()
        rig.resume()
        assert not rig.preflighted
        rig.close()
        rig.close()
        with pytest.raises(ProvisionError, match="is not built"):
            rig.check()
        assert [path.name for path in directory.iterdir() if path.name.startswith("r")] == []
        rig.build()  # as for a rig that is fresh for each launch
        assert len(rig.endpoints) == 2


def test_what_a_failure_leaves_is_undone(session: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second pair cannot be made: nodes, links and directory of the first go too."""
    made: list[str] = []
    create = links.create_pair

    def fails_later(session: HostSession, a: Any, b: Any, **more: Any) -> None:
        if made:
            raise ProvisionError("no more links")
        create(session, a, b, **more)
        made.append(a.name)

    monkeypatch.setattr(links, "create_pair", fails_later)
    case = Case("veth", pairs=2)
    placement = Placement("cooperative", (), (CPUS[0],) * 4, (CPUS[0],), 0, 64)
    rig = Rig(case, placement, session, "netns")
    with pytest.raises(ProvisionError, match=r"^no more links$"):
        rig.build()
    assert made == ["eth0"]
    assert list(Path("/run/netns").glob(f"icb{session.id}-*")) == []
    pending = {entry.kind for entry in session.journal.pending()}
    assert pending & {"netns", "link", "container", "process"} == set()
    rig.close()


def test_undoing_goes_on_after_an_error(session: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(switch: VethLink) -> None:
        raise ProvisionError("the link clings")

    monkeypatch.setattr(VethLink, "stop", cannot)
    rig = Rig(Case("veth"), PLACEMENT, session, "netns")
    rig.build()
    with pytest.raises(ProvisionError, match=r"(?s)parts of the rig could not be removed:\nthe link clings"):
        rig.close()
    assert list(Path("/run/netns").glob(f"icb{session.id}-*")) == []


def test_processes_of_a_launch_that_fails_are_gone(session: HostSession) -> None:
    with built(session, Case("veth"), node="netns") as rig:
        a, b = (endpoint.address for endpoint in rig.endpoints)
        good = (str(workload_path()), "recv", b.ip, b.mac, a.ip, a.mac, "--supervised")
        bad = (str(workload_path()), "send", a.ip, a.mac, b.ip, b.mac, "--no-such-option")
        processes = (
            PlannedProcess(1, good),
            PlannedProcess(0, bad, socket=str(session.dir / "never")),
            PlannedProcess(1, good, stage=1),
        )
        plan = LaunchPlan(processes, hello_timeout_s=5)
        with pytest.raises(
            WorkloadError, match=r"(?s)endpoint 0 ended with exit code 2 before it opened .*no-such-option"
        ):
            rig.launch(plan)
        assert rig.launch(LaunchPlan())  # the next one runs


def test_huge_pages_are_claimed_when_a_dpdk_application_comes(session: HostSession) -> None:
    with built(session, Case("veth"), node="netns") as rig:
        claims: list[int] = []
        rig.host._reserve = claims.append  # type: ignore[method-assign,assignment]
        rig.end(rig.launch(LaunchPlan((PlannedProcess(0, ("/bin/true", "send")),))))
        assert claims == []
        for _ in range(2):
            rig.end(rig.launch(LaunchPlan((PlannedProcess(0, ("/bin/true", "dpdk-send")),))))
        assert len(claims) == 1


@pytest.mark.parametrize("name", ["ovs", "vpp"])
def test_ports_to_the_kernel_take_no_huge_pages_of_the_switch(
    session: HostSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    claims: list[int] = []
    monkeypatch.setattr(hugepages, "reserve", lambda session, node, mib: claims.append(mib))
    monkeypatch.setattr(hugepages, "release", lambda session, node, mib: None)
    case = Case(name, port="afpacket")
    assert builtin_switches()[name]().needs(1, 1).hugepages_mib > 0
    with built(session, case, node="netns"):
        assert claims == []
