# SPDX-License-Identifier: BSD-3-Clause
"""``sriov``: a virtual function of one card for each node; the card's own switch forwards between them.

Port ``vfio`` gives a node its function as a device for DPDK, port ``vf`` as a network interface of the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.userspace_ports import VFIO
from pytest_icbench.driver.switch.protocol import Attachment, Needs, PortCounters, Switch, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import host_facts
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.net import ethtool, links, vf
from pytest_icbench.host.resource import modules, pci
from pytest_icbench.host.root import Root
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Address, Endpoint, Pci, Veth
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.traffic import MAX_FRAME_BYTES
from pytest_icbench.model.uplink import Uplink

_OPTION = "--icbench-pf"
#: VFIO's container, to which every group belongs.
_VFIO_CONTAINER = Path("/dev/vfio/vfio")
VF = "vf"
_LINK_UP_S = 10.0
_TRIES = 3
#: VLAN of the first segment; further segments have the next numbers.
_FIRST_VLAN = 100


@dataclass(frozen=True, slots=True)
class Card:
    """A PF: its PCI address and its interface."""

    pci: str
    interface: str


def find_card(session: HostSession) -> Card:
    """Returns the user's PF. Raises Unsupported if it does not exist, or lacks VFs or an interface."""
    root = session.root
    if session.pf is None:
        raise Unsupported(f"sriov needs a card: name its PF by {_OPTION}, {_describe_cards(root)}")
    address = pci.find(root, session.pf)
    if address is None:
        raise Unsupported(
            f"{_OPTION}: there is no network interface or PCI function {session.pf}: {_describe_cards(root)}"
        )
    name = f"PF {session.pf}" if session.pf == address else f"PF {session.pf} ({address})"
    parent = pci.physical_function(root, address)
    if parent is not None:
        raise Unsupported(f"{_OPTION}: {session.pf} is itself a virtual function: name its PF {parent}")
    total = pci.total_vfs(root, address)
    if total is None:
        raise Unsupported(f"{_OPTION}: {session.pf} ({address}) has no SR-IOV: {_describe_cards(root)}")
    if total == 0:
        raise Unsupported(f"{name} offers no VFs: enable SR-IOV in its firmware (set-up menu or its maker's tool)")
    names = pci.interfaces(root, address)
    if not names:
        driver = pci.driver(root, address)
        state = f"its driver {driver} gives it none here" if driver else "it has no driver"
        raise Unsupported(f"{name} has no network interface ({state}): bind it to its kernel driver")
    return Card(address, session.pf if session.pf in names else names[0])


def _describe_cards(root: Root) -> str:
    known = pci.physical_functions(root)
    if not known:
        return "but no card of this host offers VFs"
    words = []
    for function in known:
        names = pci.interfaces(root, function)
        words.append(f"{names[0] if names else function} ({function}, up to {pci.total_vfs(root, function)} VFs)")
    return "this host has " + ", ".join(words)


def check_vfio(root: Root) -> None:
    """Raises Unsupported if this host cannot give functions to containers."""
    if not pci.has_iommu(root):
        words = " ".join(host_facts.iommu_parameters(root))
        raise Unsupported(
            "the IOMMU is off, so that no VF can be given to a container: switch it on in the firmware (VT-d, AMD-Vi)"
            f" and boot with {words}"
        )
    for name in ("vfio-pci", "vfio_iommu_type1"):
        if not modules.available(root, name):
            raise Unsupported(
                f"this kernel has no module {name}: install the full kernel (linux-image-amd64, not its cloud flavour),"
                " or take --icbench-port vf"
            )


def find_vf_driver(root: Root, card: str) -> str:
    """Returns the kernel module for a card's VFs. Raises Unsupported if there is none."""
    vendor = (root.read_int(pci.path(card, "vendor")) or 0) & 0xFFFFFFFF
    text = root.read(pci.path(card, "sriov_vf_device")) or "0"
    device = int(text, 16)
    alias = f"pci:v{vendor:08X}d{device:08X}sv00000000sd00000000bc02sc00i00"
    module = modules.find_by_alias(root, alias)
    if module is None:
        raise Unsupported(
            f"this kernel has no driver for the VFs of {card} ({vendor:04x}:{device:04x}): install the full kernel"
            " (linux-image-amd64, not its cloud flavour), or take --icbench-port vfio"
        )
    return module


def choose_vfs(root: Root, pf: Card, count: int) -> list[int]:
    """Returns the indexes of all unused VFs; empty if the card has no VFs and they may be created.

    ``count``: number of ports. Raises Unsupported if there are too few, or if creating VFs would interrupt a network of
    the host.
    """
    total = pci.total_vfs(root, pf.pci) or 0
    if count > total:
        raise Unsupported(
            f"{count} ports take {count} VFs, and PF {pf.interface} has only {total}: lower --icbench-pairs"
        )
    present = pci.virtual_functions(root, pf.pci)
    if present:
        free = [index for index, function in enumerate(present) if is_idle(root, function)]
        if len(free) < count:
            raise Unsupported(
                f"{count} ports take {count} VFs, and of the {len(present)} that exist on PF"
                f" {pf.interface} only {len(free)} are unused: free them, or remove all"
                f" (echo 0 > /sys/class/net/{pf.interface}/device/sriov_numvfs) so that they are made as needed"
            )
        return free
    if root.exists(f"/sys/class/net/{pf.interface}/master"):
        master = root.link(f"/sys/class/net/{pf.interface}/master")
        raise Unsupported(_describe_use(pf, f"is a port of {master}", count))
    held = vf.read_addresses(pf.interface) if root.live else []
    if held:
        raise Unsupported(_describe_use(pf, f"has the host's address {held[0]}", count))
    return []


def assign_vfs(root: Root, pf: Card, names: Sequence[str | None], free: Sequence[int]) -> list[int]:
    """Returns the index of a VF for each endpoint.

    Args:
        names: VF of each endpoint, by PCI address or interface; None: a free one.
        free: indexes of the unused VFs.

    Raises Unsupported for a name that is not an unused VF of the card.
    """
    present = pci.virtual_functions(root, pf.pci)
    chosen: list[int | None] = []
    for name in names:
        address = None if name is None else pci.find(root, name)
        if name is not None and address not in present:
            raise Unsupported(
                f"the topology names the VF {name}, and PF {pf.interface} has"
                f" {', '.join(present)}: name one of these, or make it (sriov_numvfs)"
            )
        index = None if address is None else present.index(address)
        if index is not None and index not in free:
            raise Unsupported(f"the topology names the VF {name}, which something else uses: free it or name another")
        if index is not None and index in chosen:
            raise Unsupported(f"the topology names the VF {address} twice, once as {name}: name another")
        chosen.append(index)
    rest = iter([index for index in free if index not in chosen])
    return [next(rest) if index is None else index for index in chosen]


def _describe_use(pf: Card, state: str, count: int) -> str:
    return (
        f"PF {pf.interface} is in use: it {state}, and making VFs can interrupt its link: name another PF, or make"
        f" them yourself (echo {count} > /sys/class/net/{pf.interface}/device/sriov_numvfs)"
    )


def is_idle(root: Root, function: str) -> bool:
    """Whether a VF is unused: without a driver, with VFIO but no process, or with an interface that is down here."""
    driver = pci.driver(root, function)
    if driver is None:
        return True
    if driver == "vfio-pci":
        return _is_free(root, pci.iommu_group(root, function) or "none")
    names = pci.interfaces(root, function)
    return bool(names) and all(_is_quiet(root, name) for name in names)


def _is_free(root: Root, group: str) -> bool:
    """Whether no process has a VFIO group open, which only one process can have."""
    try:
        os.close(os.open(root.path(f"/dev/vfio/{group}"), os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return True  # without root this is only a plan
    except OSError:
        return False
    return True


def _is_quiet(root: Root, name: str) -> bool:
    flags = int(root.read(f"/sys/class/net/{name}/flags") or "0", 16)
    held = vf.read_addresses(name) if root.live else []
    return not flags & 1 and not root.exists(f"/sys/class/net/{name}/master") and not held


def vfio_devices(root: Root, function: str) -> list[Path]:
    """Returns the device nodes of a function for VFIO: the container and the function's group.

    Raises ProvisionError if the group has other functions too.
    """
    group = pci.iommu_group(root, function)
    others = [other for other in pci.group_members(root, group or "") if other != function]
    if group is None or others:
        raise ProvisionError(
            f"the PCI function {function} has no separate IOMMU group"
            + (f" but shares {group} with {', '.join(others)}" if others else "")
            + ": the slot's bridge does not isolate its functions (ACS); use another slot"
        )
    return [_VFIO_CONTAINER, Path("/dev/vfio", group)]


class Sriov(Switch):
    """The virtual functions of one card, and the switch in it."""

    name = "sriov"
    family = "dpdk"
    takes_binary = False
    ports = (VFIO, VF)
    apis = ("dpdk", *SOCKET_APIS, *NETDEV_APIS)
    default_apis = ("dpdk",)
    default_cores = 0
    scalable = False
    learns = False
    # The card knows its functions' addresses and sends other frames to its port.
    broadcast = "all"
    unknown_unicast = "none"
    filters = True
    max_frame_bytes = MAX_FRAME_BYTES
    max_pairs = None
    # Frames for unknown addresses leave by the card's port.
    uplinks = ("kernel",)
    segments = True

    def __init__(self) -> None:
        self._changes: Changes | None = None
        self._functions: list[str] = []
        self._indexes: list[int] = []
        self._attached: list[Attachment] = []
        self._interface = ""
        self._port = VFIO
        self._driver = ""

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Returns DPDK for VFIO, and sockets and DPDK's drivers of interfaces for the kernel's driver."""
        return ("dpdk",) if port == VFIO else (*SOCKET_APIS, *NETDEV_APIS)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the PF driver's version. Raises Unsupported without a card that has VFs and an interface."""
        card = find_card(session)
        return SwitchFacts(version=ethtool.driver_version(card.interface) if session.root.live else None)

    def probe_api(self, session: HostSession, api: str) -> None:
        """Raises Unsupported without IOMMU and VFIO for DPDK, or without the VFs' driver for other techniques."""
        if api == "dpdk":
            check_vfio(session.root)
        else:
            find_vf_driver(session.root, find_card(session).pci)
            kernel.probe_netdev_api(api)

    def probe_pairs(self, session: HostSession, pairs: int) -> None:
        """Raises Unsupported if the card has too few unused VFs, or may not be changed."""
        choose_vfs(session.root, find_card(session), len(FramePath(pairs).endpoints))

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs()

    def devices(self, session: HostSession, spec: SwitchSpec, addresses: Sequence[Address]) -> Sequence[Sequence[Path]]:
        """Creates a VF with its driver for each address; returns the device nodes of their groups for DPDK.

        Raises ProvisionError.
        """
        self._changes = changes = Changes(session)
        self._port, root = spec.port, session.root
        try:
            card = find_card(session)
            self._interface = card.interface
            _check_uplink(spec.uplink, card.interface)
            existing = choose_vfs(root, card, len(addresses))
            self._driver = self._load_driver(changes, card.pci)
        except Unsupported as error:  # the card has changed since the plan
            raise ProvisionError(str(error)) from None
        vf.bring_up(changes, card.interface)
        self._raise_mtu(changes, spec.mtu)
        if not existing:
            with suppress(Unsupported, ProvisionError):  # the kernel has no driver
                # Also for DPDK, because udev loads the VFs' driver as soon as VFs exist.
                modules.expect(changes, [find_vf_driver(root, card.pci)])
            pci.create_vfs(changes, card.pci, len(addresses))
        functions = pci.virtual_functions(root, card.pci)
        names = [name for name, _ in spec.functions]
        names += [None] * (len(addresses) - len(names))  # ports of network functions
        try:
            self._indexes = assign_vfs(root, card, names, existing or range(len(functions)))
        except Unsupported as error:  # new VFs have names only now
            raise ProvisionError(str(error)) from None
        self._functions = [functions[index] for index in self._indexes]
        # Without a carrier most cards' VFs have none either.
        carrier = vf.await_carrier(card.interface)
        taken = [
            self._set_up(changes, index, function, address, carrier)
            for index, function, address in zip(self._indexes, self._functions, addresses, strict=True)
        ]
        self._facts = SwitchFacts(
            version=ethtool.driver_version(card.interface),
            config={
                "pf": card.interface,
                "pci": card.pci,
                "device": pci.read_identity(root, card.pci),
                "vf_driver": self._driver,
                "vfs": self._functions,
                "created": not existing,
                "carrier": carrier,
                # Those that all VFs have in common.
                "settings": {key: value for key, value in asdict(taken[0]).items() if key != "vlan"}
                | {"mac": "of each endpoint"},
            },
        )
        if spec.port == VF:
            return [[] for _ in addresses]
        devices = [vfio_devices(root, function) for function in self._functions]
        for (_, expected), nodes, function in zip(spec.functions, devices, self._functions, strict=False):
            if expected not in (None, str(nodes[-1])):
                raise ProvisionError(f"VF {function} has the device {nodes[-1]}, and the topology says {expected}")
        return devices

    def _load_driver(self, changes: Changes, card: str) -> str:
        """Loads the modules for the port kind; returns the name of the VFs' driver."""
        if self._port == VFIO:
            check_vfio(changes.root)
            names = ["vfio_iommu_type1", "vfio-pci"]
        else:
            names = [find_vf_driver(changes.root, card)]
        modules.load(changes, names)
        return next(iter(modules.pci_drivers(changes.root, names[-1])), names[-1])

    def _raise_mtu(self, changes: Changes, mtu: int) -> None:
        """Raises the PF's MTU, which limits the VFs' frames on many cards. Raises ProvisionError."""
        name = f"/sys/class/net/{self._interface}/mtu"
        before = changes.root.read_int(name) or 0
        if before >= mtu:
            return
        try:
            changes.write(name, str(mtu))
        except OSError as error:
            raise ProvisionError(
                f"PF {self._interface} refuses an MTU of {mtu} ({error.strerror}): take packet sizes up to"
                f" {before + 18}"
            ) from None

    def _set_up(self, changes: Changes, index: int, function: str, address: Address, carrier: bool) -> vf.Settings:
        """Configures a VF, then binds its driver, which reads the settings once."""
        for name in pci.interfaces(changes.root, function):  # a previous interface
            vf.remember_interface(changes, function, name)
        pci.bind(changes, function, None)
        # Replayed frames have other source addresses, so the spoof check is off. Promiscuous mode needs trust.
        requested = vf.Settings(address.mac, False, True, None if carrier else vf.LINK_ENABLED)
        taken = vf.configure(changes, self._interface, index, requested)
        if not carrier and taken.link_state is None:
            raise ProvisionError(
                f"PF {self._interface} has no carrier, and its driver cannot switch the link of VFs on without one:"
                " connect it (a loopback will do), or name another PF by --icbench-pf"
            )
        pci.bind(changes, function, self._driver)
        return taken

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Gives each node its VF: its address for DPDK, or its interface, which is moved into the node.

        Raises ProvisionError.
        """
        self._attached = list(attachments)
        assert self._changes is not None
        for attachment in attachments:
            if attachment.segment is not None:
                vlan = _FIRST_VLAN + attachment.segment
                vf.set_vlan(self._changes, self._interface, self._indexes[attachment.index], vlan)
        if spec.port == VFIO:
            return [Pci(attachment.address, self._functions[attachment.index]) for attachment in attachments]
        for attachment in attachments:
            self._move(session, self._functions[attachment.index], attachment, spec.mtu)
        for attachment in attachments:
            links.await_up(attachment.interface, attachment.node.netns, timeout_s=_LINK_UP_S)
        return [Veth(attachment.address, attachment.interface, None, spec.mtu) for attachment in attachments]

    def _move(self, session: HostSession, function: str, attachment: Attachment, mtu: int) -> None:
        for left in reversed(range(_TRIES)):
            name = pci.await_interface(session.root, function)
            try:
                end = kernel.node_end(attachment)
                links.move(name, end, up=False)
            except ProvisionError:
                if not left or name in pci.interfaces(session.root, function):
                    raise
                continue  # udev has renamed it
            break
        links.set_mtu(attachment.interface, mtu, attachment.node.netns)
        links.set_up(attachment.interface, attachment.node.netns)

    def check(self) -> None:
        """Raises ProvisionError if a VF does not exist or has another driver."""
        assert self._changes is not None
        for function in self._functions:
            driver = pci.driver(self._changes.root, function)
            if driver != self._driver:
                state = f"has the driver {driver}" if driver else "is gone or has no driver"
                raise ProvisionError(
                    f"VF {function} of {self._interface} {state}, where this session gave it {self._driver}:"
                    " stop what else manages the card's VFs"
                )

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the nodes' interfaces, for DPDK those of the PF's driver; None if it has none."""
        if self._port == VF:
            return kernel.endpoint_counters(self._attached)
        statistics = vf.read_statistics(self._interface)
        vf_counters = [statistics.get(index, {}) for index in self._indexes]
        if not any(value for counters in vf_counters for value in counters.values()):
            return None
        return [kernel.port_counters(index, counted, at_endpoint=True) for index, counted in enumerate(vf_counters)]

    def stop(self) -> None:
        """Restores the card. Raises ProvisionError with whatever could not be restored."""
        self._attached.clear()
        self._functions.clear()
        if self._changes is not None:
            self._changes.undo(f"PF {self._interface}")


def _check_uplink(uplink: Uplink | None, card: str) -> None:
    if uplink is not None and uplink.nic != card:
        raise ProvisionError(
            f"sriov's uplink is its card's own port: --icbench-uplink says {uplink} and --icbench-pf {card};"
            " name the same"
        )
