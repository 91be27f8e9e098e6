# SPDX-License-Identifier: BSD-3-Clause
"""Modules of the kernel: which there are, loading those that are missing, unloading what was loaded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.process import run
from pytest_icbench.host.root import Root

if TYPE_CHECKING:
    from pytest_icbench.host.changes import Changes

_LOAD_S = 30.0
#: How long a module that is just being let go is waited for, in seconds.
_RELEASE_S = 3.0


def _plain(name: str) -> str:
    """The kernel's own spelling: underscores."""
    return name.replace("-", "_")


def _directory(root: Root) -> str:
    return f"/lib/modules/{root.read('/proc/sys/kernel/osrelease') or 'unknown'}"


def loaded(root: Root) -> set[str]:
    """Modules in the kernel; those built in are none."""
    return {line.split()[0] for line in (root.read("/proc/modules") or "").splitlines()}


def _names(text: str | None) -> set[str]:
    """Modules of ``modules.dep`` or ``modules.builtin``."""
    lines = (text or "").splitlines()
    return {_plain(line.partition(":")[0].rpartition("/")[2].split(".ko")[0]) for line in lines}


def available(root: Root, name: str) -> bool:
    """Whether a module is loaded, built in, or can be loaded."""
    name = _plain(name)
    if root.exists(f"/sys/module/{name}"):
        return True
    files = (f"{_directory(root)}/{file}" for file in ("modules.dep", "modules.builtin"))
    return any(name in _names(root.read(file)) for file in files)


def for_alias(root: Root, alias: str) -> str | None:
    """The module that takes a device, by its ``modalias``; None if this kernel has none."""
    kind = alias.partition(":")[0]
    for line in (root.read(f"{_directory(root)}/modules.alias") or "").splitlines():
        words = line.split()
        if len(words) == 3 and words[1].startswith(f"{kind}:") and fnmatchcase(alias, words[1]):
            return _plain(words[2])
    # Built in: "NAME.alias=PATTERN", ended by zeros.
    for entry in (root.read(f"{_directory(root)}/modules.builtin.modinfo") or "").split("\0"):
        name, _, pattern = entry.partition(".alias=")
        if pattern.startswith(f"{kind}:") and fnmatchcase(alias, pattern):
            return _plain(name)
    return None


def pci_drivers(root: Root, module: str) -> list[str]:
    """Names of a loaded or built-in module's drivers of PCI functions."""
    names = root.list(f"/sys/module/{_plain(module)}/drivers")
    return [name.removeprefix("pci:") for name in names if name.startswith("pci:")]


def load(changes: Changes, names: Sequence[str]) -> None:
    """Loads modules with all they need, if they are not in the kernel. Raises ProvisionError with modprobe's words."""
    if expect(changes, names):
        for name in names:
            changes.session.spawner.run(["modprobe", name], timeout_s=_LOAD_S)


def expect(changes: Changes, names: Sequence[str]) -> list[str]:
    """Notes which of modules, with all they need, are not in the kernel yet, so that they go whoever loads them now.

    Raises ProvisionError with modprobe's words.
    """
    before = loaded(changes.root)
    spawner = changes.session.spawner
    wanted: dict[str, None] = {}
    for name in names:
        said = spawner.run(["modprobe", "--show-depends", name], timeout_s=_LOAD_S).stdout
        for line in said.splitlines():
            words = line.split()
            if words and words[0] == "insmod":
                wanted[_plain(Path(words[1]).name.split(".ko")[0])] = None
    missing = [name for name in wanted if name not in before]
    if missing:
        changes.record("modules", names=missing)
    return missing


def undo_modules(names: Sequence[str]) -> None:
    """Unloads modules, those first that were loaded last. What somebody else uses by now stays."""
    root = Root()
    for name in reversed(names):
        if _free(root, name):
            run(["rmmod", name], timeout_s=_LOAD_S)


def _free(root: Root, name: str) -> bool:
    """Whether a loaded module can go: nobody holds it, and none of its drivers has a device. Waits a little."""
    deadline = time.monotonic() + _RELEASE_S
    while name in loaded(root):
        used = root.read_int(f"/sys/module/{name}/refcnt") or _devices(root, name)
        if not used:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return False


def _devices(root: Root, name: str) -> list[str]:
    places = [f"/sys/bus/pci/drivers/{driver}" for driver in pci_drivers(root, name)]
    return [entry for place in places for entry in root.list(place) if ":" in entry]


UNDO_KINDS = {"modules": UndoKind(undo_modules)}
