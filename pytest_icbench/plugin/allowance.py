# SPDX-License-Identifier: BSD-3-Clause
"""What thresholds allow a candidate, as measuring takes it."""

from __future__ import annotations

from pytest_icbench.gate.margins import CYCLES, Margins
from pytest_icbench.measure.comparing import Allowance
from pytest_icbench.stats.noninferiority import Margin


def allowance_of(margins: Margins, dimension: str) -> Allowance:
    """Returns how much worse a candidate may be than its base, which takes the place of a baseline."""
    allowed = margins.of(dimension)
    named = any(figure.name == CYCLES for figure in allowed)
    main, cycles = (each.allowance for each in (allowed[0], margins.of_cycles()))
    return Allowance(Margin(main.better, 0.0, main.share), Margin("lower", 0.0, cycles.share), cycles_named=named)
