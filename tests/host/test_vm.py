# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines for real, by KVM and by emulation: paths, mixed pairs, start-ups, and what is left of them.

They need QEMU and a kernel: that of /boot, or one named by ICBENCH_TEST_KERNEL.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.node.vm import qemu
from pytest_icbench.driver.node.vm.node import KERNEL, VmNode
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.kinds.runs import measure
from pytest_icbench.kinds.startup.startup_run import bear, maker_of
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.startup import Crowd
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import rig_tools
from tests.host.node_tools import CPU, clean
from tests.host.rig_tools import built

__all__ = ["clean"]  # fixture

pytestmark = pytest.mark.slow

QUICK = Settings(max_duration_s=4.0, warmup_s=0.1, duration_s=0.5, drain_s=0.3, repeats=2)
_NAMED = os.environ.get("ICBENCH_TEST_KERNEL")
OPTIONS = SessionOptions(binaries={KERNEL: _NAMED} if _NAMED else {})


@pytest.fixture(autouse=True)
def possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where there is no QEMU or no kernel."""
    try:
        VmNode.probe(HostSession.probing(OPTIONS))
    except Unsupported as reason:
        pytest.skip(f"{reason} (ICBENCH_TEST_KERNEL names a kernel)")
    monkeypatch.setattr(rig_tools, "require", lambda _: None)


@pytest.fixture
def session(clean: None) -> Iterator[HostSession]:
    with HostSession(UNDO_KINDS, OPTIONS) as session:
        yield session


@pytest.fixture(params=["kvm", "tcg"])
def accelerator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "kvm" and (reason := qemu.explain_no_kvm()) is not None:
        pytest.skip(reason)
    if request.param == "tcg":
        monkeypatch.setattr(qemu, "explain_no_kvm", lambda: "a test says so")
    return str(request.param)


def measured(session: HostSession, case: Case, node: str) -> Measurement:
    cls = builtin_switches()[case.switch]
    case = replace(case, port=case.resolved_port(cls))
    with built(session, case, node=node) as rig:
        return measure(Side(rig, case, api=case.resolved_api(cls)), QUICK)


CASES = [
    (Case("linux-bridge", Frames(rate=Rate(2000))), "vm"),
    (Case("linux-bridge", Frames(rate=Rate(2000)), dimension="latency", api="raw"), "netns+vm"),
    (Case("testpmd", Frames(rate=Rate(2000))), "vm+netns"),
    (Case("ovs", Frames(rate=Rate(2000))), "vm"),
]


@pytest.mark.parametrize(("case", "node"), CASES, ids=lambda value: value if isinstance(value, str) else value.switch)
def test_frames_pass_between_machines_and_containers(
    session: HostSession, accelerator: str, case: Case, node: str
) -> None:
    result = measured(session, case, node)
    if accelerator == "tcg":
        assert (result.verdict, result.reason) == ("INVALID", "emulated")
        assert result.per_launch[0].throughput_pps > 0, "frames pass all the same"
        return
    assert (result.verdict, result.evidence) == (None, None)
    assert all(pair.lost == 0 for launch in result.per_launch for pair in launch.pairs)


def test_a_machine_without_its_device_forwards_nothing(session: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that frames cross the machine's device: with another MAC address there, none arrives."""
    properties = qemu.device_properties
    monkeypatch.setattr(qemu, "device_properties", lambda mac, **more: properties("02:00:00:00:00:77", **more))
    result = measured(session, Case("linux-bridge", Frames(rate=Rate(2000)), api="raw"), "netns+vm")
    assert (result.verdict, result.reason) == ("INVALID", "no-forwarding")


def test_a_machine_has_its_cpu_and_qemu_the_others(session: HostSession) -> None:
    node = make_node("vm", session, NodeSpec(session.name("n"), [CPU]))
    try:
        facts = node.start()
        with qemu.Monitor(session.dir / f"{node.spec.name}.vm/qmp") as monitor:
            (thread,) = qemu.threads(monitor.call("query-cpus-fast"))
        assert os.sched_getaffinity(thread) == {CPU}
        others = os.sched_getaffinity(0) - {CPU}
        assert os.sched_getaffinity(facts.init_pid) == (others or {CPU})
    finally:
        node.stop()


def test_a_crowd_of_machines_answers_one_after_the_other(session: HostSession, accelerator: str) -> None:
    found, failure = bear(Crowd("vm", 2), lambda: maker_of(session, "vm", [CPU]), session, lambda _: None)
    assert (failure is None) == (accelerator == "kvm")
    assert len(found.answered_ns) == 2
    assert min(found.network_ns) > 50_000_000, "a machine boots once it is connected"
    assert found.idle[-1].memory_bytes > 2 * 50 * 2**20


def test_a_machine_that_dies_under_load_is_named(session: HostSession) -> None:
    case = Case("linux-bridge", Frames(rate=Rate(2000)), port="veth")
    with built(session, case, node="vm") as rig:
        init = rig.host._inits[1]
        launch = rig.launch

        def deadly(plan: object) -> str:
            identity = launch(plan)  # type: ignore[arg-type]
            os.kill(init, signal.SIGKILL)
            return identity

        rig.launch = deadly  # type: ignore[method-assign]
        result = measure(Side(rig, case, api="udp-mmsg"), QUICK)
    assert result.verdict == "INVALID"
    assert "gone" in (result.evidence or "")


def test_nothing_of_a_machine_is_left(session: HostSession) -> None:
    with built(session, Case("linux-bridge", Frames(rate=Rate(2000)), port="veth"), node="vm") as rig:
        pids = list(rig.host._inits.values())
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not list(session.dir.glob("*.vm"))
