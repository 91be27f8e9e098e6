# SPDX-License-Identifier: BSD-3-Clause
"""What is asked for a container that runs already, and what is said if it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_icbench.driver.node import attached_node
from pytest_icbench.driver.node.attached_node import Target, find_target
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.endpoint import AttachTarget


def program(path: Path, does: str) -> None:
    """A program that does as a shell says."""
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory of programs. No namespace is entered: that takes root."""
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setattr(attached_node, "_target", lambda name, netns, pid: Target(name, netns, 7, pid))
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "asked", "answers"),
    [
        ("docker", "docker", "running {}"),
        ("podman", "podman", "running {}"),
        ("lxc", "lxc-info", "{}"),
    ],
)
def test_the_first_process_is_asked_for(path: Path, kind: str, asked: str, answers: str) -> None:
    asked_for = path / "asked"
    program(path / asked, f'echo "$@" >{asked_for}; echo {answers.format(os.getpid())}')
    assert find_target(AttachTarget(f"{kind}:web1")) == Target(
        f"{kind}:web1", f"/proc/{os.getpid()}/ns/net", 7, os.getpid()
    )
    assert "web1" in asked_for.read_text().split()


@pytest.mark.parametrize(
    ("container", "asked", "does", "sentence"),
    [
        ("docker:web1", "docker", "echo exited 0", "docker:web1 is exited, not running: docker start web1"),
        ("podman:web1", "podman", "echo created 0", "podman:web1 is created, not running: podman start web1"),
        ("docker:web1", "docker", "echo", "docker:web1 is in an unknown state, not running: docker start web1"),
        (
            "docker:web1",
            "docker",
            "echo Error: No such container: web1 >&2; exit 1",
            "docker:web1 cannot be attached to: Error: No such container: web1",
        ),
        (
            "docker:web1",
            "docker",
            "echo permission denied while trying to connect to the docker API >&2; exit 1",
            "docker:web1 cannot be attached to: permission denied while trying",
        ),
        (
            "lxc:web1",
            "lxc-info",
            "echo -1",
            "lxc:web1 is not running: lxc-start web1, or name its process (pid:NUMBER)",
        ),
        ("lxc:web1", "lxc-info", "exit 1", "lxc:web1 cannot be attached to: exit code 1"),
        ("lxc:web1", "none", "", "lxc:web1 cannot be found: lxc-info is not installed; name its process (pid:NUMBER)"),
        ("podman:web1", "none", "", "podman:web1 cannot be found: podman is not installed"),
        ("podman:web1", "podman", "echo running 4194305", "podman:web1: there is no process 4194305: it has ended"),
        ("pid:4194305", "none", "", "pid:4194305: there is no process 4194305"),
        ("netns:/run/netns/none", "none", "", "netns:/run/netns/none: there is no such file: `ip netns list` has"),
    ],
)
def test_what_is_not_there_is_one_sentence(path: Path, container: str, asked: str, does: str, sentence: str) -> None:
    program(path / asked, does)
    with pytest.raises(ProvisionError) as caught:
        find_target(AttachTarget(container))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="enters a network namespace: run pytest as root")
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/etc/passwd"])
def test_what_is_no_namespace_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "ns"
    os.mkfifo(file) if kind == "fifo" else file.symlink_to(kind)
    with pytest.raises(
        ProvisionError, match=rf"^netns:{file}: network namespace {file} cannot be entered: Invalid argument$"
    ):
        find_target(AttachTarget(f"netns:{file}"))
