# SPDX-License-Identifier: BSD-3-Clause
"""PCI functions of recorded machines: what is read, and what is written and undone."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.journaled_changes import Changes
from pytest_icbench.host.resource import pci
from tests.unit.card import CardRoot, CardSession, reacting, tree_of
from tests.unit.recorded import expand

__all__ = ["reacting"]  # fixture

PF = "0000:3b:00.0"
VF = "0000:3b:02.1"


def changes_on(session: CardSession) -> Changes:
    found: Any = session
    return Changes(found)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ens1f0", PF),
        ("0000:3b:00.0", PF),
        ("3b:00.0", PF),
        ("3B:00.0", PF),
        ("ens1f0v1", VF),
        ("eth9", None),
        ("0000:3c:00.0", None),
        ("br0", None),
        ("../x", None),
        ("", None),
    ],
)
def test_functions_have_two_names(tmp_path: Path, name: str, found: str | None) -> None:
    assert pci.find(expand("pci/x710", tmp_path), name) == found


def test_functions_and_their_drivers_are_read(tmp_path: Path) -> None:
    root = expand("pci/x710", tmp_path)
    assert pci.physical_functions(root) == [PF, "0000:3b:00.1", "0000:5e:00.1"]
    assert (pci.total_vfs(root, PF), pci.total_vfs(root, "0000:5e:00.0"), pci.total_vfs(root, VF)) == (64, 0, None)
    assert (pci.vf_count(root, PF), pci.vf_count(root, "0000:3b:00.1")) == (4, 0)
    assert pci.virtual_functions(root, PF) == [f"0000:3b:02.{index}" for index in range(4)]
    assert pci.physical_function(root, VF) == PF
    assert (pci.driver(root, VF), pci.driver(root, "0000:3b:02.3")) == ("iavf", None)
    assert pci.interfaces(root, VF) == ["ens1f0v1"]
    assert pci.read_identity(root, PF) == "8086:1572"
    assert (pci.iommu_group(root, VF), pci.group_members(root, "40")) == ("51", [PF])
    assert pci.has_iommu(root)
    assert pci.Binding.read(root, "0000:3b:02.2") == pci.Binding("vfio-pci", "vfio-pci")
    assert not pci.has_iommu(expand("pci/igb", tmp_path / "other"))


def test_virtual_functions_come_in_the_order_of_their_index(tmp_path: Path) -> None:
    root = expand("pci/x710", tmp_path)
    for index in (10, 11):
        root.path(f"/sys/bus/pci/devices/{PF}/virtfn{index}").symlink_to(f"../0000:3b:03.{index - 10}")
    assert pci.virtual_functions(root, PF)[-2:] == ["0000:3b:03.0", "0000:3b:03.1"]


def test_functions_are_made_without_drivers_and_removed(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session = CardSession(tmp_path, "pci/igb", None)
    before = tree_of(session.root)
    changes = changes_on(session)
    pci.create_vfs(changes, "0000:01:00.0", 2)
    pci.bind(changes, "0000:01:10.1", "vfio-pci")
    assert reacting.written == [
        ("0000:01:00.0/sriov_drivers_autoprobe", "0"),
        ("0000:01:00.0/sriov_numvfs", "2"),
        ("0000:01:10.1/driver_override", "vfio-pci"),
        ("/sys/bus/pci/drivers_probe", "0000:01:10.1"),
    ]
    assert session.pending() == ["file", "vf_count", "pci_driver"]
    changes.undo("the card")
    assert reacting.written[4:] == [
        ("0000:01:10.1/driver/unbind", "0000:01:10.1"),
        ("0000:01:10.1/driver_override", ""),
        ("0000:01:00.0/sriov_numvfs", "0"),
    ]
    assert tree_of(session.root) == before
    assert session.pending() == []
    changes.undo("the card")  # idempotent


def test_a_function_goes_back_to_the_driver_it_had(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session = CardSession(tmp_path, "pci/x710", None)
    before = tree_of(session.root)
    changes = changes_on(session)
    pci.bind(changes, VF, None)
    assert pci.Binding.read(session.root, VF) == pci.Binding(None, "")
    pci.bind(changes, VF, "vfio-pci")
    assert pci.driver(session.root, VF) == "vfio-pci"
    changes.undo("the card")
    assert pci.Binding.read(session.root, VF) == pci.Binding("iavf", "")
    assert pci.interfaces(session.root, VF) == ["ens1f0v1"]
    assert tree_of(session.root).keys() >= {name for name in before if "ens1f0v1/mtu" not in name}


def test_undoing_twice_or_after_the_function_has_gone_does_no_harm(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session = CardSession(tmp_path, "pci/igb", None)
    base = str(session.root.base)
    pci.undo_vf_count(base, "0000:01:00.0", 0)
    pci.undo_vf_count(base, "0000:02:00.0", 0)
    pci.undo_driver(base, "0000:01:10.0", "igbvf", "")
    pci.undo_driver(base, "0000:01:00.0", "igb", "")
    assert reacting.written == []


def test_another_number_of_functions_goes_by_way_of_none(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session = CardSession(tmp_path, "pci/igb", None)
    session.root.write("/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs", "2")
    reacting.written.clear()
    pci.undo_vf_count(str(session.root.base), "0000:01:00.0", 3)
    assert reacting.written == [("0000:01:00.0/sriov_numvfs", "0"), ("0000:01:00.0/sriov_numvfs", "3")]


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOMEM, "boot with pci=realloc"), (errno.EIO, "see the end of dmesg")],
)
def test_a_card_that_refuses_vfs_is_named_and_left_as_before(
    tmp_path: Path, reacting: type[CardRoot], monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    session = CardSession(tmp_path, "pci/igb", None)
    before = tree_of(session.root)
    monkeypatch.setattr(reacting, "refuses", number)
    changes = changes_on(session)
    with pytest.raises(ProvisionError, match=f"PF 0000:01:00.0 refuses 2 VFs .*{said}"):
        pci.create_vfs(changes, "0000:01:00.0", 2)
    changes.undo("the card")
    assert tree_of(session.root) == before


def test_a_driver_that_does_not_take_a_function(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session = CardSession(tmp_path, "pci/igb", None)
    changes = changes_on(session)
    pci.create_vfs(changes, "0000:01:00.0", 1)
    with pytest.raises(ProvisionError, match=r"0000:01:10.0 has no driver and not nothing; see the end of dmesg"):
        pci.bind(changes, "0000:01:10.0", "nothing")


def test_an_interface_that_does_not_come(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session = CardSession(tmp_path, "pci/igb", None)
    pci.create_vfs(changes_on(session), "0000:01:00.0", 1)
    with pytest.raises(ProvisionError, match=r"the driver of 0000:01:10.0 has made no network interface within"):
        pci.await_interface(session.root, "0000:01:10.0")
    assert pci.await_interface(session.root, "0000:01:00.0") == "enp1s0"
