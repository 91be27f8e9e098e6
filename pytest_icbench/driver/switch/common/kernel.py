# SPDX-License-Identifier: BSD-3-Clause
"""Switches of the kernel: whether it has them, their veth endpoints, and ports that are links of the kernel."""

from __future__ import annotations

import os
import socket
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.switch.protocol import NODE_INTERFACE as NODE_INTERFACE
from pytest_icbench.driver.switch.protocol import Attachment, Busy, Needs, PortCounters, Switch, SwitchFacts, SwitchSpec
from pytest_icbench.driver.workload.executable import REBUILD
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import rights
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import CLONE_NEWNET, enter_netns, save_netns, unshare
from pytest_icbench.host.net import ethtool, links
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Endpoint, Veth
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import MAX_FRAME_BYTES

VETH = "veth"
#: Field of a CPU's line in /proc/stat.
_SOFTIRQ_FIELD = 7
#: The kernel's option for each kind of link.
_KERNEL_OPTIONS = {
    "veth": "CONFIG_VETH",
    "bridge": "CONFIG_BRIDGE",
    "macvlan": "CONFIG_MACVLAN",
    "macvtap": "CONFIG_MACVTAP",
    "ipvlan": "CONFIG_IPVLAN",
    "netkit": "CONFIG_NETKIT, Linux 6.7",
    "vxlan": "CONFIG_VXLAN",
}
_UPON_LINKS = ("macvlan", "macvtap", "ipvlan")
_AF_XDP = getattr(socket, "AF_XDP", 44)
_DRIVER_PLACES = (
    "usr/lib/*/dpdk/pmds-*/librte_net_{0}.so*",
    "usr/lib64/dpdk-pmds/librte_net_{0}.so*",
    "usr/lib64/librte_net_{0}.so*",
    "usr/local/lib/*/librte_net_{0}.so*",
    "usr/local/lib/*/dpdk/pmds-*/librte_net_{0}.so*",
    "usr/local/lib64/librte_net_{0}.so*",
)
#: A switch in user space reads frames as they are in memory, without the checksum that a socket leaves to its device.
UNFINISHED = {"checksum": "false", "gso": "false", "tso": "false"}
#: Key of the user's configuration for the offloads of ports and endpoints.
OFFLOADS = "offloads"


def probe_links(*kinds: str) -> str:
    """Creates links of these kinds in a temporary network namespace; returns the kernel's release.

    Without root nothing is tried: a plan assumes that they exist. Raises Unsupported if the kernel lacks one.
    ``kinds``: kinds of links; one that needs a lower link follows ``veth``.
    """
    if os.geteuid() != 0:
        return kernel_release()
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    for kind in kinds:
        try:
            with save_netns():
                unshare(CLONE_NEWNET)
                with IPRoute() as route:
                    attributes: dict[str, object] = {"peer": "probe1"} if kind == "veth" else {}
                    if kind in _UPON_LINKS:
                        route.link("add", ifname="lower", kind="veth", peer="far")
                        attributes = {"link": route.link_lookup(ifname="lower")[0]}
                    if kind == "vxlan":
                        attributes = {"vxlan_id": 1}
                    route.link("add", ifname="probe0", kind=kind, **attributes)
        except (NetlinkError, OSError) as error:
            code = error.code if isinstance(error, NetlinkError) else error.errno
            remedy = rights.remedy_of(code, _remedy(kind, _KERNEL_OPTIONS[kind]))
            raise Unsupported(
                f"this kernel cannot make links of kind {kind} ({os.strerror(code or 0)}): {remedy}"
            ) from None
    return kernel_release()


def probe_device(path: str, user: str, module: str, option: str) -> None:
    """Opens a device of the kernel, as root: see ``probe_links``. Raises Unsupported if the kernel lacks it.

    Args:
        user: what needs it, for the message.
        module: its kernel module.
        option: its kernel option.
    """
    if os.geteuid() != 0:
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        remedy = rights.remedy_of(error.errno, _remedy(module, option))
        raise Unsupported(f"{user} takes {path}, which cannot be opened ({error.strerror}): {remedy}") from None


def _remedy(module: str, option: str) -> str:
    return (
        f"load its module (modprobe {module}) or use a kernel that has it ({option}), as the guest of `make test-paths`"
        " does"
    )


@contextmanager
def scratch_pair() -> Iterator[tuple[str, str]]:
    """Yields the names of a veth pair in a temporary network namespace of this thread, for probes."""
    from pyroute2 import IPRoute

    with save_netns():
        unshare(CLONE_NEWNET)
        with IPRoute() as route:
            route.link("add", ifname="probe0", kind="veth", peer="probe1")
        yield "probe0", "probe1"


def probe_netdev_api(api: str) -> None:
    """Raises Unsupported if workload, DPDK or kernel lack what ``api`` needs on a kernel interface.

    Whether the interface's driver supports it is known once the port is open.
    """
    if api in ("xdp", "af_xdp"):
        _probe_xdp_socket(api)
    if api == "xdp" and not workload_version().xdp:
        raise Unsupported(
            f"api xdp: the workload was built without AF_XDP: apt install libxdp-dev libbpf-dev, and {REBUILD}"
        )
    if api not in NETDEV_APIS:
        return
    if not any(True for place in _DRIVER_PLACES for _ in Path("/").glob(place.format(api))):
        package = f"librte-net-{api.replace('_', '-')}*"
        raise Unsupported(f"api {api}: DPDK's driver net_{api} is not installed: install its package ({package})")


def _probe_xdp_socket(api: str) -> None:
    try:
        socket.socket(_AF_XDP, socket.SOCK_RAW).close()
    except OSError as error:
        raise Unsupported(
            f"api {api}: this kernel gives no AF_XDP socket ({error.strerror}): use root and CONFIG_XDP_SOCKETS"
        ) from None


def node_end(attachment: Attachment) -> links.End:
    """Returns the end of an attachment's veth pair in its node."""
    neighbours = () if attachment.peer is None else (attachment.peer,)
    return links.End(attachment.interface, attachment.node.netns, attachment.address, neighbours)


def veth_endpoint(attachment: Attachment, host_interface: str | None, mtu: int) -> Veth:
    """Returns the endpoint at ``node_end``; ``mtu`` is the layer 3 MTU in bytes."""
    return Veth(address=attachment.address, interface=attachment.interface, host_interface=host_interface, mtu=mtu)


def connect(session: HostSession, attachment: Attachment, port: links.End, *, mtu: int) -> None:
    """Makes a port for an attachment's node: the far end of a veth pair, or the node's own link. Raises ProvisionError.

    Args:
        port: name and network namespace of the port.
    """
    node = attachment.node
    if node.link is None:
        links.create_pair(session, node_end(attachment), port, mtu=mtu)
        return
    with enter_netns(node.netns):
        links.set_mtu(node.link, mtu)
        links.move(node.link, port)


def remove_ends(attachments: Sequence[Attachment]) -> None:
    """Removes the links in the nodes, and thereby their other ends."""
    for attachment in attachments:
        # A node that has ended has no links.
        with suppress(ProvisionError):
            links.remove_link(attachment.interface, attachment.node.netns)


def softirq_time(session: HostSession | None, cpus: Sequence[int]) -> Busy | None:
    """Returns the time of these CPUs in soft interrupts and ksoftirqd since boot (proc(5), /proc/stat).

    A frame crosses the kernel's links in a soft interrupt of the sending CPU, so this is the switch's work on CPUs of
    pinned endpoints, in ticks of 10 ms. None before the start or without such CPUs.
    """
    text = None if session is None else session.root.read("/proc/stat")
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    cpu_names = {f"cpu{cpu}" for cpu in cpus}
    rows = [line.split() for line in (text or "").splitlines()]
    ticks = [int(row[_SOFTIRQ_FIELD]) for row in rows if len(row) > _SOFTIRQ_FIELD and row[0] in cpu_names]
    return Busy(busy_ns=sum(ticks) * tick_ns) if ticks else None


def port_counters(index: int, statistics: Mapping[str, int], *, at_endpoint: bool) -> PortCounters:
    """Returns the counters of a link as those of the switch's port.

    Args:
        statistics: by name, such as ``rx_packets``.
        at_endpoint: the counters are the endpoint's, which sends what the switch receives.
    """
    rx, tx = ("tx", "rx") if at_endpoint else ("rx", "tx")
    return PortCounters(
        index=index,
        rx_packets=statistics.get(f"{rx}_packets"),
        tx_packets=statistics.get(f"{tx}_packets"),
        rx_dropped=statistics.get(f"{rx}_dropped"),
        tx_dropped=statistics.get(f"{tx}_dropped"),
    )


def endpoint_counters(attachments: Sequence[Attachment]) -> list[PortCounters]:
    """Returns the counters of the nodes' interfaces as those of the switch's ports at their other ends."""
    return [
        port_counters(item.index, links.read_statistics(item.interface, item.node.netns), at_endpoint=True)
        for item in attachments
    ]


class KernelSwitch(Switch):
    """A driver whose ports are veth links. The kernel forwards its frames in the endpoints' CPU time.

    ``start`` sets ``session``, and ``cpus``, the CPUs of the endpoints.
    """

    family = "kernel"
    takes_binary = False
    ports: ClassVar[tuple[str, ...]] = (VETH,)
    apis: ClassVar[tuple[str, ...]] = (*SOCKET_APIS, *NETDEV_APIS)
    default_apis = ("udp-mmsg",)
    default_cores = 0
    scalable = False
    max_frame_bytes = MAX_FRAME_BYTES
    max_pairs = None
    segments = True

    session: HostSession | None = None
    cpus: Sequence[int] = ()

    def probe_api(self, session: HostSession, api: str) -> None:
        probe_netdev_api(api)

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs()

    def busy(self) -> Busy | None:
        """Returns the time of the kernel's network work on the endpoints' CPUs."""
        return softirq_time(self.session, self.cpus)


def kernel_release() -> str:
    """Returns the running kernel's release, which is the version of its switches."""
    return os.uname().release


def port_name(attachment: Attachment) -> str:
    """Returns the name of an attachment's port in the path's namespace."""
    return f"p{attachment.index}"


def create_links(
    session: HostSession,
    netns: str,
    attachments: Sequence[Attachment],
    *,
    mtu: int,
    offloads: Mapping[str, str] = UNFINISHED,
) -> None:
    """Creates a veth link per attachment, with its port in a userspace switch's namespace. Raises ProvisionError."""
    for attachment in attachments:
        end = node_end(attachment)
        links.create_pair(session, end, links.End(port_name(attachment), netns), mtu=mtu)
        ethtool.apply_settings(session, [(end.name, attachment.node.netns)], offloads)


def port_offloads(spec: SwitchSpec, switch: str, able: Sequence[str]) -> dict[str, str]:
    """Returns what the containers' interfaces leave to a userspace switch's port, and what not. Raises ProvisionError.

    ``able``: the port kinds that can have offloads.
    """
    given = ethtool.check_settings(spec.config.get(OFFLOADS, {}))
    if given and spec.port not in able:
        raise ProvisionError(
            f"{OFFLOADS}: {switch}'s port {spec.port} has none: take --icbench-port {' or '.join(able)}"
        )
    return {**UNFINISHED, **given}


def move_ports(netns: str, attachments: Sequence[Attachment]) -> None:
    """Moves ports that a userspace switch has created into the nodes. Raises ProvisionError."""
    for attachment in attachments:
        end = node_end(attachment)
        with enter_netns(netns):
            links.move(port_name(attachment), end)


class KernelPath(KernelSwitch):
    """A path of the kernel in its own network namespace, which is removed with everything in it.

    Attributes:
        kinds: the kinds of links that it needs.
        veth_ports: whether each attachment has a veth link with the port ``pN`` as its far end; else ``join`` creates
            the links in the nodes.
        preset: offloads for which the path needs other values than the kernel's defaults.
    """

    # Groups do not grow by them: they are compared with each other by name.
    by_name_only = True
    learns = False
    segments = False
    config_keys: ClassVar[Mapping[str, Kind]] = {OFFLOADS: "table"}
    kinds: ClassVar[tuple[str, ...]] = ("veth",)
    veth_ports: ClassVar[bool] = True
    preset: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._netns: str | None = None
        self._attached: list[Attachment] = []

    @property
    def netns(self) -> str:
        """The path of its namespace. Raises ProvisionError if it was not started."""
        if self._netns is None:
            raise ProvisionError(f"{self.name} was not started")
        return self._netns

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Raises Unsupported with the kernel's option if the kernel lacks such links."""
        return SwitchFacts(version=probe_links(*self.kinds))

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Creates the namespace, the ports and the path. Raises ProvisionError."""
        settings = {**self.preset, **ethtool.check_settings(spec.config.get(OFFLOADS, {}))}
        self.session, self.cpus = session, spec.endpoint_cpus
        self.make_namespaces(session, spec)
        for attachment in attachments:
            self._attached.append(attachment)
            if self.veth_ports:
                port = links.End(port_name(attachment), self.port_netns(attachment))
                links.create_pair(session, self.node_end(attachment), port, mtu=spec.mtu)
        endpoints = self.join(spec, attachments)
        places = [(attachment.interface, attachment.node.netns) for attachment in attachments]
        if self.veth_ports:
            places += [(port_name(attachment), self.port_netns(attachment)) for attachment in attachments]
        ethtool.apply_settings(session, places, settings)
        self._facts = SwitchFacts(version=kernel_release(), config=self.describe_config(spec, settings, attachments[0]))
        return endpoints

    def make_namespaces(self, session: HostSession, spec: SwitchSpec) -> None:
        """Makes the namespace of the path. Raises ProvisionError."""
        self._netns = links.create_netns(session, f"{spec.name}-path")

    def port_netns(self, attachment: Attachment) -> str:
        """Returns the namespace of an attachment's port."""
        return self.netns

    def node_end(self, attachment: Attachment) -> links.End:
        """Returns the end of an attachment's link in its node."""
        return node_end(attachment)

    @abstractmethod
    def join(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Creates the path between the ports; returns the endpoints in order. Raises ProvisionError."""

    def endpoints(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Returns the nodes' endpoints at ports ``pN``, or at links whose far end has no name."""
        ports = [port_name(attachment) if self.veth_ports else None for attachment in attachments]
        return [veth_endpoint(attachment, port, spec.mtu) for attachment, port in zip(attachments, ports, strict=True)]

    def describe_config(self, spec: SwitchSpec, settings: Mapping[str, str], first: Attachment) -> Mapping[str, Any]:
        """Returns the configuration for results: the mode, and the offloads in force."""
        in_force: dict[str, Any] = {"endpoint": ethtool.read_offloads(first.interface, first.node.netns)}
        if self.veth_ports:
            in_force["port"] = ethtool.read_offloads(port_name(first), self.port_netns(first))
        rest = {key: settings[key] for key in (ethtool.THREADED, ethtool.RPS) if key in settings}
        return {"mode": spec.mode or "default", OFFLOADS: {**in_force, **rest}}

    def check(self) -> None:
        """Raises ProvisionError if a port is gone."""
        for attachment in self._attached if self.veth_ports else ():
            if not links.exists(port_name(attachment), self.port_netns(attachment)):
                raise ProvisionError(f"the port {port_name(attachment)} of {self.name} is gone: it was removed")

    @property
    def counts_at_ports(self) -> bool:
        """Whether every frame is counted at its ports; if not, the endpoints' counters are used."""
        return self.veth_ports

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the ports, or those of the endpoints if frames do not pass the ports."""
        if not self.counts_at_ports:
            return endpoint_counters(self._attached)
        return [
            port_counters(item.index, links.read_statistics(port_name(item), self.port_netns(item)), at_endpoint=False)
            for item in self._attached
        ]

    def stop(self) -> None:
        """Removes the links of the nodes and the namespace with all that is in it."""
        session = self.session
        if session is None:
            return
        remove_ends(self._attached)
        self._attached.clear()
        if self._netns is not None:
            links.delete_netns(session, self._netns)
            self._netns = None
