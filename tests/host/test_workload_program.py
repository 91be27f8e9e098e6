# SPDX-License-Identifier: BSD-3-Clause
"""The workload as a program: what it refuses, with which code and sentence; its version, names and init process."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from tests.host.workload_tools import LOOPBACK, Outcome, Path2, Process, ip, run, veth, veth_pair, wait_until

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host


class TestErrors:
    def usage(self, *words: str) -> tuple[int, str]:
        done = subprocess.run([workload_path(), *words], capture_output=True, text=True, timeout=10, check=False)
        assert done.stdout == ""
        return done.returncode, done.stderr

    def test_a_bad_value_is_one_sentence(self) -> None:
        code, said = self.usage("send", "-p", "63", "127.0.0.1")
        assert (code, said) == (2, "icbench-workload: -p takes a whole number from 64 to 9216, not '63'\n")

    def failed(self, outcome: Outcome, code: int, *parts: str) -> None:
        assert outcome.code == code, outcome.stderr
        assert outcome.stderr.count("\n") == 1, outcome.stderr
        for part in parts:
            assert part in outcome.stderr

    def test_an_address_in_use_is_refused(self) -> None:
        first = Process("recv", LOOPBACK.a, LOOPBACK.b, "--supervised", "--drain", 0)
        first.until("ready")
        self.failed(run("recv", LOOPBACK.a, LOOPBACK.b), 3, "127.0.0.1 port 9", "in use")
        first.close_stdin()
        assert first.end().code == 0

    def test_a_foreign_address_is_refused(self) -> None:
        here = LOOPBACK.a.__class__("192.0.2.77", LOOPBACK.a.mac, "lo")
        self.failed(run("recv", here, LOOPBACK.b), 3, "192.0.2.77", "no interface")

    def test_a_missing_interface_is_refused(self, veth: Path2) -> None:
        self.failed(run("send", veth.a, veth.b, "-R", "gone0"), 3, "'gone0'")

    @pytest.mark.parametrize("options", [[], ["-R", "end0"]], ids=["udp", "raw"])
    def test_a_frame_above_the_mtu_is_refused(self, veth: Path2, options: list[str]) -> None:
        self.failed(run("send", veth.a, veth.b, "-p", 1519, *options), 3, "1519", "MTU", "at most 1518")
        assert run("send", veth.a, veth.b, "-p", 1518, "--count", 1, *options).code == 0

    def test_a_card_without_driver_is_refused(self) -> None:
        """The host's bridge stands for it: EAL finds the device, and nobody drives it."""
        bridges = (
            path for path in Path("/sys/bus/pci/devices").glob("*") if (path / "class").read_text() == "0x060000\n"
        )
        device = next(bridges, None)
        if device is None:
            pytest.skip("this machine has no PCI bridge of the host")
        known = ":".join((device / file).read_text().strip().removeprefix("0x") for file in ("vendor", "device"))
        eal = ["--no-huge", "--no-shconf", "--no-telemetry", "-m", "64", "--lcores", "0@0", "-a", device.name]
        ends = [word for end in (LOOPBACK.a, LOOPBACK.b) for word in (end.ip, end.mac)]
        code, said = self.usage("dpdk-send", *ends, "--count", "1", "--", *eal)
        assert code == 3
        assert f"DPDK has no driver for {device.name} ({known}), or may not use it: install the one" in said

    @pytest.mark.parametrize("app", ["send", "recv"])
    def test_a_lost_link_is_an_io_error(self, app: str) -> None:
        """Code 4, and the summary is still written."""
        with veth_pair() as path:
            process = Process(app, path.a, path.b, "-R", "end0", "-r", "10k", "-b", "1")
            process.until("ready")
            time.sleep(0.15)
            ip("-n", path.a.namespace or "", "link", "set", "end0", "down")
            outcome = process.end(limit_s=5)
        self.failed(outcome, 4, "Network is down")
        assert outcome.summary["reason"] == "error"

    @pytest.mark.slow
    def test_a_link_that_stays_down_ends_the_run(self) -> None:
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
