# SPDX-License-Identifier: BSD-3-Clause
"""Measurements for real: frames through every switch, accounted for one by one, and what becomes of faults."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.launch import launcher as launch_module
from pytest_icbench.measure.launch import preflight as preflight_module
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.side import Side
from pytest_icbench.model.api_techniques import SOCKET_APIS
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.case_rig import Rig
from tests.host.node_tools import clean, session
from tests.host.rig_tools import acting, built

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

QUICK = Settings(max_duration_s=1.0, warmup_s=0.1, duration_s=0.3, drain_s=0.3, repeats=2)
ONCE = replace(QUICK, repeats=1)
#: A sender's end mark is repeated, a receiver announces itself: frames that only a switch's own counters see.
MOST_CONTROL_FRAMES = 8

SOCKETS = [
    *(Case(switch, api=api) for switch in ("veth", "linux-bridge") for api in SOCKET_APIS),
    Case("veth", api="udp", blocking=True),
    Case("veth", api="raw-mmsg", check_payload=True),
    Case("linux-bridge", api="udp-mmsg", pairs=2),
]
DPDK = [
    Case("veth", api="af_packet"),
    Case("veth", api="af_xdp"),
    Case("direct"),
    Case("direct", port="vhost-user-packed"),
    Case("direct", port="memif"),
    Case("testpmd"),
    Case("testpmd", Frames(Traffic(1500)), check_payload=True),
    Case("basicfwd"),
    Case("ovs"),
]


#: Why a launch says nothing of the path: the host had no time for its processes.
BUSY = ("clock", "generator-bound")
TRIES = 5


def ids(case: Case) -> str:
    return case.id


def once(rig: Rig, case: Case) -> Measurement:
    """Measures with one launch; another one if the host had no time for it."""
    for _ in range(TRIES):
        measured = measure(Side(rig, case), ONCE)
        if measured.reason not in BUSY:
            break
    return measured


@pytest.mark.slow
@pytest.mark.parametrize("case", [*SOCKETS, *DPDK], ids=ids)
def test_every_frame_is_accounted_for(session: HostSession, case: Case) -> None:
    # libxdp looks its program up by number, which a container may not.
    with built(session, case, node="netns" if case.api == "af_xdp" else "lxc") as rig:
        flat_out = once(rig, case)
        paced = once(rig, case.sending(rate=Rate(20_000)))
        latency = once(rig, replace(case, dimension="latency").sending(burst=4, rate=Rate(2000)))
    for found in (flat_out, paced, latency):
        assert (found.verdict, found.evidence, found.launches) == (None, None, 1)
        assert found.frames.sent == found.frames.received + found.frames.lost
        assert found.frames.scheduled == found.frames.sent + found.frames.refused
        assert (found.frames.duplicated, found.frames.corrupted) == (0, 0)
        assert found.frames.received > 0
    # A launch of 0.3 s; a sender that is taken off its CPU at the end has no time left to catch up.
    asked = 6000 * case.pairs
    assert 0.5 * asked < paced.frames.scheduled <= asked + case.burst * case.pairs
    assert flat_out.frames.throughput_pps is not None
    assert paced.frames.throughput_pps is not None
    assert flat_out.frames.throughput_pps > paced.frames.throughput_pps
    assert latency.round_trips.rtt_samples == latency.frames.received
    assert latency.round_trips.rtt_p50_ns is not None
    assert 1000 < latency.round_trips.rtt_p50_ns < 1e9


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case("testpmd"), Case("ovs")], ids=ids)
def test_the_switchs_own_counters_agree(session: HostSession, case: Case) -> None:
    with built(session, case) as rig:
        measure(Side(rig, case), ONCE)
        before = rig.counters()
        # Without a warm-up every frame is in a window, so that nothing but control frames makes a difference.
        launch = run_launch(rig, case, replace(QUICK, warmup_s=0.0))
        after = rig.counters()
    assert launch.invalid is None
    assert before is not None
    assert after is not None

    def counted(index: int, name: str) -> int | None:
        old, new = getattr(before[index], name), getattr(after[index], name)
        return None if old is None or new is None else new - old

    for index, name, ours in (
        (0, "rx_packets", launch.total("sent")),
        (1, "tx_packets", launch.total("received")),
    ):
        found = counted(index, name)
        assert found is None or 0 <= found - ours <= MOST_CONTROL_FRAMES, (index, name, found, ours)
    assert counted(0, "rx_packets") is not None


@pytest.mark.slow
def test_the_reference_link_is_measured_beside_the_case(session: HostSession) -> None:
    case = Case("linux-bridge", api="udp-mmsg")
    reference = reference_case(case, "veth", family="kernel")
    assert reference is not None
    with built(session, case) as rig, built(session, reference, beside=rig) as beside:
        found = measure(Side(rig, case), QUICK, Side(beside, reference))
        assert rig.preflighted
    assert found.reference_evidence is None
    # Launches in another state of the host stand beside the figures.
    elsewhere = [launch for launch in found.per_other_launch if launch.repeated == "reference"]
    assert len(found.per_reference_launch) + len(elsewhere) >= 2
    assert found.ratio_to_reference is not None
    assert 0.05 < found.ratio_to_reference < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "number", "sentence"),
    [
        (0, signal.SIGKILL, "send of pair 1 was ended by signal 9"),
        (1, signal.SIGKILL, "recv of pair 1 was ended by signal 9"),
        (0, signal.SIGTERM, r"send of pair 1 ended before its time \(reason: signal\)"),
        (0, signal.SIGSTOP, "send of pair 1 said nothing for .* it hangs"),
        (1, signal.SIGSTOP, "recv of pair 1: still running .* it hangs"),
    ],
)
@pytest.mark.parametrize("case", [Case("veth", api="udp"), Case("direct")], ids=ids)
def test_a_workload_that_dies_or_hangs_fails_its_case_and_the_next_one_runs(
    session: HostSession, monkeypatch: pytest.MonkeyPatch, case: Case, index: int, number: int, sentence: str
) -> None:
    settings = replace(QUICK, duration_s=5.0 if (index, number) == (0, signal.SIGSTOP) else 0.6, repeats=1)
    with built(session, case) as rig, monkeypatch.context() as patience:
        if index == 1:
            patience.setattr(launch_module, "END_MARGIN_S", 1.0)

        def strike(pids: Mapping[int, int]) -> None:
            os.kill(pids[index], number)
            if index == 0:  # not before: till then a sender may be silent because others have its CPU
                patience.setattr(launch_module, "SILENCE_S", 1.0)

        began = time.monotonic()
        with acting(rig, strike), pytest.raises(WorkloadError, match=sentence):
            run_launch(rig, case, settings)
        assert time.monotonic() - began < 10
        patience.undo()
        found = measure(Side(rig, case), ONCE)
        assert (found.verdict, found.launches) == (None, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["testpmd", "ovs"])
def test_a_switch_that_dies_is_named(session: HostSession, name: str) -> None:
    case = Case(name)
    with built(session, case) as rig:
        killed = acting(rig, lambda _pids: os.kill(switch_pid(rig), signal.SIGKILL))
        with killed, pytest.raises(ProvisionError, match=name):
            run_launch(rig, case, replace(QUICK, duration_s=1.0))


def switch_pid(rig: Rig) -> int:
    """Of the switch's main process, found by the session that it belongs to."""
    executable = {"testpmd": "dpdk-testpmd", "ovs": "ovs-vswitchd"}[rig.case.switch]
    mark = f"ICBENCH_SESSION={rig.session.id}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            command = Path((process / "cmdline").read_bytes().split(b"\0")[0].decode())
        except OSError:
            continue
        if mark in environment and command.name.startswith(executable):
            return int(process.name)
    raise AssertionError(f"no {executable} runs")


@pytest.mark.slow
def test_the_preflight_names_the_direction_of_a_broken_path(
    session: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side b's interface takes no frames of this size: what a asks never arrives."""
    monkeypatch.setattr(preflight_module, "PATIENCE_S", 0.7)
    case = Case("linux-bridge", Frames(Traffic(512)), api="raw")
    with built(session, case) as rig:
        start, end = rig.start, rig.end

        networks: list[int] = []

        def break_and_start(launch_id: str, delay_s: float = 0.02) -> int:
            # Held open: the process is gone when the path is mended for the next try.
            networks.append(os.open(f"/proc/{rig.pids(launch_id)[1]}/ns/net", os.O_RDONLY))
            links.set_mtu("eth0", 68, netns=f"/proc/self/fd/{networks[-1]}")
            return start(launch_id, delay_s)

        def mend_and_end(launch_id: str) -> None:
            network = networks.pop()
            links.set_mtu("eth0", 1500, netns=f"/proc/self/fd/{network}")
            os.close(network)
            end(launch_id)

        rig.start, rig.end = break_and_start, mend_and_end  # type: ignore[method-assign]
        found = measure(Side(rig, case), QUICK)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "no-forwarding", 0)
    assert "from a to b none arrived" in str(found.evidence)
