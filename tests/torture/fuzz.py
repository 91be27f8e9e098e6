# SPDX-License-Identifier: BSD-3-Clause
"""Inputs without end: the parsers in C under sanitizers, the readers in Python by mutation."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.hostile import refusals

ROOT = Path(__file__).parents[2]
#: The C parsers: fuzz targets of workload/tests, built by meson.
TARGETS = ("receive", "options", "pcap", "answers")
#: Inputs of a reader in Python for each 100 of a parser in C.
_PYTHON_SHARE = 100
#: The parsers' share of the time.
_OF_PARSERS = 0.6
#: Inputs of a reader between two looks at the clock.
_AT_ONCE = 500


def run(count: int, seed: int, seconds: float, tell: Callable[[str], None]) -> Iterator[str | None]:
    """Feeds parsers and readers. Yields None for each one that took its inputs, else what it did instead.

    Args:
        count: inputs of a parser in C; a reader in Python gets a hundredth.
        seconds: time for all of them.
    """
    readers = _readers()
    parser_s = max(1, int(_OF_PARSERS * seconds / len(TARGETS)))
    reader_s = (1 - _OF_PARSERS) * seconds / len(readers)
    with TemporaryDirectory(prefix="torture-") as directory:
        for target in TARGETS:
            yield _parser(target, count, seed, parser_s, Path(directory), tell)
        for name, tried in readers.items():
            yield _reader(name, tried, max(1, count // _PYTHON_SHARE), seed, reader_s, tell)


def _parser(
    target: str, count: int, seed: int, seconds: int, directory: Path, tell: Callable[[str], None]
) -> str | None:
    build = directory / "build"
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if not build.exists():
        made = subprocess.run(
            ["meson", "setup", str(build), "-Dfuzz=enabled"],
            cwd=ROOT,
            env=tools,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            return f"the fuzz targets cannot be set up: {made.stdout[-500:]}{made.stderr[-500:]}"
    program = build / "workload" / "tests" / f"fuzz_{target}"
    name = str(program.relative_to(build))
    made = subprocess.run(["ninja", "-C", str(build), name], env=tools, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"fuzz_{target} cannot be built: {made.stdout[-1000:]}"
    options = [f"-runs={count}", f"-seed={seed}", f"-max_total_time={seconds}", "-print_final_stats=1", "-verbosity=0"]
    done = subprocess.run(
        ["nice", "-n", "19", str(program), *options], cwd=directory, capture_output=True, text=True, check=False
    )
    executed = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    tell(f"fuzz_{target}: {executed[0] if executed else '?'} inputs, exit status {done.returncode}")
    return None if done.returncode == 0 else f"fuzz_{target}: {done.stderr[-2000:]}"


def _reader(
    name: str,
    tried: Callable[[int, int], tuple[int, dict[str, str]]],
    count: int,
    seed: int,
    seconds: float,
    tell: Callable[[str], None],
) -> str | None:
    began = time.monotonic()
    done = refused = 0
    wrong: dict[str, str] = {}
    while done < count and time.monotonic() - began < seconds:
        more = min(_AT_ONCE, count - done)
        of_these, others = tried(more, seed * 10**6 + done // _AT_ONCE)
        done, refused = done + more, refused + of_these
        wrong |= others
    tell(f"{name}: {done} inputs, {refused} refused, {len(wrong)} kinds of other ends")
    return None if not wrong else f"{name}: {wrong}"


def _readers() -> dict[str, Callable[[int, int], tuple[int, dict[str, str]]]]:
    from tests.unit.cli.test_hostile_commands import COMMANDS, tried_command
    from tests.unit.test_hostile_inputs import READERS

    def reader(name: str) -> Callable[[int, int], tuple[int, dict[str, str]]]:
        return lambda count, seed: refusals(READERS[name], count, seed)

    def command(name: str) -> Callable[[int, int], tuple[int, dict[str, str]]]:
        return lambda count, seed: tried_command(name, count, seed)

    return {**{name: reader(name) for name in READERS}, **{f"icbench {name}": command(name) for name in COMMANDS}}
