# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of noisy neighbours and isolations, which every pytest run needs for its help. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: The kinds of noisy neighbours with the packages of their programs; ``none`` is the control: no noisy neighbour
#: against none.
KINDS: Mapping[str, str] = MappingProxyType(
    {
        "none": "",
        "cpu": "stress-ng",
        "cache": "stress-ng",
        "stream": "stress-ng",
        "memory": "stress-ng",
        "memtester": "memtester",
        "noisy": "dpdk",
    }
)
#: The memory of one process of those that hold much, in MiB.
MEMORY_MIB: Mapping[str, int] = MappingProxyType({"memory": 256, "memtester": 256, "noisy": 512})
#: The most CPUs of a noisy neighbour.
MOST_CPUS = 64
#: Isolation by CPUs of another L3 domain.
L3 = "l3"
