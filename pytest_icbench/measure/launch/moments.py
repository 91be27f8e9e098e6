# SPDX-License-Identifier: BSD-3-Clause
"""The moments of a launch at which the harness does something. Between them it rests: it may share an endpoint's CPU.

Lines wait in the pipes meanwhile. Only the end of a process wakes it early.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pytest_icbench.model.settings import Settings

#: The switch's cycles are read this long before the first window, and before the senders end, while they all send.
BUSY_MARGIN_S = 0.03
#: The rest ends this long after the last frame is due, in seconds: its answer is on the way.
REST_S = 0.005


@dataclass(slots=True)
class Moments:
    """Moments in seconds of CLOCK_MONOTONIC.

    Attributes:
        first_window, senders_end: begin of the first window, and end of the last one.
        rests_until: until then no line is read; -inf if each is read when it comes.
        samples: when the switch's work is read.
    """

    first_window: float = math.inf
    senders_end: float = math.inf
    rests_until: float = -math.inf
    samples: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, begin: float, settings: Settings, *, watched: bool, pings: bool) -> Moments:
        """Returns the moments of a launch that begins at ``begin``.

        Args:
            watched: whether each line is awaited, because any may be the one after which the launch ends.
            pings: whether all frames are answered. The switch is then asked after the last one: it might do that on a
                CPU of the path.
        """
        first_window = begin + settings.warmup_s
        senders_end = first_window + settings.sending_s
        fewest_s = settings.duration_s if settings.settles else settings.sending_s
        rests_until = -math.inf if watched or settings.debug else first_window + fewest_s + REST_S
        last = senders_end + REST_S if pings else senders_end - BUSY_MARGIN_S
        first = first_window - min(BUSY_MARGIN_S, settings.warmup_s / 2)
        return cls(first_window, senders_end, rests_until, [first, last])
