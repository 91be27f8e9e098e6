# SPDX-License-Identifier: BSD-3-Clause
"""Creating many containers: what is kept when one fails, and what is removed, whatever happens."""

from __future__ import annotations

import errno
import ipaddress
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net.sockets import echo_request
from pytest_icbench.host.process import refused_process
from pytest_icbench.host.root import Root
from pytest_icbench.kinds.startup import startup_run
from pytest_icbench.kinds.startup.startup_run import IDLE_SAMPLES, Startup, addresses, bear, one_line, open_files
from pytest_icbench.model.startup import MOST_CONTAINERS, Crowd


class Scripted:
    """A maker whose container of one number raises an error."""

    def __init__(self, failing: int = 0, error: BaseException | None = None) -> None:
        self.failing, self.error = failing, error
        self.alive: list[int] = []
        self.removed: list[int] = []
        self.outside: str | None = None
        self.untimed: str | None = None

    def create(self, number: int, *, ask: bool = True) -> Startup:
        assert ask
        if number == self.failing and self.error is not None:
            raise self.error
        self.alive.append(number)
        return Startup(1, number, 3, 4)

    def pids(self) -> set[int]:
        return {os.getpid()}

    def retire(self, number: int) -> int:
        raise AssertionError(number)

    def remove(self) -> Iterator[int]:
        while self.alive:
            self.removed.append(self.alive.pop())
            yield 5


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup_run, "IDLE_S", 0.0)


@pytest.fixture
def session() -> HostSession:
    return HostSession.probing()


def ignored(_created: int) -> None:
    pass


def test_times_are_in_the_order_of_creation_and_looks_at_each_tenth(session: HostSession) -> None:
    reported: list[int] = []
    found, failure = bear(Crowd("netns", 40), Scripted, session, reported.append)
    assert failure is None
    assert found.process_ns == tuple(range(1, 41))
    assert found.total_ns == tuple(number + 8 for number in range(1, 41))
    assert [look.containers for look in found.idle] == list(range(4, 41, 4))
    assert len(found.idle) == IDLE_SAMPLES
    assert found.removed_ns == (5,) * 40
    assert reported[0] == 1


def test_one_that_fails_ends_the_list_and_all_others_go(session: HostSession) -> None:
    maker = Scripted(731, ProvisionError("its process\n  cannot be started"))
    found, failure = bear(Crowd("lxc", 1000), lambda: maker, session, ignored)
    assert failure == "its process cannot be started"
    assert len(found.total_ns) == 730
    assert found.asked == 1000
    assert (len(maker.removed), maker.alive) == (730, [])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a fault")])
def test_all_go_whatever_ends_it(session: HostSession, error: BaseException) -> None:
    maker = Scripted(5, error)
    with pytest.raises(type(error)):
        bear(Crowd("netns", 10), lambda: maker, session, ignored)
    assert maker.removed == [4, 3, 2, 1]


def test_no_container_is_begun_when_memory_runs_out(session: HostSession, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 2048000 kB\nMemAvailable: 102300 kB\n", encoding="ascii")
    session.root = Root(tmp_path)
    maker = Scripted()
    found, failure = bear(Crowd("netns", 3), lambda: maker, session, ignored)
    assert failure is not None
    assert failure.startswith("only 99 of 2,000 MiB of memory are left: ")
    assert found.total_ns == ()


def test_a_limit_on_processes_is_reported_with_its_remedy() -> None:
    assert "pids.max" in refused_process(OSError(errno.EAGAIN, "Resource temporarily unavailable"))
    assert "memory" in refused_process(OSError(errno.ENOMEM, "Cannot allocate memory"))


def test_files_are_allowed_for_the_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = min(soft, 512)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        with open_files(few + 1):
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == few + 1
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (few, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def refuse(_kind: int, _limits: tuple[int, int]) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with (
        pytest.raises(Unsupported, match=r"need 9,999,999 open files, .* raise the limit"),
        open_files(9_999_999),
    ):
        pass


def test_every_container_has_a_network_of_its_own() -> None:
    numbers = (1, 2, 255, 256, MOST_CONTAINERS)
    ends = [end for number in numbers for end in addresses(number)]
    assert len({end.mac for end in ends}) == len({end.ip for end in ends}) == len(ends)
    networks = {ipaddress.IPv4Interface(f"{end.ip}/{end.prefix}").network for end in ends}
    assert len(networks) == len(numbers)
    assert all(network.subnet_of(ipaddress.IPv4Network("198.18.0.0/15")) for network in networks)


@pytest.mark.parametrize("sequence", [0, 1, 0xFFFF])
def test_an_echo_request_has_a_right_checksum(sequence: int) -> None:
    packet = echo_request(0xFFFF, sequence)
    total = sum(int.from_bytes(packet[place : place + 2], "big") for place in range(0, len(packet), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF


def test_a_long_message_keeps_both_ends() -> None:
    text = one_line(ProvisionError("first " + "x" * 1000 + "\nlast"))
    assert text.startswith("first")
    assert text.endswith("last")
    assert len(text) < 420
