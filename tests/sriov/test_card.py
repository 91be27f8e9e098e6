# SPDX-License-Identifier: BSD-3-Clause
"""A card that others use, that is too small, that loses its session, and what a container may touch of it."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.config.topology import loads
from pytest_icbench.driver.switch.sriov import Sriov, is_idle
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import RUN_DIR, HostSession, SessionOptions
from pytest_icbench.host.journal import UndoKind
from pytest_icbench.host.recover import recover
from pytest_icbench.host.resource import pci
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Pci
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import output, tidy_snapshot
from tests.host.rig_tools import built

PF = os.environ["PF"]
DEVICE = Path("/sys/class/net", PF, "device")
ROOT = Root()


@pytest.fixture
def before() -> Iterator[snapshot.Snapshot]:
    """Fails a test after which the guest is not as it was."""
    found = tidy_snapshot()
    yield found
    assert snapshot.left_since(found, timeout_s=20) == []


def make_vfs(count: int) -> list[str]:
    """VFs as an administrator makes them: with the kernel's driver, which udev loads. Returns their interfaces."""
    subprocess.run(["modprobe", "igbvf"], check=True)
    (DEVICE / "sriov_numvfs").write_text(str(count))
    found = []
    for function in pci.virtual_functions(ROOT, str(DEVICE.resolve().name)):
        found.append(pci.await_interface(ROOT, function))
    return found


@pytest.fixture
def two_vfs(before: snapshot.Snapshot) -> Iterator[list[str]]:
    try:
        yield make_vfs(2)
    finally:
        (DEVICE / "sriov_numvfs").write_text("0")
        subprocess.run(["rmmod", "igbvf"], check=True)


def probe(pf: str | None, pairs: int) -> None:
    session = HostSession.probing(SessionOptions(pf=pf))
    driver = Sriov()
    driver.probe(session, None)
    driver.probe_pairs(session, pairs)


def refusal(pf: str | None, pairs: int = 1) -> str:
    with pytest.raises(Unsupported) as reason:
        probe(pf, pairs)
    return str(reason.value)


def test_a_card_that_is_not_there_is_named_with_those_that_are() -> None:
    offered = rf"this host has {PF} \({DEVICE.resolve().name}, up to 7 VFs\)"
    assert re.search(rf"no network interface or PCI function eth9: {offered}", refusal("eth9"))
    assert re.search(rf"name its PF by --icbench-pf, {offered}", refusal(None))
    assert re.search(rf"lo has|function lo: {offered}", refusal("lo"))


def test_four_pairs_are_too_many() -> None:
    assert f"8 ports take 8 VFs, and PF {PF} has only 7: lower --icbench-pairs" in refusal(PF, pairs=4)


def test_a_card_with_an_address_is_left_alone(before: snapshot.Snapshot) -> None:
    subprocess.run(["ip", "address", "add", "192.0.2.1/24", "dev", PF], check=True)
    try:
        assert f"PF {PF} is in use: it has the host's address 192.0.2.1" in refusal(PF)
    finally:
        subprocess.run(["ip", "address", "del", "192.0.2.1/24", "dev", PF], check=True)


def test_functions_in_use_are_left_alone(two_vfs: list[str]) -> None:
    subprocess.run(["ip", "link", "set", two_vfs[0], "up"], check=True)
    assert f"of the 2 that exist on PF {PF} only 1 are unused" in refusal(PF)
    subprocess.run(["ip", "link", "set", two_vfs[0], "down"], check=True)


def test_a_function_is_free_until_a_process_has_its_group(two_vfs: list[str]) -> None:
    with HostSession(UNDO_KINDS, SessionOptions(pf=PF)) as session, built(session, Case("sriov")) as rig:
        function = rig.switch_facts.config["vfs"][0]
        assert is_idle(ROOT, function)
        with Path("/dev/vfio", str(pci.iommu_group(ROOT, function))).open("rb+", buffering=0):
            assert not is_idle(ROOT, function)


@pytest.mark.parametrize("port", [None, "vf"])
def test_functions_that_somebody_made_are_as_they_were(two_vfs: list[str], port: str | None) -> None:
    for number, name in enumerate(two_vfs):
        subprocess.run(["ip", "link", "set", PF, "vf", str(number), "mac", f"02:11:22:33:44:5{number}"], check=True)
        address = f"02:11:22:33:44:5{number}"
        subprocess.run(["ip", "link", "set", name, "address", address], check=False, capture_output=True)
    found = snapshot.take()
    listed = subprocess.run(["ip", "link", "show", PF], check=True, capture_output=True, text=True).stdout
    with HostSession(UNDO_KINDS, SessionOptions(pf=PF)) as session, built(session, Case("sriov", port=port)) as rig:
        assert rig.switch_facts.config["created"] is False
        assert len(rig.switch_facts.config["vfs"]) == 2
        rig.check()
    assert snapshot.left_since(found, timeout_s=20) == []
    assert subprocess.run(["ip", "link", "show", PF], check=True, capture_output=True, text=True).stdout == listed


TOPOLOGY = """
[[container]]
name = "c0"
application = "send"
peer = "c1"
ip = "10.0.3.10"
netmask = 24
mac = "02:00:00:00:00:10"
pci = "{pci}"

[[container]]
name = "c1"
application = "recv"
peer = "c0"
ip = "10.0.3.11"
netmask = 24
mac = "02:00:00:00:00:11"
vf = "{vf}"
device = "{device}"
"""


def test_a_topology_says_which_function_is_whose(two_vfs: list[str]) -> None:
    """By PCI address and by interface, in another order than the card's own; a device that is not its is refused."""
    one, other = pci.virtual_functions(ROOT, DEVICE.resolve().name)
    device = f"/dev/vfio/{pci.iommu_group(ROOT, one)}"
    endpoint_specs = loads(TOPOLOGY.format(pci=other, vf=two_vfs[0], device=device), "lab.toml").endpoint_specs(1)
    wrong = loads(TOPOLOGY.format(pci=other, vf=two_vfs[0], device="/dev/vfio/4711"), "lab.toml").endpoint_specs(1)
    with HostSession(UNDO_KINDS, SessionOptions(pf=PF)) as session:
        with built(session, Case("sriov"), endpoint_specs=endpoint_specs) as rig:
            assert rig.switch_facts.config["vfs"] == [other, one]
            assert [getattr(endpoint, "pci", None) for endpoint in rig.endpoints] == [other, one]
        refusal = f"VF {one} has the device {device}, and the topology says /dev/vfio/4711"
        with pytest.raises(ProvisionError, match=refusal), built(session, Case("sriov"), endpoint_specs=wrong):
            pass


def test_a_container_has_its_own_function_and_no_other(before: snapshot.Snapshot) -> None:
    with HostSession(UNDO_KINDS, SessionOptions(pf=PF)) as session, built(session, Case("sriov")) as rig:
        groups = [pci.iommu_group(ROOT, endpoint.pci) for endpoint in rig.endpoints if isinstance(endpoint, Pci)]
        assert len(set(groups)) == 2
        nodes = list(rig.host._nodes.values())
        for node, own in zip(nodes, groups, strict=True):
            assert output(session, node, "ls /dev/vfio").split() == sorted([str(own), "vfio"])
            assert output(session, node, f"exec 3<>/dev/vfio/{own} && echo opened") == "opened"
        # The other's device, smuggled in by a directory that both see.
        number = Path("/dev/vfio", str(groups[1])).stat().st_rdev
        smuggled = session.dir / rig.host._name / "s/device"
        os.mknod(smuggled, stat.S_IFCHR | 0o666, number)
        assert "not permitted" in output(session, nodes[0], f"exec 3<>{smuggled} && echo opened")


def test_a_function_taken_away_is_noticed(before: snapshot.Snapshot) -> None:
    with HostSession(UNDO_KINDS, SessionOptions(pf=PF)) as session, built(session, Case("sriov")) as rig:
        rig.check()
        function = rig.switch_facts.config["vfs"][0]
        (Path("/sys/bus/pci/devices", function, "driver/unbind")).write_text(function)
        with pytest.raises(ProvisionError, match=f"VF {function} of {PF} is gone or has no driver"):
            rig.check()


HARNESS = """
import sys, time
sys.path.append(sys.argv[3])  # last: the installed package is the one tested
from pytest_icbench.model.case import Case
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.rig_tools import built
session = HostSession(UNDO_KINDS, SessionOptions(pf=sys.argv[1]))
with built(session, Case("sriov", port=sys.argv[2] or None)):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("port", ["", "vf"])
def test_a_killed_session_is_undone_by_recovery(before: snapshot.Snapshot, port: str) -> None:
    program = [sys.executable, "-P", "-c", HARNESS, PF, port, str(Path(__file__).parents[2])]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert (DEVICE / "sriov_numvfs").read_text().strip() == "2"
        process.send_signal(signal.SIGKILL)
    done = recover(RUN_DIR, UNDO_KINDS)
    assert done.failures == []
    assert (DEVICE / "sriov_numvfs").read_text().strip() == "0"


def test_a_number_of_functions_that_is_not_restored_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the lane's comparison is for: a driver that forgets its undo would fail it."""
    found = tidy_snapshot()
    monkeypatch.setitem(UNDO_KINDS, "vf_count", UndoKind(lambda **data: None))
    with HostSession(UNDO_KINDS, SessionOptions(pf=PF)) as session, built(session, Case("sriov")):
        pass
    left = snapshot.left_since(found, timeout_s=0)
    (DEVICE / "sriov_numvfs").write_text("0")
    subprocess.run(["rmmod", "igbvf"], check=False, capture_output=True)  # came with them, as udev would have it
    assert any("sriov_numvfs 0" in line and "became" in line and "sriov_numvfs 2" in line for line in left), left
    assert snapshot.left_since(found, timeout_s=20) == []
