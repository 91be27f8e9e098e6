# SPDX-License-Identifier: BSD-3-Clause
"""Cases over two hosts: frames pass by the cable, results have both hosts' facts, and no name, key or listener."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pytest_icbench.cli.main import main
from tests.host.node_tools import CONTAINER_KINDS, require
from tests.host.remote_runs import Run, clean_on_both, files_with_names, listening
from tests.second_host import THERE_NIC, SecondHost, other, unsupported_reason

__all__ = ["other"]  # a fixture

pytestmark = [pytest.mark.slow, pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason()))]

SCENARIO = """
import pytest

QUICK = dict(switch="linux-bridge", burst=1, repeats=1, warmup=0.05, duration=0.5, drain=0.2, max_duration=1)

@pytest.mark.icbench(**QUICK, api=["udp-mmsg", "raw"], rate="5k")
def test_rate(icbench):
    icbench.gate(icbench.throughput())

@pytest.mark.icbench(**QUICK, api="raw", rate="1k", dimension="latency")
def test_round_trips(icbench):
    icbench.gate(icbench.latency())
"""

ANY_SWITCH = """
import pytest

@pytest.mark.icbench(switch="all")
def test_rate(icbench):
    icbench.gate(icbench.throughput())
"""


@pytest.mark.parametrize("node", CONTAINER_KINDS)
def test_frames_pass_by_the_cable(other: SecondHost, tmp_path: Path, node: str) -> None:
    require(node)
    before_there, during = other_listens(other), set[str]()
    with clean_on_both(other):
        run = Run(tmp_path, other, f"--icbench-node={node}", "--icbench-remote-python=python3-not-there", scenario="")
        assert run.wait() in (4, 5)  # nothing collected: nobody is connected to
        run = Run(tmp_path, other, f"--icbench-node={node}", scenario=SCENARIO)
        while run.process.poll() is None:
            during |= listening(run.process.pid)
            time.sleep(0.02)
        assert run.wait() == 0, run.output
    results = run.results()
    assert [each["case"].endswith("-remote") for each in results] == [True] * 3, run.output
    for each in results:
        assert each["figures"]["received"] > 0
        assert each["figures"]["received"] == each["figures"]["sent"] - each["figures"]["lost"]
        assert each["identity"]["machine"] != each["identity"]["remote"]["machine"]
        assert each["treatment"]["remote"]["switch"]["version"]
        assert each["treatment"]["away"] == [1]
    assert results[-1]["figures"]["rtt_samples"] > 0
    assert results[-1]["ratio_to_reference"]["value"] > 0
    assert results[-1]["figures"]["floor_samples"] > 0
    assert [each["reference_evidence"] for each in results] == [None] * 3
    assert during | listening(run.process.pid) == set()
    assert other_listens(other) == before_there
    assert files_with_names(tmp_path, [other]) == []


def other_listens(other: SecondHost) -> str:
    return other.run("ss", "-Hlntu").stdout


def test_names_are_there_for_who_asks(other: SecondHost, tmp_path: Path) -> None:
    with clean_on_both(other):
        run = Run(tmp_path, other, "--icbench-host-names", "-k", "test_rate and raw", scenario=SCENARIO)
        assert run.wait() == 0, run.output
    (result,) = run.results()
    assert result["conditions"]["remote"]["host"] == f"root@{other.address}"


def test_what_is_missing_is_said_before_anything_is_done(other: SecondHost, tmp_path: Path) -> None:
    with clean_on_both(other):
        run = Run(tmp_path, other, "--icbench-plan", f"--icbench-uplink=icbnone {other.address}={THERE_NIC}")
        assert run.wait() == 0, run.output
        assert "there is no network interface icbnone" in run.output
        run = Run(tmp_path, other, "--icbench-plan", f"--icbench-uplink={other.here_nic} {other.address}=icbnone")
        assert run.wait() == 0, run.output
        assert "on the remote host: --icbench-uplink: there is no network interface icbnone" in run.output
        for mine, theirs in ((other.management_nic, THERE_NIC), (other.here_nic, "mgmt0")):
            run = Run(tmp_path, other, "--icbench-plan", f"--icbench-uplink={mine} {other.address}={theirs}")
            assert run.wait() == 0, run.output
            needed = mine if theirs == THERE_NIC else theirs
            assert f"{needed} has the address of this very ssh connection: name a NIC" in run.output
        run = Run(tmp_path, other, "--icbench-switch=snabb", scenario=ANY_SWITCH)
        assert run.wait() == 4, run.output
        assert "snabb cannot reach a second host" in run.output


def test_the_doctor_looks_at_the_other_side(
    other: SecondHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", other.environment["PATH"])
    with clean_on_both(other):
        code = main(["doctor", "--remote", f"root@{other.address}", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert code in (0, 1)
    topics = [finding["topic"] for finding in findings]
    assert topics[:2] == ["connection", "versions"]
    assert {"root", "LXC", "linux-bridge"} <= set(topics)
    assert main(["doctor", "--remote", "root@bad host"]) == 2
    other_key = other.read("known_hosts")
    other.write("known_hosts", "")
    try:
        assert main(["doctor", "--remote", f"root@{other.address}"]) == 2
    finally:
        other.write("known_hosts", other_key)
    said = capsys.readouterr().err.splitlines()
    assert "is no [USER@]HOST" in said[0]
    assert said[1].endswith("its host key is not known here: connect once by hand (ssh) and compare the fingerprint")
