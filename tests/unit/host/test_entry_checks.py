# SPDX-License-Identifier: BSD-3-Clause
"""What a journal names is held to what its session may have written, before anything is undone."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.host.journal import Journal, UndoKind
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.hostile import mutated_data, mutated_text, refusals

SESSION = "abc123"
PCI = "0000:3b:00.1"
NIC_STATE: dict[str, Any] = {
    "name": "eth7",
    "mac": "02:00:00:00:00:01",
    "mtu": 1500,
    "txqueuelen": 1000,
    "flags": 1,
    "addresses": [{"family": 2, "address": "192.0.2.1", "prefixlen": 24}],
    "routes": [],
    "lro": None,
    "sysctls": {"ipv6/conf/eth7/accept_ra": "1"},
    "channels": [0, 0, 0, 4],
}
NIC: dict[str, Any] = {"state": NIC_STATE, "netns": f"/run/netns/icb{SESSION}-r0n0", "moved": "eth0"}
CPU = "/sys/devices/system/cpu"
RUN = "RUN_DIR"  # stands for the directory of all sessions


def kernel_file(path: str) -> tuple[str, dict[str, Any]]:
    """Returns the entry of a kernel file."""
    return "file", {"path": path, "text": "1"}


#: Entries as sessions write them.
RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("processes", {"session": SESSION}),
    kernel_file(f"{CPU}/cpu12/cpufreq/scaling_governor"),
    kernel_file(f"{CPU}/cpu12/cpufreq/energy_performance_preference"),
    kernel_file(f"{CPU}/intel_pstate/no_turbo"),
    kernel_file(f"/sys/bus/pci/devices/{PCI}/sriov_drivers_autoprobe"),
    kernel_file("/proc/sys/net/netfilter/nf_conntrack_max"),
    kernel_file("/sys/class/net/enp1s0f0.7/mtu"),
    kernel_file("/proc/sys/net/ipv6/conf/enp1s0f0/disable_ipv6"),
    kernel_file("/proc/sys/net/ipv6/conf/wan+lan:1/disable_ipv6"),
    ("hugepages", {"base": "/", "node": 0, "size_kib": 2048, "before": 0, "taken": 4}),
    ("netns", {"name": f"icb{SESSION}-r0n0-client.a"}),
    ("link", {"name": f"ic{SESSION}br0", "netns": None}),
    ("mount", {"path": f"{RUN}/{SESSION}/mnt"}),
    ("tree", {"path": f"{RUN}/{SESSION}/a/b"}),
    (
        "container",
        {"lxcpath": f"{RUN}/{SESSION}/lxc/0123456789abcdef", "name": f"icb{SESSION}-n0", "group": f"icb{SESSION}"},
    ),
    ("oci", {"name": f"icb{SESSION}-n0", "group": f"icb{SESSION}"}),
    ("podman", {"name": f"icb{SESSION}-n0"}),
    ("docker", {"name": f"icb{SESSION}-n0", "host": "unix:///var/run/docker.sock"}),
    ("docker_image", {"name": f"icb{SESSION}", "host": "unix:///var/run/docker.sock"}),
    ("cgroup", {"name": f"icb{SESSION}"}),
    ("harness", {"name": f"icb{SESSION}-harness", "back": "/user.slice/session-1.scope"}),
    ("subtree_control", {"path": "/sys/fs/cgroup/cgroup.subtree_control", "enabled": ["cpu"]}),
    ("resctrl", {"name": f"icb{SESSION}-path", "base": "/"}),
    ("vf", {"pf": "enp1s0f0", "index": 0, "settings": {"mac": None, "spoofcheck": True}}),
    ("vf_interface", {"pci": PCI, "name": "eth7", "mac": "02:00:00:00:00:01", "mtu": 1500}),
    ("link_down", {"name": "enp1s0f0"}),
    ("modules", {"names": ["vfio", "vfio_pci"]}),
    ("pci_driver", {"base": "/", "pci": PCI, "driver": "vfio-pci", "override": ""}),
    ("pci_driver", {"base": "/", "pci": PCI, "driver": None, "override": ""}),
    ("vf_count", {"base": "/", "pci": PCI, "count": 0}),
    ("neighbours", {"netns": "/proc/4711/ns/net", "inode": 7, "interface": "eth0", "strangers": ["10.244.0.7"]}),
    ("neighbours", {"netns": "/run/netns/x", "inode": 7, "interface": "eth0", "strangers": []}),
    ("nic", NIC),
    ("nic", NIC | {"netns": None, "moved": PCI}),
]

#: Keys of entries with values that no session writes.
WRONG: list[tuple[str, str, Any]] = [
    ("processes", "session", "other1"),
    *(
        ("file", "path", path)
        for path in (
            "/etc/passwd",
            "/proc/sys/kernel/core_pattern",
            "/proc/self/root/etc/passwd",
            "/sys/kernel/uevent_helper",
            "/sys/class/net/../mtu",
            "/sys/class/net/x/../../../../etc/mtu",
            f"{CPU}/cpu1/../../../../../etc/boost",
            "",
            "sys\n",
            "sys/class/net/x/mtu",
        )
    ),
    ("hugepages", "base", "/tmp"),
    *(("netns", "name", name) for name in ("../../path", f"icb{SESSION}-/../x", "icbother1-n0", "", "..")),
    *(("link", "name", name) for name in ("eth0", "icother1br0", f"ic{SESSION}/x")),
    *(("link", "netns", path) for path in ("/proc/1/ns/net", f"/run/netns/icb{SESSION}-/../x")),
    *(
        (kind, "path", path)
        for kind in ("mount", "tree")
        for path in ("/", "/etc", RUN, f"{RUN}/{SESSION}/../x/y", f"{RUN}/{SESSION}/..", f"{RUN}/{SESSION}/out/x", "x")
    ),
    *(
        ("container", "lxcpath", path)
        for path in ("lxc", f"{RUN}/{SESSION}/lxc/x", f"{RUN}/other1/lxc", f"{RUN}/{SESSION}/lxc/../..", "/")
    ),
    *(("container", "name", name) for name in ("../x", "n0", f"icb{SESSION}-/x")),
    *(("container", "group", name) for name in ("..", "system.slice")),
    *(("oci", "name", name) for name in ("../x", "n0", f"icb{SESSION}-/x")),
    *(("oci", "group", name) for name in ("..", "system.slice")),
    *((kind, "name", name) for kind in ("podman", "docker") for name in ("../x", "web", "--all", f"icb{SESSION}-/x")),
    *(("docker_image", "name", name) for name in ("debian", "--force", f"icb{SESSION}:1")),
    *((kind, "host", host) for kind in ("docker", "docker_image") for host in ("tcp://10.0.0.1:2375", "--debug", "")),
    *(("harness", "name", name) for name in (f"icb{SESSION}", "system.slice", f"icb{SESSION}-/..")),
    *(("harness", "back", path) for path in ("", "x", "/../../etc", "/a\0b")),
    *(("cgroup", "name", name) for name in ("", "..", "system.slice", f"icb{SESSION}/..")),
    *(
        ("subtree_control", "path", path)
        for path in ("/etc/passwd", "/sys/fs/cgroup/../../x/cgroup.subtree_control", "/sys/fs/cgroup/x")
    ),
    ("vf", "pf", "../../x"),
    ("vf_interface", "pci", "../x"),
    ("vf_interface", "name", "a/b"),
    ("link_down", "name", ".."),
    *(("modules", "names", names) for names in (["vfio", "-r"], ["../x"], ["a b"])),
    ("pci_driver", "base", "/tmp"),
    ("pci_driver", "pci", "../x"),
    ("pci_driver", "driver", "../x"),
    ("vf_count", "pci", ".."),
    *(("neighbours", "netns", path) for path in ("x", "/run/netns/../../etc", "/run/netns/..", "/a\nb", "")),
    ("neighbours", "interface", "../x"),
    *(("neighbours", "strangers", names) for names in (["::1"], ["10.0.0.1/8"], [""])),
    ("nic", "state", NIC_STATE | {"name": "../x"}),
    ("nic", "netns", "/proc/1/ns/net"),
    ("nic", "moved", "../x"),
    ("nic", "state", NIC_STATE | {"sysctls": {"../kernel/core_pattern": "|/tmp/x"}}),
]


def placed(value: Any, run_dir: Path) -> Any:
    """Returns plain data with the directory of sessions in its place."""
    return json.loads(json.dumps(value).replace(RUN, str(run_dir)))


def undo(run_dir: Path, kind: str, data: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Undoes one entry of a session. Returns the kinds whose functions were called, and the failures."""
    (run_dir / SESSION).mkdir()
    (run_dir / SESSION / "out").symlink_to("/etc")
    called: list[str] = []
    journal = Journal(run_dir / SESSION / "journal", {kind: recording(kind, called)})
    journal.record(kind, **placed(data, run_dir))
    return called, journal.undo_all()


def recording(name: str, called: list[str]) -> UndoKind:
    """Returns a kind that takes and checks the same data, and only notes its name."""
    kind = UNDO_KINDS[name]

    @wraps(kind.undo)
    def note(**_: Any) -> None:
        called.append(name)

    return replace(kind, undo=note)


@pytest.mark.parametrize(("kind", "data"), RIGHT, ids=[f"{number}-{entry[0]}" for number, entry in enumerate(RIGHT)])
def test_what_sessions_write_is_undone(tmp_path: Path, kind: str, data: dict[str, Any]) -> None:
    assert undo(tmp_path, kind, data) == ([kind], [])


@pytest.mark.parametrize(
    ("kind", "key", "value"), WRONG, ids=[f"{number}-{entry[0]}-{entry[1]}" for number, entry in enumerate(WRONG)]
)
def test_what_no_session_writes_is_reported_and_left_alone(tmp_path: Path, kind: str, key: str, value: Any) -> None:
    data = next(right for name, right in RIGHT if name == kind) | {key: value}
    called, (failure,) = undo(tmp_path, kind, data)
    assert called == []
    assert f": no session writes such a {key}: " in failure
    assert "\n" not in failure


def test_no_entry_holds_a_command_line(tmp_path: Path) -> None:
    (tmp_path / SESSION).mkdir()
    journal = Journal(tmp_path / SESSION / "journal", UNDO_KINDS)
    journal.record("command", argv=["check_payload", str(tmp_path / "done")])
    (failure,) = journal.undo_all()
    assert "its kind is unknown" in failure
    assert not (tmp_path / "done").exists()


def test_every_kind_is_tried_here() -> None:
    assert {kind for kind, _ in RIGHT} == set(UNDO_KINDS) - {"process"}


def read_hostile(chance: random.Random) -> None:
    """Undoes a journal with one entry that was changed. Raises UsageError if it is refused."""
    with TemporaryDirectory(prefix="hostile-") as top:
        session = Path(top, SESSION)
        session.mkdir()
        kind, data = placed(chance.choice(RIGHT), Path(top))
        entry = {"entry": 1, "kind": kind, "data": data}
        line = (
            json.dumps(mutated_data(entry, chance))
            if chance.random() < 0.7
            else mutated_text(json.dumps(entry), chance)
        )
        text = f'{{"schema":1,"owner":null}}\n{line}\n'
        (session / "journal").write_bytes(text.encode(errors="surrogatepass"))
        journal = Journal(session / "journal", {name: recording(name, []) for name in UNDO_KINDS})
        failures = journal.undo_all()
        journal.close()
    if failures:
        assert all(failure.isprintable() for failure in failures)
        raise UsageError("; ".join(failures))


def test_hostile_entries_get_a_sentence() -> None:
    refused, wrong = refusals(read_hostile, 300)
    assert wrong == {}
    assert refused > 100
