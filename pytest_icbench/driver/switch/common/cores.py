# SPDX-License-Identifier: BSD-3-Clause
"""The distribution of ports and their queues over worker cores. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.protocol import Attachment
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.path import FramePath
from pytest_icbench.wording import counted


def check_cores(switch: str, cores: int, pairs: int, queues: int, unit: str = "receive queues") -> None:
    """Raises Unsupported for more cores than receive queues.

    Args:
        queues: queue pairs of each port.
        unit: the switch's word for queues.
    """
    of_all = len(FramePath(pairs).endpoints) * queues
    if cores > of_all:
        ports = counted(pairs, "pair") + (f" of {queues} queues" if queues > 1 else "")
        raise Unsupported(
            f"{switch} cannot use {cores} cores for {ports}, which are {of_all} {unit}: ask for at most {of_all} switch"
            " cores"
        )


def share_queues(attachments: Sequence[Attachment], cores: int, queues: int) -> dict[int, tuple[int, ...]]:
    """Returns the core (0 to ``cores`` - 1) of each queue, by the index of its port.

    Cores are assigned in turn, first to the queues of senders' ports. So with as many cores as pairs and one queue,
    each core has one sender's port. No core has two queues while another has none.
    """
    ordered = sorted(attachments, key=lambda attachment: (attachment.side, attachment.index))
    return {
        attachment.index: tuple((position * queues + queue) % cores for queue in range(queues))
        for position, attachment in enumerate(ordered)
    }


def divide_ports(ports: int, cores: int) -> list[int]:
    """Returns the core of each port: blocks of ports share a core, and the last cores have one more if need be."""
    ports_a_core, remainder = divmod(ports, cores)
    sizes = [ports_a_core] * (cores - remainder) + [ports_a_core + 1] * remainder
    return [core for core, size in enumerate(sizes) for _ in range(size)]
