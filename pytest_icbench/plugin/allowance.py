# SPDX-License-Identifier: BSD-3-Clause
"""What thresholds allow a candidate, as measuring takes it."""

from __future__ import annotations

from pytest_icbench.gate.margins import CYCLES, Margins
from pytest_icbench.measure.comparing import Allowance


def allowance_of(margins: Margins, dimension: str) -> Allowance:
    """Returns how much worse a candidate may be than its base, which takes the place of a baseline."""
    allowed = margins.of(dimension)
    named = any(figure.name == CYCLES for figure in allowed)
    return Allowance(allowed[0].margin, margins.of_cycles().margin, cycles_named=named)
