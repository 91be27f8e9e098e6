# SPDX-License-Identifier: BSD-3-Clause
"""The parts of ``make test-sriov`` that need no guest: its initramfs, and what a test run says of it."""

from __future__ import annotations

import importlib.util
import lzma
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import pytest_report_header

ROOT = Path(__file__).parents[3]
DEPENDENCIES = """kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet.ko.xz:
kernel/fs/netfs/netfs.ko.xz:
kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz
kernel/drivers/virtio/virtio-pci.ko.xz:
"""


@pytest.fixture(scope="module")
def initramfs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("initramfs", ROOT / "scripts/sriov/initramfs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(image: bytes) -> dict[str, tuple[int, bytes]]:
    """Modes and contents of a newc archive, by name, by the format's own description."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert image[at : at + 6] == b"070701"
        fields = [int(image[at + 6 + 8 * index : at + 14 + 8 * index], 16) for index in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = image[at + 110 : at + 110 + name_size - 1].decode()
        start = (at + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, image[start : start + size])
        at = (start + size + 3) // 4 * 4


def test_an_archive_can_be_read_again(initramfs: ModuleType) -> None:
    archive = initramfs.Archive()
    archive.add("dir", stat.S_IFDIR | 0o755)
    archive.add("dir/file", stat.S_IFREG | 0o644, b"12345")
    archive.add("x", stat.S_IFREG | 0o755, b"")
    assert entries(archive.image()) == {
        "dir": (stat.S_IFDIR | 0o755, b""),
        "dir/file": (stat.S_IFREG | 0o644, b"12345"),
        "x": (stat.S_IFREG | 0o755, b""),
    }


def test_modules_come_after_what_they_need_and_once(initramfs: ModuleType) -> None:
    order = [initramfs.module_name(path) for path in initramfs.load_order(DEPENDENCIES, ("9pnet_virtio", "9p", "gone"))]
    assert sorted(order) == ["9p", "9pnet", "9pnet_virtio", "netfs"]
    assert order.index("9pnet") < order.index("9pnet_virtio")
    assert order.index("9p") == 3
    assert initramfs.load_order(DEPENDENCIES, ("virtio_pci",)) == ["kernel/drivers/virtio/virtio-pci.ko.xz"]


def test_compressed_modules_are_packed_plain(initramfs: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.ko.xz").write_bytes(lzma.compress(b"module"))
    (tmp_path / "a.ko").write_bytes(b"module")
    assert initramfs.plain(tmp_path / "a.ko.xz") == initramfs.plain(tmp_path / "a.ko") == b"module"


@pytest.mark.parametrize(
    ("stamp", "said"),
    [
        (None, "test-sriov: has not run here; sriov is proved by `make test-sriov`"),
        ("PASS|2026-11-21T13:00:00Z|97|abc1234", "test-sriov: PASS at 2026-11-21T13:00:00Z on abc1234, in 97 s"),
        ("FAIL|2026-11-21T13:00:00Z|97|abc1234+changes", "test-sriov: FAIL at 2026-11-21T13:00:00Z on abc1234+changes"),
        ("damaged", "test-sriov: has not run here"),
    ],
)
def test_a_test_run_says_when_the_lane_last_ran(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stamp: str | None, said: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if stamp is not None:
        (tmp_path / "icbench").mkdir()
        (tmp_path / "icbench/sriov.stamp").write_text(stamp + "\n")
    sriov, paths, switches = pytest_report_header()
    assert sriov.startswith(said)
    assert paths == "test-paths: has not run here; netkit, ipvlan and ovs-kernel are proved by `make test-paths`"
    assert switches == "test-switches: has not run here; vpp and snabb are proved by `make test-switches`"
    (tmp_path / "icbench").mkdir(exist_ok=True)
    (tmp_path / "icbench/paths.stamp").write_text("PASS|2026-11-21T13:00:00Z|97|abc1234\n")
    assert pytest_report_header()[1] == "test-paths: PASS at 2026-11-21T13:00:00Z on abc1234, in 97 s"


@pytest.mark.parametrize(
    "name", ["test-sriov.sh", "test-switches.sh", "sriov/guest.sh", "sriov/init", "setup/debian.sh"]
)
def test_scripts_are_shell(name: str) -> None:
    subprocess.run(["bash", "-n", ROOT / "scripts" / name], check=True)


def test_outside_the_guest_its_tests_are_not_collected() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "tests/sriov"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 5, said.stdout
