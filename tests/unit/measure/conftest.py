# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from pytest_icbench.measure.launch import culprit
from tests.unit.paired_rigs import Model, paired_rigs


@pytest.fixture(autouse=True)
def quick_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the wait for a death of the switch: a scripted one dies at once or never."""
    monkeypatch.setattr(culprit, "DIES_WITHIN_S", 0.0)


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Model]:
    """Returns a candidate and its base; launches take no time, but the clock goes on."""
    return paired_rigs(monkeypatch)
