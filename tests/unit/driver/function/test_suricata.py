# SPDX-License-Identifier: BSD-3-Clause
"""Suricata's rules, its proof, and what users read where it cannot be had."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.protocol import Ends
from pytest_icbench.driver.function.suricata import (
    Program,
    SuricataFunction,
    af_packet_settings,
    configuration,
    dpdk_settings,
    rule_file,
)
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.workload.eal import eal_arguments
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.endpoint import Address, VhostUser

ENDS = Ends.make(1, Address.of(1, "a"), Address.of(1, "b"))


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def session(path: Path | None, said: str = "") -> Any:
    run = lambda argv, **_: CompletedProcess(argv, 0, said, "")  # noqa: E731
    binaries = {} if path is None else {"suricata": path}
    return SimpleNamespace(binaries=binaries, spawner=SimpleNamespace(run=run))


@pytest.mark.parametrize(
    ("function", "known"),
    [
        ("inspect", (1, 100)),
        ("inspect1000+deny30", (1000, 30)),
        ("inspect100+deny1", (100, 1)),
        ("inspect+deny99", None),
        ("inspect99+deny1", None),
        ("inspect10000", (10_000, 100)),
        ("inspect10001", None),
        ("inspect0", None),
        ("inspect5+deny101", None),
        ("deny5", None),
        ("inspect+route", None),
    ],
)
def test_a_function_is_rules_and_the_share_that_denies(function: str, known: tuple[int, int] | None) -> None:
    parts = SuricataFunction.parse(function)
    assert (parts and (parts.rules, parts.deny_percent)) == known
    assert SuricataFunction.has(function) is (known is not None)


def test_each_rule_finds_the_payload_of_one_frame_of_the_proof_and_no_other() -> None:
    parts = SuricataFunction.parse("inspect300+deny30")
    assert parts is not None
    texts = [line.split('content:"')[1].split('"')[0].encode() for line in rule_file(parts).splitlines()]
    drops = [line.startswith("drop ") for line in rule_file(parts).splitlines()]
    assert (len(texts), sum(drops)) == (300, 90)
    for stage in SuricataFunction.proof("inspect300+deny30", ENDS):
        assert len(stage) == 20 + 101
        for probe in stage:
            found = [place for place, text in enumerate(texts) if text in probe.frame]
            assert len(found) <= 1
            assert (probe.expected is None) == any(drops[place] for place in found)
            assert probe.expected in (None, probe.frame)


def test_the_configuration_copies_between_both_interfaces() -> None:
    head, _, body = configuration(af_packet_settings("eth0", "eth1")).partition("---\n")
    found = json.loads(body)["af-packet"]
    assert head == "%YAML 1.1\n"
    assert [(one["interface"], one["copy-iface"], one["copy-mode"]) for one in found] == [
        ("eth0", "eth1", "ips"),
        ("eth1", "eth0", "ips"),
    ]


def test_over_dpdk_each_port_is_copied_to_the_other_with_eal_as_the_workload_has_it() -> None:
    eal = eal_arguments(VhostUser(ENDS.inner, "/run/a"), "dpdk", cpu=3, ring=256, jumbo=False)[:-1]
    made = dpdk_settings(
        eal, ["net_virtio_user0,path=/run/a", "net_virtio_user1,path=/run/b"], 1500, Path("/tree/pmds")
    )
    _, _, body = configuration(made).partition("---\n")
    found = json.loads(body)["dpdk"]
    assert found["eal-params"] == {
        "vdev": ["net_virtio_user0,path=/run/a", "net_virtio_user1,path=/run/b"],
        "lcores": "0@3",
        "in-memory": "",
        "single-file-segments": "",
        "m": "64",
        "no-pci": "",
        "iova-mode": "va",
        "d": "/tree/pmds",
    }
    assert [(one["interface"], one["copy-iface"], one["copy-mode"]) for one in found["interfaces"]] == [
        ("net_virtio_user0", "net_virtio_user1", "ips"),
        ("net_virtio_user1", "net_virtio_user0", "ips"),
    ]


def test_over_ports_in_user_space_it_is_the_same_function() -> None:
    assert registry.component_for("inspect10", "testpmd", "vhost-user") is SuricataFunction
    assert registry.component_for("inspect10", "linux-bridge", "veth") is SuricataFunction


def test_a_tree_of_another_release_runs_by_its_own_loader_and_is_seen_in_the_node(tmp_path: Path) -> None:
    binary = executable(tmp_path / "usr/bin/suricata")
    assert Program.locate(binary).argv == [str(binary)]
    loader = executable(tmp_path / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    program = Program.locate(binary)
    assert program.argv == [str(loader), "--library-path", str(loader.parent), str(binary)]
    assert program.directories == (tmp_path / "usr",)
    assert SuricataFunction.directories(session(binary)) == (tmp_path / "usr",)
    assert Program.locate(Path("/usr/bin/suricata")).directories == (Path("/usr"),)
    assert Program.locate(Path("/usr/bin/suricata")).loader is None
    assert NodeSpec("x", [0]).directories == ()


def test_where_there_is_none_or_an_old_one_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        Unsupported, match=r"suricata is not installed: install Debian 13's .*--icbench-binary suricata="
    ):
        SuricataFunction().probe(session(None), "inspect")
    binary = executable(tmp_path / "suricata")
    with pytest.raises(Unsupported, match=r"is Suricata 6\.0\.10, which is too old: install Debian 13's package"):
        SuricataFunction().probe(session(binary, "This is Suricata version 6.0.10 RELEASE\n"), "inspect")
    with pytest.raises(Unsupported, match=r"is not suricata.*: name one with --icbench-binary"):
        SuricataFunction().probe(session(binary, "hello\n"), "inspect")
    facts = SuricataFunction().probe(session(binary, "This is Suricata version 7.0.10 RELEASE\n"), "inspect")
    assert facts.version == "Suricata 7.0.10"
