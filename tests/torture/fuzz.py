# SPDX-License-Identifier: BSD-3-Clause
"""Feeds hostile inputs to the parsers in C under sanitizers, and mutated ones to the readers in Python."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.hostile import refusals

ROOT = Path(__file__).parents[2]
_PROGRAMS, _COMMAND = "workload/tests", "icbench "
#: The C parsers: fuzz targets of workload/tests, built by meson.
TARGETS = ("answers", "pcap", "options", "receive")  # what is left of the time is the slowest one's
#: Inputs of a parser in C for each one of a reader in Python, and for each call of a command.
_TO_A_READER, _TO_A_COMMAND = 100, 10_000
#: Inputs of a reader between two looks at the clock.
_AT_ONCE = 100

Tried = Callable[[int, int], tuple[int, dict[str, str]]]


def planned(count: int, names: str = "") -> dict[str, int]:
    """Returns the inputs of each reader, command and parser, in this order, if a parser gets ``count``.

    Args:
        names: only those whose name has this text.
    """
    from tests.unit.cli.test_hostile_commands import COMMANDS

    inputs = {
        **dict.fromkeys(_readers(), max(1, count // _TO_A_READER)),
        **dict.fromkeys((f"{_COMMAND}{name}" for name in COMMANDS), max(1, count // _TO_A_COMMAND)),
        **dict.fromkeys((f"fuzz_{target}" for target in TARGETS), count),
    }
    return {name: number for name, number in inputs.items() if names in name}


def run(inputs: dict[str, int], seed: int, seconds: float, tell: Callable[[str], None]) -> Iterator[str | None]:
    """Feeds readers and parsers, one on each CPU. Yields None for each that took its inputs, else its failure.

    Args:
        inputs: how many for each, as ``planned`` returns them.
        seconds: time for all of them.
    """
    deadline = time.monotonic() + seconds
    cpus = len(os.sched_getaffinity(0))
    with TemporaryDirectory(prefix="torture-") as directory, ProcessPoolExecutor(cpus, initializer=_yield_cpu) as pool:
        begun = []
        for left, (name, count) in zip(range(len(inputs), 0, -1), inputs.items(), strict=True):
            share = cpus / left  # of the time: what one does not take is the later ones'
            if not name.startswith("fuzz_"):
                begun.append(pool.submit(_reader, name, count, seed, deadline, share))
                continue
            trouble = _built(Path(directory))
            if trouble is not None:
                yield trouble
                return
            begun.append(pool.submit(_parser, Path(directory), name, count, seed, deadline, share))
        for done in as_completed(begun):
            said, trouble = done.result()
            tell(said)
            yield trouble


def _yield_cpu() -> None:
    os.nice(19)


def _built(directory: Path) -> str | None:
    """Builds the fuzz targets unless they are built. Returns None, or the reason why they cannot be built."""
    if (directory / "b" / "build.ninja").exists():
        return None
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    programs = [f"{_PROGRAMS}/fuzz_{target}" for target in TARGETS]
    for argv in (
        ["meson", "setup", str(directory / "b"), "-Dfuzz=enabled"],
        ["ninja", "-C", str(directory / "b"), *programs],
    ):
        made = subprocess.run(argv, cwd=ROOT, env=tools, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return f"the fuzz targets cannot be built: {made.stdout[-1000:]}{made.stderr[-500:]}"
    return None


def _parser(directory: Path, name: str, count: int, seed: int, deadline: float, share: float) -> tuple[str, str | None]:
    seconds = max(1, int(min(1.0, share) * (deadline - time.monotonic())))
    options = [f"-runs={count}", f"-seed={seed}", f"-max_total_time={seconds}", "-timeout=60"]
    argv = [str(directory / "b" / _PROGRAMS / name), *options, "-print_final_stats=1", "-verbosity=0"]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
    executed = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    said = f"{name}: {executed[0] if executed else '?'} of {count} inputs, exit status {done.returncode}"
    return said, None if done.returncode == 0 else f"{name}: {done.stderr[-2000:]}"


def _reader(name: str, count: int, seed: int, deadline: float, share: float) -> tuple[str, str | None]:
    tried = _tried(name)
    end = time.monotonic() + max(1.0, min(1.0, share) * (deadline - time.monotonic()))
    done = refused = 0
    wrong: dict[str, str] = {}
    while done < count and time.monotonic() < end:
        more = min(_AT_ONCE, count - done)
        of_these, others = tried(more, seed * 10**6 + done // _AT_ONCE)
        done, refused = done + more, refused + of_these
        wrong |= others
    said = f"{name}: {done} of {count} inputs, {refused} refused, {len(wrong)} kinds of other ends"
    return said, None if not wrong else f"{name}: {wrong}"


def _tried(name: str) -> Tried:
    from tests.unit.cli.test_hostile_commands import tried_command

    if name.startswith(_COMMAND):
        return partial(tried_command, name.removeprefix(_COMMAND))
    return partial(refusals, _readers()[name])


def _readers() -> dict[str, Callable[[random.Random], object]]:
    from tests.unit.host.test_entry_checks import read_hostile
    from tests.unit.store.test_hostile_run import STORED
    from tests.unit.test_hostile_inputs import READERS
    from tests.unit.testbed.test_hostile_answers import read_answer

    return {**READERS, **STORED, "journal": read_hostile, "answer of the second host": read_answer}
