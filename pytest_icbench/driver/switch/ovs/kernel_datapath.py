# SPDX-License-Identifier: BSD-3-Clause
"""``ovs-kernel``: Open vSwitch's datapath in the kernel (its type ``system``), as a learning switch.

The daemon decides on the first frame of a flow. The kernel's module forwards the rest, in the endpoints' CPU time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_icbench.driver.switch.common.kernel import KernelPath, port_name
from pytest_icbench.driver.switch.ovs.daemons import Installation, OvsDaemons, find_installation, parse_down
from pytest_icbench.driver.switch.protocol import Attachment, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Endpoint

_FAMILY = "ovs_datapath"
_START_S = 10


def probe_datapath() -> None:
    """Loads the kernel's module. Raises Unsupported with the remedy if there is none."""
    from pyroute2.netlink import genlmsg
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.generic import GenericNetlinkSocket

    try:
        with GenericNetlinkSocket() as netlink:
            netlink.bind(_FAMILY, genlmsg)
    except (NetlinkError, OSError):
        raise Unsupported(
            "this kernel has no datapath of Open vSwitch: load its module (modprobe openvswitch) or use a kernel that"
            " has it (CONFIG_OPENVSWITCH), as the guest of `make test-paths` does"
        ) from None


class OvsKernel(KernelPath):
    """A bridge in the kernel for each set of ports that reach each other."""

    name = "ovs-kernel"
    segments = True
    takes_binary = True
    learns = True
    asks_first = True
    least_ageing_s = 15.0

    def __init__(self) -> None:
        super().__init__()
        self._daemons: OvsDaemons | None = None
        self._bridges: list[str] = []

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported if the kernel lacks links or datapath, or the daemon is not installed."""
        release = super().probe(session, spec_binary).version
        probe_datapath()
        installation = find_installation(session, spec_binary, needs_dpdk=False)
        return SwitchFacts(version=release, config=_reported(installation), program=str(installation.vswitchd))

    def make_namespaces(self, session: HostSession, spec: SwitchSpec) -> None:
        """Starts database and daemon, in whose namespace the datapath is. Raises ProvisionError."""
        self._daemons = daemons = OvsDaemons(session, spec, find_installation(session, spec.binary, needs_dpdk=False))
        daemons.start_database()
        daemons.vsctl("--no-wait", "init")
        daemons.start_switch()
        self._netns = daemons.netns

    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes the bridges, with the veth links as their ports."""
        commands: list[str] = []
        for segment in sorted({attachment.segment or 0 for attachment in attachments}):
            self._bridges.append(bridge := f"br{segment}")
            commands += ["--", "add-br", bridge, "--", "set", "Bridge", bridge, "datapath_type=system"]
        for attachment in attachments:
            name, bridge = port_name(attachment), f"br{attachment.segment or 0}"
            commands += ["--", "add-port", bridge, name, "--", "set", "Interface", name]
            commands.append(f"ofport_request={attachment.index + 1}")
        self.daemons.vsctl(*commands[1:], timeout_s=_START_S)
        self.daemons.check_ports({port_name(attachment): attachment.index + 1 for attachment in attachments})
        return self.endpoints(spec, attachments)

    @property
    def daemons(self) -> OvsDaemons:
        """The running daemons. Raises ProvisionError if it was not started."""
        if self._daemons is None:
            raise ProvisionError(f"{self.name} was not started")
        return self._daemons

    def describe_config(self, spec: SwitchSpec, settings: Mapping[str, str], first: Attachment) -> Mapping[str, Any]:
        """Returns the configuration for results, with the version of Open vSwitch."""
        return {**super().describe_config(spec, settings, first), **_reported(self.daemons.installation)}

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if a daemon has died, or if a port is gone."""
        self.daemons.check()
        super().check()

    def set_ageing(self, seconds: float) -> None:
        for bridge in self._bridges:
            self.daemons.vsctl("set", "Bridge", bridge, f"other-config:mac-aging-time={round(seconds)}")

    def prepare_traffic(self) -> None:
        """Waits until the daemon sees every port's link. Raises ProvisionError with the log's tail."""
        daemons, ports = self.daemons, {attachment.index + 1 for attachment in self._attached}

        def up() -> bool:
            return not any(parse_down(daemons.ofctl("dump-ports-desc", bridge)) & ports for bridge in self._bridges)

        daemons.switch.wait_until(up, failure="has not seen every port's link", timeout_s=_START_S)

    def stop(self) -> None:
        """Ends the daemons, and removes the links and the namespace with the datapath."""
        if self._daemons is not None:
            self._daemons.end()
        super().stop()
        if self._daemons is not None:
            self._daemons.stop()
        self._bridges.clear()


def _reported(installation: Installation) -> Mapping[str, Any]:
    return {"ovs": installation.version}
