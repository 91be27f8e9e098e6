# SPDX-License-Identifier: BSD-3-Clause
"""``basicfwd``: DPDK's skeleton example. One core forwards between ports 0 and 1, 2 and 3, …, without counters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common.userspace_ports import serving_device
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.protocol import Attachment, Needs, SwitchSpec
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.path import FramePath

#: Huge pages in MiB: without ports, and for the two pools of 8191 buffers that it makes for a pair.
_BASE_MIB = 32
_PAIR_MIB = 40


class BasicFwd(dpdk_process.PortForwarder):
    """A process that forwards between the ports of each pair; its main core does all the work."""

    name = "basicfwd"
    scalable = False

    def binary(self, session: HostSession, given: Path | None) -> Path:
        installed = Path(sys.executable).parent / "icbench-basicfwd"
        remedy = "run `make`, which builds it from the source in Debian's package dpdk-doc"
        return dpdk_process.find_binary(session, self.name, given, [installed, "icbench-basicfwd"], remedy)

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs(hugepages_mib=_BASE_MIB + pairs * _PAIR_MIB, pollers=1)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts it; the order of its devices makes the pairs. Raises ProvisionError with the log's tail."""
        binary = self.binary(session, spec.binary)
        argv = [
            str(binary),
            *dpdk_process.eal_arguments(
                main_cpus=spec.worker_cpus[:1],
                worker_cpus=(),
                hugepages_mib=self.needs(FramePath.over(attachments).pairs, 1).hugepages_mib,
            ),
            "--no-telemetry",
            *(f"--vdev={serving_device(spec.port, attachment)}" for attachment in attachments),
        ]
        return self.launch(session, spec, attachments, argv)
