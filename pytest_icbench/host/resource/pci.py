# SPDX-License-Identifier: BSD-3-Clause
"""PCI functions in sysfs: facts, and journaled changes of drivers and of the number of virtual functions.

A *PF* is the physical function of a card with SR-IOV, a *VF* one of its virtual functions. Functions are named by their
address, ``domain:bus:device.function``.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.process import wait_until
from pytest_icbench.host.root import Root

_DEVICES = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
#: The time in seconds that a function, a driver or an interface may take to appear.
SETTLE_S = 10.0


def path(pci: str, file: str = "") -> str:
    """Returns a function's directory in sysfs, or a file in it."""
    return f"{_DEVICES}/{pci}/{file}" if file else f"{_DEVICES}/{pci}"


def find(root: Root, name: str) -> str | None:
    """Returns the address of a function, None if there is none.

    ``name``: its interface, or its address with or without the domain.
    """
    match = _ADDRESS.fullmatch(name)
    if match:
        address = f"{match[1] or '0000'}:{match[2]}".lower()
        return address if root.exists(path(address)) else None
    if "/" in name or not name:
        return None
    device = root.link(f"/sys/class/net/{name}/device")
    return device if device is not None and root.exists(path(device)) else None


def driver(root: Root, pci: str) -> str | None:
    """Returns the name of the driver that has the function, None without one."""
    return root.link(path(pci, "driver"))


def interfaces(root: Root, pci: str) -> list[str]:
    """Returns the function's network interfaces in this process' namespace."""
    return root.list(path(pci, "net"))


def read_identity(root: Root, pci: str) -> str:
    """Returns vendor and device: ``8086:1572``."""
    words = (root.read(path(pci, name)) or "?" for name in ("vendor", "device"))
    return ":".join(word.removeprefix("0x") for word in words)


def physical_function(root: Root, pci: str) -> str | None:
    """Returns the PF of a VF, None for any other function."""
    return root.link(path(pci, "physfn"))


def total_vfs(root: Root, pci: str) -> int | None:
    """Returns how many VFs a PF can have; None without SR-IOV, 0 if the firmware has switched it off."""
    return root.read_int(path(pci, "sriov_totalvfs"))


def vf_count(root: Root, pci: str) -> int:
    """Returns how many VFs a PF has."""
    return root.read_int(path(pci, "sriov_numvfs")) or 0


def virtual_functions(root: Root, pci: str) -> list[str]:
    """Returns the addresses of a PF's VFs in the order of their indices."""
    links = [name for name in root.list(path(pci)) if re.fullmatch(r"virtfn\d+", name)]
    links.sort(key=lambda name: int(name.removeprefix("virtfn")))
    return [address for name in links if (address := root.link(path(pci, name))) is not None]


def physical_functions(root: Root) -> list[str]:
    """Returns all functions with SR-IOV, without those whose firmware has switched it off."""
    functions = (name.split("/")[-2] for name in root.glob(f"{_DEVICES}/*/sriov_totalvfs"))
    return [pci for pci in functions if total_vfs(root, pci)]


def has_iommu(root: Root) -> bool:
    """Returns whether the kernel uses an IOMMU."""
    return bool(root.list("/sys/kernel/iommu_groups"))


def iommu_group(root: Root, pci: str) -> str | None:
    """Returns the number of the function's IOMMU group, which names its device node in /dev/vfio."""
    return root.link(path(pci, "iommu_group"))


def group_members(root: Root, group: str) -> list[str]:
    """Returns the functions of an IOMMU group."""
    return root.list(f"/sys/kernel/iommu_groups/{group}/devices")


@dataclass(frozen=True, slots=True)
class Binding:
    """The driver that has a function, and the only one that may have it (``driver_override``, else empty)."""

    driver: str | None
    override: str

    @classmethod
    def read(cls, root: Root, pci: str) -> Binding:
        """Reads a function's binding."""
        text = root.read(path(pci, "driver_override")) or ""
        return cls(driver(root, pci), "" if text == "(null)" else text)


def _set_driver(root: Root, pci: str, target: str | None, override: str) -> None:
    """Gives a function to a driver and sets its ``driver_override`` to ``override``. Raises OSError."""
    now = Binding.read(root, pci)
    if now == Binding(target, override):
        return
    if now.driver is not None and now.driver != target:
        with suppress(FileNotFoundError):  # it has let go in the meantime
            root.write(path(pci, "driver/unbind"), pci)
    if target is not None and now.driver != target:
        # The override also lets a driver have a VF of a PF with sriov_drivers_autoprobe off.
        root.write(path(pci, "driver_override"), target)
        root.write("/sys/bus/pci/drivers_probe", pci)
    if Binding.read(root, pci).override != override:
        root.write(path(pci, "driver_override"), override or "\n")


def bind(changes: Changes, pci: str, target: str | None) -> None:
    """Gives a function to the driver ``target`` and to no other. None takes it from its present driver.

    Raises ProvisionError if the driver does not take it or does not release it.
    """
    root = changes.root
    before = Binding.read(root, pci)
    if before.driver is None and target is None:
        return
    changes.record("pci_driver", base=str(root.base), pci=pci, driver=before.driver, override=before.override)
    try:
        _set_driver(root, pci, target, target or "")
    except OSError as error:
        raise ProvisionError(
            f"PCI function {pci} cannot be given to {target or 'no driver'} ({error.strerror}); see the end of dmesg"
        ) from None
    bound = driver(root, pci)
    if bound != target:
        raise ProvisionError(
            f"PCI function {pci} has {bound or 'no driver'} and not {target or 'none'}; see the end of dmesg"
        )


def undo_driver(base: str, pci: str, driver: str | None, override: str) -> None:
    """Gives a function back to the driver that had it, unless the function is gone."""
    root = Root(Path(base))
    if root.exists(path(pci)):
        _set_driver(root, pci, driver, override)


def create_vfs(changes: Changes, pci: str, count: int) -> None:
    """Creates VFs on a PF that has none. No driver takes them by itself.

    Raises ProvisionError if the kernel or the card refuses.
    """
    root = changes.root
    try:
        changes.write(path(pci, "sriov_drivers_autoprobe"), "0")
        changes.record("vf_count", base=str(root.base), pci=pci, count=vf_count(root, pci))
        root.write(path(pci, "sriov_numvfs"), str(count))
    except OSError as error:
        remedy = "; see the end of dmesg"
        if error.errno == errno.ENOMEM:
            remedy = ": the firmware leaves their registers too little room, boot with pci=realloc or allow 64-bit BARs"
        raise ProvisionError(f"PF {pci} refuses {count} VFs ({error.strerror}){remedy}") from None
    _await(lambda: len(virtual_functions(root, pci)) >= count, f"PF {pci} has not made {count} VFs")


def undo_vf_count(base: str, pci: str, count: int) -> None:
    """Restores a PF's number of VFs. The kernel changes it only by way of zero."""
    root = Root(Path(base))
    if not root.exists(path(pci)) or vf_count(root, pci) == count:
        return
    root.write(path(pci, "sriov_numvfs"), "0")
    if count:
        root.write(path(pci, "sriov_numvfs"), str(count))


def await_interface(root: Root, pci: str) -> str:
    """Waits for a function's network interface and returns its name. Raises ProvisionError if none appears."""
    _await(lambda: bool(interfaces(root, pci)), f"the driver of {pci} has made no network interface")
    return interfaces(root, pci)[0]


def _await(condition: Callable[[], bool], complaint: str) -> None:
    """Waits until a condition is true. Raises ProvisionError with ``complaint`` after ``SETTLE_S`` seconds."""
    if not wait_until(condition, SETTLE_S):
        raise ProvisionError(f"{complaint} within {SETTLE_S:g} s; see the end of dmesg")


_CHECKS = {"base": entry_checks.base, "pci": entry_checks.pci_address}
UNDO_KINDS = {
    "pci_driver": UndoKind(undo_driver, checks=_CHECKS | {"driver": entry_checks.module}),
    "vf_count": UndoKind(undo_vf_count, checks=_CHECKS),
}
