# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks' statistics: exact coverage of the median's interval, and who is measured when."""

from __future__ import annotations

import importlib.util
import sys
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[3] / "benchmarks" / "paired.py"


@pytest.fixture(scope="module")
def paired() -> ModuleType:
    if not SOURCE.exists():
        pytest.skip("the benchmarks are part of the source tree only")
    spec = importlib.util.spec_from_file_location("icbench_paired", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("n", "confidence"), [(6, 0.95), (8, 0.9), (10, 0.95), (12, 0.95)])
def test_coverage_is_exact(paired: ModuleType, n: int, confidence: float) -> None:
    """Every pattern of "below or above the median" is equally likely: count those whose interval misses it."""
    low, high, coverage = paired.median_interval([float(i) for i in range(1, n + 1)], confidence)
    covered = sum(int(low) <= sum(pattern) < int(high) for pattern in product((0, 1), repeat=n))
    assert coverage == covered / 2**n
    assert coverage >= confidence
    # The next narrower one would not do.
    narrower = sum(int(low) + 1 <= sum(pattern) < int(high) - 1 for pattern in product((0, 1), repeat=n))
    assert narrower / 2**n < confidence


def test_too_few_values_are_refused(paired: ModuleType) -> None:
    with pytest.raises(ValueError, match="5 values give no 95% interval"):
        paired.median_interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.95)


def test_pairs_alternate_and_the_first_is_thrown_away(paired: ModuleType) -> None:
    calls: list[str] = []

    def side(name: str, value: float) -> float:
        calls.append(name)
        return value

    result = paired.alternate("x", paired.Plan(6, 2, ""), lambda: side("a", 3.0), lambda: side("b", 2.0))
    assert calls[:12] == ["b", "a"] * 2 + ["a", "b"] * 2 + ["b", "a"] * 2
    assert len(calls) == 7 * 4
    assert result.ratios == (1.5,) * 6
    assert (result.low, result.median, result.high) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("bound", "held"),
    [
        ({"at_least": 0.9}, True),
        ({"at_least": 0.95}, False),
        ({"within": (0.9, 1.1)}, True),
        ({"within": (0.95, 2)}, False),
    ],
)
def test_the_whole_interval_has_to_keep_the_bound(
    paired: ModuleType, capsys: pytest.CaptureFixture[str], bound: dict[str, object], held: bool
) -> None:
    result = paired.compare("x", [0.92, 0.94, 0.99, 1.01, 1.05, 1.08])
    assert paired.verdict(result, **bound) is held
    assert capsys.readouterr().out.startswith("PASS" if held else "FAIL")
