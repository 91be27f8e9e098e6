# SPDX-License-Identifier: BSD-3-Clause
"""What thresholds allow a candidate, as measuring takes it."""

from __future__ import annotations

from pytest_icbench.gate.margins import Margins
from pytest_icbench.measure.comparing import Allowances
from pytest_icbench.model.measurement import CYCLES


def allowances_of(margins: Margins, dimension: str) -> Allowances:
    """Returns how much worse a candidate may be than its base, which takes the place of a baseline."""
    allowed = margins.of(dimension)
    named = any(figure.name == CYCLES for figure in allowed)
    return Allowances(allowed[0].allowance, margins.of_cycles().allowance, cycles_named=named)
