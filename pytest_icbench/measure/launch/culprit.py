# SPDX-License-Identifier: BSD-3-Clause
"""Who is to blame for a launch that fails: the switch is looked at before what its endpoints say.

A switch that dies takes its endpoints along. They often see the end of their connection before the kernel has taken
all of the switch apart, and until then it counts as alive. So its end is waited for, for a short time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pytest_icbench.errors import WorkloadError

#: How long a switch that is dying may take to be dead once an endpoint has failed, in seconds.
DIES_WITHIN_S = 1.0
_POLL_S = 0.02


class Checked(Protocol):
    """The part of a rig that tells whether its switch and its functions live."""

    def check(self) -> None: ...


def look_at_the_switch(rig: Checked) -> None:
    """Returns after ``DIES_WITHIN_S`` seconds if the switch lives. Raises ProvisionError as soon as it is dead."""
    deadline = time.monotonic() + DIES_WITHIN_S
    while True:
        over = time.monotonic() >= deadline  # so that a harness that was kept off its CPU looks once more
        rig.check()
        if over:
            return
        time.sleep(_POLL_S)


@contextmanager
def switch_first(rig: Checked) -> Iterator[None]:
    """Raises ProvisionError instead of an endpoint's WorkloadError if the switch has died or is about to."""
    try:
        yield
    except WorkloadError:
        look_at_the_switch(rig)
        raise
