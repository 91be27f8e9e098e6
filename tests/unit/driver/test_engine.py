# SPDX-License-Identifier: BSD-3-Clause
"""Podman and Docker: what they are asked for, and what is said where they cannot be had. The programs are scripts."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.node import docker
from pytest_icbench.driver.node.container import Device
from pytest_icbench.driver.node.engine_node import Engine, container_options
from pytest_icbench.driver.node.podman import PodmanNode
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.root import Root


def options(spec: NodeSpec, **more: Any) -> list[str]:
    bounds = {"memory": ("max", "1048576"), "pids": ("max", "99")}
    given = {"env": {"A": "b"}, "binds": {Path("/usr"): Path("/usr")}, "devices": (), "bounds": bounds, **more}
    return list(container_options(spec, **given))


def values(words: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]


def test_a_container_has_its_cpus_no_network_and_no_capability_of_its_own() -> None:
    words = options(NodeSpec("icbx-n", [3, 1, 2], hostname="web"))
    assert (values(words, "--name"), values(words, "--hostname")) == (["icbx-n"], ["web"])
    assert (values(words, "--cpuset-cpus"), values(words, "--network")) == (["1-3"], ["none"])
    assert (values(words, "--cap-drop"), values(words, "--cap-add")) == (["all"], [])
    assert values(words, "--env") == ["A=b"]
    assert "--read-only" in words
    assert [values(words, name) for name in ("--memory", "--pids-limit")] == [["1048576"], ["99"]]
    assert "--memory" not in options(NodeSpec("icbx-n", [0]), bounds={})


def test_sockets_are_bound_for_writing_programs_for_reading_and_devices_given() -> None:
    device = Path("/dev/full")
    words = options(NodeSpec("n", [0], sockets=[Path("/run/s")], devices=[device]), devices=[Device.read(device)])
    assert values(words, "--volume") == ["/usr:/usr:ro", "/run/s:/run/s:rw"]
    assert values(words, "--device") == ["/dev/full:/dev/full:rw"]


def program(directory: Path, name: str, script: str) -> str:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_complaint_is_one_line_without_the_options_of_the_call(tmp_path: Path) -> None:
    engine = Engine(
        program(tmp_path, "podman", "echo noise >&2; echo 'Error: no space' >&2; exit 125"), ("--root", "/x")
    )
    with pytest.raises(ProvisionError, match=r"podman create failed: no space$"):
        engine.call("create", "--name", "n")


def test_a_call_that_hangs_is_ended_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_icbench.driver.node.engine_node.TIMEOUT_S", 0.3)
    engine = Engine(program(tmp_path, "docker", "exec sleep 60"), ("--host", "x"))
    with pytest.raises(ProvisionError, match=r"docker start` has not ended within 0\.3 s and was killed$"):
        engine.call("start", "n")


def test_without_podman_or_a_runtime_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(Unsupported, match=r"^Podman is not installed: apt install podman, or use --icbench-node oci"):
        PodmanNode.probe(HostSession.probing())
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/podman" if name == "podman" else None)
    with pytest.raises(Unsupported, match=r"need runc or crun: apt install runc"):
        PodmanNode.probe(HostSession.probing())


#: What a daemon that can be used says of itself.
INFO = {
    "ServerVersion": "28.2.2",
    "SecurityOptions": ["name=seccomp"],
    "OperatingSystem": "Debian",
    "CgroupDriver": "systemd",
}
SOCKET = "unix:///var/run/docker.sock"


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, endpoint: str = SOCKET, info: str) -> None:
    script = f'case "$*" in context*) echo "{endpoint}";; *) cat {tmp_path}/info;; esac'
    program(tmp_path, "docker", script)
    (tmp_path / "info").write_text(info)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_a_daemon_on_this_host_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, info=json.dumps(INFO))
    assert docker.query_daemon() == (SOCKET, INFO)


@pytest.mark.parametrize(
    ("endpoint", "info", "said"),
    [
        ("tcp://10.0.0.1:2376", INFO, r"daemon is at tcp://10\.0\.0\.1:2376, and has to be on this host"),
        (SOCKET, {"ServerErrors": ["refused"]}, r"does not answer at unix:///var/run/docker\.sock: start it"),
        (SOCKET, INFO | {"SecurityOptions": ["name=rootless"]}, "is rootless"),
        (SOCKET, INFO | {"OperatingSystem": "Docker Desktop"}, "in a virtual machine"),
        (SOCKET, "podman's text", "Docker cannot be used: podman's text; use --icbench-node podman"),
    ],
)
def test_a_daemon_that_cannot_be_used_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, info: Any, said: str
) -> None:
    text = info if isinstance(info, str) else json.dumps(info)
    installed(tmp_path, monkeypatch, endpoint=endpoint, info=text)
    with pytest.raises(Unsupported, match=said) as refused:
        docker.query_daemon()
    assert "use --icbench-node podman, oci or lxc" in str(refused.value)


def test_without_docker_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(Unsupported, match=r"^Docker is not installed: apt install docker\.io, or use"):
        docker.query_daemon()


def counting(tmp_path: Path, script: str) -> Engine:
    return Engine(program(tmp_path, "docker", f"echo . >> {tmp_path}/calls\n{script}"))


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text().split())


NONE = "echo 'Error: No such container: n' >&2"


def test_what_a_killed_session_asked_for_is_awaited_and_removed(tmp_path: Path) -> None:
    """The daemon may finish a request of a client that is gone."""
    engine = counting(tmp_path, f"[ $(wc -l < {tmp_path}/calls) -ge 3 ] && exit 0; {NONE}; exit 1")
    docker._remove(engine, "rm", "n", pending_s=30)
    assert calls(tmp_path) == 3


def test_what_is_gone_is_not_awaited_by_the_session_that_made_it(tmp_path: Path) -> None:
    docker._remove(counting(tmp_path, f"{NONE}; exit 1"), "rm", "n")
    assert calls(tmp_path) == 1


def test_a_removal_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = counting(tmp_path, "echo 'Error: removal is already in progress' >&2; exit 1")
    monkeypatch.setattr(docker, "_REMOVAL_S", 0.2)
    with pytest.raises(ProvisionError, match="n: docker rm failed: removal is already in progress"):
        docker._remove(engine, "rm", "n")
    assert calls(tmp_path) > 1


def test_a_daemon_that_is_gone_is_named_at_once(tmp_path: Path) -> None:
    engine = counting(tmp_path, "echo 'Cannot connect at x. Is the docker daemon running?' >&2; exit 1")
    with pytest.raises(ProvisionError, match="Is the docker daemon running"):
        docker._remove(engine, "rm", "n")
    assert calls(tmp_path) == 1


def test_an_init_is_awaited_until_it_executes_its_program() -> None:
    """Engines return when the runtime has let the init go on, which is before that."""
    node = docker.DockerNode.__new__(docker.DockerNode)
    session: Any = SimpleNamespace(id="abc", root=Root())
    node.session = session
    program = ["/bin/sh", "-c", "sleep 0.3; ICBENCH_SESSION=abc exec sleep 60"]
    with subprocess.Popen(program) as process:
        assert node._runs_here(process.pid)
        process.kill()
    with subprocess.Popen(["/bin/sh", "-c", "sleep 0.1"]) as process:
        assert not node._runs_here(process.pid)
    assert not node._runs_here(0)
