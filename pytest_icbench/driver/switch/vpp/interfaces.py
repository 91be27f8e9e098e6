# SPDX-License-Identifier: BSD-3-Clause
"""VPP's interfaces: sockets, interfaces of the kernel, taps and the uplink; and their queues."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel import port_name
from pytest_icbench.driver.switch.common.nic_uplink import UPLINK, NicUplink
from pytest_icbench.driver.switch.common.userspace_ports import (
    MEMIF,
    VHOST_USER,
    VHOST_USER_PACKED,
    make_endpoint,
    socket_path,
)
from pytest_icbench.driver.switch.protocol import Attachment, SwitchSpec
from pytest_icbench.driver.switch.vpp.program import BUFFER_BYTES
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import ethtool
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.traffic import MTU_ETHERNET_FRAME_BYTES

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.vpp.client import VppClient

AF_PACKET, _AF_XDP, TAP = "afpacket", "afxdp", "tap"
#: A memif with VPP as the client, whose buffers are the rings' memory, so that it copies nothing.
MEMIF_CLIENT = "memif-client"
#: Port kinds that are kernel interfaces of containers.
KERNEL_PORTS = (AF_PACKET, _AF_XDP, TAP)
_REMEDY = "take a VPP with the plugin, or choose another port (--icbench-port)"
#: VPP's plugin for each kind of port.
PLUGINS: Mapping[str, str] = MappingProxyType(
    {
        VHOST_USER: "vhost_plugin.so",
        VHOST_USER_PACKED: "vhost_plugin.so",
        MEMIF: "memif_plugin.so",
        MEMIF_CLIENT: "memif_plugin.so",
        AF_PACKET: "af_packet_plugin.so",
        _AF_XDP: "af_xdp_plugin.so",
        TAP: "tap_plugin.so",
    }
)
#: Largest frame in bytes with FCS: AF_XDP keeps a frame in one buffer of 2 KiB.
FRAME_BYTES: Mapping[str, int] = MappingProxyType({_AF_XDP: MTU_ETHERNET_FRAME_BYTES})
_ETHERNET = 1
_QDISC_BYPASS = 1
_XDP_RING = 2048
_TAP_RING = 1024
#: Stands for the next free number.
_ANY_TAP = 0xFFFFFFFF
#: The API's numbers of the rx modes, by ours.
_RX_MODES: Mapping[str, int] = MappingProxyType({"polling": 1, "interrupt": 2, "adaptive": 3})
#: Seconds between looks for sockets that endpoints serve. By itself VPP looks every three.
_LOOK_S = 0.1
_ADMIN_UP = 1
#: Key of the user's configuration for memifs with VPP as the client, and the ranges of its numbers.
MEMIF_KEY = "memif"
_MEMIF_RANGES: Mapping[str, tuple[int, int]] = MappingProxyType({"ring": (64, 16384), "buffer": (128, 65535)})
_ZERO_COPY = "zero-copy"
#: Ports that can leave work to the device, by key ``offloads``, and VPP's flag for each.
_OFFLOADING = (TAP, AF_PACKET)
_TAP_FLAGS: Mapping[str, int] = MappingProxyType({"tso": 1, "gso": 1, "checksum": 2, "gro": 32})
_AF_PACKET_OFFLOADS = 2
#: The devices with the kernel's module and option for each.
_DEVICES = (("/dev/net/tun", "tun", "CONFIG_TUN"), ("/dev/vhost-net", "vhost_net", "CONFIG_VHOST_NET"))


def check_config(spec: SwitchSpec) -> None:
    """Raises ProvisionError in one sentence if the user's configuration does not fit the port."""
    _memif_arguments(spec)
    read_offloads(spec)
    if any(" rx-mode " in line for line in spec.config.get("commands", ())):
        raise ProvisionError("commands: rx modes are set before each launch: take --icbench-rx-mode instead")


def read_offloads(spec: SwitchSpec) -> dict[str, str]:
    """Returns what the containers' interfaces leave to the port, and what not. Raises ProvisionError."""
    return kernel.port_offloads(spec, "vpp", _OFFLOADING)


def _memif_arguments(spec: SwitchSpec) -> dict[str, Any]:
    """Returns the arguments of memifs with VPP as the client. Raises ProvisionError."""
    given: Mapping[str, str] = spec.config.get(MEMIF_KEY, {})
    if given and spec.port != MEMIF_CLIENT:
        raise ProvisionError(
            f"{MEMIF_KEY}: at port {spec.port} the endpoint is the client, which decides: take --icbench-port"
            f" {MEMIF_CLIENT}, or set --icbench-ring"
        )
    if unknown := given.keys() - {*_MEMIF_RANGES, _ZERO_COPY}:
        raise ProvisionError(f"{MEMIF_KEY}: there is no '{min(unknown)}': the keys are ring, buffer and {_ZERO_COPY}")
    if (zero_copy := given.get(_ZERO_COPY, "true")) not in ("true", "false"):
        raise ProvisionError(f"{MEMIF_KEY}: {_ZERO_COPY} = {zero_copy} is neither true nor false")
    copies = zero_copy == "false"
    sizes = {"ring": spec.ring, "buffer": BUFFER_BYTES} | {
        key: _memif_size(key, given[key]) for key in given if key != _ZERO_COPY
    }
    if not copies and "buffer" in given:
        raise ProvisionError(f"{MEMIF_KEY}: without copies the buffers are VPP's own: set {_ZERO_COPY} = false, too")
    return {"ring_size": sizes["ring"], "buffer_size": sizes["buffer"], "no_zero_copy": copies}


def _memif_size(key: str, text: str) -> int:
    least, greatest = _MEMIF_RANGES[key]
    size = int(text) if text.isdecimal() else 0
    if not least <= size <= greatest or (key == "ring" and size & (size - 1)):
        power = ", a power of two" if key == "ring" else ""
        raise ProvisionError(f"{MEMIF_KEY}: {key} = {text} is no number from {least} to {greatest}{power}")
    return size


def create_port(client: VppClient, spec: SwitchSpec, attachment: Attachment) -> int:
    """Creates a port; returns the index of its interface. Raises ProvisionError."""
    port = spec.port
    if port in KERNEL_PORTS:
        needed = f"port {port} takes: {_REMEDY}"
        if port == TAP:
            return _create_tap(client, port_name(attachment), needed, spec)
        offloads = "true" in read_offloads(spec).values()
        return create_kernel_interface(client, port_name(attachment), PLUGINS[port], needed, offloads=offloads)
    path = str(socket_path(attachment))
    if port in (MEMIF, MEMIF_CLIENT):
        more = _memif_arguments(spec) if port == MEMIF_CLIENT else {}
        return create_memif(client, path, attachment.index + 1, queues=spec.queues, serves=port == MEMIF, **more)
    packed, message = port == VHOST_USER_PACKED, "create_vhost_user_if_v2"
    _check_plugin(client, message, PLUGINS[port], f"port {port} takes: {_REMEDY}")
    reply = client.call(message, is_server=True, sock_filename=path, enable_packed=packed)
    return int(reply.sw_if_index)


def create_memif(
    client: VppClient, path: str, number: int, *, queues: int = 1, serves: bool = True, **more: Any
) -> int:
    """Creates a memif that serves its socket or connects to it; returns its index. Raises ProvisionError.

    Args:
        number: number of the socket, from 1; 0 is VPP's.
        more: further arguments of the message, such as ``hw_addr``.
    """
    message = "memif_socket_filename_add_del_v2"
    _check_plugin(client, message, PLUGINS[MEMIF], f"port {MEMIF} takes: {_REMEDY}")
    client.call(message, is_add=True, socket_id=number, socket_filename=path)
    role = {"role": 0 if serves else 1, "mode": 0, "rx_queues": queues, "tx_queues": queues}
    return int(client.call("memif_create_v2", **role, **more, id=0, socket_id=number).sw_if_index)


def create_kernel_interface(
    client: VppClient, name: str, plugin: str, needed: str, mac: str | None = None, *, offloads: bool = False
) -> int:
    """Creates an interface on one of the kernel; returns its index. Raises ProvisionError.

    Args:
        mac: its MAC address, with AF_PACKET; None: VPP chooses.
        needed: what needs the plugin, with the remedy, for the message: ``the uplink takes: …``.
        offloads: whether checksums and segmentation are left to others, with AF_PACKET.
    """
    xdp = plugin == PLUGINS[_AF_XDP]
    message = "af_xdp_create_v3" if xdp else "af_packet_create_v3"
    _check_plugin(client, message, plugin, needed)
    if xdp:
        rings = {"rxq_num": 1, "rxq_size": _XDP_RING, "txq_size": _XDP_RING}
        return int(client.call(message, host_if=name, name=name, **rings, mode=0, flags=0).sw_if_index)
    reply = client.call(
        message,
        mode=_ETHERNET,
        use_random_hw_addr=mac is None,
        **({} if mac is None else {"hw_addr": mac}),
        host_if_name=name,
        num_rx_queues=1,
        num_tx_queues=1,
        flags=_QDISC_BYPASS | (_AF_PACKET_OFFLOADS if offloads else 0),
    )
    return int(reply.sw_if_index)


def _create_tap(client: VppClient, name: str, needed: str, spec: SwitchSpec) -> int:
    """Creates a tap device in VPP's namespace; returns the index of its interface. Raises ProvisionError.

    Without flags neither VPP nor the kernel leaves checksums or segmentation to the device.
    """
    flags = {_TAP_FLAGS.get(key, 0) for key, value in read_offloads(spec).items() if value == "true"}
    message = "tap_create_v3"
    _check_plugin(client, message, PLUGINS[TAP], needed)
    reply = client.call(
        message,
        id=_ANY_TAP,
        use_random_mac=True,
        num_rx_queues=1,
        num_tx_queues=1,
        rx_ring_sz=_TAP_RING,
        tx_ring_sz=_TAP_RING,
        host_mtu_set=True,
        host_mtu_size=spec.mtu,
        host_if_name_set=True,
        host_if_name=name,
        tap_flags=sum(flags),
    )
    return int(reply.sw_if_index)


def _check_plugin(client: VppClient, message: str, plugin: str, needed: str) -> None:
    if not client.knows(message):
        raise ProvisionError(f"this vpp has no plugin {plugin}, which {needed}")


def port_endpoint(port: str, attachment: Attachment, mtu: int) -> Endpoint:
    """Returns the endpoint at a port."""
    if port in KERNEL_PORTS:
        return kernel.veth_endpoint(attachment, port_name(attachment), mtu)
    return make_endpoint(MEMIF if port == MEMIF_CLIENT else port, attachment, serves=port == MEMIF_CLIENT)


def find_servers(client: VppClient, port_indexes: Sequence[int], bell: int, deadline: float) -> None:
    """Makes memifs with VPP as the client connect now, until all are or to the deadline.

    VPP looks for all sockets when any memif goes up, and else every three seconds. A port that went down would lose the
    addresses that it has learned. ``bell``: index of a memif without a server, which goes up and down in their place.
    """
    while not all(_placement(client, each) for each in port_indexes) and time.monotonic() <= deadline:
        for flags in (0, _ADMIN_UP):
            client.call("sw_interface_set_flags", sw_if_index=bell, flags=flags)
        time.sleep(_LOOK_S)


def _placement(client: VppClient, interface: int) -> Any:
    return client.call("sw_interface_rx_placement_dump", sw_if_index=interface)


@dataclass(frozen=True, slots=True)
class Polling:
    """How the receive queues of an interface are served.

    Attributes:
        workers: number of the worker of each queue.
        mode: one of ``model.case.RX_MODES``.
        deadline: when all queues have to exist, in seconds of ``time.monotonic``.
        interface_name: for messages.
    """

    workers: Sequence[int]
    mode: str
    deadline: float
    interface_name: str


def place_queues(client: VppClient, interface: int, asked: Polling) -> None:
    """Assigns an interface's queues to workers, once all exist, and their rx modes.

    Raises ProvisionError at the deadline, or if VPP reports another mode afterwards.
    """
    workers, mode = asked.workers, _RX_MODES[asked.mode]
    while len(queues := _placement(client, interface)) < len(workers):
        if time.monotonic() > asked.deadline:
            raise ProvisionError(f"vpp has no queue for {asked.interface_name}: it is not connected")
        time.sleep(0.01)
    for queue in queues:
        worker = workers[queue.queue_id % len(workers)]
        if queue.worker_id != worker:
            client.call(
                "sw_interface_set_rx_placement",
                sw_if_index=interface,
                queue_id=queue.queue_id,
                worker_id=worker,
                is_main=False,
            )
    if all(queue.mode == mode for queue in queues):
        return
    client.call("sw_interface_set_rx_mode", sw_if_index=interface, queue_id_valid=False, mode=mode)
    if any(queue.mode != mode for queue in _placement(client, interface)):
        raise ProvisionError(
            f"vpp did not take rx mode {asked.mode} for {asked.interface_name}: leave --icbench-rx-mode out"
        )


def probe_taps() -> None:
    """Raises Unsupported with the kernel's option if the kernel lacks a device for VPP's taps."""
    for path, module, option in _DEVICES:
        kernel.probe_device(path, "port tap of vpp", module, option)


def move_taps(session: HostSession, pid: int, spec: SwitchSpec, netns: str, attachments: Sequence[Attachment]) -> None:
    """Moves VPP's taps into the nodes, and their vhost threads to the service CPUs. Raises ProvisionError.

    VPP shares rings with the kernel's vhost-net, whose threads copy each frame to and from the device. A tap has one
    for each thread of VPP. By default they run on the CPU of VPP's main thread, or on any.

    Args:
        pid: VPP's process.
        netns: path of VPP's network namespace.
    """
    kernel.move_ports(netns, attachments)
    ends = [(attachment.interface, attachment.node.netns) for attachment in attachments]
    ethtool.apply_settings(session, ends, read_offloads(spec))
    cpus = set(spec.service_cpus) - set(spec.worker_cpus)
    for thread in _vhost_threads(pid):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)


def _vhost_threads(pid: int) -> Iterator[int]:
    """Yields the vhost threads of a process: its own since Linux 6.4, threads of the kernel before."""
    for task in (*Path(f"/proc/{pid}/task").glob("[0-9]*"), *Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            if (task / "comm").read_text(encoding="utf-8").strip() == f"vhost-{pid}":
                yield int(task.name)


class VppUplink:
    """The NIC in VPP's network namespace. ``netns``: the namespace's path. ``plugin``: VPP's plugin that drives it."""

    def __init__(self, session: HostSession, spec: SwitchSpec, netns: str) -> None:
        assert spec.uplink is not None
        self._xdp = spec.uplink.via == "af_xdp"
        self.plugin = PLUGINS["afxdp" if self._xdp else "afpacket"]
        self._nic = NicUplink(session, spec.uplink, netns, mtu=spec.mtu)

    def take(self) -> None:
        """Takes the NIC. Raises ProvisionError."""
        self._nic.take(promiscuous=True)

    def create(self, client: VppClient) -> int:
        """Creates the interface; returns its index. Raises ProvisionError, also without the plugin."""
        other = "without +af_xdp" if self._xdp else "for AF_XDP (NIC+af_xdp)"
        remedy = f"build it with the plugin, or name the NIC {other}"
        index = create_kernel_interface(client, UPLINK, self.plugin, f"the uplink takes: {remedy}")
        self._nic.await_carrier()
        return index

    def give_back(self) -> None:
        """Restores the NIC after VPP has ended. Idempotent. Raises ProvisionError if that fails."""
        self._nic.give_back()
