# SPDX-License-Identifier: BSD-3-Clause
"""Kernel links on top of others (macvlan, ipvlan, vxlan) and netkit pairs. They end with their namespaces.

``mtu`` is that of layer 3, in bytes.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import randrange
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import open_netns
from pytest_icbench.host.net.links import TX_QUEUE_LENGTH, End, await_up, configure, link_index, netlink

_HAIRPIN = 1
_IFF_ALLMULTI = 0x200
#: IANA's port of VXLAN.
_VXLAN_PORT = 4789
#: ``enum netkit_mode``; its policies stay at their defaults, which let everything pass.
_NETKIT_L2 = 0
#: The least index of a macvtap link.
_TAP_INDEXES = 1 << 24
_IPVLAN_MODES = {"l2": 0, "l3": 1}


def create_macvlan(lower: str, netns: str, end: End, *, mode: str, mtu: int) -> None:
    """Creates a macvlan link at ``end``, configured as an endpoint, upon the link ``lower`` of ``netns``.

    ``mode``: ``bridge`` or ``vepa``. Raises ProvisionError.
    """
    assert end.netns is not None
    assert end.address is not None
    with open_netns(end.netns) as target, netlink(netns, doing=f"a macvlan link upon {lower}") as route:
        route.link(
            "add",
            ifname=end.name,
            kind="macvlan",
            link=link_index(route, lower),
            macvlan_mode=mode,
            address=end.address.mac,
            mtu=mtu,
            net_ns_fd=target,
        )
    configure(end)
    await_up(end.name, end.netns)


def create_macvtap(lower: str, netns: str, end: End, *, mac: str, mode: str, mtu: int) -> Path:
    """Creates a macvtap link at ``end``, a port without an IP address, upon the link ``lower`` of ``netns``.

    Args:
        mac: of the program that opens its character device.
        mode: ``bridge`` or ``vepa``.

    Returns the device, which is named by the link's index. So the index is one that no link of another namespace has.
    Raises ProvisionError.
    """
    index = next(one for one in iter(lambda: _TAP_INDEXES + randrange(_TAP_INDEXES), 0) if not _device(one).exists())
    with netlink(netns, doing=f"a macvtap link upon {lower}") as route:
        route.link(
            "add",
            index=index,
            ifname=end.name,
            kind="macvtap",
            link=link_index(route, lower),
            macvtap_mode=mode,
            address=mac,
            mtu=mtu,
            txqlen=TX_QUEUE_LENGTH,
        )
    configure(end)
    with netlink(netns, doing=f"multicast at {end.name}") as route:  # no program joins a group at the link
        route.link("set", index=index, flags=_IFF_ALLMULTI, change=_IFF_ALLMULTI)
    await_up(end.name, end.netns)
    device = _device(index)
    if not device.exists():
        raise ProvisionError(f"the kernel made no {device} for a macvtap link: mount devtmpfs at /dev")
    return device


def _device(index: int) -> Path:
    return Path(f"/dev/tap{index}")


def create_ipvlan(lower: str, netns: str, end: End, *, mode: str, mtu: int) -> None:
    """Creates an ipvlan link at ``end``, configured as an endpoint, upon the link ``lower`` of ``netns``.

    Args:
        end: its MAC address is ``lower``'s, as for all ipvlan links on ``lower``.
        mode: ``l2`` or ``l3``.

    Raises ProvisionError.
    """
    assert end.netns is not None
    with open_netns(end.netns) as target, netlink(netns, doing=f"an ipvlan link upon {lower}") as route:
        index, number = link_index(route, lower), _IPVLAN_MODES[mode]
        route.link("add", ifname=end.name, kind="ipvlan", link=index, ipvlan_mode=number, mtu=mtu, net_ns_fd=target)
    # Its operational state stays unknown, and it has no queue that could not be ready.
    configure(end, has_mac=True)


def reflect(name: str, netns: str) -> None:
    """Makes a bridge send frames back out of the port through which they came (``hairpin``)."""
    with netlink(netns, doing=f"hairpin on {name}") as route:
        route.link("set", index=link_index(route, name), kind="bridge_slave", IFLA_BRPORT_MODE=_HAIRPIN)


def create_vxlan(name: str, netns: str, *, number: int, local: str, remote: str, mtu: int) -> None:
    """Creates a vxlan link with a single other end, to which all frames go. It is down.

    Args:
        number: of its network (VNI).
        local: its own IP address in the namespace.
        remote: the other end's.
        mtu: layer 3 MTU in bytes of the frames that it carries.
    """
    with netlink(netns, doing=f"the vxlan link {name}") as route:
        route.link(
            "add",
            ifname=name,
            kind="vxlan",
            vxlan_id=number,
            vxlan_local=local,
            vxlan_group=remote,
            vxlan_port=_VXLAN_PORT,
            vxlan_learning=0,
            mtu=mtu,
        )


@cache
def _register_netkit() -> None:
    """Registers the attributes of netkit with pyroute2 (linux/if_link.h)."""
    from pyroute2.netlink import nla
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg, ifinfveth

    class netkit(nla):  # type: ignore[misc, unused-ignore] # noqa: N801 - as pyroute2 names kinds
        prefix = "IFLA_"
        nla_map = (
            ("IFLA_NETKIT_UNSPEC", "none"),
            ("IFLA_NETKIT_PEER_INFO", "info_peer"),
            ("IFLA_NETKIT_PRIMARY", "uint8"),
            ("IFLA_NETKIT_POLICY", "uint32"),
            ("IFLA_NETKIT_PEER_POLICY", "uint32"),
            ("IFLA_NETKIT_MODE", "uint32"),
        )

        @staticmethod
        def info_peer(self: Any, *args: Any, **named: Any) -> Any:  # noqa: ARG004 - as pyroute2 calls it
            return ifinfveth

    ifinfmsg.ifinfo.register_link_kind(module={"netkit": netkit})


def create_netkit(a: End, b: End, *, mtu: int) -> None:
    """Creates a netkit pair of mode L2, each end in its namespace and configured as an endpoint.

    Raises ProvisionError.
    """
    _register_netkit()
    assert a.address is not None
    assert b.address is not None
    with ExitStack() as stack:
        target = stack.enter_context(open_netns(b.netns or "/proc/thread-self/ns/net"))
        peer = [["IFLA_IFNAME", b.name], ["IFLA_MTU", mtu], ["IFLA_ADDRESS", b.address.mac], ["IFLA_NET_NS_FD", target]]
        route = stack.enter_context(netlink(a.netns, doing=f"the netkit links {a.name} and {b.name}"))
        route.link(
            "add",
            ifname=a.name,
            kind="netkit",
            mtu=mtu,
            address=a.address.mac,
            netkit_mode=_NETKIT_L2,
            netkit_peer_info={"attrs": peer},
        )
    for end in (a, b):
        configure(end)
    for end in (a, b):
        await_up(end.name, end.netns)
