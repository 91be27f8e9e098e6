# SPDX-License-Identifier: BSD-3-Clause
"""A recorded tree of PCI functions that answers as the kernel does: VFs come and go, drivers take and leave them."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path
from typing import ClassVar

import pytest

from pytest_icbench.host.journal import Journal
from pytest_icbench.host.resource import pci
from pytest_icbench.host.root import Root
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.unit.recorded import expand
from tests.unit.recording_host import RecordingSession

_DEVICES = "/sys/bus/pci/devices"


class CardRoot(Root):
    """Records what is written.

    Attributes:
        written: name and text of each write, of all roots.
        drivers: those that take a VF, and the interface that one of them makes.
        refuses: error number that making VFs gives.
        shared_group: whether all new VFs are in one IOMMU group.
    """

    written: ClassVar[list[tuple[str, str]]] = []
    drivers: ClassVar[dict[str, str]] = {"vfio-pci": "", "igbvf": "enp1s0v{}", "iavf": "ens1f0v{}"}
    refuses: ClassVar[int | None] = None
    shared_group: ClassVar[bool] = False

    def write(self, name: str, text: str) -> None:
        device, file = name.rsplit("/", 1)
        CardRoot.written.append((name.removeprefix(_DEVICES + "/"), text.strip()))
        if file == "sriov_numvfs":
            self._make_vfs(device, int(text))
        elif file == "unbind":
            self.path(device).unlink()
            shutil.rmtree(self.path(f"{_DEVICES}/{text}/net"), ignore_errors=True)
        elif file == "drivers_probe":
            self._probe(text)
        if file != "unbind":
            self.path(name).write_text(text or "\n")

    def _make_vfs(self, pf: str, count: int) -> None:
        if count and CardRoot.refuses is not None:
            raise OSError(CardRoot.refuses, errno.errorcode[CardRoot.refuses])
        for link in self.path(pf).glob("virtfn*"):
            shutil.rmtree(self.path(_DEVICES) / link.readlink().name)
            link.unlink()
        bus = Path(pf).name[:7]
        for index in range(count):
            function = f"{bus}:10.{index}"
            directory = self.path(f"{_DEVICES}/{function}")
            directory.mkdir()
            (directory / "driver_override").write_text("(null)\n")
            (directory / "physfn").symlink_to(f"../{Path(pf).name}")
            group = 60 if CardRoot.shared_group else 60 + index
            (directory / "iommu_group").symlink_to(f"../../../../kernel/iommu_groups/{group}")
            member = self.path(f"/sys/kernel/iommu_groups/{group}/devices/{function}")
            member.parent.mkdir(parents=True, exist_ok=True)
            member.touch()
            (self.path(pf) / f"virtfn{index}").symlink_to(f"../{function}")

    def _probe(self, function: str) -> None:
        place = self.path(f"{_DEVICES}/{function}")
        driver = (place / "driver_override").read_text().strip()
        if driver in CardRoot.drivers and not (place / "driver").is_symlink():
            (place / "driver").symlink_to(f"../../drivers/{driver}")
            if CardRoot.drivers[driver]:
                name = CardRoot.drivers[driver].format(function[-1])
                (place / "net" / name).mkdir(parents=True)


class CardSession(RecordingSession):
    """A recording session with a journal on a tree that reacts."""

    def __init__(self, directory: Path, tree: str, pf: str | None) -> None:
        super().__init__(directory, self._modprobe)
        self.root: CardRoot = CardRoot(expand(tree, directory / "root").base)  # type: ignore[assignment]
        self.journal = Journal(directory / "journal", UNDO_KINDS, base=self.root.base)
        self.pf = pf
        #: What modprobe shows, by module.
        self.depends: dict[str, list[str]] = {}

    def _modprobe(self, words: list[str], _text: str | None) -> str:
        if words[:2] == ["modprobe", "--show-depends"]:
            return "".join(f"insmod /lib/modules/x/{name}.ko.xz\n" for name in self.depends.get(words[2], []))
        return ""

    def pending(self) -> list[str]:
        """Returns the kinds of changes that are still to be undone."""
        return [entry.kind for entry in self.journal.pending()]


@pytest.fixture
def reacting(monkeypatch: pytest.MonkeyPatch) -> type[CardRoot]:
    """Gives the tree that reacts to undo functions."""
    monkeypatch.setattr(pci, "Root", CardRoot)
    monkeypatch.setattr(CardRoot, "written", [])
    monkeypatch.setattr(pci, "SETTLE_S", 0.1)
    return CardRoot


def tree_of(root: Root) -> dict[str, str]:
    """Returns files and links of a tree, also links to nowhere."""
    found = {}
    for path in sorted(root.base.rglob("*")):
        name = str(path.relative_to(root.base))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and not re.search(r"drivers_probe|iommu_groups/6", name):
            found[name] = path.read_text().strip().replace("(null)", "")
    return found
