# SPDX-License-Identifier: BSD-3-Clause
"""Launches of a forwarder at three speeds, in turn: what shows how often a comparison of versions is wrong.

A unit is twenty-four launches of half a second, one after the other: six rounds over four rigs. Two have the same cost
a frame, one costs 5 % of the rate, one 10 %. The order of a round, slow5 a b slow10, and backwards in the next, makes
(a, b), (a, slow5) and (b, slow10) neighbours in time, the two of them first in turn. Rigs are built anew for each
block of units, so that what a rig draws when it is built is drawn more than once.

``python detection_pool.py FILE --units N`` appends up to N units to a file that wants sixty: twenty-three minutes of
the whole machine in all, which others need as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from validation import priority, rigs
from validation.model import Settings

from pytest_icbench.case import Case
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure import Settings as Lengths
from pytest_icbench.measure.launch import run_launch
from pytest_icbench.rig import Rig
from pytest_icbench.switch.forward import Forward

#: Units of the whole pool, and rounds of one.
UNITS, ROUNDS = 60, 6
#: Cycles that the forwarder adds to each frame, and what forwarding itself costs (of a pilot: its rate at two costs).
COST, FORWARDING = 4000, 240
#: The part of the rate that each rig lacks, in the order of a round.
RIGS = {"slow5": 0.05, "a": 0.0, "b": 0.0, "slow10": 0.10}
LENGTHS = Lengths(warmup_s=0.1, duration_s=0.5, window_s=0.05, drain_s=0.2, ring=1024, reference=False)
#: Units between which rigs are built anew, unless fewer are asked for.
UNITS_A_BLOCK = 7


def cost_of(slower: float) -> int:
    """Cycles to add for a rate that is less by this part."""
    return round((COST + FORWARDING) / (1 - slower) - FORWARDING)


@dataclass(frozen=True)
class Unit:
    """Frames per second of each launch, by rig, in the order in which they ran.

    Attributes:
        at: seconds since the epoch when it began.
        block: rigs that were built together have the same.
        steal: greatest share of an endpoint's CPU time that the hypervisor took in one of its launches.
        waited: greatest share of a launch for which the forwarder was ready to run and another process ran.
        seconds: what it took.
    """

    at: float
    block: int
    seconds: float
    steal: float
    waited: float
    pps: dict[str, list[float]]

    def to_json(self) -> str:
        return json.dumps(
            {
                "at": round(self.at, 1),
                "block": self.block,
                "seconds": round(self.seconds, 1),
                "steal": round(self.steal, 4),
                "waited": round(self.waited, 4),
                "pps": {name: [round(value) for value in values] for name, values in self.pps.items()},
            }
        )


def read(file: Path) -> list[Unit]:
    """The units of a pool, none if there is no file."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [Unit(**json.loads(line)) for line in lines]


def record(file: Path, units: int, settings: Settings) -> list[Unit]:
    """Appends units until there are so many, each on the disk before the next; all units of the file."""
    found = read(file)
    while len(found) < units:
        wanted = min(UNITS_A_BLOCK, units - len(found))
        block = found[-1].block + 1 if found else 0
        for unit in measured(wanted, block, settings):
            found.append(unit)
            with file.open("a") as stream:
                stream.write(unit.to_json() + "\n")
            settings.tell(f"unit {len(found)} of {units}: {unit.seconds:.1f} s")
    return found


def measured(units: int, block: int, settings: Settings) -> Iterator[Unit]:
    """Units of one block, on rigs of its own."""
    cases = {name: Case("forward", variant=f"cost{cost_of(slower)}") for name, slower in RIGS.items()}
    with HostSession() as session, ExitStack() as stack:
        built: dict[str, Rig] = {}
        for name, case in cases.items():
            built[name] = stack.enter_context(rigs.built(session, case, settings))
            built[name].pause()
        for _ in range(units):
            began, at, steal, waited = time.monotonic(), time.time(), 0.0, 0.0
            pps: dict[str, list[float]] = {name: [] for name in RIGS}
            for number in range(ROUNDS):
                for name in reversed(RIGS) if number % 2 else RIGS:
                    built[name].resume()
                    before = waiting_ns(built[name])
                    launch = run_launch(built[name], cases[name], LENGTHS)
                    waited = max(waited, (waiting_ns(built[name]) - before) / 1e9 / LENGTHS.duration_s)
                    built[name].pause()
                    if launch.invalid is not None:
                        raise SystemExit(f"{cases[name].id}: {launch.invalid}: {launch.evidence}")
                    pps[name].append(launch.throughput_pps)
                    steal = max(steal, launch.steal_share or 0.0)
            yield Unit(at, block, time.monotonic() - began, steal, waited, pps)


def waiting_ns(rig: Rig) -> int:
    """Nanoseconds for which the forwarder has waited for its CPU since it started (proc(5), schedstat)."""
    switch = rig.host._switch
    assert isinstance(switch, Forward)
    assert switch.forwarder is not None
    tasks = Path(f"/proc/{switch.forwarder.daemon.process.pid}/task")
    return sum(int(file.read_text().split()[1]) for file in tasks.glob("*/schedstat"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--units", type=int, default=UNITS, help="append so many at most (default: all that lack)")
    options = parser.parse_args()
    there = len(read(options.file))
    with priority.own_processes():
        record(options.file, min(UNITS, there + options.units), Settings())
    return 0


if __name__ == "__main__":
    sys.exit(main())
