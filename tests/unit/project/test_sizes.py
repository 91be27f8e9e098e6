# SPDX-License-Identifier: BSD-3-Clause
"""The package has few modules at its top."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
MOST_MODULES = 8


def test_few_modules_lie_at_the_top_of_the_package() -> None:
    modules = [path.name for path in (ROOT / "pytest_icbench").glob("*.py")]
    assert "api.py" in modules
    assert len(modules) <= MOST_MODULES
