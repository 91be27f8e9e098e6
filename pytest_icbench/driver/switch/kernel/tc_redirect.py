# SPDX-License-Identifier: BSD-3-Clause
"""``tc-redirect``: traffic control filters that redirect each port's frames to the other port of its pair.

The natural mode uses the action ``mirred``. ``peer`` uses a BPF program with ``bpf_redirect_peer``, which moves a frame
into the other node without a second pass through the kernel's queue.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import KernelPath, port_name
from pytest_icbench.driver.switch.protocol import Attachment, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import bpf, links
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.path import FramePath

_PEER = "peer"


def redirect_peer(index: int) -> bytes:
    """Returns the program ``return bpf_redirect_peer(index, 0)``, where ``index`` is a port's."""
    return bpf.move(1, index) + bpf.move(2, 0) + bpf.call(bpf.REDIRECT_PEER) + bpf.leave()


class TcRedirect(KernelPath):
    """A wire between the ports of each pair."""

    name = "tc-redirect"
    segments = True
    modes = (_PEER,)
    wire_modes = (_PEER,)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported if the kernel lacks veth, ``clsact``, ``mirred``, or BPF with ``bpf_redirect_peer``."""
        facts = super().probe(session, spec_binary)
        if os.geteuid() == 0:
            try:
                with kernel.scratch_pair() as (first, second):
                    bpf.add_clsact(first)
                    bpf.redirect_frames(first, second)
                with bpf.load_program("classifier", redirect_peer(1), name="redirect_peer"):
                    pass
            except ProvisionError as error:
                raise Unsupported(
                    f"tc-redirect: {error}: use a kernel with CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_U32,"
                    " CONFIG_NET_ACT_MIRRED and CONFIG_NET_CLS_BPF"
                ) from None
        return facts

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Puts a filter on each port."""
        for wire in FramePath.over(attachments).wires(attachments):
            for here, there in (wire, wire[::-1]):
                port, other = port_name(here), port_name(there)
                bpf.add_clsact(port, self.netns)
                if spec.mode == _PEER:
                    program = redirect_peer(links.read_index(other, self.netns))
                    with bpf.load_program("classifier", program, name="redirect_peer") as descriptor:
                        bpf.attach_classifier(port, descriptor, self.netns)
                else:
                    bpf.redirect_frames(port, other, self.netns)
        return self.endpoints(spec, attachments)

    @property
    def counts_at_ports(self) -> bool:
        """Whether frames leave by their port, which ``bpf_redirect_peer`` bypasses."""
        return self._facts.config.get("mode") != _PEER
