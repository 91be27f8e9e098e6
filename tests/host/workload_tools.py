# SPDX-License-Identifier: BSD-3-Clause
"""Runs the workload's program in tests, over loopback or between two network namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.output import Summary, WindowLine, parse_line

LIMIT_S = 60
_numbers = count()


@dataclass(frozen=True)
class End:
    """One end of the path: where a process runs and which addresses it uses."""

    ip: str
    mac: str
    interface: str
    namespace: str | None = None

    def prefix(self) -> list[str]:
        return ["ip", "netns", "exec", self.namespace] if self.namespace else []


@dataclass(frozen=True)
class Path2:
    """Two ends that reach each other."""

    a: End
    b: End


LOOPBACK = Path2(
    End("127.0.0.1", "02:00:00:00:00:0a", "lo"),
    End("127.0.0.2", "02:00:00:00:00:0b", "lo"),
)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=LIMIT_S)


@contextmanager
def veth_pair() -> Iterator[Path2]:
    """Two namespaces joined by a veth pair that carries nothing but what tests send."""
    tag = f"icb{os.getpid()}-{next(_numbers)}"
    ends = [
        End("10.77.0.1", "02:00:00:77:00:0a", "end0", f"{tag}a"),
        End("10.77.0.2", "02:00:00:77:00:0b", "end0", f"{tag}b"),
    ]
    made: list[str] = []
    try:
        for end in ends:
            ip("netns", "add", end.namespace or "")
            made.append(end.namespace or "")
        names = [end.namespace or "" for end in ends]
        ip("link", "add", "end0", "netns", names[0], "type", "veth", "peer", "name", "end0", "netns", names[1])
        for end, other in (ends, ends[::-1]):
            inside = ["-n", end.namespace or ""]
            ip(*inside, "link", "set", "end0", "address", end.mac, "arp", "off")
            subprocess.run(
                [*end.prefix(), "sysctl", "-qw", "net.ipv6.conf.end0.disable_ipv6=1"], check=True, timeout=LIMIT_S
            )
            ip(*inside, "link", "set", "end0", "up")
            ip(*inside, "addr", "add", f"{end.ip}/24", "dev", "end0")
            ip(*inside, "neigh", "add", other.ip, "lladdr", other.mac, "dev", "end0", "nud", "permanent")
        yield Path2(*ends)
    finally:
        for name in made:
            ip("netns", "del", name)


@pytest.fixture(scope="module")
def veth() -> Iterator[Path2]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with veth_pair() as path:
        yield path


@dataclass
class Outcome:
    """A finished process: its lines by type, its standard error, and its exit status."""

    code: int
    stderr: str
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        assert self.lines, self.stderr
        assert self.lines[-1]["type"] == "summary"
        return self.lines[-1]

    @property
    def windows(self) -> list[dict[str, Any]]:
        """Returns the final windows."""
        return [line for line in self.lines if line["type"] == "window" and not line.get("provisional")]


class Process:
    """One running workload."""

    def __init__(self, app: str, here: End, there: End, *options: object) -> None:
        words = [workload_path(), app, here.ip, here.mac, there.ip, there.mac, *options]
        self.process = subprocess.Popen(
            [*here.prefix(), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []

    def until(self, kind: str) -> dict[str, Any]:
        """Reads lines up to the first one of a type."""
        assert self.process.stdout
        for text in self.process.stdout:
            self.lines.append(json.loads(text))
            if self.lines[-1]["type"] == kind:
                return self.lines[-1]
        raise AssertionError(f"no {kind} line: {self.process.stderr and self.process.stderr.read()}")

    def say(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close_stdin(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def end(self, limit_s: float = LIMIT_S) -> Outcome:
        # stdin stays open meanwhile: its end would be one more reason to stop.
        stdin, self.process.stdin = self.process.stdin, None
        try:
            out, err = self.process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            if stdin:
                stdin.close()
        self.lines += [json.loads(text) for text in out.splitlines()]
        return Outcome(self.process.returncode, err, self.lines)


def run(app: str, here: End, there: End, *options: object) -> Outcome:
    return Process(app, here, there, *options).end()


def between(
    path: Path2,
    sender: str,
    receiver: str,
    common: list[str],
    sending: list[str],
    ready: Callable[[], None] = lambda: None,
) -> tuple[Outcome, Outcome]:
    """Starts the receiver, waits until it is ready, runs the sender to its end, then the receiver ends by itself.

    A word ``IF`` in common stands for the interface of each end. ``ready`` is called before the sender starts.
    """

    def for_end(end: End) -> list[str]:
        return [end.interface if word == "IF" else word for word in common]

    serving = Process(receiver, path.b, path.a, *for_end(path.b), "--drain", "1")
    try:
        serving.until("ready")
        ready()
        sent = run(sender, path.a, path.b, *for_end(path.a), *sending)
        return sent, serving.end()
    finally:
        if serving.process.poll() is None:
            serving.process.kill()
            serving.process.wait()


def lost(sender: Outcome, receiver: Outcome) -> int:
    """Computes lost frames as docs/reference/workload.md does."""
    return int(receiver.summary["gaps"] + sender.summary["sequences"] - 1 - receiver.summary["highest_sequence"])


def check_lines(outcome: Outcome) -> None:
    """Checks the keys that the plugin reads, and that windows and warm-up add up to the totals."""
    parsed = [parse_line(json.dumps(line)) for line in outcome.lines]
    assert isinstance(parsed[-1], Summary)
    windows = [line for line in parsed if isinstance(line, WindowLine)]
    assert outcome.code == 0, outcome.stderr
    assert outcome.stderr == ""
    assert [w["window"] for w in outcome.windows] == list(range(1, outcome.summary["windows"] + 1))
    assert len(windows) >= len(outcome.windows)


def wait_until(condition: Any, limit_s: float = 10.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)
