# SPDX-License-Identifier: BSD-3-Clause
"""The bundle of an OCI container, and the choice of its runtime."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.node import oci
from pytest_icbench.driver.node.container import Device, HostAccess, Skeleton, format_page_size
from pytest_icbench.driver.node.oci import OciNode, bundle_config, find_runtime, read_version
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cgroup_layout import Hierarchy, Layout
from pytest_icbench.host.process import Spawner

V1 = Layout((Hierarchy("/sys/fs/cgroup/cpuset", "", frozenset({"cpuset"}), False),))
V2 = Layout((Hierarchy("/sys/fs/cgroup", "", frozenset({"cpuset", "cpu"}), True),))


BOUNDS = {"memory": ("max", "1048576"), "pids": ("max", "99")}


def config(spec: NodeSpec, **more: Any) -> dict[str, Any]:
    skeleton = Skeleton(Path("/run/x/rootfs"), {Path("/usr"): Path("/usr")})
    access = HostAccess(skeleton, **more)
    return bundle_config(spec, access, command=["/w", "pause"], env={"A": "b"}, cgroup="/icbx/n", bounds=BOUNDS)


def test_a_container_has_its_cpus_its_group_and_a_root_that_it_cannot_write() -> None:
    data = config(NodeSpec("icbx-n", [3, 1, 2]))
    assert data["linux"]["resources"]["cpu"] == {"cpus": "1-3"}
    assert data["linux"]["cgroupsPath"] == "/icbx/n"
    assert [data["linux"]["resources"][name] for name in BOUNDS] == [{"limit": 1048576}, {"limit": 99}]
    assert data["root"] == {"path": "/run/x/rootfs", "readonly": True}
    assert (data["hostname"], data["process"]["args"], data["process"]["env"]) == ("icbx-n", ["/w", "pause"], ["A=b"])
    assert "CAP_NET_RAW" in data["process"]["capabilities"]["bounding"]
    assert {space["type"] for space in data["linux"]["namespaces"]} >= {"pid", "network", "mount"}


def test_sockets_are_bound_for_writing_and_programs_for_reading() -> None:
    mounts = {mount["destination"]: mount for mount in config(NodeSpec("n", [0], sockets=[Path("/run/s")]))["mounts"]}
    assert mounts["/run/s"]["options"] == ["bind", "rw"]
    assert mounts["/usr"]["options"] == ["bind", "ro"]
    assert list(mounts).index("/run") < list(mounts).index("/run/s"), "else /run would hide it"


def test_all_devices_are_barred_but_those_given() -> None:
    device = Path("/dev/full")
    data = config(NodeSpec("n", [0], devices=[device]), devices=[Device.read(device)])
    rules = data["linux"]["resources"]["devices"]
    assert rules[0] == {"allow": False, "access": "rwm"}
    assert rules[-1] == {"allow": True, "type": "c", "major": 1, "minor": 7, "access": "rw"}
    assert data["linux"]["devices"][0]["path"] == "/dev/full"


def test_barred_huge_pages_have_a_limit_of_0() -> None:
    def limits(*barred_kib: int) -> list[Any]:
        data = config(NodeSpec("n", [0]), barred_pages_kib=barred_kib)
        limited: list[Any] = data["linux"]["resources"]["hugepageLimits"]
        return limited

    assert limits(2048) == [{"pageSize": "2MB", "limit": 0}]
    assert limits() == []
    assert [format_page_size(kib) for kib in (64, 2048, 1 << 20)] == ["64KB", "2MB", "1GB"]


def test_an_unknown_capability_is_refused() -> None:
    with pytest.raises(ValueError, match="capability fly is not known"):
        config(NodeSpec("n", [0], capabilities=["fly"]))


def having(*names: str) -> Callable[[str], str | None]:
    return lambda name: f"/usr/bin/{name}" if name in names else None


def test_crun_is_preferred_where_it_knows_the_cgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", having("runc", "crun"))
    assert (find_runtime(V1), find_runtime(V2)) == ("runc", "crun")


def test_a_missing_runtime_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", having("crun"))
    with pytest.raises(Unsupported, match=r"crun refuses cgroup v1 and v2 together.*apt install runc"):
        find_runtime(V1)
    monkeypatch.setattr(shutil, "which", having())
    with pytest.raises(Unsupported, match="need runc or crun: apt install runc"):
        find_runtime(V2)


def test_a_call_of_a_runtime_that_hangs_is_ended_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oci, "TIMEOUT_S", 0.3)
    program, pid = tmp_path / "runc", tmp_path / "oci/pid"
    program.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 60\n")
    program.chmod(0o755)
    session: Any = SimpleNamespace(dir=tmp_path, logs=tmp_path, spawner=Spawner("abc"))
    node = OciNode(session, NodeSpec("icbx-n", [0]))
    node.path.mkdir()
    node._runtime = str(program)
    with pytest.raises(ProvisionError, match=r"^container icbx-n: .*runc start has not ended within 0\.3 s and was"):
        node._call("start", "icbx-n")
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_asking_crun_for_its_version_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes the directory of its containers to print it, /run/crun unless it is given another one."""
    default, program = tmp_path / "run" / "crun", tmp_path / "crun"
    script = f'root={default}\n[ "$1" = --root ] && root=$2\nmkdir -p $root\necho crun version 1.14\n'
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert read_version("crun") == "crun 1.14"
    assert not default.exists()
