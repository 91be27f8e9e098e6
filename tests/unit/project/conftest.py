# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for tests of claims."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports modules of `benchmarks/validation` anew."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in [name for name in sys.modules if name.split(".")[0] == "validation"]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module
