# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of recorded hosts: where groups are made, what liblxc calls its settings, who may use which CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.node import cgroups
from pytest_icbench.driver.node.cgroups import SessionGroup, end_groups, undo_subtree_control
from pytest_icbench.driver.node.container import Device, HostAccess, Skeleton
from pytest_icbench.driver.node.lxc import container_config
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.root import Root
from pytest_icbench.model.cpu_allocation import CpuAllocation

# Debian 12 under systemd.
V2 = {
    "proc/self/mounts": """\
sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0
bpf /sys/fs/bpf bpf rw,nosuid,nodev,noexec,relatime,mode=700 0 0
""",
    "proc/1/cgroup": "0::/init.scope\n",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc\n",
    "sys/fs/cgroup/icbabc123/node/cpuset.cpus.effective": "2-3\n",
}
# Debian 9 or a systemd told to use the hybrid layout.
HYBRID = {
    "proc/self/mounts": """\
tmpfs /sys/fs/cgroup tmpfs ro,nosuid,nodev,noexec,mode=755 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,nosuid,nodev,noexec,relatime,xattr,name=systemd 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,nodev,noexec,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/devices cgroup rw,nosuid,nodev,noexec,relatime,devices 0 0
cgroup /sys/fs/cgroup/freezer cgroup rw,nosuid,nodev,noexec,relatime,freezer 0 0
""",
    "proc/1/cgroup": """\
5:freezer:/
4:cpu,cpuacct:/
3:devices:/
2:cpuset:/
1:name=systemd:/init.scope
0::/init.scope
""",
    "sys/fs/cgroup/unified/cgroup.controllers": "hugetlb misc\n",
    "sys/fs/cgroup/cpuset/icbabc123/node/cpuset.effective_cpus": "0,2-3\n",
}
# Pid 1 sits in a group of its own: liblxc makes groups below that.
NESTED = {
    "proc/self/mounts": """\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0
cgroup /mnt/elsewhere cgroup rw,relatime,cpuset 0 0
""",
    "proc/1/cgroup": "2:cpuacct:/\n1:cpu:/machine/guest\n",
}


def host(tmp_path: Path, files: Mapping[str, str]) -> Root:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Root(tmp_path)


def test_v2_has_one_hierarchy_with_everything(tmp_path: Path) -> None:
    layout = Layout.read(host(tmp_path, V2))
    assert layout.unified
    cpuset = layout.holding("cpuset")
    assert cpuset is not None
    assert cpuset.path("icbabc123/node") == "/sys/fs/cgroup/icbabc123/node"
    assert layout.freezing() is cpuset is layout.holding("cpu")


def test_v2_beside_v1_has_none_of_its_controllers(tmp_path: Path) -> None:
    layout = Layout.read(host(tmp_path, HYBRID))
    assert not layout.unified
    assert len(layout.hierarchies) == 6
    for name, mount in {
        "cpuset": "cpuset",
        "freezer": "freezer",
        "cpu": "cpu,cpuacct",
        "cpuacct": "cpu,cpuacct",
    }.items():
        hierarchy = layout.holding(name)
        assert hierarchy is not None
        assert hierarchy.path("g") == f"/sys/fs/cgroup/{mount}/g"
    freezing = layout.freezing()
    assert freezing is not None
    assert freezing.mount == "/sys/fs/cgroup/freezer"
    assert layout.holding("memory") is None


#: A privileged container of Docker: of each hierarchy of v1 its own group is mounted.
CONTAINER = {
    "proc/self/mounts": """\
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
""",
    "proc/self/mountinfo": """\
60 59 0:40 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755
61 60 0:41 /docker/0a1b /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids
62 60 0:42 /docker/0a1b /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
""",
    "proc/1/cgroup": "2:pids:/docker/0a1b\n1:cpu,cpuacct:/docker/0a1b\n",
    "proc/7/cgroup": "2:pids:/docker/0a1b/icbx/node\n1:cpu,cpuacct:/docker/0a1b\n",
    "proc/8/cgroup": "2:pids:/docker/0a1bc\n1:cpu,cpuacct:/\n",
}


def test_in_a_container_groups_are_made_below_what_is_mounted_of_them(tmp_path: Path) -> None:
    root = host(tmp_path, CONTAINER)
    layout = Layout.read(root)
    assert [hierarchy.path("g") for hierarchy in layout.hierarchies] == [
        "/sys/fs/cgroup/pids/g",
        "/sys/fs/cgroup/cpu,cpuacct/g",
    ]
    assert [path for _, path in layout.groups_of(root, 7)] == ["/icbx/node", "/"]
    assert layout.groups_of(root, 8) == ()


def test_groups_are_made_below_that_of_pid_1(tmp_path: Path) -> None:
    layout = Layout.read(host(tmp_path, NESTED))
    cpu = layout.holding("cpu")
    assert cpu is not None
    assert cpu.path("icbabc123") == "/sys/fs/cgroup/cpu/machine/guest/icbabc123"


@pytest.mark.parametrize(
    ("files", "more", "top"),
    [
        (V2, (), True),
        (V2, ("sys/fs/cgroup/cgroup.type",), False),
        (HYBRID, ("sys/fs/cgroup/cpu,cpuacct/release_agent",), True),
        (HYBRID, (), False),
        (NESTED, ("sys/fs/cgroup/cpu/release_agent",), False),
        (CONTAINER, (), False),
    ],
    ids=["v2", "v2's namespace", "v1", "v1's namespace", "pid 1 below it", "container"],
)
def test_groups_at_the_top_of_the_host_are_not_those_of_a_container(
    tmp_path: Path, files: Mapping[str, str], more: Sequence[str], top: bool
) -> None:
    root = host(tmp_path, {**files, **dict.fromkeys(more, "")})
    found = Layout.read(root).holding("cpu")
    assert found is not None
    assert found.is_at_host_top(root) is top


@pytest.mark.parametrize(
    ("files", "lines", "groups"),
    [
        (V2, "0::/system.slice/docker-1.scope\n", {"": "/system.slice/docker-1.scope"}),
        (
            HYBRID,
            "4:cpu,cpuacct:/icbx\n2:cpuset:/icbx/libpod-1\n1:name=systemd:/s\n0::/u\n",
            {"/cpu,cpuacct": "/icbx", "/cpuset": "/icbx/libpod-1", "/systemd": "/s", "/unified": "/u"},
        ),
        (HYBRID, "", {}),
    ],
    ids=["v2", "hybrid", "ended"],
)
def test_the_groups_that_an_engine_chose_are_read_of_the_process(
    tmp_path: Path, files: Mapping[str, str], lines: str, groups: dict[str, str]
) -> None:
    root = host(tmp_path, {**files, "proc/7/cgroup": lines})
    found = Layout.read(root).groups_of(root, 7)
    assert {hierarchy.mount.removeprefix("/sys/fs/cgroup"): path for hierarchy, path in found} == groups


def test_a_node_is_paused_and_ended_in_the_group_that_an_engine_chose(tmp_path: Path) -> None:
    group = session_group(host(tmp_path, V2))
    group.place("node", "system.slice/docker-1.scope")
    assert group.member("node") == "system.slice/docker-1.scope"
    group.forget("node")
    assert group.member("node") == f"{group.name}/node"


def test_what_is_mounted_elsewhere_is_not_ours(tmp_path: Path) -> None:
    assert Layout.read(host(tmp_path, NESTED)).holding("cpuset") is None


def test_a_host_without_cgroups_has_none(tmp_path: Path) -> None:
    layout = Layout.read(Root(tmp_path))
    assert layout.hierarchies == ()
    assert not layout.unified
    assert layout.freezing() is None


def test_granted_cpus_are_read_from_either_version(tmp_path: Path) -> None:
    for name, files, expected in (("v2", V2, (2, 3)), ("hybrid", HYBRID, (0, 2, 3))):
        root = host(tmp_path / name, files)
        assert Layout.read(root).effective_cpus(root, "icbabc123/node") == expected
    root = host(tmp_path / "nested", NESTED)
    assert Layout.read(root).effective_cpus(root, "icbabc123/node") is None


def settings(root: Root, *, hugepages: bool = False) -> dict[str, list[str]]:
    sockets, devices = [Path("/run/icbench/abc123/a b")], [Path("/dev/x")]
    spec = NodeSpec("icbabc123-a", cpus=(2, 3, 5), sockets=sockets, devices=devices, hugepages=hugepages)
    found: dict[str, list[str]] = {}
    for key, value in container_config(
        spec,
        HostAccess(
            Skeleton(Path("/run/icbench/abc123/rootfs"), {path: path for path in (Path("/usr"), Path("/opt/w"))}),
            [Device(Path("/dev/x"), "c", 10, 196)],
            () if hugepages else [2048, 1048576],
        ),
        group=session_group(root),
        session="abc123",
        log=Path("/run/icbench/abc123/lxc/a.log"),
    ):
        found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize(("files", "prefix"), [(V2, "lxc.cgroup2"), (HYBRID, "lxc.cgroup")], ids=["v2", "hybrid"])
def test_liblxc_is_reported_in_the_words_of_the_hosts_version(
    tmp_path: Path, files: Mapping[str, str], prefix: str
) -> None:
    found = settings(host(tmp_path, files))
    assert found[f"{prefix}.cpuset.cpus"] == ["2-3,5"]
    assert found[f"{prefix}.devices.deny"] == ["a"]
    assert found[f"{prefix}.devices.allow"][-1] == "c 10:196 rw"
    other = {"lxc.cgroup": "lxc.cgroup2.", "lxc.cgroup2": "lxc.cgroup."}[prefix]
    assert not [key for key in found if key.startswith(other) and not key.startswith("lxc.cgroup.dir.")]


BOUNDED = {
    "v2": {**V2, "sys/fs/cgroup/cgroup.subtree_control": "cpu\n"},
    "v1": {
        "proc/self/mounts": "".join(
            f"cgroup /sys/fs/cgroup/{name} cgroup rw,{name} 0 0\n" for name in ("memory", "pids")
        ),
        "proc/1/cgroup": "2:pids:/\n1:memory:/\n",
    },
    "memory is in use": {**V2, "sys/fs/cgroup/cgroup.subtree_control/x": ""},
    "without": HYBRID,
}


@pytest.mark.parametrize(
    ("name", "memory", "pids"),
    [
        ("v2", "lxc.cgroup2.memory.max", "lxc.cgroup2.pids.max"),
        ("v1", "lxc.cgroup.memory.limit_in_bytes", "lxc.cgroup.pids.max"),
        ("memory is in use", None, None),
        ("without", None, None),
    ],
)
def test_a_node_is_bounded_by_the_controllers_that_its_host_has(
    tmp_path: Path, name: str, memory: str | None, pids: str | None
) -> None:
    found = settings(host(tmp_path, BOUNDED[name]))
    bounds = {key: value for key, value in found.items() if ".memory." in key or ".pids." in key}
    assert bounds == {key: [value] for key, value in ((memory, str(512 << 20)), (pids, "99")) if key}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "v2",
            {
                "proc/self/cgroup": "0::/ci/job\n",
                "sys/fs/cgroup/ci/memory.max": "1048576\n",
                "sys/fs/cgroup/ci/pids.max": "max\n",
                "sys/fs/cgroup/ci/job/memory.max": "max\n",
                "sys/fs/cgroup/ci/job/pids.max": "12\n",
            },
        ),
        (
            "v1",
            {
                "proc/self/cgroup": "2:pids:/ci/job\n1:memory:/ci\n",
                "sys/fs/cgroup/memory/ci/memory.limit_in_bytes": "1048576\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/pids/ci/pids.max": "12\n",
            },
        ),
    ],
)
def test_no_node_may_take_more_than_the_groups_of_pytest(tmp_path: Path, name: str, files: Mapping[str, str]) -> None:
    bounds = session_group(host(tmp_path, {**BOUNDED[name], **files})).bounds
    assert [value for _, value in bounds.values()] == ["1048576", "12"]


def test_a_node_without_a_runtime_has_its_bounds_in_its_groups(tmp_path: Path) -> None:
    group = session_group(host(tmp_path, BOUNDED["v1"]))
    group.create("node")
    group.join("node", 7)
    own = [tmp_path / "sys/fs/cgroup" / name / "icbabc123/node" for name in ("memory", "pids")]
    assert [
        (path / name).read_text() for path, name in zip(own, ("memory.limit_in_bytes", "pids.max"), strict=True)
    ] == [
        str(512 << 20),
        "99",
    ]
    assert [(path / "cgroup.procs").read_text() for path in own] == ["7", "7"]


def test_a_container_and_its_monitor_stay_below_the_sessions_group(tmp_path: Path) -> None:
    found = settings(host(tmp_path, V2))
    assert found["lxc.cgroup.dir.container"] == ["icbabc123/icbabc123-a"]
    assert found["lxc.cgroup.dir.monitor"] == ["icbabc123/icbabc123-a.monitor"]
    assert found["lxc.cgroup.dir.monitor.pivot"] == ["icbabc123"]


def test_huge_pages_are_barred_where_the_kernel_can(tmp_path: Path) -> None:
    v2 = host(tmp_path / "v2", V2)
    found = settings(v2)
    assert found["lxc.cgroup2.hugetlb.2MB.max"] == found["lxc.cgroup2.hugetlb.1GB.max"] == ["0"]
    hybrid = host(tmp_path / "hybrid", HYBRID)
    assert not [key for have in (settings(v2, hugepages=True), settings(hybrid)) for key in have if "hugetlb" in key]


def test_mounts_are_read_only_but_for_the_sockets_and_devices(tmp_path: Path) -> None:
    entries = settings(host(tmp_path, V2))["lxc.mount.entry"]
    assert "/usr usr none bind,ro,create=dir 0 0" in entries
    assert "/opt/w opt/w none bind,ro,create=dir 0 0" in entries
    assert "/run/icbench/abc123/a\\040b run/icbench/abc123/a\\040b none bind,rw,create=dir 0 0" in entries
    assert "/dev/x dev/x none bind,rw,create=file 0 0" in entries
    # The tmpfs come first, or they would hide what is mounted below them.
    assert [entry.split()[1] for entry in entries][:2] == ["run", "tmp"]
    assert len(entries) == 6


def session_group(root: Root) -> SessionGroup:
    journal = SimpleNamespace(record=lambda *_, **__: 0)
    session: Any = SimpleNamespace(root=root, id="abc123", journal=journal, node_memory_mib=512, node_pids=99)
    return SessionGroup(session)


def test_a_cpu_allocation_is_a_weight_and_a_quota_in_v1(tmp_path: Path) -> None:
    group = session_group(host(tmp_path, NESTED))
    group.allocate_cpu("fn", CpuAllocation(cpu_share=70, cpu_quota=25))
    own = tmp_path / "sys/fs/cgroup/cpu/machine/guest/icbabc123/fn"
    assert (own / "cpu.shares").read_text() == "7000"
    assert [(own / name).read_text() for name in ("cpu.cfs_period_us", "cpu.cfs_quota_us")] == ["10000", "2500"]
    group.share_cpu(1234, "fn")
    group.share_cpu(1235, "other")
    assert (own / "cgroup.procs").read_text() == "1234"
    assert (own.parent / "cgroup.procs").read_text() == "1235"


def test_a_cpu_allocation_is_a_weight_and_a_maximum_in_v2_where_no_node_then_shares_a_group(tmp_path: Path) -> None:
    group = session_group(host(tmp_path, V2))
    group.allocate_cpu("fn", CpuAllocation(cpu_share=30, cpu_quota=50))
    parent = tmp_path / "sys/fs/cgroup/icbabc123"
    assert [(parent / "fn" / name).read_text() for name in ("cpu.weight", "cpu.max")] == ["30", "5000 10000"]
    assert [(place / "cgroup.subtree_control").read_text() for place in (parent, parent.parent)] == ["+cpu"] * 2
    (parent / "cgroup.subtree_control").write_text("cpu")  # as the kernel shows it
    group.unify_cpu()
    assert (parent / "cgroup.subtree_control").read_text() == "cpu"


@pytest.mark.parametrize("cap", [1, 3, 7, 9, 10, 33, 100])
@pytest.mark.parametrize("tree", [NESTED, V2], ids=["v1", "v2"])
def test_the_kernel_takes_the_quota_of_every_cap(tmp_path: Path, tree: Mapping[str, str], cap: int) -> None:
    """It refuses quotas and periods below a millisecond, and periods above a second."""
    session_group(host(tmp_path, tree)).allocate_cpu("fn", CpuAllocation(cpu_quota=cap))
    (own,) = (path for path in tmp_path.rglob("fn") if path.is_dir() and any(path.glob("cpu.*")))
    if tree is V2:
        quota, period = map(int, (own / "cpu.max").read_text().split())
    else:
        quota, period = (int((own / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    assert 1000 <= quota <= period
    assert 1000 <= period <= 1_000_000
    assert quota / period == pytest.approx(cap / 100, rel=0.01)


@pytest.mark.parametrize("end", [SessionGroup.forget, SessionGroup.remove])
def test_a_cpu_allocation_ends_with_its_node(tmp_path: Path, end: Callable[[SessionGroup, str], None]) -> None:
    group = session_group(host(tmp_path, V2))
    group.allocate_cpu("fn", CpuAllocation())
    end(group, "fn")
    control = tmp_path / "sys/fs/cgroup/icbabc123/cgroup.subtree_control"
    control.write_text("cpu")  # as the kernel shows it
    group.unify_cpu()
    assert control.read_text() == "-cpu"


def test_a_cpu_allocation_takes_the_cpu_controller(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="no cgroup controller cpu, which CPU shares and quotas need"):
        session_group(Root(tmp_path)).allocate_cpu("fn", CpuAllocation(cpu_quota=50))


def test_controllers_enabled_for_the_session_are_taken_back(tmp_path: Path) -> None:
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("memory cpuset pids")
    undo_subtree_control(str(control), ("memory", "pids"))
    assert control.read_text() == "-cpuset"
    undo_subtree_control(str(tmp_path / "gone" / "cgroup.subtree_control"), ())


@pytest.mark.parametrize(("late", "ends"), [(0, True), (2, True), (3, False)])
def test_who_joins_a_group_late_is_killed_too(monkeypatch: pytest.MonkeyPatch, late: int, ends: bool) -> None:
    """Of a runtime that was killed while it forked: each time one is in the group again."""
    did: list[str] = []

    def remove(*_: Any) -> None:
        did.append("remove")
        if did.count("kill") <= late:
            raise ProvisionError("a process in it does not end")

    monkeypatch.setattr(cgroups, "kill_groups", lambda *_: did.append("kill"))
    monkeypatch.setattr(cgroups, "remove_groups", remove)
    if ends:
        end_groups(Layout(()), Root(), ["x"])
    else:
        with pytest.raises(ProvisionError, match="does not end"):
            end_groups(Layout(()), Root(), ["x"])
    assert did == ["kill", "remove"] * min(late + 1, 3)
