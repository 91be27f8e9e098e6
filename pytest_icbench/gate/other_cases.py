# SPDX-License-Identifier: BSD-3-Clause
"""What a session's other cases say of its host: whether all of them together became slower. Pure.

A host that is another one than before slows cases of whatever switch. A switch that became slower slows its own alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from pytest_icbench.gate.margins import Allowed
from pytest_icbench.gate.session_values import SessionValues
from pytest_icbench.gate.sides import Sessions, of_value, side_of
from pytest_icbench.stats.quantiles import CONFIDENCE
from pytest_icbench.stats.student import student_quantile

#: The least deviation that a case counts by, as a logarithm: sessions that agree by chance decide nothing alone.
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class OtherCase:
    """By how much one case of the session became slower, on the scale of logarithms.

    Attributes:
        slower: above 0 for what is slower than the baseline's sessions.
        deviation: by how much that differs from session to session, as a standard deviation.
        freedom: its degrees of freedom.
    """

    slower: float
    deviation: float
    freedom: int


def other_case(values: SessionValues, sessions: Sessions, allowed: Allowed) -> OtherCase | None:
    """Returns what a case says of its host; None where the baseline has fewer than two sessions of it."""
    side = side_of(values, sessions, of_value(allowed.name))
    if side is None or side.spread is None:
        return None
    change = math.log(side.change().value)
    deviation = side.spread.deviation * math.sqrt(1 + 1 / len(side.levels[-1]))
    slower = -change if allowed.margin.better == "higher" else change
    return OtherCase(slower, max(deviation, _LEAST), side.spread.freedom)


def together(cases: Collection[OtherCase]) -> OtherCase:
    """Returns what several cases say as one: each counts by one over its variance.

    They are taken as independent: where they share the host's moods, their mean varies by more than is reckoned with,
    and is unusual the sooner.
    """
    weights = [1 / case.deviation**2 for case in cases]
    total = math.fsum(weights)
    slower = math.fsum([weight * case.slower for weight, case in zip(weights, cases, strict=True)]) / total
    return OtherCase(slower, 1 / math.sqrt(total), min(case.freedom for case in cases))


def usual(cases: Collection[OtherCase]) -> bool:
    """Whether these cases together are no slower than they are from session to session; not without any."""
    if not cases:
        return False
    said = together(cases)
    return said.slower - student_quantile(said.freedom, (1 + CONFIDENCE) / 2) * said.deviation <= 0
