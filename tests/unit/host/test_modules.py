# SPDX-License-Identifier: BSD-3-Clause
"""Modules of the kernel: what recorded machines have, what is loaded and what is unloaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.resource import modules
from pytest_icbench.host.root import Root
from tests.unit.card import CardSession
from tests.unit.recorded import expand

VF_ALIAS = "pci:v00008086d0000154Csv00000000sd00000000bc02sc00i00"


def test_loaded_and_loadable_modules_are_found(tmp_path: Path) -> None:
    root = expand("pci/x710", tmp_path)
    assert modules.list_loaded(root) == {"i40e", "iavf", "ixgbe", "vfio_pci"}
    assert modules.available(root, "vfio-pci")
    assert modules.available(root, "vfio_iommu_type1")
    assert not modules.available(root, "igbvf")
    assert modules.pci_drivers(root, "vfio-pci") == ["vfio-pci"]
    assert modules.pci_drivers(root, "igbvf") == []


def test_what_is_built_in_is_there(tmp_path: Path) -> None:
    root = expand("pci/igb", tmp_path)
    assert modules.available(root, "virtio-pci")
    assert not modules.available(root, "vfio-pci")


def test_the_module_of_a_device(tmp_path: Path) -> None:
    root = expand("pci/x710", tmp_path)
    assert modules.find_by_alias(root, VF_ALIAS) == "iavf"
    assert modules.find_by_alias(root, VF_ALIAS.replace("154C", "154D")) is None
    builtin = root.path("/lib/modules/6.1.0-18-amd64/modules.builtin.modinfo")
    builtin.write_text("igbvf.license=GPL\0igbvf.alias=pci:v00008086d0000154Dsv*sd*bc*sc*i*\0")
    assert modules.find_by_alias(root, VF_ALIAS.replace("154C", "154D")) == "igbvf"


def test_a_kernel_without_files_has_nothing(tmp_path: Path) -> None:
    root = Root(tmp_path)
    assert (modules.list_loaded(root), modules.available(root, "vfio"), modules.find_by_alias(root, VF_ALIAS)) == (
        set(),
        False,
        None,
    )


def test_only_what_is_missing_is_unloaded_later(tmp_path: Path) -> None:
    session = CardSession(tmp_path, "pci/x710", None)
    session.depends = {
        "vfio-pci": ["vfio", "vfio-pci-core", "vfio-pci"],
        "vfio_iommu_type1": ["vfio", "vfio_iommu_type1"],
        "iavf": ["iavf"],
    }
    given: Any = session
    modules.load(Changes(given), ["vfio_iommu_type1", "vfio-pci"])
    assert session.spawner.ran[2:] == [["modprobe", "vfio_iommu_type1"], ["modprobe", "vfio-pci"]]
    (entry,) = session.journal.pending()
    assert (entry.kind, entry.data) == ("modules", {"names": ["vfio", "vfio_iommu_type1", "vfio_pci_core"]})
    modules.load(Changes(given), ["iavf"])
    assert session.spawner.ran[4:] == [["modprobe", "--show-depends", "iavf"]]
    assert len(session.journal.pending()) == 1


def test_modules_are_unloaded_in_reverse_but_for_those_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = expand("pci/x710", tmp_path)
    ran = []
    monkeypatch.setattr(modules, "Root", lambda: root)
    monkeypatch.setattr(modules, "run", lambda argv, timeout_s: ran.append(argv))
    monkeypatch.setattr(modules, "_RELEASE_S", 0.0)
    driver = root.path("/sys/bus/pci/drivers/iavf/0000:3b:02.0")
    driver.parent.mkdir(parents=True)
    driver.touch()
    # In use: iavf by a device, vfio_pci by its count. Not loaded: igbvf.
    modules.undo_modules(("i40e", "igbvf", "ixgbe", "iavf", "vfio_pci"))
    assert ran == [["rmmod", "ixgbe"], ["rmmod", "i40e"]]
