# SPDX-License-Identifier: BSD-3-Clause
"""The requirements of ``sriov`` on a host, with the remedy where one is not met. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host import host_facts
from pytest_icbench.host.net import vf
from pytest_icbench.host.resource import modules, pci
from pytest_icbench.host.root import Root
from pytest_icbench.host.session import HostSession

_OPTION = "--icbench-pf"
#: VFIO's container, which every group is put into.
_VFIO_CONTAINER = Path("/dev/vfio/vfio")


@dataclass(frozen=True, slots=True)
class Card:
    """A PF: its PCI address and its interface."""

    pci: str
    interface: str


def card(session: HostSession) -> Card:
    """Returns the PF that the user named. Raises Unsupported if there is none, or it has no VFs or no interface."""
    root = session.root
    if session.pf is None:
        raise Unsupported(f"sriov needs a card: name its PF by {_OPTION}, {_candidates(root)}")
    address = pci.find(root, session.pf)
    if address is None:
        raise Unsupported(f"{_OPTION}: there is no network interface or PCI function {session.pf}: {_candidates(root)}")
    name = f"PF {session.pf}" if session.pf == address else f"PF {session.pf} ({address})"
    parent = pci.physical_function(root, address)
    if parent is not None:
        raise Unsupported(f"{_OPTION}: {session.pf} is itself a virtual function: name its PF {parent}")
    total = pci.total_vfs(root, address)
    if total is None:
        raise Unsupported(f"{_OPTION}: {session.pf} ({address}) has no SR-IOV: {_candidates(root)}")
    if total == 0:
        raise Unsupported(f"{name} offers no VFs: enable SR-IOV in its firmware (set-up menu or its maker's tool)")
    names = pci.interfaces(root, address)
    if not names:
        driver = pci.driver(root, address)
        state = f"its driver {driver} gives it none here" if driver else "it has no driver"
        raise Unsupported(f"{name} has no network interface ({state}): bind it to its kernel driver")
    return Card(address, session.pf if session.pf in names else names[0])


def _candidates(root: Root) -> str:
    known = pci.physical_functions(root)
    if not known:
        return "but no card of this host offers VFs"
    words = []
    for function in known:
        names = pci.interfaces(root, function)
        words.append(f"{names[0] if names else function} ({function}, up to {pci.total_vfs(root, function)} VFs)")
    return "this host has " + ", ".join(words)


def vfio(root: Root) -> None:
    """Raises Unsupported where no function can be given to a container."""
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


def vf_driver(root: Root, card: str) -> str:
    """Returns the module that drives a card's VFs. Raises Unsupported if this kernel has none."""
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


def choose(root: Root, pf: Card, count: int) -> list[int]:
    """Returns the indexes of all unused VFs; empty if the card has no VFs and they may be made.

    Args:
        count: number of ports.

    Raises Unsupported if there are too few of either kind, or making them would take a network from the host.
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
                f"{count} ports take {count} VFs, and of the {len(present)} that somebody made on PF"
                f" {pf.interface} only {len(free)} are unused: free them, or remove all"
                f" (echo 0 > /sys/class/net/{pf.interface}/device/sriov_numvfs) so that they are made as needed"
            )
        return free
    if root.exists(f"/sys/class/net/{pf.interface}/master"):
        master = root.link(f"/sys/class/net/{pf.interface}/master")
        raise Unsupported(_in_use(pf, f"is a port of {master}", count))
    held = vf.read_addresses(pf.interface) if root.live else []
    if held:
        raise Unsupported(_in_use(pf, f"has the host's address {held[0]}", count))
    return []


def assign(root: Root, pf: Card, names: Sequence[str | None], free: Sequence[int]) -> list[int]:
    """Returns the index of a VF for each endpoint.

    Args:
        names: VF of each endpoint, by PCI address or interface; None: a free one.
        free: indexes of the unused VFs.

    Raises Unsupported for a name that is no unused VF of the card.
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


def _in_use(pf: Card, state: str, count: int) -> str:
    return (
        f"PF {pf.interface} is in use: it {state}, and making VFs can interrupt its link: name another PF, or make"
        f" them yourself (echo {count} > /sys/class/net/{pf.interface}/device/sriov_numvfs)"
    )


def is_idle(root: Root, function: str) -> bool:
    """Whether a VF can be taken: without a driver, given to VFIO but to no process, or with an interface that is down.

    An interface in another network namespace is in use.
    """
    driver = pci.driver(root, function)
    if driver is None:
        return True
    if driver == "vfio-pci":
        return _is_free(root, pci.iommu_group(root, function) or "none")
    names = pci.interfaces(root, function)
    return bool(names) and all(_is_quiet(root, name) for name in names)


def _is_free(root: Root, group: str) -> bool:
    """Whether no process has a VFIO group open: only one at a time can."""
    try:
        os.close(os.open(root.path(f"/dev/vfio/{group}"), os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return True  # it is a plan, for a run with root
    except OSError:
        return False
    return True


def _is_quiet(root: Root, name: str) -> bool:
    flags = int(root.read(f"/sys/class/net/{name}/flags") or "0", 16)
    held = vf.read_addresses(name) if root.live else []
    return not flags & 1 and not root.exists(f"/sys/class/net/{name}/master") and not held


def vfio_devices(root: Root, function: str) -> list[Path]:
    """Returns the device nodes that give a process a function: VFIO's container, and the function's group.

    Raises ProvisionError if the group has other functions too.
    """
    group = pci.iommu_group(root, function)
    others = [other for other in pci.group_members(root, group or "") if other != function]
    if group is None or others:
        raise ProvisionError(
            f"the PCI function {function} has no IOMMU group of its own"
            + (f" but shares {group} with {', '.join(others)}" if others else "")
            + ": the slot's bridge does not keep its functions apart (ACS), use another slot"
        )
    return [_VFIO_CONTAINER, Path("/dev/vfio", group)]
