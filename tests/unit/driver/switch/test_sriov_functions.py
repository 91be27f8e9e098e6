# SPDX-License-Identifier: BSD-3-Clause
"""sriov with network functions between its ports, and with an uplink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.sriov import Sriov
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.endpoint import Veth
from pytest_icbench.model.uplink import Uplink
from tests.unit.card import reacting
from tests.unit.driver.switch.test_sriov import ADDRESSES, RecordingNet, net, on, with_iommu
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["net", "reacting"]  # fixtures


def test_ports_of_network_functions_are_kept_apart_by_vlans(tmp_path: Path, net: RecordingNet) -> None:
    """One function between two ends: VFs 0 and 2 see each other, and 3 and 1."""
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    spec = spec_of(tmp_path, port="vf")
    places = attachments_of(tmp_path, pairs=2)
    order = [replace(places[index], segment=place // 2) for place, index in enumerate((0, 2, 3, 1))]
    order[2] = replace(order[2], interface="eth1", node=order[1].node)
    driver = Sriov()
    driver.devices(session, spec, [place.address for place in places])
    net.calls.clear()
    endpoints = driver.start(session, spec, order)
    vlans = [call for call in net.calls if call[0] == "vlan"]
    assert vlans == [("vlan", "enp1s0", index, vlan) for index, vlan in ((0, 100), (2, 100), (3, 101), (1, 101))]
    assert net.calls[: len(vlans)] == vlans
    assert [each.interface for each in endpoints if isinstance(each, Veth)] == ["eth0", "eth0", "eth1", "eth0"]
    assert "vlan" not in driver.facts().config["settings"]


def test_the_uplink_is_the_cards_own_port(tmp_path: Path, net: RecordingNet) -> None:
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    said = "sriov's uplink is its card's own port: --icbench-uplink says eth7 and --icbench-pf enp1s0; name the same"
    with pytest.raises(ProvisionError, match=said):
        Sriov().devices(session, spec_of(tmp_path, port="vfio", uplink=Uplink("eth7")), ADDRESSES)
    assert net.calls == []
    Sriov().devices(session, spec_of(tmp_path, port="vfio", uplink=Uplink("enp1s0")), ADDRESSES)
