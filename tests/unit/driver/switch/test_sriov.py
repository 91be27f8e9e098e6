# SPDX-License-Identifier: BSD-3-Clause
"""sriov: what it asks of a host, what it does to a card and in which order, and how it gives it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch import sriov
from pytest_icbench.driver.switch.sriov import Sriov
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net import links, vf
from pytest_icbench.model.endpoint import Address, Pci, Veth
from tests.unit.card import CardRoot, CardSession, reacting, tree_of
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["reacting"]  # fixture

ADDRESSES = [Address.of(1, "a"), Address.of(1, "b")]
VFIO_DEPENDS = {"vfio-pci": ["vfio", "vfio-pci"], "vfio_iommu_type1": ["vfio", "vfio_iommu_type1"]}


class RecordingNet:
    """Stands in for ``vf``, ``links`` and ``ethtool``; its changes are journaled as kinds that nobody has to undo."""

    Settings = vf.Settings
    LINK_ENABLED = vf.LINK_ENABLED

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.carrier = True
        self.can_enable = True
        self.counts: dict[int, dict[str, int]] = {}

    def driver_version(self, name: str) -> str:
        return f"version of {name}"

    def bring_up(self, changes: Any, name: str) -> None:
        self.calls.append(("up", name))

    def await_carrier(self, name: str) -> bool:
        return self.carrier

    def configure(self, changes: Any, pf: str, index: int, settings: vf.Settings) -> vf.Settings:
        self.calls.append(("configure", pf, index, settings))
        state = settings.link_state if self.can_enable else None
        return vf.Settings(settings.mac, settings.spoofcheck, settings.trust, state)

    def set_vlan(self, changes: Any, pf: str, index: int, vlan: int) -> None:
        self.calls.append(("vlan", pf, index, vlan))

    def remember_interface(self, changes: Any, function: str, name: str) -> None:
        self.calls.append(("remember", function, name))

    def read_statistics(self, name: str, netns: str | None = None) -> Any:
        self.calls.append(("statistics", name, netns))
        return self.counts if netns is None else {"rx_packets": 1, "tx_packets": 2, "rx_dropped": 3, "tx_dropped": 4}

    def move(self, name: str, end: Any, *, up: bool) -> None:
        self.calls.append(("move", name, end.netns, end.name, end.address.mac, up))

    def set_mtu(self, name: str, mtu: int, netns: str) -> None:
        self.calls.append(("mtu", mtu, netns))

    def set_up(self, name: str, netns: str) -> None:
        self.calls.append(("set up", netns))

    def await_up(self, name: str, netns: str, *, timeout_s: float) -> None:
        self.calls.append(("await up", netns))


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch, reacting: type[CardRoot]) -> RecordingNet:
    found = RecordingNet()
    for module in ("vf", "links", "ethtool"):
        monkeypatch.setattr(sriov, module, found)
    monkeypatch.setattr(links, "read_statistics", found.read_statistics)
    return found


def on(tmp_path: Path, tree: str, pf: str | None) -> CardSession:
    session = CardSession(tmp_path, tree, pf)
    session.depends = VFIO_DEPENDS
    return session


def probe(session: Any, pairs: int) -> None:
    driver = Sriov()
    driver.probe(session, None)
    driver.probe_pairs(session, pairs)


def refusal(session: Any, count: int = 2) -> str:
    with pytest.raises(Unsupported) as reason:
        probe(session, count // 2)
    said = str(reason.value)
    assert "\n" not in said
    return said


OFFERED = (
    "this host has ens1f0 (0000:3b:00.0, up to 64 VFs), ens1f1 (0000:3b:00.1, up to 64 VFs),"
    " 0000:5e:00.1 (0000:5e:00.1, up to 64 VFs)"
)


@pytest.mark.parametrize(
    ("pf", "said"),
    [
        (None, f"sriov needs a card: name its PF by --icbench-pf, {OFFERED}"),
        ("eth9", f"--icbench-pf: there is no network interface or PCI function eth9: {OFFERED}"),
        ("0000:77:00.0", f"there is no network interface or PCI function 0000:77:00.0: {OFFERED}"),
        ("eno3", f"--icbench-pf: eno3 (0000:01:00.0) has no SR-IOV: {OFFERED}"),
        ("ens1f0v1", "ens1f0v1 is itself a virtual function: name its PF 0000:3b:00.0"),
        ("eno1", "PF eno1 (0000:5e:00.0) offers no VFs: enable SR-IOV in its firmware"),
        ("5e:00.1", "has no network interface (its driver vfio-pci gives it none here): bind it to its kernel driver"),
        ("ens1f1", "PF ens1f1 is in use: it is a port of br0, and making VFs can interrupt its link"),
    ],
)
def test_a_card_that_cannot_be_used_is_explained(tmp_path: Path, pf: str | None, said: str) -> None:
    assert said in refusal(on(tmp_path, "pci/x710", pf))


def test_a_host_without_a_card_is_refused(tmp_path: Path) -> None:
    session = on(tmp_path, "virtual", None)
    assert refusal(session) == ("sriov needs a card: name its PF by --icbench-pf, but no card of this host offers VFs")


def test_more_pairs_than_functions_are_refused(tmp_path: Path) -> None:
    session = on(tmp_path, "pci/igb", "enp1s0")
    assert refusal(session, 8) == "8 ports take 8 VFs, and PF enp1s0 has only 7: lower --icbench-pairs"
    other = on(tmp_path / "other", "pci/x710", "ens1f0")
    # One is up, one is given to somebody: two are left.
    assert "4 ports take 4 VFs, and of the 4 that exist on PF ens1f0 only 2 are unused" in refusal(other, 4)
    given: Any = other
    assert sriov.choose_vfs(other.root, sriov.find_card(given), 2) == [1, 3]


def test_functions_that_a_topology_names(tmp_path: Path) -> None:
    session: Any = on(tmp_path, "pci/x710", "ens1f0")
    card = sriov.find_card(session)

    def assigned(*names: str | None) -> list[int]:
        return sriov.assign_vfs(session.root, card, names, [1, 3])

    assert assigned(None, None) == [1, 3]
    assert assigned("0000:3b:02.3", None) == [3, 1]
    assert assigned(None, "ens1f0v1") == [3, 1]
    for names, said in (
        (("0000:3b:02.2", None), "the topology names the VF 0000:3b:02.2, which something else uses: free it"),
        (("0000:77:00.0", None), "the topology names the VF 0000:77:00.0, and PF ens1f0 has 0000:3b:02.0, "),
        (("ens1f0", None), "the topology names the VF ens1f0, and PF ens1f0 has "),
        (("0000:3b:02.1", "ens1f0v1"), "names the VF 0000:3b:02.1 twice, once as ens1f0v1: name another"),
    ):
        with pytest.raises(Unsupported) as caught:
            assigned(*names)
        assert said in str(caught.value)


def test_a_function_given_to_vfio_can_be_taken_from_nobody(tmp_path: Path) -> None:
    session: Any = on(tmp_path, "pci/x710", "ens1f0")
    assert not sriov.is_idle(session.root, "0000:3b:02.2")
    group = session.root.path("/dev/vfio/52")
    group.parent.mkdir(parents=True)
    group.touch()
    assert sriov.is_idle(session.root, "0000:3b:02.2")


def test_an_interface_in_another_namespace_is_in_use(tmp_path: Path) -> None:
    session: Any = on(tmp_path, "pci/x710", "ens1f0")
    (session.root.path("/sys/bus/pci/devices/0000:3b:02.1/net/ens1f0v1/mtu")).unlink()
    (session.root.path("/sys/bus/pci/devices/0000:3b:02.1/net/ens1f0v1")).rmdir()
    assert not sriov.is_idle(session.root, "0000:3b:02.1")


@pytest.mark.parametrize(
    ("tree", "pf", "api", "said"),
    [
        ("pci/igb", "enp1s0", "dpdk", "the IOMMU is off, so that no VF .* and boot with amd_iommu=on iommu=pt"),
        ("pci/igb", "enp1s0", "udp", r"no driver for the VFs of 0000:01:00.0 \(8086:10ca\): .* or take --icbench-port"),
    ],
)
def test_a_kernel_that_lacks_something_is_explained(tmp_path: Path, tree: str, pf: str, api: str, said: str) -> None:
    session: Any = on(tmp_path, tree, pf)
    with pytest.raises(Unsupported, match=said):
        Sriov().probe_api(session, api)


def test_a_kernel_without_vfio_is_explained(tmp_path: Path) -> None:
    session: Any = on(tmp_path, "pci/igb", "enp1s0")
    session.root.path("/sys/kernel/iommu_groups/1").mkdir(parents=True)
    with pytest.raises(Unsupported, match=r"no module vfio-pci: install the full kernel .*--icbench-port vf"):
        Sriov().probe_api(session, "dpdk")


def test_a_good_card_is_accepted_and_nothing_is_written(tmp_path: Path, reacting: type[CardRoot]) -> None:
    session: Any = on(tmp_path, "pci/x710", "ens1f0")
    driver = Sriov()
    driver.probe(session, None)
    for api in ("dpdk", "udp"):
        driver.probe_api(session, api)
    driver.probe_pairs(session, 1)
    assert (reacting.written, session.spawner.ran, session.pending()) == ([], [], [])


def with_iommu(session: CardSession) -> CardSession:
    """The small card in a machine that has all it takes."""
    session.root.path("/sys/kernel/iommu_groups/1").mkdir(parents=True)
    directory = session.root.path("/lib/modules/6.1.0-18-cloud-amd64")
    for name in ("vfio-pci", "vfio_iommu_type1", "igbvf"):
        with (directory / "modules.dep").open("a") as file:
            file.write(f"kernel/{name}.ko:\n")
    with (directory / "modules.alias").open("a") as file:
        file.write("alias pci:v00008086d000010CAsv*sd*bc*sc*i* igbvf\n")
    return session


def test_dpdk_gets_functions_with_a_device_each(tmp_path: Path, net: RecordingNet, reacting: type[CardRoot]) -> None:
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    before = tree_of(session.root)
    driver = Sriov()
    devices = driver.devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)
    assert devices == [[Path("/dev/vfio/vfio"), Path(f"/dev/vfio/6{index}")] for index in range(2)]
    assert net.calls == [
        ("up", "enp1s0"),
        ("configure", "enp1s0", 0, vf.Settings("02:00:00:00:01:01", False, True, None)),
        ("configure", "enp1s0", 1, vf.Settings("02:00:00:00:01:02", False, True, None)),
    ]
    assert [words for words in session.spawner.ran if len(words) == 2] == [
        ["modprobe", "vfio_iommu_type1"],
        ["modprobe", "vfio-pci"],
    ]
    written = reacting.written
    assert written[:2] == [("0000:01:00.0/sriov_drivers_autoprobe", "0"), ("0000:01:00.0/sriov_numvfs", "2")]
    assert [each for each in written if each[0].endswith("driver_override")] == [
        ("0000:01:10.0/driver_override", "vfio-pci"),
        ("0000:01:10.1/driver_override", "vfio-pci"),
    ]
    places = attachments_of(tmp_path)
    endpoints = driver.start(session, spec_of(tmp_path, port="vfio"), places)
    assert endpoints == [Pci(ADDRESSES[0], "0000:01:10.0"), Pci(ADDRESSES[1], "0000:01:10.1")]
    facts = driver.facts()
    assert facts.version == "version of enp1s0"
    assert facts.config["vfs"] == ["0000:01:10.0", "0000:01:10.1"]
    assert facts.config["settings"] == {
        "mac": "of each endpoint",
        "spoofcheck": False,
        "trust": True,
        "link_state": None,
    }
    driver.check()
    session.journal._entries = {
        number: entry for number, entry in session.journal._entries.items() if entry.kind != "modules"
    }
    driver.stop()
    driver.stop()
    assert tree_of(session.root) == before
    assert session.pending() == []


def test_the_functions_driver_that_comes_by_itself_is_unloaded_too(
    tmp_path: Path, net: RecordingNet, reacting: type[CardRoot]
) -> None:
    """udev loads it as soon as there are functions; it is in the journal before them, so that it goes after them."""
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    session.depends["igbvf"] = ["igbvf"]
    Sriov().devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)
    noted = [(entry.kind, entry.data) for entry in session.journal._entries.values()]
    (place,) = [at for at, each in enumerate(noted) if each == ("modules", {"names": ["igbvf"]})]
    assert place < [kind for kind, _ in noted].index("vf_count")
    assert ["modprobe", "igbvf"] not in session.spawner.ran


def test_sockets_get_interfaces_in_their_nodes(tmp_path: Path, net: RecordingNet, reacting: type[CardRoot]) -> None:
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    session.depends = {}
    before = tree_of(session.root)
    driver = Sriov()
    spec = spec_of(tmp_path, port="vf", mtu=9198)
    assert driver.devices(session, spec, ADDRESSES) == [[], []]
    assert ("/sys/class/net/enp1s0/mtu", "9198") in reacting.written
    net.calls.clear()
    places = attachments_of(tmp_path)
    endpoints = driver.start(session, spec, places)
    assert endpoints == [Veth(address, "eth0", None, 9198) for address in ADDRESSES]
    first, second = "/proc/1000/ns/net", "/proc/1001/ns/net"
    assert net.calls == [
        ("move", "enp1s0v0", first, "eth0", "02:00:00:00:01:01", False),
        ("mtu", 9198, first),
        ("set up", first),
        ("move", "enp1s0v1", second, "eth0", "02:00:00:00:01:02", False),
        ("mtu", 9198, second),
        ("set up", second),
        ("await up", first),
        ("await up", second),
    ]
    counters = driver.counters() or []
    assert [(port.index, port.rx_packets, port.tx_packets) for port in counters] == [(0, 2, 1), (1, 2, 1)]
    driver.stop()
    assert tree_of(session.root) == before


def test_functions_that_somebody_made_are_used_and_given_back(
    tmp_path: Path, net: RecordingNet, reacting: type[CardRoot]
) -> None:
    session: Any = on(tmp_path, "pci/x710", "ens1f0")
    session.root.path("/sys/bus/pci/devices/0000:3b:02.1/net/ens1f0v1/mtu").unlink()
    before = tree_of(session.root)
    driver = Sriov()
    devices = driver.devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)
    assert [paths[1] for paths in devices] == [Path("/dev/vfio/51"), Path("/dev/vfio/53")]
    assert [call[:3] for call in net.calls[1:]] == [
        ("remember", "0000:3b:02.1", "ens1f0v1"),
        ("configure", "ens1f0", 1),
        ("configure", "ens1f0", 3),
    ]
    assert not [each for each in reacting.written if "sriov_numvfs" in each[0]]
    assert driver.facts().config["created"] is False
    net.counts = {1: {"rx_packets": 5, "tx_packets": 6, "rx_dropped": 0, "tx_dropped": 0}, 3: {}}
    counters = driver.counters() or []
    assert [(port.index, port.rx_packets) for port in counters] == [(0, 6), (1, None)]
    net.counts = {}
    assert driver.counters() is None
    session.journal._entries = {
        number: entry for number, entry in session.journal._entries.items() if entry.kind != "modules"
    }
    driver.stop()
    assert tree_of(session.root) == before


def test_functions_that_share_a_group_are_refused(
    tmp_path: Path, net: RecordingNet, reacting: type[CardRoot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reacting, "shared_group", True)
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    with pytest.raises(ProvisionError, match=r"shares 60 with 0000:01:10.1: .*\(ACS\)"):
        Sriov().devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)


@pytest.mark.parametrize("can_enable", [True, False])
def test_a_card_without_a_carrier_enables_its_links_or_is_refused(
    tmp_path: Path, net: RecordingNet, can_enable: bool
) -> None:
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    net.carrier, net.can_enable = False, can_enable
    driver = Sriov()
    if can_enable:
        driver.devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)
        assert net.calls[1][3].link_state == vf.LINK_ENABLED
        return
    with pytest.raises(ProvisionError, match=r"PF enp1s0 has no carrier, .* connect it .* or name another PF"):
        driver.devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)


def test_a_function_that_goes_away_is_noticed(tmp_path: Path, net: RecordingNet) -> None:
    session: Any = with_iommu(on(tmp_path, "pci/igb", "enp1s0"))
    driver = Sriov()
    driver.devices(session, spec_of(tmp_path, port="vfio"), ADDRESSES)
    driver.check()
    session.root.write("/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs", "0")
    with pytest.raises(ProvisionError, match=r"VF 0000:01:10.0 of enp1s0 is gone or has no driver, where this session"):
        driver.check()


class Attributes(dict[str, Any]):
    """A netlink message: its fields, and attributes by name."""

    def get_attr(self, name: str) -> Any:
        return self.get(name)


def test_settings_of_a_function_as_netlink_reports_them() -> None:
    info = Attributes(
        IFLA_VF_MAC={"vf": 3, "mac": "02:00:00:00:00:01"},
        IFLA_VF_SPOOFCHK={"vf": 3, "spoofchk": 1},
        IFLA_VF_TRUST={"vf": 3, "trust": 0xFFFFFFFF},
        IFLA_VF_LINK_STATE={"vf": 3, "link_state": 0},
        IFLA_VF_STATS=Attributes(IFLA_VF_STATS_RX_PACKETS=7),
    )
    index, settings, counts = vf._parse(info)
    assert (index, settings) == (3, vf.Settings("02:00:00:00:00:01", True, None, 0))
    assert counts == {"rx_packets": 7, "tx_packets": 0, "rx_dropped": 0, "tx_dropped": 0}
