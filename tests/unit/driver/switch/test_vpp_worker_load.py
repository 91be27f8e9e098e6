# SPDX-License-Identifier: BSD-3-Clause
"""What vpp prints of its work, and how busy its workers are by that."""

from __future__ import annotations

import subprocess
import time

import pytest

from pytest_icbench.driver.switch.protocol import Batches
from pytest_icbench.driver.switch.vpp.worker_load import (
    Load,
    Rounds,
    Sample,
    filled_rounds,
    linked_version,
    parse_batches,
    parse_frames,
    parse_rounds,
    read_run_times,
)
from tests.unit.driver.switch.vpp_host import RUNTIME


def test_version_and_batches_are_read() -> None:
    assert linked_version(b"\0libvlib.so.25.10\0") == "25.10"
    assert linked_version(b"ls") is None
    assert parse_batches(RUNTIME, "ethernet-input") == Batches(frames=640, calls=20)
    assert parse_batches("", "ethernet-input") == Batches(0, 0)
    found = parse_frames(RUNTIME, "ethernet-input")
    assert sum(found.values()) == 640
    assert found["vpp_wk_0"] == 320
    assert found["vpp_main"] == 0


def test_rounds_are_read_by_thread() -> None:
    assert parse_rounds(RUNTIME, "ethernet-input") == {"vpp_wk_0": Rounds(loops=36019468, dispatches=10)}
    assert parse_rounds("", "ethernet-input") == {}


def sample(loops: int, dispatches: int, ran_ns: int, ports: int = 1) -> Sample:
    return Sample(ran_ns, {"vpp_wk_0": Rounds(loops, dispatches)}, {"vpp_wk_0": ran_ns}, {"vpp_wk_0": ports})


def test_the_busy_time_is_what_empty_rounds_leave() -> None:
    load = Load()
    assert load.busy_ns(sample(0, 0, 0)) is None  # nothing is known of its rounds yet
    load.calibrate(sample(0, 0, 0), sample(1000, 0, 100_000))
    load.calibrate(sample(1000, 0, 100_000), sample(2000, 0, 300_000))  # something else took its time
    load.calibrate(sample(2000, 0, 300_000), sample(2100, 50, 300_100))  # these were not empty
    assert load.busy_ns(sample(2100, 50, 400_000)) == 0
    # 1000 rounds in a millisecond: 100 brought frames, and the 900 other processes took 100 ns each.
    assert load.busy_ns(sample(3100, 150, 1_400_000)) == 910_000
    assert load.busy_ns(sample(3100, 150, 1_400_000)) == 910_000
    # Rounds that are shorter than any known so far, and empty.
    assert load.busy_ns(sample(13_100, 150, 2_300_000)) == 910_000
    assert load.busy_ns(sample(13_100, 150, 2_400_000)) == 1_010_000  # not one round: it was at something else


@pytest.mark.parametrize(
    ("loops", "dispatches", "ports", "filled"),
    [(100, 30, 1, 30), (100, 200, 2, 100), (100, 100, 2, 75), (100, 300, 2, 100), (0, 5, 1, 0), (100, 0, 0, 0)],
)
def test_filled_rounds_are_estimated_from_calls_and_ports(
    loops: int, dispatches: int, ports: int, filled: float
) -> None:
    assert filled_rounds(loops, dispatches, ports) == pytest.approx(filled)


def test_running_time_is_the_kernels() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            deadline, seen = time.monotonic() + 30, 0
            while seen < 20_000_000 and time.monotonic() < deadline:
                seen = read_run_times(busy.pid).get("sh", 0)
        finally:
            busy.kill()
    assert seen >= 20_000_000
    assert read_run_times(0) == {}
