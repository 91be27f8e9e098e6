# SPDX-License-Identifier: BSD-3-Clause
"""The huge pages that Open vSwitch takes. Pure."""

from __future__ import annotations

#: Huge pages in MiB: without ports, for a port's buffers (some 20,000) of the usual size, and for jumbo frames.
#: OVS is given the sum as its limit. A pool for all ports, its default, takes 700 MiB where nothing stops it, and a
#: second when the first endpoint connects.
_BASE_MIB = 64
_PORT_MIB = 72
_JUMBO_PORT_MIB = 264
#: What each further queue pair takes of a port's memory: its rings have 2048 + 2048 of the buffers.
_QUEUE_PART = 5


def memory_mib(ports: int, jumbo: bool, queues: int = 1) -> int:
    """Returns the MiB for so many ports with so many queue pairs each."""
    port_mib = _JUMBO_PORT_MIB if jumbo else _PORT_MIB
    return _BASE_MIB + ports * (port_mib + (queues - 1) * port_mib // _QUEUE_PART)
