# SPDX-License-Identifier: BSD-3-Clause
"""The settings of a PF's VFs and of the PF's interface, by netlink. Changes are journaled."""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.net.links import link_index, netlink
from pytest_icbench.host.process import wait_until
from pytest_icbench.host.resource.pci import interfaces
from pytest_icbench.host.root import Root

_IFF_UP = 0x1
#: The time in seconds that the interface of a function may take to appear again.
_APPEAR_S = 5.0
#: RTEXT_FILTER_VF: messages about links include their VFs.
_WITH_VFS = 1
#: IFLA_VF_LINK_STATE_ENABLE: the VFs' link is up, independent of the PF's.
LINK_ENABLED = 1
#: The address of a VF that has none.
_NO_ADDRESS = "00:00:00:00:00:00"
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a VF in its PF's driver. None stands for a setting that the driver lacks.

    Attributes:
        spoofcheck: whether frames from another address are dropped.
        trust: whether the VF may change its address and be promiscuous.
        link_state: 0 follows the PF's link, 1 is up, 2 is down.
        vlan: tag that the card gives the VF's frames and takes from them; 0 for none.
    """

    mac: str | None = None
    spoofcheck: bool | None = None
    trust: bool | None = None
    link_state: int | None = None
    vlan: int | None = None


def _known(value: int | None) -> int | None:
    """Returns a setting's value; None for one with all bits set, which the driver lacks."""
    return None if value is None or value in (-1, 0xFFFFFFFF) else value


def read_settings(pf: str) -> dict[int, Settings]:
    """Returns the settings of a PF's VFs by index. Raises ProvisionError if there is no such interface."""
    with netlink(doing=f"the VFs of {pf}") as route:
        link = next(iter(route.link("get", index=link_index(route, pf), ext_mask=_WITH_VFS)))
        listed = link.get_attr("IFLA_VFINFO_LIST")
    return {number: settings for number, settings, _ in map(_parse, listed.get_attrs("IFLA_VF_INFO") if listed else ())}


def read_statistics(pf: str) -> dict[int, dict[str, int]]:
    """Returns the driver's counters of each VF, by index: ``rx_packets tx_packets rx_dropped tx_dropped``.

    ``tx`` counts the frames that the VF sent. A driver without counters gives zeros.
    """
    with netlink(doing=f"the counters of {pf}'s VFs") as route:
        link = next(iter(route.link("get", index=link_index(route, pf), ext_mask=_WITH_VFS)))
        listed = link.get_attr("IFLA_VFINFO_LIST")
    return {number: counts for number, _, counts in map(_parse, listed.get_attrs("IFLA_VF_INFO") if listed else ())}


def _parse(info: Any) -> tuple[int, Settings, dict[str, int]]:
    """Returns a VF's index, settings and counters by name."""

    def field(name: str) -> int | None:
        value = info.get_attr(f"IFLA_VF_{name.upper()}")
        return None if value is None else _known(value[name])

    mac = info.get_attr("IFLA_VF_MAC")
    spoofcheck, trust = field("spoofchk"), field("trust")
    stats = info.get_attr("IFLA_VF_STATS")
    names = ("rx_packets", "tx_packets", "rx_dropped", "tx_dropped")
    counts = {name: int((stats.get_attr(f"IFLA_VF_STATS_{name.upper()}") if stats else None) or 0) for name in names}
    settings = Settings(
        mac=mac["mac"],
        spoofcheck=None if spoofcheck is None else bool(spoofcheck),
        trust=None if trust is None else bool(trust),
        link_state=field("link_state"),
        vlan=field("vlan"),
    )
    return int(mac["vf"]), settings, counts


def _apply(pf: str, index: int, settings: Settings) -> Settings:
    """Applies the settings that are not None. Returns those that the driver accepted.

    Raises ProvisionError if it does not accept the address.
    """
    from pyroute2.netlink.exceptions import NetlinkError

    taken: dict[str, Any] = {}
    requested = {"mac": settings.mac, "link_state": settings.link_state, "vlan": settings.vlan}
    requested |= {"spoofchk": _bit(settings.spoofcheck), "trust": _bit(settings.trust)}
    names = {"spoofchk": "spoofcheck"}
    what = f"address {settings.mac}" if settings.vlan is None else f"VLAN {settings.vlan}"
    with netlink(doing=f"{what} on VF {index} of {pf}") as route:
        number = link_index(route, pf)
        for key, value in requested.items():
            if value is None:
                continue
            try:
                route.link("set", index=number, vf={"vf": index, key: value})
            except NetlinkError as error:
                # Drivers may lack a setting. Not every driver can clear an address or a tag either.
                needed = key in ("mac", "vlan") and value not in (_NO_ADDRESS, 0)
                if needed or error.code not in _UNSUPPORTED:
                    raise
            else:
                taken[names.get(key, key)] = bool(value) if key in ("spoofchk", "trust") else value
    return Settings(**taken)


def _bit(value: bool | None) -> int | None:
    return None if value is None else int(value)


def configure(changes: Changes, pf: str, index: int, settings: Settings) -> Settings:
    """Configures a VF. Returns the settings that the driver accepted; it may lack some.

    Raises ProvisionError if it does not accept the address.
    """
    before = replace(read_settings(pf).get(index, Settings()), vlan=None)  # ``set_vlan`` changes and undoes that
    changes.record("vf", pf=pf, index=index, settings=asdict(before))
    return _apply(pf, index, settings)


def set_vlan(changes: Changes, pf: str, index: int, vlan: int) -> None:
    """Puts a VF into a VLAN; the card adds and removes the tag. Raises ProvisionError if the driver cannot do that."""
    before = read_settings(pf).get(index, Settings())
    changes.record("vf", pf=pf, index=index, settings=asdict(Settings(vlan=before.vlan or 0)))
    _apply(pf, index, Settings(vlan=vlan))


def undo_vf(pf: str, index: int, settings: Settings) -> None:
    """Restores a VF's settings, unless the VF is gone."""
    if Path("/sys/class/net", pf).exists() and index in read_settings(pf):
        _apply(pf, index, settings)


def read_addresses(name: str) -> list[str]:
    """Returns the IP addresses of an interface, without link-local ones."""
    with netlink(doing=f"the addresses of {name}") as route:
        texts = [entry.get_attr("IFA_ADDRESS") for entry in route.get_addr(index=link_index(route, name))]
    return [text for text in texts if text and not text.lower().startswith("fe80:")]


def is_up(name: str) -> bool:
    """Returns whether an interface of this process' namespace was set up."""
    with suppress(OSError):
        return bool(int(Path(f"/sys/class/net/{name}/flags").read_text(encoding="ascii"), 16) & _IFF_UP)
    return False


def _set_up(name: str, up: bool) -> None:
    with netlink(doing=f"to set {name} {'up' if up else 'down'}") as route:
        route.link("set", index=link_index(route, name), flags=_IFF_UP if up else 0, change=_IFF_UP)


def bring_up(changes: Changes, name: str) -> None:
    """Sets an interface up, without IPv6, unless it is up already. Raises ProvisionError."""
    if is_up(name):
        return
    changes.write(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1")
    changes.record("link_down", name=name)
    _set_up(name, True)


def undo_link_down(name: str) -> None:
    """Sets an interface down again."""
    if is_up(name):
        _set_up(name, False)


def await_carrier(name: str, timeout_s: float = 10.0) -> bool:
    """Waits until an interface that is up has a carrier. Returns whether it has one in time."""
    return wait_until(lambda: Root().read(f"/sys/class/net/{name}/carrier") == "1", timeout_s, 0.02)


def remember_interface(changes: Changes, pci: str, name: str) -> None:
    """Records the state of a function's interface, which is down, to be restored once its driver is back."""
    directory = f"/sys/class/net/{name}"
    mac, mtu = changes.root.read(f"{directory}/address"), changes.root.read_int(f"{directory}/mtu")
    changes.record("vf_interface", pci=pci, name=name, mac=mac, mtu=mtu)


def undo_interface(pci: str, name: str, mac: str, mtu: int) -> None:
    """Restores the interface of a function. Raises ProvisionError if there is none."""
    root = Root()
    if not wait_until(lambda: interfaces(root, pci), _APPEAR_S, 0.02):
        raise ProvisionError(f"the interface {name} of {pci} has not come back: bind its driver by hand")
    present = interfaces(root, pci)[0]
    with netlink(doing=f"to restore {name} from {present}") as route:
        index = link_index(route, present)
        route.link("set", index=index, flags=0, change=_IFF_UP)
        route.link("set", index=index, address=mac, mtu=mtu)
        if present != name:
            route.link("set", index=index, ifname=name)


UNDO_KINDS = {
    "vf": UndoKind(undo_vf, checks={"pf": entry_checks.interface}),
    "link_down": UndoKind(undo_link_down, checks={"name": entry_checks.interface}),
    "vf_interface": UndoKind(undo_interface, checks={"pci": entry_checks.pci_address, "name": entry_checks.interface}),
}
