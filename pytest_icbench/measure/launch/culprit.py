# SPDX-License-Identifier: BSD-3-Clause
"""Finds the cause of a failed launch. The switch is checked before an error of its endpoints is reported.

If a switch dies, its endpoints fail, too. They often lose their connection before the kernel has ended the switch,
which counts as alive until then. So the end of the switch is awaited for a short time.
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
    """The part of a rig that checks whether its switch and its functions are alive."""

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
