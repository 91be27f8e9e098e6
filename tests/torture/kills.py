# SPDX-License-Identifier: BSD-3-Clause
"""Kills sessions, and the recovery after them, at moments drawn from their whole life.

After each the host is as before, and every test that was told to have ended has its results on the disk.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_icbench.store.stored_run import read_run
from tests.second_host import SecondHost, second_host, unsupported_reason
from tests.torture import host, lives
from tests.torture.lives import Life

#: A session that was not killed ends within this time, in seconds.
_LIFE_MAX_S = 90.0
_RECOVERY_MAX_S = 60.0
#: Every fourth recovery is killed, too, within this time of its start, in seconds: it takes 0.3 to 2.
_RECOVERY_S = 1.0
_EVERY = 4
#: The lives of the short form: a switch of two daemons in containers, and one with huge pages.
SHORT = ("ovs in lxc", "testpmd in netns")
#: The last line of a session of which both tests passed.
_PASSED = re.compile(r"^=+ 2 passed(, \d+ warnings?)? in .*=+$", re.MULTILINE)
_ENDED = re.compile(r"^test_x\.py::(test_rate\S*) PASSED", re.MULTILINE)


@dataclass(frozen=True)
class Kill:
    """A kill that is planned.

    Attributes:
        share: of the session's life, 0 to 1.
        recovery_s: when the recovery is killed, in seconds after its start; None: it is left alone.
    """

    number: int
    life: int
    share: float
    recovery_s: float | None


def planned(count: int, kinds: int, seed: int) -> list[Kill]:
    """Returns the kills: all lives in turn, moments over the whole life in equal parts, each drawn within its part.

    The seed draws the order of the lives, too: short parts with different seeds reach all of them.
    """
    chance = random.Random(seed)
    parts, order = list(range(count)), list(range(kinds))
    chance.shuffle(parts)
    chance.shuffle(order)
    kills = []
    for number in range(count):
        share = (parts[number] + chance.random()) / count
        recovery_s = chance.random() * _RECOVERY_S if number % _EVERY == _EVERY - 1 else None
        kills.append(Kill(number, order[number % kinds], share, recovery_s))
    return kills


def selected(names: str = "", short: bool = False) -> list[Life]:
    """Returns the lives whose name has a text.

    Args:
        short: only those of the short form; all where this host has none of them.
    """
    chosen = [life for life in lives.lives() if names in life.name]
    return [life for life in chosen if short and life.name in SHORT] or chosen


def run(
    kinds: Sequence[Life], count: int, seed: int, enough: Callable[[], bool], tell: Callable[[str], None]
) -> Iterator[str | None]:
    """Kills sessions. Yields None for each that leaves the host as before, else the difference.

    Args:
        kinds: the lives.
        enough: tells that the time is over.
        tell: shows the progress.
    """
    if unsupported_reason() is not None:
        kinds = [life for life in kinds if not life.two_hosts]
    plan = planned(count if kinds else 0, len(kinds), seed)
    lengths: dict[int, float | None] = {}
    with ExitStack() as stack:
        top = Path(stack.enter_context(TemporaryDirectory(prefix="torture-")))
        remote = any(kinds[kill.life].two_hosts for kill in plan)
        other = stack.enter_context(second_host(top)) if remote else None
        for kill in plan:
            if enough():
                return
            directory = top / f"k{kill.number}"
            directory.mkdir()
            # What is left out is made up for by the next life.
            for place in (*range(kill.life, len(kinds)), *range(kill.life)):
                if place not in lengths:
                    lengths[place] = whole(kinds[place], directory, other, tell)
                length_s = lengths[place]
                if length_s is not None:
                    yield _killed(kill, kinds[place], length_s, directory, other, tell)
                    break
            else:
                yield "no session passes whole on this host"
                return


def whole(life: Life, directory: Path, other: SecondHost | None, tell: Callable[[str], None]) -> float | None:
    """Runs a session to its end.

    Returns how long it took, in seconds; None, which is reported, if not both of its tests passed: what is killed
    before it measures shows nothing.
    """
    began = time.monotonic()
    process = lives.start(life, directory, other)
    try:
        status = process.wait(_LIFE_MAX_S)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    said = lives.output(directory)
    if status == 0 and _PASSED.search(said):
        return time.monotonic() - began
    tell(f"{life.name} is left out, since its session does not pass whole (exit status {status}):\n{said[-3000:]}")
    subprocess.run(lives.recovery(), env=lives.environment(), capture_output=True, timeout=_RECOVERY_MAX_S, check=False)
    return None


def _killed(
    kill: Kill, life: Life, length_s: float, directory: Path, other: SecondHost | None, tell: Callable[[str], None]
) -> str | None:
    for old in directory.glob("reports/*"):
        if old.is_symlink():
            old.unlink()
        else:
            old.rename(directory / f"whole-{old.name}")
    before = _settled()
    there = other.snapshot() if other is not None and life.two_hosts else None
    process = lives.start(life, directory, other)
    moment_s = kill.share * length_s
    time.sleep(moment_s)
    process.send_signal(signal.SIGKILL)
    process.wait(_RECOVERY_MAX_S)
    where = f"kill {kill.number}, {life.name}, after {moment_s:.2f} s of {length_s:.1f}"
    if kill.recovery_s is not None:
        where += f", recovery killed after {kill.recovery_s:.2f} s"
        interrupted = subprocess.Popen(lives.recovery(), env=lives.environment(), stdout=subprocess.DEVNULL)
        time.sleep(kill.recovery_s)
        interrupted.kill()
        interrupted.wait(_RECOVERY_MAX_S)
    done = subprocess.run(
        lives.recovery(),
        env=lives.environment(),
        capture_output=True,
        text=True,
        timeout=_RECOVERY_MAX_S,
        check=False,
    )
    said = done.stdout + done.stderr
    wrong = [] if done.returncode == 0 else [f"recovery ends with {done.returncode}: {said}"]
    wrong += host.left_since(before, 8.0)
    if there is not None and other is not None:
        wrong += _left_there(other, there)
    wrong += lost(directory)
    tell(f"{where}: {'; '.join(said.split(chr(10))).strip('; ')}")
    return None if not wrong else f"{where}: {'; '.join(wrong)}\n{lives.output(directory)[-2000:]}"


def _settled(timeout_s: float = 20.0) -> dict[str, dict[str, str]]:
    """Waits until nothing of an earlier session is left, also on a second host. Returns the state of the host."""
    deadline = time.monotonic() + timeout_s
    taken = host.take()
    while any("icb" in group for group in taken["cgroup"]) and time.monotonic() < deadline:
        time.sleep(0.2)
        taken = host.take()
    return taken


def _left_there(other: SecondHost, before: dict[str, dict[str, str]]) -> Sequence[str]:
    """Returns what is left on the second host, which notices within seconds that the connection has ended."""
    from tests.host.snapshot import difference

    deadline = time.monotonic() + 30.0
    while True:
        lines = [line for line in difference(before, other.snapshot()) if not line.endswith(" is gone")]
        if not lines or time.monotonic() > deadline:
            return [f"on the second host: {line}" for line in lines]
        time.sleep(0.2)


def lost(directory: Path, reports: str = "reports") -> list[str]:
    """Returns the tests that were reported as passed without a result or without windows on the disk.

    Args:
        directory: that of the session.
        reports: the directory of the runs in it.
    """
    passed = _ENDED.findall(lives.output(directory))
    runs = [path for path in directory.glob(f"{reports}/2*") if path.is_dir()]
    if not passed:
        return []
    if not runs:
        return [f"no run, but {len(passed)} tests passed"]
    stored = read_run(runs[0])
    kept = {result.measurement.case for result in stored.results}
    missing = [test for test in passed if test.partition("[")[2].rstrip("]") not in kept]
    raw = list(runs[0].glob("raw/**/*.jsonl"))
    return [f"{test} passed and has no result" for test in missing] + (
        [] if len(raw) >= len(passed) else [f"{len(passed)} tests passed, and {len(raw)} have windows"]
    )
