# SPDX-License-Identifier: BSD-3-Clause
"""The kernel options (sysctl) that a candidate may set, and that a session may have left set. Pure."""

from __future__ import annotations

#: Files of the options that decide neither over the rights of processes nor over memory that the session manages.
SETTABLE = (
    r"/proc/sys/(net/(?!.*\.\.)[\w./-]+|kernel/(sched_\w+|numa_balancing\w*|timer_migration|(nmi_|soft)?watchdog)"
    r"|vm/(?!nr_|drop_caches|compact_memory|hugetlb)\w+)"
)


def file_of(option: str) -> str:
    """Returns the file of an option; as sysctl(8) has it, a name with slashes keeps its dots (``net/…/eth0.5/…``)."""
    return f"/proc/sys/{option if '/' in option else option.replace('.', '/')}"
