# SPDX-License-Identifier: BSD-3-Clause
"""Several queues on real paths: frames are where the hash says, and every one of them is in the accounts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from ipaddress import ip_address

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.case_rig import Rig
from tests.host.node_tools import clean, session
from tests.host.rig_tools import built, running

__all__ = ["clean", "session"]  # fixtures

#: Without a warm-up the totals of the windows are those of the launch.
BRIEF = Settings(warmup_s=0.0, duration_s=0.3, drain_s=0.5, repeats=1)
RATE = Rate(4000)
FLOWS = 50
#: Of Microsoft's "Verifying the RSS hash calculation".
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
ATTEMPTS = 4


def toeplitz(data: bytes) -> int:
    """The hash by its definition: for each bit that is set, the 32 bits of the key from there on."""
    key, bits = int.from_bytes(KEY), len(KEY) * 8
    of_bits = int.from_bytes(data)
    length = len(data) * 8
    found = 0
    for place in range(length):
        if of_bits >> (length - 1 - place) & 1:
            found ^= key >> (bits - 32 - place) & 0xFFFFFFFF
    return found


def test_the_hash_is_the_published_one() -> None:
    source, destination = ip_address("66.9.149.187").packed, ip_address("161.142.100.80").packed
    assert toeplitz(source + destination) == 0x323E8FC2
    assert toeplitz(source + destination + (2794).to_bytes(2) + (1766).to_bytes(2)) == 0x51CCC178


def by_queue(sender: Address, receiver: Address, frames: int, queues: int) -> list[int]:
    """How many of a sender's frames are in each queue, when its flows take turns."""
    counts: Counter[int] = Counter()
    for flow in range(FLOWS):
        source = ip_address(sender.ip) if flow == 0 else ip_address("100.64.0.0") + flow
        hashed = toeplitz(source.packed + ip_address(receiver.ip).packed + 2 * (9).to_bytes(2))
        counts[hashed % 128 % queues] += frames // FLOWS + (flow < frames % FLOWS)
    return [counts[queue] for queue in range(queues)]


def launched(rig: Rig, case: Case) -> Launch:
    """A launch whose sender kept its rate, on a host that others use, too."""
    for _ in range(ATTEMPTS):
        launch = run_launch(rig, case, BRIEF)
        assert launch.invalid in (None, "clock"), launch.evidence
        if launch.invalid is None and launch.total("sent") > 500:
            return launch
    raise AssertionError(f"in {ATTEMPTS} launches the sender never had its CPU for long enough")


def check(launch: Launch, rig: Rig, *, kept: bool) -> None:
    """Each direction's frames by queue and in its account; ``kept``: a queue of the one end is one of the other."""
    queues = rig.case.traffic.queues
    for pair in launch.pairs:
        ends = [endpoint.address for endpoint in rig.endpoints[:2]]
        sender, receiver = ends[::-1] if pair.direction == "ba" else ends
        assert list(pair.sent_by_queue) == by_queue(sender, receiver, pair.sent, queues)
        assert min(pair.sent_by_queue) > 0
        assert pair.sent == pair.received + pair.lost
        assert (pair.late, pair.corrupted) == (0, 0)
        assert sum(pair.received_by_queue) == pair.received + pair.duplicated
        assert len(pair.received_by_queue) == queues
        if kept and not pair.lost:
            assert pair.received_by_queue == pair.sent_by_queue
        assert (pair.duplicated, pair.reordered) == (0, 0)


def measure(session: HostSession, case: Case, *, kept: bool) -> None:
    with built(session, case) as rig:
        check(launched(rig, case), rig, kept=kept)


def test_frames_are_in_the_queues_that_their_hash_says(session: HostSession) -> None:
    measure(session, Case("testpmd", Frames(traffic=Traffic(flows=f"{FLOWS}", queues=2), rate=RATE)), kept=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("switch", "port", "queues", "kept"),
    [
        ("ovs", None, 2, False),
        ("ovs", "vhost-user-packed", 3, False),
        ("vpp", None, 2, False),
        ("vpp", "memif", 2, False),
        ("testpmd", "memif", 2, True),
        ("direct", None, 4, True),
        ("direct", "vhost-user-packed", 2, True),
        ("direct", "memif", 3, True),
    ],
)
def test_every_path_with_queues_keeps_its_accounts(
    session: HostSession, switch: str, port: str | None, queues: int, kept: bool
) -> None:
    traffic = Traffic(128, flows=f"{FLOWS}", queues=queues)
    measure(session, Case(switch, Frames(traffic=traffic, rate=RATE), port=port, check_payload=True), kept=kept)


@pytest.mark.slow
def test_both_directions_and_as_fast_as_it_goes(session: HostSession) -> None:
    """Where queues are full, frames wait for them or are lost, and none is forgotten."""
    traffic = Traffic(flows=f"{FLOWS}", queues=2, both=True)
    with built(session, Case("ovs", Frames(traffic=traffic, rate=RATE))) as rig:
        check(launched(rig, rig.case), rig, kept=False)
        fast = rig.case.sending(traffic=replace(traffic, both=False), rate=Rate())
        check(launched(rig, fast), rig, kept=False)


@pytest.mark.slow
def test_round_trips_come_back_by_their_queue(session: HostSession) -> None:
    case = Case("testpmd", Frames(Traffic(flows=f"{FLOWS}", queues=2), 4, RATE), dimension="latency")
    with built(session, case) as rig:
        launch = launched(rig, case)
    (pair,) = launch.pairs
    assert launch.rtt is not None
    assert launch.rtt.count == pair.received
    assert sum(pair.sent_by_queue) == pair.sent
    if pair.received == pair.sent:
        assert pair.received_by_queue == pair.sent_by_queue


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ovs", "testpmd"])
def test_queues_are_spread_over_workers(session: HostSession, name: str) -> None:
    """Each of two workers takes in the frames of its queue, as the switch counts them."""
    case = Case(name, Frames(Traffic(flows=f"{FLOWS}", queues=2), 4, Rate(2000)), switch_cores=2)
    try:
        builtin_switches()[name]().probe(session, None)
    except Unsupported as reason:
        pytest.skip(str(reason))
    # No CPU is left for the endpoints alone on a small host: slow, but every frame arrives.
    placement = Placement("cooperative", switch=(0, 1), endpoints=(0, 1), service=(0,), numa_node=0, yield_every=1)
    with running(Rig(case, placement, session, "lxc")) as rig:
        before = rig.host.switch.busy()
        launch = launched(rig, case)
        after = rig.host.switch.busy()
    (pair,) = launch.pairs
    first, last = (busy.frames if busy is not None else None for busy in (before, after))
    assert first is not None
    assert last is not None
    taken = [last[cpu] - first[cpu] for cpu in ("0", "1")]
    # Control frames beside them: the sender's end marks, the receivers' announcements, what the preflight sent.
    assert all(more >= sent for more, sent in zip(taken, pair.sent_by_queue, strict=True))
    assert launch.frames_by_core is not None
    assert set(launch.frames_by_core) == {"0", "1"}
    assert all(frames > 0 for frames in launch.frames_by_core.values())
