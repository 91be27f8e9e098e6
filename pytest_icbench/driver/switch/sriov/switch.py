# SPDX-License-Identifier: BSD-3-Clause
"""``sriov``: a virtual function of one card for each node; the card's own switch forwards between them.

Port ``vfio`` gives a node its function as a device for DPDK, port ``vf`` as a network interface of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.common.ports import VFIO
from pytest_icbench.driver.switch.protocol import Attachment, Busy, Needs, PortCounters, Switch, SwitchFacts, SwitchSpec
from pytest_icbench.driver.switch.sriov import checks
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.changes import Changes
from pytest_icbench.host.net import ethtool, links, vf
from pytest_icbench.host.resource import modules, pci
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.case import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Address, Endpoint, Pci, Veth
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.traffic import MAX_FRAME_BYTES
from pytest_icbench.model.uplink import Uplink

VF = "vf"
_LINK_UP_S = 10.0
_TRIES = 3
#: VLAN of the first set of ports that see each other; the others follow.
_FIRST_VLAN = 100


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
    # The card knows its functions' addresses, and sends frames for other addresses out of its port.
    broadcast = "all"
    unknown_unicast = "none"
    filters = True
    max_frame_bytes = MAX_FRAME_BYTES
    max_pairs = None
    # Frames for an address that no function has leave by the card's port.
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
        self._facts = SwitchFacts()

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        """Returns the techniques of a port kind: a function has VFIO for DPDK, or the kernel's driver for others."""
        return ("dpdk",) if port == VFIO else (*SOCKET_APIS, *NETDEV_APIS)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the PF driver's version. Raises Unsupported without a card that has VFs and an interface."""
        card = checks.card(session)
        return SwitchFacts(version=ethtool.driver_version(card.interface) if session.root.live else None)

    def probe_api(self, session: HostSession, api: str) -> None:
        """Raises Unsupported without an IOMMU and VFIO for DPDK, or without the VFs' driver for the others."""
        if api == "dpdk":
            checks.vfio(session.root)
        else:
            checks.vf_driver(session.root, checks.card(session).pci)
            kernel.probe_netdev_api(api)

    def probe_pairs(self, session: HostSession, pairs: int) -> None:
        """Raises Unsupported if the card has too few unused VFs, or may not be changed."""
        checks.choose(session.root, checks.card(session), len(FramePath(pairs).endpoints))

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs()

    def devices(self, session: HostSession, spec: SwitchSpec, addresses: Sequence[Address]) -> Sequence[Sequence[Path]]:
        """Makes a VF with its driver for each address; returns the device nodes of each one's group, for DPDK.

        Raises ProvisionError.
        """
        self._changes = changes = Changes(session)
        self._port, root = spec.port, session.root
        try:
            card = checks.card(session)
            self._interface = card.interface
            _check_uplink(spec.uplink, card.interface)
            existing = checks.choose(root, card, len(addresses))
            self._driver = self._load_driver(changes, card.pci)
        except Unsupported as error:  # the card has changed since the case was planned
            raise ProvisionError(str(error)) from None
        vf.bring_up(changes, card.interface)
        self._raise_mtu(changes, spec.mtu)
        if not existing:
            with suppress(Unsupported, ProvisionError):  # the kernel has no driver for them
                # Also for DPDK: udev loads the VFs' driver as soon as there are VFs, though it may not bind them.
                modules.expect(changes, [checks.vf_driver(root, card.pci)])
            pci.create_vfs(changes, card.pci, len(addresses))
        functions = pci.virtual_functions(root, card.pci)
        names = [name for name, _ in spec.functions]
        names += [None] * (len(addresses) - len(names))  # ports of network functions
        try:
            self._indexes = checks.assign(root, card, names, existing or range(len(functions)))
        except Unsupported as error:  # VFs that were just made have names only now
            raise ProvisionError(str(error)) from None
        self._functions = [functions[index] for index in self._indexes]
        # Without a carrier most cards' VFs have none either, whatever their switch could do.
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
                "device": pci.identity(root, card.pci),
                "vf_driver": self._driver,
                "vfs": self._functions,
                "created": not existing,
                "carrier": carrier,
                "settings": _told(taken[0]),
            },
        )
        if spec.port == VF:
            return [[] for _ in addresses]
        devices = [checks.vfio_devices(root, function) for function in self._functions]
        for (_, expected), nodes, function in zip(spec.functions, devices, self._functions, strict=False):
            if expected not in (None, str(nodes[-1])):
                raise ProvisionError(f"VF {function} has the device {nodes[-1]}, and the topology says {expected}")
        return devices

    def _load_driver(self, changes: Changes, card: str) -> str:
        """Loads what a port kind needs; returns the name of the VFs' driver."""
        if self._port == VFIO:
            checks.vfio(changes.root)
            names = ["vfio_iommu_type1", "vfio-pci"]
        else:
            names = [checks.vf_driver(changes.root, card)]
        modules.load(changes, names)
        return next(iter(modules.pci_drivers(changes.root, names[-1])), names[-1])

    def _raise_mtu(self, changes: Changes, mtu: int) -> None:
        """Sets a larger MTU of the PF: many cards carry no larger frame for a VF. Raises ProvisionError."""
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
        """Gives a VF its settings, then its driver, which reads them once. Both are undone in the same order."""
        for name in pci.interfaces(changes.root, function):  # an interface that was there before
            vf.remember_interface(changes, function, name)
        pci.bind(changes, function, None)
        # Replayed frames carry other source addresses, so there is no spoof check; promiscuous mode needs trust.
        requested = vf.Settings(address.mac, False, True, None if carrier else vf.LINK_ENABLED)
        taken = vf.configure(changes, self._interface, index, requested)
        if not carrier and taken.link_state is None:
            raise ProvisionError(
                f"PF {self._interface} has no carrier, and its driver cannot switch its VFs' link on without: connect"
                " it (a loopback will do), or name another PF by --icbench-pf"
            )
        pci.bind(changes, function, self._driver)
        return taken

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Gives each node its VF: DPDK finds it by its address, an interface is moved into the node.

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
                continue  # udev has renamed it meanwhile
            break
        links.set_mtu(attachment.interface, mtu, attachment.node.netns)
        links.set_up(attachment.interface, attachment.node.netns)

    def facts(self) -> SwitchFacts:
        """Returns the PF's driver and firmware, its VFs and how they were set up."""
        return self._facts

    def check(self) -> None:
        """Raises ProvisionError if a VF has gone or has another driver."""
        assert self._changes is not None
        for function in self._functions:
            driver = pci.driver(self._changes.root, function)
            if driver != self._driver:
                state = f"has the driver {driver}" if driver else "is gone or has no driver"
                raise ProvisionError(
                    f"VF {function} of {self._interface} {state}, where this session gave it {self._driver}:"
                    " something else manages the card's VFs"
                )

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the nodes' interfaces; for DPDK those of the PF's driver, None if that has none."""
        if self._port == VF:
            return [
                kernel.port_counters(
                    attachment.index, links.statistics(attachment.interface, attachment.node.netns), at_endpoint=True
                )
                for attachment in self._attached
            ]
        statistics = vf.read_statistics(self._interface)
        vf_counters = [statistics.get(index, {}) for index in self._indexes]
        if not any(value for counters in vf_counters for value in counters.values()):
            return None
        return [kernel.port_counters(index, counted, at_endpoint=True) for index, counted in enumerate(vf_counters)]

    def busy(self) -> Busy | None:
        return None

    def pause(self) -> None:
        """Does nothing: the card works only when there are frames."""

    def resume(self) -> None: ...

    def stop(self) -> None:
        """Gives the card back as it was. Raises ProvisionError with what could not be."""
        self._attached.clear()
        self._functions.clear()
        if self._changes is not None:
            self._changes.undo(f"PF {self._interface}")


def _told(settings: vf.Settings) -> dict[str, object]:
    """Returns the settings of all VFs as a result keeps them."""
    return {key: value for key, value in asdict(settings).items() if key != "vlan"} | {"mac": "of each endpoint"}


def _check_uplink(uplink: Uplink | None, card: str) -> None:
    if uplink is not None and uplink.nic != card:
        raise ProvisionError(
            f"sriov's uplink is its card's own port: --icbench-uplink says {uplink} and --icbench-pf {card};"
            " name the same"
        )
