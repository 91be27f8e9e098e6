# SPDX-License-Identifier: BSD-3-Clause
"""Launches of a forwarder at three speeds, in turn: what shows how often a comparison of versions is wrong.

A unit is twenty-four launches of half a second, one after the other: six rounds over four rigs. Two have the same cost
a frame, one costs 5 % of the rate, one 10 %. The order of a round, slow5 a b slow10, and backwards in the next, makes
(a, b), (a, slow5) and (b, slow10) neighbours in time, the two of them first in turn. Rigs are built anew for each
block of units, so that what a rig draws when it is built is drawn more than once. A launch during which another
process of this host ran on the forwarder's CPU for long, as the kernel's own account says whatever the figure, is
repeated at once: what is to be shown needs the machine for itself.

``python -m validation.pools.detection --units N`` appends up to N units to a record that wants sixty: twenty-three
minutes of the whole machine in all, which others need as well.
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
from typing import Any

from pytest_icbench.driver.switch.forwarder.switch import Forward
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure.launch.launch import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.rig import Rig
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import priority, rigs
from validation.facts import host_facts
from validation.model import Settings

FILE = Path(__file__).with_suffix(".jsonl")
#: Units of the whole pool, and rounds of one.
UNITS, ROUNDS = 60, 6
#: Cycles that the forwarder adds to each frame, and what forwarding itself costs (of a pilot: its rate at two costs).
COST, FORWARDING = 4000, 240
#: The part of the rate that each rig lacks, in the order of a round.
RIGS = {"slow5": 0.05, "a": 0.0, "b": 0.0, "slow10": 0.10}
LENGTHS = Lengths(warmup_s=0.1, duration_s=0.5, window_s=0.05, drain_s=0.2, ring=1024, reference=False)
#: Part of a launch for which the forwarder may wait for its CPU (undisturbed: below 0.22); launches that are repeated.
MOST_WAITED, MOST_REPEATED = 0.3, 3
#: Facts that are the same within a pool.
HOST = ("processor", "CPUs", "memory, GiB", "hypervisor", "kernel", "DPDK")
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
        repeated: launches that were repeated for it.
        seconds: what it took.
    """

    at: float
    block: int
    seconds: float
    steal: float
    waited: float
    repeated: int
    pps: dict[str, list[float]]

    def to_json(self) -> str:
        return json.dumps(
            {
                "at": round(self.at, 1),
                "block": self.block,
                "seconds": round(self.seconds, 1),
                "steal": round(self.steal, 4),
                "waited": round(self.waited, 4),
                "repeated": self.repeated,
                "pps": {name: [round(value) for value in values] for name, values in self.pps.items()},
            }
        )


@dataclass
class Pool:
    """What was recorded on one host."""

    host: dict[str, Any]
    units: list[Unit]

    @classmethod
    def read(cls, file: Path) -> Pool | None:
        """None if there is no file."""
        if not file.exists():
            return None
        host, *units = (json.loads(line) for line in file.read_text().splitlines())
        return cls(host, [Unit(**unit) for unit in units])


def host() -> dict[str, Any]:
    """The facts of this host that are the same within a pool."""
    found = host_facts()
    return {name: found[name] for name in HOST}


def record(file: Path, units: int, settings: Settings) -> Pool:
    """Appends units until there are so many, each on the disk before the next. A pool of another host is begun anew."""
    facts = host()
    pool = Pool.read(file)
    if pool is None or pool.host != facts:
        pool = Pool(facts, [])
        file.write_text(json.dumps(facts) + "\n")
    found = pool.units
    while len(found) < units:
        wanted = min(UNITS_A_BLOCK, units - len(found))
        block = found[-1].block + 1 if found else 0
        for unit in measured(wanted, block, settings):
            found.append(unit)
            with file.open("a") as stream:
                stream.write(unit.to_json() + "\n")
            settings.tell(f"unit {len(found)} of {units}: {unit.seconds:.1f} s")
    return pool


def measured(units: int, block: int, settings: Settings) -> Iterator[Unit]:
    """Units of one block, on rigs of its own."""
    cases = {name: Case("forward", mode=f"cost{cost_of(slower)}") for name, slower in RIGS.items()}
    with HostSession(UNDO_KINDS) as session, ExitStack() as stack:
        built: dict[str, Rig] = {}
        for name, case in cases.items():
            built[name] = stack.enter_context(rigs.built(session, case, settings))
            built[name].pause()
        for _ in range(units):
            began, at = time.monotonic(), time.time()
            taken: dict[str, list[Taken]] = {name: [] for name in RIGS}
            for number in range(ROUNDS):
                for name in reversed(RIGS) if number % 2 else RIGS:
                    built[name].resume()
                    taken[name].append(launch(built[name], cases[name]))
                    built[name].pause()
            every = [each for launches in taken.values() for each in launches]
            yield Unit(
                at,
                block,
                time.monotonic() - began,
                max(each.steal for each in every),
                max(each.waited for each in every),
                sum(each.repeated for each in every),
                {name: [each.pps for each in launches] for name, launches in taken.items()},
            )


@dataclass(frozen=True)
class Taken:
    """A launch as the pool keeps it."""

    pps: float
    steal: float
    waited: float
    repeated: int


def launch(rig: Rig, case: Case) -> Taken:
    """One launch on a running rig, repeated while somebody else has the forwarder's CPU, at most ``MOST_REPEATED``."""
    repeated = -1
    while True:
        repeated += 1
        before = waiting_ns(rig)
        found = run_launch(rig, case, LENGTHS)
        waited = (waiting_ns(rig) - before) / 1e9 / LENGTHS.duration_s
        if found.invalid is not None:
            raise SystemExit(f"{case.id}: {found.invalid}: {found.evidence}")
        if waited <= MOST_WAITED or repeated == MOST_REPEATED:
            return Taken(found.throughput_pps, found.steal_share or 0.0, waited, repeated)


def waiting_ns(rig: Rig) -> int:
    """Nanoseconds for which the forwarder has waited for its CPU since it started (proc(5), schedstat)."""
    switch = rig.host._switch
    assert isinstance(switch, Forward)
    assert switch.forwarder is not None
    tasks = Path(f"/proc/{switch.forwarder.daemon.process.pid}/task")
    return sum(int(file.read_text().split()[1]) for file in tasks.glob("*/schedstat"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE, help="the record (default: %(default)s)")
    parser.add_argument("--units", type=int, default=UNITS, help="append so many at most (default: all that lack)")
    options = parser.parse_args()
    pool = Pool.read(options.file)
    there = 0 if pool is None else len(pool.units)
    with priority.own_processes():
        record(options.file, min(UNITS, there + options.units), Settings())
    return 0


if __name__ == "__main__":
    sys.exit(main())
