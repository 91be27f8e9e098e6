# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's paths for real: every mode, what offloads do, a path that lies, and what is left after SIGKILL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from pytest_icbench.driver.switch.common.kernel import KernelPath
from pytest_icbench.driver.switch.kernel import xdp
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import RUN_DIR, HostSession, SessionOptions
from pytest_icbench.host.net import bpf
from pytest_icbench.host.recover import recover
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.routes import ROUTER_MODES
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot, test_switch_counters
from tests.host.node_tools import clean, session, tidy_snapshot
from tests.host.rig_tools import built, driver
from tests.host.test_switch_counters import END_MARKS, difference
from tests.host.test_switches import BRIEF, assert_heard, one_way, there_and_back

__all__ = ["clean", "session"]  # fixtures

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.skipif(os.geteuid() != 0, reason="links and programs need root: run pytest with sudo"),
]

PATHS = {name: cls for name, cls in builtin_switches().items() if issubclass(cls, KernelPath)}
MODES = [Case(name, mode=mode) for name, cls in PATHS.items() for mode in cls.modes if mode not in ROUTER_MODES]


@pytest.mark.slow
@pytest.mark.parametrize("case", MODES, ids=lambda case: case.id)
def test_every_mode_passes_frames_both_ways(session: HostSession, case: Case) -> None:
    with built(session, case, node="netns") as rig:
        assert_heard(there_and_back(rig, case))
        api = "raw-mmsg" if "raw-mmsg" in PATHS[case.switch].apis else None
        assert_heard(one_way(rig, replace(case, api=api), 5000))
        rig.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHS)
def test_counters_agree_with_the_endpoints(session: HostSession, name: str) -> None:
    test_switch_counters.test_counters_agree_with_the_endpoints(session, name)


def test_a_program_that_the_verifier_refuses_is_reported_with_its_last_line() -> None:
    with pytest.raises(ProvisionError) as caught, bpf.load_program("xdp", bpf.leave(), name="nothing"):
        pytest.fail("a program without a result was taken")
    assert str(caught.value) == "the kernel refused the BPF program nothing (Permission denied): R0 !read_ok"


@pytest.fixture
def configured(clean: None, request: pytest.FixtureRequest) -> Iterator[HostSession]:
    """A session with a user's configuration of the switch ``request.param[0]``."""
    name, config = request.param
    with HostSession(UNDO_KINDS, SessionOptions(configs={name: config})) as session:
        yield session


@pytest.mark.parametrize("configured", [("xdp", {"offloads": {"checksum": "true"}})], indirect=True)
def test_checksums_left_to_a_device_are_found_by_the_preflight_and_named(configured: HostSession) -> None:
    case = Case("xdp")
    with built(configured, case, node="netns") as rig:
        fault = preflight(rig, case, BRIEF)
        assert fault is not None
        assert fault[0] == "no-forwarding"
        known = rig.path_fault()
        assert known is not None
        assert known.endswith("leave checksum out")
        # A program that writes whole frames finishes their checksums itself.
        assert_heard(there_and_back(rig, replace(case, api="raw-mmsg")))


OFFLOADS = {"gro": "true", "tso": "false", "threaded-napi": "true", "rps": "1"}


@pytest.mark.parametrize("configured", [("route", {"offloads": OFFLOADS})], indirect=True)
def test_offloads_are_applied_and_reported(configured: HostSession) -> None:
    case = Case("route")
    with built(configured, case, node="netns") as rig:
        assert_heard(there_and_back(rig, case))
        in_force = rig.switch_facts.config["offloads"]
    for place in ("endpoint", "port"):
        assert (in_force[place]["gro"], in_force[place]["tso"]) == (True, False)
    assert (in_force["threaded-napi"], in_force["rps"]) == ("true", "1")


@pytest.mark.parametrize("configured", [("route", {"offloads": {"rps": "ffffffff,ffffffff,ffff"}})], indirect=True)
def test_a_setting_that_the_kernel_refuses_is_named(configured: HostSession) -> None:
    refused = "eth0 cannot have rps = ffffffff,ffffffff,ffff"
    with pytest.raises(ProvisionError, match=refused), built(configured, Case("route"), node="netns"):
        pytest.fail("a mask of CPUs that there are not was taken")


#: ``BPF_JMP | BPF_JNE | BPF_K``, ``BPF_ALU64 | BPF_MOD | BPF_K``, ``BPF_ALU64 | BPF_MOV | BPF_X``.
_JUMP_UNLESS, _MODULO, _COPY = 0x55, 0x97, 0xBF
_RANDOM, _XDP_DROP = 7, 1
ONE_IN = 1000


def test_a_path_that_lies_is_named_by_the_accounts(session: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An XDP program that drops 1 in 1,000: frames are lost to the frame, and the ports' counters say where.

    A receiver that others keep from its CPU loses more, behind the path.
    """
    honest = xdp.redirect_by_port

    def lying(devices: int) -> bytes:
        draw = bpf.instruction(_COPY, 6, 1) + bpf.call(_RANDOM) + bpf.instruction(_MODULO, 0, value=ONE_IN)
        drop = bpf.instruction(_JUMP_UNLESS, 0, offset=2, value=0) + bpf.move(0, _XDP_DROP) + bpf.leave()
        return draw + drop + bpf.instruction(_COPY, 1, 6) + honest(devices)

    monkeypatch.setattr(xdp, "redirect_by_port", lying)
    case = Case("xdp", Frames(rate=Rate(60_000)))
    with built(session, case, node="netns") as rig:
        before = rig.counters()
        launch = run_launch(rig, case, replace(BRIEF, warmup_s=0.0, duration_s=1.0))
        after = rig.counters()
    assert_heard(launch)
    lost, sent = launch.total("lost"), launch.total("sent")
    came, given = difference(before, after, "rx_packets"), difference(before, after, "tx_packets")
    in_path = came[0] - given[1]
    assert sent / ONE_IN / 3 < in_path < 3 * sent / ONE_IN
    assert in_path <= lost + END_MARKS
    if launch.disturbed is None:
        assert lost <= in_path


def keep_for_joining(netns: str) -> None:
    """Has a router's links keep a datagram for those behind it: a fast kernel polls each before the next one comes."""
    keep = "for file in /sys/class/net/*/gro_flush_timeout; do echo 2000000 >$file; done"
    inside = ["unshare", "--mount", "sh", "-c", f"mount -t sysfs sysfs /sys && {keep}"]
    subprocess.run(["nsenter", f"--net={netns}", *inside], check=True)


JOINS = {"gro": "true", "udp-gro": "true", "threaded-napi": "true"}


@pytest.mark.skipif(
    "ICBENCH_GUEST" in os.environ,
    reason="in the guest no datagram was ever joined, and why is not known: the host proves it",
)
@pytest.mark.parametrize("configured", [("route", {"offloads": JOINS})], indirect=True)
def test_a_path_that_joins_datagrams_is_named_by_the_accounts(configured: HostSession) -> None:
    """Raw sockets get several datagrams as one. For UDP sockets the kernel parts them, and the accounts are right."""
    raw = Case("route", Frames(Traffic(500)), api="raw-mmsg", check_payload=True)
    with built(configured, raw, node="netns") as rig:
        router = driver(rig)
        assert isinstance(router, KernelPath)
        keep_for_joining(router.netns)
        joined = one_way(rig, raw, 20_000)
        assert_heard(one_way(rig, replace(raw, api="udp-mmsg"), 5000))
    assert joined.invalid == "corrupted"
    assert joined.evidence is not None
    assert "datagrams longer than any that was sent" in joined.evidence
    assert "rx-udp-gro-forwarding off" in joined.evidence


#: Builds a rig of each path that this kernel has, says so, and waits to be killed.
HARNESS = """
import os, sys, time
# The installed package is the one tested, and not the checkout's, which has no workload in it.
sys.path.append(sys.path.pop(0))
from contextlib import ExitStack
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.case import Case
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.rig_tools import built
stack = ExitStack()
session = stack.enter_context(HostSession(UNDO_KINDS))
for name in sys.argv[1:]:
    try:
        stack.enter_context(built(session, Case(name), node="netns"))
    except BaseException as error:
        if type(error).__name__ != "Skipped":
            raise
        print("skipped", name, flush=True)
    else:
        print("built", name, flush=True)
print("up", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_nothing_of_a_path_is_left_after_sigkill() -> None:
    before = tidy_snapshot()
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, *PATHS], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    lines = [line.split() for line in takewhile(lambda line: line != "up\n", process.stdout)]
    assert process.poll() is None
    assert {name for _, name in lines} == PATHS.keys()
    assert len([word for word, _ in lines if word == "built"]) >= 1
    process.kill()
    process.communicate()
    recover(RUN_DIR, UNDO_KINDS)
    assert snapshot.left_since(before) == []
