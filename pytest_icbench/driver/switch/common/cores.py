# SPDX-License-Identifier: BSD-3-Clause
"""The distribution of ports over worker cores. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.protocol import Attachment


def share_ports(attachments: Sequence[Attachment], cores: int) -> dict[int, int]:
    """Returns the number of the core, 0 to ``cores`` - 1, for each port by its index.

    The ports of senders are dealt out first, then the others. With as many cores as pairs, each core has one sender's
    port, and no core has two ports while another has none.
    """
    return {index: cores[0] for index, cores in share_queues(attachments, cores, 1).items()}


def share_queues(attachments: Sequence[Attachment], cores: int, queues: int) -> dict[int, tuple[int, ...]]:
    """Returns the numbers of the cores for each port's queues, by its index.

    They are dealt out as ports are, the queues of a port one after the other.
    """
    ordered = sorted(attachments, key=lambda attachment: (attachment.side, attachment.index))
    return {
        attachment.index: tuple((position * queues + queue) % cores for queue in range(queues))
        for position, attachment in enumerate(ordered)
    }


def in_blocks(ports: int, cores: int) -> list[int]:
    """Returns the number of the core for each port, where neighbouring ports share a core.

    If the ports do not divide evenly, the last cores have one more each.
    """
    ports_a_core, remainder = divmod(ports, cores)
    sizes = [ports_a_core] * (cores - remainder) + [ports_a_core + 1] * remainder
    return [core for core, size in enumerate(sizes) for _ in range(size)]
