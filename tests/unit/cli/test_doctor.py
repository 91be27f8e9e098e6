# SPDX-License-Identifier: BSD-3-Clause
"""``icbench doctor``: what it is asked, what its exit status says, and switches of other packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.cli import doctor as doctor_command
from pytest_icbench.cli import main
from pytest_icbench.cli.doctor import installed_switches
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host import disturbances
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.testbed import host_examination
from tests import outside_switch

OUTSIDE = "my-macvlan"


@pytest.mark.parametrize(("level", "code"), [(Level.MISSING, 1), (Level.DISTURBS, 0)])
def test_doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: Level, code: int) -> None:
    monkeypatch.setattr(
        doctor_command, "examine", lambda **_: [Finding(level, "thing", "says so", "do this", ("a=b",))]
    )
    assert main.main(["doctor"]) == code
    assert capsys.readouterr().out.startswith(f"{level}:\n  thing  says so -> do this\n")
    assert main.main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "ready": code == 0,
        "kernel_parameters": "a=b",
        "findings": [
            {"level": str(level), "topic": "thing", "text": "says so", "remedy": "do this", "parameters": ["a=b"]}
        ],
    }


def seen(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, dict[str, Level]]:
    """The exit status, and the levels of the switches, of a host on which nothing but ovs lacks."""

    class Facts:
        version = "1.2.3"

    class Driver:
        def __init__(self, name: str) -> None:
            self.name = name

        def probe(self, *_: Any) -> Facts:
            if self.name == "ovs":
                raise Unsupported("ovs is not installed: apt install it")
            return Facts()

        def probe_api(self, *_: Any) -> None:
            pass

    monkeypatch.setattr(host_examination, "make_switch", lambda cls: Driver(cls.name))
    for name in ("_hardware", "_placement", "_cgroups", "_huge_pages", "_counters"):
        monkeypatch.setattr(host_examination, name, lambda _: [])
    for name in ("_nodes", "_workload", "_distance", "_programs"):
        monkeypatch.setattr(host_examination, name, list)
    monkeypatch.setattr(disturbances, "find_disturbances", lambda *_: [])
    found: list[Finding] = []
    original = host_examination.examine

    def examine(**asked: Any) -> list[Finding]:
        found.extend(original(**asked))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(doctor_command, "examine", examine)
        code = main.main(["doctor", *arguments])
    return code, {finding.topic: finding.level for finding in found if finding.topic != "root"}


def test_a_switch_that_nobody_asked_for_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    code, levels = seen(monkeypatch)
    assert code == 0
    assert set(levels) >= set(builtin_switches())
    assert {name for name, level in levels.items() if level is not Level.GOOD} == {"ovs"}
    assert levels["ovs"] is Level.NOTE


@pytest.mark.parametrize(
    ("asked", "code", "levels"),
    [
        ("ovs", 1, {"ovs": Level.MISSING}),
        ("testpmd", 0, {"testpmd": Level.GOOD}),
        ("testpmd,ovs", 1, {"testpmd": Level.GOOD, "ovs": Level.MISSING}),
        ("vpp:xconnect", 0, {"vpp": Level.GOOD}),
    ],
)
def test_switches_that_are_asked_for_decide(
    monkeypatch: pytest.MonkeyPatch, asked: str, code: int, levels: Mapping[str, Level]
) -> None:
    assert seen(monkeypatch, "--switch", asked) == (code, levels)


def test_a_group_is_its_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name for name, cls in builtin_switches().items() if cls.family == "kernel" and not cls.by_name_only}
    code, levels = seen(monkeypatch, "--switch", "kernel")
    assert (code, set(levels)) == (0, expected)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("ovss", "icbench: doctor: --switch: there is no switch 'ovss'; did you mean ovs?"),
        ("ovs:fast", "icbench: doctor: --switch: ovs has no mode 'fast'; its modes: ip4 ip6"),
        ("", "icbench: doctor: --switch: no value given; write names separated by blanks or commas"),
    ],
)
def test_what_cannot_be_asked(asked: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor", "--switch", asked]) == 2
    assert capsys.readouterr().err.splitlines() == [said]


def test_switches_are_asked_of_a_second_host(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def examine_remote(*given: Any) -> list[Finding]:
        calls.append(given)
        return []

    monkeypatch.setattr(doctor_command, "examine_remote", examine_remote)
    assert main.main(["doctor", "--remote", "root@lab2", "--pf", "eth1", "--switch", "ovs"]) == 0
    assert calls == [("root@lab2", None, "eth1", ["ovs"])]


def test_a_switch_of_another_package_is_none_of_a_second_host() -> None:
    (finding,) = host_examination._switches(builtin_switches(), [OUTSIDE], None)
    assert finding.level is Level.MISSING
    assert "comes from another package" in finding.text


def test_a_switch_of_another_package_is_examined(tmp_path: Path) -> None:
    """Installed as pip does it: a module, and the entry point that names it to pytest."""
    name = f"{outside_switch.MODULE}.py"
    (tmp_path / name).write_text(outside_switch.files()[name])
    described = tmp_path / "icbench_macvlan-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: icbench-macvlan\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[pytest11]\nmacvlan = {outside_switch.MODULE}\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest_icbench.cli.main", "doctor", "--json", "--switch", f"veth,{OUTSIDE}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        timeout=120,
    )
    assert done.stderr == ""
    topics = [finding["topic"] for finding in json.loads(done.stdout)["findings"]]
    assert {"veth", OUTSIDE} <= set(topics)
    assert not {"ovs", "testpmd"} & set(topics)


def test_files_of_a_project_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conftest.py").write_text("raise RuntimeError")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--nor-this")
    assert set(builtin_switches()) <= set(installed_switches())


def test_every_program_that_a_scenario_can_use_is_named() -> None:
    found = list(host_examination._programs())
    topics = {finding.topic for finding in found}
    assert topics >= {"app redis", "function suricata", "function l3fwd", "function ip_pipeline", "isolation", "criu"}
    programs = {finding.text.split()[0] for finding in found if finding.topic == "noisy neighbour"}
    assert programs == {"stress-ng", "memtester", "dpdk-testpmd"}
    assert {finding.level for finding in found} <= {Level.GOOD, Level.NOTE}
