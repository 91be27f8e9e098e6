# SPDX-License-Identifier: BSD-3-Clause
"""The energy of the CPU packages, over recorded trees: no machine of the project reports it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_icbench.host.resource import perf
from pytest_icbench.host.root import Root

POWERCAP = "sys/class/powercap"


def zone(base: Path, name: str, label: str, energy: int | None, span: int = 1_000_000) -> Path:
    path = base / POWERCAP / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "name").write_text(f"{label}\n")
    (path / "max_energy_range_uj").write_text(f"{span}\n")
    if energy is not None:
        (path / "energy_uj").write_text(f"{energy}\n")
    return path


def test_packages_are_added_and_their_parts_are_not(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", 100)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 999_900)
    zone(tmp_path, "intel-rapl:0:0", "core", 7)
    zone(tmp_path, "intel-rapl:2", "psys", 7)
    energy = perf.Energy(Root(tmp_path))
    assert energy.read() == {"energy_uj": 0}
    (first / "energy_uj").write_text("150")
    (second / "energy_uj").write_text("300")  # began anew at its range of 1,000,000
    assert energy.read() == {"energy_uj": 50 + 400}
    (first / "energy_uj").write_text("151")
    assert energy.read() == {"energy_uj": 451}


@pytest.mark.parametrize("readable", [False, True])
def test_a_host_that_does_not_report_it_says_so(readable: bool, tmp_path: Path) -> None:
    if readable:
        zone(tmp_path, "intel-rapl:0", "package-0", None)
    assert perf.explain_missing_energy(Root(tmp_path)) == "no CPU package in /sys/class/powercap reports its energy"


def test_energy_is_counted_where_events_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "_HARDWARE", 1)
    monkeypatch.setattr(perf, "EVENTS", {"nonsense": 12345})
    pids = [os.getpid()]
    assert perf.HardwareEvents(Root(tmp_path)).read("1", pids, [0]) is None
    package = zone(tmp_path, "intel-rapl:0", "package-0", 100)
    events = perf.HardwareEvents(Root(tmp_path))
    assert events.read("1", pids, [0]) == {"packages": {"energy_uj": 0}}
    (package / "energy_uj").write_text("130")
    assert events.read("1", pids, [0]) == {"packages": {"energy_uj": 30}}
    assert events.read("2", pids, [0]) == {"packages": {"energy_uj": 0}}
    events.end()


def test_the_kernels_part_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an event that every kernel has, the task's own clock: the bits that leave user space out are taken."""
    monkeypatch.setattr(perf, "_HARDWARE", 1)
    monkeypatch.setattr(perf, "EVENTS", {"cycles": 1, "kernel_cycles": 1})
    try:
        counters = perf.Counters([(0, -1)])
    except PermissionError as error:
        pytest.skip(f"this kernel lets nobody but root count: {error}")
    assert set(counters.read()) == {"cycles", "kernel_cycles"}
    counters.close()


def test_what_is_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "unsupported_reason", lambda: "no permit")
    lacked = "the kernel gives no hardware events (no permit): results have no instructions and cache misses per frame"
    assert perf.explain_missing_events(Root(tmp_path)) == f"{lacked}, and no energy"
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    assert perf.explain_missing_events(Root(tmp_path)) == lacked
    monkeypatch.setattr(perf, "unsupported_reason", lambda: None)
    assert perf.explain_missing_events(Root(tmp_path)) is None
