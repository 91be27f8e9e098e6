# SPDX-License-Identifier: BSD-3-Clause
"""How long change points take: a series with a step every 200 points."""

from __future__ import annotations

import sys
import time
from random import Random

from pytest_icbench.stats.change_points import levels

#: Ten thousand points have to be done in this time.
MOST_S = 10.0
LENGTHS = (200, 400, 800, 2000, 5000, 10_000)


def series(length: int, seed: int = 1) -> list[float]:
    """Levels between 80 and 120 with 1 % of noise, now and then an outlier."""
    random = Random(seed)
    values, level = [], 100.0
    for place in range(length):
        if place % 200 == 0:
            level = random.uniform(80, 120)
        values.append(level * (1 + random.gauss(0, 0.01)) * (0.7 if random.random() < 0.01 else 1.0))
    return values


def main() -> int:
    took = 0.0
    print("points  levels  seconds")
    for length in LENGTHS:
        values = series(length)
        began = time.perf_counter()
        found = levels(values)
        took = time.perf_counter() - began
        print(f"{length:6}  {len(found):6}  {took:7.2f}")
    held = took <= MOST_S
    print(f"{'PASS' if held else 'FAIL'} {LENGTHS[-1]} points in {took:.1f} s; wanted: at most {MOST_S:.0f} s")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
