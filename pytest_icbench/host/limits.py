# SPDX-License-Identifier: BSD-3-Clause
"""What this process may have of files and memory: said before a run wants more, or after a program did."""

from __future__ import annotations

import resource
from contextlib import suppress

from pytest_icbench.errors import ProvisionError

#: Files that a run has open at a time, and those of each pair of endpoints. Both are generous.
FILES, FILES_A_PAIR = 256, 16


def allow_files(pairs: int) -> None:
    """Lets this process open the files of a run. Raises ProvisionError if the host does not allow so many.

    Args:
        pairs: the most pairs of endpoints of a case.
    """
    needed = FILES + FILES_A_PAIR * pairs
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed:
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))
        return
    raise ProvisionError(
        f"this process may open {hard:,} files, and the run takes up to {needed:,}: raise the limit"
        f" (ulimit -Hn {needed})"
    )


def refused_memory(log: str) -> str:
    """Returns the limit that kept a program from its memory, as a part of a sentence; empty if its log names none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or "Cannot allocate memory" not in log:
        return ""
    return (
        f": it was refused memory, since only {soft / 2**30:.1f} GiB of address space are allowed here; raise the limit"
        " (ulimit -v unlimited)"
    )
