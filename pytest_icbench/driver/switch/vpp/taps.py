# SPDX-License-Identifier: BSD-3-Clause
"""VPP's tap devices: what they take of the kernel, how they get into the nodes, and the threads that copy.

VPP has rings with the kernel's vhost-net, whose threads copy each frame from there to the device, and back. A tap has
such a thread for each thread of VPP.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel, kernel_ports
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.session import HostSession

#: The devices with the kernel's module and option for each.
_DEVICES = (("/dev/net/tun", "tun", "CONFIG_TUN"), ("/dev/vhost-net", "vhost_net", "CONFIG_VHOST_NET"))


def probe() -> None:
    """Raises Unsupported with the kernel's option if this kernel does not have what VPP's taps take."""
    for path, module, option in _DEVICES:
        kernel.probe_device(path, "port tap of vpp", module, option)


def give(session: HostSession, pid: int, spec: SwitchSpec, netns: str, attachments: Sequence[Attachment]) -> None:
    """Moves the taps that VPP has made into the nodes, and the threads that copy to the service CPUs.

    The threads would all have the one CPU of VPP's main thread, or any.

    Args:
        pid: VPP's process.
        netns: path of VPP's network namespace.

    Raises ProvisionError.
    """
    kernel_ports.move_ports(netns, attachments)
    ends = [(attachment.interface, attachment.node.netns) for attachment in attachments]
    ethtool.apply_settings(session, ends, kernel_ports.UNFINISHED)
    cpus = set(spec.service_cpus) - set(spec.worker_cpus)
    for thread in _copying(pid):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)


def _copying(pid: int) -> Iterator[int]:
    """Returns the vhost threads of a process: its own since Linux 6.4, before and on request threads of the kernel."""
    for task in (*Path(f"/proc/{pid}/task").glob("[0-9]*"), *Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            if (task / "comm").read_text(encoding="utf-8").strip() == f"vhost-{pid}":
                yield int(task.name)
