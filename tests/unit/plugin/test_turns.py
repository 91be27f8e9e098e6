# SPDX-License-Identifier: BSD-3-Clause
"""The part of a case's forecast that a turn is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.kinds.runs import estimate_s
from pytest_icbench.measure.estimate import RIG_OVERHEAD_S, launch_estimate_s
from pytest_icbench.model.settings import Settings
from pytest_icbench.plugin.turns import Turns


@pytest.mark.parametrize("reference", [False, True])
def test_the_turns_of_a_case_make_its_forecast_and_the_first_builds(*, reference: bool) -> None:
    settings = Settings(repeats=6)
    forecast = estimate_s(settings, reference=reference)
    turns = Turns.__new__(Turns)
    turns._run = SimpleNamespace(forecast=[forecast])  # type: ignore[assignment]
    requests = SimpleNamespace(reference=True if reference else None)
    member: Any = SimpleNamespace(settings=settings, requests=requests, place=0, over=False)
    shares = [turns._share(member, first=not turn) for turn in range(6)]
    assert sum(shares) == pytest.approx(1)
    building = RIG_OVERHEAD_S * (2 if reference else 1)
    assert shares[0] * forecast == pytest.approx(launch_estimate_s(settings, reference=reference) + building)
    member.over = True
    assert turns._share(member, first=False) == 1
