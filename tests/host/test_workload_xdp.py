# SPDX-License-Identifier: BSD-3-Clause
"""AF_XDP sockets of the workload: what the driver does, and what refuses them, each in one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from tests.host.workload_tools import End, Outcome, Path2, Process, ip, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

#: Takes queue 0 of an interface by an AF_XDP socket without a program, says so, and holds it until its stdin ends.
_HOLDER = """
import ctypes, mmap, socket, struct, sys, time
SOL_XDP, RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 283, 2, 4, 5, 6
memory = mmap.mmap(-1, 64 * 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
holder = socket.socket(44, socket.SOCK_RAW)
holder.setsockopt(SOL_XDP, UMEM_REG, struct.pack("QQIII4x", address, 64 * 4096, 4096, 0, 0))
for ring in (FILL_RING, COMPLETION_RING, RX_RING):
    holder.setsockopt(SOL_XDP, ring, 64)
name = struct.pack("HHIII", 44, 0, socket.if_nametoindex(sys.argv[1]), 0, 0)
bind = ctypes.CDLL(None, use_errno=True).bind
for _ in range(200):  # the kernel lets go of a queue some time after its last holder has ended
    if bind(holder.fileno(), name, len(name)) == 0:
        break
    time.sleep(0.01)
else:
    raise OSError(ctypes.get_errno(), "bind")
print("held", flush=True)
sys.stdin.read()
"""


def refused(end: End, other: End, *options: object) -> str:
    """Returns the sentence of a workload whose port cannot be opened."""
    outcome = run("recv", end, other, *options)
    assert (outcome.code, outcome.lines) == (3, [])
    assert outcome.stderr.startswith("icbench-workload recv: ")
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr


@pytest.fixture
def queue_is_held(veth: Path2) -> Iterator[None]:
    command = [*veth.a.prefix(), sys.executable, "-c", _HOLDER, veth.a.interface]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate(timeout=10)


def test_a_veths_driver_copies_each_frame(veth: Path2) -> None:
    process = Process("recv", veth.a, veth.b, "-X", veth.a.interface, "--duration", "0.1", "--drain", "0")
    assert process.until("hello")["driver"] == "AF_XDP copy"
    assert process.end().code == 0


def test_a_driver_without_xdp_works_generically(veth: Path2) -> None:
    """The loopback has no XDP of its own."""
    ip("-n", veth.a.namespace or "", "link", "set", "lo", "up")
    outcome = run("send", veth.a, veth.b, "-X", "lo", "--count", "500", "-r", "100k")
    assert outcome.code == 0, outcome.stderr
    assert outcome.lines[0]["driver"] == "AF_XDP generic"
    assert outcome.summary["sent"] == 500


@pytest.mark.slow
def test_another_program_on_the_interface_is_refused(veth: Path2) -> None:
    holder = Process("recv", veth.a, veth.b, "-X", veth.a.interface, "--supervised")
    try:
        holder.until("ready")
        sentence = refused(veth.a, veth.b, "-X", veth.a.interface, "--port", "10")
    finally:
        holder.close_stdin()
        holder.process.wait(timeout=10)
    assert f"interface {veth.a.interface} is held by another XDP program: end what uses it" in sentence


def test_a_killed_workload_leaves_no_program(veth: Path2) -> None:
    killed = Process("recv", veth.a, veth.b, "-X", veth.a.interface, "--supervised")
    killed.until("ready")
    killed.process.kill()
    killed.process.wait(timeout=10)
    outcome: Outcome = run("recv", veth.a, veth.b, "-X", veth.a.interface, "--duration", "0.01", "--drain", "0")
    assert outcome.code == 0, outcome.stderr


@pytest.mark.usefixtures("queue_is_held")
def test_a_queue_of_another_socket_is_refused(veth: Path2) -> None:
    sentence = refused(veth.a, veth.b, "-X", veth.a.interface)
    assert f"queue 0 of {veth.a.interface} is held by another AF_XDP socket: end the program" in sentence


def test_memory_above_the_limit_is_refused(veth: Path2) -> None:
    """Root without CAP_IPC_LOCK, as in a container without it."""
    limits = ["prlimit", "--memlock=65536", "setpriv", "--bounding-set", "-ipc_lock"]
    ends = [veth.a.ip, veth.a.mac, veth.b.ip, veth.b.mac]
    done = subprocess.run(
        [*veth.a.prefix(), *limits, str(workload_path()), "recv", *ends, "-X", veth.a.interface],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 3
    assert "AF_XDP needs 9216 KiB of locked memory and the limit is 64 KiB: raise it (ulimit -l)" in done.stderr


def test_several_queues_are_refused(veth: Path2) -> None:
    inside = ("-n", veth.a.namespace or "")
    queues = ("numrxqueues", "2", "numtxqueues", "2")
    ip(*inside, "link", "add", "many", *queues, "type", "veth", "peer", "name", "other", *queues)
    try:
        sentence = refused(veth.a, veth.b, "-X", "many")
    finally:
        ip(*inside, "link", "del", "many")
    assert "many has 2 receive queues, and an AF_XDP socket hears one: ethtool -L many combined 1" in sentence


def test_a_missing_interface_and_a_long_frame_are_refused(veth: Path2) -> None:
    nowhere = replace(veth.a, interface="nowhere")
    assert "there is no interface 'nowhere' here" in refused(nowhere, veth.b, "-X", "nowhere")
    longer = refused(veth.a, veth.b, "-X", veth.a.interface, "-p", "3845")
    assert "packet size 3845 is more than AF_XDP has in one piece: send at most 3844 bytes" in longer
