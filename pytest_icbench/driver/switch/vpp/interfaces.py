# SPDX-License-Identifier: BSD-3-Clause
"""VPP's interfaces: sockets that it serves, and interfaces of the kernel, by its plugins; and their queues."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.kernel_ports import port_of
from pytest_icbench.driver.switch.common.ports import MEMIF, VHOST_USER, VHOST_USER_PACKED, endpoint_of, socket_path
from pytest_icbench.driver.switch.protocol import Attachment
from pytest_icbench.driver.switch.vpp.client import VppClient
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.traffic import MTU_ETHERNET_FRAME_BYTES

AF_PACKET, _AF_XDP, TAP = "afpacket", "afxdp", "tap"
#: Kinds of port that are links to containers of the kernel.
TO_KERNEL = (AF_PACKET, _AF_XDP, TAP)
#: VPP's plugin for each kind of port.
PLUGINS: Mapping[str, str] = MappingProxyType(
    {
        VHOST_USER: "vhost_plugin.so",
        VHOST_USER_PACKED: "vhost_plugin.so",
        MEMIF: "memif_plugin.so",
        AF_PACKET: "af_packet_plugin.so",
        _AF_XDP: "af_xdp_plugin.so",
        TAP: "tap_plugin.so",
    }
)
#: Greatest frame in bytes with FCS: AF_XDP keeps a frame in one buffer of 2 KiB.
FRAME_BYTES: Mapping[str, int] = MappingProxyType({_AF_XDP: MTU_ETHERNET_FRAME_BYTES})
_ETHERNET = 1
_QDISC_BYPASS = 1
_XDP_RING = 2048
_TAP_RING = 1024
#: The next number that is free.
_ANY_TAP = 0xFFFFFFFF
_POLLING = 1


def create(client: VppClient, port: str, attachment: Attachment, *, queues: int, mtu: int) -> int:
    """Makes a port; returns the index of its interface. Raises ProvisionError."""
    if port in TO_KERNEL:
        needed = f"port {port} takes: build it with the plugin, or choose another port (--icbench-port)"
        if port == TAP:
            return _tap(client, port_of(attachment), needed, mtu)
        return kernel_interface(client, port_of(attachment), PLUGINS[port], needed)
    path = str(socket_path(attachment))
    if port == MEMIF:
        return memif(client, path, attachment.index + 1, queues=queues)
    packed = port == VHOST_USER_PACKED
    reply = client.call("create_vhost_user_if_v2", is_server=True, sock_filename=path, enable_packed=packed)
    return int(reply.sw_if_index)


def memif(
    client: VppClient, path: str, number: int, *, queues: int = 1, serves: bool = True, mac: str | None = None
) -> int:
    """Makes an end of a memif, whose socket it serves or connects to; returns its index. Raises ProvisionError.

    Args:
        number: of the socket, from 1; 0 is VPP's own.
        mac: its MAC address; None for one of VPP's choice.
    """
    client.call("memif_socket_filename_add_del_v2", is_add=True, socket_id=number, socket_filename=path)
    role = {"role": 0 if serves else 1, "mode": 0, "rx_queues": queues, "tx_queues": queues}
    address = {} if mac is None else {"hw_addr": mac}
    return int(client.call("memif_create_v2", **role, **address, id=0, socket_id=number).sw_if_index)


def kernel_interface(client: VppClient, name: str, plugin: str, needed: str, mac: str | None = None) -> int:
    """Makes an interface of one of the kernel's; returns its index. Raises ProvisionError.

    Args:
        mac: its MAC address, with AF_PACKET; None for one of VPP's choice.
        needed: who takes the plugin, with the remedy, if this VPP does not have it: ``the uplink takes: …``.
    """
    xdp = plugin == PLUGINS[_AF_XDP]
    message = "af_xdp_create_v3" if xdp else "af_packet_create_v3"
    _check_known(client, message, plugin, needed)
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
        flags=_QDISC_BYPASS,
    )
    return int(reply.sw_if_index)


def _tap(client: VppClient, name: str, needed: str, mtu: int) -> int:
    """Makes a tap device in VPP's namespace; returns the index of its interface. Raises ProvisionError.

    Without flags VPP leaves no checksum and no segmentation to the device, and neither does the kernel.
    """
    message = "tap_create_v3"
    _check_known(client, message, PLUGINS[TAP], needed)
    reply = client.call(
        message,
        id=_ANY_TAP,
        use_random_mac=True,
        num_rx_queues=1,
        num_tx_queues=1,
        rx_ring_sz=_TAP_RING,
        tx_ring_sz=_TAP_RING,
        host_mtu_set=True,
        host_mtu_size=mtu,
        host_if_name_set=True,
        host_if_name=name,
        tap_flags=0,
    )
    return int(reply.sw_if_index)


def _check_known(client: VppClient, message: str, plugin: str, needed: str) -> None:
    if not client.knows(message):
        raise ProvisionError(f"this vpp has no plugin {plugin}, which {needed}")


def endpoint(port: str, attachment: Attachment, mtu: int) -> Endpoint:
    """Returns the endpoint at a port."""
    if port in TO_KERNEL:
        return kernel.endpoint(attachment, port_of(attachment), mtu)
    return endpoint_of(port, attachment)


def place(client: VppClient, interface: int, workers: Sequence[int], deadline: float, interface_name: str) -> None:
    """Makes workers poll an interface's queues, once it has as many. Raises ProvisionError at the deadline.

    Args:
        interface: index of the interface.
        workers: number of the worker of each queue.
        deadline: by ``time.monotonic``, in seconds.
        interface_name: for messages.
    """
    while len(queues := client.call("sw_interface_rx_placement_dump", sw_if_index=interface)) < len(workers):
        if time.monotonic() > deadline:
            raise ProvisionError(f"vpp has no queue for {interface_name}: it is not connected")
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
        if queue.mode != _POLLING:
            client.call("sw_interface_set_rx_mode", sw_if_index=interface, queue_id_valid=False, mode=_POLLING)
