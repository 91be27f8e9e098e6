# SPDX-License-Identifier: BSD-3-Clause
"""Hosts of xdist's workers: asked by ssh before anything is done, in one sentence each; ssh itself is a script here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.plugin import xdist_workers as gateways
from pytest_icbench.testbed.remote.ssh_command import OPTIONS
from pytest_icbench.version import package_version

Ssh = Callable[[str], Path]


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    """Makes an ssh that runs a line of shell; what it was called with is in the file that is returned."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def make(line: str) -> Path:
        (tmp_path / "ssh").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/called\n{line}\n")
        (tmp_path / "ssh").chmod(0o755)
        return tmp_path / "called"

    return make


def spec(**changed: Any) -> Any:
    given = {"id": "gw3", "ssh": "root@lab7", "ssh_config": None, "python": "/opt/python", "via": None, **changed}
    return SimpleNamespace(**given)


def test_nobody_is_asked_and_the_same_package_is_right(ssh: Ssh) -> None:
    called = ssh(f"echo Welcome; echo icbench-package {package_version()}")
    worker = spec(ssh_config="/etc/mine")
    gateways.check_hosts([worker])
    assert worker.ssh.split() == [*OPTIONS, "root@lab7"]  # execnet makes this of it
    words = called.read_text().splitlines()
    assert words[:2] == ["-F", "/etc/mine"]
    assert words[2:-1] == [*OPTIONS, "root@lab7"]
    assert words[-1].startswith("/opt/python -c ")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("echo Host key verification failed. >&2; exit 255", "no connection to its host: its host key is not"),
        ("echo 'root@lab7: Permission denied (publickey).' >&2; exit 255", "it accepts none of the keys"),
        ("echo 'ssh: Could not resolve hostname lab7: No' >&2; exit 255", "its name cannot be resolved"),
        ("exit 127", "it has no such Python: name one there with //python=PATH in its --tx"),
        ("echo ModuleNotFoundError: none >&2; exit 1", r"has no pytest-icbench \(ModuleNotFoundError: none\)"),
        ("echo icbench-package 0.0.9", r"the remote host has pytest-icbench 0\.0\.9, this one "),
    ],
)  # fmt: skip
def test_everything_else_is_a_sentence_that_names_the_worker(ssh: Ssh, line: str, sentence: str) -> None:
    ssh(line)
    with pytest.raises(UsageError, match=f"^worker gw3: .*{sentence}") as raised:
        gateways.check_hosts([spec(id="gw2", via="gw9"), spec()])
    assert "\n" not in str(raised.value)
    assert "lab7" not in str(raised.value)


def test_other_ways_to_a_host_are_left_alone(ssh: Ssh) -> None:
    called = ssh("exit 255")
    gateways.check_hosts([spec(ssh=None), spec(via="gate")])
    assert not called.exists()


def test_a_host_that_does_not_answer(ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh("exec sleep 60")
    monkeypatch.setattr(gateways, "CONNECT_S", 0.05)
    with pytest.raises(UsageError, match=r"^worker gw3: no connection to its host: ssh has not connected within"):
        gateways.check_hosts([spec()])


def test_a_host_that_ssh_gets_to_again_is_waited_for(ssh: Ssh, tmp_path: Path) -> None:
    ssh(f"[ -e {tmp_path}/up ] || {{ : >{tmp_path}/up; exit 255; }}; echo icbench-package {package_version()}")
    assert gateways.explain_unreachable(spec()) is None
    assert (tmp_path / "up").exists()


def test_a_host_that_stays_away_has_a_sentence(ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh("echo Host key verification failed. >&2; exit 255")
    monkeypatch.setattr(gateways, "PATIENCE_S", 0.0)
    assert str(gateways.explain_unreachable(spec())).startswith("worker gw3: no connection to its host: its host key")
    assert gateways.explain_unreachable(spec(ssh=None)) is None
    assert gateways.explain_unreachable(spec(via="gate")) is None


def test_what_leads_to_benchmarks(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    (plain / "deep/.venv").mkdir(parents=True)
    (plain / "test_x.py").write_text("def test_x(): pass")
    (plain / "deep/.venv/x.py").write_text("icbench")
    assert not gateways.lead_to_benchmarks([str(plain), f"{plain}/test_x.py::test_x", "nowhere.py"])
    (plain / "deep/test_y.py").write_text("@pytest.mark.icbench()")
    assert gateways.lead_to_benchmarks([f"{plain}/deep/test_y.py::test_y[a::b]"])
    assert gateways.lead_to_benchmarks([str(plain)])
    assert gateways.lead_to_benchmarks(["pytest_icbench.conformance"])
