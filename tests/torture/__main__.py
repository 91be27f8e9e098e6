# SPDX-License-Identifier: BSD-3-Clause
"""Tortures the host as root: python -m tests.torture [--only kills|faults|fuzz] [further options].

Exit status 1 if anything was not as it has to be; the summary has the counts and the seed that repeats them.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

# The installed package is the one tested, and not the checkout's, which has no workload in it.
sys.path.append(sys.path.pop(0))

from tests.torture import faults, fuzz, kills

#: Parts of the whole: how many, and their share of the time.
PARTS = {"kills": (200, 0.4), "faults": (1000, 0.25), "fuzz": (10_000_000, 0.35)}


@dataclass
class Tally:
    """What came of one part."""

    name: str
    tried: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}: {self.tried} tried, {len(self.wrong)} wrong, {self.seconds:.0f} s"


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    result = argparse.ArgumentParser(prog="python -m tests.torture", description="torture this host")
    result.add_argument("--only", choices=list(PARTS), action="append", help="this part alone; repeatable")
    result.add_argument("--minutes", type=float, default=60.0, help="time for everything (default: 60)")
    result.add_argument(
        "--count", type=int, help="how many kills, faults, or inputs a parser in C (default: 200, all, 10^7)"
    )
    result.add_argument("--seed", type=int, help="repeats moments and inputs (default: a new one)")
    result.add_argument("--match", default="", help="only faults and sessions whose name has this text")
    result.add_argument("--short", action="store_true", help="only the faults that make test-all tries, in their order")
    return result


def main() -> int:
    """Runs the parts. Returns the exit status."""
    arguments = parser().parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    parts = arguments.only or list(PARTS)
    if os.geteuid() != 0 and parts != ["fuzz"]:
        print("kills and faults need root: run it as root, or with --only fuzz", file=sys.stderr)
        return 2
    whole = sum(PARTS[part][1] for part in parts)
    tallies = []
    for part in parts:
        count = arguments.count or PARTS[part][0]
        seconds = 60 * arguments.minutes * PARTS[part][1] / whole
        tallies.append(_run(part, count, seed, seconds, arguments))
    print(f"seed {seed}")
    for tally in tallies:
        print(tally)
    return int(any(tally.wrong for tally in tallies))


def _run(part: str, count: int, seed: int, seconds: float, arguments: argparse.Namespace) -> Tally:
    tally = Tally(part)
    began = time.monotonic()

    def enough() -> bool:
        return time.monotonic() - began > seconds

    def tell(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    runs: dict[str, Callable[[], Iterator[str | None]]] = {
        "kills": lambda: kills.run(count, seed, arguments.match, enough, tell),
        "faults": lambda: faults.run(faults.selected(seed, arguments.match, arguments.short)[:count], enough, tell),
        "fuzz": lambda: fuzz.run(count, seed, seconds, tell),
    }
    for trouble in runs[part]():
        tally.tried += 1
        if trouble is not None:
            tally.wrong.append(trouble)
            print(f"WRONG: {trouble}", flush=True)
    tally.seconds = time.monotonic() - began
    return tally


if __name__ == "__main__":
    sys.exit(main())
