# SPDX-License-Identifier: BSD-3-Clause
"""The base of modelled rigs: their life, the counters of a pair, and a clock that tests set."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.launch import PairCounts
from pytest_icbench.model.placement import CpuState, Placement


@dataclass(kw_only=True)
class ModelRig:
    """A rig without a host; one that is ``broken`` has a dead switch."""

    broken: bool = False
    preflighted: bool = True
    running: bool = True
    noisy_neighbour_use: None = None
    endpoints: list[Any] = field(default_factory=lambda: ["a", "b"])
    placement: Placement = field(default_factory=lambda: Placement("dedicated", (), (0, 1), (), 0, 0))

    def pause(self) -> None:
        self.running = False

    def resume(self) -> None:
        self.running = True

    def path_fault(self) -> str | None:
        return None

    def cpu_state(self) -> CpuState:
        return CpuState()

    def check(self) -> None:
        if self.broken:
            raise ProvisionError("the switch died")


def frames(
    pair: int, scheduled: int, received: int, *, refused: int = 0, not_offered: int = 0, seconds: float = 1.0
) -> PairCounts:
    """Returns the counters of a pair that lost all frames neither received nor refused."""
    zero: dict[str, Any] = dict.fromkeys(
        ("duplicated", "reordered", "late", "foreign", "corrupted", "polls", "empty_polls"), 0
    )
    return PairCounts(
        pair=pair,
        scheduled=scheduled,
        sent=scheduled - refused,
        refused=refused,
        not_offered=not_offered,
        tx_full=0,
        received=received,
        lost=scheduled - refused - received,
        throughput_pps=received / seconds,
        offered_pps=scheduled / seconds,
        **zero,
    )


def set_clock(monkeypatch: pytest.MonkeyPatch, now: list[float], *modules: ModuleType) -> None:
    """Gives modules the time that ``now`` holds."""
    for module in modules:
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
