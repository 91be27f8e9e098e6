# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from tests.unit.paired_rigs import Model, paired_rigs


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Model]:
    """A candidate and its base; launches take no time, but the clock goes on."""
    return paired_rigs(monkeypatch)
