# SPDX-License-Identifier: BSD-3-Clause
"""Tortures the host as root: python -m tests.torture [--only kills|faults|fuzz] [further options].

Exit status 1 if anything was not as it has to be; the summary has the counts and the seed that repeats them.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

# The installed package is the one tested, and not the checkout's, which has no workload in it.
sys.path.append(sys.path.pop(0))

from tests.torture import faults, fuzz, host, kills


@dataclass(frozen=True)
class Part:
    """A part of the whole.

    Attributes:
        count, short: how many, and how many in the short form.
        share: of the time.
    """

    count: int
    short: int
    share: float


#: Inputs are fed beside the other parts, all of the time.
PARTS = {
    "kills": Part(200, 2, 0.65),
    "faults": Part(1000, 1000, 0.35),
    "fuzz": Part(10_000_000, 20_000, 1.0),
}


@dataclass
class Tally:
    """The outcome of one part."""

    name: str
    planned: int
    tried: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}: {self.tried} of {self.planned} tried, {len(self.wrong)} wrong, {self.seconds:.0f} s"


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    result = argparse.ArgumentParser(prog="python -m tests.torture", description="torture this host")
    result.add_argument("--only", choices=list(PARTS), action="append", help="this part alone; repeatable")
    result.add_argument("--minutes", type=float, default=60.0, help="time for everything (default: 60)")
    result.add_argument(
        "--count", type=int, help="how many kills, faults, or inputs a parser in C (default: 200, all, 10^7)"
    )
    result.add_argument("--seed", type=int, help="repeats moments and inputs (default: a new one)")
    result.add_argument(
        "--match", default="", help="only faults, sessions, parsers and readers whose name has this text"
    )
    result.add_argument("--short", action="store_true", help="what make test-all tries, in two minutes at most")
    return result


def main() -> int:
    """Runs the parts. Returns the exit status."""
    arguments = parser().parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    parts = arguments.only or list(PARTS)
    if os.geteuid() != 0 and parts != ["fuzz"]:
        print("kills and faults need root: run it as root, or with --only fuzz", file=sys.stderr)
        return 2
    beside = None
    if "fuzz" in parts and len(parts) > 1:
        parts.remove("fuzz")
        beside = _fuzz_beside(seed, arguments)
    whole = sum(PARTS[part].share for part in parts)
    tallies = []
    for part in parts:
        count = arguments.count or (PARTS[part].short if arguments.short else PARTS[part].count)
        seconds = 60 * arguments.minutes * PARTS[part].share / whole
        tallies.append(_run(part, count, seed, seconds, arguments))
    wrong = any(tally.wrong for tally in tallies)
    if beside is not None:
        print(beside.communicate()[0])
        wrong |= beside.returncode != 0
    print(f"seed {seed}")
    for tally in tallies:
        print(tally)
    if host.NOT_COUNTED:
        print("not counted, since sessions of others ran meanwhile:", *host.NOT_COUNTED, sep="\n  ")
    return int(wrong)


def _fuzz_beside(seed: int, arguments: argparse.Namespace) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.torture", "--only=fuzz", f"--seed={seed}", f"--minutes={arguments.minutes}"]
    argv += [f"--match={arguments.match}"] if arguments.match else []
    argv += [f"--count={arguments.count}"] if arguments.count else ["--short"] if arguments.short else []
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _run(part: str, count: int, seed: int, seconds: float, arguments: argparse.Namespace) -> Tally:
    began = time.monotonic()

    def enough() -> bool:
        return time.monotonic() - began > seconds

    def tell(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    inputs = fuzz.planned(count, arguments.match)
    chosen = faults.selected(seed, arguments.match, arguments.short)[:count]
    runs: dict[str, tuple[int, Callable[[], Iterator[str | None]]]] = {
        "kills": (
            count,
            lambda: kills.run(kills.selected(arguments.match, arguments.short), count, seed, enough, tell),
        ),
        "faults": (len(chosen), lambda: faults.run(chosen, enough, tell)),
        "fuzz": (len(inputs), lambda: fuzz.run(inputs, seed, seconds, tell)),
    }
    planned, run = runs[part]
    tally = Tally(part, planned)
    for trouble in run():
        tally.tried += 1
        if trouble is not None:
            tally.wrong.append(trouble)
            print(f"WRONG: {trouble}", flush=True)
    tally.seconds = time.monotonic() - began
    return tally


if __name__ == "__main__":
    sys.exit(main())
