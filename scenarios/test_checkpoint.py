# SPDX-License-Identifier: BSD-3-Clause
"""How long do checkpoint and restore of a process take, how large are the images, and when does it answer again?

CRIU takes a process that answers datagrams out of memory and puts it back (experiment E12). It needs root, and a CRIU
that works on this kernel: where ``criu check`` finds that it does not, the test is skipped with its words. The
literature has 30 ms for a checkpoint and 20 ms for a restore of a small virtual machine.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

#: The program, and how many times it takes a process out of memory.
CRIU, TIMES = "criu", 10
#: How long the process may take to answer, in seconds.
ANSWER_S = 5.0
#: How long a call of CRIU may take, in seconds.
CALL_S = 60.0
_SERVER = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    server.sendto(*server.recvfrom(2048))
"""


class Times(NamedTuple):
    """One checkpoint and restore: seconds, and bytes of the images. The answer's time is from the restore's begin."""

    checkpoint_s: float
    image_bytes: float
    restore_s: float
    answer_s: float


class CriuError(Exception):
    """CRIU failed; the message has its words."""


def refusal(criu: str) -> str | None:
    """Returns why CRIU does not work here, in its own words; None if it does."""
    if shutil.which(criu) is None:
        return f"{criu} is not installed (apt-get install criu)"
    done = subprocess.run([criu, "check"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"criu check: {_words(done.stdout + done.stderr)}"


def _words(text: str) -> str:
    """Returns the lines of errors; all lines where none is marked as one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join([line for line in lines if "Error" in line] or lines) or "it says nothing"


def _call(*command: str, log: Path) -> float:
    """Runs CRIU and returns the seconds that it took. Raises CriuError."""
    begun = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CALL_S)
    except subprocess.TimeoutExpired:
        raise CriuError(f"{' '.join(command[:2])}: no end after {CALL_S:.0f} s") from None
    took_s = time.perf_counter() - begun
    if done.returncode != 0:
        logged = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        raise CriuError(f"{' '.join(command[:2])}: {_words(logged or done.stdout + done.stderr)}")
    return took_s


def _answer(port: int) -> None:
    """Waits until the process answers. Raises CriuError."""
    last = time.perf_counter() + ANSWER_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(0.05)
        while time.perf_counter() < last:
            try:
                client.send(b"?")
                client.recv(16)
            except (TimeoutError, ConnectionRefusedError):
                time.sleep(0.001)
            else:
                return
    raise CriuError(f"the process did not answer within {ANSWER_S:.0f} s")


def measure(criu: str, directory: Path) -> Times:
    """Takes one process out of memory and puts it back. Raises CriuError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", _SERVER, str(port)]
    # A session of its own and no terminal: what CRIU would otherwise have to be told of.
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        _answer(port)
        log = directory / "criu.log"
        where = ("-D", str(directory), "-o", log.name)
        checkpoint_s = _call(criu, "dump", "-t", str(process.pid), *where, log=log)
        process.wait()  # its number has to be free again
        images = sum(path.stat().st_size for path in directory.iterdir() if path != log)
        begun = time.perf_counter()
        pid_file = directory / "pid"
        restore_s = _call(criu, "restore", "-d", "--pidfile", str(pid_file), *where, log=log)
        try:
            _answer(port)
            return Times(checkpoint_s, images, restore_s, time.perf_counter() - begun)
        finally:
            os.kill(int(pid_file.read_text(encoding="ascii")), 9)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_checkpoint_and_restore(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints the medians, which JUnit's file has, too."""
    if (reason := refusal(CRIU)) is not None:
        pytest.skip(reason)
    found = []
    for number in range(TIMES):
        directory = tmp_path / f"images-{number}"
        directory.mkdir()
        try:
            found.append(measure(CRIU, directory))
        except CriuError as error:
            pytest.fail(str(error), pytrace=False)
    medians = Times(*(median(column) for column in zip(*found, strict=True)))
    for name, value in medians._asdict().items():
        record_property(f"icbench.{name}", value)
    with capsys.disabled():
        print(
            f"\ncheckpoint {medians.checkpoint_s * 1e3:.1f} ms, images {medians.image_bytes / 1e6:.2f} MB, restore"
            f" {medians.restore_s * 1e3:.1f} ms, first answer {medians.answer_s * 1e3:.1f} ms after the restore was"
            f" begun (medians of {TIMES})"
        )
