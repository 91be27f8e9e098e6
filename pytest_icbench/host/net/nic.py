# SPDX-License-Identifier: BSD-3-Clause
"""A NIC of the host that a rig takes as its uplink, and that is as it was afterwards: addresses, routes, MTU, flags.

It goes into the network namespace of whoever uses it, where nothing else of the host's is on it. Its state is in the
journal before that; the namespace has a name of its own, so that the NIC can be fetched back also after SIGKILL (a veth
ends with its namespace, and a card would come back under whatever name is free).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.namespaces import opened
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.net.links import await_up, link_index, netlink
from pytest_icbench.host.net.nic_use import use_of
from pytest_icbench.host.resource.pci import SETTLE_S

if TYPE_CHECKING:
    from pytest_icbench.host.changes import Changes

_IFF_UP = 0x1
_IFF_NOARP = 0x80
_IFF_PROMISC = 0x100
_IFF_ALLMULTI = 0x200
#: Flags that are the user's to set.
_FLAGS = _IFF_NOARP | _IFF_PROMISC | _IFF_ALLMULTI
_IFA_F_PERMANENT = 0x80
#: Of an address, those that are set: nodad, home, mngtmpaddr, noprefixroute, autojoin.
_ADDRESS_FLAGS = 0x02 | 0x10 | 0x100 | 0x200 | 0x400
_AF_INET, _AF_INET6 = 2, 10
#: Routes that the kernel makes and removes by itself, with the addresses.
_RTPROT_KERNEL, _RTPROT_RA = 2, 9
_TABLE_LOCAL = 255
_HERE = "/proc/thread-self/ns/net"
#: Settings below /proc/sys/net that a stay in another namespace loses.
_SYSCTLS = ("ipv6/conf/{}/disable_ipv6", "ipv6/conf/{}/accept_ra", "ipv6/conf/{}/autoconf")


@dataclass(frozen=True, slots=True)
class State:
    """What of a NIC is put back.

    Attributes:
        flags: interface flags (``netdevice(7)``) as the user set them.
        addresses, routes: netlink attributes, as pyroute2 takes them.
        lro: whether large receive offload was on; a bridge switches it off. None: it has none.
        sysctls: texts by name below /proc/sys/net.
        channels: receive, transmit, other, combined (``ethtool -l``); None: it has a fixed number.
    """

    name: str
    mac: str
    mtu: int
    txqueuelen: int
    flags: int
    addresses: Sequence[Mapping[str, Any]]
    routes: Sequence[Mapping[str, Any]]
    lro: bool | None
    sysctls: Mapping[str, str]
    channels: Sequence[int] | None = None


def check(name: str, *, client: str = "") -> None:
    """Whether a NIC can be taken. Changes nothing.

    Args:
        client: address by which this host holds an ssh connection to another one, empty for none.

    Raises Unsupported if there is none of that name, or the host needs it.
    """
    try:
        with netlink(doing=f"the state of {name}") as route:
            index = link_index(route, name)
            link = route.get_links(index)[0]
            reason = use_of(route, index, link, client)
    except ProvisionError:
        known = ", ".join(sorted(path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo"))
        raise Unsupported(f"--icbench-uplink: there is no network interface {name}: this host has {known}") from None
    if reason is not None:
        raise Unsupported(f"--icbench-uplink: {name} {reason}: name a NIC that is for measurements alone")


def _routes_through(route: Any, index: int, family: int) -> list[Any]:
    return [
        each
        for each in route.get_routes(family=family, oif=index)
        if each.get_attr("RTA_TABLE") != _TABLE_LOCAL and each["proto"] not in (_RTPROT_KERNEL, _RTPROT_RA)
    ]


def read(name: str) -> State:
    """A NIC's state. Raises ProvisionError if there is none in this process' namespace."""
    with netlink(doing=f"the state of {name}") as route:
        index = link_index(route, name)
        link = route.get_links(index)[0]
        addresses = [_address(each) for each in route.get_addr(index=index) if each["flags"] & _IFA_F_PERMANENT]
        routes = [_route(each) for family in (_AF_INET, _AF_INET6) for each in _routes_through(route, index, family)]
    return State(
        name=name,
        mac=link.get_attr("IFLA_ADDRESS"),
        mtu=link.get_attr("IFLA_MTU"),
        txqueuelen=link.get_attr("IFLA_TXQLEN"),
        flags=link["flags"] & (_FLAGS | _IFF_UP),
        addresses=[each for each in addresses if not str(each["address"]).lower().startswith("fe80:")],
        routes=routes,
        lro=ethtool.lro(name),
        channels=ethtool.channels(name),
        sysctls={each.format(name): text for each in _SYSCTLS if (text := _sysctl(each.format(name))) is not None},
    )


def _address(found: Any) -> dict[str, Any]:
    wanted = {"family": found["family"], "prefixlen": found["prefixlen"], "scope": found["scope"]}
    flags = (found.get_attr("IFA_FLAGS") or 0) & _ADDRESS_FLAGS
    if flags:
        wanted["flags"] = flags
    for key in ("address", "local", "broadcast", "label"):
        value = found.get_attr(f"IFA_{key.upper()}")
        if value is not None:
            wanted[key] = value
    return wanted


def _route(found: Any) -> dict[str, Any]:
    wanted = {key: found[key] for key in ("family", "dst_len", "proto", "scope", "type")}
    for key in ("dst", "gateway", "prefsrc", "priority", "table"):
        value = found.get_attr(f"RTA_{key.upper()}")
        if value is not None:
            wanted[key] = value
    return wanted


def _sysctl(name: str) -> str | None:
    with suppress(OSError):
        return Path("/proc/sys/net", name).read_text(encoding="ascii").strip()
    return None


def remember(changes: Changes, name: str, pci: str) -> None:
    """Notes what an interface is to be again once its function has come back to the kernel's driver from another.

    Raises ProvisionError if it is in use.
    """
    try:
        check(name)
    except Unsupported as error:
        raise ProvisionError(str(error)) from None
    changes.record("nic", netns=None, moved=pci, **asdict(read(name)))
    with netlink(doing=f"to set {name} down") as route:
        route.link("set", index=link_index(route, name), flags=0, change=_IFF_UP)


def take(
    changes: Changes,
    name: str,
    netns: str,
    *,
    new_name: str,
    mtu: int,
    promiscuous: bool = False,
    up: bool = True,
    single_queue: bool = False,
) -> None:
    """Moves a NIC into a namespace, without addresses, ARP and IPv6. It is journaled, and undone by ``changes``.

    Args:
        netns: path that outlives the processes in it (``links.create_netns``, ``links.pin_netns``).
        mtu: layer 3 MTU in bytes.
        single_queue: all frames come in by its first queue, the only one that AF_XDP is given.

    Raises ProvisionError if there is no such NIC, it is in use, or it refuses the MTU.
    """
    try:
        check(name)
    except Unsupported as error:  # it was free when the case was planned
        raise ProvisionError(str(error)) from None
    before = read(name)
    changes.record("nic", netns=netns, moved=new_name, **asdict(before))
    if single_queue and before.channels is not None:
        ethtool.set_channels(name, ethtool.single(before.channels))
    flags = _IFF_NOARP | (_IFF_PROMISC if promiscuous else 0)
    with opened(netns) as target, netlink(doing=f"to move {name} into {netns}") as route:
        index = link_index(route, name)
        route.link("set", index=index, flags=0, change=_IFF_UP)
        route.link("set", index=index, net_ns_fd=target, ifname=new_name)
    with netlink(netns, doing=f"MTU {mtu} on {name}") as route:
        index = link_index(route, new_name)
        _quieten(new_name)
        route.link("set", index=index, mtu=mtu)
        route.link("set", index=index, flags=flags, change=_FLAGS)
    if up:
        with netlink(netns, doing=f"to set {name} up") as route:
            route.link("set", index=link_index(route, new_name), flags=_IFF_UP, change=_IFF_UP)


def _quieten(name: str) -> None:
    with suppress(OSError):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1", encoding="ascii")


def await_carrier(name: str, netns: str, *, nic: str, timeout_s: float = SETTLE_S) -> None:
    """Returns when a taken NIC carries frames. Raises ProvisionError naming ``nic``, the name that the user knows."""
    try:
        await_up(name, netns, timeout_s=timeout_s)
    except ProvisionError:
        raise ProvisionError(
            f"the uplink {nic} has no carrier after {timeout_s:g} s: connect its cable, and bring the other end up"
        ) from None


def undo_nic(name: str, netns: str | None, moved: str, **state: Any) -> None:
    """Fetches a NIC back and makes it what it was. One that is here already is only made what it was."""
    before = State(name=name, **state)
    with netlink() as route:
        here = bool(route.link_lookup(ifname=name))
    if not here and netns is None:
        _await_function(before, moved)
    elif not here and netns is not None:
        _fetch(before, netns, moved)
    _restore(before)


def _await_function(before: State, pci: str) -> None:
    """The kernel's driver makes the interface anew, under a name of its own choice."""
    deadline = time.monotonic() + SETTLE_S
    while not (found := list(Path(f"/sys/bus/pci/devices/{pci}/net").glob("*"))):
        if time.monotonic() > deadline:
            raise ProvisionError(f"the NIC {before.name} ({pci}) has not come back: bind its driver by hand")
        time.sleep(0.02)
    if found[0].name != before.name:
        with netlink(doing=f"to name {before.name} again") as route:
            index = link_index(route, found[0].name)
            route.link("set", index=index, flags=0, change=_IFF_UP)
            route.link("set", index=index, ifname=before.name)


def _fetch(before: State, netns: str, moved: str) -> None:
    if Path(netns).exists():
        with opened(_HERE) as home, netlink(netns, doing=f"to move {before.name} back from {netns}") as route:
            if found := route.link_lookup(ifname=moved):
                _drop_program(route, found[0])
                route.link("set", index=found[0], flags=0, change=_IFF_UP)
                route.link("set", index=found[0], net_ns_fd=home, ifname=before.name)
                return
    if not _came_home(before):
        raise ProvisionError(f"the NIC {before.name} is gone: it ended with the namespace {netns}")


def _came_home(before: State) -> bool:
    """Whether the kernel has brought it back, under whatever name; then it has its own again."""
    with netlink(doing=f"to name {before.name} again") as route:
        for link in route.get_links():
            name = str(link.get_attr("IFLA_IFNAME"))
            if name.startswith("dev") and link.get_attr("IFLA_ADDRESS") == before.mac:
                route.link("set", index=link["index"], flags=0, change=_IFF_UP)
                route.link("set", index=link["index"], ifname=before.name)
                return True
    return False


def _drop_program(route: Any, index: int) -> None:
    """An AF_XDP application that was killed leaves its program attached."""
    link = route.get_links(index)[0]
    xdp = link.get_attr("IFLA_XDP")
    if xdp is not None and xdp.get_attr("IFLA_XDP_ATTACHED"):
        route.link("set", index=index, xdp_fd=-1)


def _restore(before: State) -> None:
    with netlink(doing=f"to make {before.name} what it was") as route:
        index = link_index(route, before.name)
        up = before.flags & _IFF_UP
        link = route.get_links(index)[0]
        if link.get_attr("IFLA_ADDRESS") != before.mac:
            route.link("set", index=index, flags=0, change=_IFF_UP)
            route.link("set", index=index, address=before.mac)
        route.link("set", index=index, mtu=before.mtu, txqlen=before.txqueuelen)
        route.link("set", index=index, flags=before.flags & _FLAGS, change=_FLAGS)
        for name, text in before.sysctls.items():
            with suppress(OSError):
                Path("/proc/sys/net", name).write_text(text, encoding="ascii")
        if before.lro and not ethtool.lro(before.name):
            ethtool.set_feature(before.name, ethtool.LRO, True)
        if before.channels is not None and ethtool.channels(before.name) != list(before.channels):
            ethtool.set_channels(before.name, before.channels)
        if not up:
            route.link("set", index=index, flags=0, change=_IFF_UP)
        held = {each.get_attr("IFA_ADDRESS") for each in route.get_addr(index=index)}
        for address in before.addresses:
            if address["address"] not in held:
                route.addr("add", index=index, **address)
        if up:
            route.link("set", index=index, flags=_IFF_UP, change=_IFF_UP)
        for each in before.routes:
            route.route("replace", oif=index, **each)


UNDO_KINDS = {"nic": UndoKind(undo_nic)}
