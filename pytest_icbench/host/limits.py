# SPDX-License-Identifier: BSD-3-Clause
"""What this process may have of files and memory: said before a run wants more, or after a program did."""

from __future__ import annotations

import resource

from pytest_icbench.errors import ProvisionError

#: Files that a run has open at a time, and those of each wire between two ports of a switch. Both are generous.
FILES, FILES_A_WIRE = 256, 16


def raise_files(needed: int) -> int | None:
    """Lets this process open so many files. Returns how many it may have at most if the host refuses, else None."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))
        except (ValueError, OSError):
            return hard
    return None


def allow_files(wires: int) -> None:
    """Lets this process open the files of a run. Raises ProvisionError if the host does not allow so many.

    Args:
        wires: the most wires of a case: one for each pair, and another for each network function of its chain.
    """
    needed = FILES + FILES_A_WIRE * wires
    if (allowed := raise_files(needed)) is not None:
        raise ProvisionError(
            f"this process may open {allowed:,} files, and the run takes up to {needed:,}: raise the limit"
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
