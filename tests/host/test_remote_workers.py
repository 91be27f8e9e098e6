# SPDX-License-Identifier: BSD-3-Clause
"""Workers of xdist over ssh: whole cases on other hosts, one at a time on each, in one report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.store.run_directory import FILE_NAME, read_tests
from pytest_icbench.store.run_json import read_info
from tests.host.remote_runs import files_with_names, private_names
from tests.host.test_remote_faults import Fault, no_package, other_version, refused_key, unknown_host_key
from tests.second_host import SecondHost, second_host, under_a_name, unsupported_reason

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason())),
]

SCENARIO = """
import pytest

@pytest.mark.icbench(switch=["linux-bridge", "veth"], api="raw", packet_size=[64, 128, 256], rate="5k", burst=1,
                     repeats=1, warmup=0.05, duration={duration}, drain=0.2, max_duration=1, node=None)
def test_rate(icbench):
    icbench.gate(icbench.throughput())
""".replace(", node=None", "")

#: Below the root directory, which is where the ini file is.
REPORTS = "scenarios/reports"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SecondHost]]:
    directory = tmp_path_factory.mktemp("hosts")
    with second_host(directory, 1) as first, second_host(directory, 2) as second:
        yield [first, second]


def gateway(host: SecondHost, python: str = sys.executable) -> str:
    """As a user writes it; ssh's own configuration would have what belongs to it."""
    return f"ssh=root@{host.address}//ssh_config={host.directory}/ssh_config//python={python}//chdir=/run/work"


def start(
    directory: Path, gateways: list[str], duration: float = 0.2, arguments: tuple[str, ...] = ()
) -> subprocess.Popen[bytes]:
    scenarios = directory / "scenarios"
    scenarios.mkdir()
    (scenarios / "test_x.py").write_text(SCENARIO.format(duration=duration))
    (scenarios / "limits.toml").write_text('["*"]\nmax_duplicated = 0\n')
    (scenarios / "pytest.ini").write_text("[pytest]\nicbench_node = netns\n")
    transport = [word for each in gateways for word in ("--tx", each)]
    argv = [sys.executable, "-m", "pytest", "-rA", "--tb=short", "--dist=load", *transport]
    # xdist knows a path below a directory that it copies only if it is absolute, and takes every word for a path.
    argv += [f"--rsyncdir={scenarios}", str(scenarios / "test_x.py"), *arguments]
    with (directory / "output").open("w") as output:
        return subprocess.Popen(under_a_name(argv), cwd=directory, stdout=output, stderr=output)


def results(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / REPORTS / "latest" / FILE_NAME).read_text().splitlines()]


def test_hosts_share_the_cases_and_write_one_report(two: list[SecondHost], tmp_path: Path) -> None:
    before = [host.snapshot() for host in two]
    # Less than the cases take one after the other, enough for half of them.
    process = start(tmp_path, [gateway(host) for host in two], arguments=("--icbench-budget=9",))
    output = tmp_path / "output"
    assert process.wait(120) == 0, output.read_text()
    assert all(f" on host {number}: rate with " in output.read_text() for number in (1, 2))
    found = results(tmp_path)
    assert len({each["case"] for each in found}) == len(found) == 6
    by_machine: dict[str, list[str]] = {}
    for each in sorted(found, key=lambda each: each["started_at"]):
        by_machine.setdefault(each["identity"]["machine"], []).append(each["switch"])
    # A rig stays with its host: each begins with two cases of one switch. A slow one gives cases away.
    assert sorted(taken[:2] for taken in by_machine.values()) == [["linux-bridge"] * 2, ["veth"] * 2]
    run = tmp_path / REPORTS / "latest"
    tests = read_tests(run)
    assert [(test.outcome, len(test.results)) for test in tests] == [("passed", 1)] * 6
    lines = sorted(place.line for test in tests for place in test.results)
    assert lines == list(range(1, 7))
    for place in (place for test in tests for place in test.results):
        first = json.loads((run / place.raw).read_text().splitlines()[0])
        assert first["case"] == found[place.line - 1]["case"]
    info = read_info(run)
    assert info is not None
    assert "--dist=load" in info.argv
    assert {host["identity"]["machine"] for host in info.hosts} == set(by_machine)
    assert [snapshot_difference(host, then) for host, then in zip(two, before, strict=True)] == [[], []]
    assert files_with_names(tmp_path / "scenarios", two) == []


def snapshot_difference(host: SecondHost, before: dict[str, dict[str, str]]) -> list[str]:
    from tests.host.snapshot import difference

    return difference(before, host.snapshot())


def test_a_whole_case_on_another_host(two: list[SecondHost], tmp_path: Path) -> None:
    """With a file of limits that is called the same here and there."""
    process = start(tmp_path, [gateway(two[1])], arguments=("--icbench-thresholds=scenarios/limits.toml", "-k", "64B"))
    assert process.wait(120) == 0, (tmp_path / "output").read_text()
    judged = [place.limits for test in read_tests(tmp_path / REPORTS / "latest") for place in test.results]
    assert ["limits.toml" in limit["source"] for limits in judged for limit in limits or ()] == [True] * 2
    script = "import json; from pytest_icbench.host import host_facts as facts; print(json.dumps(facts.identity()))"
    own = two[1].python(script)
    assert {each["identity"]["machine"] for each in results(tmp_path)} == {own["machine"]}


def test_two_workers_on_one_host_are_refused(two: list[SecondHost], tmp_path: Path) -> None:
    before = two[0].snapshot()
    process = start(tmp_path, [f"2*{gateway(two[0])}"])
    assert process.wait(60) != 0
    assert "benchmarks cannot share a host" in (tmp_path / "output").read_text()
    assert snapshot_difference(two[0], before) == []
    assert not (tmp_path / REPORTS / "latest").exists()


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (unknown_host_key, "no connection to its host: its host key is not known here: connect once by hand"),
        (refused_key, "no connection to its host: it accepts none of the keys that ssh offers"),
        (no_package, "has no pytest-icbench (ModuleNotFoundError: No module named 'pytest_icbench'): install version"),
        (other_version, "the remote host has pytest-icbench 0.0.9, this one "),
    ],
)
def test_a_host_that_cannot_be_had(two: list[SecondHost], tmp_path: Path, fault: Fault, sentence: str) -> None:
    """Nothing is copied or measured anywhere then, and nobody is asked for anything."""
    before = [host.snapshot() for host in two]
    with fault(two[1], tmp_path) as arguments:
        python = arguments[0].partition("=")[2] if arguments else sys.executable
        process = start(tmp_path, [gateway(two[0]), gateway(two[1], python)])
        assert process.wait(60) == 4, (tmp_path / "output").read_text()
    output = (tmp_path / "output").read_text()
    (said,) = [line for line in output.splitlines() if line.startswith("ERROR: ")]
    assert said.startswith("ERROR: worker gw1: ")
    assert sentence in said
    assert not [name for name in private_names(two[1]) if name in said]
    assert [snapshot_difference(host, then) for host, then in zip(two, before, strict=True)] == [[], []]
    assert not (tmp_path / REPORTS).exists()


def test_a_worker_that_dies_is_replaced(two: list[SecondHost], tmp_path: Path) -> None:
    """The case that it had fails; what it had made is undone by the one that comes after it."""
    before = two[0].snapshot()
    process = start(tmp_path, [gateway(two[0])], duration=1.0)
    deadline = time.monotonic() + 60
    while not two[0].processes("icbench-workload recv"):
        assert time.monotonic() < deadline, (tmp_path / "output").read_text()
        time.sleep(0.02)
    for pid in two[0].processes("sys.stdin.readline"):
        os.kill(pid, signal.SIGKILL)
    assert process.wait(120) == 1
    output = (tmp_path / "output").read_text()
    assert "1 failed, 5 passed" in output, output
    assert len(results(tmp_path)) == 5
    assert snapshot_difference(two[0], before) == []


def test_a_host_that_is_lost_leaves_its_cases_to_the_other(two: list[SecondHost], tmp_path: Path) -> None:
    """It cleans up by itself. Its worker is not replaced: xdist would end with its host out of reach."""
    before = [host.snapshot() for host in two]
    process = start(tmp_path, [gateway(host) for host in two], duration=0.5)
    deadline = time.monotonic() + 60
    while not two[0].processes("icbench-workload recv"):
        assert time.monotonic() < deadline, (tmp_path / "output").read_text()
        time.sleep(0.02)
    two[0].kill_sshd()
    try:
        assert process.wait(120) == 1, (tmp_path / "output").read_text()
    finally:
        two[0].start_sshd()
    output = (tmp_path / "output").read_text()
    assert "1 failed, 5 passed" in output, output
    assert "worker gw0 is lost and not replaced: the other hosts have its tests" in output
    assert len(results(tmp_path)) == 5
    deadline = time.monotonic() + 30
    while any(differences := [snapshot_difference(host, then) for host, then in zip(two, before, strict=True)]):
        assert time.monotonic() < deadline, differences
        time.sleep(0.1)
