# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints of the workload that wait for interrupts: they count like those that poll, and do not spin."""

from __future__ import annotations

import pytest

from tests.host.workload_tools import Path2, Process, between, check_lines, lost, run, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

TECHNIQUES = {"udp": [], "udp-gso": ["-G"], "raw-mmsg": ["-R", "IF", "-m"], "xdp": ["-X", "IF"]}
each_technique = pytest.mark.parametrize("technique", list(TECHNIQUES.values()), ids=list(TECHNIQUES))
#: CPU time of an idle endpoint that sleeps, as a share of the time, on a busy host.
IDLE_SHARE = 0.1


@each_technique
def test_round_trips_are_all_answered_and_both_ends_sleep_between(veth: Path2, technique: list[str]) -> None:
    common = [*technique, "--wait", "interrupt", "-b", "2"]
    client, server = between(veth, "client", "server", common, ["-r", "400", "--duration", "0.3"])
    check_lines(client)
    check_lines(server)
    assert client.summary["sent"] == client.summary["received"] == server.summary["reflected"] == 120
    for end in (client, server):
        assert sum(window["cpu_ns"] for window in end.windows) < 0.3e9 / 3
        assert end.summary["idle_cycles"] > end.summary["busy_cycles"]


@pytest.mark.slow
@each_technique
@pytest.mark.parametrize("wait", ["interrupt", "adaptive"])
def test_nothing_is_lost_by_waiting(veth: Path2, technique: list[str], wait: str) -> None:
    common = [*technique, "--wait", wait, "-c"]
    sender, receiver = between(veth, "send", "recv", common, ["-r", "20k", "--count", "2000"])
    assert sender.summary["sent"] == receiver.summary["received"] == 2000
    assert lost(sender, receiver) == 0


@each_technique
def test_a_receiver_of_nothing_does_not_spin(veth: Path2, technique: list[str]) -> None:
    words = [veth.a.interface if word == "IF" else word for word in technique]
    outcome = run("recv", veth.a, veth.b, *words, "--wait", "interrupt", "--duration", "0.4", "--drain", "0")
    assert outcome.code == 0, outcome.stderr
    assert outcome.summary["cpu_ns"] < IDLE_SHARE * 0.4e9
    assert outcome.summary["polls"] < 40


def test_both_ends_send_at_once(veth: Path2) -> None:
    words = ["-R", "end0", "-m", "--wait", "interrupt", "-r", "2k", "--duration", "0.2", "-b", "4"]
    other = Process("duplex", veth.b, veth.a, *words, "--stream-id", "2", "--peer-stream", "1")
    try:
        other.until("ready")
        first = run("duplex", veth.a, veth.b, *words, "--stream-id", "1", "--peer-stream", "2")
        second = other.end()
    finally:
        other.process.kill()
    assert (first.code, second.code) == (0, 0), (first.stderr, second.stderr)
    assert first.summary["sent"] == second.summary["received"] == second.summary["sent"] == 400
    assert first.summary["received"] > 0  # the other end began before it listened
