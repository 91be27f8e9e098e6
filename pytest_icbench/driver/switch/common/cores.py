# SPDX-License-Identifier: BSD-3-Clause
"""The distribution of ports and their queues over worker cores. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.protocol import Attachment
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.path import FramePath
from pytest_icbench.wording import counted


def check_cores(switch: str, cores: int, pairs: int, queues: int, unit: str = "receive queues") -> None:
    """Checks that each core gets a queue of a port.

    Args:
        queues: queue pairs of each port.
        unit: what a queue is called by the switch.

    Raises Unsupported for more cores than queues.
    """
    of_all = len(FramePath(pairs).endpoints) * queues
    if cores > of_all:
        ports = counted(pairs, "pair") + (f" of {queues} queues" if queues > 1 else "")
        raise Unsupported(
            f"{switch} cannot use {cores} cores for {ports}, which are {of_all} {unit}: ask for at most {of_all} switch"
            " cores"
        )


def share_queues(attachments: Sequence[Attachment], cores: int, queues: int) -> dict[int, tuple[int, ...]]:
    """Returns the numbers of the cores, 0 to ``cores`` - 1, for the queues of each port by its index.

    The ports of senders are dealt out first, then the others, the queues of a port one after the other. With as many
    cores as pairs and one queue, each core has one sender's port, and no core has two queues while another has none.
    """
    ordered = sorted(attachments, key=lambda attachment: (attachment.side, attachment.index))
    return {
        attachment.index: tuple((position * queues + queue) % cores for queue in range(queues))
        for position, attachment in enumerate(ordered)
    }


def divide_ports(ports: int, cores: int) -> list[int]:
    """Returns the number of the core for each port, where neighbouring ports share a core.

    If the ports do not divide evenly, the last cores have one more each.
    """
    ports_a_core, remainder = divmod(ports, cores)
    sizes = [ports_a_core] * (cores - remainder) + [ports_a_core + 1] * remainder
    return [core for core, size in enumerate(sizes) for _ in range(size)]
