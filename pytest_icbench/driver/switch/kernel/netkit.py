# SPDX-License-Identifier: BSD-3-Clause
"""``netkit``: one netkit pair for each pair of nodes, without a switch, like ``veth``."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.net import stacked
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.path import FramePath


class Netkit(KernelPath):
    """A cable of the kernel between the two nodes of each pair, without a queue."""

    name = "netkit"
    segments = True
    kinds = ("netkit",)
    veth_ports = False

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes a netkit pair between the sides of each pair, both ends in the nodes."""
        for a, b in FramePath.over(attachments).wires(attachments):
            stacked.create_netkit(kernel.node_end(a), kernel.node_end(b), mtu=spec.mtu)
        return self.endpoints(spec, attachments)
