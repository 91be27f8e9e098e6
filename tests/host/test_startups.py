# SPDX-License-Identifier: BSD-3-Clause
"""Containers created one after the other on the real host, and what is left of them."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pytest_icbench
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import RUN_DIR, HostSession
from pytest_icbench.host.net import links
from pytest_icbench.host.recover import recover
from pytest_icbench.kinds.startup import on_demand, startup_run
from pytest_icbench.kinds.startup.startup_run import bear, maker_of
from pytest_icbench.model.startup import FORK, Crowd
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import snapshot
from tests.host.node_tools import CPU, clean, kind, session, tidy_snapshot

__all__ = ["clean", "kind", "session"]  # fixtures

#: Creates containers of a kind until it is killed, and tells each.
HARNESS = """
import itertools, sys
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.startup.startup_run import maker_of
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
maker = maker_of(HostSession(UNDO_KINDS), sys.argv[1], [int(sys.argv[2])])
for number in itertools.count(1):
    maker.create(number)
    print(number, flush=True)
"""


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup_run, "IDLE_S", 0.01)


def test_each_answers_before_the_next_one_is_begun(session: HostSession, kind: str) -> None:
    found, failure = bear(Crowd(kind, 6), lambda: maker_of(session, kind, [CPU]), session, lambda _: None)
    assert failure is None
    assert len(found.total_ns) == len(found.removed_ns) == 6
    assert all(min(times) > 0 for times in found.phases.values())
    assert found.total_ns == tuple(map(sum, zip(*found.phases.values(), strict=True)))
    assert found.idle[-1].memory_bytes > 6 * 50_000, "a process and a namespace take that at least"
    assert found.idle[-1].cpu_share < 0.5


def test_the_floor_is_a_process(session: HostSession) -> None:
    found, failure = bear(Crowd(FORK, 20), lambda: maker_of(session, FORK, [CPU]), session, lambda _: None)
    assert failure is None
    assert found.total_ns == found.process_ns
    assert min(found.total_ns) > 0


def test_a_container_without_its_link_does_not_count(session: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes from the container, over its link: without one there is none."""
    maker = maker_of(session, "netns", [CPU])
    maker.create(1)
    monkeypatch.setattr(links, "create_pair", lambda *_: None)
    with pytest.raises(ProvisionError, match=r"no frame can be sent to 198\.18\.0\.10"):
        maker.create(2)
    assert len(list(maker.remove())) == 2


def test_the_first_frame_of_a_client_creates_its_container(session: HostSession) -> None:
    crowd = Crowd("netns", 8, every_ms=60)
    found, failure = bear(crowd, lambda: maker_of(session, "netns", [CPU]), session, lambda _: None)
    assert failure is None
    assert len(found.first_trip_ns) == len(found.total_ns) == 8
    # Clients come every 60 ms, also while the container of one before them is made: they wait for it first.
    rest, ready_ns = [], 0
    for place, (trip_ns, total_ns) in enumerate(zip(found.first_trip_ns, found.total_ns, strict=True)):
        assert trip_ns > total_ns, "no answer comes before the container is there"
        came_ns = place * 60_000_000
        ready_ns = max(ready_ns, came_ns) + total_ns
        rest.append(trip_ns - (ready_ns - came_ns))
    assert statistics.median(rest) < 50e6


def test_a_container_whose_client_is_silent_goes_while_others_come(
    session: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_demand, "SILENCE_S", 0.2)
    maker = maker_of(session, "netns", [CPU])
    order: list[tuple[str, int]] = []
    create, retire = maker.create, maker.retire

    def creates(number: int, **how: Any) -> Any:
        order.append(("create", number))
        return create(number, **how)

    def retires(number: int) -> Any:
        order.append(("retire", number))
        return retire(number)

    monkeypatch.setattr(maker, "create", creates)
    monkeypatch.setattr(maker, "retire", retires)
    found, failure = bear(Crowd("netns", 10, every_ms=150), lambda: maker, session, lambda _: None)
    assert failure is None
    assert len(found.first_trip_ns) == len(found.total_ns) == len(found.retired) + len(found.removed_ns) == 10
    assert found.retired
    assert all(each.silent_ns >= 200_000_000 + each.took_ns > 200_000_000 for each in found.retired)
    assert order.index(("retire", 1)) < order.index(("create", 10)), "it does not wait for the last client"
    assert maker.pids() == set()


def test_processes_run_out_and_the_curve_is_kept(session: HostSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a control group stops a fork. Nodes leave the group that pytest is in, so the kernel is played."""
    popen, started = subprocess.Popen, itertools.count(1)

    def refuse(*arguments: Any, **options: Any) -> Any:
        if next(started) > 6:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return popen(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    found, failure = bear(Crowd("netns", 30), lambda: maker_of(session, "netns", [CPU]), session, lambda _: None)
    monkeypatch.undo()
    assert failure is not None
    assert "no further process is allowed: raise the pids cgroup's pids.max" in failure
    assert 4 <= len(found.total_ns) <= 8
    assert len(found.removed_ns) >= len(found.total_ns)


@pytest.mark.slow
def test_killed_in_the_midst_leaves_nothing(kind: str) -> None:
    number = 30 if kind in ("podman", "docker") else 150  # an engine takes a third of a second for each
    before = tidy_snapshot()
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, kind, str(CPU)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(pytest_icbench.__file__).parents[1],
    )
    assert process.stdout is not None
    reported = [process.stdout.readline() for _ in range(number)]
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    assert reported[-1] == f"{number}\n"
    recovery = recover(RUN_DIR, UNDO_KINDS)
    assert recovery.failures == []
    assert len(recovery.undone) == 1
    assert snapshot.left_since(before) == []
