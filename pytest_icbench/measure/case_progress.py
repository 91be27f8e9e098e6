# SPDX-License-Identifier: BSD-3-Clause
"""The progress of a measurement while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal["preflight", "waiting", "case", "reference"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a measurement at one moment.

    Attributes:
        case: the case's id.
        phase: the part that is running; ``waiting`` for a state of the host.
        launch: number of the launch, from 1; 0 in the preflight and while waiting.
        launches: number of launches as far as it is known: the fixed number, or the fewest.
        receive_mpps: frames received in the last window over all pairs, millions per second; None before the first is
            read: after a launch, and every two seconds of a long one.
        elapsed_s: time since the measurement of this case began.
        left_s: estimate of the time that this case still takes; an upper bound while the number of launches is open.
        detail: text to show instead of phase and launch: of a search its trial and bounds.
    """

    case: str
    phase: Phase
    launch: int
    launches: int
    receive_mpps: float | None
    elapsed_s: float
    left_s: float
    detail: str | None = None


OnProgress = Callable[[Progress], None]
