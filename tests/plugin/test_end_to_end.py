# SPDX-License-Identifier: BSD-3-Clause
"""Real packets through the whole plugin, over paths of the kernel: containers, reports, signals. Needs root."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.measure.repetition import MOST_FAULTS
from pytest_icbench.model.measurement import Measurement
from tests.host.snapshot import elsewhere, left_since, take
from tests.plugin.conftest import LOAD, Runner

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]

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


def wait_for_result(inner: Runner, process: subprocess.Popen[Any]) -> None:
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
        assert each.launches == 2 or (each.launches == 1 and each.per_other_launch)  # in another state of the host
        assert each.frames.received > 0
        assert each.treatment["node"] == node
        raw = list((inner.path / "reports" / "latest" / "raw" / "b32" / "veth").rglob("test_rate.jsonl"))
        assert len(raw) == 2
        windows = [json.loads(line) for path in raw for line in path.read_text().splitlines()]
        assert sum(line["type"] == "window" for line in windows) >= 2 * 2 * 2
    assert "icbench.throughput_pps" in (inner.path / "junit.xml").read_text()
    place = next(number for number, line in enumerate(result.outlines) if line.startswith("veth: rate with bursts"))
    assert all(len(line) < 80 for line in result.outlines[place:][:4])


def test_a_bridge_against_its_reference_and_back(inner: Runner) -> None:
    inner.write(
        test_x=f"""
@pytest.mark.icbench(switch="linux-bridge", api="udp-mmsg", {SHORT})
def test_both(icbench):
    assert icbench.gate(icbench.throughput()).verdict == "PASS"
    trip = icbench.latency(repeats=3, max_duration=4)  # one launch that a busy host disturbs does not decide
    assert trip.round_trips.rtt_samples > 10
    assert trip.rtt_p50_ns > 1000
"""
    )
    (inner.path / "thresholds.toml").write_text('["linux-bridge-*"]\nmax_duplicated = 0\n')
    inner.spawn("--icbench-rate=2k", "-rA").assert_outcomes(passed=1)
    throughput, latency = results(inner)
    assert (throughput.metric, throughput.ratio_to_reference) == ("fixed", None)
    assert throughput.frames.offered_pps is not None
    assert throughput.frames.offered_pps <= 2000 * 1.1
    assert 2 <= len([*throughput.per_launch, *throughput.per_other_launch]) <= 4
    for launch in throughput.per_launch:  # a busy host keeps the sender from offering all: the accounts say how much
        asked_pps = launch.offered_pps + launch.total("not_offered") / launch.duration_s
        assert asked_pps == pytest.approx(2000, rel=0.1)
        assert launch.offered_pps == pytest.approx(2000, rel=0.1) or launch.generator_bound
    assert throughput.generator_bound == any(launch.generator_bound for launch in throughput.per_launch)
    assert latency.dimension == "latency"
    assert latency.ratio_to_reference is not None


def test_a_limit_that_cannot_be_met_fails(inner: Runner) -> None:
    # An interval takes six launches of one state of the host.
    inner.write(test_x=RATE.replace("repeats=2", "repeats=8"))
    (inner.path / "thresholds.toml").write_text('["*-64B-*"]\nmin_throughput_pps = 1e9\n')
    result = inner.spawn()
    reported = " ".join(result.stdout.str().split())
    if result.parseoutcomes().get("undecided"):  # too many launches were disturbed: a busy host
        result.assert_outcomes(passed=1)
        assert re.search(r"INCONCLUSIVE: veth-64B-\S+: \S+ kpps (is below|\(limit) 1000 Mpps", reported)
    else:
        result.assert_outcomes(passed=1, failed=1)
        assert re.search(r"REGRESSED: veth-64B-\S+: \S+ kpps is below 1000 Mpps", reported)


def test_launches_of_cases_alternate(inner: Runner) -> None:
    inner.write(test_x=RATE.replace("repeats=2", "repeats=3"))
    inner.spawn().assert_outcomes(passed=2)
    first, second = [[launch.started_at for launch in found.per_launch] for found in results(inner)]
    assert min(first) < max(second)
    assert min(second) < max(first)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_in_the_middle_leaves_results_and_a_clean_host(inner: Runner, number: signal.Signals) -> None:
    inner.write(test_x=RATE.replace("[64, 1500]", "'64..64..1500'"))
    inner.ini("icbench_turns = no\n")
    process = start(inner)
    wait_for_result(inner, process)
    process.send_signal(number)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert results(inner)
    assert "icbench results" in text


@pytest.mark.parametrize("node", ["lxc", "netns"])
def test_a_terminal_that_is_closed_leaves_results_and_a_clean_host(inner: Runner, node: str) -> None:
    inner.write(test_x=RATE.replace("[64, 1500]", "'64..64..1500'"))
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "pytest", *LOAD, f"--icbench-node={node}", "-oicbench_turns=no"],
        cwd=inner.path,
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    wait_for_result(inner, process)
    os.close(leader)
    process.wait(timeout=60)
    assert results(inner)


@pytest.mark.parametrize("node", ["lxc", "netns"])
def test_what_the_parent_has_set_keeps_no_node_from_starting(inner: Runner, node: str) -> None:
    """A real-time policy, which no control group takes, a umask for nobody, and an ignored SIGCHLD."""
    inner.write(test_x=RATE.replace("[64, 1500]", "[64]"))
    # A control group without real-time seconds of its own, as containers have, refuses the policy itself.
    policy = ["chrt", "--fifo", "20"]
    if subprocess.run([*policy, "true"], capture_output=True, check=False).returncode != 0:
        policy = ["chrt", "--idle", "0"]
    inherited = [*policy, "env", "--ignore-signal=CHLD", "sh", "-c", 'umask 0777; exec "$@"', "sh"]
    run = [sys.executable, "-m", "pytest", *LOAD, f"--icbench-node={node}", "-oicbench_precedence=all"]
    done = subprocess.run([*inherited, *run], cwd=inner.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(results(inner)) == 1


def test_root_without_a_right_is_told_once_which_and_who_grants_it(inner: Runner) -> None:
    inner.write(test_x=RATE)
    dropped = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    run = [sys.executable, "-m", "pytest", *LOAD, "--icbench-node=netns", "-rs", "--icbench-require"]
    done = subprocess.run([*dropped, *run], cwd=inner.path, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    first = [line for line in done.stdout.splitlines() if line.startswith("icbench: root lacks CAP_NET_ADMIN (links)")]
    assert len(first) == 1
    assert "GitLab: privileged = true" in first[0]
    assert re.search(r"SKIPPED \[2\] .*root lacks CAP_NET_ADMIN", done.stdout)
    assert "modprobe" not in done.stdout


@pytest.mark.slow
def test_a_session_that_was_stopped_goes_on(inner: Runner) -> None:
    """As by Ctrl-Z and fg: every deadline of that moment is over when it goes on."""
    inner.write(test_x=RATE.replace("[64, 1500]", "'64..64..512'"))
    inner.ini("icbench_turns = no\n")
    process = start(inner)
    wait_for_result(inner, process)
    process.send_signal(signal.SIGSTOP)
    time.sleep(6)
    process.send_signal(signal.SIGCONT)
    text, _ = process.communicate(timeout=100)
    assert process.returncode == 0, text
    assert len(results(inner)) == 8


@pytest.mark.slow
def test_a_lost_worker_leaves_a_clean_host(inner: Runner) -> None:
    """It is lost in its last test, so that no successor takes the host and cleans up."""
    inner.write(test_x=RATE.replace("[64, 1500]", "[64]") + "    import os\n    os._exit(7)\n")
    result = inner.spawn("-p", "xdist.plugin", "-n", "1")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"icbench: after a lost worker: session \w{6}: \d+ changes undone"])


#: Keeps the first session until the second one has ended.
HELD = """
    import pathlib, time
    end = time.monotonic() + 60
    while not pathlib.Path("refused").exists() and time.monotonic() < end:
        time.sleep(0.05)
"""


@pytest.mark.slow
def test_a_second_session_is_refused_while_the_first_goes_on(inner: Runner) -> None:
    inner.write(test_x=RATE + HELD)
    process = start(inner, "--icbench-reports=first")
    deadline = time.monotonic() + 60
    while not (inner.path / "first" / "latest").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    second = inner.spawn("--icbench-reports=second")
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    second.stderr.fnmatch_lines([f"ERROR: another icbench session runs on this host (process {process.pid}, since *"])
    assert not (inner.path / "second").exists()
    (inner.path / "refused").touch()
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


PLAIN = """
@pytest.mark.icbench(switch="veth", api="udp-mmsg", repeats=2, duration=0.2, warmup=0.05, drain=0.2, max_duration=1)
def test_a(icbench):
    assert icbench.gate(icbench.throughput()).verdict in ("PASS", "INCONCLUSIVE")  # as quiet as the host is
"""


@pytest.mark.slow
@pytest.mark.parametrize("node", ["lxc", "netns"])
def test_another_workload_runs_at_both_ends(inner: Runner, node: str, tmp_path: Path) -> None:
    other = tmp_path / "other" / "icbench-workload"
    other.parent.mkdir()
    shutil.copy(workload_path(), other)
    inner.write(test_x=PLAIN)
    result = inner.spawn(f"--icbench-candidate=workload:w={other}", f"--icbench-node={node}")
    # A busy host may leave it undecided, for which pytest has a count of its own.
    assert set(result.parseoutcomes()) <= {"passed", "undecided"}
    base, now = results(inner)
    assert (base.treatment["candidate"], now.case) == (None, "veth:w-64B-b32-1vs1-Rmax")
    assert now.treatment["candidate"]["kind"] == "binary"
    assert min(base.frames.received, now.frames.received) > 0
