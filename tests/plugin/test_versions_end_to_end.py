# SPDX-License-Identifier: BSD-3-Clause
"""Versions side by side on the real host: a slower one is found. Needs root."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pytest_icbench.model.measurement import Measurement
from tests.host.snapshot import left_since, take
from tests.plugin.conftest import Runner

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]

# Time, not rate: what limits a rate on a loaded machine need not be the switch, and then nothing is decided. The CPUs
# may move meanwhile: what differs here is far more than that changes.
SLOW = """
from pytest_icbench.host.resource.cpu_meter import CpuMeter
from pytest_icbench.model.placement import CpuState

CpuMeter.read = lambda *_: CpuState()

@pytest.mark.icbench(switch="forward-raw", mode="delay100us", rate=1000, burst=4, dimension="latency",
                     repeats=7, warmup=0.05, duration=0.2, drain=0.2, reference=False)
def test_a(icbench):
    icbench.gate(icbench.latency())
"""


@pytest.fixture(autouse=True)
def unchanged_host() -> Iterator[None]:
    """Whatever a test does, the host is afterwards as it was."""
    before = take()
    yield
    assert left_since(before) == []


def results(inner: Runner) -> list[Measurement]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [Measurement.from_json(line) for line in text.splitlines()]


def test_a_slower_version_is_found(inner: Runner) -> None:
    inner.write(test_x=SLOW)
    inner.spawn("--icbench-candidate=forward-raw:slow=mode:delay4ms").assert_outcomes(failed=1)
    base, now = results(inner)
    assert (base.case, now.case) == (
        "forward-raw:delay100us-64B-b4-1vs1-R1k",
        "forward-raw:delay100us:slow-64B-b4-1vs1-R1k",
    )
    assert (now.verdict, now.decision) == ("REGRESSED", "REGRESSED")
    assert now.side_by_side is not None
    assert (now.side_by_side.reason, now.side_by_side.pairs) == (None, 9)
    assert base.treatment["switch"]["binary"].startswith("icbench-workload (sha256 ")
    # There and back: 8 ms, and 0.2 ms.
    assert now.round_trips.rtt_p50_ns is not None
    assert now.round_trips.rtt_p50_ns > 8e6
    assert now.side_by_side.ratio > 1.5
    assert now.treatment["candidate"] == {"target": "forward-raw", "kind": "mode", "value": "delay4ms"}
    # Neighbours in time: each pair has a launch of both sides, in an order that is drawn.
    sides = {side: (*each.per_launch, *each.per_other_launch) for side, each in (("b", base), ("n", now))}
    order = sorted((launch.started_at, side) for side, launches in sides.items() for launch in launches)
    sequence = "".join(side for _, side in order)
    pairs = [sequence[place : place + 2] for place in range(0, len(sequence), 2)]
    assert len(pairs) >= 7
    assert {"".join(sorted(pair)) for pair in pairs} == {"bn"}
