# SPDX-License-Identifier: BSD-3-Clause
"""Which worker core polls which port. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.protocol import Attachment


def share_ports(attachments: Sequence[Attachment], cores: int) -> dict[int, int]:
    """Number of the core, 0 to ``cores`` - 1, for each port by its index.

    The ports where senders are come first, in turn, then the others: with as many cores as pairs, each core has one
    sender's port, and none has two while another has nothing.
    """
    ordered = sorted(attachments, key=lambda attachment: (attachment.side, attachment.index))
    return {attachment.index: position % cores for position, attachment in enumerate(ordered)}


def in_blocks(ports: int, cores: int) -> list[int]:
    """Number of the core for each port where neighbours share one; the last cores take what does not divide evenly."""
    each, more = divmod(ports, cores)
    sizes = [each] * (cores - more) + [each + 1] * more
    return [core for core, size in enumerate(sizes) for _ in range(size)]
