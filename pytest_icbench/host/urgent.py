# SPDX-License-Identifier: BSD-3-Clause
"""Work of a moment that no process may keep from its CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


@contextmanager
def urgent() -> Iterator[None]:
    """Lets this thread run ahead of all that is not real time, for a block of a few milliseconds.

    Linux 6.18 has been seen to keep a thread that could run from its CPU for two seconds, while one endpoint sent and
    yielded there in a control group of its own. Without the right to real time, nothing changes.
    """
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    with ExitStack() as undo:
        with suppress(OSError):  # no right to it, or its control group has no time for it
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
            undo.callback(os.sched_setscheduler, 0, policy, parameter)
        yield
