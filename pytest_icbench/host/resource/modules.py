# SPDX-License-Identifier: BSD-3-Clause
"""Modules of the kernel: lists them, loads missing ones, and unloads these again."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_icbench.host import entry_checks
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.process import run, wait_until
from pytest_icbench.host.root import Root

_LOAD_S = 30.0
#: The time in seconds to wait for a module that is being released.
_RELEASE_S = 3.0


def _plain(name: str) -> str:
    """Returns a module's name in the kernel's spelling, with underscores."""
    return name.replace("-", "_")


def _directory(root: Root) -> str:
    return f"/lib/modules/{root.read('/proc/sys/kernel/osrelease') or 'unknown'}"


def list_loaded(root: Root) -> set[str]:
    """Returns the names of the loaded modules, without those built in."""
    return {line.split()[0] for line in (root.read("/proc/modules") or "").splitlines()}


def _names(text: str | None) -> set[str]:
    """Returns the modules listed in ``modules.dep`` or ``modules.builtin``."""
    lines = (text or "").splitlines()
    return {_plain(line.partition(":")[0].rpartition("/")[2].split(".ko")[0]) for line in lines}


def available(root: Root, name: str) -> bool:
    """Returns whether a module is loaded, built in, or can be loaded."""
    name = _plain(name)
    if root.exists(f"/sys/module/{name}"):
        return True
    files = (f"{_directory(root)}/{file}" for file in ("modules.dep", "modules.builtin"))
    return any(name in _names(root.read(file)) for file in files)


def find_by_alias(root: Root, alias: str) -> str | None:
    """Returns the module for a device with this ``modalias``; None if this kernel has none."""
    kind = alias.partition(":")[0]
    for line in (root.read(f"{_directory(root)}/modules.alias") or "").splitlines():
        words = line.split()
        if len(words) == 3 and words[1].startswith(f"{kind}:") and fnmatchcase(alias, words[1]):
            return _plain(words[2])
    # Modules built in are listed as "NAME.alias=PATTERN", each ended by a zero byte.
    for entry in (root.read(f"{_directory(root)}/modules.builtin.modinfo") or "").split("\0"):
        name, _, pattern = entry.partition(".alias=")
        if pattern.startswith(f"{kind}:") and fnmatchcase(alias, pattern):
            return _plain(name)
    return None


def pci_drivers(root: Root, module: str) -> list[str]:
    """Returns the PCI drivers of a loaded or built-in module."""
    names = root.list(f"/sys/module/{_plain(module)}/drivers")
    return [name.removeprefix("pci:") for name in names if name.startswith("pci:")]


def load(changes: Changes, names: Sequence[str]) -> None:
    """Loads modules with their dependencies, unless they are in the kernel. Raises ProvisionError of modprobe."""
    if expect(changes, names):
        for name in names:
            changes.session.spawner.run(["modprobe", name], timeout_s=_LOAD_S)


def expect(changes: Changes, names: Sequence[str]) -> list[str]:
    """Records which modules, dependencies included, are missing, so that they are unloaded in the end.

    Returns the missing modules. Raises ProvisionError with the message of modprobe.
    """
    before = list_loaded(changes.root)
    spawner = changes.session.spawner
    needed: dict[str, None] = {}
    for name in names:
        output = spawner.run(["modprobe", "--show-depends", name], timeout_s=_LOAD_S).stdout
        for line in output.splitlines():
            words = line.split()
            if words and words[0] == "insmod":
                needed[_plain(Path(words[1]).name.split(".ko")[0])] = None
    missing = [name for name in needed if name not in before]
    if missing:
        changes.record("modules", names=missing)
    return missing


def undo_modules(names: tuple[str, ...]) -> None:
    """Unloads modules in the reverse order of loading. Modules in use by others stay."""
    root = Root()
    for name in reversed(names):
        if _free(root, name):
            run(["rmmod", name], timeout_s=_LOAD_S)


def _free(root: Root, name: str) -> bool:
    """Waits briefly until a module has no user and none of its drivers a device. Returns whether it can be unloaded."""

    def settled() -> bool:
        return name not in list_loaded(root) or not (
            root.read_int(f"/sys/module/{name}/refcnt") or _devices(root, name)
        )

    return wait_until(settled, _RELEASE_S, 0.02) and name in list_loaded(root)


def _devices(root: Root, name: str) -> list[str]:
    """Returns the PCI addresses of the devices that a module's drivers have."""
    directories = [f"/sys/bus/pci/drivers/{driver}" for driver in pci_drivers(root, name)]
    return [entry for directory in directories for entry in root.list(directory) if ":" in entry]


UNDO_KINDS = {"modules": UndoKind(undo_modules, checks={"names": entry_checks.module})}
