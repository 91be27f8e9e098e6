# SPDX-License-Identifier: BSD-3-Clause
"""Frames from one virtual function to another: what the lane runs in its guest, an ordinary scenario."""

from __future__ import annotations

import pytest

from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin.fixture import Icbench

#: An emulated card on a shared machine: enough frames to know that they pass, no figure is judged.
RATE = "1k"
LEAST = 100
SETTINGS = {"repeats": 1, "warmup": 0.2, "duration": 1.0, "drain": 1.0, "reference": False}


def check_accounts(measurement: Measurement, *, foreign: bool = False) -> None:
    """Every frame is accounted for, and enough arrived; ``foreign`` ones only where the kernel answers, too."""
    # By name: pytest shows a whole measurement otherwise, which takes a serial console minutes.
    invalid = f"{measurement.reason}: {measurement.evidence}" if measurement.verdict else None
    sent, received, lost, others = (
        measurement.frames.sent,
        measurement.frames.received,
        measurement.frames.lost,
        measurement.frames.foreign,
    )
    assert invalid is None
    assert sent == received + lost
    assert received >= LEAST
    assert foreign or others == 0


@pytest.mark.icbench(switch="sriov", packet_size=[64, 1518], rate=RATE, **SETTINGS)
def test_dpdk(icbench: Icbench) -> None:
    """DPDK over VFIO."""
    check_accounts(icbench.throughput())


@pytest.mark.icbench(switch="sriov", api=["udp-mmsg", "raw"], packet_size=[64, 1518], rate=RATE, **SETTINGS)
def test_sockets(icbench: Icbench) -> None:
    """The kernel's interfaces, moved into the containers."""
    check_accounts(icbench.throughput())


@pytest.mark.icbench(dimension="latency", switch="sriov", api=["dpdk", "udp-mmsg"], burst=4, rate=RATE, **SETTINGS)
def test_round_trips(icbench: Icbench) -> None:
    """There and back, by either way of using a function."""
    measurement = icbench.latency()
    check_accounts(measurement)
    samples = measurement.round_trips.rtt_samples
    assert samples >= LEAST


@pytest.mark.icbench(switch="sriov", api=["dpdk", "udp-mmsg"], pairs=2, rate=RATE, **SETTINGS)
def test_two_pairs(icbench: Icbench) -> None:
    """Four functions; no frame reaches the other pair."""
    measurement = icbench.throughput()
    check_accounts(measurement)
    received = [pair.received for pair in measurement.frames.per_pair]
    assert len(received) == 2
    assert min(received) > 0


@pytest.mark.icbench(switch="sriov", api=["dpdk", "udp-mmsg"], functions="route", rate=RATE, **SETTINGS)
def test_through_a_router(icbench: Icbench) -> None:
    """l3fwd with two functions of the card, and the kernel with two; VLANs keep both sides apart."""
    measurement = icbench.throughput()
    check_accounts(measurement)
    assert [work.pair for work in measurement.functions or ()] == [1]


@pytest.mark.icbench(switch="veth", api="af_packet", rate=RATE, **SETTINGS)
def test_dpdk_over_a_kernel_interface(icbench: Icbench) -> None:
    """Nothing of SR-IOV: huge pages for such an application where cgroups limit them."""
    check_accounts(icbench.throughput(), foreign=True)
