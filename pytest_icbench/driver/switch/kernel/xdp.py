# SPDX-License-Identifier: BSD-3-Clause
"""``xdp``: a program on each port redirects frames to the other port of its pair, by a map of devices.

The natural mode is native: the program runs in veth's driver, before the kernel allocates a buffer. ``skb`` is the
generic mode of every driver. The program has six instructions, which bpf(2) loads directly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pytest_icbench.driver.switch.common.kernel import OFFLOADS, KernelPath, port_name
from pytest_icbench.driver.switch.protocol import Attachment, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import bpf, links
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.path import FramePath

_SKB = "skb"


def redirect_by_port(devices: int) -> bytes:
    """Returns the program ``return bpf_redirect_map(&devices, context->ingress_ifindex, 0)``.

    ``devices``: descriptor of the map.
    """
    arguments = bpf.load_word(2, 1, bpf.XDP_INGRESS_IFINDEX) + bpf.load_map(1, devices) + bpf.move(3, 0)
    return arguments + bpf.call(bpf.REDIRECT_MAP) + bpf.leave()


class Xdp(KernelPath):
    """A wire between the ports of each pair."""

    name = "xdp"
    segments = True
    modes = (_SKB,)
    wire_modes = (_SKB,)
    # Native XDP does not complete checksums. A veth delivers a redirected frame only if the node's end polls (NAPI),
    # which GRO enables.
    preset: ClassVar[Mapping[str, str]] = {"checksum": "false", "gro": "true"}

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported if the kernel lacks veth links or refuses the program."""
        facts = super().probe(session, spec_binary)
        if os.geteuid() == 0:
            try:
                with bpf.device_map({}) as devices, bpf.load_program("xdp", redirect_by_port(devices), name="xdp"):
                    pass
            except ProvisionError as error:
                raise Unsupported(f"xdp: {error}: use a kernel with CONFIG_BPF_SYSCALL") from None
        return facts

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Loads the program with the map of all ports and attaches it to each."""
        indexes = [links.read_index(port_name(attachment), self.netns) for attachment in attachments]
        path = FramePath.over(attachments)
        ports = {indexes[place]: indexes[path.across(place)] for place in path.endpoints}
        # The map resolves links of the namespace in which it is created.
        mode: Literal["native", "skb"] = "skb" if spec.mode == _SKB else "native"
        with (
            enter_netns(self.netns),
            bpf.device_map(ports) as devices,
            bpf.load_program("xdp", redirect_by_port(devices), name="xdp") as program,
        ):
            for attachment in attachments:
                bpf.attach_xdp(port_name(attachment), program, mode, self.netns)
        return self.endpoints(spec, attachments)

    def fault(self) -> str | None:
        """Returns a message if the endpoints leave checksums to a device that native XDP bypasses."""
        config = self._facts.config
        if config.get("mode") == _SKB or not config.get(OFFLOADS, {}).get("endpoint", {}).get("checksum"):
            return None
        return (
            "the endpoints leave UDP checksums to the device (offloads: checksum = true), and native XDP passes frames"
            " on without them: leave checksum out"
        )
