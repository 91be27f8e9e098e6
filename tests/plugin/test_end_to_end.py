# SPDX-License-Identifier: BSD-3-Clause
"""Real packets through the whole plugin: containers, switches, reports, signals. Needs root."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_icbench.measure.strategy.repeat import MOST_FAULTS
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.report.terminal import WIDTH
from tests.host.snapshot import elsewhere, left_since, take
from tests.plugin.conftest import LOAD, Runner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo")

#: There is no time to repeat a launch that others have disturbed.
SHORT = "repeats=2, duration=0.2, warmup=0.05, drain=0.2, max_duration=1"
RATE = f"""
@pytest.mark.icbench(switch="veth", api="udp-mmsg", packet_size=[64, 1500], reference=False, {SHORT})
def test_rate(icbench):
    measurement = icbench.throughput()
    assert icbench.gate(measurement)
    assert measurement.throughput_pps > 1000
    assert measurement.sent == measurement.received + measurement.lost
"""


@pytest.fixture(autouse=True)
def unchanged_host() -> Iterator[None]:
    """Whatever a test does, the host is afterwards as it was."""
    before = take()
    yield
    assert left_since(before) == []


def results(inner: Runner) -> list[Measurement]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [Measurement.from_json(line) for line in text.splitlines()]


def start(inner: Runner, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *LOAD, *arguments],
        cwd=inner.path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def wait_for_result(inner: Runner, process: subprocess.Popen[str]) -> None:
    """Until the first case has been written."""
    path = inner.path / "reports" / "latest" / "results.jsonl"
    deadline = time.monotonic() + 60
    while not path.is_file():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


@pytest.mark.parametrize("node", ["lxc", "netns"])
def test_packets_pass_and_are_reported(inner: Runner, node: str) -> None:
    inner.write(test_x=RATE)
    result = inner.spawn(f"--icbench-node={node}", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2)
    found = results(inner)
    assert [each.case for each in found] == [f"veth-{size}B-b32-1vs1-Rmax" for size in (64, 1500)]
    for each in found:
        assert each.verdict == "NO_BASELINE"
        assert each.launches == 2
        assert each.received > 0
        assert each.treatment["node"] == node
        raw = list((inner.path / "reports" / "latest" / "raw" / "b32" / "veth").rglob("test_rate.jsonl"))
        assert len(raw) == 2
        windows = [json.loads(line) for path in raw for line in path.read_text().splitlines()]
        assert sum(line["type"] == "window" for line in windows) >= 2 * 2 * 2
    assert "icbench.throughput_pps" in (inner.path / "junit.xml").read_text()
    table = result.outlines[result.outlines.index("throughput, all with b32 1vs1 Rmax") :][:5]
    assert all(len(line) <= WIDTH for line in table)


def test_a_bridge_against_its_reference_and_back(inner: Runner) -> None:
    inner.write(
        test_x=f"""
@pytest.mark.icbench(switch="linux-bridge", api="udp-mmsg", {SHORT})
def test_both(icbench):
    assert icbench.gate(icbench.throughput()).verdict == "PASS"
    trip = icbench.latency(repeats=1)
    assert trip.rtt_samples > 10
    assert trip.rtt_p50_ns > 1000
"""
    )
    (inner.path / "thresholds.toml").write_text('["linux-bridge-*"]\nmax_duplicated = 0\n')
    inner.spawn("--icbench-rate=2k", "-rA").assert_outcomes(passed=1)
    throughput, latency = results(inner)
    assert (throughput.metric, throughput.ratio_to_reference) == ("fixed", None)
    assert throughput.offered_pps is not None
    assert throughput.offered_pps <= 2000 * 1.1
    assert len(throughput.per_launch) == 2
    for launch in throughput.per_launch:  # a busy host keeps the sender from offering all: the accounts say how much
        asked_pps = launch.offered_pps + launch.total("not_offered") / launch.duration_s
        assert asked_pps == pytest.approx(2000, rel=0.1)
        assert launch.offered_pps == pytest.approx(2000, rel=0.1) or launch.generator_bound
    assert throughput.generator_bound == any(launch.generator_bound for launch in throughput.per_launch)
    assert latency.dimension == "latency"
    assert latency.ratio_to_reference is not None


def test_a_limit_that_cannot_be_met_fails(inner: Runner) -> None:
    inner.write(test_x=RATE.replace("repeats=2", "repeats=6"))
    (inner.path / "thresholds.toml").write_text('["*-64B-*"]\nmin_throughput_pps = 1e9\n')
    result = inner.spawn()
    told = " ".join(result.stdout.str().split())
    if "more than a quarter of its launches were disturbed" in told:  # a busy host: nothing can be accused
        result.assert_outcomes(passed=1)
        assert result.parseoutcomes()["undecided"] == 1
        assert re.search(r"INCONCLUSIVE: throughput_pps \S+ below 1000M, but more than a quarter of its", told)
    else:
        result.assert_outcomes(passed=1, failed=1)
        assert re.search(r"REGRESSED: throughput_pps \S+ below 1000M, veth-64B-", told)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_leaves_results_and_a_clean_host(inner: Runner, number: signal.Signals) -> None:
    inner.write(test_x=RATE.replace("[64, 1500]", "'64..64..1500'"))
    process = start(inner)
    wait_for_result(inner, process)
    process.send_signal(number)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert results(inner)
    assert "icbench results" in text


@pytest.mark.slow
def test_a_second_session_is_refused_while_the_first_goes_on(inner: Runner) -> None:
    inner.write(test_x=RATE)
    process = start(inner, "--icbench-duration=3", "--icbench-repeats=1", "--icbench-reports=first")
    deadline = time.monotonic() + 60
    while not (inner.path / "first" / "latest").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    second = inner.spawn("--icbench-reports=second")
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    second.stderr.fnmatch_lines([f"ERROR: another icbench session runs on this host (process {process.pid}, since *"])
    assert not (inner.path / "second").exists()
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0, text


def test_a_plan_needs_no_root_and_changes_nothing(inner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner.write(test_x=RATE)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with TemporaryDirectory() as place:  # pytest's own directories are for root alone
        Path(place).chmod(0o755)
        shutil.copy(inner.path / "test_x.py", place)
        nobody = plan_as_nobody(place)
        assert [path.name for path in Path(place).iterdir()] == ["test_x.py"]
    assert nobody.returncode == 0, nobody.stdout + nobody.stderr
    assert re.search(r"^test_x\.py::test_rate\n +\d:\d\d +2 cases  veth$", nobody.stdout, re.MULTILINE), nobody.stdout


def plan_as_nobody(place: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *LOAD, "--icbench-plan"],
        cwd=place,
        user=65534,
        group=65534,
        extra_groups=[],
        text=True,
        capture_output=True,
        check=False,
    )


def workload(role: str, other_than: int = 0) -> int:
    """Process id of a running workload; one session runs on a host."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == other_than:
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if elsewhere(int(entry.name)):
                    continue
            except OSError:
                continue
            if words[0].endswith(b"icbench-workload") and role.encode() in words[1:2]:
                return int(entry.name)
        time.sleep(0.02)
    raise AssertionError(f"no workload {role} was started")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "number"), [("send", signal.SIGKILL), ("recv", signal.SIGKILL), ("recv", signal.SIGSTOP)]
)
def test_a_workload_that_dies_or_hangs_fails_its_case_alone(inner: Runner, role: str, number: signal.Signals) -> None:
    inner.write(test_x=RATE.replace("duration=0.2", "duration=1"))
    process = start(inner, "-v")
    victim = 0
    # A workload that dies may be the harness' own fault, so its launch is repeated twice.
    for _ in range(1 + MOST_FAULTS if number == signal.SIGKILL else 1):
        victim = workload(role, other_than=victim)
        time.sleep(0.3)
        os.kill(victim, number)
    text, _ = process.communicate(timeout=120)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED, text
    assert "1 failed, 1 passed" in text
    killed, hung = rf"{role} of pair 1 was ended by signal 9", rf"{role} of pair 1: still running .*; it hangs|INVALID "
    assert re.search(rf"^({killed if number == signal.SIGKILL else hung})", text, re.MULTILINE), text
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_switch_that_dies_between_two_cases_costs_none(inner: Runner) -> None:
    inner.write(
        test_x=f"""
import os, signal
@pytest.mark.icbench(switch=["testpmd", "veth"], packet_size=[64, 128], reference=False, {SHORT})
def test_rate(icbench):
    assert icbench.gate(icbench.throughput())
    if (icbench.case.switch, icbench.case.traffic.packet_size) == ("testpmd", 64):
        process = icbench.rig().host.switch.daemon.process
        process.signal(signal.SIGKILL)
        process.wait(5)
"""
    )
    result = inner.spawn()
    if "2 skipped" in result.stdout.str():
        pytest.skip("testpmd is not installed")
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(["*a switch died between two cases, and is started anew: testpmd was killed by*"])


REFUSED = {
    "ovs": ('flows = ["priority=10,in_port=1,actions=juggle"]', "*juggle*"),
    "testpmd": ('arguments = ["--juggle"]', "*juggle*"),
    "vpp": ('commands = ["juggle three balls"]', "*vpp refused the command 'juggle three balls': *unknown input*"),
    "vpp at start": ('startup = "juggle { balls 3 }"', "*vpp ended with exit code *", "*juggle*"),
}
TAKEN = {
    "ovs": 'flows = ["priority=10,in_port=1,actions=output:2"]\n[other_config]\npmd-sleep-max = 0\n',
    "testpmd": "burst = 16\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refused", "taken"), [(["ovs", "vpp"], ["testpmd"]), (["testpmd", "vpp at start"], ["ovs"])], ids=" ".join
)
def test_a_configuration_that_a_switch_refuses(inner: Runner, refused: list[str], taken: list[str]) -> None:
    """The switch's own words, and the cases of others run; those that take theirs keep it in the result."""
    texts = {name.split()[0]: REFUSED[name][0] for name in refused} | {name: TAKEN[name] for name in taken}
    for name, text in texts.items():
        (inner.path / f"{name}.toml").write_text(text)
    marker = f"switch={[*texts]}, reference=False, {SHORT}"
    inner.write(test_x=f"@pytest.mark.icbench({marker})\n{RATE[RATE.index('def') :]}")
    result = inner.spawn("--icbench-switch-config", " ".join(f"{name}={name}.toml" for name in texts))
    skipped = result.parseoutcomes().get("skipped", 0)
    if skipped:
        pytest.skip(f"{skipped} of {', '.join(texts)} are not installed")
    result.assert_outcomes(failed=len(refused), passed=len(taken))
    for name in refused:
        result.stdout.fnmatch_lines(REFUSED[name][1:])
    (found,) = results(inner)
    kept = found.treatment["switch"]["user_config"]
    assert kept["sha256"] == hashlib.sha256(TAKEN[taken[0]].encode()).hexdigest()
    assert kept["content"] == tomllib.loads(TAKEN[taken[0]])
