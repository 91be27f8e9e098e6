# SPDX-License-Identifier: BSD-3-Clause
"""The workload's program with real packets: over loopback, and between namespaces for raw sockets (needs root)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.executable import workload_path
from pytest_icbench.lines import Summary, WindowLine, parse_line
from tests.host.workload_tools import LOOPBACK, Outcome, Path2, Process, between, ip, lost, run, veth_pair, wait_until

TECHNIQUES = {
    "udp": [],
    "udp-mmsg": ["-m"],
    "udp-blocking": ["-B"],
    "udp-mmsg-blocking": ["-mB"],
    "raw": ["-R", "IF"],
    "raw-mmsg": ["-R", "IF", "-m"],
    "raw-blocking": ["-R", "IF", "-B"],
    "raw-mmsg-blocking": ["-R", "IF", "-mB"],
}
each_technique = pytest.mark.parametrize("technique", list(TECHNIQUES.values()), ids=list(TECHNIQUES))


@pytest.fixture(scope="module")
def veth() -> Iterator[Path2]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with veth_pair() as path:
        yield path


def check_lines(outcome: Outcome) -> None:
    """What the plugin reads; and the windows and the warm-up make up the totals."""
    parsed = [parse_line(json.dumps(line)) for line in outcome.lines]
    assert isinstance(parsed[-1], Summary)
    windows = [line for line in parsed if isinstance(line, WindowLine)]
    assert outcome.code == 0, outcome.stderr
    assert outcome.stderr == ""
    assert [w["window"] for w in outcome.windows] == list(range(1, outcome.summary["windows"] + 1))
    assert len(windows) >= len(outcome.windows)


def total(outcome: Outcome, key: str) -> int:
    return sum(int(window[key]) for window in outcome.windows)


@each_technique
@pytest.mark.parametrize("size", [64, 1518])
def test_send_to_recv(veth: Path2, technique: list[str], size: int) -> None:
    """Every frame is sent, received and accounted to the window it was scheduled in, with every byte checked."""
    common = [*technique, "-c", "-p", str(size), "-b", "10"]
    sender, receiver = between(
        veth, "send", "recv", common, ["-r", "20k", "--warmup", "0.1", "--duration", "0.5", "--window", "0.1"]
    )
    check_lines(sender)
    check_lines(receiver)
    assert sender.summary["reason"] == "duration"
    assert receiver.summary["reason"] == "end"
    assert sender.summary["scheduled"] + sender.summary["not_offered"] == 12000
    assert sender.summary["scheduled"] == sender.summary["sent"] + sender.summary["refused"]
    assert lost(sender, receiver) == 0
    assert receiver.summary["received"] == sender.summary["sent"]
    assert receiver.summary["bytes"] == size * sender.summary["sent"]
    for sent, received in zip(sender.windows, receiver.windows, strict=True):
        assert sent["window"] == received["window"]
        assert sent["scheduled"] + sent["not_offered"] == 2000
        assert received["received"] == sent["sent"]
        assert sent["duration_ns"] == pytest.approx(100e6, abs=1000)
        assert sent["start_ns"] <= received["first_ns"] <= received["last_ns"]
    for key in ("duplicated", "reordered", "late", "foreign", "corrupted"):
        assert receiver.summary[key] == 0, key


@each_technique
def test_client_and_server(veth: Path2, technique: list[str]) -> None:
    """Each frame comes back once, intact, and its time is in the histogram."""
    client, server = between(
        veth, "client", "server", [*technique, "-c", "-p", "128", "-b", "4"], ["-r", "5k", "--duration", "0.4"]
    )
    check_lines(client)
    check_lines(server)
    summary = client.summary
    assert summary["sent"] + summary["not_offered"] == 2000
    assert summary["received"] == summary["sent"] == server.summary["received"] == server.summary["reflected"]
    assert summary["unanswered"] == 0
    for key in ("rtt_ns", "rtt_actual_ns"):
        assert summary[key]["count"] == summary["received"]
        assert sum(n for _, n in summary[key]["counts"]) == summary["received"]
        assert 0 < summary[key]["min"] <= summary[key]["mean"] <= summary[key]["max"]
    assert summary["rtt_ns"]["mean"] >= summary["rtt_actual_ns"]["mean"]
    assert total(client, "received") == summary["received"]
    assert [w["rtt"]["count"] for w in client.windows] == [w["received"] for w in client.windows]


def test_a_stall_of_the_sender_is_in_its_latencies(veth: Path2) -> None:
    """Latency runs from the intended send time: a sender that stands still for 50 ms in ten seconds at 1000 frames per
    second delays fifty frames by up to 50 ms, and the ten slowest of ten thousand took more than 35 ms.
    """
    server = Process("server", veth.b, veth.a, "-b", 1)
    server.until("ready")
    client = Process("client", veth.a, veth.b, "-b", 1, "-r", 1000, "--duration", 10)
    client.until("ready")
    time.sleep(4)
    client.process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    client.process.send_signal(signal.SIGCONT)
    outcome = client.end()
    server.end()
    summary = parse_line(json.dumps(outcome.summary))
    assert isinstance(summary, Summary)
    assert summary.rtt is not None
    assert summary.rtt_actual is not None
    assert summary.rtt.maximum is not None
    assert summary.rtt.maximum >= 49e6
    slow = summary.rtt.percentile(0.999)
    assert slow is not None
    assert slow >= 35e6
    # From the actual send time the stall is hidden, whatever else the host did meanwhile.
    slow_from, slow_since = (
        sum(n for value, n in found.counts if value > 35e6) for found in (summary.rtt, summary.rtt_actual)
    )
    assert slow_from - slow_since >= 10
    slowest = max(outcome.windows, key=lambda window: window["rtt"]["max_ns"] or 0)
    assert slowest["rtt"]["max_ns"] >= 49e6


def test_the_first_frame_of_a_burst_has_a_histogram_of_its_own(veth: Path2) -> None:
    client, _ = between(veth, "client", "server", ["-b", "8", "-m"], ["-r", "8k", "--duration", "0.5"])
    check_lines(client)
    summary = client.summary
    assert summary["unanswered"] == 0
    assert summary["rtt_first_ns"]["count"] == total(client, "bursts") == summary["sent"] / 8
    assert summary["rtt_first_ns"]["min"] >= summary["rtt_ns"]["min"]
    assert summary["rtt_first_ns"]["max"] <= summary["rtt_ns"]["max"]
    assert summary["rtt_first_ns"]["mean"] <= summary["rtt_ns"]["mean"]


def test_trains(veth: Path2) -> None:
    """One train a window, at the maximum rate, of the lengths asked for in turn."""
    sender, receiver = between(
        veth, "send", "recv", ["-m"], ["--train", "50:200:3", "--window", "0.1", "--duration", "0.6"]
    )
    check_lines(sender)
    assert [window["scheduled"] for window in sender.windows] == [50, 100, 200, 50, 100, 200]
    assert [window["received"] for window in receiver.windows] == [50, 100, 200, 50, 100, 200]
    assert all(window["busy_cycles"] > 0 for window in [*sender.windows, *receiver.windows])


def test_one_burst_at_a_time(veth: Path2) -> None:
    """A client at the maximum rate waits for its answers, also after the server stood still for a while.

    With one frame under way the round-trip times add up to no more than the time that passed; with two, to twice that.
    """
    server = Process("server", veth.b, veth.a, "-b", 1)
    server.until("ready")
    client = Process("client", veth.a, veth.b, "-b", 1, "--duration", 3)
    client.until("ready")
    for _ in range(3):
        time.sleep(0.1)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        server.process.send_signal(signal.SIGCONT)
    outcome = client.end()
    server.end()
    rtt = outcome.summary["rtt_actual_ns"]
    stalls_ns = 3 * 60e6 * 6  # up to six frames each, one every 10 ms, that wait for the server
    assert rtt["count"] > 1000
    assert rtt["mean"] * rtt["count"] < 3.02e9 + stalls_ns


@pytest.mark.parametrize("technique", [["-m"], ["-R", "IF", "-m"]], ids=["udp", "raw"])
@pytest.mark.parametrize("fault", ["drop", "duplicate", "reorder"])
def test_faults_are_counted_exactly(veth: Path2, technique: list[str], fault: str) -> None:
    """Each 10th frame of 5000 is dropped, doubled, or sent behind its successor."""
    sender, receiver = between(
        veth,
        "send",
        "recv",
        [*technique, "-c", "-p", "100"],
        ["-r", "50k", "--count", "5000", "--fault", f"{fault}:10"],
    )
    assert sender.summary["reason"] == "count"
    assert sender.summary["sent"] == sender.summary["sequences"] == 5000
    missing = 500 if fault == "drop" else 0
    assert lost(sender, receiver) == missing
    assert receiver.summary["received"] == 5000 - missing
    assert receiver.summary["duplicated"] == (500 if fault == "duplicate" else 0)
    # The last one of all has no successor: only the end mark follows it.
    assert receiver.summary["reordered"] == (499 if fault == "reorder" else 0)
    assert receiver.summary["corrupted"] == receiver.summary["foreign"] == receiver.summary["late"] == 0


def test_flat_out(veth: Path2) -> None:
    """At the maximum rate nothing is refused, and sent = received + lost holds under real loss, too."""
    sender, receiver = between(veth, "send", "recv", ["-m", "-b", "64"], ["--duration", "0.5"])
    assert sender.summary["scheduled"] == sender.summary["sent"] > 10000
    assert sender.summary["refused"] == sender.summary["not_offered"] == 0
    assert sender.summary["sent"] == receiver.summary["received"] + lost(sender, receiver)


def test_a_rate_out_of_reach(veth: Path2) -> None:
    """The sender ends on time and says what it did not offer; its windows show what it sent."""
    sender, receiver = between(veth, "send", "recv", ["-m", "-b", "64"], ["-r", "100M", "--duration", "0.5"])
    offered = sender.summary["scheduled"] + sender.summary["not_offered"]
    assert offered == pytest.approx(50e6, rel=1e-3)
    assert sender.summary["not_offered"] > 0
    assert len(sender.windows) == 5
    assert sender.summary["sent"] == receiver.summary["received"] + lost(sender, receiver)


def test_damage_is_seen() -> None:
    """Padding that was not generated is damage for a receiver that checks."""
    receiver = Process("recv", LOOPBACK.b, LOOPBACK.a, "-c", "-p", 128, "--drain", 0.2, "--supervised")
    receiver.until("ready")
    sender = run("send", LOOPBACK.a, LOOPBACK.b, "-p", 128, "--count", 100, "-b", 10)
    receiver.say("stop")
    outcome = receiver.end()
    assert outcome.summary["corrupted"] == sender.summary["sent"] + 3  # and the end marks
    assert outcome.summary["received"] == 0


def test_frames_of_others(veth: Path2) -> None:
    """Another stream on our port is foreign; other ports cost a raw receiver nothing."""
    receiver = Process("recv", veth.b, veth.a, "-R", "end0", "--supervised", "--drain", 0.2)
    receiver.until("ready")
    run("send", veth.a, veth.b, "--stream-id", 2, "--count", 200)
    run("send", veth.a, veth.b, "--port", 10, "--count", 200)
    receiver.say("stop")
    outcome = receiver.end()
    assert outcome.summary["received"] == 0
    assert outcome.summary["highest_sequence"] == -1
    assert outcome.summary["foreign"] == 203  # 200 frames and three end marks


def test_supervised(veth: Path2) -> None:
    """Both wait for `start`, at a given moment; `stop` ends the sender, then the receiver by the end mark."""
    receiver = Process("recv", veth.b, veth.a, "--supervised")
    assert receiver.until("ready")["announced"] is True
    sender = Process("send", veth.a, veth.b, "--supervised", "-r", "10k", "-b", "1")
    assert sender.until("ready")["announced"] is False
    at = time.monotonic_ns() + 200_000_000
    receiver.say(f"start {at}")
    sender.say(f"start {at}")
    first = sender.until("window")
    assert first["start_ns"] == pytest.approx(at, abs=50_000)
    sender.say("stop")
    sent = sender.end()
    received = receiver.end()
    assert (sent.code, sent.summary["reason"]) == (0, "stop")
    assert (received.code, received.summary["reason"]) == (0, "end")
    assert sent.summary["sent"] == received.summary["received"]
    assert sent.windows[-1]["duration_ns"] < 100_000_000


@pytest.mark.parametrize("app", ["send", "recv", "client", "server"])
@pytest.mark.parametrize("how", ["eof", "stop", "signal"])
@pytest.mark.parametrize("when", ["before start", "running"])
def test_ending_early(app: str, how: str, when: str) -> None:
    process = Process(app, LOOPBACK.a, LOOPBACK.b, "--supervised", "--drain", "0.1", "-r", "1k", "-b", "1")
    process.until("ready")
    if when == "running":
        process.say("start")
        time.sleep(0.15)
    if how == "eof":
        process.close_stdin()
    elif how == "stop":
        process.say("stop")
    else:
        process.process.send_signal(signal.SIGTERM)
    outcome = process.end(limit_s=5)
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["reason"] == how


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait(number: signal.Signals) -> None:
    process = Process("recv", LOOPBACK.a, LOOPBACK.b, "--drain", "600")
    process.until("ready")
    process.process.send_signal(number)
    time.sleep(0.2)
    assert process.process.poll() is None, "the first signal lets it drain"
    process.process.send_signal(number)
    outcome = process.end(limit_s=2)
    assert (outcome.code, outcome.summary["reason"]) == (0, "signal")


def test_receiver_duration() -> None:
    outcome = run("recv", LOOPBACK.a, LOOPBACK.b, "--duration", 0.2, "--drain", 0.1)
    assert (outcome.code, outcome.summary["reason"]) == (0, "duration")


def test_nobody_listens(veth: Path2) -> None:
    """Refused datagrams are lost ones, not an error of the sender."""
    outcome = run("send", veth.a, veth.b, "-m", "--count", 5000, "-r", "100k")
    assert (outcome.code, outcome.summary["sent"]) == (0, 5000)


def test_a_reader_that_sleeps() -> None:
    """Far more lines than a pipe holds: the run ends on time, and no line is missing or torn."""
    process = Process("send", LOOPBACK.a, LOOPBACK.b, "--io", "null", "--window", "0.001", "--duration", "1.5")
    time.sleep(2)
    outcome = process.end()
    assert [w["window"] for w in outcome.windows] == list(range(1, 1501))
    last = outcome.windows[-1]
    assert last["start_ns"] + last["duration_ns"] - outcome.windows[0]["start_ns"] == pytest.approx(1.5e9, rel=1e-4)


def test_silent() -> None:
    process = Process("send", LOOPBACK.a, LOOPBACK.b, "--io", "null", "-s", "--supervised", "--window", "0.01")
    process.until("ready")
    process.say("start")
    time.sleep(0.2)
    assert process.process.stdout
    os.set_blocking(process.process.stdout.fileno(), False)
    with pytest.raises(BlockingIOError):
        os.read(process.process.stdout.fileno(), 1)
    os.set_blocking(process.process.stdout.fileno(), True)
    process.say("stop")
    assert len(process.end().windows) >= 15


@pytest.mark.parametrize("app", ["send", "client"])
def test_a_paced_sender_tells_how_late_and_how_even_its_bursts_were(app: str) -> None:
    """One lateness a burst, one spacing between two; a sender that is stopped is late, and uneven, by as much."""
    stopped_s = 0.03
    options = ("--rate", "10k", "-b", "10", "--duration", "0.5", "--window", "0.5")
    process = Process(app, LOOPBACK.a, LOOPBACK.b, "--io", "null", *options)
    process.until("hello")
    time.sleep(0.2)
    process.process.send_signal(signal.SIGSTOP)
    time.sleep(stopped_s)
    process.process.send_signal(signal.SIGCONT)
    outcome = process.end()
    check_lines(outcome)
    late, uneven = outcome.summary["lateness_ns"], outcome.summary["spacing_error_ns"]
    bursts = outcome.summary["scheduled"] // 10
    assert (late["count"], uneven["count"]) == (bursts, bursts - 1)
    assert late["max"] == outcome.summary["lateness_max_ns"]
    assert late["max"] > 0.8 * stopped_s * 1e9
    assert 0.8 * stopped_s * 1e9 < uneven["max"] <= late["max"]


def test_an_unlimited_sender_is_never_late() -> None:
    outcome = run("send", LOOPBACK.a, LOOPBACK.b, "--io", "null", "--duration", 0.1)
    assert "lateness_ns" not in outcome.summary


@pytest.mark.parametrize("app", ["send", "recv", "client", "server"])
def test_null(app: str) -> None:
    """The applications without any I/O; a receiver's frames are made for it."""
    outcome = run(app, LOOPBACK.a, LOOPBACK.b, "--io", "null", "-c", "-p", 200, "--duration", 0.2)
    check_lines(outcome)
    counted = "sent" if app in ("send", "client") else "received"
    assert outcome.summary[counted] > 10000
    assert outcome.summary.get("corrupted", 0) == outcome.summary.get("gaps", 0) == 0
    assert outcome.summary.get("unanswered", 0) == 0


class TestErrors:
    def usage(self, *words: str) -> tuple[int, str]:
        done = subprocess.run([workload_path(), *words], capture_output=True, text=True, timeout=10, check=False)
        assert done.stdout == ""
        return done.returncode, done.stderr

    def test_usage(self) -> None:
        code, said = self.usage("send", "-p", "63", "127.0.0.1")
        assert (code, said) == (2, "icbench-workload: -p takes a whole number from 64 to 9216, not '63'\n")

    def failed(self, outcome: Outcome, code: int, *parts: str) -> None:
        assert outcome.code == code, outcome.stderr
        assert outcome.stderr.count("\n") == 1, outcome.stderr
        for part in parts:
            assert part in outcome.stderr

    def test_address_in_use(self) -> None:
        first = Process("recv", LOOPBACK.a, LOOPBACK.b, "--supervised", "--drain", 0)
        first.until("ready")
        self.failed(run("recv", LOOPBACK.a, LOOPBACK.b), 3, "127.0.0.1 port 9", "in use")
        first.close_stdin()
        assert first.end().code == 0

    def test_foreign_address(self) -> None:
        here = LOOPBACK.a.__class__("192.0.2.77", LOOPBACK.a.mac, "lo")
        self.failed(run("recv", here, LOOPBACK.b), 3, "192.0.2.77", "no interface")

    def test_missing_interface(self, veth: Path2) -> None:
        self.failed(run("send", veth.a, veth.b, "-R", "gone0"), 3, "'gone0'")

    @pytest.mark.parametrize("options", [[], ["-R", "end0"]], ids=["udp", "raw"])
    def test_larger_than_the_mtu(self, veth: Path2, options: list[str]) -> None:
        self.failed(run("send", veth.a, veth.b, "-p", 1519, *options), 3, "1519", "MTU", "at most 1518")
        assert run("send", veth.a, veth.b, "-p", 1518, "--count", 1, *options).code == 0

    @pytest.mark.parametrize("app", ["send", "recv"])
    def test_link_goes_away(self, app: str) -> None:
        """Code 4, and the summary is still written."""
        with veth_pair() as path:
            process = Process(app, path.a, path.b, "-R", "end0", "-r", "10k", "-b", "1")
            process.until("ready")
            time.sleep(0.15)
            ip("-n", path.a.namespace or "", "link", "set", "end0", "down")
            outcome = process.end(limit_s=5)
        self.failed(outcome, 4, "Network is down")
        assert outcome.summary["reason"] == "error"

    def test_link_never_up(self) -> None:
        with veth_pair() as path:
            ip("-n", path.b.namespace or "", "link", "set", "end0", "down")
            self.failed(run("send", path.a, path.b, "-R", "end0"), 5, "did not come up")


class TestProgram:
    def output(self, *words: str | Path) -> str:
        return subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout

    def test_version_and_help(self) -> None:
        assert self.output(workload_path(), "--version").startswith("icbench-workload ")
        for words in (["--help"], ["send", "--help"], ["dpdk-server", "-h"]):
            assert "--packet-size BYTES" in self.output(workload_path(), *words)

    def test_called_by_the_name_of_an_application(self, tmp_path: Path) -> None:
        link = tmp_path / "recv"
        link.symlink_to(workload_path())
        text = self.output(
            link, "127.0.0.1", "02:00:00:00:00:01", "127.0.0.2", "02:00:00:00:00:02", "--io=null", "--count=5"
        )
        assert '"app":"recv"' in text
        assert '"received":5,' in text

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_pause_ends(self, number: signal.Signals) -> None:
        with subprocess.Popen([workload_path(), "pause"]) as pause:
            time.sleep(0.1)
            assert pause.poll() is None
            pause.send_signal(number)
            assert pause.wait(timeout=5) == 0

    @pytest.mark.skipif(os.geteuid() != 0, reason="PID namespaces need root")
    def test_pause_reaps(self) -> None:
        """As PID 1 it inherits an orphan, which leaves no zombie behind."""
        with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", str(workload_path()), "pause"]) as outer:
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
            wait_until(lambda: children.read_text().split())
            init = children.read_text().split()[0]
            wait_until(lambda: b"pause" in Path(f"/proc/{init}/cmdline").read_bytes())
            orphans = Path(f"/proc/{init}/task/{init}/children")
            enter = ["nsenter", "--target", init, "--pid"]
            subprocess.run([*enter, "sh", "-c", "(sleep 0.3 &)"], check=True, timeout=10)
            wait_until(lambda: orphans.read_text().split())
            wait_until(lambda: not orphans.read_text().split())
            os.kill(int(init), signal.SIGTERM)
            assert outer.wait(timeout=5) == 0
