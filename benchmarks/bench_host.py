# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks need of the host: huge pages on loan, a directory for sockets, namespaces, pinned processes."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
EAL = ("--no-pci", "--in-memory", "--single-file-segments", "--no-telemetry")

#: Name of the interface at both ends of the namespaces' link; and in a namespace between them.
LINK = "v0"
PORTS = ("p1", "p2")


def fail(message: str) -> SystemExit:
    """For `raise`: ends the benchmark with one sentence."""
    return SystemExit(f"{Path(sys.argv[0]).name}: {message}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    result = argparse.ArgumentParser(description=description)
    result.add_argument("--workload", type=Path, help="icbench-workload (default: the installed one)")
    result.add_argument("--pairs", type=int, default=10, help="measured pairs (default %(default)s)")
    result.add_argument("--seconds", type=float, default=1.0, help="measured time per run (default %(default)s)")
    result.add_argument("--repeat", type=int, default=1, help="launches of each side per pair (default %(default)s)")
    result.add_argument("--cpus", default=None, help="comma-separated CPUs to use (default: the first two allowed)")
    return result


def cpus(arguments: argparse.Namespace, count: int) -> list[int]:
    """CPUs to pin to; raises SystemExit if there are too few."""
    allowed = sorted(os.sched_getaffinity(0))
    chosen = [int(cpu) for cpu in arguments.cpus.split(",")] if arguments.cpus else allowed[:count]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was taken is given back
    if len(chosen) < count or not set(chosen) <= set(allowed):
        raise fail(f"{count} CPUs are needed, of {allowed}: name others with --cpus")
    return chosen


def workload(arguments: argparse.Namespace) -> str:
    """Path of the workload under test."""
    if arguments.workload:
        if not arguments.workload.is_file():
            raise fail(f"{arguments.workload} is no file: build the workload, or correct --workload")
        return str(arguments.workload.resolve())
    try:
        import pytest_icbench
    except ImportError:
        raise fail("pytest_icbench is not installed for this Python: run make, or give --workload") from None
    return str(Path(pytest_icbench.__file__).parent / "bin" / "icbench-workload")


def program(name: str, package: str) -> str:
    """A program on PATH; raises SystemExit that names the package to install."""
    found = shutil.which(name)
    if not found:
        raise fail(f"{name} is missing: apt install {package}")
    return found


@contextlib.contextmanager
def hugepages(mib: int) -> Iterator[None]:
    """Sees to that many MiB of free 2 MiB pages, and gives back what it took."""
    reserved, free = HUGEPAGES / "nr_hugepages", HUGEPAGES / "free_hugepages"
    before = int(reserved.read_text())
    missing = max(0, mib // 2 - int(free.read_text()))
    if missing:
        reserved.write_text(str(before + missing))
    try:
        if int(free.read_text()) < mib // 2:
            raise fail(f"the kernel has no {mib} MiB of huge pages to give: free memory first")
        yield
    finally:
        if missing:
            reserved.write_text(str(before))


@contextlib.contextmanager
def socket_directory() -> Iterator[Path]:
    """A directory with a short path: Unix sockets allow 107 bytes."""
    directory = Path(tempfile.mkdtemp(prefix="icb-", dir="/run"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def pinned(cpu: int, command: Sequence[str], namespace: str | None = None) -> list[str]:
    """The command on that CPU, within a network namespace if one is named."""
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    return [*inside, "taskset", "-c", str(cpu), *command]


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 10.0) -> None:
    """Until that file exists; raises SystemExit if the process ends before or time is up."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise fail(f"{process.args!r} made no {path} (exit code {process.poll()})")
        time.sleep(0.005)


def end(*processes: subprocess.Popen[str]) -> None:
    """Ends what still runs of them."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def namespaces(between: str | None = None) -> Iterator[tuple[str, str]]:
    """Two network namespaces joined by a veth pair, 10.9.0.1 and 10.9.0.2, with fixed neighbours and no IPv6.

    Args:
        between: name of a third one, through which the frames have to be carried, from ``PORTS[0]`` to ``PORTS[1]``.
    """
    names = (f"icb-a-{os.getpid()}", f"icb-b-{os.getpid()}")
    every = names if between is None else (*names, between)

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    def join(first: str, port: str, second: str, other: str) -> None:
        ip("link", "add", port, "netns", first, "type", "veth", "peer", "name", other, "netns", second)

    try:
        for name in every:
            ip("netns", "add", name)
        if between is None:
            join(names[0], LINK, names[1], LINK)
        else:
            for port, name in zip(PORTS, names, strict=True):
                join(name, LINK, between, port)
                ip("netns", "exec", between, "sysctl", "-qw", f"net.ipv6.conf.{port}.disable_ipv6=1")
                ip("-n", between, "link", "set", port, "up")
        for own, name in enumerate(names, 1):
            quiet = f"for i in {LINK} all; do sysctl -qw net.ipv6.conf.$i.disable_ipv6=1; done"
            ip("netns", "exec", name, "sh", "-c", quiet)
            ip("-n", name, "link", "set", LINK, "address", mac(own), "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "address", "add", f"{address(own)}/24", "dev", LINK)
            other = 3 - own
            ip("-n", name, "neigh", "replace", address(other), "lladdr", mac(other), "dev", LINK, "nud", "permanent")
        yield names
    finally:
        for name in every:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def address(side: int) -> str:
    """IPv4 address of side 1 or 2."""
    return f"10.9.0.{side}"


def mac(side: int) -> str:
    """MAC address of side 1 or 2."""
    return f"02:00:00:00:00:{side:02x}"


def ends(side: int) -> list[str]:
    """The four positional arguments of a workload at side 1 or 2."""
    return [address(side), mac(side), address(3 - side), mac(3 - side)]
