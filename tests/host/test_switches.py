# SPDX-License-Identifier: BSD-3-Clause
"""Each switch for real: frames both ways, endpoint processes that come and go, counters, pauses, sizes, pairs."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from pytest_icbench.driver.switch.common import userspace_ports
from pytest_icbench.driver.switch.common.kernel import KernelPath
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.repetition import MOST_FAULTS
from pytest_icbench.model.api_techniques import NETDEV_APIS
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import ATTACH
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.routes import ROUTER_MODES
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.exchange import Exchange
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from pytest_icbench.verdict_reasons import HARNESS_REASONS, PATH_REASONS
from tests.host.node_tools import clean, cpu_ticks, session
from tests.host.rig_tools import built, driver

__all__ = ["clean", "session"]  # fixtures

BRIEF = Settings(warmup_s=0.05, duration_s=0.2, drain_s=0.3, repeats=1)
#: ``attach`` makes nothing: test_attach.py brings the containers that it needs.
MADE = {name: driver for name, driver in builtin_switches().items() if name != ATTACH}
#: Every port and every mode of every switch, in its natural API.
#: The kernel's paths have no process to which endpoints connect: their tests stand in test_kernel_paths.py.
PATHS = [name for name, driver in MADE.items() if issubclass(driver, KernelPath)]
CONNECTING = {name: driver for name, driver in MADE.items() if name not in PATHS}
#: memif stands apart, in test_switch_memif.py.
MEMIF = "memif"
PORTS = [
    Case(name, port=port) for name, driver in CONNECTING.items() for port in driver.ports if not port.startswith(MEMIF)
]
#: Those that route have tests of their own, in test_routers.py.
MODES = [
    Case(name, mode=mode) for name, driver in CONNECTING.items() for mode in driver.modes if mode not in ROUTER_MODES
]
RELAUNCHES = 2


def ids(case: Case) -> str:
    return case.id


def launched(rig: Rig, case: Case) -> Launch:
    """A brief launch; another one where harness or host were at fault, as in a measurement."""
    for _ in range(MOST_FAULTS):
        launch = run_launch(rig, case, BRIEF)
        kept_off = launch.invalid in PATH_REASONS and launch.disturbed is not None
        if not (kept_off or launch.invalid in HARNESS_REASONS):
            return launch
    return run_launch(rig, case, BRIEF)


def there_and_back(rig: Rig, case: Case) -> Launch:
    """A launch of client and server: every frame crosses the switch twice."""
    return launched(rig, replace(case, dimension="latency").sending(burst=4, rate=Rate(2000)))


def one_way(rig: Rig, case: Case, pps: int | None) -> Launch:
    return launched(rig, case.sending(rate=Rate(pps)))


def assert_heard(launch: Launch, *, foreign: int = 0) -> None:
    assert (launch.invalid, launch.evidence) == (None, None)
    assert launch.total("received") > 0
    assert launch.total("foreign") <= foreign


@pytest.mark.slow
@pytest.mark.parametrize("case", [*PORTS, *MODES], ids=ids)
def test_endpoint_processes_come_and_go(session: HostSession, case: Case) -> None:
    come_and_go(session, case)


def come_and_go(session: HostSession, case: Case) -> None:
    with built(session, case) as rig:
        for _ in range(RELAUNCHES):
            assert_heard(there_and_back(rig, case))
            rig.check()
        rig.pause()
        rig.resume()
        assert_heard(there_and_back(rig, case))
        # Else nothing would read as in the next session.
        assert session.id not in json.dumps(rig.switch_facts.config)


@pytest.mark.parametrize("name", ["basicfwd", "testpmd", "ovs", "forward"])
def test_the_vhost_library_of_a_switch_can_be_woken(session: HostSession, name: str) -> None:
    case = Case(name)
    with built(session, case) as rig:
        (pid,) = userspace_pids(rig)
        assert userspace_ports.wake(pid)
        assert_heard(there_and_back(rig, case))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basicfwd", "testpmd", "ovs", "vpp", "snabb", "forward"])
def test_a_paused_switch_uses_no_cpu(session: HostSession, name: str) -> None:
    case = Case(name)
    with built(session, case) as rig:
        (pid,) = userspace_pids(rig)
        busy_from, deadline = cpu_ticks(pid), time.monotonic() + 30
        while cpu_ticks(pid) - busy_from <= 10:  # it polls
            assert time.monotonic() < deadline
            time.sleep(0.05)
        rig.pause()
        rig.pause()
        time.sleep(0.05)
        idle_from = cpu_ticks(pid)
        time.sleep(0.5)
        assert cpu_ticks(pid) == idle_from
        rig.resume()
        assert_heard(there_and_back(rig, case))
        rig.pause()  # and a paused rig can be closed


def userspace_pids(rig: Rig) -> list[int]:
    """The processes that forward."""
    from pytest_icbench.driver.switch.dpdk.basicfwd import BasicFwd
    from pytest_icbench.driver.switch.dpdk.testpmd import TestPmd
    from pytest_icbench.driver.switch.forward import ForwardSwitch
    from pytest_icbench.driver.switch.ovs.userspace_datapath import OpenVSwitch
    from pytest_icbench.driver.switch.snabb import Snabb
    from pytest_icbench.driver.switch.vpp.vpp_switch import Vpp

    switch = driver(rig)
    if isinstance(switch, OpenVSwitch):
        return [switch.daemons.switch.process.pid]
    if isinstance(switch, ForwardSwitch):
        assert switch.forwarder is not None
        return [switch.forwarder.daemon.process.pid]
    assert isinstance(switch, BasicFwd | TestPmd | Snabb | Vpp)
    assert switch.daemon is not None
    return [switch.daemon.process.pid]


def test_the_time_after_which_snabb_forgets_is_the_users(clean: None) -> None:
    case, stranger = Case("snabb", pairs=2), b"\x02\0\0\0\0\x99"

    def ethernet(to: bytes, source: bytes) -> bytes:
        return to + source + b"\x88\xb5" + bytes(46)

    with (
        HostSession(UNDO_KINDS, SessionOptions(configs={"snabb": {"mac_timeout_s": 2}})) as session,
        built(session, case) as rig,
    ):
        exchange = Exchange(rig, case)
        asked = ethernet(stranger, bytes.fromhex(exchange.addresses[0].mac.replace(":", "")))

        def reached() -> set[int]:
            return {index for index, frames in exchange.exchange({0: [asked]}).items() if asked in frames}

        try:
            for expected, show in (({3}, True), ({1, 2, 3}, False)):
                deadline = time.monotonic() + 20
                while True:
                    if show:
                        exchange.exchange({3: [ethernet(b"\xff" * 6, stranger)]}, {0: 1, 1: 1, 2: 1})
                    if (found := reached()) == expected:
                        break
                    assert time.monotonic() < deadline, found
        finally:
            exchange.end()


@pytest.mark.parametrize("name", MADE)
def test_jumbo_frames(session: HostSession, name: str) -> None:
    case = Case(name, Frames(Traffic(9000)))
    with built(session, case) as rig:
        assert_heard(there_and_back(rig, case))
        assert_heard(one_way(rig, case, 5000))


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_pairs_do_not_hear_each_other(session: HostSession, name: str) -> None:
    case = Case(name, pairs=4 if name == "ovs" else 2)
    with built(session, case) as rig:
        there_and_back(rig, case)  # addresses are learnt
        launch = there_and_back(rig, case)
        assert_heard(launch)
        assert len(launch.pairs) == case.pairs
        assert all(pair.received for pair in launch.pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "api"),
    [
        (name, api)
        for name in ("veth", "linux-bridge", *PATHS)
        for api in NETDEV_APIS
        if api in builtin_switches()[name].apis
    ],
)
def test_dpdk_applications_use_kernel_interfaces(session: HostSession, name: str, api: str) -> None:
    case = Case(name, api=api)
    try:
        builtin_switches()[name]().probe_api(session, api)
    except Unsupported as reason:
        pytest.skip(str(reason))
    with built(session, case) as rig:
        for _ in range(2):
            # The kernel sees the frames too, and answers the first of them: nobody has the port.
            assert_heard(there_and_back(rig, case), foreign=16)
