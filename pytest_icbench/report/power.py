# SPDX-License-Identifier: BSD-3-Clause
"""What a session's comparisons would have found, said once for all cases. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.gate.precheck import Power, sentences
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.wording import printable


def power(results: Sequence[Measurement]) -> list[str]:
    """Returns a sentence on what all cases that were compared would have shown, and one if that is little."""
    compared = [(result.case, finding) for result in results if (finding := _compared(result)) is not None]
    pairs = all(one.unit == "pair" for _, one in compared)
    powers = [(case, Power(one.finds, one.weak)) for case, one in compared]
    return [printable(line) for line in sentences(powers, pairs=pairs)]


def is_weak(results: Sequence[Measurement]) -> bool:
    """Whether a case that was compared could not have shown a loss of a tenth in half of such sessions."""
    return any(finding.weak for result in results if (finding := _compared(result)) is not None)


def _compared(result: Measurement) -> Finding | None:
    return next((finding for finding in result.findings if finding.baseline is not None), None)
